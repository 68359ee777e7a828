// How a device executes: events between streams, repeats and strides, slots, fills; each against what it
// should leave.
#include <gtest/gtest.h>

#include "test/runtime/session_helpers.h"

namespace gpuc::test {
namespace {

class OnThreads : public testing::TestWithParam<int> {
 protected:
  SessionOptions options() const { return {.threads = GetParam(), .check_memory = true}; }
};
INSTANTIATE_TEST_SUITE_P(Executor, OnThreads, testing::Values(1, 2, 3, 7));

/// A value goes to and fro between two streams: each adds to what the other wrote.
TEST_P(OnThreads, EventsOrderTwoStreams) {
  constexpr uint64_t kRounds = 200;
  PlanBuilder builder;
  uint32_t value = builder.variable("value", DataType::i64, {}, fb::VariableKind::counter);
  uint32_t increment = builder.kernel("test_increment", 2);
  fb::ProgramT& program = builder.program("ping_pong", 2);
  program.events = {"ping", "pong"};
  CommandList& ping = PlanBuilder::repeat(program.streams[0]->commands, kRounds);
  PlanBuilder::wait(ping, 1, 1);  // round i begins after the answer of round i - 1
  builder.launch(ping, increment, {{value}}, {{value}});
  PlanBuilder::record(ping, 0);
  CommandList& pong = PlanBuilder::repeat(program.streams[1]->commands, kRounds);
  PlanBuilder::wait(pong, 0);
  builder.launch(pong, increment, {{value}}, {{value}});
  PlanBuilder::record(pong, 1);

  Session session = open(builder, options());
  int64_t zero = 0;
  ASSERT_TRUE(session.writeVariable("value", std::as_bytes(std::span(&zero, 1))).ok());
  for (int run = 0; run < 3; ++run) runOnce(session, programOf(session, "ping_pong"));
  EXPECT_EQ(readVariable<int64_t>(session, "value", 1)[0], static_cast<int64_t>(3 * 2 * kRounds));
}

/// The consumer may lag two behind: with two places in the ring no value is overwritten before it was read.
TEST_P(OnThreads, ADistanceLetsAProducerRunAhead) {
  constexpr uint64_t kItems = 64;
  PlanBuilder builder;
  uint32_t source = builder.buffer("source", DataType::f32, {kItems, 16});
  uint32_t ring = builder.buffer("ring", DataType::f32, {2, 16});
  uint32_t sink = builder.buffer("sink", DataType::f32, {kItems, 16});
  fb::ProgramT& program = builder.program("pipe", 2);
  program.events = {"filled", "emptied"};
  uint32_t port = PlanBuilder::input(program, "x", source);
  PlanBuilder::output(program, "y", sink);
  CommandList& main = program.streams[0]->commands;
  builder.copyIn(main, port, {source});
  CommandList& consumer = PlanBuilder::repeat(main, kItems / 2);
  CommandList& two = PlanBuilder::repeat(consumer, 2);
  PlanBuilder::wait(two, 0);
  builder.copy(two, {ring, 0, 64, {0, 64}}, {sink, 0, 64, {128, 64}});
  PlanBuilder::record(two, 1);
  // The source is there before the other stream starts: a third event.
  program.events.push_back("loaded");
  main.insert(main.begin() + 1, std::make_unique<fb::CommandT>());
  main[1]->work.Set(fb::RecordT());
  main[1]->work.AsRecord()->event = 2;
  CommandList& other = program.streams[1]->commands;
  PlanBuilder::wait(other, 2);
  CommandList& producer = PlanBuilder::repeat(PlanBuilder::repeat(other, kItems / 2), 2);
  PlanBuilder::wait(producer, 1, 2);
  builder.copy(producer, {source, 0, 64, {128, 64}}, {ring, 0, 64, {0, 64}});
  PlanBuilder::record(producer, 0);

  Session session = open(builder, options());
  std::vector<float> input = counting(kItems * 16);
  const int64_t shape[] = {kItems, 16};
  HostTensorView x = viewOf(input, DataType::f32, shape);
  ProgramId pipe = programOf(session, "pipe");
  for (int run = 0; run < 3; ++run) {
    runOnce(session, pipe, {&x, 1});
    EXPECT_EQ(valuesOf<float>(session.output(pipe, 0)), input);
  }
}

/// Prefix sums: row i + 1 = row i + row i + 1, through operands that overlap from one iteration to the next.
TEST_P(OnThreads, RepeatsMoveOperandsByTheirStrides) {
  PlanBuilder builder;
  uint32_t rows = builder.buffer("rows", DataType::f32, {5, 16});
  uint32_t add = builder.kernel("test_add", 3);
  fb::ProgramT& program = builder.program("scan");
  CommandList& commands = program.streams[0]->commands;
  builder.copyIn(commands, PlanBuilder::input(program, "x", rows), {rows});
  CommandList& body = PlanBuilder::repeat(commands, 4);
  builder.launch(body, add, {{rows, 0, 64, {64}}, {rows, 64, 64, {64}}}, {{rows, 64, 64, {64}}});
  PlanBuilder::output(program, "y", rows);

  Session session = open(builder, options());
  std::vector<float> ones(80, 1.0f), sums(80);
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>(i / 16 + 1);
  const int64_t shape[] = {5, 16};
  HostTensorView x = viewOf(ones, DataType::f32, shape);
  ProgramId scan = programOf(session, "scan");
  for (int run = 0; run < 2; ++run) {  // the second run begins where the first did
    runOnce(session, scan, {&x, 1});
    EXPECT_EQ(valuesOf<float>(session.output(scan, 0)), sums);
  }
}

TEST_P(OnThreads, RepeatsGoBackwardsAndNest) {
  PlanBuilder builder;
  uint32_t from = builder.buffer("from", DataType::f32, {2, 3, 16});
  uint32_t to = builder.buffer("to", DataType::f32, {2, 3, 16});
  fb::ProgramT& program = builder.program("reverse");
  CommandList& commands = program.streams[0]->commands;
  builder.copyIn(commands, PlanBuilder::input(program, "x", from), {from});
  CommandList& inner = PlanBuilder::repeat(PlanBuilder::repeat(commands, 2), 3);
  builder.copy(inner, {from, 320, 64, {-192, -64}}, {to, 0, 64, {192, 64}});
  PlanBuilder::output(program, "y", to);

  Session session = open(builder, options());
  std::vector<float> input = counting(96), reversed(96);
  for (size_t i = 0; i < 96; ++i) reversed[i] = input[(5 - i / 16) * 16 + i % 16];
  const int64_t shape[] = {2, 3, 16};
  HostTensorView x = viewOf(input, DataType::f32, shape);
  ProgramId reverse = programOf(session, "reverse");
  runOnce(session, reverse, {&x, 1});
  EXPECT_EQ(valuesOf<float>(session.output(reverse, 0)), reversed);
}

TEST_P(OnThreads, EachRunTakesTheNextInputSlot) {
  PlanBuilder builder(3);
  uint32_t x = builder.slotBuffer("x", DataType::f32, {16});
  uint32_t all = builder.buffer("all", DataType::f32, {3, 16});
  fb::ProgramT& program = builder.program("step");
  builder.copyIn(program.streams[0]->commands, PlanBuilder::input(program, "x", x), {x});
  PlanBuilder::output(program, "x", x);
  // The slots lie one behind the other from offset 0; `all` reads the whole of them through another buffer.
  fb::ProgramT& look = builder.program("look");
  builder.plan.buffers[all]->offset = builder.plan.buffers[x]->offset;
  PlanBuilder::output(look, "all", all);

  Session session = open(builder, options());
  const int64_t shape[] = {16};
  ProgramId step = programOf(session, "step"), watch = programOf(session, "look");
  for (int run = 0; run < 4; ++run) {
    std::vector<float> value(16, static_cast<float>(run));
    HostTensorView view = viewOf(value, DataType::f32, shape);
    runOnce(session, step, {&view, 1});
    EXPECT_EQ(valuesOf<float>(session.output(step, 0)), value) << "in the slot of run " << run;
  }
  std::vector<float> slots = valuesOf<float>(session.output(watch, 0));
  EXPECT_EQ(slots[0], 3);  // run 3 took slot 0 again
  EXPECT_EQ(slots[16], 1);
  EXPECT_EQ(slots[32], 2);
}

TEST_P(OnThreads, CopiesPartsOfAnInputWithinARepeat) {
  PlanBuilder builder;
  uint32_t x = builder.buffer("x", DataType::f32, {4, 16});
  uint32_t swapped = builder.buffer("swapped", DataType::f32, {4, 16});
  fb::ProgramT& program = builder.program("upload");
  uint32_t port = PlanBuilder::input(program, "x", x);
  CommandList& body = PlanBuilder::repeat(program.streams[0]->commands, 4);
  builder.copyIn(body, port, {swapped, 192, 64, {-64}});
  auto& host = body[0]->work.AsCopy()->from = std::make_unique<fb::OperandT>();
  host->buffer = x;
  host->size = 64;
  host->strides = {64};
  PlanBuilder::output(program, "y", swapped);

  Session session = open(builder, options());
  std::vector<float> input = counting(64), expected(64);
  for (size_t i = 0; i < 64; ++i) expected[i] = input[(3 - i / 16) * 16 + i % 16];
  const int64_t shape[] = {4, 16};
  HostTensorView view = viewOf(input, DataType::f32, shape);
  ProgramId upload = programOf(session, "upload");
  for (int run = 0; run < 2; ++run) {
    runOnce(session, upload, {&view, 1});
    EXPECT_EQ(valuesOf<float>(session.output(upload, 0)), expected);
  }
}

// Several tiles for each thread, and a last one cut short.
TEST_P(OnThreads, LargeCopies) {
  constexpr int64_t kElements = 200'003;
  PlanBuilder builder;
  uint32_t x = builder.buffer("x", DataType::f32, {kElements});
  uint32_t y = builder.buffer("y", DataType::f32, {kElements});
  fb::ProgramT& program = builder.program("copy");
  CommandList& commands = program.streams[0]->commands;
  builder.copyIn(commands, PlanBuilder::input(program, "x", x), {x});
  builder.copy(commands, {x}, {y});
  PlanBuilder::output(program, "y", y);

  Session session = open(builder, options());
  std::vector<float> input = counting(kElements);
  const int64_t shape[] = {kElements};
  HostTensorView view = viewOf(input, DataType::f32, shape);
  ProgramId copy = programOf(session, "copy");
  runOnce(session, copy, {&view, 1});
  EXPECT_EQ(valuesOf<float>(session.output(copy, 0)), input);
}

// CUDA cannot copy onto itself.
TEST(HostExecutor, CopiesWithinABuffer) {
  constexpr int64_t kElements = 200'003, kMoved = kElements - 16;
  PlanBuilder builder;
  uint32_t x = builder.buffer("x", DataType::f32, {kElements});
  fb::ProgramT& program = builder.program("shift");
  CommandList& commands = program.streams[0]->commands;
  builder.copyIn(commands, PlanBuilder::input(program, "x", x), {x});
  builder.copy(commands, {x, 0, kMoved * 4}, {x, 64, kMoved * 4});
  PlanBuilder::output(program, "x", x);

  Session session = open(builder, {.threads = 2});
  std::vector<float> input = counting(kElements), expected = input;
  std::copy_n(input.begin(), kMoved, expected.begin() + 16);
  const int64_t shape[] = {kElements};
  HostTensorView view = viewOf(input, DataType::f32, shape);
  ProgramId shift = programOf(session, "shift");
  runOnce(session, shift, {&view, 1});
  EXPECT_EQ(valuesOf<float>(session.output(shift, 0)), expected);
}

template <typename T>
void expectFilled(T element, size_t count, std::vector<uint8_t> pattern) {
  PlanBuilder builder;
  uint32_t to = builder.buffer("to", DataType::i8, {static_cast<int64_t>(count * sizeof(T))});
  fb::ProgramT& program = builder.program("fill");
  builder.fill(program.streams[0]->commands, {to}, std::move(pattern));
  PlanBuilder::output(program, "to", to);
  Session session = open(builder, {.check_memory = true});
  ProgramId fill = programOf(session, "fill");
  runOnce(session, fill);
  EXPECT_EQ(valuesOf<T>(session.output(fill, 0)), std::vector<T>(count, element));
}

TEST(Executor, FillsWithElementsOfEverySize) {
  for (size_t count : {1, 3, 17}) {
    expectFilled<uint8_t>(0x5a, count, patternOf<uint8_t>(0x5a));
    expectFilled<uint16_t>(0x1234, count, patternOf<uint16_t>(0x1234));
    expectFilled<float>(1.5f, count, patternOf(1.5f));
    expectFilled<double>(-2.25, count, patternOf(-2.25));
    expectFilled<int64_t>(0, count, {});
  }
}

TEST(Executor, ManyTilesGiveTheSameOnAnyNumberOfThreads) {
  PlanBuilder builder;
  uint32_t x = builder.buffer("x", DataType::f32, {1000, 16});
  uint32_t y = builder.buffer("y", DataType::f32, {1000, 16});
  uint32_t twice = builder.kernel("test_double", 2);
  fb::ProgramT& program = builder.program("predict");
  builder.copyIn(program.streams[0]->commands, PlanBuilder::input(program, "x", x), {x});
  builder.launch(program.streams[0]->commands, twice, {{x}}, {{y}}, 1000, 7);
  PlanBuilder::output(program, "y", y);
  std::vector<float> input = counting(16000), expected = input;
  for (float& value : expected) value *= 2;
  const int64_t shape[] = {1000, 16};
  HostTensorView view = viewOf(input, DataType::f32, shape);
  for (int threads : {1, 2, 3, 5, 16}) {
    Session session = open(builder, {.threads = threads});
    ProgramId predict = programOf(session, "predict");
    runOnce(session, predict, {&view, 1});
    EXPECT_EQ(valuesOf<float>(session.output(predict, 0)), expected) << threads << " threads";
  }
}

TEST(HostExecutor, KeepsTheTimesOfTheLastCommands) {
  Session session = open(everythingPlan(), {.profile_events = 4});
  ASSERT_TRUE(session.initialize().ok());
  ASSERT_TRUE(session.initialize().ok());
  std::vector<ProfileEvent> events = session.profile();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].command, events[1].command);
  EXPECT_LE(events[0].begin_ns, events[0].end_ns);
  EXPECT_LE(events[0].end_ns, events[1].begin_ns);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(session.initialize().ok());
  EXPECT_EQ(session.profile().size(), 4u) << "older ones are overwritten";
}

}  // namespace
}  // namespace gpuc::test
