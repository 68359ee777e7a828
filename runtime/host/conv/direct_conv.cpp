// y = filter correlated with x, and dx = the flipped filter correlated with dy, a strip of rows at a
// time.
#include "runtime/host/conv/direct_strip.h"
#include "runtime/host/conv/finish.h"

namespace gpuc {
namespace {

/// Tiles count strips first, then groups, then images.
template <typename S>
void computeDirectTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  using T = Computed<S>;
  const ConvShape& c = problem.correlation;
  const DirectCut& cut = problem.direct.cut;
  const TypedDirectKernels<S>& kernels = problem.patch_kernels->of<S>().direct;
  const int64_t row = tile % cut.strips * cut.strip_rows;
  tile /= cut.strips;
  const int64_t group = tile % c.groups, image = tile / c.groups;

  alignas(64) std::byte scratch[kDirectPackedBytes];
  T* packed = reinterpret_cast<T*>(scratch);
  const PackedStrip strip = packedStrip(problem, row);
  kernels.pack(strip, static_cast<const S*>(operands.a) + inputOffset(c, image, group), packed);

  // The filter as it lies: [outputs, inputs, taps] of the convolution, whichever of them are summed up here.
  const bool flipped = problem.shape.kind == ConvKind::input_gradient;
  const int64_t output_stride = problem.shape.patchRows(), input_stride = c.taps();
  const int64_t rows = std::min(cut.strip_rows, c.height.output - row);
  S* result = static_cast<S*>(operands.c) + outputOffset(c, image, group) + row * c.width.output;
  kernels.correlate({.outputs = c.groupOutputs(),
                     .channels = c.groupInputs(),
                     .rows = rows,
                     .columns = c.width.output,
                     .image = packed,
                     .image_channel = strip.channelStride(),
                     .image_row = cut.row_stride,
                     .filter = filterOf<S>(operands) + filterOffset(problem.shape, group),
                     .filter_output = flipped ? input_stride : output_stride,
                     .filter_channel = flipped ? output_stride : input_stride,
                     .taps = problem.direct.taps.data(),
                     .kernel_rows = c.height.kernel,
                     .taps_per_row = c.width.kernel,
                     .valid_rows = problem.valid_rows.data(),
                     .first_row = row,
                     .result = result,
                     .result_output = c.outputPixels()});
  finish<S>(problem, operands, group * c.groupOutputs(),
            {c.groupOutputs(), rows * c.width.output, result, c.outputPixels()});
}

}  // namespace

ConvTile directTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeDirectTile<S>; });
}

}  // namespace gpuc
