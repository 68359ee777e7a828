//===- Segments.cpp - A forward pass cut where few bytes cross ---------------===//

#include "passes/recompute/Segments.h"

#include "dialects/gpuc/GpucDialect.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace gpuc {

Segments::Segments(const ForwardPass &forward)
    : forward_(forward), residual_(1), crossing_(forward.ops().size() + 1) {
  for (auto [number, op] : llvm::enumerate(forward.ops())) {
    numbers_[op] = number;
    residual_.push_back(residual_.back() + forward.residualBytes(op));
    for (Value result : op->getResults())
      for (int64_t i = number + 1, last = forward.readersOf(result).lastForward; i <= last; ++i)
        crossing_[i] += ir::sizeInBytes(result.getType());
  }
}

void Segments::cutEach(int64_t bytes) {
  cuts_.clear();
  const int64_t end = forward_.ops().size();
  for (int64_t begin = 0; residual_[end] - residual_[begin] > bytes;) {
    // The first op whose residuals would be too many, and the one with which the latter half begins.
    auto until = [&](int64_t most) {
      return llvm::upper_bound(residual_, residual_[begin] + most) - residual_.begin() - 1;
    };
    const int64_t last = std::max(until(bytes), begin + 1);
    int64_t best = last;
    for (int64_t i = last; i > std::max(until(bytes / 2), begin); --i)
      if (crossing_[i] < crossing_[best])
        best = i;
    if (best == end)
      return;
    cuts_.push_back(best);
    begin = best;
  }
}

void Segments::cutByRoot() {
  const double root = std::sqrt(static_cast<double>(forward_.ops().size()));
  cutEach(total() / std::max<int64_t>(1, std::llround(root)));
}

/// Of the ways to cut the ops before j, with every peak within the limit, the one that keeps the fewest bytes
/// is the best, whatever comes behind: so the best way to cut all of them is found op by op.
bool Segments::cutWithin(int64_t limit) {
  const int64_t end = forward_.ops().size();
  constexpr int64_t none = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> kept(end + 1, none),
      begins(end + 1); // of the ops before i; of the segment that ends there
  kept[0] = 0;
  for (int64_t last = 1; last <= end; ++last) {
    int64_t crossing = 0; // bytes that ops from `last` on read of the segment [first, last)
    for (int64_t first = last - 1; first >= 0 && residual_[last] - residual_[first] <= limit; --first) {
      for (Value result : forward_.ops()[first]->getResults())
        if (forward_.readersOf(result).lastForward >= last)
          crossing += ir::sizeInBytes(result.getType());
      if (kept[first] == none || kept[first] + residual_[last] - residual_[first] > limit ||
          kept[first] + crossing >= kept[last])
        continue;
      kept[last] = kept[first] + crossing;
      begins[last] = first;
    }
  }
  if (kept[end] == none)
    return false;
  cuts_.clear();
  for (int64_t begin = begins[end]; begin > 0; begin = begins[begin])
    cuts_.insert(cuts_.begin(), begin);
  return true;
}

void Segments::cutToLeast() {
  int64_t tooLittle = 0, enough = total();
  while (enough - tooLittle > 1) {
    const int64_t limit = tooLittle + (enough - tooLittle) / 2;
    (cutWithin(limit) ? enough : tooLittle) = limit;
  }
  cutWithin(enough);
}

size_t Segments::segmentOf(int64_t number) const { return llvm::upper_bound(cuts_, number) - cuts_.begin(); }

bool Segments::keeps(Value value) const {
  const size_t segment = segmentOf(numbers_.lookup(value.getDefiningOp()));
  const int64_t reader = forward_.readersOf(value).lastForward;
  return segment == cuts_.size() || (reader >= 0 && segmentOf(reader) != segment);
}

} // namespace gpuc
