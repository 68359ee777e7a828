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

}  // namespace

/// A part is a range of all blocks of pixels, image by image.
template <typename T>
void computeFilterGradientTile(const ConvProblem& problem, const ConvOperands& operands, int64_t index) {
  const ConvShape& s = problem.shape;
  const GemmBlocks& b = problem.blocks;
  const FilterTile tile(problem, index);
  alignas(64) std::byte patch_scratch[72 * 1024];   // block_m x block_k: 144 rows of 512 bytes
  alignas(64) std::byte output_scratch[32 * 1024];  // block_k x block_n: 512 bytes of 64 outputs
  alignas(64) std::byte sum_scratch[72 * 1024];     // block_m x block_n: 144 x 64 elements
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
    const T* dy = static_cast<const T*>(operands.a) + outputOffset(s, image, tile.group) +
                  tile.output * s.outputPixels() + pixel;
    const T* x = static_cast<const T*>(operands.b) + inputOffset(s, image, tile.group);
    problem.patch_kernels->of<T>().gather(
        patchBlock(problem, tile.row, tile.rows, pixel, pixels, patch_stride), x, patches);
    problem.vector_kernels->of<T>().transpose(
        {tile.outputs, pixels, dy, s.outputPixels(), dy_transposed, problem.stride_b});
    problem.multiply(patches, dy_transposed, sum, tile.rows, tile.outputs, pixels, block > first);
  }

  T* dw = static_cast<T*>(problem.summed() ? operands.workspace : operands.c) +
          tile.part * s.filterElements() + filterOffset(s, tile.group) + tile.output * b.m + tile.row;
  for (int64_t output = 0; output < tile.outputs; ++output)
    for (int64_t row = 0; row < tile.rows; ++row)
      dw[output * b.m + row] = sum[row * problem.stride_b + output];
}

/// ((part 0 + part 1) + part 2) + … for kConvSumElements elements.
template <typename T>
void sumFilterGradient(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  const int64_t elements = problem.shape.filterElements();
  const int64_t begin = tile * kConvSumElements, end = std::min(elements, begin + kConvSumElements);
  const T* parts = static_cast<const T*>(operands.workspace);
  T* dw = static_cast<T*>(operands.c);
  std::copy(parts + begin, parts + end, dw + begin);
  for (int64_t part = 1; part < problem.parts; ++part)
    for (int64_t i = begin; i < end; ++i) dw[i] += parts[part * elements + i];
}

template void computeFilterGradientTile<float>(const ConvProblem&, const ConvOperands&, int64_t);
template void computeFilterGradientTile<double>(const ConvProblem&, const ConvOperands&, int64_t);
template void sumFilterGradient<float>(const ConvProblem&, const ConvOperands&, int64_t);
template void sumFilterGradient<double>(const ConvProblem&, const ConvOperands&, int64_t);

}  // namespace gpuc
