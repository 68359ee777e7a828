#include "runtime/cuda/nccl.h"

#include <algorithm>

namespace gpuc::cuda {
namespace {

/// What a user can do about an error; null where that is not known.
const char* cureOf(ncclResult_t result) {
  switch (result) {
    case ncclUnhandledCudaError:
      return "a GPU failed, or has no memory left for NCCL: free it, or run with NCCL_DEBUG=INFO to see what";
    case ncclSystemError:
      return "the network or shared memory (/dev/shm) failed: run with NCCL_DEBUG=INFO to see which";
    case ncclRemoteError:
      return "another rank has ended, or the network is down";
    case ncclInvalidArgument:
    case ncclInvalidUsage:
      return "run with NCCL_DEBUG=WARN to see what it misses";
    default:
      return nullptr;
  }
}

}  // namespace

Result<Nccl> Nccl::load() {
  constexpr LibraryFile kFile = {
      "no NCCL, by which the GPUs of ranks add up: ", "libnccl.so." GPUC_CUDA_TEXT(NCCL_MAJOR),
      " (install NCCL " GPUC_CUDA_TEXT(NCCL_MAJOR) ", or name its folder in LD_LIBRARY_PATH)"};
  Nccl nccl;
#define GPUC_NCCL_FUNCTION(name) {GPUC_CUDA_TEXT(name), &nccl.name},
  GPUC_RETURN_IF_ERROR(loadFunctions(kFile, {GPUC_NCCL_FUNCTIONS(GPUC_NCCL_FUNCTION)}));
#undef GPUC_NCCL_FUNCTION
  return nccl;
}

Status Nccl::check(ncclResult_t result, const char* call) const {
  if (result == ncclSuccess || result == ncclInProgress) return okStatus();
  std::string text = std::string(call) + ": " + ncclGetErrorString(result);
  if (const char* said = ncclGetLastError(nullptr); said && *said) text += " (" + std::string(said) + ")";
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (const char* cure = cureOf(result)) text += std::string(": ") + cure;
  return Status::error(text);
}

std::string Nccl::version() const {
  int number = 0;
  if (ncclGetVersion(&number) != ncclSuccess) return "unknown";
  return versionText(static_cast<size_t>(number));
}

}  // namespace gpuc::cuda
