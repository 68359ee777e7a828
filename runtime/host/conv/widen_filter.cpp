// A 16-bit filter as f32, once for all tiles that read it.
#include <algorithm>

#include "runtime/host/conv/patch_block.h"

namespace gpuc {
namespace {

/// kConvSumElements elements.
template <typename S>
void widenFilter(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  const int64_t begin = tile * kConvSumElements;
  const int64_t count = std::min(problem.shape.filterElements() - begin, kConvSumElements);
  problem.vector_kernels->of<S>().widen({1, count, static_cast<const S*>(operands.b) + begin, 0,
                                         static_cast<Computed<S>*>(operands.workspace) + begin, 0});
}

}  // namespace

ConvTile widenFilterTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return widenFilter<S>; });
}

}  // namespace gpuc
