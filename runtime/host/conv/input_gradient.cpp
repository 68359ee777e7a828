// The patches' cotangent is w^T[patch rows, outputs] · dy[outputs, pixels]; each of its elements is added to
// the element of dx that it was copied from.
#include <algorithm>

#include "runtime/host/conv/finish.h"
#include "runtime/host/conv/patch_block.h"

namespace gpuc {
namespace {

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
  if (!s.isPointwise()) std::fill_n(sums + first, elements, T(0));

  alignas(64) std::byte packed_scratch[96 * 1024];  // block_k x block_n
  alignas(64) std::byte patch_scratch[80 * 1024];   // block_m x block_n, at most 144 x 64
  T* packed = reinterpret_cast<T*>(packed_scratch);
  T* patches = reinterpret_cast<T*>(patch_scratch);
  const int64_t row_end = (channel + channels) * s.taps();
  for (int64_t row = channel * s.taps(); row < row_end; row += b.block_m) {
    const int64_t rows = std::min(b.block_m, row_end - row);
    for (int64_t pixel = 0; pixel < b.n; pixel += b.block_n) {
      const int64_t pixels = std::min(b.block_n, b.n - pixel);
      T* result = problem.isDirect() ? sums + row * b.n + pixel : patches;
      for (int64_t output = 0; output < b.k; output += b.block_k) {
        const int64_t outputs = std::min(b.block_k, b.k - output);
        vector_kernels.widen({outputs, pixels, dy + output * b.n + pixel, b.n, packed, problem.stride_b});
        problem.multiply(w + output * s.patchRows() + row, packed, result, rows, pixels, outputs, output > 0);
      }
      if (problem.isDirect()) continue;
      if (s.isPointwise())
        vector_kernels.narrow({rows, pixels, patches, problem.stride_b, dx + row * b.n + pixel, b.n});
      else
        problem.patch_kernels->of<S>().scatter(
            patchBlock(problem, row, rows, pixel, pixels, problem.stride_b), patches, sums);
    }
  }
  if (kIsWidened<S> && !s.isPointwise()) vector_kernels.narrow({1, elements, sums + first, 0, dx + first, 0});
  finish<S>(problem, operands, group * s.groupInputs() + channel, {1, elements, dx + first, 0});
}

}  // namespace

ConvTile inputGradientTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeInputGradientTile<S>; });
}

}  // namespace gpuc
