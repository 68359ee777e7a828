#include "runtime/cuda/blas.h"

#include "runtime/cuda/library.h"

namespace gpuc::cuda {
namespace {

const Blas* blas_of_tests = nullptr;

#define GPUC_CUDA_TEXT(name) #name
#define GPUC_CUDA_NUMBER(name) GPUC_CUDA_TEXT(name)
constexpr char kFile[] = "libcublasLt.so." GPUC_CUDA_NUMBER(CUBLAS_VER_MAJOR);

Result<Blas> load() {
  Result<Library> library = Library::open(kFile);
  if (!library.ok())
    return Status::error("no cuBLASLt: " + library.message() + " (install CUDA " +
                         std::to_string(CUBLAS_VER_MAJOR) +
                         "'s cuBLAS, or name its folder in LD_LIBRARY_PATH)");
  Blas blas;
#define GPUC_CUBLASLT_FIND(name)                                                      \
  if (Status status = library->find(GPUC_CUDA_NUMBER(name), blas.name); !status.ok()) \
    return Status::error("no cuBLASLt: " + status.message());
  GPUC_CUBLASLT_FUNCTIONS(GPUC_CUBLASLT_FIND)
#undef GPUC_CUBLASLT_FIND
  return blas;
}

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

void useBlas(const Blas* blas) { blas_of_tests = blas; }

Result<const Blas*> Blas::get() {
  if (blas_of_tests) return blas_of_tests;
  static const Result<Blas> blas = load();
  if (!blas.ok()) return blas.status();
  return &*blas;
}

Status Blas::check(cublasStatus_t status, const char* call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return okStatus();
  const char* cure = cureOf(status);
  return errorf("%s: %s%s%s", call, cublasLtGetStatusString(status), cure ? ": " : "", cure ? cure : "");
}

std::string Blas::version() const {
  size_t number = cublasLtGetVersion();  // 130100
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

Result<BlasHandle> BlasHandle::create(const Blas& blas) {
  cublasLtHandle_t handle = nullptr;
  GPUC_RETURN_IF_ERROR(blas.check(blas.cublasLtCreate(&handle), "cublasLtCreate"));
  BlasHandle result;
  result.blas_ = &blas;
  result.handle_ = {handle, blas.cublasLtDestroy};
  return result;
}

}  // namespace gpuc::cuda
