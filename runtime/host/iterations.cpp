#include "runtime/host/iterations.h"

#include <algorithm>
#include <vector>

#include "runtime/plan/footprint.h"
#include "runtime/plan/operands.h"

namespace gpuc {
namespace {

using Ranges = std::vector<ByteRange>;

/// What one iteration touches, and what of that it writes.
struct Touched {
  Ranges all, written;
};

/// Sorted, and those that meet made one.
void merge(Ranges& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  Ranges merged;
  for (const ByteRange& range : ranges)
    if (!merged.empty() && range.begin <= merged.back().end)
      merged.back().end = std::max(merged.back().end, range.end);
    else
      merged.push_back(range);
  ranges = std::move(merged);
}

/// Of two merged lists.
bool meet(const Ranges& a, const Ranges& b) {
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i].meets(b[j])) return true;
    a[i].end < b[j].end ? ++i : ++j;
  }
  return false;
}

class Collector {
 public:
  Collector(const fb::Plan& plan, const fb::Repeat& repeat) : plan_(plan), iterations_(repeat.count()) {}

  /// False if a command waits for others, or tells them to go on.
  bool add(const fb::Repeat& repeat) {
    for (const fb::Command* command : each(repeat.commands())) {
      if (const fb::Repeat* inner = command->work_as_Repeat()) {
        counts_.push_back(inner->count());
        const bool added = add(*inner);
        counts_.pop_back();
        if (!added) return false;
        continue;
      }
      if (!isOfTheArena(*command)) return false;
      for (const auto& [operand, use] : operandsOf(*command))
        if (operand) touch(*operand, isWritten(use.role));
    }
    return true;
  }

  bool stayApart() {
    for (Touched& touched : iterations_) {
      merge(touched.all);
      merge(touched.written);
    }
    for (size_t i = 0; i < iterations_.size(); ++i)
      for (size_t j = 0; j < iterations_.size(); ++j)
        if (i != j && meet(iterations_[i].written, iterations_[j].all)) return false;
    return true;
  }

 private:
  static bool isOfTheArena(const fb::Command& command) {
    const fb::Copy* copy = command.work_as_Copy();
    return command.work_type() != fb::Work::Record && command.work_type() != fb::Work::Wait &&
           (!copy || copy->kind() == fb::CopyKind::device_to_device);
  }

  /// All that the operand is in the repeats within, in each iteration.
  void touch(const fb::Operand& operand, bool written) {
    if (operand.size() == 0) return;
    ByteRange range = footprintOf(plan_, operand, counts_, /*outermost=*/1).bytes;
    for (Touched& touched : iterations_) {
      touched.all.push_back(range);
      if (written) touched.written.push_back(range);
      range.begin += strideOf(operand, 0);
      range.end += strideOf(operand, 0);
    }
  }

  const fb::Plan& plan_;
  std::vector<Touched> iterations_;
  std::vector<uint64_t> counts_;  // of the repeats within, outermost first
};

}  // namespace

bool areIndependent(const fb::Plan& plan, const fb::Repeat& repeat) {
  if (repeat.count() < 2 || repeat.count() > kMostParallelIterations) return false;
  Collector collector(plan, repeat);
  return collector.add(repeat) && collector.stayApart();
}

}  // namespace gpuc
