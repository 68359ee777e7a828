#include "runtime/host/bands.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/host/lower.h"
#include "runtime/host/matmul/plan.h"
#include "runtime/plan/footprint.h"
#include "runtime/plan/operands.h"

namespace gpuc {
namespace {

/// More are not looked at: a step of so many commands is long enough to share them one by one.
constexpr size_t kMostOperands = 512;

struct Touch {
  Footprint footprint;
  bool cut;  // a band touches its part alone
  bool written;
};

/// Two that are cut alike at whatever iteration they meet: their places are then the same, or apart.
bool fallOnOneGrid(const Footprint& a, const Footprint& b) {
  const int64_t between = std::max(a.bytes.begin, b.bytes.begin) - std::min(a.bytes.begin, b.bytes.begin);
  return a.size == b.size && a.step % a.size == 0 && b.step % b.size == 0 && between % a.size == 0;
}

/// Whether no band needs what another writes.
bool stayApart(const Touch& a, const Touch& b) {
  if (!a.written && !b.written) return true;
  if (!a.footprint.bytes.meets(b.footprint.bytes)) return true;
  return a.cut && b.cut && fallOnOneGrid(a.footprint, b.footprint);
}

/// What commands touch, and how many rows all of them have to cut.
class Collector {
 public:
  Collector(const fb::Plan& plan, std::vector<uint64_t> counts) : plan_(plan), counts_(std::move(counts)) {}

  /// False if one of them cannot be cut.
  bool add(const fb::Repeat& repeat) {
    counts_.push_back(repeat.count());
    const bool all = std::all_of(each(repeat.commands()).begin(), each(repeat.commands()).end(),
                                 [&](const fb::Command* command) { return add(*command); });
    counts_.pop_back();
    return all;
  }

  /// The most bands, of at most `most`, that cut all commands at whole rows.
  int bands(int most) const {
    int count = touches_.empty() ? 1 : most;
    while (count > 1 && rows_ % static_cast<uint64_t>(count) != 0) --count;
    return count;
  }

  const std::vector<Touch>& touches() const { return touches_; }
  const std::vector<const fb::Matmul*>& products() const { return products_; }

 private:
  bool add(const fb::Command& command) {
    if (const fb::Repeat* repeat = command.work_as_Repeat()) return add(*repeat);
    for (const auto& [operand, use] : operandsOf(command))
      if (operand && operand->size() > 0)
        touches_.push_back({footprintOf(plan_, *operand, counts_), use.by_rows, isWritten(use.role)});
    if (const fb::Matmul* matmul = command.work_as_Matmul()) products_.push_back(matmul);
    const uint64_t rows = rowsOf(command);
    rows_ = std::gcd(rows_, rows);
    return rows > 1 && rows_ > 1 && touches_.size() <= kMostOperands;
  }

  const fb::Plan& plan_;
  std::vector<uint64_t> counts_;
  uint64_t rows_ = 0;  // the greatest common divisor of all commands' rows
  std::vector<Touch> touches_;
  std::vector<const fb::Matmul*> products_;
};

bool staysApart(const std::vector<Touch>& touches) {
  for (size_t i = 0; i < touches.size(); ++i)
    for (size_t j = 0; j <= i; ++j)
      if (!stayApart(touches[i], touches[j])) return false;
  return true;
}

/// Whether a product's rows have the same bits in a product of fewer.
bool addsInOrder(const fb::Matmul& matmul, int bands) {
  MatmulShape shape = shapeOf(matmul);
  if (!checkMatmulShape(shape).ok() || !planMatmul(shape).addsInOrder()) return false;
  shape.m /= bands;
  return planMatmul(shape).addsInOrder();
}

}  // namespace

int bandsOf(const fb::Plan& plan, const fb::Repeat& repeat, const std::vector<uint64_t>& outer_counts,
            int most) {
  Collector collector(plan, outer_counts);
  if (most < 2 || !collector.add(repeat)) return 1;
  const int bands = collector.bands(most);
  if (bands < 2 || !staysApart(collector.touches())) return 1;
  const auto& products = collector.products();
  const bool same_bits = std::all_of(products.begin(), products.end(),
                                     [&](const fb::Matmul* p) { return addsInOrder(*p, bands); });
  return same_bits ? bands : 1;
}

}  // namespace gpuc
