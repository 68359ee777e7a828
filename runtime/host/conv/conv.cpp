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

template <typename S>
void ConvKernel::runTiles(ConvStep step, const ConvOperands& operands, int64_t begin, int64_t end) const {
  auto compute = step == ConvStep::widen_filter                    ? widenFilter<S>
                 : step == ConvStep::sum_parts                     ? sumFilterGradient<S>
                 : step == ConvStep::direct                        ? computeDirectTile<S>
                 : step == ConvStep::direct_filter                 ? computeDirectFilterTile<S>
                 : step == ConvStep::output_filter                 ? computeOutputFilterTile<S>
                 : step == ConvStep::images                        ? computeImagesTile<S>
                 : problem_.shape.kind == ConvKind::forward        ? computeForwardTile<S>
                 : problem_.shape.kind == ConvKind::input_gradient ? computeInputGradientTile<S>
                                                                   : computeFilterGradientTile<S>;
  for (int64_t tile = begin; tile < end; ++tile) compute(problem_, operands, tile);
}

void ConvKernel::run(int phase, const ConvOperands& operands, int64_t begin, int64_t end) const {
  const ConvStep step = problem_.phases[static_cast<size_t>(phase)].step;
  switch (problem_.storage) {
    case DataType::f64:
      return runTiles<double>(step, operands, begin, end);
    case DataType::f16:
      return runTiles<Half>(step, operands, begin, end);
    case DataType::bf16:
      return runTiles<Bfloat16>(step, operands, begin, end);
    default:
      return runTiles<float>(step, operands, begin, end);
  }
}

}  // namespace gpuc
