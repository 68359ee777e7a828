// Steps as CUDA graphs: the bits are those of single launches, whatever happens between steps and in
// whatever order streams go on; and what cannot be captured is launched as before.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "runtime/base/warn.h"
#include "test/runtime/cuda/test_kernels.h"
#include "test/runtime/graphs_plan.h"

namespace gpuc::test {
namespace {

TEST(Graphs, GiveTheBitsOfTheHostWhateverTheOrder) {
  for (uint32_t slots : {1u, 2u, 3u}) {
    const auto expected = resultsOf(graphsPlan(slots, TargetKind::host));
    for (bool no_graphs : {false, true}) {
      PlanBuilder builder = graphsPlan(slots, TargetKind::cuda);
      builder.plan.no_graphs = no_graphs;
      for (uint64_t seed = 0; seed < 60; ++seed) {
        FakeGpu gpu(seed);
        defineTestKernels(gpu);
        ASSERT_EQ(resultsOf(builder), expected) << slots << " slots, seed " << seed;
        ASSERT_EQ(gpu.count("cuGraphLaunch") == 0, no_graphs);
      }
    }
  }
}

TEST(Graphs, ShowAMissingWait) {
  const auto expected = resultsOf(graphsPlan(2, TargetKind::host));
  for (size_t stream : {0, 1}) {
    PlanBuilder builder = graphsPlan(2, TargetKind::cuda);
    CommandList& commands = builder.plan.programs[0]->streams[stream]->commands;
    ASSERT_EQ(commands[0]->work.type, fb::Work::Wait);
    commands.erase(commands.begin());
    bool is_shown = false;
    for (uint64_t seed = 0; seed < 60 && !is_shown; ++seed) {
      FakeGpu gpu(seed);
      defineTestKernels(gpu);
      is_shown = resultsOf(builder) != expected;
    }
    EXPECT_TRUE(is_shown) << "without the wait of stream " << stream;
  }
}

class OneStep : public testing::Test {
 protected:
  OneStep() { defineTestKernels(gpu_); }

  FakeGpu gpu_{};
};

/// The first run launches what is captured at the second: one graph for each slot, and one for all where no
/// address goes by it. Then a step is two graphs, an upload and what joins the streams.
TEST_F(OneStep, IsCapturedAtItsSecondRun) {
  FedSession use(graphsPlan(3, TargetKind::cuda));
  auto countsOfRun = [&] {
    gpu_.clearLog();
    use.run("step");
    std::string counts;
    for (const char* call : {"cuStreamBeginCapture", "cuGraphInstantiate", "cuGraphUpload", "cuGraphLaunch",
                             "cuLaunchKernel", "cublasLtMatmul", "cuMemcpyHtoDAsync"})
      counts += std::to_string(gpu_.count(call)) + " ";
    return counts;
  };
  EXPECT_EQ(countsOfRun(), "0 0 0 0 6 1 1 ");
  // 3 graphs of 4 launches, one of 2.
  EXPECT_EQ(countsOfRun(), "4 4 4 2 14 1 1 ");
  for (int i = 0; i < 6; ++i) EXPECT_EQ(countsOfRun(), "0 0 0 2 0 0 1 ");
  EXPECT_EQ(gpu_.calls.size(), 2u + 1u + 2u + 2u + 1u + 2u) << "context, staging; graphs, upload, events";
}

/// `init` runs once.
TEST_F(OneStep, IsNotCapturedAtItsFirstRun) {
  FedSession use(graphsPlan(1, TargetKind::cuda));
  for (const char* program : {"look", "step"}) use.run(program);
  EXPECT_EQ(gpu_.count("cuStreamBeginCapture"), 0u);
}

/// With one slot the next batch is uploaded as soon as the first of the two graphs has read this one.
TEST(Graphs, LeaveRoomForTheNextBatch) {
  bool is_beside = false;
  for (uint64_t seed = 0; seed < 60 && !is_beside; ++seed) {
    FakeGpu gpu(seed);
    defineTestKernels(gpu);
    FedSession use(graphsPlan(1, TargetKind::cuda));
    for (int i = 0; i < 4; ++i) use.run("step");
    gpu.clearLog();
    for (int i = 0; i < 2; ++i) use.run("step");
    use.output("step");
    int matmuls = 0, uploads = 0;
    for (const FakeGpu::Done& done : gpu.done) {
      matmuls += done.kind == FakeWork::Kind::matmul;
      uploads += done.call == std::string("cuMemcpyHtoDAsync");
      is_beside |= uploads == 2 && matmuls == 0;
    }
  }
  EXPECT_TRUE(is_beside);
}

/// Whatever call of a capture fails: it is said once, and the step is launched as before.
TEST(Graphs, ThatFailLeaveStepsAsTheyWere) {
  const auto expected = resultsOf(graphsPlan(2, TargetKind::host));
  const PlanBuilder builder = graphsPlan(2, TargetKind::cuda);
  std::vector<std::string> names;
  size_t before = 0;
  {
    FakeGpu gpu;
    defineTestKernels(gpu);
    FedSession use(builder);
    for (int i = 0; i < 2; ++i) use.run("step");
    auto isCapture = [](const auto& call) { return call.name == std::string("cuStreamBeginCapture"); };
    const auto begin = std::find_if(gpu.calls.begin(), gpu.calls.end(), isCapture) - 1;  // cuMemGetInfo
    before = static_cast<size_t>(begin - gpu.calls.begin());
    for (auto call = begin; call != gpu.calls.end(); ++call) names.push_back(call->name);
    while (names.back() != "cuMemGetInfo") names.pop_back();
  }
  ASSERT_GT(names.size(), 20u);
  for (size_t i = 0; i < names.size(); ++i) {
    SCOPED_TRACE("call " + std::to_string(i) + ": " + names[i]);
    FakeGpu gpu;
    defineTestKernels(gpu);
    const bool gives = names[i] == "cuGraphDestroy";
    gpu.may_leak = gives;
    gpu.failCall(before + i + 1, CUDA_ERROR_NOT_SUPPORTED);
    const KeptWarnings warnings;
    ASSERT_EQ(resultsOf(builder), expected);
    EXPECT_EQ(gpu.count("cuGraphLaunch") > 0, gives);
    if (gives) continue;
    ASSERT_EQ(warnings.lines().size(), 1u);
    const std::string& said = warnings.lines()[0];
    EXPECT_EQ(said.find("program 'step' is launched command by command, not as CUDA graphs: " + names[i]), 0u)
        << said;
  }
}

/// Repeats are unrolled; a graph of too many nodes would take more memory than launches take time.
TEST_F(OneStep, OfVeryManyCommandsIsNotCaptured) {
  PlanBuilder builder(1, TargetKind::cuda);
  const uint32_t x = builder.buffer("x", DataType::f32, {16});
  CommandList& commands = builder.program("step").streams[0]->commands;
  builder.fill(PlanBuilder::repeat(PlanBuilder::repeat(commands, 200), 101), {x}, patternOf(1.0f));
  Session session = open(builder);
  for (int i = 0; i < 3; ++i) {
    gpu_.clearLog();
    runOnce(session, programOf(session, "step"));
  }
  EXPECT_EQ(gpu_.count("cuMemsetD32Async"), 200u * 101u);
}

/// What may not happen while a stream is captured ends the capture, on the fake as on a GPU.
TEST_F(OneStep, CannotBeCapturedWithWhatWaitsOrAllocates) {
  const FedSession use(graphsPlan(1, TargetKind::cuda));  // whose context is current
  static const cuda::Driver* driver;                      // EXPECT_NONFATAL_FAILURE takes no others
  static CUstream stream;
  static CUevent event;
  driver = *cuda::Driver::get();
  cuda::Stream made = *cuda::createStream(*driver);
  cuda::Event made_event = *cuda::createEvent(*driver);
  stream = made.get();
  event = made_event.get();
  using Misuse = void (*)();
  const Misuse misuses[] = {
      [] { driver->cuStreamSynchronize(stream); },
      [] { driver->cuStreamQuery(stream); },
      [] { driver->cuEventQuery(event); },
      [] { driver->cuEventSynchronize(event); },
      [] { driver->cuEventRecord(event, stream); },
      [] { driver->cuStreamWaitEvent(stream, event, 0); },
      [] { driver->cuMemAlloc(nullptr, 64); },
      [] { driver->cuMemHostAlloc(nullptr, 64, 0); },
      [] { driver->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); },
      [] { driver->cuGraphLaunch(nullptr, stream); },
  };
  for (static Misuse misuse; Misuse each : misuses) {
    misuse = each;
    ASSERT_EQ(driver->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
    EXPECT_NONFATAL_FAILURE(misuse(), "while a stream is captured");
    CUgraph graph = nullptr;
    EXPECT_EQ(driver->cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph, nullptr);
  }
  EXPECT_NONFATAL_FAILURE(driver->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
                          "not thread-local");
}

}  // namespace
}  // namespace gpuc::test
