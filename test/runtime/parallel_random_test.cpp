// Parts of random parallels that the reader takes need nothing of one another.
#include <gtest/gtest.h>

#include <random>

#include "runtime/host/executor.h"
#include "test/runtime/lowered_plan.h"

namespace gpuc::test {
namespace {

constexpr uint64_t kPiece = 256;  // bytes of most operands of a random plan: 4 tiles of 16 numbers

/// c = a + 3 b + 1, in whole numbers; and where b is read from its end, which does not go by rows.
void mix(void* const* operands, int64_t begin, int64_t end) {
  const auto *a = static_cast<const uint32_t*>(operands[0]), *b = static_cast<const uint32_t*>(operands[1]);
  auto* c = static_cast<uint32_t*>(operands[2]);
  for (int64_t i = begin * 16; i < end * 16; ++i) c[i] = a[i] + 3 * b[i] + 1;
}
void mixBackwards(void* const* operands, int64_t begin, int64_t end) {
  const auto *a = static_cast<const uint32_t*>(operands[0]), *b = static_cast<const uint32_t*>(operands[1]);
  auto* c = static_cast<uint32_t*>(operands[2]);
  for (int64_t i = begin * 16; i < end * 16; ++i) c[i] = a[i] + 3 * b[63 - i] + 1;
}

/// A parallel of a few commands, some of them in a repeat within, all on two buffers that may overlap. If it
/// goes by rows, around it or within stands a repeat.
class RandomPlan {
 public:
  RandomPlan(uint32_t seed, bool by_rows) : builder(1, TargetKind::host), random_(seed), by_rows_(by_rows) {
    for (const char* name : {"one", "two"}) builder.buffer(name, DataType::i32, {16, 64});
    if (draw(3) == 0) builder.plan.buffers[1]->offset = 64 * draw(32);
    for (const char* symbol : {"test_add", "test_double"}) builder.kernel(symbol, 3);
    CommandList& body = addParallel(builder.program("random").streams[0]->commands);
    for (uint64_t commands = 1 + draw(3); commands > 0; --commands) addCommand(body);
    if (draw(2) == 0) addCommand(add(body));
  }
  PlanBuilder builder;

 private:
  uint64_t draw(uint64_t below) { return random_() % below; }

  CommandList& addParallel(CommandList& list) {
    const uint64_t parts = by_rows_ ? 4 : 2 + draw(3);
    counts_.push_back(by_rows_ ? 1 : static_cast<int64_t>(parts));
    CommandList& body = PlanBuilder::parallel(list, parts, by_rows_);
    return by_rows_ ? add(body) : body;
  }

  CommandList& add(CommandList& list) {
    counts_.push_back(static_cast<int64_t>(1 + draw(4)));
    return PlanBuilder::repeat(list, static_cast<uint64_t>(counts_.back()));
  }

  void addCommand(CommandList& list) {
    const uint64_t kind = draw(6);
    if (kind == 0) {
      builder.fill(list, operand(kPiece << draw(2)), patternOf(static_cast<uint32_t>(random_())));
    } else if (kind == 1) {
      builder.copy(list, operand(kPiece), operand(kPiece));
    } else {
      const bool backwards = draw(4) == 0;
      builder.launch(list, backwards, {operand(kPiece), operand(kPiece)}, {operand(kPiece)}, 4);
      if (by_rows_) PlanBuilder::rows(list, 4, backwards ? "r-r" : "rrr");
    }
  }

  /// Most lie at multiples of their size and move by such.
  OperandOf operand(uint64_t bytes) {
    const auto size = static_cast<int64_t>(bytes);
    for (;;) {
      const uint64_t grid = draw(12) ? bytes : 64;
      OperandOf result{static_cast<uint32_t>(draw(2)), grid * draw(4096 / grid), bytes};
      int64_t low = static_cast<int64_t>(result.offset), high = low + size;
      for (int64_t count : counts_) {
        const int64_t stride = draw(24) ? size * (static_cast<int64_t>(draw(4)) - 1) : size / 2;
        result.strides.push_back(stride);
        (stride < 0 ? low : high) += stride * (count - 1);
      }
      if (low >= 0 && high <= 4096) return result;
    }
  }

  std::mt19937 random_;
  bool by_rows_;
  std::vector<int64_t> counts_;
};

/// What the arena holds when `walks` have been walked one after the other, from numbers that all differ.
std::vector<uint32_t> leftBy(std::vector<std::vector<HostCommand>*> walks, Lowered& lowered) {
  auto* numbers = reinterpret_cast<uint32_t*>(lowered.arena.data());
  const size_t count = lowered.arena.bytes() / sizeof(uint32_t);
  for (size_t i = 0; i < count; ++i) numbers[i] = static_cast<uint32_t>(i * i);
  ThreadPool alone(1);
  ProfileRing profile(0);
  for (std::vector<HostCommand>* commands : walks)
    StreamWalk{commands, &alone, &alone, &profile, {}, 0, 0}.run();
  return {numbers, numbers + count};
}

/// Whatever may be taken side by side may be taken one after another, the last one first.
void expectIndependence(uint32_t seed, Lowered& lowered) {
  std::vector<HostCommand>& commands = lowered.commands();
  for (HostCommand& command : commands) command.spread = false;
  const std::vector<uint32_t> expected = leftBy({&commands}, lowered);
  std::vector<std::vector<HostCommand>*> lists;
  for (std::vector<HostCommand>& list : *commands[0].fork.lists) lists.insert(lists.begin(), &list);
  ASSERT_EQ(leftBy(lists, lowered), expected) << "seed " << seed;
}

/// Of random plans those that the reader takes; some, but not most.
void expectIndependentParts(bool by_rows) {
  int found = 0, all = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed, ++all) {
    const RandomPlan plan(seed, by_rows);
    if (!Plan::parse(plan.builder.seal()).ok()) continue;
    ++found;
    Lowered lowered(plan.builder, 4, {mix, mixBackwards});
    ASSERT_EQ(lowered.commands()[0].kind, HostCommand::Kind::fork);
    ASSERT_EQ(lowered.commands()[0].fork.by_rows, by_rows);
    ASSERT_NO_FATAL_FAILURE(expectIndependence(seed, lowered));
  }
  EXPECT_GT(found, all / 20);
  EXPECT_LT(found, all * 9 / 10);
}

TEST(RandomParallels, HavePartsThatNeedNothingOfOneAnother) { expectIndependentParts(/*by_rows=*/false); }
TEST(RandomParallels, HaveRowsThatNeedNothingOfOneAnother) { expectIndependentParts(/*by_rows=*/true); }

}  // namespace
}  // namespace gpuc::test
