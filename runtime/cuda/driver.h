// The CUDA driver as a table of functions, and what its errors mean.
#pragma once

#include <cuda.h>

#include "runtime/cuda/library.h"
#include "runtime/cuda/owned.h"

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
  X(cuDeviceGetUuid)                  \
  X(cuDeviceTotalMem)                 \
  X(cuDevicePrimaryCtxRetain)         \
  X(cuDevicePrimaryCtxRelease)        \
  X(cuCtxSetCurrent)                  \
  X(cuMemAlloc)                       \
  X(cuMemFree)                        \
  X(cuMemGetInfo)                     \
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
  X(cuStreamQuery)                    \
  X(cuStreamWaitEvent)                \
  X(cuStreamBeginCapture)             \
  X(cuStreamEndCapture)               \
  X(cuGraphInstantiate)               \
  X(cuGraphDestroy)                   \
  X(cuGraphExecDestroy)               \
  X(cuGraphUpload)                    \
  X(cuGraphLaunch)                    \
  X(cuEventCreate)                    \
  X(cuEventDestroy)                   \
  X(cuEventRecord)                    \
  X(cuEventSynchronize)               \
  X(cuEventQuery)

struct Driver : LoadedTable<Driver> {
#define GPUC_CUDA_ENTRY(name) decltype(&::name) name = nullptr;
  GPUC_CUDA_DRIVER_FUNCTIONS(GPUC_CUDA_ENTRY)
#undef GPUC_CUDA_ENTRY

  /// Opened and initialised.
  static Result<Driver> load();

  /// A driver's result as a status: "cuMemAlloc: out of memory: …", with what to do where that is known.
  /// `memory_cure`: what to do if it is not the GPU's memory that is used up.
  Status check(CUresult result, const char* call, const char* memory_cure = nullptr) const;
};

// What is given back to the driver.
using Stream = Owned<CUstream, CUresult>;
using Event = Owned<CUevent, CUresult>;
using Module = Owned<CUmodule, CUresult>;
using Graph = Owned<CUgraph, CUresult>;
using ExecutableGraph = Owned<CUgraphExec, CUresult>;
using DeviceMemory = Owned<CUdeviceptr, CUresult>;
using PinnedMemory = Owned<void*, CUresult>;

Result<Stream> createStream(const Driver& driver);
Result<Event> createEvent(const Driver& driver);

/// Of the memory of the current context's GPU.
Result<uint64_t> freeBytes(const Driver& driver);

}  // namespace gpuc::cuda
