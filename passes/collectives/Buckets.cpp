//===- Buckets.cpp - Which sums over ranks travel together -----------------------===//

#include "passes/collectives/Buckets.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace gpuc {
namespace {

/// By how much commands may turn out to be faster or slower than is predicted: by four times, and two ranks
/// exchange twice as fast as the many by which links are reckoned.
constexpr double kPaces[] = {0.25, 0.5, 1, 2, 4, 8};

/// Exchanges that travel beside commands of one pace.
class Race {
public:
  Race(llvm::ArrayRef<Exchange> exchanges, const Link &link, int64_t mostBytes, double pace)
      : exchanges_(exchanges), link_(link), mostBytes_(mostBytes), pace_(pace) {
    findEarliest();
  }

  /// When the last sum is there with the best buckets, and with these.
  double earliest() const { return earliest_.back(); }
  double finishOf(llvm::ArrayRef<size_t> ends) const {
    double clock = 0;
    size_t begin = 0;
    for (size_t end : ends) {
      int64_t bytes = 0;
      for (; begin < end; ++begin)
        bytes += exchanges_[begin].bytes;
      clock = std::max(clock, readyAt(end)) + link_.allReduceNanoseconds(bytes);
    }
    return clock;
  }

  /// Few buckets that are as good as the best.
  std::vector<size_t> cut() const {
    std::vector<size_t> ends;
    double deadline = earliest() * (1 + kSlack);
    for (size_t end = exchanges_.size(); end > 0;) {
      ends.push_back(end);
      std::tie(end, deadline) = longestBucket(end, deadline);
    }
    return {ends.rbegin(), ends.rend()};
  }

private:
  double readyAt(size_t end) const { return pace_ * exchanges_[end - 1].ready; }

  /// Calls visit(begin, time of the exchange) for each bucket that may end there, the shortest first.
  template <typename Visit> void forBucketsAt(size_t end, Visit visit) const {
    int64_t bytes = 0;
    for (size_t begin = end; begin-- > 0 && exchanges_[begin].kind == exchanges_[end - 1].kind;) {
      bytes += exchanges_[begin].bytes;
      if (bytes > mostBytes_ && begin + 1 < end)
        return;
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
        const double start = std::max(earliest_[begin], readyAt(end));
        earliest_[end] = std::min(earliest_[end], start + time);
      });
  }

  /// Where the longest bucket begins with which all before `end` can be there in time, and by when what is
  /// before it has to be there. Rounding may leave none: then the first to be there.
  std::pair<size_t, double> longestBucket(size_t end, double deadline) const {
    std::pair<size_t, double> longest;
    double first = std::numeric_limits<double>::infinity();
    forBucketsAt(end, [&](size_t begin, double time) {
      const double finish = std::max(earliest_[begin], readyAt(end)) + time;
      if (finish <= deadline || finish < first)
        longest = {begin, deadline - time};
      first = std::min(first, finish);
    });
    return longest;
  }

  llvm::ArrayRef<Exchange> exchanges_;
  const Link &link_;
  int64_t mostBytes_;
  double pace_;
  std::vector<double> earliest_; ///< Of so many exchanges.
};

/// How much later than with the best buckets of each pace the last sum is there, in the mean over paces.
double lossOf(llvm::ArrayRef<Race> races, llvm::ArrayRef<size_t> ends) {
  double loss = 0;
  for (const Race &race : races)
    loss += race.finishOf(ends) / race.earliest() / static_cast<double>(races.size());
  return loss;
}

} // namespace

std::vector<size_t> cutForOverlap(llvm::ArrayRef<Exchange> exchanges, const Link &link, int64_t mostBytes,
                                  double worthFewer) {
  if (exchanges.empty())
    return {};
  int64_t bytes = 0;
  for (const Exchange &exchange : exchanges)
    bytes += exchange.bytes;
  std::vector<std::vector<size_t>> candidates;
  for (int64_t most = std::min(bytes, mostBytes); most > 0 && most >= bytesBeyondLatency(link) / 2;
       most = most * 2 / 3)
    candidates.push_back(cutBySize(exchanges, most));
  std::vector<Race> races;
  for (double pace : kPaces)
    candidates.push_back(races.emplace_back(exchanges, link, mostBytes, pace).cut());

  std::vector<double> losses;
  for (const std::vector<size_t> &ends : candidates)
    losses.push_back(lossOf(races, ends));
  const double enough = *std::min_element(losses.begin(), losses.end()) * (1 + worthFewer);
  std::vector<size_t> best;
  std::pair<size_t, double> least = {std::numeric_limits<size_t>::max(), 0};
  for (const auto &[ends, loss] : llvm::zip_equal(candidates, losses))
    if (const std::pair found{ends.size(), loss}; loss <= enough && found < least)
      std::tie(best, least) = std::tuple(ends, found);
  return best;
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
