// Thousands of seeded mutations of a plan, one field at a time: what the verifier lets pass must run within
// its arena, whose end is guarded, and come to an end. (Mutations of bytes are test/fuzz/plan_fuzz.cpp's.)
#include <gtest/gtest.h>

#include <random>

#include "test/runtime/session_helpers.h"

namespace gpuc::test {
namespace {

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  void mutate(fb::PlanT& plan) {
    switch (below(4)) {
      case 0:
        mutate(*plan.buffers[below(plan.buffers.size())]);
        break;
      case 1:
        mutateHeadline(plan);
        break;
      default: {
        auto& streams = plan.programs[0]->streams;
        auto& commands = streams[below(streams.size())]->commands;
        if (commands.empty()) return;
        mutateList(commands);
      }
    }
  }

 private:
  uint64_t below(uint64_t bound) { return random_() % bound; }

  /// A value near the old one, near a border, or any.
  template <typename T>
  void change(T& value) {
    const uint64_t kBorders[] = {0,
                                 1,
                                 2,
                                 3,
                                 4,
                                 63,
                                 64,
                                 65,
                                 128,
                                 256,
                                 uint64_t{1} << 31,
                                 uint64_t{1} << 32,
                                 uint64_t{1} << 40,
                                 uint64_t{1} << 62,
                                 uint64_t{1} << 63,
                                 UINT64_MAX,
                                 UINT64_MAX - 63};
    uint64_t old = static_cast<uint64_t>(value), any = random_();
    switch (below(4)) {
      case 0:
        old += below(2) ? uint64_t{1} << below(8) : -(uint64_t{1} << below(8));
        break;
      case 1:
        old = kBorders[below(std::size(kBorders))];
        break;
      case 2:
        old *= below(2) ? 2 : 3;
        break;
      default:
        old = any >> below(64);
    }
    value = static_cast<T>(old);
  }

  void mutate(fb::BufferT& buffer) {
    switch (below(5)) {
      case 0:
        change(buffer.offset);
        break;
      case 1:
        change(buffer.size);
        break;
      case 2:
        change(buffer.slot_stride);
        break;
      case 3:  // shape and size together, so that the two agree
        change(buffer.size);
        buffer.size %= 4096;
        buffer.shape = {static_cast<int64_t>(buffer.size)};
        buffer.type = fb::DataType::i8;
        break;
      default:
        for (int64_t& extent : buffer.shape) change(extent);
    }
  }

  void mutateHeadline(fb::PlanT& plan) {
    switch (below(4)) {
      case 0:
        change(plan.arena_bytes);
        break;
      case 1:
        change(plan.input_slots);
        break;
      case 2:
        change(plan.programs[0]->inputs[0]->buffer);
        break;
      default:
        change(plan.programs[0]->outputs[0]->buffer);
    }
  }

  void mutateList(CommandList& commands) {
    size_t i = below(commands.size());
    switch (below(6)) {
      case 0:
        commands.erase(commands.begin() + static_cast<ptrdiff_t>(i));
        break;
      case 1:
        std::swap(commands[i], commands[below(commands.size())]);
        break;
      default:
        mutate(*commands[i]);
    }
  }

  void mutate(fb::CommandT& command) {
    if (fb::CopyT* copy = command.work.AsCopy()) {
      mutateOperand(below(2) ? copy->from : copy->to);
      if (below(4) == 0) change(copy->port);
    } else if (fb::FillT* fill = command.work.AsFill()) {
      mutateOperand(fill->to);
    } else if (fb::RecordT* record = command.work.AsRecord()) {
      change(record->event);
    } else if (fb::WaitT* wait = command.work.AsWait()) {
      below(2) ? change(wait->distance) : change(wait->event);
    } else if (fb::RepeatT* repeat = command.work.AsRepeat()) {
      if (below(3) == 0 || repeat->commands.empty())
        change(repeat->count);
      else
        mutateList(repeat->commands);
    }
  }

  void mutateOperand(std::unique_ptr<fb::OperandT>& operand) {
    if (!operand) {
      if (below(2)) operand = std::make_unique<fb::OperandT>();
      return;
    }
    switch (below(5)) {
      case 0:
        change(operand->buffer);
        break;
      case 1:
        change(operand->offset);
        break;
      case 2:
        change(operand->size);
        break;
      case 3:
        operand.reset();
        break;
      default:
        for (int64_t& stride : operand->strides) change(stride);
    }
  }

  std::mt19937_64 random_;
};

/// What a run would cost, in commands executed.
double costOf(const CommandList& commands) {
  double cost = 0;
  for (const auto& command : commands)
    cost += command->work.AsRepeat() ? 1 + static_cast<double>(command->work.AsRepeat()->count) *
                                               (1 + costOf(command->work.AsRepeat()->commands))
                                     : 1;
  return cost;
}

#if defined(__SANITIZE_THREAD__)
constexpr bool kSeesRaces = true;
#elif defined(__has_feature)
constexpr bool kSeesRaces = __has_feature(thread_sanitizer);
#else
constexpr bool kSeesRaces = false;
#endif

TEST(PlanFuzz, WhatPassesTheVerifierRunsWithinItsArena) {
  // The reader proves bounds and an end. That commands are ordered is proven by the compiler, before the plan
  // is written: a mutated plan may race with itself, and ThreadSanitizer would rightly say so.
  if (kSeesRaces) GTEST_SKIP() << "mutated plans may race, which ThreadSanitizer reports";
  constexpr int kMutations = 20000;
  int refused = 0, ran = 0;
  for (int seed = 0; seed < kMutations; ++seed) {
    PlanBuilder builder = codelessPlan();
    Mutator mutator(static_cast<uint64_t>(seed));
    for (int i = 0; i <= seed % 3; ++i) mutator.mutate(builder.plan);
    Result<Plan> plan = Plan::parse(builder.seal());
    if (!plan.ok()) {
      ++refused;
      ASSERT_EQ(plan.message().find('\n'), std::string::npos) << "seed " << seed << ": " << plan.message();
      continue;
    }
    double cost = 0;
    for (auto& stream : builder.plan.programs[0]->streams) cost += costOf(stream->commands);
    if (cost > 1e4 || plan->info().arena_bytes > (1 << 20)) continue;
    Result<Session> session = Session::create(*plan, {.threads = 1, .check_memory = true});
    ASSERT_TRUE(session.ok()) << "seed " << seed << ": " << session.message();
    // The caller's memory is as long as the input, to the byte: reading on would be seen by the address
    // sanitizer.
    std::vector<std::vector<std::byte>> data;
    std::vector<HostTensorView> inputs;
    for (const InputInfo& input : plan->info().programs[0].inputs)
      inputs.emplace_back(data.emplace_back(static_cast<size_t>(input.spec.sizeBytes())).data(), input.spec);
    for (int run = 0; run < 3; ++run) ASSERT_TRUE(session->run({0}, inputs).ok()) << "seed " << seed;
    ++ran;
  }
  EXPECT_GT(refused, kMutations / 2);
  EXPECT_GT(ran, kMutations / 50) << "too few mutations are harmless for this to say much";
  RecordProperty("refused", refused);
  RecordProperty("ran", ran);
  std::printf("%d refused, %d ran\n", refused, ran);
}

}  // namespace
}  // namespace gpuc::test
