//===- ExchangeSchedule.cpp - When commands and sums over ranks take their turn --===//
//
// A list schedule on two clocks, that of who computes and that of the link. What depends on no sum is issued
// in the given order, but that beside an exchange the parts come first that take the least to compute: the
// link has something to do, then, while the rest of the backward pass is computed. A command that waits for
// sums is issued as soon as the first clock has passed the time at which they are predicted to be there; at
// the end all that is left, in the order of these times.
//
// Sums that other sums wait for, as those of a norm's statistics or the count by which gradients are scaled,
// are part of what is computed: they take their turn in the given order, together with those that are ready
// by the time at which one of them is needed. A number for which sums are waited, as the norm of
// gradients of which ranks have shares, are no such sum: all is there by then.
//
// What is gathered is there all the time, and takes memory from then on. It takes its turn when it is needed,
// together with what is needed next. Beside the commands that compute, such buckets are cut as those of sums
// are, with the clock running backwards: a sum may not begin before its part is computed, and what is
// gathered may not be there later than who needs it begins. What only those need that wait for sums, as an
// optimizer its state, is gathered for each of them by itself.
//
//===----------------------------------------------------------------------===//

#include "passes/collectives/ExchangeSchedule.h"

#include "passes/base/StableSort.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>
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
    orderWhatWaitsForNothing(); // a gather is none of it before it is needed
    formBuckets();
    for (size_t place = 0; place < order_.size(); ++place) {
      issueBuckets(place);
      issueWaiting(/*all=*/false);
      issue(order_[place]);
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

  /// What depends on a last sum, for which no other one waits.
  void findWhatWaits() {
    findGathers();
    leadsToSums_.resize(commands_.size());
    for (size_t command = commands_.size(); command-- > 0;)
      leadsToSums_[command] =
          std::any_of(successors_[command].begin(), successors_[command].end(),
                      [&](size_t next) { return leadsToSums_[next] || isSumOfTensors(next); });
    waits_.resize(commands_.size());
    for (size_t command = 0; command < commands_.size(); ++command)
      waits_[command] =
          std::any_of(commands_[command].predecessors.begin(), commands_[command].predecessors.end(),
                      [&](size_t before) { return waits_[before] || isLastSum(before); });
    findLateGathers();
  }

  /// Those for which nothing is to be exchanged before.
  void findGathers() {
    std::vector<bool> dependsOnExchange(commands_.size());
    isGather_.resize(commands_.size());
    for (size_t command = 0; command < commands_.size(); ++command) {
      dependsOnExchange[command] = llvm::any_of(commands_[command].predecessors, [&](size_t before) {
        return commands_[before].exchange || dependsOnExchange[before];
      });
      isGather_[command] =
          commands_[command].exchange && commands_[command].exchange->isGather && !dependsOnExchange[command];
    }
  }

  /// Those that only commands need which wait, and that wait for nothing themselves: these commands do not
  /// miss them.
  void findLateGathers() {
    isLate_.resize(commands_.size());
    for (size_t command = 0; command < commands_.size(); ++command) {
      if (!isGather_[command] || !commands_[command].predecessors.empty() ||
          !llvm::all_of(successors_[command], [&](size_t next) { return waits_[next]; }))
        continue;
      isLate_[command] = !successors_[command].empty();
      for (size_t next : successors_[command])
        --missing_[next];
    }
  }

  bool isSumOfTensors(size_t command) const {
    return commands_[command].exchange && !commands_[command].exchange->isNumber;
  }
  bool isSum(size_t command) const { return commands_[command].exchange && !isGather_[command]; }
  bool isLastSum(size_t command) const { return isSum(command) && !leadsToSums_[command]; }
  bool isSumBetween(size_t command) const { return isSum(command) && leadsToSums_[command]; }
  bool computes(size_t command) const { return !waits_[command] && !isLastSum(command); }

  /// In the given order; but beside the link the parts of sums come first that take the least to compute,
  /// each with what has to be computed for it.
  void orderWhatWaitsForNothing() {
    std::vector<size_t> turns(commands_.size()); // of the first sum that needs the command, from 1
    std::vector<size_t> order;
    if (way_.beside)
      turns = turnsOfSums();
    for (size_t command = 0; command < commands_.size(); ++command) {
      if (!computes(command))
        continue;
      order.push_back(command);
      if (turns[command] == 0) // no sum does
        for (size_t before : commands_[command].predecessors)
          turns[command] = std::max(turns[command], turns[before]);
    }
    stableSort(order, [&](size_t a, size_t b) { return turns[a] < turns[b]; });
    groupGathers(order);
    isAppended_.resize(commands_.size());
    for (size_t command : order)
      if (!isGather_[command])
        append(command);
    appendPending();
    for (size_t command : order)
      if (isGather_[command] && !isLate_[command]) // nobody has needed it so far
        append(command);
  }

  /// Those that are needed one behind the other by what is computed in this order.
  void groupGathers(llvm::ArrayRef<size_t> order) {
    std::vector<size_t> gathers;
    std::vector<Exchange> exchanges; // `ready`: when they are needed
    groupOfGather_.resize(commands_.size());
    std::vector<bool> isNeeded(commands_.size());
    double clock = 0;
    for (size_t command : order) {
      for (size_t before : commands_[command].predecessors)
        if (isGather_[before] && !isLate_[before] && !isNeeded[before]) {
          isNeeded[before] = true;
          gathers.push_back(before);
          exchanges.push_back(*commands_[before].exchange);
          exchanges.back().ready = clock;
        }
      clock += commands_[command].nanoseconds;
    }
    size_t begin = 0;
    for (size_t end : cutByNeed(exchanges)) {
      for (size_t gather : llvm::ArrayRef(gathers).slice(begin, end - begin))
        groupOfGather_[gather] = groups_.size();
      groups_.emplace_back(gathers.begin() + begin, gathers.begin() + end);
      begin = end;
    }
    for (size_t command : order)
      if (isGather_[command] && !isLate_[command] && !isNeeded[command]) {
        groupOfGather_[command] = groups_.size();
        groups_.push_back({command});
      }
  }

  /// As cut() does, with the clock running backwards from when the last is needed.
  std::vector<size_t> cutByNeed(std::vector<Exchange> exchanges) const {
    const double last = exchanges.empty() ? 0 : exchanges.back().ready;
    for (Exchange &exchange : exchanges)
      exchange.ready = last - exchange.ready;
    std::reverse(exchanges.begin(), exchanges.end());
    std::vector<size_t> ends;
    for (size_t end : cut(exchanges))
      if (end < exchanges.size())
        ends.push_back(exchanges.size() - end);
    std::reverse(ends.begin(), ends.end());
    if (!exchanges.empty())
      ends.push_back(exchanges.size());
    return ends;
  }

  /// What a gather needs comes before all of its group.
  void appendGroup(const std::vector<size_t> &group) {
    for (size_t gather : group)
      isAppended_[gather] = true;
    for (size_t gather : group)
      for (size_t before : commands_[gather].predecessors)
        append(before);
    order_.push_back(group);
  }

  /// A sum between waits until it is needed, for others to come along, and so does a gather.
  void append(size_t command) {
    if (isAppended_[command])
      return;
    if (isGather_[command])
      return appendGroup(groups_[groupOfGather_[command]]);
    isAppended_[command] = true;
    const std::vector<size_t> &before = commands_[command].predecessors;
    for (size_t needed : before)
      append(needed);
    auto needs = [&](size_t sum) { return std::binary_search(before.begin(), before.end(), sum); };
    if (llvm::any_of(pending_, needs))
      appendPending();
    if (isSumBetween(command))
      pending_.push_back(command);
    else
      order_.push_back({command});
  }

  /// Sums of one kind take one turn.
  void appendPending() {
    std::map<int64_t, size_t> turnOfKind;
    for (size_t sum : pending_) {
      auto [turn, isNew] = turnOfKind.try_emplace(commands_[sum].exchange->kind, order_.size());
      if (isNew)
        order_.emplace_back();
      order_[turn->second].push_back(sum);
    }
    pending_.clear();
  }

  std::vector<size_t> turnsOfSums() const {
    std::vector<std::pair<double, size_t>> sums; // by what it takes to compute their parts
    std::vector<size_t> seen(commands_.size());
    for (size_t command = 0; command < commands_.size(); ++command) {
      if (!isLastSum(command) || waits_[command])
        continue;
      double nanoseconds = 0;
      std::fill(seen.begin(), seen.end(), 0);
      forEachNeeded(command, seen, 1, [&](size_t needed) { nanoseconds += commands_[needed].nanoseconds; });
      sums.emplace_back(nanoseconds, command);
    }
    std::sort(sums.begin(), sums.end());
    std::vector<size_t> turns(commands_.size());
    for (size_t turn = 0; turn < sums.size(); ++turn)
      forEachNeeded(sums[turn].second, turns, turn + 1, [](size_t) {});
    return turns;
  }

  /// Marks and visits what a command needs, directly or not, and has no mark yet.
  template <typename Visit>
  void forEachNeeded(size_t command, std::vector<size_t> &marks, size_t mark, Visit visit) const {
    std::vector<size_t> open = {command};
    while (!open.empty()) {
      const size_t next = open.back();
      open.pop_back();
      for (size_t before : commands_[next].predecessors)
        if (marks[before] == 0) {
          marks[before] = mark;
          visit(before);
          open.push_back(before);
        }
    }
  }

  /// Of an exchange of parts that depend on no sum: behind how many of the other such commands it is ready.
  struct Ready {
    size_t place, command;
    Exchange exchange;
  };

  void formBuckets() {
    std::vector<size_t> placeBehind(commands_.size());
    std::vector<double> finish(commands_.size());
    double clock = 0;
    for (size_t place = 0; place < order_.size(); ++place) {
      clock += nanosecondsOf(order_[place]);
      for (size_t command : order_[place]) {
        finish[command] = clock;
        placeBehind[command] = place + 1;
      }
    }
    std::vector<Ready> ready;
    for (size_t command = 0; command < commands_.size(); ++command) {
      if (!isLastSum(command) || waits_[command])
        continue;
      Ready entry = {0, command, *commands_[command].exchange};
      entry.exchange.ready = 0;
      for (size_t before : commands_[command].predecessors) {
        entry.place = std::max(entry.place, placeBehind[before]);
        entry.exchange.ready = std::max(entry.exchange.ready, finish[before]);
      }
      ready.push_back(entry);
    }
    stableSort(ready, [](const Ready &a, const Ready &b) { return a.place < b.place; });
    if (way_.beside)
      return formBuckets(ready);
    // Whoever computes nothing meanwhile loses no time by waiting for the next of a kind, whatever comes
    // between.
    std::map<int64_t, std::vector<Ready>> kinds;
    for (const Ready &entry : ready)
      kinds[entry.exchange.kind].push_back(entry);
    for (const auto &[kind, entries] : kinds)
      formBuckets(entries);
    stableSort(buckets_, [](const Bucket &a, const Bucket &b) { return a.place < b.place; });
  }

  void formBuckets(llvm::ArrayRef<Ready> ready) {
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
      return cutForOverlap(exchanges, link_, way_.mostBytes, way_.worthFewer);
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
      issueLateGathers(command);
      issue({command});
    }
  }

  void issueLateGathers(size_t command) {
    std::map<int64_t, ExchangeSchedule::Turn> turnOfKind;
    for (size_t before : commands_[command].predecessors)
      if (isLate_[before]) {
        turnOfKind[commands_[before].exchange->kind].push_back(before);
        isLate_[before] = false;
      }
    for (const auto &[kind, turn] : turnOfKind) {
      advanceByGather(turn);
      schedule_.turns.push_back(turn);
    }
  }

  /// Beside the commands that compute it has begun as soon as the link had nothing else to do.
  void advanceByGather(const ExchangeSchedule::Turn &turn) {
    linkClock_ = (way_.beside ? linkClock_ : std::max(linkClock_, clock_)) + nanosecondsOf(turn);
    clock_ = std::max(clock_, linkClock_);
  }

  /// Of a command, or of an exchange.
  double nanosecondsOf(const ExchangeSchedule::Turn &turn) const {
    if (!commands_[turn.front()].exchange)
      return commands_[turn.front()].nanoseconds;
    int64_t bytes = 0;
    for (size_t command : turn)
      bytes += commands_[command].exchange->bytes;
    return link_.allReduceNanoseconds(bytes);
  }

  void issue(ExchangeSchedule::Turn turn) {
    double done = 0; // of what is computed it is known by the order
    if (!commands_[turn.front()].exchange) {
      clock_ += nanosecondsOf(turn);
    } else if (isGather_[turn.front()]) {
      advanceByGather(turn);
    } else {
      done = linkClock_ = std::max(linkClock_, clock_) + nanosecondsOf(turn);
      if (!way_.beside || isSumBetween(turn.front()))
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
  std::vector<bool> leadsToSums_, waits_;
  std::vector<bool> isGather_, isLate_;     ///< Late: and not issued yet.
  std::vector<std::vector<size_t>> groups_; ///< Of gathers that are not late.
  std::vector<size_t> groupOfGather_;
  std::vector<bool> isAppended_;              ///< To order_, or pending.
  std::vector<ExchangeSchedule::Turn> order_; ///< Of what computes and waits for no last sum.
  std::vector<size_t> pending_;               ///< Sums between that are not in it yet.
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
