#include "runtime/cuda/blas.h"

namespace gpuc::cuda {
namespace {

/// What a user can do about an error; null where that is not known.
const char* cureOf(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED:
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "free the GPU's memory";
    case CUBLAS_STATUS_ARCH_MISMATCH:
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "update cuBLAS";
    case CUBLAS_STATUS_MAPPING_ERROR:
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "a kernel failed: run under compute-sanitizer to see which; the session is lost";
    default:
      return nullptr;
  }
}

}  // namespace

Result<Blas> Blas::load() {
  constexpr LibraryFile kFile = {
      "no cuBLASLt: ", "libcublasLt.so." GPUC_CUDA_TEXT(CUBLAS_VER_MAJOR),
      " (install CUDA " GPUC_CUDA_TEXT(CUBLAS_VER_MAJOR) "'s cuBLAS, or name its folder in LD_LIBRARY_PATH)"};
  Blas blas;
#define GPUC_CUBLASLT_FUNCTION(name) {GPUC_CUDA_TEXT(name), &blas.name},
  GPUC_RETURN_IF_ERROR(loadFunctions(kFile, {GPUC_CUBLASLT_FUNCTIONS(GPUC_CUBLASLT_FUNCTION)}));
#undef GPUC_CUBLASLT_FUNCTION
  return blas;
}

Status Blas::check(cublasStatus_t status, const char* call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return okStatus();
  const char* cure = cureOf(status);
  return errorf("%s: %s%s%s", call, cublasLtGetStatusString(status), cure ? ": " : "", cure ? cure : "");
}

std::string Blas::version() const { return versionText(cublasLtGetVersion()); }

Result<BlasHandle> BlasHandle::create(const Blas& blas) {
  cublasLtHandle_t handle = nullptr;
  GPUC_RETURN_IF_ERROR(blas.check(blas.cublasLtCreate(&handle), "cublasLtCreate"));
  BlasHandle result;
  result.blas_ = &blas;
  result.handle_ = {handle, blas.cublasLtDestroy};
  return result;
}

}  // namespace gpuc::cuda
