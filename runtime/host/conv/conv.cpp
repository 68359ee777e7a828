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

template <typename T>
void ConvKernel::runTiles(int phase, const ConvOperands& operands, int64_t begin, int64_t end) const {
  auto compute = phase == 1                                        ? sumFilterGradient<T>
                 : problem_.shape.kind == ConvKind::forward        ? computeForwardTile<T>
                 : problem_.shape.kind == ConvKind::input_gradient ? computeInputGradientTile<T>
                                                                   : computeFilterGradientTile<T>;
  for (int64_t tile = begin; tile < end; ++tile) compute(problem_, operands, tile);
}

void ConvKernel::run(int phase, const ConvOperands& operands, int64_t begin, int64_t end) const {
  if (problem_.shape.type == DataType::f64)
    runTiles<double>(phase, operands, begin, end);
  else
    runTiles<float>(phase, operands, begin, end);
}

}  // namespace gpuc
