//===- ExchangeSchedule.cpp - When commands and sums over ranks take their turn --===//
//
// A list schedule on two clocks, that of who computes and that of the link. What depends on no sum is issued
// in the given order, but that beside an exchange what leads to sums alone comes first: the link has
// something to do, then, while the rest of the backward pass is computed. A command that waits for sums is
// issued as soon as the first clock has passed the time at which they are predicted to be there; at the end
// all that is left, in the order of these times.
//
//===----------------------------------------------------------------------===//

#include "passes/collectives/ExchangeSchedule.h"

#include <algorithm>
#include <queue>

namespace gpuc {
namespace {

class Scheduler {
public:
  Scheduler(const ExchangeProblem &problem, const Link &link, const ExchangeWay &way)
      : commands_(problem.commands), link_(link), way_(way) {
    if (way.beside) // each message is handed on twice
      link_.latencyNanoseconds += way.handoffNanoseconds;
    findSuccessors();
    findWhatWaits();
  }

  ExchangeSchedule run() {
    orderWhatWaitsForNothing();
    formBuckets();
    for (size_t place = 0; place < order_.size(); ++place) {
      issueBuckets(place);
      issueWaiting(/*all=*/false);
      issue({order_[place]});
    }
    issueBuckets(order_.size());
    issueWaiting(/*all=*/true);
    schedule_.nanoseconds = std::max(clock_, linkClock_);
    return std::move(schedule_);
  }

private:
  void findSuccessors() {
    successors_.resize(commands_.size());
    for (size_t command = 0; command < commands_.size(); ++command) {
      missing_.push_back(commands_[command].predecessors.size());
      for (size_t before : commands_[command].predecessors)
        successors_[before].push_back(command);
    }
  }

  /// What depends on a sum. A sum itself does if it is one of sums.
  void findWhatWaits() {
    waits_.resize(commands_.size());
    for (size_t command = 0; command < commands_.size(); ++command)
      waits_[command] = std::any_of(
          commands_[command].predecessors.begin(), commands_[command].predecessors.end(),
          [&](size_t before) { return waits_[before] || commands_[before].exchange.has_value(); });
  }

  bool computes(size_t command) const { return !waits_[command] && !commands_[command].exchange; }

  /// In the given order; but what leads to sums alone comes behind the last of all others that the first of
  /// these sums needs.
  void orderWhatWaitsForNothing() {
    const std::vector<bool> urgent =
        way_.beside ? findWhatLeadsToSumsAlone() : std::vector<bool>(commands_.size());
    std::vector<size_t> places(
        commands_.size()); // of those that are not urgent; and what the others need of these
    size_t count = 0;
    for (size_t command = 0; command < commands_.size(); ++command) {
      if (waits_[command])
        continue;
      for (size_t before : commands_[command].predecessors)
        places[command] = std::max(places[command], places[before]);
      if (computes(command) && !urgent[command])
        places[command] = ++count;
    }
    for (size_t command = commands_.size(); command-- > 0;) {
      if (!urgent[command])
        continue;
      size_t first = count;
      for (size_t next : successors_[command])
        if (!waits_[next])
          first = std::min(first, places[next]);
      places[command] = first;
    }
    for (size_t command = 0; command < commands_.size(); ++command)
      if (computes(command))
        order_.push_back(command);
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return std::pair(places[a], bool(urgent[a])) < std::pair(places[b], bool(urgent[b]));
    });
  }

  /// Commands of which nothing that computes needs anything but to make the part of a sum.
  std::vector<bool> findWhatLeadsToSumsAlone() const {
    std::vector<bool> leads(commands_.size());
    for (size_t command = commands_.size(); command-- > 0;) {
      bool toSum = false, alone = true;
      for (size_t next : successors_[command]) {
        toSum |= leads[next] || (commands_[next].exchange && !waits_[next]);
        alone &= leads[next] || !computes(next);
      }
      leads[command] = computes(command) && toSum && alone;
    }
    return leads;
  }

  /// Of the exchanges of parts that depend on no sum: behind how many of the other such commands each is
  /// ready, and when.
  void formBuckets() {
    std::vector<size_t> placeBehind(commands_.size());
    std::vector<double> finish(commands_.size());
    double clock = 0;
    for (size_t place = 0; place < order_.size(); ++place) {
      finish[order_[place]] = clock += commands_[order_[place]].nanoseconds;
      placeBehind[order_[place]] = place + 1;
    }
    struct Ready {
      size_t place, command;
      Exchange exchange;
    };
    std::vector<Ready> ready;
    for (size_t command = 0; command < commands_.size(); ++command) {
      if (waits_[command] || !commands_[command].exchange)
        continue;
      Ready entry = {0, command, *commands_[command].exchange};
      entry.exchange.ready = 0;
      for (size_t before : commands_[command].predecessors) {
        entry.place = std::max(entry.place, placeBehind[before]);
        entry.exchange.ready = std::max(entry.exchange.ready, finish[before]);
      }
      ready.push_back(entry);
    }
    std::stable_sort(ready.begin(), ready.end(),
                     [](const Ready &a, const Ready &b) { return a.place < b.place; });
    std::vector<Exchange> exchanges;
    for (const Ready &entry : ready)
      exchanges.push_back(entry.exchange);
    size_t begin = 0;
    for (size_t end : cut(exchanges)) {
      Bucket &bucket = buckets_.emplace_back(ready[end - 1].place);
      for (; begin < end; ++begin)
        bucket.exchanges.push_back(ready[begin].command);
    }
  }

  std::vector<size_t> cut(llvm::ArrayRef<Exchange> exchanges) const {
    if (!way_.bucketBytes && way_.beside)
      return cutForOverlap(exchanges, link_);
    return cutBySize(exchanges, way_.bucketBytes.value_or(bytesBeyondLatency(link_)));
  }

  /// Those whose parts are all computed behind so many commands.
  void issueBuckets(size_t place) {
    for (; nextBucket_ < buckets_.size() && buckets_[nextBucket_].place <= place; ++nextBucket_)
      issue(std::move(buckets_[nextBucket_].exchanges));
  }

  void issueWaiting(bool all) {
    while (!ready_.empty() && (all || ready_.top().first <= clock_)) {
      const size_t command = ready_.top().second;
      clock_ = std::max(clock_, ready_.top().first);
      ready_.pop();
      issue({command});
    }
  }

  void issue(ExchangeSchedule::Turn turn) {
    int64_t bytes = 0;
    for (size_t command : turn)
      if (commands_[command].exchange)
        bytes += commands_[command].exchange->bytes;
      else
        clock_ += commands_[command].nanoseconds;
    double done = 0; // of what is computed it is known by the order
    if (commands_[turn.front()].exchange) {
      done = linkClock_ = std::max(linkClock_, clock_) + link_.allReduceNanoseconds(bytes);
      if (!way_.beside)
        clock_ = done;
    }
    for (size_t command : turn)
      for (size_t next : successors_[command])
        release(next, done);
    schedule_.turns.push_back(std::move(turn));
  }

  void release(size_t command, double time) {
    available_.resize(commands_.size());
    available_[command] = std::max(available_[command], time);
    if (--missing_[command] == 0 && waits_[command])
      ready_.push({available_[command], command});
  }

  struct Bucket {
    explicit Bucket(size_t place) : place(place) {}
    size_t place;
    ExchangeSchedule::Turn exchanges;
  };
  using TimeAndCommand = std::pair<double, size_t>;

  const std::vector<ExchangeProblem::Command> &commands_;
  Link link_;
  const ExchangeWay &way_;
  std::vector<std::vector<size_t>> successors_;
  std::vector<size_t> missing_; ///< How many predecessors have not taken their turn.
  std::vector<bool> waits_;
  std::vector<size_t> order_; ///< Of what computes and waits for no sum.
  std::vector<double> available_;
  std::vector<Bucket> buckets_;
  size_t nextBucket_ = 0;
  std::priority_queue<TimeAndCommand, std::vector<TimeAndCommand>, std::greater<>> ready_;
  double clock_ = 0, linkClock_ = 0;
  ExchangeSchedule schedule_;
};

} // namespace

ExchangeSchedule scheduleExchanges(const ExchangeProblem &problem, const Link &link, const ExchangeWay &way) {
  return Scheduler(problem, link, way).run();
}

} // namespace gpuc
