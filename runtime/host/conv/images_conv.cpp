// y = filter correlated with x, and dx = the flipped filter correlated with dy, an image in each lane.
#include "runtime/host/conv/finish.h"
#include "runtime/host/conv/patch_block.h"

namespace gpuc {

void cutForImages(ConvProblem& problem) {
  const ConvShape& c = problem.correlation;
  const ImagesCut cut = problem.images = cutImages(c);
  const double pixels = static_cast<double>(cut.strip_rows * c.width.output * imageLanes(c));
  const double outputs = static_cast<double>(c.groupOutputs());
  const double packed =
      static_cast<double>(c.groupInputs() * cut.packed_rows * cut.packed_columns * imageLanes(c));
  problem.phases.push_back({imagesTile(problem.storage), cut.image_groups * c.groups * cut.strips,
                            convTileNs(2 * pixels * outputs * static_cast<double>(c.patchRows()),
                                       packed + pixels * outputs, c.type)});
}

namespace {

/// Tiles count strips first, then groups, then groups of images.
template <typename S>
void computeImagesTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  using T = Computed<S>;
  const ConvShape& c = problem.correlation;
  const ImagesCut& cut = problem.images;
  const TypedImageKernels<S>& kernels = problem.patch_kernels->of<S>().images;
  const int64_t row = tile % cut.strips * cut.strip_rows;
  const int64_t rows = std::min(cut.strip_rows, c.height.output - row);
  tile /= cut.strips;
  const int64_t group = tile % c.groups, image = tile / c.groups * kPackedImages<T>;
  const int64_t images = std::min(kPackedImages<T>, c.batch - image);

  // The image's rows that the strip reads; there may be none.
  const int64_t top = row * c.height.stride - c.height.low;
  const int64_t first = std::clamp<int64_t>(top, 0, c.height.input);
  const int64_t end =
      std::clamp<int64_t>(top + (rows - 1) * c.height.stride + (c.height.kernel - 1) * c.height.dilation + 1,
                          first, c.height.input);

  alignas(64) std::byte packed_scratch[kImagesPackedBytes], sum_scratch[kImagesSumBytes];
  T* packed = reinterpret_cast<T*>(packed_scratch);
  T* sums = reinterpret_cast<T*>(sum_scratch);
  kernels.pack({.images = images,
                .image_stride = c.in_channels * c.inputPixels(),
                .channels = c.groupInputs(),
                .channel_stride = c.inputPixels(),
                .rows = end - first,
                .row_stride = c.width.input,
                .left = cut.left,
                .width = cut.width,
                .columns = cut.packed_columns,
                .packed_rows = cut.packed_rows},
               static_cast<const S*>(operands.a) + inputOffset(c, image, group) + first * c.width.input +
                   cut.first_column,
               packed);

  // The filter as it lies: [outputs, inputs, taps] of the convolution, whichever of them are summed up here.
  const bool flipped = problem.shape.kind == ConvKind::input_gradient;
  const int64_t output_stride = problem.shape.patchRows(), input_stride = c.taps();
  const int64_t packed_row = cut.packed_columns * kPackedImages<T>;
  ImageCorrelation<T> correlation{.outputs = 0,
                                  .channels = c.groupInputs(),
                                  .rows = rows,
                                  .columns = c.width.output,
                                  .kernel_rows = c.height.kernel,
                                  .kernel_columns = c.width.kernel,
                                  .row_step = c.height.stride,
                                  .column_step = c.width.stride,
                                  .row_dilation = c.height.dilation,
                                  .column_dilation = c.width.dilation,
                                  .top = first - top,
                                  .image_rows = end - first,
                                  .left = cut.left,
                                  .image_width = cut.width,
                                  .packed = packed,
                                  .packed_row = packed_row,
                                  .packed_channel = cut.packed_rows * packed_row,
                                  .filter = nullptr,
                                  .filter_output = flipped ? input_stride : output_stride,
                                  .filter_channel = flipped ? output_stride : input_stride,
                                  .flipped = flipped,
                                  .sums = sums};
  const T* filter = filterOf<S>(operands) + filterOffset(problem.shape, group) + (flipped ? c.taps() - 1 : 0);
  for (int64_t output = 0; output < c.groupOutputs(); output += cut.outputs) {
    correlation.outputs = std::min(cut.outputs, c.groupOutputs() - output);
    correlation.filter = filter + output * correlation.filter_output;
    kernels.correlate(correlation);
    S* result = static_cast<S*>(operands.c) + outputOffset(c, image, group) + output * c.outputPixels() +
                row * c.width.output;
    const int64_t result_image = c.out_channels * c.outputPixels(), pixels = rows * c.width.output;
    kernels.unpack({.images = images,
                    .image_stride = result_image,
                    .outputs = correlation.outputs,
                    .output_stride = c.outputPixels(),
                    .pixels = pixels},
                   sums, result);
    for (int64_t i = 0; i < images; ++i)
      finish<S>(problem, operands, group * c.groupOutputs() + output,
                {correlation.outputs, pixels, result + i * result_image, c.outputPixels()});
  }
}

}  // namespace

ConvTile imagesTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeImagesTile<S>; });
}

}  // namespace gpuc
