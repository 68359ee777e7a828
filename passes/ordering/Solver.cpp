#include "passes/ordering/Solver.h"

#include <algorithm>

#include "passes/ordering/Cut.h"
#include "passes/ordering/Greedy.h"
#include "passes/ordering/Search.h"

namespace gpuc::ordering {
namespace {

constexpr int64_t kCloseEnough = 1000;  // of the peak, to a bound
constexpr int kCuts = 16;
constexpr size_t kSearched = 64, kWindow = 32;  // commands
constexpr Effort kSearchEffort = 100'000, kWindowEffort = 10'000;

class Solver {
 public:
  Solver(const Problem& problem, int64_t target, Effort& effort)
      : problem_(problem), forward_(problem), effort_(effort), target_(target) {
    set(givenOrder(problem));
  }

  Solution run() {
    for (auto step : {&Solver::schedule, &Solver::walkAlongCuts, &Solver::search, &Solver::divide,
                      &Solver::searchAtPeaks})
      if (!isDone()) (this->*step)();
    return {best_, peak_, bound_};
  }

 private:
  bool isDone() const {
    return problem_.commands.size() < 2 || effort_ <= 0 ||
           peak_ - peak_ / kCloseEnough <= std::max(target_, bound_);
  }

  void set(Order order) {
    effort_ -= static_cast<Effort>(order.size());
    best_ = std::move(order);
    bytes_ = liveBytes(forward_, best_);
    peak_ = mostOf(bytes_);
  }

  void consider(Order order) {
    effort_ -= static_cast<Effort>(order.size());
    if (mostOf(liveBytes(forward_, order)) < peak_) set(std::move(order));
  }

  void schedule() {
    for (bool is_backward : {false, true}) {
      const Graph graph(problem_, is_backward);
      for (Choice choice : {Choice::frees_most, Choice::leaves_least})
        consider(scheduleGreedily(graph, choice));
    }
  }

  /// From order to order, each through the least cut of the command at which the one before has the most
  /// bytes.
  void walkAlongCuts() {
    std::vector<char> is_cut(forward_.size());
    Order order = best_;
    for (int cuts = 0; cuts < kCuts && !isDone(); ++cuts) {
      const std::vector<int64_t> bytes = liveBytes(forward_, order);
      std::optional<size_t> highest;
      for (size_t at = 0; at < order.size(); ++at)
        if (!is_cut[order[at]] && bytes[at] > bound_ && (!highest || bytes[at] > bytes[*highest]))
          highest = at;
      if (!highest) return;
      const size_t command = order[*highest];
      is_cut[command] = true;
      const std::optional<Cut> cut = leastCut(forward_, command, effort_);
      if (!cut) return;
      bound_ = std::max(bound_, cut->bytes);
      order = through(*cut, command, order);
      consider(order);
    }
  }

  static Order through(const Cut& cut, size_t command, const Order& whole) {
    Order order;
    for (size_t other : whole)
      if (cut.before[other]) order.push_back(other);
    order.push_back(command);
    for (size_t other : whole)
      if (!cut.before[other] && other != command) order.push_back(other);
    return order;
  }

  size_t peakPosition() const { return std::max_element(bytes_.begin(), bytes_.end()) - bytes_.begin(); }

  /// What the least cut of the command at the peak has before it, and what is behind, each by itself.
  void divide() {
    const size_t command = best_[peakPosition()];
    const std::optional<Cut> cut = leastCut(forward_, command, effort_);
    if (!cut) return;
    Order order = through(*cut, command, best_);
    const size_t middle = std::find(order.begin(), order.end(), command) - order.begin();
    solvePart(order, 0, middle);
    solvePart(order, middle + 1, order.size());
    consider(std::move(order));
  }

  void solvePart(Order& order, size_t begin, size_t end) {
    if (end - begin < 2) return;
    const Problem part = partOf(problem_, order, begin, end);
    Effort share = effort_ / 2;
    effort_ -= share;
    const Solution solution = Solver(part, std::max(target_, bound_), share).run();
    effort_ += share;
    put(solution.order, order, begin);
  }

  static void put(const Order& part, Order& order, size_t begin) {
    const Order whole = order;
    for (size_t at = 0; at < part.size(); ++at) order[begin + at] = whole[begin + part[at]];
  }

  void search() {
    if (problem_.commands.size() > kSearched) return;
    for (bool is_backward : {false, true}) {
      const Graph graph(problem_, is_backward);
      Search search(graph);
      Effort effort = std::min(effort_, kSearchEffort), before = effort;
      while (!isDone()) {
        std::optional<Order> order = search.find(peak_ - 1, effort);
        if (!order) break;
        set(std::move(*order));
      }
      if (effort > 0 && search.isExact()) bound_ = std::max(bound_, peak_);
      effort_ -= before - effort;
    }
  }

  void searchAtPeaks() {
    while (!isDone() && searchAt(peakPosition())) {
    }
  }

  /// Whether the commands around a position have an order in which less is live than at the peak.
  bool searchAt(size_t at) {
    const size_t begin = at - std::min(at, kWindow / 2), end = std::min(begin + kWindow, best_.size());
    const Problem part = partOf(problem_, best_, begin, end);
    effort_ -= static_cast<Effort>(best_.size());
    for (bool is_backward : {false, true}) {
      const Graph graph(part, is_backward);
      Effort effort = std::min(effort_, kWindowEffort);
      effort_ -= effort;
      const std::optional<Order> order = Search(graph).find(peak_ - 1, effort);
      effort_ += effort;
      if (!order) continue;
      Order whole = best_;
      put(*order, whole, begin);
      set(std::move(whole));
      return true;
    }
    return false;
  }

  const Problem& problem_;
  const Graph forward_;
  Effort& effort_;
  const int64_t target_;
  Order best_;
  std::vector<int64_t> bytes_;  // live in turn
  int64_t peak_ = 0, bound_ = 0;
};

}  // namespace

Solution solve(const Problem& problem, const Limits& limits) {
  Effort effort = limits.effort;
  return Solver(problem, 0, effort).run();
}

}  // namespace gpuc::ordering
