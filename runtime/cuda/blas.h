// cuBLASLt as a table of functions.
#pragma once

#include <cublasLt.h>

#include <string>

#include "runtime/base/status.h"
#include "runtime/cuda/owned.h"

namespace gpuc::cuda {

#define GPUC_CUBLASLT_FUNCTIONS(X)        \
  X(cublasLtGetVersion)                   \
  X(cublasLtGetStatusString)              \
  X(cublasLtCreate)                       \
  X(cublasLtDestroy)                      \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)     \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmul)

struct Blas {
#define GPUC_CUBLASLT_ENTRY(name) decltype(&::name) name = nullptr;
  GPUC_CUBLASLT_FUNCTIONS(GPUC_CUBLASLT_ENTRY)
#undef GPUC_CUBLASLT_ENTRY

  /// The library of this machine, of the major version that gpuc was built for; opened once a process. Error:
  /// it is not there, with what to install.
  static Result<const Blas*> get();

  Status check(cublasStatus_t status, const char* call) const;
  std::string version() const;  // "13.1.0"
};

/// Makes get() return `blas` instead of the machine's; null for the machine's again. For tests.
void useBlas(const Blas* blas);

/// One context of the library, for the device that was current when it was made.
class BlasHandle {
 public:
  static Result<BlasHandle> create(const Blas& blas);

  const Blas& blas() const { return *blas_; }
  cublasLtHandle_t get() const { return handle_.get(); }
  explicit operator bool() const { return get() != nullptr; }

 private:
  const Blas* blas_ = nullptr;
  Owned<cublasLtHandle_t, cublasStatus_t> handle_;
};

}  // namespace gpuc::cuda
