// Linked in place of ranks by NCCL where gpuc is built without its header.
#include "runtime/cuda/gpu_ranks.h"

namespace gpuc::cuda {

Result<std::unique_ptr<GpuRanks>> GpuRanks::meet(const Driver&, Communicator&,
                                                 std::span<const PlannedExchange>, CUstream) {
  return errorf("no NCCL, by which the GPUs of ranks add up: gpuc was built without its nccl.h");
}

}  // namespace gpuc::cuda
