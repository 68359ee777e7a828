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

  const int64_t rows = std::min(cut.strip_rows, c.height.output - row);
  S* result = static_cast<S*>(operands.c) + outputOffset(c, image, group) + row * c.width.output;
  alignas(64) std::byte packed_scratch[kDirectPackedBytes],
      sums_scratch[kIsWidened<S> ? kDirectPackedBytes : 1];
  T* packed = reinterpret_cast<T*>(packed_scratch);
  T* sums = reinterpret_cast<T*>(sums_scratch);
  if constexpr (!kIsWidened<S>) sums = result;

  // The filter as it lies: [outputs, inputs, taps] of the convolution, whichever of them are summed up here.
  const bool flipped = problem.shape.kind == ConvKind::input_gradient;
  const int64_t output_stride = problem.shape.patchRows(), input_stride = c.taps();
  const int64_t filter_channel = flipped ? output_stride : input_stride;
  const S* x = static_cast<const S*>(operands.a) + inputOffset(c, image, group);
  for (int64_t channel = 0; channel < c.groupInputs(); channel += cut.channels) {
    const DirectChannels channels(problem, channel);
    const PackedStrip strip = packedStrip(problem, channels.count, row);
    kernels.pack(strip, x + channel * c.inputPixels(), packed);
    kernels.correlate(
        {.outputs = c.groupOutputs(),
         .channels = channels.count,
         .rows = rows,
         .columns = c.width.output,
         .image = packed,
         .image_channel = strip.channelStride(),
         .image_row = cut.row_stride,
         .filter = filterOf<S>(operands) + filterOffset(problem.shape, group) + channel * filter_channel,
         .filter_output = flipped ? input_stride : output_stride,
         .filter_channel = filter_channel,
         .taps = problem.direct.taps.data(),
         .kernel_rows = c.height.kernel,
         .taps_per_row = c.width.kernel,
         .valid_rows = problem.valid_rows.data(),
         .first_row = row,
         .begins = channel == 0,
         .ends = channel + channels.count == c.groupInputs(),
         .sums = sums,
         .sums_output = kIsWidened<S> ? rows * c.width.output : c.outputPixels(),
         .result = result,
         .result_output = c.outputPixels()});
  }
  finish<S>(problem, operands, group * c.groupOutputs(),
            {c.groupOutputs(), rows * c.width.output, result, c.outputPixels()});
}

}  // namespace

ConvTile directTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeDirectTile<S>; });
}

}  // namespace gpuc
