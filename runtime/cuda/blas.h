// cuBLASLt as a table of functions.
#pragma once

#include <cublasLt.h>

#include <string>

#include "runtime/cuda/library.h"
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

/// Of the major version that gpuc was built for.
struct Blas : LoadedTable<Blas> {
#define GPUC_CUBLASLT_ENTRY(name) decltype(&::name) name = nullptr;
  GPUC_CUBLASLT_FUNCTIONS(GPUC_CUBLASLT_ENTRY)
#undef GPUC_CUBLASLT_ENTRY

  static Result<Blas> load();
  Status check(cublasStatus_t status, const char* call) const;
  std::string version() const;  // "13.1.0"
};

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
