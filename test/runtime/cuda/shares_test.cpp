// Ranks that share out by NCCL: each gets its share of a sum, and all that they have shares of. Of 64
// elements 2 and 4 ranks have equally many, 3 and 5 do not.
#include <gtest/gtest.h>

#include "test/runtime/allocations.h"
#include "test/runtime/cuda/ranks_plan.h"

namespace gpuc::test {
namespace {

TEST(SharesOnGpus, TrainInAnyOrderOfStreams) {
  for (int count : {1, 2, 3, 4, 5})
    for (uint64_t seed = 0; seed < 24; ++seed)
      ASSERT_EQ(
          trainOnRanks(sharedStepPlan(static_cast<uint32_t>(count)), ranksOf(count, seed), expectedOf(count)),
          "")
          << count << " ranks, seed " << seed;
}

TEST(SharesOnGpus, ShowAMissingWait) {
  for (size_t stream : {0, 1})
    for (int count : {2, 3})
      EXPECT_TRUE(showsMissingWaits(sharedStepPlan(static_cast<uint32_t>(count)), stream, count))
          << "stream " << stream << " of " << count << " ranks";
}

TEST(SharesOnGpus, OfOneWithoutACommunicatorNeedNoNccl) {
  FakeGpu gpu;
  defineTestKernels(gpu);
  std::vector<float> outputs;
  const Status status = trainOn(sharedStepPlan(1), nullptr, outputs);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(outputs, expectedOf(1));
  for (const FakeGpu::Call& call : gpu.calls)
    EXPECT_EQ(std::string(call.name).find("nccl"), std::string::npos);
}

/// What a rank calls in a step.
struct Calls {
  size_t scatters = 0, gathers = 0, reductions = 0, broadcasts = 0, groups = 0, fills = 0;

  bool operator==(const Calls&) const = default;
};

Calls callsOf(const FakeGpu& gpu) {
  return {gpu.count("ncclReduceScatter"), gpu.count("ncclAllGather"),  gpu.count("ncclReduce"),
          gpu.count("ncclBroadcast"),     gpu.count("ncclGroupStart"), gpu.count("cuMemsetD8Async")};
}

/// A command is one group, of a call for each tensor, or for each rank's share of it. The last one of three,
/// which has less than the others of both tensors, has zeros behind them.
TEST(SharesOnGpus, AreOneGroupForACommand) {
  for (int count : {2, 3}) {
    const auto said = runOnFakeRanks(ranksOf(count), [&](Communicator& communicator, FakeGpu& gpu) {
      const size_t fills = communicator.rank() == 2 ? 2 : 0;
      const Calls expected = count == 2 ? Calls{2, 2, 0, 0, 2, 0} : Calls{0, 0, 6, 6, 2, fills};
      std::vector<float> outputs;
      return trainOn(sharedStepPlan(static_cast<uint32_t>(count)), &communicator, outputs, [&](int step) {
        if (step > 0)
          EXPECT_EQ(callsOf(gpu), expected) << "rank " << communicator.rank() << " of " << count;
        else
          EXPECT_EQ(gpu.count("ncclGroupStart"), 2u) << "each kind is made before the first step";
        gpu.clearLog();
        return okStatus();
      });
    });
    for (const std::string& error : said) EXPECT_EQ(error, "");
  }
}

/// One exchange needs no group, and two that are independent are one.
TEST(SharesOnGpus, GoWithOthersThatFollow) {
  PlanBuilder builder(1, TargetKind::cuda);
  builder.plan.world_size = 2;
  const uint32_t x = builder.buffer("x", DataType::f32, {64}), n = builder.buffer("n", DataType::i32, {8}),
                 x_share = builder.buffer("x_share", DataType::f32, {32}),
                 n_share = builder.buffer("n_share", DataType::i32, {4});
  CommandList& commands = builder.program("step").streams[0]->commands;
  builder.fill(commands, {x}, patternOf(1.0f));
  builder.fill(commands, {n}, patternOf(3));
  builder.reduceScatter(commands, DataType::f32, x, x_share);
  builder.reduceScatter(commands, DataType::i32, n, n_share);
  builder.allGather(commands, DataType::i32, n_share, n);
  builder.copyOut(commands, PlanBuilder::output(*builder.plan.programs[0], "n", n), {n});
  const auto said = runOnFakeRanks(ranksOf(2), [&](Communicator& communicator, FakeGpu& gpu) {
    GPUC_ASSIGN_OR_RETURN(Session session, Session::create(builder.parse(), {.communicator = &communicator}));
    gpu.clearLog();
    const ProgramId step = programOf(session, "step");
    GPUC_RETURN_IF_ERROR(session.run(step, {}));
    GPUC_RETURN_IF_ERROR(session.wait());
    EXPECT_EQ(callsOf(gpu), (Calls{.scatters = 2, .gathers = 1, .groups = 1}));
    EXPECT_EQ(valuesOf<int32_t>(session.output(step, 0)), std::vector<int32_t>(8, 6));
    return okStatus();
  });
  for (const std::string& error : said) EXPECT_EQ(error, "");
}

/// Seven elements among five ranks are 2, 2, 2, 1 and 0, of any type; what a rank has no elements for is 0.
TEST(SharesOnGpus, EndWithZeros) {
  for (DataType type : {DataType::f64, DataType::f32, DataType::f16, DataType::bf16, DataType::i64,
                        DataType::i32, DataType::i8, DataType::ui8}) {
    SCOPED_TRACE(nameOf(type));
    const auto bytes = static_cast<size_t>(sizeOf(type));
    PlanBuilder builder(1, TargetKind::cuda);
    builder.plan.world_size = 5;
    const uint32_t x = builder.variable("x", type, {7}), share = builder.variable("share", type, {2}),
                   all = builder.variable("all", type, {7});
    CommandList& commands = builder.program("step").streams[0]->commands;
    builder.reduceScatter(commands, type, x, share);
    builder.allGather(commands, type, share, all);
    const auto said = runOnFakeRanks(ranksOf(5), [&](Communicator& communicator, FakeGpu&) {
      GPUC_ASSIGN_OR_RETURN(
          Session session,
          Session::create(builder.parse(), {.check_memory = true, .communicator = &communicator}));
      // Only the first rank's part is not 0, so that its bits are the sum's, whatever they mean.
      std::vector<std::byte> part(7 * bytes), own(2 * bytes), whole(7 * bytes);
      for (size_t i = 0; i < part.size(); i += bytes)
        part[i] = std::byte(communicator.rank() == 0 ? i + 1 : 0);
      GPUC_RETURN_IF_ERROR(session.writeVariable("x", part));
      GPUC_RETURN_IF_ERROR(session.run(programOf(session, "step"), {}));
      GPUC_RETURN_IF_ERROR(session.wait());
      GPUC_RETURN_IF_ERROR(session.readVariable("share", own));
      GPUC_RETURN_IF_ERROR(session.readVariable("all", whole));
      std::vector<std::byte> expected(10 * bytes);
      for (size_t i = 0; i < 7; ++i) expected[i * bytes] = std::byte(i * bytes + 1);
      const auto begin = expected.begin() + static_cast<std::ptrdiff_t>(own.size()) * communicator.rank();
      EXPECT_TRUE(std::equal(own.begin(), own.end(), begin)) << "rank " << communicator.rank();
      EXPECT_TRUE(std::equal(whole.begin(), whole.end(), expected.begin())) << "rank " << communicator.rank();
      return okStatus();
    });
    for (const std::string& error : said) EXPECT_EQ(error, "");
  }
}

TEST(SharesOnGpus, AreOfAsManyRanksAsThePlanSays) {
  const auto said = runOnFakeRanks(ranksOf(3), [](Communicator& communicator, FakeGpu&) {
    return Session::create(sharedStepPlan(2).parse(), {.communicator = &communicator}).status();
  });
  for (const std::string& error : said)
    EXPECT_EQ(error.rfind("the plan shares variables out among 2 ranks, and there are 3: start 2", 0), 0u)
        << error;
}

TEST(SharesOnGpus, AllocateNothingInAStep) {
  AllocationCount before;
  const auto said = runOnFakeRanks(ranksOf(1), [&](Communicator& communicator, FakeGpu& gpu) {
    GPUC_ASSIGN_OR_RETURN(Session session,
                          Session::create(sharedStepPlan(1).parse(), {.communicator = &communicator}));
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
