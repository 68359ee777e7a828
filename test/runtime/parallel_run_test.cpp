// Recurrent networks that the threads take by rows leave what the plan's words say, with any number of
// threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>

#include "runtime/host/executor.h"
#include "test/runtime/allocations.h"
#include "test/runtime/lowered_plan.h"
#include "test/runtime/recurrence.h"
#include "test/runtime/session_helpers.h"

namespace gpuc::test {
namespace {

/// What the plan's words mean, one command after the other; of what these tests use.
class Interpreter {
 public:
  explicit Interpreter(const fb::PlanT& plan) : plan_(plan), arena_(plan.arena_bytes) {}

  std::byte* place(uint32_t buffer) { return arena_.data() + plan_.buffers[buffer]->offset; }
  void run() { run(plan_.programs[0]->streams[0]->commands); }

 private:
  void run(const CommandList& commands) {
    for (const auto& command : commands) {
      if (const auto* repeat = command->work.AsRepeat()) {
        iterations_.push_back(0);
        for (; iterations_.back() < static_cast<int64_t>(repeat->count); ++iterations_.back())
          run(repeat->commands);
        iterations_.pop_back();
      } else if (const auto* parallel = command->work.AsParallel()) {
        iterations_.push_back(0);
        run(parallel->commands);
        iterations_.pop_back();
      } else if (const auto* launch = command->work.AsLaunch()) {
        run(*launch);
      } else if (const auto* matmul = command->work.AsMatmul()) {
        run(*matmul);
      } else if (const auto* fill = command->work.AsFill()) {
        for (uint64_t i = 0; i < fill->to->size; ++i)
          at<uint8_t>(fill->to)[i] = fill->pattern[i % fill->pattern.size()];
      } else if (const auto* copy = command->work.AsCopy(); copy->kind == fb::CopyKind::device_to_device) {
        std::memmove(at<uint8_t>(copy->to), at<uint8_t>(copy->from), copy->to->size);
      }
    }
  }

  void run(const fb::LaunchT& launch) {
    const bool adds = launch.reads.size() == 2;
    const float *a = at<float>(launch.reads[0]), *b = adds ? at<float>(launch.reads[1]) : a;
    float* c = at<float>(launch.writes[0]);
    for (uint64_t i = 0; i < 16 * launch.tiles; ++i) c[i] = a[i] + b[i];
  }

  void run(const fb::MatmulT& matmul) {
    const float *a = at<float>(matmul.a), *b = at<float>(matmul.b);
    float* c = at<float>(matmul.c);
    for (uint64_t i = 0; i < matmul.m; ++i)
      for (uint64_t j = 0; j < matmul.n; ++j) {
        float sum = matmul.accumulate ? c[i * matmul.n + j] : 0;
        for (uint64_t k = 0; k < matmul.k; ++k) sum = std::fma(a[i * matmul.k + k], b[k * matmul.n + j], sum);
        if (matmul.bias) sum += at<float>(matmul.bias)[j];
        if (matmul.mask && at<float>(matmul.mask)[i * matmul.n + j] <= 0) sum = 0;
        c[i * matmul.n + j] = matmul.relu && sum <= 0 ? 0 : sum;
      }
  }

  template <typename T>
  T* at(const std::unique_ptr<fb::OperandT>& operand) {
    auto offset = static_cast<int64_t>(operand->offset);
    for (size_t d = 0; d < operand->strides.size(); ++d) offset += operand->strides[d] * iterations_[d];
    return reinterpret_cast<T*>(place(operand->buffer) + offset);
  }

  const fb::PlanT& plan_;
  std::vector<std::byte> arena_;
  std::vector<int64_t> iterations_;  // of the repeats around the command, outermost first
};

/// A repeat over a stack x and a weight w.
struct Network {
  const char* name;
  void (*build)(Recurrence& plan, uint32_t x, uint32_t w);
};
void PrintTo(const Network& value, std::ostream* out) { *out << value.name; }

const Network kNetworks[] = {
    {"OneLayer",
     [](Recurrence& p, uint32_t x, uint32_t w) {
       const uint32_t h = p.stack("h", kSteps + 1), z = p.matrix("z");
       p.multiply(p.at(h, 0, {1}), w, {z}).relu = true;
       p.add({z}, p.at(x, 0, {1}), p.at(h, 1, {1}));
     }},
    {"AResultInSlots",
     [](Recurrence& p, uint32_t x, uint32_t) {
       const auto rows = static_cast<int64_t>(p.rows());
       const uint32_t y = p.builder.slotBuffer("y", DataType::f32, {kSteps, rows, kColumns});
       p.doubled(p.at(x, 0, {1}), p.at(y, kSteps - 1, {-1}));
     }},
    {"BackwardsAndByCopiesAndFills",
     [](Recurrence& p, uint32_t x, uint32_t w) {
       const uint32_t h = p.matrix("h"), z = p.matrix("z"), y = p.stack("y"), one = p.matrix("one");
       p.builder.fill(*p.body, {z}, patternOf(0.5f));
       p.multiply(p.at(x, kSteps - 1, {-1}), w, {z}).accumulate = true;
       p.builder.fill(*p.body, {one}, patternOf(1.0f));
       p.add({h}, {z}, {h});
       p.add({h}, {one}, {h});
       p.builder.copy(*p.body, {h}, p.at(y, 0, {1}));
     }},
    {"ABiasAndAMask",
     [](Recurrence& p, uint32_t x, uint32_t w) {
       const uint32_t h = p.matrix("h"), z = p.matrix("z"), y = p.stack("y");
       p.multiply(p.at(x, 0, {1}), w, {z}).bias = p.builder.operand({w, kRowBytes, kRowBytes});
       p.multiply({z}, w, {h}).mask = p.builder.operand(p.at(x, kSteps - 1, {-1}));
       p.add({z}, {h}, p.at(y, 0, {1}));
     }},
    {"ARepeatWithin",
     [](Recurrence& p, uint32_t x, uint32_t w) {
       const uint32_t h = p.matrix("h"), z = p.matrix("z"), y = p.stack("y", 3 * kSteps);
       p.multiply({h}, w, {z});
       CommandList* outer = std::exchange(p.body, &PlanBuilder::repeat(*p.body, 3));
       p.add({z}, p.at(x, 0, {1, 0}), p.at(y, 2, {3, -1}));
       p.add(p.at(y, 2, {3, -1}), {h}, {h});
       p.body = outer;
       p.doubled({z}, {z});
       p.add({h}, {z}, {h});
     }},
    {"ARepeatAround",
     [](Recurrence& p, uint32_t x, uint32_t w) {
       const uint32_t h = p.matrix("h"), z = p.matrix("z"), y = p.stack("y", 2 * kSteps),
                      all = p.stack("all", 4);
       p.setRepeatAround(2);
       p.inFront([&] {
         p.doubled(p.at(x, 0, {1}), {z});
         p.builder.fill(*p.body, p.at(all, 0, {}), patternOf(3.0f));
         p.builder.fill(*p.body, {all}, patternOf(2.0f));  // of other rows
       });
       p.multiply(p.at(x, 0, {1}), w, {z});
       p.add({z}, {h}, {h});
       p.add({h}, p.at(all, 2, {0, 1}), p.at(y, 0, {2, 1}));
     }},
};

/// A network of `rows` rows: x and w are inputs, x in slots if there are several, and outputs all other
/// buffers, which begin as zeros. Behind the loop its first buffer is doubled.
PlanBuilder planOf(const Network& network, int64_t rows, uint32_t input_slots = 1) {
  Recurrence plan(rows, input_slots);
  PlanBuilder& builder = plan.builder;
  const uint32_t x = builder.slotBuffer("x", DataType::f32, {kSteps, rows, kColumns}), w = plan.weight("w");
  for (auto [name, buffer] : {std::pair("x", x), {"w", w}})
    builder.copyIn(plan.commands(), PlanBuilder::input(plan.program(), name, buffer), {buffer});
  network.build(plan, x, w);
  const uint32_t twice = plan.matrix("twice");
  for (uint32_t buffer = w + 1; buffer < builder.plan.buffers.size(); ++buffer) {
    builder.fill(plan.commands(), {buffer}, patternOf(0.0f));
    PlanBuilder::output(plan.program(), builder.plan.buffers[buffer]->name, buffer);
  }
  std::rotate(plan.commands().begin(), plan.commands().begin() + 1, plan.commands().end());  // the loop
  plan.body = &plan.commands();
  plan.doubled(plan.at(w + 1, 0, {}), {twice});
  return std::move(builder);
}

/// The inputs of such a plan, in its order.
struct Inputs {
  std::vector<float> x, w;
};

/// Small integers, whose sums are exact; each column of w has about three others than 0.
Inputs exactInputs(int64_t rows, int run) {
  Inputs inputs = {counting(static_cast<size_t>(kSteps * rows * kColumns)), counting(kColumns * kColumns)};
  for (float& value : inputs.x) value = std::fmod(value * static_cast<float>(run + 3), 7) - 3;
  for (float& value : inputs.w) value = std::fmod(value * 5, 11) == 0 ? 1 - std::fmod(value, 3.0f) : 0;
  return inputs;
}

/// Numbers that round as they are multiplied and added.
Inputs wildInputs(int64_t rows, int run) {
  Inputs inputs = exactInputs(rows, run);
  for (std::vector<float>* values : {&inputs.x, &inputs.w})
    for (size_t i = 0; i < values->size(); ++i)
      (*values)[i] = std::sin(static_cast<float>(i * (i + static_cast<size_t>(run)) % 1013));
  return inputs;
}

/// A run's outputs, one behind the other. Inputs lie `off` elements behind where they are read in place.
std::vector<float> runOn(Session& session, const Inputs& inputs, int64_t rows, size_t off) {
  PlacedInput x(inputs.x, off), w(inputs.w, off);
  const int64_t x_shape[] = {kSteps, rows, kColumns}, w_shape[] = {kColumns, kColumns};
  HostTensorView views[] = {x.view(x_shape), w.view(w_shape)};
  runOnce(session, ProgramId{0}, views);
  std::vector<float> all;
  for (size_t output = 0; output < session.plan().info().programs[0].outputs.size(); ++output)
    for (float value : valuesOf<float>(session.output(ProgramId{0}, output))) all.push_back(value);
  return all;
}

/// The same by the plan's words.
std::vector<float> runOn(Interpreter& interpreter, const fb::PlanT& plan, const Inputs& inputs) {
  std::memcpy(interpreter.place(0), inputs.x.data(), inputs.x.size() * sizeof(float));
  std::memcpy(interpreter.place(1), inputs.w.data(), inputs.w.size() * sizeof(float));
  interpreter.run();
  std::vector<float> all;
  for (const auto& output : plan.programs[0]->outputs) {
    const auto* values = reinterpret_cast<const float*>(interpreter.place(output->buffer));
    all.insert(all.end(), values, values + plan.buffers[output->buffer]->size / sizeof(float));
  }
  return all;
}

/// In how many parts a session executes its loop.
size_t partsUsed(const PlanBuilder& builder, int threads) {
  Lowered lowered(builder, threads);
  size_t parts = 1;
  for (const HostCommand& command : lowered.commands())
    if (command.kind == HostCommand::Kind::fork && command.spread) parts *= command.fork.lists->size();
  return parts;
}

class Networks : public testing::TestWithParam<Network> {};
INSTANTIATE_TEST_SUITE_P(ParallelRows, Networks, testing::ValuesIn(kNetworks),
                         [](const auto& info) { return info.param.name; });

TEST_P(Networks, LeaveTheSameBytesForAnyNumberOfThreads) {
  for (int64_t rows : {6, 12, 16})
    for (size_t off : {0, 1})  // in place, in slots
      for (int threads : {1, 2, 3, 4}) {
        SCOPED_TRACE(std::to_string(rows) + " rows in " + std::to_string(threads) + " threads");
        const PlanBuilder builder = planOf(GetParam(), rows, 2);
        const size_t expected = rows % threads == 0 ? static_cast<size_t>(threads) : threads == 4 ? 3 : 2;
        EXPECT_EQ(partsUsed(builder, threads), expected);
        Interpreter interpreter(builder.plan);
        Session session = open(builder, {.threads = threads}), alone = open(builder, {.threads = 1});
        for (int run = 0; run < 4; ++run) {
          const Inputs exact = exactInputs(rows, run), wild = wildInputs(rows, run);
          ASSERT_EQ(runOn(session, exact, rows, off), runOn(interpreter, builder.plan, exact));
          ASSERT_EQ(runOn(session, wild, rows, off), runOn(alone, wild, rows, off));
        }
      }
}

// The profile has what the first part did.
TEST_P(Networks, HaveEachCommandOnceForEachIterationInTheirProfile) {
  for (int threads : {1, 4}) {
    Session session = open(planOf(GetParam(), 16), {.threads = threads, .profile_events = 10'000});
    runOn(session, exactInputs(16, 0), 16, 0);
    std::map<const fb::Command*, uint64_t> expected, found;
    std::function<void(const flatbuffers::Vector<flatbuffers::Offset<fb::Command>>&, uint64_t)> count =
        [&](const auto& commands, uint64_t times) {
          for (const fb::Command* command : commands)
            if (const std::optional<CommandLoop> loop = loopOf(*command))
              count(*loop->commands, times * loop->count);
            else
              expected[command] = times;
        };
    count(*session.plan().root().programs()->Get(0)->streams()->Get(0)->commands(), 1);
    for (const ProfileEvent& event : session.profile()) ++found[event.command];
    EXPECT_EQ(found, expected) << threads << " threads";
  }
}

TEST_P(Networks, AllocateNothingInAStep) {
  const Inputs inputs = exactInputs(16, 0);
  PlacedInput x(inputs.x), w(inputs.w);
  const int64_t x_shape[] = {kSteps, 16, kColumns}, w_shape[] = {kColumns, kColumns};
  HostTensorView views[] = {x.view(x_shape), w.view(w_shape)};
  for (int threads : {2, 4}) {
    Session session = open(planOf(GetParam(), 16), {.threads = threads, .profile_events = 100});
    runOnce(session, ProgramId{0}, views);
    EXPECT_EQ(allocationsInRuns(session, views), 0) << threads << " threads";
  }
}

/// A letter for each command: what it is, repeats at their ends.
std::string kindsOf(const std::vector<HostCommand>& commands) {
  std::string letters;
  for (const HostCommand& command : commands)
    letters += command.kind == HostCommand::Kind::fork      ? 'F'
               : command.kind == HostCommand::Kind::repeat  ? ')'
               : command.kind == HostCommand::Kind::library ? 'm'
               : command.kind == HostCommand::Kind::launch  ? 'l'
               : command.kind == HostCommand::Kind::fill    ? 'f'
                                                            : 'c';
  return letters;
}

PlanBuilder planOf(const std::string& network) {
  const auto* found = std::find_if(std::begin(kNetworks), std::end(kNetworks),
                                   [&](const Network& each) { return each.name == network; });
  return planOf(*found, 16);
}

// In front stand two inputs and four or five outputs.
TEST(ParallelRows, StandInFrontOfTheirCommands) {
  Lowered within(planOf("ARepeatWithin"), 4), around(planOf("ARepeatAround"), 4);
  EXPECT_EQ(kindsOf(within.commands()), "ccffffFmll)ll)l");
  EXPECT_EQ(within.commands()[6].fork.last, 13u);
  EXPECT_EQ(kindsOf(around.commands()), "ccffffflffFmll))l");
  EXPECT_EQ(around.commands()[10].fork.last, 14u);
}

/// '#' for each row of the whole product's result that a part's product writes to.
std::string rowsWrittenBy(const HostCommand& product, const HostCommand& whole) {
  auto* result = static_cast<std::byte*>(whole.operands[2]);
  std::memset(result, 0xff, 16 * kRowBytes);
  const LibraryKernel& kernel = *product.library;
  for (int phase = 0; phase < kernel.phaseCount(); ++phase)
    kernel.run(phase, product.operands, 0, kernel.tiles(phase));
  std::string rows;
  for (int64_t row = 0; row < 16; ++row)
    rows += result[row * static_cast<int64_t>(kRowBytes)] == std::byte{0xff} ? '-' : '#';
  return rows;
}

TEST(ParallelRows, EachHaveAllCommandsOfTheirPartOfTheRows) {
  Lowered lowered(planOf("OneLayer"), 4);
  const std::vector<HostCommand>& commands = lowered.commands();
  ASSERT_EQ(kindsOf(commands), "ccfffFml)l");
  const auto& lists = *commands[5].fork.lists;
  ASSERT_EQ(lists.size(), 4u);
  auto placeOf = [](const HostCommand& command, size_t operand) {
    return static_cast<const std::byte*>(command.operands[operand]);
  };
  for (size_t part = 0; part < 4; ++part) {
    ASSERT_EQ(kindsOf(lists[part]), "ml)");
    const HostCommand &product = lists[part][0], &sum = lists[part][1];
    EXPECT_EQ(placeOf(product, 0) - placeOf(commands[6], 0), static_cast<ptrdiff_t>(part * 4 * kRowBytes));
    EXPECT_EQ(placeOf(product, 1), placeOf(commands[6], 1)) << "the weight is all theirs";
    EXPECT_EQ(rowsWrittenBy(product, commands[6]),
              std::string(4 * part, '-') + "####" + std::string(12 - 4 * part, '-'));
    EXPECT_EQ(placeOf(sum, 0), placeOf(commands[7], 0)) << "a launch counts from its first tile";
    EXPECT_EQ(sum.launch.first_tile, static_cast<int64_t>(part) * 8);
    EXPECT_EQ(sum.launch.tiles, 8);
    EXPECT_EQ(lists[part][2].repeat.first, 0u);
  }
}

TEST(ParallelRows, ReadInputsInPlace) {
  Lowered lowered(planOf("OneLayer"), 4);
  EXPECT_TRUE(lowered.commands()[0].copy.of_read_input);
  EXPECT_TRUE(lowered.commands()[1].copy.of_read_input);
}

TEST(ParallelRows, AreWalkedInPlaceOfTheRepeatWhereItIsSpread) {
  Recurrence plan;
  const uint32_t y = plan.stack("y");
  plan.builder.fill(*plan.body, plan.at(y, 0, {1}), patternOf(uint8_t{1}));
  Lowered lowered(plan.builder, 2);
  HostCommand& fork = lowered.commands()[0];
  ASSERT_EQ(kindsOf(lowered.commands()), "Ff)");
  ThreadPool pool(2), alone(1);
  ProfileRing profile(0);
  const StreamWalk walk{&lowered.commands(), &pool, &alone, &profile, {}, 0, 0};
  auto onesOf = [&](bool spread) {
    std::fill_n(lowered.arena.data(), lowered.arena.bytes(), std::byte{0});
    fork.spread = spread;
    walk.run();
    return std::count(lowered.arena.data(), lowered.arena.data() + lowered.arena.bytes(), std::byte{1});
  };
  const auto all = static_cast<ptrdiff_t>(kSteps * plan.bytes());
  EXPECT_EQ(onesOf(true), all);
  EXPECT_EQ(onesOf(false), all);
  (*fork.fork.lists)[1].clear();
  EXPECT_EQ(onesOf(true), all / 2);
  EXPECT_EQ(onesOf(false), all);
}

TEST(ParallelRows, AreTheMainStreamsAlone) {
  Recurrence plan;
  CommandList& other = plan.program().streams[1]->commands;
  const uint32_t x = plan.matrix("x"), y = plan.matrix("y");
  plan.body = &PlanBuilder::parallel(other, plan.rows(), /*by_rows=*/true);
  plan.doubled({x}, {y});
  plan.commands().clear();
  Lowered lowered(plan.builder, 4);
  EXPECT_EQ(kindsOf(lowered.program->streams[1]), "l");
}

}  // namespace
}  // namespace gpuc::test
