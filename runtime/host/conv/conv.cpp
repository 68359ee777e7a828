#include "runtime/host/conv.h"

#include <cinttypes>

namespace gpuc {

Result<ConvKernel> ConvKernel::create(const ConvShape& shape, int64_t workspace_bytes) {
  GPUC_RETURN_IF_ERROR(checkConvShape(shape));
  if (const int64_t needed = convWorkspaceBytes(shape); workspace_bytes < needed)
    return errorf("conv: the plan gives %" PRId64 " bytes of workspace, %" PRId64
                  " are needed; compile the plan again with this version of gpuc",
                  workspace_bytes, needed);
  ConvKernel kernel;
  GPUC_ASSIGN_OR_RETURN(kernel.problem_, makeConvProblem(shape));
  return kernel;
}

void ConvKernel::run(int phase, const ConvOperands& operands, int64_t begin, int64_t end) const {
  const ConvTile compute = problem_.phases[static_cast<size_t>(phase)].compute;
  for (int64_t tile = begin; tile < end; ++tile) compute(problem_, operands, tile);
}

}  // namespace gpuc
