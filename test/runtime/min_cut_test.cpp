// The cheapest labels against all labels there are.
#include "runtime/base/min_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace gpuc {
namespace {

struct Problem {
  struct Pair {
    size_t a, b;
    int64_t weight;
    bool isDemand = false;  // of a, that b be labelled if it is
  };
  std::vector<int64_t> unlabelled, labelled;
  std::vector<Pair> pairs;

  int64_t cost(const std::vector<bool>& labels) const {
    int64_t sum = 0;
    for (size_t node = 0; node < labels.size(); ++node)
      sum += labels[node] ? labelled[node] : unlabelled[node];
    for (const Pair& pair : pairs) {
      const bool differ = labels[pair.a] != labels[pair.b];
      sum += differ && (labels[pair.a] || !pair.isDemand) ? pair.weight : 0;
    }
    return sum;
  }

  std::vector<bool> solve() const {
    MinCut cut(labelled.size());
    for (size_t node = 0; node < labelled.size(); ++node)
      cut.addCosts(node, unlabelled[node], labelled[node]);
    for (const Pair& pair : pairs)
      if (pair.isDemand)
        cut.addDemand(pair.a, pair.b, pair.weight);
      else
        cut.addPair(pair.a, pair.b, pair.weight);
    return cut.solve();
  }

  int64_t least() const {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (size_t bits = 0; bits < size_t{1} << labelled.size(); ++bits) {
      std::vector<bool> labels(labelled.size());
      for (size_t node = 0; node < labels.size(); ++node) labels[node] = bits >> node & 1;
      least = std::min(least, cost(labels));
    }
    return least;
  }
};

TEST(MinCut, IsCheapestOfAll) {
  std::mt19937_64 random(1);
  auto below = [&](uint64_t end) { return static_cast<int64_t>(random() % end); };
  for (int i = 0; i < 500; ++i) {
    Problem problem;
    const int64_t nodes = 1 + below(9);
    for (int64_t node = 0; node < nodes; ++node) {
      problem.unlabelled.push_back(below(20));
      problem.labelled.push_back(below(20));
    }
    for (int64_t pairs = below(25); pairs > 0; --pairs)
      problem.pairs.push_back(
          {static_cast<size_t>(below(nodes)), static_cast<size_t>(below(nodes)), below(15), below(2) == 0});
    ASSERT_EQ(problem.cost(problem.solve()), problem.least()) << "problem " << i;
  }
}

TEST(MinCut, LabelsNobodyForNothing) {
  Problem problem{.unlabelled = {3, 0}, .labelled = {3, 0}, .pairs = {{0, 1, 4}}};
  EXPECT_EQ(problem.solve(), (std::vector<bool>{false, false}));
}

// A chain as long as a large plan, whose two ends pull: it gives where it is weakest.
TEST(MinCut, LongChain) {
  constexpr size_t kNodes = 20'000, kWeakest = 12'345;
  Problem problem;
  problem.unlabelled.assign(kNodes, 0);
  problem.labelled.assign(kNodes, 0);
  problem.unlabelled.front() = problem.labelled.back() = 1000;
  for (size_t node = 1; node < kNodes; ++node)
    problem.pairs.push_back({node - 1, node, node == kWeakest ? 5 : 7});
  const std::vector<bool> labels = problem.solve();
  for (size_t node = 0; node < kNodes; ++node) ASSERT_EQ(labels[node], node < kWeakest) << node;
}

}  // namespace
}  // namespace gpuc
