// dw^T[patch rows, outputs] = Σ over the images of patches[patch rows, pixels] · dy^T[pixels, outputs]; of a
// pointwise one with more outputs than inputs, dw = Σ dy · x^T, since it is less to transpose. The sum is cut
// into parts (cutFilterGradient); where there are several, they lie in the workspace until the second phase
// adds them up.
#include <algorithm>

#include "runtime/host/conv/gradient_tile.h"
#include "runtime/host/conv/patch_block.h"

namespace gpuc {
namespace {

/// What one tile adds up, and where it leaves it.
struct FilterTile {
  int64_t part, group;
  int64_t row, rows;        // of the patches, or outputs
  int64_t output, outputs;  // of the group, or inputs

  /// Tiles count blocks of patch rows first, then of outputs, then groups, then parts.
  FilterTile(const ConvProblem& problem, int64_t tile) {
    const GemmBlocks& b = problem.blocks;
    const int64_t row_blocks = (b.m + problem.channels_per_tile - 1) / problem.channels_per_tile;
    row = tile % row_blocks * problem.channels_per_tile;
    tile /= row_blocks;
    output = tile % b.blocksN() * b.block_n;
    tile /= b.blocksN();
    group = tile % problem.shape.groups;
    part = tile / problem.shape.groups;
    rows = std::min(problem.channels_per_tile, b.m - row);
    outputs = std::min(b.block_n, b.n - output);
  }
};

/// The sums of a tile to the parts, or to the result: transposed, unless exchanged. Of 16-bit types first to
/// `room`, to be rounded; and there for an update, instead of to the result.
template <typename S>
void leaveSums(const ConvProblem& problem, const ConvOperands& operands, const FilterTile& tile,
               const Computed<S>* sum, Computed<S>* room) {
  using T = Computed<S>;
  const GemmBlocks& b = problem.blocks;
  const bool exchanged = problem.exchanged, whole = !problem.sums_in_workspace;
  const bool rounds = kIsWidened<S> && whole, hands_on = problem.update.compute && whole;
  const int64_t outputs = exchanged ? tile.rows : tile.outputs, inputs = exchanged ? tile.outputs : tile.rows;
  const int64_t stride = exchanged ? b.n : b.m;
  const int64_t place = filterOffset(problem.shape, tile.group) +
                        (exchanged ? tile.row * stride + tile.output : tile.output * stride + tile.row);
  T* target = room;
  if (!rounds && !hands_on)
    target = static_cast<T*>(whole ? operands.c : operands.workspace) +
             tile.part * problem.shape.filterElements() + place;
  const int64_t target_stride = rounds ? inputs : hands_on ? problem.tiles->stride : stride;
  for (int64_t output = 0; output < outputs; ++output)
    if (exchanged)
      std::copy_n(sum + output * problem.stride_b, inputs, target + output * target_stride);
    else
      for (int64_t input = 0; input < inputs; ++input)
        target[output * target_stride + input] = sum[input * problem.stride_b + output];
  if (whole)
    passOn<T>(problem, operands,
              {.row = tile.group * problem.shape.groupOutputs() + (exchanged ? tile.row : tile.output),
               .column = exchanged ? tile.output : tile.row,
               .rows = outputs,
               .columns = inputs,
               .sums = target,
               .stride = target_stride});
  if (rounds)
    problem.vector_kernels->of<S>().narrow(
        {outputs, inputs, room, target_stride, static_cast<S*>(operands.c) + place, stride});
}

/// transposed[pixel][channel] of some channels of x in the picture that has strides, `pixels` from `pixel` on
/// of an image; by way of `room`, few at a time, so that they stay in the first-level cache.
template <typename S>
void transposeTaken(const ConvProblem& problem, const S* x, int64_t channels, int64_t pixel, int64_t pixels,
                    S* room, Computed<S>* transposed) {
  constexpr int64_t kAtOnce = 16;
  const ConvShape& s = *problem.strided;
  for (int64_t first = 0; first < channels; first += kAtOnce) {
    TakenPixels<S, S> taken = takenPixels(s, x + first * s.inputPixels(), room);
    taken.channels = std::min(kAtOnce, channels - first), taken.values_channel = pixels;
    taken.pixel = pixel, taken.pixels = pixels;
    problem.patch_kernels->of<S>().take(taken);
    problem.vector_kernels->of<S>().transpose(
        {taken.channels, pixels, room, pixels, transposed + first, problem.stride_b});
  }
}

/// A part is a range of all blocks of pixels, image by image.
template <typename S>
void computeFilterGradientTile(const ConvProblem& problem, const ConvOperands& operands, int64_t index) {
  using T = Computed<S>;
  const ConvShape& s = problem.shape;
  const GemmBlocks& b = problem.blocks;
  const FilterTile tile(problem, index);
  // block_m x block_k: 144 rows of 512 bytes, of a pointwise one that is widened 64 of 2 KiB, of some images
  // 256 of 256 bytes; block_k x block_n: up to 64 such rows; a tile's rows x block_n, 144 x 64 or 256 x 64.
  constexpr int64_t kLarge = 132 * 1024, kSmall = 72 * 1024;
  alignas(64) std::byte patch_scratch[sizeof(T) == 4 ? kLarge : kSmall];
  alignas(64) std::byte output_scratch[64 * kFilterRunBytes];
  alignas(64) std::byte sum_scratch[sizeof(T) == 4 ? kSmall : kLarge];
  T* patches = reinterpret_cast<T*>(patch_scratch);
  T* transposed = reinterpret_cast<T*>(output_scratch);
  T* sum = reinterpret_cast<T*>(sum_scratch);
  const int64_t patch_stride = spreadConvRow(b.block_k, s.type);
  const TypedVectorKernels<S>& vector_kernels = problem.vector_kernels->of<S>();

  // A block is some pixels of one image, or all of some images.
  const int64_t of_image = s.outputPixels();
  const bool some_images = b.k != of_image;
  const int64_t all = (some_images ? 1 : s.batch) * b.blocksK();
  const int64_t first = all * tile.part / problem.parts, last = all * (tile.part + 1) / problem.parts;
  for (int64_t block = first; block < last; ++block) {
    const int64_t begin = block % b.blocksK() * b.block_k, summands = std::min(b.block_k, b.k - begin);
    const int64_t image = some_images ? begin / of_image : block / b.blocksK();
    const int64_t pixel = some_images ? 0 : begin, images = some_images ? summands / of_image : 1;
    const int64_t pixels = summands / images;
    const S* dy = static_cast<const S*>(operands.a) + outputOffset(s, image, tile.group);
    const S* x = static_cast<const S*>(operands.b) + inputOffset(s, image, tile.group);
    const S* columns = (problem.exchanged ? x : dy) + tile.output * of_image + pixel;
    const int64_t columns_image = (problem.exchanged ? s.in_channels : s.out_channels) * of_image;
    for (int64_t i = 0; i < images; ++i)
      if (T* to = transposed + i * pixels * problem.stride_b; problem.takes_pixels)
        transposeTaken(problem,
                       static_cast<const S*>(operands.b) +
                           inputOffset(*problem.strided, image + i, tile.group) +
                           tile.output * problem.strided->inputPixels(),
                       tile.outputs, pixel, pixels, reinterpret_cast<S*>(patches), to);
      else
        vector_kernels.transpose(
            {tile.outputs, pixels, columns + i * columns_image, of_image, to, problem.stride_b});
    for (int64_t at = 0; at < tile.rows; at += b.block_m) {
      const int64_t rows = std::min(b.block_m, tile.rows - at);
      const void* left = patches;
      if (s.isPointwise()) {
        const S* from = (problem.exchanged ? dy : x) + (tile.row + at) * of_image + pixel;
        const int64_t from_image = (problem.exchanged ? s.out_channels : s.in_channels) * of_image;
        if (problem.isInPlace())
          left = from;
        else
          for (int64_t i = 0; i < images; ++i)
            vector_kernels.widen(
                {rows, pixels, from + i * from_image, of_image, patches + i * pixels, patch_stride});
      } else {
        problem.patch_kernels->of<S>().gather(
            patchBlock(problem, tile.row + at, rows, pixel, pixels, patch_stride), x, patches);
      }
      problem.multiply(left, transposed, sum + at * problem.stride_b, rows, tile.outputs, summands,
                       block > first);
    }
  }
  leaveSums<S>(problem, operands, tile, sum, patches);
}

/// ((part 0 + part 1) + part 2) + … for convSumElements() elements; of 16-bit types, and for an update,
/// aside.
template <typename S>
void sumFilterGradient(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  using T = Computed<S>;
  const int64_t elements = problem.shape.filterElements(), most = convSumElements(problem.shape);
  const int64_t begin = tile * most, count = std::min(elements - begin, most);
  const T* parts = static_cast<const T*>(operands.workspace) + begin;
  S* dw = problem.update.compute ? nullptr : static_cast<S*>(operands.c) + begin;
  alignas(64) T scratch[kConvSumElements];
  T* sums = kIsWidened<S> || !dw ? scratch : reinterpret_cast<T*>(dw);
  std::copy(parts, parts + count, sums);
  for (int64_t part = 1; part < problem.parts; ++part)
    for (int64_t i = 0; i < count; ++i) sums[i] += parts[part * elements + i];
  if (kIsWidened<S>) return problem.vector_kernels->of<S>().narrow({1, count, sums, 0, dw, 0});
  const int64_t columns = problem.shape.patchRows();
  passOn<T>(problem, operands, {begin / columns, 0, count / columns, columns, sums, columns});
}

}  // namespace

ConvTile filterGradientTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeFilterGradientTile<S>; });
}

ConvTile sumFilterGradientTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return sumFilterGradient<S>; });
}

}  // namespace gpuc
