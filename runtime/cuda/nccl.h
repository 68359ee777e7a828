// NCCL as a table of functions.
#pragma once

#include <nccl.h>

#include <string>

#include "runtime/cuda/library.h"

namespace gpuc::cuda {

#define GPUC_NCCL_FUNCTIONS(X) \
  X(ncclGetVersion)            \
  X(ncclGetErrorString)        \
  X(ncclGetLastError)          \
  X(ncclGetUniqueId)           \
  X(ncclCommInitRankConfig)    \
  X(ncclCommGetAsyncError)     \
  X(ncclCommFinalize)          \
  X(ncclCommDestroy)           \
  X(ncclCommAbort)             \
  X(ncclGroupStart)            \
  X(ncclGroupEnd)              \
  X(ncclAllReduce)             \
  X(ncclReduceScatter)         \
  X(ncclAllGather)             \
  X(ncclReduce)                \
  X(ncclBroadcast)

/// Of the major version that gpuc was built for.
struct Nccl : LoadedTable<Nccl> {
#define GPUC_NCCL_ENTRY(name) decltype(&::name) name = nullptr;
  GPUC_NCCL_FUNCTIONS(GPUC_NCCL_ENTRY)
#undef GPUC_NCCL_ENTRY

  static Result<Nccl> load();
  /// "ncclAllReduce: unhandled system error (what NCCL says of it): the cure". What is in progress is no
  /// error.
  Status check(ncclResult_t result, const char* call) const;
  std::string version() const;  // "2.28.9"
};

}  // namespace gpuc::cuda
