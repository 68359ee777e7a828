// y[outputs, pixels] = w[outputs, patch rows] · patches[patch rows, pixels], for each image and group.
#include <algorithm>

#include "runtime/host/conv/patch_block.h"

namespace gpuc {

/// Tiles count blocks of pixels first, then of outputs, then groups, then images.
template <typename T>
void computeForwardTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  const ConvShape& s = problem.shape;
  const GemmBlocks& b = problem.blocks;
  const int64_t pixel = tile % b.blocksN() * b.block_n;
  tile /= b.blocksN();
  const int64_t output = tile % b.blocksM() * b.block_m;
  tile /= b.blocksM();
  const int64_t group = tile % s.groups, image = tile / s.groups;
  const int64_t pixels = std::min(b.block_n, b.n - pixel), outputs = std::min(b.block_m, b.m - output);

  const T* x = static_cast<const T*>(operands.a) + inputOffset(s, image, group);
  const T* w = static_cast<const T*>(operands.b) + filterOffset(s, group) + output * b.k;
  T* y = static_cast<T*>(operands.c) + outputOffset(s, image, group) + output * b.n + pixel;
  alignas(64) std::byte scratch[128 * 1024];  // block_k x block_n, at most 256 x 64
  T* patches = reinterpret_cast<T*>(scratch);
  for (int64_t row = 0; row < b.k; row += b.block_k) {
    const int64_t rows = std::min(b.block_k, b.k - row);
    problem.patch_kernels->of<T>().gather(patchBlock(problem, row, rows, pixel, pixels, problem.stride_b), x,
                                          patches);
    problem.multiply(w + row, patches, y, outputs, pixels, rows, row > 0);
  }
}

template void computeForwardTile<float>(const ConvProblem&, const ConvOperands&, int64_t);
template void computeForwardTile<double>(const ConvProblem&, const ConvOperands&, int64_t);

}  // namespace gpuc
