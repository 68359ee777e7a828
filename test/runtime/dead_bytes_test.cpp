// Which bytes nobody needs behind which command, that a session with check_memory poisons them, and that a
// plan whose commands read such bytes is told which and where.
#include "runtime/plan/dead_bytes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/plan/contents.h"
#include "runtime/plan/lifetimes.h"
#include "test/runtime/session_helpers.h"

namespace gpuc::test {
namespace {

/// predict(x): buffers of 64 bytes, one behind the other from the one called `x` on, and kernels over them.
class Lines : public testing::Test {
 protected:
  Lines() { builder.copyIn(commands, PlanBuilder::input(program, "x", x), {x}); }

  uint32_t line(const std::string& name) { return builder.buffer(name, DataType::f32, {16}); }

  /// One that lies where another does.
  uint32_t lineOver(const std::string& name, uint32_t other) {
    const uint32_t made = line(name);
    builder.plan.buffers[made]->offset = builder.plan.buffers[other]->offset;
    return made;
  }

  void twice(CommandList& list, OperandOf from, OperandOf to, uint64_t tiles = 1) {
    builder.launch(list, kernel, {std::move(from)}, {std::move(to)}, tiles);
  }

  /// Of the main stream's commands, those of loops too, the buffers that die behind each, named once for each
  /// line of theirs.
  std::vector<std::string> deaths() {
    const Plan plan = builder.parse();
    const fb::Program& parsed = *plan.root().programs()->Get(0);
    const DeadBytes dead = deadBytesOf(plan.root(), parsed);
    std::vector<std::string> list;
    appendDeaths(plan.root(), dead, parsed.streams()->Get(0)->commands(), list);
    return list;
  }

  std::string contents() {
    const Result<bool> checked = checkContents(builder.parse().root());
    if (!checked.ok()) return checked.message();
    return *checked ? "" : "left out";
  }

  /// The output for x = 1, 2, …, with or without poison.
  std::vector<float> run(bool check_memory, int threads = 1) {
    Session session = open(builder, {.threads = threads, .check_memory = check_memory});
    const std::vector<float> ones = counting(16, 1);
    const int64_t shape[] = {16};
    const HostTensorView view = viewOf(ones, DataType::f32, shape);
    for (int time = 0; time < 2; ++time) runOnce(session, {0}, {&view, 1});
    return valuesOf<float>(session.output({0}, 0));
  }

  PlanBuilder builder{1, TargetKind::host};
  uint32_t x = line("x"), kernel = builder.kernel("test_double", 2);
  fb::ProgramT& program = builder.program("predict");
  CommandList& commands = program.streams[0]->commands;

 private:
  static void appendDeaths(const fb::Plan& plan, const DeadBytes& dead, const Commands* commands,
                           std::vector<std::string>& list) {
    for (const fb::Command* command : each(commands)) {
      if (const std::optional<CommandLoop> loop = loopOf(*command))
        appendDeaths(plan, dead, loop->commands, list);
      std::string names;
      if (auto found = dead.behind.find(command); found != dead.behind.end())
        for (const ByteRange& range : found->second) {
          EXPECT_LT(range.begin, range.end);
          for (int64_t at = range.begin; at < range.end; at += 64) names += nameAt(plan, at);
        }
      list.push_back(names);
    }
  }

  static std::string nameAt(const fb::Plan& plan, int64_t place) {
    for (const fb::Buffer* buffer : each(plan.buffers()))
      if (const uint64_t at = static_cast<uint64_t>(place);
          buffer->offset() <= at && at < buffer->offset() + buffer->size())
        return std::string(textOf(buffer->name()));
    return "?";
  }
};

using Texts = std::vector<std::string>;

TEST_F(Lines, DieBehindTheirLastReader) {
  const uint32_t a = line("a"), b = line("b"), y = line("y");
  twice(commands, {x}, {a});
  twice(commands, {a}, {b});
  twice(commands, {a}, {y});
  twice(commands, {b}, {y});
  PlanBuilder::output(program, "y", y);
  EXPECT_EQ(deaths(), Texts({"", "", "", "a", "b"}));
  EXPECT_EQ(contents(), "");
  EXPECT_EQ(run(true), run(false));
}

TEST_F(Lines, LiveOnWhereTheNextIsWrittenInTheirPlace) {
  const uint32_t a = line("a"), b = lineOver("b", a), y = line("y");
  twice(commands, {x}, {a});
  twice(commands, {a}, {b});
  twice(commands, {b}, {y});
  PlanBuilder::output(program, "y", y);
  EXPECT_EQ(deaths(), Texts({"", "", "", "a"})) << "a and b";
  EXPECT_EQ(contents(), "");
  EXPECT_EQ(run(true)[0], 8);
}

TEST_F(Lines, DieInEachIterationIfTheyAreOverwrittenFirst) {
  const uint32_t a = line("a"), b = line("b"), carried = line("c"), y = line("y");
  twice(commands, {x}, {carried});
  CommandList& body = PlanBuilder::repeat(commands, 3);
  twice(body, {carried}, {a});
  twice(body, {a}, {b});
  twice(body, {b}, {carried});
  twice(commands, {carried}, {y});
  PlanBuilder::output(program, "y", y);
  EXPECT_EQ(deaths(), Texts({"", "", "", "a", "b", "", "c"}));
  EXPECT_EQ(contents(), "");
  EXPECT_EQ(run(true)[0], 2048);
  EXPECT_EQ(run(true), run(false));
}

TEST_F(Lines, LiveThroughoutALoopIfOneIterationLeavesThemToTheNext) {
  const uint32_t kept = builder.buffer("k", DataType::f32, {16}), a = line("a"), y = line("y");
  CommandList& body = PlanBuilder::repeat(commands, 2);
  // The first half in one iteration, the other in the next.
  twice(body, {kept}, {a});
  builder.copy(body, {x, 0, 32, {32}}, {kept, 0, 32, {32}});
  twice(commands, {x}, {y});
  PlanBuilder::output(program, "y", y);
  EXPECT_EQ(deaths(), Texts({"", "a", "", "k", ""}));
  EXPECT_NE(contents(), "") << "the first iteration finds nothing";
}

TEST_F(Lines, OfAParallelDieBehindItToo) {
  std::vector<uint32_t> pairs;
  for (const char* name : {"o", "a", "b", "y"}) pairs.push_back(builder.buffer(name, DataType::f32, {2, 16}));
  builder.fill(commands, {pairs[0]}, patternOf(1.0f));
  CommandList& parts = PlanBuilder::parallel(commands, 2, true);
  for (size_t i = 1; i < pairs.size(); ++i) {
    twice(parts, {pairs[i - 1]}, {pairs[i]}, 2);
    PlanBuilder::rows(parts, 2, "rr");
  }
  PlanBuilder::output(program, "y", pairs.back());
  EXPECT_EQ(deaths(), Texts({"", "", "", "aa", "bb", "ooaabb"}));
  EXPECT_EQ(contents(), "");
  for (int threads : {1, 2, 3}) EXPECT_EQ(run(true, threads), std::vector<float>(32, 8));
}

TEST_F(Lines, OfOtherStreamsAreLeftAlone) {
  const uint32_t a = line("a"), b = line("b"), y = line("y");
  twice(commands, {x}, {a});
  twice(commands, {x}, {b});
  twice(commands, {b}, {y});
  PlanBuilder::record(commands, 0);
  program.events = {"a is there"};
  program.streams.push_back(std::make_unique<fb::StreamT>());
  program.streams[1]->name = "other";
  PlanBuilder::wait(program.streams[1]->commands, 0);
  builder.copy(program.streams[1]->commands, {a}, {line("z")});
  PlanBuilder::output(program, "y", y);
  EXPECT_EQ(deaths(), Texts({"", "", "", "b", ""}));
  EXPECT_EQ(contents(), "");
  EXPECT_EQ(run(true)[0], 4);
}

TEST_F(Lines, OfAKernelThatReadsBehindItsOperandAreNotANumber) {
  const uint32_t a = line("a"), dead = line("d"), pair = builder.buffer("y", DataType::f32, {2, 16});
  ASSERT_EQ(builder.plan.buffers[a]->offset + 64, builder.plan.buffers[dead]->offset);
  CommandList& body = PlanBuilder::repeat(commands, 2);
  twice(body, {x}, {dead});
  twice(body, {dead}, {a});
  twice(body, {a}, {pair}, 2);  // two lines, one more than it says
  PlanBuilder::output(program, "y", pair);
  const std::vector<float> by_chance = run(false), poisoned = run(true);
  EXPECT_EQ(by_chance[16], 4) << "what lay there is read";
  EXPECT_EQ(poisoned[0], by_chance[0]);
  for (size_t i = 16; i < 32; ++i) EXPECT_TRUE(std::isnan(poisoned[i]));
}

TEST_F(Lines, ThatARunLeavesAreNotThereForTheNext) {
  const uint32_t y = line("y"), left = line("left");
  twice(commands, {left}, {y});
  twice(commands, {x}, {left});
  PlanBuilder::output(program, "y", y);
  EXPECT_EQ(run(false)[0], 4);
  EXPECT_TRUE(std::isnan(run(true)[0]));
  EXPECT_EQ(
      contents(),
      "program 'predict': launch of kernel 'test_double' (test) reads buffer 'left' at bytes [128, 192) of "
      "the arena, some of which nothing in this run has written");
}

TEST_F(Lines, ThatAreOverwrittenTooEarlyNameCommandAndBuffers) {
  const uint32_t a = line("a"), b = lineOver("b", a), y = line("y");
  twice(commands, {x}, {a});
  commands.back()->location = "first";
  twice(commands, {x}, {b});
  twice(commands, {a}, {y});
  commands.back()->location = "head";
  PlanBuilder::output(program, "y", y);
  EXPECT_EQ(
      contents(),
      "program 'predict': launch of kernel 'test_double' (head) reads buffer 'a' at bytes [64, 128) of the "
      "arena, some of which buffer 'b' has overwritten");
}

TEST_F(Lines, ThatAreOutputsMustOutlastTheRun) {
  const uint32_t y = line("y"), over = lineOver("over", y);
  twice(commands, {x}, {y});
  twice(commands, {x}, {over});
  PlanBuilder::output(program, "y", y);
  EXPECT_EQ(
      contents(),
      "program 'predict': its output 'y' is left in buffer 'y' at bytes [64, 128) of the arena, some of "
      "which buffer 'over' has overwritten");
}

TEST_F(Lines, OfMoreIterationsThanAnyoneWaitsForAreLeftOut) {
  const uint32_t y = line("y");
  twice(PlanBuilder::repeat(PlanBuilder::repeat(commands, 1 << 15), 1 << 15), {x}, {y});
  PlanBuilder::output(program, "y", y);
  EXPECT_EQ(contents(), "left out");
}

TEST_F(Lines, AreTouchedForGoodThoughTheyArePoisonedAgain) {
  const uint32_t a = line("a"), y = line("y"), last = line("z");
  twice(commands, {x}, {last});
  twice(commands, {last}, {a});
  twice(commands, {a}, {y});
  PlanBuilder::output(program, "y", y);
  Session session = open(builder, {.check_memory = true});
  const std::vector<float> ones = counting(16, 1);
  const int64_t shape[] = {16};
  const HostTensorView view = viewOf(ones, DataType::f32, shape);
  runOnce(session, {0}, {&view, 1});
  EXPECT_EQ(session.memory().touched_bytes, builder.plan.arena_bytes);
}

/// What an earlier run left may be the next one's input.
TEST_F(Lines, ThatAreGivenAsAnInputAreRead) {
  const uint32_t y = line("y");
  twice(commands, {x}, {y});
  PlanBuilder::output(program, "y", y);
  Session session = open(builder, {.check_memory = true});
  const std::vector<float> ones = counting(16, 1);
  const int64_t shape[] = {16};
  HostTensorView view = viewOf(ones, DataType::f32, shape);
  runOnce(session, {0}, {&view, 1});
  view = session.output({0}, 0);
  runOnce(session, {0}, {&view, 1});
  EXPECT_EQ(valuesOf<float>(session.output({0}, 0))[0], 4);
}

}  // namespace
}  // namespace gpuc::test
