// The patches' cotangent is w^T[patch rows, outputs] · dy[outputs, pixels]; each of its elements is added to
// the element of dx that it was copied from. Of one tap by strides it is dx, with zeros between.
#include <algorithm>

#include "runtime/host/conv/finish.h"
#include "runtime/host/conv/patch_block.h"

namespace gpuc {
namespace {

/// Whole rows of y's pixels to those of x that they belong to, from channel `channel` of x on. `rounded`:
/// room for them in their type in memory.
template <typename S>
void spreadPatches(const ConvProblem& problem, int64_t channels, int64_t pixel, int64_t pixels,
                   const Computed<S>* patches, S* rounded, S* dx) {
  const ConvShape& s = problem.shape;
  const int64_t row = pixel / s.width.output, rows = pixels / s.width.output, first = row * s.height.stride;
  const bool last = row + rows == s.height.output;
  SpreadPixels<S> spread = {.channels = channels,
                            .rows = rows,
                            .columns = s.width.output,
                            .values = nullptr,
                            .values_channel = problem.stride_b,
                            .result = dx + first * s.width.input,
                            .result_channel = s.inputPixels(),
                            .result_rows = (last ? s.height.input : (row + rows) * s.height.stride) - first,
                            .result_columns = s.width.input,
                            .row_step = s.height.stride,
                            .column_step = s.width.stride};
  if constexpr (kIsWidened<S>) {
    problem.vector_kernels->of<S>().narrow(
        {channels, pixels, patches, problem.stride_b, rounded, problem.stride_b});
    spread.values = rounded;
  } else {
    spread.values = patches;
  }
  problem.patch_kernels->of<S>().spread(spread);
}

/// Tiles count blocks of channels first, then groups, then images. A tile begins with zeros and adds block of
/// patch rows by block, in each pixels from the first to the last. Of 16-bit types it adds in the workspace,
/// behind the filter, and rounds at the end.
template <typename S>
void computeInputGradientTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  using T = Computed<S>;
  const ConvShape& s = problem.shape;
  const GemmBlocks& b = problem.blocks;
  const TypedVectorKernels<S>& vector_kernels = problem.vector_kernels->of<S>();
  const int64_t channel_tiles = (s.groupInputs() + problem.channels_per_tile - 1) / problem.channels_per_tile;
  const int64_t channel = tile % channel_tiles * problem.channels_per_tile;
  tile /= channel_tiles;
  const int64_t group = tile % s.groups, image = tile / s.groups;
  const int64_t channels = std::min(problem.channels_per_tile, s.groupInputs() - channel);

  const S* dy = static_cast<const S*>(operands.a) + outputOffset(s, image, group);
  const T* w = filterOf<S>(operands) + filterOffset(s, group);
  S* dx = static_cast<S*>(operands.c) + inputOffset(s, image, group);
  T* sums = reinterpret_cast<T*>(dx);
  if constexpr (kIsWidened<S>)
    sums = static_cast<T*>(operands.workspace) + problem.widened_filter + inputOffset(s, image, group);
  const int64_t first = channel * s.inputPixels(), elements = channels * s.inputPixels();
  const bool spreads = spreadsPixels(s);
  if (!spreads) std::fill_n(sums + first, elements, T(0));

  alignas(64) std::byte packed_scratch[96 * 1024];     // block_k x block_n
  alignas(64) std::byte patch_scratch[kConvSumBytes];  // block_m x block_n
  T* packed = reinterpret_cast<T*>(packed_scratch);
  T* patches = reinterpret_cast<T*>(patch_scratch);
  const int64_t row_end = (channel + channels) * s.taps();
  for (int64_t row = channel * s.taps(); row < row_end; row += b.block_m) {
    const int64_t rows = std::min(b.block_m, row_end - row);
    for (int64_t pixel = 0; pixel < b.n; pixel += b.block_n) {
      const int64_t pixels = std::min(b.block_n, b.n - pixel);
      for (int64_t output = 0; output < b.k; output += b.block_k) {
        const int64_t outputs = std::min(b.block_k, b.k - output);
        vector_kernels.widen({outputs, pixels, dy + output * b.n + pixel, b.n, packed, problem.stride_b});
        problem.multiply(w + output * s.patchRows() + row, packed, patches, rows, pixels, outputs,
                         output > 0);
      }
      if (spreads)
        spreadPatches(problem, rows, pixel, pixels, patches, reinterpret_cast<S*>(packed),
                      dx + row * s.inputPixels());
      else
        problem.patch_kernels->of<S>().scatter(
            patchBlock(problem, row, rows, pixel, pixels, problem.stride_b), patches, sums);
    }
  }
  if (kIsWidened<S> && !spreads) vector_kernels.narrow({1, elements, sums + first, 0, dx + first, 0});
  finish<S>(problem, operands, group * s.groupInputs() + channel, {1, elements, dx + first, 0});
}

}  // namespace

ConvTile inputGradientTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeInputGradientTile<S>; });
}

}  // namespace gpuc
