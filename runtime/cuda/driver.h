// The CUDA driver as a table of functions, and what its errors mean.
#pragma once

#include <cuda.h>

#include <utility>

#include "runtime/base/status.h"

namespace gpuc::cuda {

// Every driver function that the runtime calls. cuda.h renames some by macro (cuMemAlloc is cuMemAlloc_v2);
// the table's entries and their callers are renamed alike.
#define GPUC_CUDA_DRIVER_FUNCTIONS(X) \
  X(cuInit)                           \
  X(cuGetErrorName)                   \
  X(cuGetErrorString)                 \
  X(cuDeviceGetCount)                 \
  X(cuDeviceGet)                      \
  X(cuDeviceGetName)                  \
  X(cuDeviceGetAttribute)             \
  X(cuDeviceTotalMem)                 \
  X(cuDevicePrimaryCtxRetain)         \
  X(cuDevicePrimaryCtxRelease)        \
  X(cuCtxSetCurrent)                  \
  X(cuMemAlloc)                       \
  X(cuMemFree)                        \
  X(cuMemHostAlloc)                   \
  X(cuMemFreeHost)                    \
  X(cuMemcpyHtoDAsync)                \
  X(cuMemcpyDtoHAsync)                \
  X(cuMemcpyDtoDAsync)                \
  X(cuMemsetD8Async)                  \
  X(cuMemsetD16Async)                 \
  X(cuMemsetD32Async)                 \
  X(cuMemsetD2D32Async)               \
  X(cuModuleLoadDataEx)               \
  X(cuModuleUnload)                   \
  X(cuModuleGetFunction)              \
  X(cuLaunchKernel)                   \
  X(cuStreamCreate)                   \
  X(cuStreamDestroy)                  \
  X(cuStreamSynchronize)              \
  X(cuStreamWaitEvent)                \
  X(cuEventCreate)                    \
  X(cuEventDestroy)                   \
  X(cuEventRecord)                    \
  X(cuEventSynchronize)

struct Driver {
#define GPUC_CUDA_ENTRY(name) decltype(&::name) name = nullptr;
  GPUC_CUDA_DRIVER_FUNCTIONS(GPUC_CUDA_ENTRY)
#undef GPUC_CUDA_ENTRY

  /// The driver of this machine, opened and initialised once a process. Error: why there is no CUDA device.
  static Result<const Driver*> get();

  /// A driver's result as a status: "cuMemAlloc: out of memory: …", with what to do where that is known.
  /// `memory_cure`: what to do if it is not the GPU's memory that is used up.
  Status check(CUresult result, const char* call, const char* memory_cure = nullptr) const;
};

/// Makes get() return `driver` instead of the machine's; null for the machine's again. For tests.
void useDriver(const Driver* driver);

/// What is given back to the driver when it is no longer needed: a stream, an event, a module, memory.
template <typename Handle>
class Owned {
 public:
  using Release = CUresult (*)(Handle);

  Owned() = default;
  Owned(Handle handle, Release release) : handle_(handle), release_(release) {}
  Owned(Owned&& other) noexcept
      : handle_(std::exchange(other.handle_, Handle{})), release_(std::exchange(other.release_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Owned() {
    if (release_) release_(handle_);
  }

  Handle get() const { return handle_; }

 private:
  Handle handle_{};
  Release release_ = nullptr;
};

using Stream = Owned<CUstream>;
using Event = Owned<CUevent>;
using Module = Owned<CUmodule>;
using DeviceMemory = Owned<CUdeviceptr>;
using PinnedMemory = Owned<void*>;

Result<Stream> createStream(const Driver& driver);
Result<Event> createEvent(const Driver& driver);

}  // namespace gpuc::cuda
