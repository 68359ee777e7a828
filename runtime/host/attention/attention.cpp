#include "runtime/host/attention.h"

#include <cinttypes>

namespace gpuc {

Result<AttentionKernel> AttentionKernel::create(const AttentionShape& shape, int64_t workspace_bytes) {
  GPUC_RETURN_IF_ERROR(checkAttentionShape(shape));
  if (const int64_t needed = attentionWorkspaceBytes(shape); workspace_bytes < needed)
    return errorf("attention: the plan gives %" PRId64 " bytes of workspace, %" PRId64
                  " are needed; compile the plan again with this version of gpuc",
                  workspace_bytes, needed);
  AttentionKernel kernel;
  GPUC_ASSIGN_OR_RETURN(kernel.problem_, makeAttentionProblem(shape));
  return kernel;
}

void AttentionKernel::run(int phase, const AttentionOperands& operands, int64_t begin, int64_t end) const {
  const AttentionTile compute = problem_.phases[phase].compute;
  for (int64_t tile = begin; tile < end; ++tile) compute(problem_, operands, tile);
}

}  // namespace gpuc
