//===- selection_test.cpp - What the search finds, and what it proves ------------===//
//
// Random blocks of up to 60 commands, with limits, and the least time within each as an integer program has
// it that shares nothing with the search (selection_reference.py; GPUC_SELECTION_CASES names other cases than
// those that are stored). Small blocks of any form, all choices of which are tried. And a deep one, for which
// only the bound says how good a choice is.
//
//===----------------------------------------------------------------------===//

#include "passes/recompute/Selection.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace gpuc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<unsigned> numbersOf(const llvm::json::Value &list) {
  std::vector<unsigned> numbers;
  for (const llvm::json::Value &number : *list.getAsArray())
    numbers.push_back(*number.getAsInteger());
  return numbers;
}

/// Copies of the first values that take as much as these.
std::vector<int64_t> asMuch(llvm::ArrayRef<int64_t> bytes, unsigned droppable) {
  return bytes.take_front(droppable).vec();
}

BlockGraph blockOf(const llvm::json::Object &block) {
  std::vector<BlockGraph::Op> ops;
  for (const llvm::json::Value &value : *block.getArray("ops")) {
    const llvm::json::Array &op = *value.getAsArray();
    BlockGraph::Op &made = ops.emplace_back();
    llvm::append_range(made.reads, numbersOf(op[0]));
    llvm::append_range(made.writes, numbersOf(op[1]));
    made.nanoseconds = *op[2].getAsNumber();
    made.backward = *op[3].getAsInteger() != 0;
    made.mayOverwrite = *op[4].getAsInteger() != 0;
  }
  std::vector<int64_t> bytes;
  for (const llvm::json::Value &size : *block.getArray("bytes"))
    bytes.push_back(*size.getAsInteger());
  std::vector<int64_t> again = asMuch(bytes, *block.getInteger("droppable"));
  return BlockGraph(std::move(ops), std::move(bytes), std::move(again));
}

/// Within the limit, at the time that it says, and that is no less than what is said to be the least.
void expectSound(const BlockGraph &graph, const Selected &selected, int64_t limit) {
  EXPECT_LE(selected.atLeast, selected.nanoseconds * (1 + 1e-9));
  if (!selected.isFound())
    return;
  const BlockGraph::Outcome outcome = graph.simulate(selected.kept, limit);
  EXPECT_LE(outcome.peak, limit);
  EXPECT_EQ(outcome.nanoseconds, selected.nanoseconds);
}

TEST(Selection, IsWithinTwoPercentOfTheOptimum) {
  const char *other = std::getenv("GPUC_SELECTION_CASES");
  auto buffer = llvm::MemoryBuffer::getFile(other ? other : GPUC_SELECTION_CASES);
  ASSERT_TRUE(buffer);
  llvm::Expected<llvm::json::Value> blocks = llvm::json::parse((*buffer)->getBuffer());
  ASSERT_TRUE(static_cast<bool>(blocks));
  int cases = 0, exact = 0, proven = 0, dear = 0;
  double worst = 1, worstBound = 1;
  for (auto [number, block] : llvm::enumerate(*blocks->getAsArray())) {
    const BlockGraph graph = blockOf(*block.getAsObject());
    Selection selection(graph, llvm::BitVector(graph.size()));
    for (const llvm::json::Value &value : *block.getAsObject()->getArray("limits")) {
      const llvm::json::Array &judged = *value.getAsArray();
      const int64_t limit = *judged[0].getAsInteger();
      const double optimum = judged[1].getAsNumber().value_or(kInfinity);
      SCOPED_TRACE("block " + std::to_string(number) + " within " + std::to_string(limit));
      const Selected selected = selection.within(limit);
      expectSound(graph, selected, limit);
      EXPECT_LE(selected.atLeast, optimum * (1 + 1e-9));
      EXPECT_LE(selected.nanoseconds, 1.02 * optimum);
      EXPECT_GE(selected.nanoseconds, optimum * (1 - 1e-9));
      ++cases;
      exact += selected.nanoseconds == optimum;
      proven += selected.atLeast == selected.nanoseconds || selected.atLeast * 1.006 >= selected.nanoseconds;
      if (optimum > 0 && optimum < kInfinity) {
        ++dear;
        worst = std::max(worst, selected.nanoseconds / optimum);
        worstBound = std::max(worstBound, selected.nanoseconds / std::max(1.0, selected.atLeast));
      }
    }
  }
  std::printf("%d cases, of which %d take time: %d are optimal, %d proven to a two-hundredth; at worst %.4f "
              "times the optimum, %.4f times the bound\n",
              cases, dear, exact, proven, worst, worstBound);
  EXPECT_GE(cases, 200);
  EXPECT_GE(dear, cases / 2);
}

/// Values and readers as they come, forward and backward commands in any order. Some copies take less than
/// their values.
BlockGraph randomBlock(std::mt19937_64 &random) {
  auto below = [&](uint64_t end) { return static_cast<unsigned>(random() % end); };
  std::vector<BlockGraph::Op> ops;
  std::vector<int64_t> bytes;
  const unsigned forward = 2 + below(6);
  for (unsigned number = 0; number < forward; ++number) {
    BlockGraph::Op &op = ops.emplace_back();
    for (unsigned reads = below(3); reads > 0 && !bytes.empty(); --reads)
      if (unsigned value = below(bytes.size()); !llvm::is_contained(op.reads, value))
        op.reads.push_back(value);
    for (unsigned writes = 1 + (below(5) == 0); writes > 0; --writes) {
      op.writes.push_back(bytes.size());
      bytes.push_back(below(20));
    }
    op.nanoseconds = 1 + below(20);
    op.mayOverwrite = below(2) == 0;
  }
  const unsigned droppable = bytes.size();
  for (unsigned number = 0; number < 2 * forward; ++number) {
    BlockGraph::Op op;
    op.backward = below(8) != 0;
    op.mayOverwrite = below(2) == 0;
    for (unsigned reads = 1 + below(3); reads > 0; --reads)
      if (unsigned value = below(bytes.size()); !llvm::is_contained(op.reads, value))
        op.reads.push_back(value);
    op.writes.push_back(bytes.size());
    bytes.push_back(below(20));
    ops.push_back(op);
  }
  std::vector<int64_t> again = asMuch(bytes, droppable);
  for (unsigned value = 0; value < droppable; ++value) {
    auto isReader = [&](const BlockGraph::Op &op) { return llvm::is_contained(op.reads, value); };
    auto isForward = [&](const BlockGraph::Op &op) { return isReader(op) && !op.backward; };
    if (llvm::any_of(ops, isReader) && llvm::none_of(ops, isForward) && below(2) == 0)
      again[value] /= 4;
  }
  return BlockGraph(std::move(ops), std::move(bytes), std::move(again)).ordered();
}

TEST(Selection, IsExactWhereAllChoicesCanBeTried) {
  std::mt19937_64 random(1);
  int dear = 0;
  for (int number = 0; number < 2000; ++number) {
    SCOPED_TRACE(number);
    const BlockGraph graph = randomBlock(random);
    const LeastTime leastTime(graph);
    Selection selection(graph, llvm::BitVector(graph.size()));
    const int64_t whole = graph.simulate(llvm::BitVector(graph.size(), true), 0).peak;
    for (int64_t limit = whole; limit > whole / 2; limit -= 1 + whole / 16) {
      double optimum = kInfinity;
      for (unsigned bits = 0; bits < 1u << graph.size(); ++bits) {
        llvm::BitVector kept(graph.size());
        for (unsigned value = 0; value < graph.size(); ++value)
          kept[value] = bits >> value & 1;
        const BlockGraph::Outcome outcome = graph.simulate(kept, limit);
        if (outcome.excess == 0)
          optimum = std::min(optimum, outcome.nanoseconds);
      }
      const LeastTime::Priced priced = leastTime.within(limit);
      EXPECT_LE(priced.nanoseconds, optimum * (1 + 1e-9));
      EXPECT_LE(leastTime.improved(priced, limit, leastTime.total(), 20).nanoseconds, optimum * (1 + 1e-9));
      const Selected selected = selection.within(limit);
      expectSound(graph, selected, limit);
      EXPECT_LE(selected.atLeast, optimum * (1 + 1e-9));
      EXPECT_LE(selected.nanoseconds, 1.006 * optimum);
      dear += optimum > 0 && optimum < kInfinity;
    }
  }
  EXPECT_GE(dear, 300);
}

//===----------------------------------------------------------------------===//
// A deep block
//===----------------------------------------------------------------------===//

/// Layers as a transformer has them, one behind the other: 13 commands forward, and as many backward, each of
/// which reads what `saved` says of its own.
class DeepBlock {
public:
  explicit DeepBlock(unsigned layers) {
    unsigned x = add({}, {kRow}, 1'000, {});
    for (unsigned layer = 0; layer < layers; ++layer)
      x = feedForward(attention(x));
    droppable_ = bytes_.size();
    for (size_t number = ops_.size(); number-- > 0;)
      addGradient(number);
  }

  BlockGraph graph() && {
    std::vector<int64_t> again = asMuch(bytes_, droppable_);
    return BlockGraph(std::move(ops_), std::move(bytes_), std::move(again));
  }

private:
  static constexpr int64_t kRow = 1 << 20;

  unsigned attention(unsigned x) {
    const unsigned normed = add({x}, {kRow, kRow / 256}, 3'000, {0, 1});
    const unsigned heads = add({normed}, {3 * kRow}, 90'000, {0});
    const unsigned read = add({heads}, {kRow, kRow / 64}, 60'000, {0, 1, 2});
    const unsigned projected = add({read}, {kRow}, 30'000, {0});
    return add({x, add({projected}, {kRow}, 2'000, {})}, {kRow}, 3'000, {});
  }

  unsigned feedForward(unsigned x) {
    const unsigned normed = add({x}, {kRow, kRow / 256}, 3'000, {0, 1});
    const unsigned wide = add({normed}, {4 * kRow}, 120'000, {0});
    const unsigned active = add({wide}, {4 * kRow}, 12'000, {0, 1});
    const unsigned narrow = add({active}, {kRow}, 120'000, {0});
    return add({x, add({narrow}, {kRow}, 2'000, {})}, {kRow}, 3'000, {});
  }

  /// Its gradient reads those with the numbers `saved` among what it reads and writes.
  unsigned add(llvm::ArrayRef<unsigned> reads, llvm::ArrayRef<int64_t> writes, double nanoseconds,
               llvm::ArrayRef<unsigned> saved) {
    BlockGraph::Op &op = ops_.emplace_back();
    op.reads.assign(reads.begin(), reads.end());
    for (int64_t bytes : writes)
      op.writes.push_back(value(bytes));
    op.nanoseconds = nanoseconds;
    op.mayOverwrite = nanoseconds < 20'000;
    saved_.emplace_back();
    for (unsigned number : saved)
      saved_.back().push_back(number < reads.size() ? reads[number] : op.writes[number - reads.size()]);
    return op.writes.front();
  }

  unsigned value(int64_t bytes) {
    bytes_.push_back(bytes);
    gradients_.resize(bytes_.size());
    return bytes_.size() - 1;
  }

  void addGradient(size_t number) {
    BlockGraph::Op op;
    op.backward = true;
    op.mayOverwrite = ops_[number].mayOverwrite;
    op.nanoseconds = 2 * ops_[number].nanoseconds;
    op.reads.assign(saved_[number].begin(), saved_[number].end());
    for (unsigned written : ops_[number].writes)
      if (gradients_[written])
        op.reads.push_back(*gradients_[written]);
    for (unsigned read : ops_[number].reads) {
      if (gradients_[read]) // to which this one's part is added
        op.reads.push_back(*gradients_[read]);
      op.writes.push_back(value(bytes_[read]));
      gradients_[read] = op.writes.back();
    }
    ops_.push_back(op);
  }

  std::vector<BlockGraph::Op> ops_;
  std::vector<std::vector<unsigned>> saved_;
  std::vector<int64_t> bytes_;
  std::vector<std::optional<unsigned>> gradients_;
  unsigned droppable_ = 0;
};

TEST(Selection, IsNearTheBoundOfADeepBlock) {
  const BlockGraph graph = DeepBlock(125).graph();
  EXPECT_GE(graph.ops().size(), 2'500u);
  double total = 0;
  for (const BlockGraph::Op &op : graph.ops())
    total += op.nanoseconds;
  const int64_t whole = graph.simulate(llvm::BitVector(graph.size(), true), 0).peak;
  Selection selection(graph, llvm::BitVector(graph.size()));
  for (int share : {90, 75, 50, 35, 20}) {
    SCOPED_TRACE(share);
    const Selected selected = selection.within(whole / 100 * share);
    expectSound(graph, selected, whole / 100 * share);
    EXPECT_LE(total + selected.nanoseconds, 1.01 * (total + selected.atLeast));
    std::printf("%d%% of %zu commands' memory: %.2f%% more time, at least %.2f%%\n", share,
                graph.ops().size(), 100 * selected.nanoseconds / total, 100 * selected.atLeast / total);
  }
}

} // namespace
} // namespace gpuc
