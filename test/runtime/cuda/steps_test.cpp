// What a step costs the host: no allocation, no wait, and only calls that enqueue.
#include <gtest/gtest.h>

#include <set>

#include "runtime/tooling/allocation_hook.h"
#include "test/runtime/cuda/test_kernels.h"
#include "test/runtime/session_helpers.h"

namespace gpuc::test {
namespace {

constexpr int64_t kShape[] = {4, 16};

class StepsOnFakeGpu : public testing::TestWithParam<uint64_t> {
 protected:
  StepsOnFakeGpu() : gpu_(GetParam()) { defineTestKernels(gpu_); }

  FakeGpu gpu_;
  std::vector<float> ones_ = std::vector<float>(64, 1.0f);
  HostTensorView x_ = viewOf(ones_, DataType::f32, kShape);
};
INSTANTIATE_TEST_SUITE_P(Seeds, StepsOnFakeGpu, testing::Values(0, 1, 2, 3));

TEST_P(StepsOnFakeGpu, AllocateNothing) {
  Session session = open(everythingPlan(TargetKind::cuda));
  ASSERT_TRUE(session.initialize().ok());
  ProgramId step = programOf(session, "train_step"), predict = programOf(session, "predict");
  auto work = [&] {
    for (int i = 0; i < 100; ++i) {
      gpu_.clearLog();
      if (!session.run(step, {&x_, 1}, 3).ok() || !session.run(predict, {&x_, 1}).ok() ||
          !session.run(step, {&x_, 1}).ok() || !session.wait().ok() || !session.output(step, 0).data)
        return false;
    }
    return true;
  };
  ASSERT_TRUE(work());
  AllocationCount before = allocationCount();
  bool worked = work();
  AllocationCount after = allocationCount();
  ASSERT_TRUE(worked);
  EXPECT_EQ(after.total() - before.total(), 0);
}

TEST_P(StepsOnFakeGpu, OnlyEnqueue) {
  const std::set<std::string>
      allowed = {"cuCtxSetCurrent", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync",
                 "cuMemsetD8Async", "cuMemsetD16Async",  "cuMemsetD32Async",  "cuMemsetD2D32Async",
                 "cuLaunchKernel",  "cuEventRecord",     "cuStreamWaitEvent", "cublasLtMatmul",
                 "cuGraphLaunch",   "cuEventSynchronize"};  // of a slot's last upload: see the next test
  Session session = open(everythingPlan(TargetKind::cuda));
  ASSERT_TRUE(session.initialize().ok());
  ProgramId step = programOf(session, "train_step");
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(session.run(step, {&x_, 1}).ok());  // the second captures
  gpu_.clearLog();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(session.run(step, {&x_, 1}).ok());
  for (const FakeGpu::Call& call : gpu_.calls) EXPECT_TRUE(allowed.count(call.name)) << call.name;
  EXPECT_EQ(gpu_.count("cublasLtMatmul"), 20u) << "alone before the record that frees the slot";
  EXPECT_EQ(gpu_.count("cuGraphLaunch"), 20u);
  ASSERT_TRUE(session.wait().ok());
  EXPECT_EQ(gpu_.count("cuStreamSynchronize"), 2u) << "of wait(): one for each stream";
}

TEST(Steps, DoNotWaitForAGpuThatKeepsUp) {
  FakeGpu gpu;
  defineTestKernels(gpu);
  Session session = open(everythingPlan(TargetKind::cuda));
  ASSERT_TRUE(session.initialize().ok());
  std::vector<float> ones(64, 1.0f);
  HostTensorView x = viewOf(ones, DataType::f32, kShape);
  gpu.clearLog();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(session.run(programOf(session, "train_step"), {&x, 1}).ok());
  EXPECT_EQ(gpu.countBlocked(), 0u);
}

/// A GPU that never begins on its own: as many runs as there are slots are enqueued without a wait; the next
/// waits for the upload whose staging it takes, and for nothing else.
TEST(Steps, RunAheadByTheirSlots) {
  FakeGpu gpu(/*seed=*/1);  // as late as can be
  defineTestKernels(gpu);
  Session session = open(everythingPlan(TargetKind::cuda));
  ASSERT_TRUE(session.initialize().ok());
  std::vector<float> ones(64, 1.0f);
  HostTensorView x = viewOf(ones, DataType::f32, kShape);
  ProgramId step = programOf(session, "train_step");
  gpu.clearLog();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(session.run(step, {&x, 1}).ok());
  EXPECT_EQ(gpu.countBlocked(), 0u);
  EXPECT_TRUE(gpu.done.empty()) << "the GPU has begun: the test says nothing";
  ASSERT_TRUE(session.run(step, {&x, 1}).ok());
  EXPECT_EQ(gpu.countBlocked(), 1u);
  EXPECT_EQ(gpu.count("cuStreamSynchronize"), 0u);
  ASSERT_TRUE(session.wait().ok());
}

/// What the caller gave may be overwritten as soon as run() returns, even if the GPU has not begun.
TEST(Steps, TakeTheBatchWithThem) {
  FakeGpu gpu(/*seed=*/1);
  defineTestKernels(gpu);
  Session session = open(everythingPlan(TargetKind::cuda));
  ASSERT_TRUE(session.initialize().ok());
  std::vector<float> batch(64, 1.0f);
  HostTensorView x = viewOf(batch, DataType::f32, kShape);
  ProgramId step = programOf(session, "train_step");
  ASSERT_TRUE(session.run(step, {&x, 1}).ok());
  std::fill(batch.begin(), batch.end(), -1.0f);
  ASSERT_TRUE(session.wait().ok());
  EXPECT_EQ(valuesOf<float>(session.output(step, 0)), std::vector<float>(64, 16.0f));
}

TEST(Arena, OfAGpuIsOneAllocationAndPinnedMemoryAnother) {
  FakeGpu gpu;
  defineTestKernels(gpu);
  PlanBuilder builder = everythingPlan(TargetKind::cuda);
  Session session = open(builder, {.check_memory = true});
  ASSERT_TRUE(session.initialize().ok());
  std::vector<float> ones(64, 1.0f);
  HostTensorView x = viewOf(ones, DataType::f32, kShape);
  for (int i = 0; i < 3; ++i) runOnce(session, programOf(session, "train_step"), {&x, 1});
  EXPECT_EQ(gpu.count("cuMemAlloc"), 1u);
  EXPECT_EQ(gpu.count("cuMemHostAlloc"), 1u);
  EXPECT_EQ(session.memory().arena_bytes, builder.plan.arena_bytes);
  EXPECT_EQ(session.memory().touched_bytes, builder.plan.arena_bytes);
  EXPECT_EQ(session.memory().by_category.sum(), builder.plan.arena_bytes);
  EXPECT_EQ(session.memory().arena_bytes + session.memory().staging_bytes, gpu.usedBytes());
  EXPECT_GT(session.memory().staging_bytes, 0u);
  EXPECT_EQ(session.memory().library_bytes, gpu.blas_context_bytes);
  EXPECT_EQ(session.memory().graph_bytes, gpu.graph_bytes) << "one, of the step";
  Result<std::unique_ptr<Device>> device = openDevice("cuda", TargetKind::cuda);
  ASSERT_TRUE(device.ok()) << device.message();
  Result<uint64_t> free = (*device)->freeMemory();
  ASSERT_TRUE(free.ok()) << free.message();
  EXPECT_EQ(*free, gpu.memory_bytes - gpu.usedBytes() - gpu.blas_context_bytes - gpu.graph_bytes);
}

/// As long as a view of an output lives, so does the memory that it shows.
TEST(Arena, OfAGpuOutlivesItsSessionForViews) {
  FakeGpu gpu;
  defineTestKernels(gpu);
  OutputView kept;
  {
    Session session = open(everythingPlan(TargetKind::cuda));
    ASSERT_TRUE(session.initialize().ok());
    std::vector<float> ones(64, 1.0f);
    HostTensorView x = viewOf(ones, DataType::f32, kShape);
    const ProgramId step = programOf(session, "train_step");
    runOnce(session, step, {&x, 1});
    kept = session.output(step, 0);
  }
  EXPECT_GT(gpu.usedBytes(), 0u);
  EXPECT_EQ(valuesOf<float>(kept), std::vector<float>(64, 16.0f));
  kept = {};
  EXPECT_EQ(gpu.usedBytes(), 0u);
}

}  // namespace
}  // namespace gpuc::test
