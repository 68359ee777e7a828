// Whatever stream the GPU goes on with, the bits are the same; and where an event is missing, they are not
// for some order, so that the first says something.
#include <gtest/gtest.h>

#include <optional>

#include "test/runtime/cuda/test_kernels.h"
#include "test/runtime/session_helpers.h"

namespace gpuc::test {
namespace {

constexpr uint64_t kSeeds = 150;
constexpr int kRuns = 12;

/// A copy stream that runs ahead by its slots, a compute stream that adds each batch, twice, to what it
/// holds.
///   copy:    wait(free, slots)  x → x[slot]           record(ready)
///   compute: wait(ready)        repeat 2 { sum += x[slot] }   record(free)   download sum
PlanBuilder pipelinePlan(uint32_t slots, TargetKind target) {
  PlanBuilder builder(slots, target);
  uint32_t sum = builder.variable("sum", DataType::f32, {64});
  uint32_t x = builder.slotBuffer("x", DataType::f32, {64});
  fb::ProgramT& program = builder.program("step", 2);
  program.events = {"ready", "free"};
  CommandList &compute = program.streams[0]->commands, &copies = program.streams[1]->commands;
  PlanBuilder::wait(copies, 1, slots);
  builder.copyIn(copies, PlanBuilder::input(program, "x", x), {x});
  PlanBuilder::record(copies, 0);
  PlanBuilder::wait(compute, 0);
  builder.launch(PlanBuilder::repeat(compute, 2), builder.kernel("test_add", 3), {{sum}, {x}}, {{sum}}, 4);
  PlanBuilder::record(compute, 1);
  builder.copyOut(compute, PlanBuilder::output(program, "sum", sum), {sum});
  return builder;
}

/// What kRuns runs, none of them waited for, leave in the output.
std::vector<float> resultOf(const PlanBuilder& builder) {
  Session session = open(builder);
  std::vector<float> zeros(64);
  EXPECT_TRUE(session.writeVariable("sum", std::as_bytes(std::span(zeros))).ok());
  const int64_t shape[] = {64};
  ProgramId step = programOf(session, "step");
  for (int run = 0; run < kRuns; ++run) {
    std::vector<float> input = counting(64, static_cast<float>(run * run));
    HostTensorView x = viewOf(input, DataType::f32, shape);
    EXPECT_TRUE(session.run(step, {&x, 1}).ok());
  }
  EXPECT_TRUE(session.wait().ok());
  return valuesOf<float>(session.output(step, 0));
}

std::vector<float> resultOf(const PlanBuilder& builder, uint64_t seed) {
  FakeGpu gpu(seed);
  defineTestKernels(gpu);
  return resultOf(builder);
}

TEST(Interleavings, AllGiveTheHostsBits) {
  for (uint32_t slots : {1u, 2u, 3u}) {
    std::vector<float> expected = resultOf(pipelinePlan(slots, TargetKind::host));
    PlanBuilder builder = pipelinePlan(slots, TargetKind::cuda);
    for (uint64_t seed = 0; seed < kSeeds; ++seed)
      ASSERT_EQ(resultOf(builder, seed), expected) << slots << " slots, seed " << seed;
  }
}

/// The first seed whose result is another; none if all agree.
std::optional<uint64_t> seedThatDiffers(const PlanBuilder& builder, const std::vector<float>& expected) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    if (resultOf(builder, seed) != expected) return seed;
  return std::nullopt;
}

TEST(Interleavings, ShowAMissingWait) {
  for (uint32_t slots : {1u, 2u, 3u}) {
    std::vector<float> expected = resultOf(pipelinePlan(slots, TargetKind::host));
    for (size_t stream : {0, 1}) {
      PlanBuilder builder = pipelinePlan(slots, TargetKind::cuda);
      CommandList& commands = builder.plan.programs[0]->streams[stream]->commands;
      ASSERT_EQ(commands[0]->work.type, fb::Work::Wait);
      commands.erase(commands.begin());
      EXPECT_TRUE(seedThatDiffers(builder, expected))
          << slots << " slots, without the wait of stream " << stream;
    }
  }
}

TEST(Interleavings, ShowAWaitThatIsTooLate) {
  PlanBuilder builder = pipelinePlan(2, TargetKind::cuda);
  builder.plan.programs[0]->streams[1]->commands[0]->work.AsWait()->distance = 3;  // slots: 2
  EXPECT_TRUE(seedThatDiffers(builder, resultOf(pipelinePlan(2, TargetKind::host))));
}

/// A consumer that lags by up to `distance` behind its producer, within one run: rings of events.
PlanBuilder ringPlan(uint32_t distance, TargetKind target) {
  constexpr uint64_t kItems = 24;
  PlanBuilder builder(1, target);
  uint32_t sum = builder.variable("sum", DataType::f32, {64});
  uint32_t x = builder.buffer("x", DataType::f32, {64});
  uint32_t ring = builder.buffer("ring", DataType::f32, {distance, 64});
  fb::ProgramT& program = builder.program("step", 2);
  program.events = {"filled", "emptied", "loaded"};
  CommandList &consumer = program.streams[0]->commands, &producer = program.streams[1]->commands;
  builder.copyIn(consumer, PlanBuilder::input(program, "x", x), {x});
  PlanBuilder::record(consumer, 2);
  PlanBuilder::wait(producer, 2);
  // x doubles on its way through the ring, item after item.
  auto turns = [&](CommandList& list) -> CommandList& {
    return PlanBuilder::repeat(PlanBuilder::repeat(list, kItems / distance), distance);
  };
  CommandList& produce = turns(producer);
  PlanBuilder::wait(produce, 1, distance);
  builder.launch(produce, builder.kernel("test_add", 3), {{x}, {x}}, {{ring, 0, 256, {0, 256}}}, 4);
  builder.copy(produce, {ring, 0, 256, {0, 256}}, {x});
  PlanBuilder::record(produce, 0);
  CommandList& consume = turns(consumer);
  PlanBuilder::wait(consume, 0);
  builder.launch(consume, 0, {{sum}, {ring, 0, 256, {0, 256}}}, {{sum}}, 4);
  PlanBuilder::record(consume, 1);
  builder.copyOut(consumer, PlanBuilder::output(program, "sum", sum), {sum});
  return builder;
}

TEST(Interleavings, RingsOfEventsKeepTheirDistance) {
  for (uint32_t distance : {1u, 2u, 4u}) {
    std::vector<float> expected = resultOf(ringPlan(distance, TargetKind::host));
    PlanBuilder builder = ringPlan(distance, TargetKind::cuda);
    for (uint64_t seed = 0; seed < kSeeds; ++seed)
      ASSERT_EQ(resultOf(builder, seed), expected) << "distance " << distance << ", seed " << seed;
  }
}

/// The upload of run 3 waits for the batch of run 0 to be used, not for a later one: for some order it is
/// there before run 2 computes.
TEST(Interleavings, WaitsAreNoLongerThanTheirDistance) {
  bool ahead = false;
  for (uint64_t seed = 0; seed < kSeeds && !ahead; ++seed) {
    FakeGpu gpu(seed);
    defineTestKernels(gpu);
    resultOf(pipelinePlan(3, TargetKind::cuda));
    int uploads = 0, kernels = 0;  // a run has one upload, the first is of the variable; and two launches
    for (const FakeGpu::Done& done : gpu.done) {
      uploads += done.call == std::string("cuMemcpyHtoDAsync");
      kernels += done.kind == FakeWork::Kind::kernel;
      ahead |= uploads == 1 + 4 && kernels <= 4;
    }
  }
  EXPECT_TRUE(ahead);
}

TEST(Interleavings, ShowARingThatIsTooShort) {
  PlanBuilder builder = ringPlan(2, TargetKind::cuda);
  auto& outer = *builder.plan.programs[0]->streams[1]->commands[1]->work.AsRepeat();
  outer.commands[0]->work.AsRepeat()->commands[0]->work.AsWait()->distance = 3;
  EXPECT_TRUE(seedThatDiffers(builder, resultOf(ringPlan(2, TargetKind::host))));
}

TEST(Interleavings, LeaveTheStateOfEverythingAlone) {
  const int64_t shape[] = {4, 16};
  auto run = [&](const PlanBuilder& builder) {
    Session session = open(builder);
    EXPECT_TRUE(session.initialize().ok());
    std::vector<std::vector<float>> results;
    for (const char* name : {"train_step", "train_step", "predict", "train_step", "predict", "train_step"}) {
      std::vector<float> input = counting(64, static_cast<float>(results.size()));
      HostTensorView x = viewOf(input, DataType::f32, shape);
      ProgramId id = programOf(session, name);
      EXPECT_TRUE(session.run(id, {&x, 1}).ok());
      if (results.size() % 2 == 1) EXPECT_TRUE(session.wait().ok());
      results.push_back(results.size() % 2 == 1 ? valuesOf<float>(session.output(id, 0)) : input);
    }
    EXPECT_EQ(readVariable<int64_t>(session, "step", 1)[0], 4);
    return results;
  };
  std::vector<std::vector<float>> expected = run(everythingPlan(TargetKind::host));
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    FakeGpu gpu(seed);
    defineTestKernels(gpu);
    ASSERT_EQ(run(everythingPlan(TargetKind::cuda)), expected) << "seed " << seed;
  }
}

}  // namespace
}  // namespace gpuc::test
