// y[outputs, pixels] = w[outputs, patch rows] · patches[patch rows, pixels], for each image and group.
#include <algorithm>

#include "runtime/host/conv/finish.h"
#include "runtime/host/conv/patch_block.h"

namespace gpuc {
namespace {

/// Tiles count blocks of pixels first, then of outputs, then groups, then images.
template <typename S>
void computeForwardTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  using T = Computed<S>;
  const ConvShape& s = problem.shape;
  const GemmBlocks& b = problem.blocks;
  const int64_t pixel = tile % b.blocksN() * b.block_n;
  tile /= b.blocksN();
  const int64_t output = tile % b.blocksM() * b.block_m;
  tile /= b.blocksM();
  const int64_t group = tile % s.groups, image = tile / s.groups;
  const int64_t pixels = std::min(b.block_n, b.n - pixel), outputs = std::min(b.block_m, b.m - output);

  const S* x = static_cast<const S*>(operands.a) + inputOffset(s, image, group);
  const T* w = filterOf<S>(operands) + filterOffset(s, group) + output * b.k;
  S* y = static_cast<S*>(operands.c) + outputOffset(s, image, group) + output * b.n + pixel;
  alignas(64) std::byte patch_scratch[128 * 1024];                   // block_k x block_n, at most 256 x 64
  alignas(64) std::byte sum_scratch[kIsWidened<S> ? 64 * 1024 : 1];  // block_m x block_n, the same
  T* patches = reinterpret_cast<T*>(patch_scratch);
  T* sums = kIsWidened<S> ? reinterpret_cast<T*>(sum_scratch) : reinterpret_cast<T*>(y);
  for (int64_t row = 0; row < b.k; row += b.block_k) {
    const int64_t rows = std::min(b.block_k, b.k - row);
    problem.patch_kernels->of<S>().gather(patchBlock(problem, row, rows, pixel, pixels, problem.stride_b), x,
                                          patches);
    problem.multiply(w + row, patches, sums, outputs, pixels, rows, row > 0);
  }
  if constexpr (kIsWidened<S>)
    problem.vector_kernels->of<S>().narrow({outputs, pixels, sums, problem.stride_b, y, b.n});
  finish<S>(problem, operands, group * s.groupOutputs() + output, {outputs, pixels, y, b.n});
}

}  // namespace

ConvTile forwardTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeForwardTile<S>; });
}

}  // namespace gpuc
