// dw^T[patch rows, outputs] = Σ over the images of patches[patch rows, pixels] · dy^T[pixels, outputs]. The
// sum is cut into parts (cutFilterGradient); where there are several, they lie in the workspace until the
// second phase adds them up.
#include <algorithm>

#include "runtime/host/conv/patch_block.h"

namespace gpuc {
namespace {

/// What one tile adds up, and where it leaves it.
struct FilterTile {
  int64_t part, group;
  int64_t row, rows;        // of the patches
  int64_t output, outputs;  // of the group

  /// Tiles count blocks of patch rows first, then of outputs, then groups, then parts.
  FilterTile(const ConvProblem& problem, int64_t tile) {
    const GemmBlocks& b = problem.blocks;
    row = tile % b.blocksM() * b.block_m;
    tile /= b.blocksM();
    output = tile % b.blocksN() * b.block_n;
    tile /= b.blocksN();
    group = tile % problem.shape.groups;
    part = tile / problem.shape.groups;
    rows = std::min(b.block_m, b.m - row);
    outputs = std::min(b.block_n, b.n - output);
  }
};

/// A part is a range of all blocks of pixels, image by image.
template <typename S>
void computeFilterGradientTile(const ConvProblem& problem, const ConvOperands& operands, int64_t index) {
  using T = Computed<S>;
  const ConvShape& s = problem.shape;
  const GemmBlocks& b = problem.blocks;
  const FilterTile tile(problem, index);
  // block_m x block_k, rows of 512 bytes: 144, of a pointwise one 256 where they are widened;
  // block_k x block_n, 512 bytes of 64 outputs; block_m x block_n, 144 x 64 elements, or 256 x 64.
  constexpr int64_t kLarge = 128 * 1024, kSmall = 72 * 1024;
  alignas(64) std::byte patch_scratch[kIsWidened<S> ? kLarge : kSmall];
  alignas(64) std::byte output_scratch[32 * 1024];
  alignas(64) std::byte sum_scratch[kIsWidened<S> ? kSmall : kLarge];
  T* patches = reinterpret_cast<T*>(patch_scratch);
  T* dy_transposed = reinterpret_cast<T*>(output_scratch);
  T* sum = reinterpret_cast<T*>(sum_scratch);
  const int64_t lanes = kConvPackBytes / static_cast<int64_t>(sizeof(T));
  const int64_t patch_stride = (b.block_k + lanes - 1) / lanes * lanes;

  const int64_t all = s.batch * b.blocksK();
  const int64_t first = all * tile.part / problem.parts, last = all * (tile.part + 1) / problem.parts;
  for (int64_t block = first; block < last; ++block) {
    const int64_t image = block / b.blocksK(), pixel = block % b.blocksK() * b.block_k;
    const int64_t pixels = std::min(b.block_k, b.k - pixel);
    const S* dy = static_cast<const S*>(operands.a) + outputOffset(s, image, tile.group) +
                  tile.output * s.outputPixels() + pixel;
    const S* x = static_cast<const S*>(operands.b) + inputOffset(s, image, tile.group);
    const void* left = x + tile.row * b.k + pixel;
    if (!problem.isDirect()) {
      problem.patch_kernels->of<S>().gather(
          patchBlock(problem, tile.row, tile.rows, pixel, pixels, patch_stride), x, patches);
      left = patches;
    }
    problem.vector_kernels->of<S>().transpose(
        {tile.outputs, pixels, dy, s.outputPixels(), dy_transposed, problem.stride_b});
    problem.multiply(left, dy_transposed, sum, tile.rows, tile.outputs, pixels, block > first);
  }

  // Transposed into the parts, or the result; of 16-bit types first to where the patches lay.
  const int64_t offset = filterOffset(s, tile.group) + tile.output * b.m + tile.row;
  const bool rounds = kIsWidened<S> && !problem.sums_in_workspace;
  T* target = rounds ? patches
                     : static_cast<T*>(problem.sums_in_workspace ? operands.workspace : operands.c) +
                           tile.part * s.filterElements() + offset;
  const int64_t stride = rounds ? tile.rows : b.m;
  for (int64_t output = 0; output < tile.outputs; ++output)
    for (int64_t row = 0; row < tile.rows; ++row)
      target[output * stride + row] = sum[row * problem.stride_b + output];
  if (rounds)
    problem.vector_kernels->of<S>().narrow(
        {tile.outputs, tile.rows, patches, stride, static_cast<S*>(operands.c) + offset, b.m});
}

/// ((part 0 + part 1) + part 2) + … for kConvSumElements elements.
template <typename S>
void sumFilterGradient(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  using T = Computed<S>;
  const int64_t elements = problem.shape.filterElements();
  const int64_t begin = tile * kConvSumElements, count = std::min(elements - begin, kConvSumElements);
  const T* parts = static_cast<const T*>(operands.workspace) + begin;
  S* dw = static_cast<S*>(operands.c) + begin;
  alignas(64) T scratch[kIsWidened<S> ? kConvSumElements : 1];
  T* sums = kIsWidened<S> ? scratch : reinterpret_cast<T*>(dw);
  std::copy(parts, parts + count, sums);
  for (int64_t part = 1; part < problem.parts; ++part)
    for (int64_t i = 0; i < count; ++i) sums[i] += parts[part * elements + i];
  if (kIsWidened<S>) problem.vector_kernels->of<S>().narrow({1, count, sums, 0, dw, 0});
}

}  // namespace

ConvTile filterGradientTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeFilterGradientTile<S>; });
}

ConvTile sumFilterGradientTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return sumFilterGradient<S>; });
}

}  // namespace gpuc
