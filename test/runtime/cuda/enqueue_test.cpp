// What the runtime puts on streams: order, input slots, repeats, copies, fills.
#include <gtest/gtest.h>

#include "test/runtime/cuda/test_kernels.h"
#include "test/runtime/session_helpers.h"

namespace gpuc::test {
namespace {

class OnFakeGpu : public testing::Test {
 protected:
  OnFakeGpu() { defineTestKernels(gpu_); }

  /// "fill copy kernel …": what stream `stream` did.
  std::string doneBy(int stream) const {
    const char* names[] = {"kernel", "matmul", "conv", "copy", "fill", "record", "wait"};
    std::string text;
    for (const FakeGpu::Done& done : gpu_.done)
      if (done.stream == stream)
        text += (text.empty() ? "" : " ") + std::string(names[static_cast<int>(done.kind)]);
    return text;
  }

  std::vector<const void*> targetsOf(FakeWork::Kind kind) const {
    std::vector<const void*> targets;
    for (const FakeGpu::Done& done : gpu_.done)
      if (done.kind == kind) targets.push_back(done.to);
    return targets;
  }

  FakeGpu gpu_{};
};

TEST_F(OnFakeGpu, CommandsOfAStreamFollowOneAnother) {
  PlanBuilder builder(1, TargetKind::cuda);
  uint32_t x = builder.buffer("x", DataType::f32, {16}), y = builder.buffer("y", DataType::f32, {16});
  uint32_t w = builder.buffer("w", DataType::f32, {16, 16}), h = builder.buffer("h", DataType::f32, {1, 16});
  fb::ProgramT& program = builder.program("step");
  CommandList& commands = program.streams[0]->commands;
  builder.copyIn(commands, PlanBuilder::input(program, "x", x), {x});
  builder.fill(commands, {w}, patternOf(1.0f));
  builder.matmul(commands, x, w, h, 1, 16, 16);
  builder.launch(commands, builder.kernel("test_double", 2), {{h}}, {{y}});
  builder.copy(commands, {y}, {x});
  builder.copyOut(commands, PlanBuilder::output(program, "y", x), {x});

  Session session = open(builder);
  gpu_.clearLog();
  std::vector<float> input(16, 0.5f);
  const int64_t shape[] = {16};
  HostTensorView view = viewOf(input, DataType::f32, shape);
  ProgramId step = programOf(session, "step");
  runOnce(session, step, {&view, 1});
  // The last record: when the pinned copy of x has been read.
  EXPECT_EQ(doneBy(0), "record copy fill matmul kernel copy copy record");
  EXPECT_EQ(valuesOf<float>(session.output(step, 0)), std::vector<float>(16, 16.0f));
}

TEST_F(OnFakeGpu, UploadsGoFromPinnedMemoryToTheSlotOfTheRun) {
  for (uint32_t slots : {1u, 2u, 3u}) {
    PlanBuilder builder(slots, TargetKind::cuda);
    uint32_t x = builder.slotBuffer("x", DataType::f32, {20});  // 80 bytes, 128 to the next slot
    fb::ProgramT& program = builder.program("step");
    builder.copyIn(program.streams[0]->commands, PlanBuilder::input(program, "x", x), {x});
    PlanBuilder::output(program, "x", x);
    Session session = open(builder);
    gpu_.clearLog();
    const int64_t shape[] = {20};
    ProgramId step = programOf(session, "step");
    for (int run = 0; run < 6; ++run) {  // ends in the last slot
      std::vector<float> value(20, static_cast<float>(run));
      HostTensorView view = viewOf(value, DataType::f32, shape);
      ASSERT_TRUE(session.run(step, {&view, 1}).ok());
    }
    ASSERT_TRUE(session.wait().ok());
    std::vector<const void*> targets = targetsOf(FakeWork::Kind::copy);
    ASSERT_EQ(targets.size(), 6u);
    for (size_t run = 0; run < 6; ++run)
      EXPECT_EQ(static_cast<const char*>(targets[run]) - static_cast<const char*>(targets[0]),
                static_cast<ptrdiff_t>(run % slots * (slots > 1 ? 128 : 0)))
          << "run " << run << " of " << slots << " slots";
    EXPECT_EQ(valuesOf<float>(session.output(step, 0)), std::vector<float>(20, 5.0f));
  }
}

TEST_F(OnFakeGpu, ARepeatMovesItsOperandsAndBringsThemBack) {
  PlanBuilder builder(1, TargetKind::cuda);
  uint32_t rows = builder.buffer("rows", DataType::f32, {6, 16});
  fb::ProgramT& program = builder.program("fill");
  CommandList& inner = PlanBuilder::repeat(PlanBuilder::repeat(program.streams[0]->commands, 2), 3);
  builder.fill(inner, {rows, 320, 64, {-192, -64}}, patternOf(1.0f));
  Session session = open(builder);
  ProgramId fill = programOf(session, "fill");
  for (int run = 0; run < 2; ++run) {
    gpu_.clearLog();
    runOnce(session, fill);
    std::vector<const void*> targets = targetsOf(FakeWork::Kind::fill);
    ASSERT_EQ(targets.size(), 6u);
    for (ptrdiff_t i = 0; i < 6; ++i)
      EXPECT_EQ(static_cast<const char*>(targets[0]) - static_cast<const char*>(targets[i]), 64 * i);
  }
}

/// The sum is carried from one iteration to the next, and from run to run.
TEST_F(OnFakeGpu, ARepeatCarriesABuffer) {
  PlanBuilder builder(1, TargetKind::cuda);
  uint32_t sum = builder.variable("sum", DataType::f32, {16});
  uint32_t x = builder.buffer("x", DataType::f32, {4, 16});
  fb::ProgramT& program = builder.program("step");
  CommandList& commands = program.streams[0]->commands;
  builder.copyIn(commands, PlanBuilder::input(program, "x", x), {x});
  CommandList& body = PlanBuilder::repeat(commands, 4);
  builder.launch(body, builder.kernel("test_add", 3), {{sum}, {x, 0, 64, {64}}}, {{sum}});
  Session session = open(builder);
  std::vector<float> zeros(16), input(64);
  for (size_t i = 0; i < 64; ++i) input[i] = static_cast<float>(1 << (i / 16));
  ASSERT_TRUE(session.writeVariable("sum", std::as_bytes(std::span(zeros))).ok());
  const int64_t shape[] = {4, 16};
  HostTensorView view = viewOf(input, DataType::f32, shape);
  for (int run = 1; run <= 3; ++run) {
    runOnce(session, programOf(session, "step"), {&view, 1});
    EXPECT_EQ(readVariable<float>(session, "sum", 16), std::vector<float>(16, static_cast<float>(run * 15)));
  }
}

/// A program that has fewer streams, or none in common, begins when the one before has ended on all.
TEST(OtherPrograms, BeginWhenAllStreamsAreDone) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    FakeGpu gpu(seed);
    PlanBuilder builder(1, TargetKind::cuda);
    uint32_t a = builder.buffer("a", DataType::f32, {16}), b = builder.buffer("b", DataType::f32, {16});
    fb::ProgramT& first = builder.program("first", 3);
    builder.fill(first.streams[1]->commands, {a}, patternOf(1.0f));
    builder.fill(first.streams[2]->commands, {b}, patternOf(1.0f));
    builder.fill(builder.program("second").streams[0]->commands, {a}, patternOf(2.0f));
    builder.fill(builder.program("third", 2).streams[1]->commands, {a}, patternOf(3.0f));
    PlanBuilder::output(*builder.plan.programs[2], "a", a);
    Session session = open(builder);
    for (const char* name : {"first", "second", "third"})
      ASSERT_TRUE(session.run(programOf(session, name), {}).ok());
    ASSERT_TRUE(session.wait().ok());
    EXPECT_EQ(valuesOf<float>(session.output(programOf(session, "third"), 0))[0], 3.0f) << "seed " << seed;
  }
}

/// Elements that are aligned to no more than themselves.
TEST_F(OnFakeGpu, FillsElementsOfEverySizeAtAnyMultiple) {
  PlanBuilder builder(1, TargetKind::cuda);
  uint32_t to = builder.buffer("to", DataType::i8, {64});
  fb::ProgramT& program = builder.program("fill");
  CommandList& commands = program.streams[0]->commands;
  builder.fill(commands, {to}, {});
  builder.fill(commands, {to, 1, 3}, patternOf<uint8_t>(0x11));
  builder.fill(commands, {to, 6, 6}, patternOf<uint16_t>(0x2233));
  builder.fill(commands, {to, 20, 12}, patternOf<uint32_t>(0x44556677));
  builder.fill(commands, {to, 40, 16}, patternOf<uint64_t>(0x1122334455667788));
  PlanBuilder::output(program, "to", to);
  Session session = open(builder);
  ProgramId fill = programOf(session, "fill");
  runOnce(session, fill);
  std::vector<uint8_t> expected(64, 0), found = valuesOf<uint8_t>(session.output(fill, 0));
  std::fill_n(expected.begin() + 1, 3, 0x11);
  for (size_t i = 6; i < 12; i += 2) std::memcpy(&expected[i], "\x33\x22", 2);
  for (size_t i = 20; i < 32; i += 4) std::memcpy(&expected[i], "\x77\x66\x55\x44", 4);
  for (size_t i = 40; i < 56; i += 8) std::memcpy(&expected[i], "\x88\x77\x66\x55\x44\x33\x22\x11", 8);
  EXPECT_EQ(found, expected);
}

TEST_F(OnFakeGpu, RefusesACopyThatOverlapsItself) {
  PlanBuilder builder(1, TargetKind::cuda);
  uint32_t x = builder.buffer("x", DataType::f32, {32});
  builder.copy(builder.program("step").streams[0]->commands, {x, 0, 64}, {x, 32, 64});
  EXPECT_EQ(Session::create(builder.parse()).message(),
            "program 'step': a copy within 'x' overlaps itself, which CUDA cannot do (test)");
}

}  // namespace
}  // namespace gpuc::test
