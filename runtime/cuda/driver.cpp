#include "runtime/cuda/driver.h"

namespace gpuc::cuda {
namespace {

/// What a user can do about an error; null where that is not known.
const char* cureOf(CUresult result) {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "compile for a smaller batch, or free the GPU's memory";
    case CUDA_ERROR_NO_DEVICE:
      return "no GPU is visible to this process (see CUDA_VISIBLE_DEVICES)";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return "install a newer NVIDIA driver";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      return "compile the plan for this GPU's architecture";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ASSERT:
      return "a kernel failed: run under compute-sanitizer to see which; the session is lost";
    case CUDA_ERROR_ECC_UNCORRECTABLE:
      return "the GPU's memory is damaged: reset it";
    default:
      return nullptr;
  }
}

}  // namespace

Result<Driver> Driver::load() {
  constexpr LibraryFile kFile = {"no CUDA device: ", "libcuda.so.1", " (NVIDIA's driver is not installed)",
                                 ", install a newer NVIDIA driver"};
  Driver driver;
#define GPUC_CUDA_FUNCTION(name) {GPUC_CUDA_TEXT(name), &driver.name},
  GPUC_RETURN_IF_ERROR(loadFunctions(kFile, {GPUC_CUDA_DRIVER_FUNCTIONS(GPUC_CUDA_FUNCTION)}));
#undef GPUC_CUDA_FUNCTION
  GPUC_RETURN_IF_ERROR(driver.check(driver.cuInit(0), "no CUDA device: cuInit"));
  return driver;
}

Status Driver::check(CUresult result, const char* call, const char* memory_cure) const {
  if (result == CUDA_SUCCESS) return okStatus();
  const char *name = nullptr, *text = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || cuGetErrorString(result, &text) != CUDA_SUCCESS)
    return errorf("%s: error %d, which this driver has no words for", call, int(result));
  const char* cure = memory_cure && result == CUDA_ERROR_OUT_OF_MEMORY ? memory_cure : cureOf(result);
  return errorf("%s: %s (%s)%s%s", call, text, name, cure ? ": " : "", cure ? cure : "");
}

Result<Stream> createStream(const Driver& driver) {
  CUstream stream = nullptr;
  GPUC_RETURN_IF_ERROR(
      driver.check(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  return Stream(stream, driver.cuStreamDestroy);
}

Result<Event> createEvent(const Driver& driver) {
  CUevent event = nullptr;
  GPUC_RETURN_IF_ERROR(driver.check(driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate"));
  return Event(event, driver.cuEventDestroy);
}

Result<uint64_t> freeBytes(const Driver& driver) {
  size_t free = 0, total = 0;
  GPUC_RETURN_IF_ERROR(driver.check(driver.cuMemGetInfo(&free, &total), "cuMemGetInfo"));
  return free;
}

}  // namespace gpuc::cuda
