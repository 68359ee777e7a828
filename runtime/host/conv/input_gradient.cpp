// The patches' cotangent is w^T[patch rows, outputs] · dy[outputs, pixels]; each of its elements is added to
// the element of dx that it was copied from.
#include <algorithm>
#include <cstring>

#include "runtime/host/conv/patch_block.h"

namespace gpuc {
namespace {

/// dy[outputs from `first` on, a block of pixels] with its rows moved together.
template <typename T>
void packRows(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row)
    std::memcpy(to + row * to_stride, from + row * from_stride, static_cast<size_t>(columns) * sizeof(T));
}

}  // namespace

/// Tiles count blocks of channels first, then groups, then images. A tile begins with zeros and adds block of
/// patch rows by block, in each pixels from the first to the last.
template <typename T>
void computeInputGradientTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  const ConvShape& s = problem.shape;
  const GemmBlocks& b = problem.blocks;
  const int64_t channel_tiles = (s.groupInputs() + problem.channels_per_tile - 1) / problem.channels_per_tile;
  const int64_t channel = tile % channel_tiles * problem.channels_per_tile;
  tile /= channel_tiles;
  const int64_t group = tile % s.groups, image = tile / s.groups;
  const int64_t channels = std::min(problem.channels_per_tile, s.groupInputs() - channel);

  const T* dy = static_cast<const T*>(operands.a) + outputOffset(s, image, group);
  const T* w = static_cast<const T*>(operands.b) + filterOffset(s, group);
  T* dx = static_cast<T*>(operands.c) + inputOffset(s, image, group);
  if (!problem.direct) std::fill_n(dx + channel * s.inputPixels(), channels * s.inputPixels(), T(0));

  alignas(64) std::byte packed_scratch[96 * 1024];  // block_k x block_n
  alignas(64) std::byte patch_scratch[80 * 1024];   // block_m x block_n, at most 144 x 64
  T* packed = reinterpret_cast<T*>(packed_scratch);
  T* patches = reinterpret_cast<T*>(patch_scratch);
  const int64_t row_end = (channel + channels) * s.taps();
  for (int64_t row = channel * s.taps(); row < row_end; row += b.block_m) {
    const int64_t rows = std::min(b.block_m, row_end - row);
    for (int64_t pixel = 0; pixel < b.n; pixel += b.block_n) {
      const int64_t pixels = std::min(b.block_n, b.n - pixel);
      T* result = problem.direct ? dx + row * b.n + pixel : patches;
      for (int64_t output = 0; output < b.k; output += b.block_k) {
        const int64_t outputs = std::min(b.block_k, b.k - output);
        packRows(dy + output * b.n + pixel, b.n, packed, problem.stride_b, outputs, pixels);
        problem.multiply(w + output * s.patchRows() + row, packed, result, rows, pixels, outputs, output > 0);
      }
      if (problem.direct) continue;
      problem.patch_kernels->of<T>().scatter(patchBlock(problem, row, rows, pixel, pixels, problem.stride_b),
                                             patches, dx);
    }
  }
}

template void computeInputGradientTile<float>(const ConvProblem&, const ConvOperands&, int64_t);
template void computeInputGradientTile<double>(const ConvProblem&, const ConvOperands&, int64_t);

}  // namespace gpuc
