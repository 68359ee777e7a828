// Ranks that add up by NCCL, in any order that streams allow.
#include <gtest/gtest.h>

#include "test/runtime/allocations.h"
#include "test/runtime/cuda/ranks_plan.h"

namespace gpuc::test {
namespace {

TEST(RanksOnGpus, AddUpInAnyOrderOfStreams) {
  for (int count : {1, 2, 4})
    for (uint64_t seed = 0; seed < 24; ++seed)
      ASSERT_EQ(trainOnRanks(stepPlan(), ranksOf(count, seed), expectedOf(count)), "")
          << count << " ranks, seed " << seed;
}

/// So that the test above says something.
TEST(RanksOnGpus, ShowAMissingWait) {
  for (size_t stream : {0, 1}) EXPECT_TRUE(showsMissingWaits(stepPlan(), stream, 2)) << "stream " << stream;
}

TEST(RanksOnGpus, OneWithoutACommunicatorNeedsNoNccl) {
  FakeGpu gpu;
  defineTestKernels(gpu);
  std::vector<float> outputs;
  const Status status = trainOn(stepPlan(), nullptr, outputs);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(outputs, expectedOf(1));
  for (const FakeGpu::Call& call : gpu.calls)
    EXPECT_EQ(std::string(call.name).find("nccl"), std::string::npos);
}

/// What follows one another and is independent is one exchange, and no kind of sum is the first of its kind
/// in a step.
TEST(RanksOnGpus, ExchangeAtOnceWhatFollowsOneAnother) {
  const auto said = runOnFakeRanks(ranksOf(2), [](Communicator& communicator, FakeGpu& gpu) {
    std::vector<float> outputs;
    bool is_first = true;
    return trainOn(stepPlan(), &communicator, outputs, [&](int) {
      EXPECT_EQ(gpu.count("ncclGroupStart"), gpu.count("ncclGroupEnd"));
      EXPECT_EQ(gpu.count("ncclAllReduce"), is_first ? 1 : 2) << "at first: all sums are of one kind";
      EXPECT_EQ(gpu.count("ncclGroupStart"), is_first ? 0 : 1);
      is_first = false;
      gpu.clearLog();
      return okStatus();
    });
  });
  for (const std::string& error : said) EXPECT_EQ(error, "");
}

/// What stands before and behind an exchange on one stream is a graph each; the exchange is in none.
TEST(RanksOnGpus, HaveGraphsOfWhatTheyCompute) {
  PlanBuilder builder(1, TargetKind::cuda);
  const uint32_t x = builder.buffer("x", DataType::f32, {64}),
                 sum = builder.buffer("sum", DataType::f32, {64}),
                 w = builder.variable("w", DataType::f32, {64});
  fb::ProgramT& program = builder.program("step");
  CommandList& commands = program.streams[0]->commands;
  builder.fill(commands, {x}, patternOf(1.0f));
  for (int i = 0; i < 3; ++i) builder.launch(commands, builder.kernel("test_add", 3), {{x}, {x}}, {{x}}, 4);
  builder.allReduce(commands, DataType::f32, x, sum);
  for (int i = 0; i < 4; ++i) builder.launch(commands, builder.kernel("test_add", 3), {{w}, {sum}}, {{w}}, 4);
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const auto said = runOnFakeRanks(ranksOf(2, seed), [&](Communicator& communicator, FakeGpu& gpu) {
      GPUC_ASSIGN_OR_RETURN(Session session,
                            Session::create(builder.parse(), {.communicator = &communicator}));
      const ProgramId step = programOf(session, "step");
      gpu.clearLog();
      for (int run = 0; run < 3; ++run) GPUC_RETURN_IF_ERROR(session.run(step, {}));
      GPUC_RETURN_IF_ERROR(session.wait());
      EXPECT_EQ(gpu.count("cuStreamBeginCapture"), 2u);
      EXPECT_EQ(gpu.count("cuGraphLaunch"), 4u);
      EXPECT_EQ(gpu.count("ncclAllReduce"), 3u);
      EXPECT_EQ(gpu.count("cuLaunchKernel"), 14u) << "once, and for the capture";
      std::vector<float> found(64);
      GPUC_RETURN_IF_ERROR(session.readVariable("w", std::as_writable_bytes(std::span(found))));
      EXPECT_EQ(found, std::vector<float>(64, 3 * 4 * 2 * 8.0f));
      return okStatus();
    });
    for (const std::string& error : said) EXPECT_EQ(error, "");
  }
}

/// y is the sum of sums, which must be there.
TEST(RanksOnGpus, DoNotExchangeAtOnceWhatNeedsOneAnother) {
  PlanBuilder builder(1, TargetKind::cuda);
  const uint32_t x = builder.buffer("x", DataType::f32, {64}), y = builder.buffer("y", DataType::f32, {64});
  fb::ProgramT& program = builder.program("step");
  CommandList& commands = program.streams[0]->commands;
  builder.fill(commands, {x}, patternOf(1.0f));
  builder.allReduce(commands, DataType::f32, x, y);
  builder.allReduce(commands, DataType::f32, y, x);
  CommandList& body = PlanBuilder::repeat(commands, 3);
  builder.allReduce(body, DataType::f32, x, x);
  builder.allReduce(commands, DataType::f32, x, y);
  builder.copyOut(commands, PlanBuilder::output(program, "y", y), {y});
  const auto said = runOnFakeRanks(ranksOf(2), [&](Communicator& communicator, FakeGpu& gpu) {
    GPUC_ASSIGN_OR_RETURN(Session session, Session::create(builder.parse(), {.communicator = &communicator}));
    const ProgramId step = programOf(session, "step");
    GPUC_RETURN_IF_ERROR(session.run(step, {}));
    GPUC_RETURN_IF_ERROR(session.wait());
    EXPECT_EQ(valuesOf<float>(session.output(step, 0)), std::vector<float>(64, 64.0f));
    EXPECT_EQ(gpu.count("ncclGroupStart"), 0u);
    return okStatus();
  });
  for (const std::string& error : said) EXPECT_EQ(error, "");
}

template <typename T>
std::vector<std::byte> bytesOf(std::initializer_list<T> values) {
  const auto bytes = std::as_bytes(std::span(values.begin(), values.size()));
  return {bytes.begin(), bytes.end()};
}

TEST(RanksOnGpus, AddUpElementsOfEachType) {
  const std::tuple<DataType, std::vector<std::byte>, std::vector<std::byte>> cases[] = {
      {DataType::f64, bytesOf<double>({1.5, -2}), bytesOf<double>({3, -4})},
      {DataType::f32, bytesOf<float>({1.5, -2}), bytesOf<float>({3, -4})},
      {DataType::f16, bytesOf<uint16_t>({0x3e00, 0xc000}), bytesOf<uint16_t>({0x4200, 0xc400})},
      {DataType::bf16, bytesOf<uint16_t>({0x3fc0, 0xc000}), bytesOf<uint16_t>({0x4040, 0xc080})},
      {DataType::i64, bytesOf<int64_t>({3, int64_t{1} << 40}), bytesOf<int64_t>({6, int64_t{1} << 41})},
      {DataType::i32, bytesOf<int32_t>({3, -70000}), bytesOf<int32_t>({6, -140000})},
      {DataType::i8, bytesOf<int8_t>({3, 100}), bytesOf<int8_t>({6, -56})},
      {DataType::ui8, bytesOf<uint8_t>({3, 100}), bytesOf<uint8_t>({6, 200})}};
  for (const auto& [type, part, sum] : cases) {
    SCOPED_TRACE(nameOf(type));
    PlanBuilder builder(1, TargetKind::cuda);
    const uint32_t x = builder.variable("x", type, {2});
    builder.allReduce(builder.program("step").streams[0]->commands, type, x, x);
    const auto said = runOnFakeRanks(ranksOf(2), [&](Communicator& communicator, FakeGpu&) {
      GPUC_ASSIGN_OR_RETURN(Session session,
                            Session::create(builder.parse(), {.communicator = &communicator}));
      GPUC_RETURN_IF_ERROR(session.writeVariable("x", part));
      GPUC_RETURN_IF_ERROR(session.run(programOf(session, "step"), {}));
      GPUC_RETURN_IF_ERROR(session.wait());
      std::vector<std::byte> found(part.size());
      GPUC_RETURN_IF_ERROR(session.readVariable("x", found));
      EXPECT_EQ(found, sum);
      return okStatus();
    });
    for (const std::string& error : said) EXPECT_EQ(error, "");
  }
}

TEST(RanksOnGpus, LeaveTheArenaAsItWas) {
  const auto said = runOnFakeRanks(ranksOf(2), [](Communicator& communicator, FakeGpu& gpu) {
    const PlanBuilder builder = stepPlan();
    GPUC_ASSIGN_OR_RETURN(Session session, Session::create(builder.parse(), {.check_memory = true,
                                                                             .communicator = &communicator}));
    EXPECT_EQ(session.memory().touched_bytes, 0u) << "what was added up to warm up is poisoned again";
    EXPECT_EQ(session.memory().library_bytes, gpu.nccl_bytes);
    EXPECT_EQ(gpu.count("cuMemAlloc"), 1u);
    EXPECT_EQ(gpu.usedBytes(), session.memory().arena_bytes + session.memory().staging_bytes);
    return okStatus();
  });
  for (const std::string& error : said) EXPECT_EQ(error, "");
}

TEST(RanksOnGpus, AllocateNothingInAStep) {
  AllocationCount before;
  const auto said = runOnFakeRanks(ranksOf(1), [&](Communicator& communicator, FakeGpu& gpu) {
    GPUC_ASSIGN_OR_RETURN(Session session,
                          Session::create(stepPlan().parse(), {.communicator = &communicator}));
    const ProgramId step = programOf(session, "step");
    const std::vector<float> ones(64, 1.0f);
    const HostTensorView x = viewOf(ones, DataType::f32, kShape);
    for (int run = 0; run < 200; ++run) {
      gpu.clearLog();
      if (run == 100) before = allocationCount();
      GPUC_RETURN_IF_ERROR(session.run(step, {&x, 1}));
      GPUC_RETURN_IF_ERROR(session.wait());
    }
    EXPECT_EQ(allocationCount().total() - before.total(), 0);
    return okStatus();
  });
  EXPECT_EQ(said[0], "");
}

}  // namespace
}  // namespace gpuc::test
