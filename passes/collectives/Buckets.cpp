//===- Buckets.cpp - Which sums over ranks travel together -----------------------===//

#include "passes/collectives/Buckets.h"

#include <limits>
#include <tuple>

namespace gpuc {
namespace {

/// So much later than it could be the last sum may be there, if fewer buckets do.
constexpr double kSlack = 0.002;

/// Exchanges, and what the link takes for runs of them.
class Cutter {
public:
  Cutter(llvm::ArrayRef<Exchange> exchanges, const Link &link) : exchanges_(exchanges), link_(link) {}

  std::vector<size_t> run() {
    findEarliest();
    std::vector<size_t> ends;
    double deadline = earliest_.back() * (1 + kSlack);
    for (size_t end = exchanges_.size(); end > 0;) {
      ends.push_back(end);
      std::tie(end, deadline) = longestBucket(end, deadline);
    }
    return {ends.rbegin(), ends.rend()};
  }

private:
  /// Calls visit(begin, time of the exchange) for each bucket that may end there, the shortest first.
  template <typename Visit> void forBucketsAt(size_t end, Visit visit) const {
    int64_t bytes = 0;
    for (size_t begin = end; begin-- > 0 && exchanges_[begin].kind == exchanges_[end - 1].kind;) {
      bytes += exchanges_[begin].bytes;
      visit(begin, link_.allReduceNanoseconds(bytes));
    }
  }

  /// When the sums of the first exchanges can be there: what the last bucket waits for is its last part, and
  /// the link.
  void findEarliest() {
    earliest_.assign(exchanges_.size() + 1, std::numeric_limits<double>::infinity());
    earliest_[0] = 0;
    for (size_t end = 1; end <= exchanges_.size(); ++end)
      forBucketsAt(end, [&](size_t begin, double time) {
        const double start = std::max(earliest_[begin], exchanges_[end - 1].ready);
        earliest_[end] = std::min(earliest_[end], start + time);
      });
  }

  /// Where the longest bucket begins with which all before `end` can be there in time, and by when what is
  /// before it has to be there. Rounding may leave none: then the first to be there.
  std::pair<size_t, double> longestBucket(size_t end, double deadline) const {
    std::pair<size_t, double> longest;
    double first = std::numeric_limits<double>::infinity();
    forBucketsAt(end, [&](size_t begin, double time) {
      const double finish = std::max(earliest_[begin], exchanges_[end - 1].ready) + time;
      if (finish <= deadline || finish < first)
        longest = {begin, deadline - time};
      first = std::min(first, finish);
    });
    return longest;
  }

  llvm::ArrayRef<Exchange> exchanges_;
  const Link &link_;
  std::vector<double> earliest_; ///< Of so many exchanges.
};

} // namespace

std::vector<size_t> cutForOverlap(llvm::ArrayRef<Exchange> exchanges, const Link &link) {
  return Cutter(exchanges, link).run();
}

int64_t bytesBeyondLatency(const Link &link) {
  constexpr double kLatencyShare = 0.05;
  return static_cast<int64_t>(link.latencyNanoseconds * link.bytesPerNanosecond * (1 / kLatencyShare - 1));
}

std::vector<size_t> cutBySize(llvm::ArrayRef<Exchange> exchanges, int64_t mostBytes) {
  std::vector<size_t> ends;
  int64_t bytes = 0;
  for (size_t next = 0; next < exchanges.size(); ++next) {
    const bool joins = next > 0 && exchanges[next].kind == exchanges[next - 1].kind &&
                       bytes + exchanges[next].bytes <= mostBytes;
    if (next > 0 && !joins)
      ends.push_back(next);
    bytes = joins ? bytes + exchanges[next].bytes : exchanges[next].bytes;
  }
  if (!exchanges.empty())
    ends.push_back(exchanges.size());
  return ends;
}

} // namespace gpuc
