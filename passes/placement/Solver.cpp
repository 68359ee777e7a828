#include "passes/placement/Solver.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>

#include "passes/placement/Fit.h"
#include "passes/placement/Orders.h"
#include "passes/placement/Search.h"

namespace gpuc::placement {
namespace {

/// The lowest placement of several greedies, and the order that it came from.
struct Greedy {
  Order order;
  Placement placement;
};

/// Runs the greedies from the one that most often reaches the bound, until one of them reaches the goal or
/// the budget ends: then, if there is none yet, takes what a single pass over time gives.
Greedy bestGreedy(const Instance& instance, int64_t goal, Budget& budget) {
  std::optional<Greedy> best;
  for (size_t number = 0; number < kOrders && !budget.exhausted(); ++number) {
    Order order = orderOf(instance, number, budget);
    if (order.empty()) break;
    for (FitRule rule : {FitRule::kFirst, FitRule::kBest}) {
      int64_t limit = best ? best->placement.height - 1 : INT64_MAX;
      Placement placement = placeInOrder(instance, order, rule, limit, budget);
      if (placement.height > limit || placement.height == kNoHeight) continue;
      best = Greedy{order, std::move(placement)};
      if (best->placement.height <= goal) return *std::move(best);
    }
  }
  if (!best) best = Greedy{orderByStart(instance), placeInTime(instance)};
  return *std::move(best);
}

/// A random one of the places in `order` whose item ends at the height.
size_t pickTopPlace(const Instance& instance, const Order& order, const Placement& placement,
                    std::mt19937_64& random) {
  std::vector<size_t> places;
  for (size_t place = 0; place < order.size(); ++place) {
    size_t item = order[place];
    if (placement.offsets[item] + instance[item].size == placement.height) places.push_back(place);
  }
  return places[random() % places.size()];
}

/// Again and again takes an item that reaches the height, moves it to an earlier place in the order and
/// places all anew; keeps what is not higher. Ends at a height of `goal` or less, or with the budget. `order`
/// is first-fit; the result is never higher than its placement, but for one of no height if the clock did not
/// leave time for that.
Placement improveOrder(const Instance& instance, Order order, int64_t goal, uint64_t seed, Budget& budget) {
  Budget clock(INT64_MAX, budget.deadline());  // what a placement costs is counted once it is there
  Placement best = placeInOrder(instance, order, FitRule::kFirst, INT64_MAX, clock);
  std::mt19937_64 random(seed);
  while (best.height > goal && !clock.exhausted()) {
    size_t from = pickTopPlace(instance, order, best, random);
    // The first in the order lies at the bottom: if it reaches the height, it alone is as large as the bound.
    if (from == 0) return best;
    size_t to = random() % from;
    std::rotate(order.begin() + to, order.begin() + from, order.begin() + from + 1);
    Placement next = placeInOrder(instance, order, FitRule::kFirst, best.height, clock);
    if (!budget.spend(next.work)) return best;
    if (next.height <= best.height)
      best = std::move(next);
    else
      std::rotate(order.begin() + to, order.begin() + to + 1, order.begin() + from + 1);
  }
  return best;
}

Deadline deadlineOf(const SolverOptions& options) {
  // A limit of years is none; the clock's count would overflow.
  if (!options.time_limit_s || *options.time_limit_s > 1e9) return std::nullopt;
  return std::chrono::steady_clock::now() +
         std::chrono::nanoseconds(std::llround(std::max(*options.time_limit_s, 0.0) * 1e9));
}

/// One placement that is being bettered, by one means after another, until it reaches the goal.
class Improver {
 public:
  Improver(const Instance& instance, int64_t goal, Placement best, uint64_t seed, Deadline deadline)
      : instance_(instance), goal_(goal), best_(std::move(best)), seed_(seed), deadline_(deadline) {}

  bool done() const { return best_.height <= goal_ || hasPassed(deadline_); }
  Placement take() { return std::move(best_); }

  /// One target for the branch and bound. Where it proves that there is nothing, the goal rises above the
  /// target.
  void search(int64_t target, int64_t effort) {
    Budget budget(effort, deadline_);
    SearchResult result = searchWithin(instance_, target, budget);
    if (result.placement)
      best_ = *std::move(result.placement);
    else if (result.complete)
      goal_ = target + 1;
  }

  void searchAtGoal(int64_t effort) { search(goal_, effort); }

  bool isAbove(int64_t enough) const { return enough > goal_ && best_.height > enough; }

  /// Two targets, since it is luck which of two neighbours is found: the height itself, and one nearer to the
  /// goal.
  void searchEnough(int64_t enough, int64_t effort) {
    search(enough, effort / 7 * 4);
    if (isAbove(enough)) search(enough - (enough - goal_) / 10, effort / 7 * 3);
    if (isAbove(enough)) missed_ = enough;
  }

  void searchLocally(const Order& order, int64_t effort) {
    Budget budget(effort, deadline_);
    Placement improved = improveOrder(instance_, order, goal_, seed_, budget);
    if (improved.height < best_.height) best_ = std::move(improved);
  }

  /// Tries the goal itself if `enough` was not missed, and then halves what is between the lowest target that
  /// is not known to fail and the best; each try has half of the effort that is left, since a target out of
  /// reach may take any amount.
  void searchBetween(int64_t effort) {
    int64_t lowest = std::max(goal_, missed_ + 1);
    int64_t target = missed_ > goal_ ? lowest + (best_.height - lowest) / 2 : goal_;
    while (best_.height > lowest && effort > 0) {
      int64_t share = effort / 2 + 1;
      effort -= share;
      search(target, share);
      if (best_.height > target) lowest = target + 1;
      target = lowest + (best_.height - lowest) / 2;
    }
  }

 private:
  const Instance& instance_;
  int64_t goal_;
  int64_t missed_ = 0;  // a height above the goal that was searched for in vain
  Placement best_;
  uint64_t seed_;
  Deadline deadline_;
};

/// The lowest placement that the effort can find, at the goal if it can. With `only_goal_counts` a placement
/// above the goal is as good as none.
Placement place(const Instance& instance, int64_t goal, bool only_goal_counts, const SolverOptions& options,
                const Deadline& deadline) {
  // Beyond some ten thousand items, fewer greedies are tried.
  constexpr int64_t kGreedyEffort = 4;
  Budget greedies(kGreedyEffort * std::min(options.effort, INT64_MAX / kGreedyEffort), deadline);
  Greedy greedy = bestGreedy(instance, goal, greedies);
  Improver improver(instance, goal, std::move(greedy.placement), options.seed, deadline);
  // Below the bound lies nothing to search for.
  if (improver.done() || goal < instance.lowerBound() || options.greedies_alone) return improver.take();

  // A first search settles what is small or without slack; the local search is quick at what is nearly right
  // in a large graph; the rest of the effort goes into longer searches, first for what is enough: a bound out
  // of reach would take all of it.
  int64_t rest = options.effort;
  auto share = [&](int64_t effort) { return rest -= effort, effort; };
  improver.searchAtGoal(share(options.effort / 8));
  if (!improver.done()) improver.searchLocally(greedy.order, share(options.effort / 16));
  if (!improver.done() && only_goal_counts) improver.searchAtGoal(rest);
  if (!improver.done() && !only_goal_counts) {
    if (improver.isAbove(options.enough)) improver.searchEnough(options.enough, share(rest / 4 * 3));
    // Where even that is out of reach, half as much again brings the lowest of what is above it.
    if (improver.isAbove(options.enough)) rest = options.effort / 2;
    improver.searchBetween(rest);
  }
  return improver.take();
}

Status doesNotFit(const Problem& problem, const Solution& solution) {
  constexpr size_t kMostNamed = 20;
  Peak peak = findPeak(problem);
  std::string text = "the buffers do not fit: height " + std::to_string(solution.height) + " reached" +
                     (solution.stopped_by_clock ? " when the time limit ended the search" : "") +
                     ", capacity " + std::to_string(*problem.capacity) + ", lower bound " +
                     std::to_string(peak.bytes) + "; alive at the peak (time " + std::to_string(peak.time) +
                     "):";
  for (size_t i = 0; i < std::min(peak.live.size(), kMostNamed); ++i) {
    const Buffer& buffer = problem.buffers[peak.live[i]];
    text += (i == 0 ? " " : ", ") + buffer.id + " (" + std::to_string(buffer.size) + ")";
  }
  if (peak.live.size() > kMostNamed)
    text += " and " + std::to_string(peak.live.size() - kMostNamed) + " smaller ones";
  return Status::error(std::move(text));
}

}  // namespace

Result<Solution> solve(const Problem& problem, const SolverOptions& options) {
  GPUC_RETURN_IF_ERROR(checkProblem(problem));
  const Deadline deadline = deadlineOf(options);
  Instance instance(problem);
  int64_t goal = problem.capacity.value_or(instance.lowerBound());
  Solution solution;
  solution.offsets.assign(problem.buffers.size(), 0);
  if (instance.size() > 0)
    solution =
        instance.toSolution(place(instance, goal, problem.capacity.has_value(), options, deadline).offsets);
  solution.stopped_by_clock = solution.height > goal && hasPassed(deadline);
  if (problem.capacity && solution.height > *problem.capacity) return doesNotFit(problem, solution);
  return solution;
}

}  // namespace gpuc::placement
