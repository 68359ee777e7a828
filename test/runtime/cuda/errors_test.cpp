// What goes wrong on a GPU becomes one line that names the call, and the cure where there is one; and nothing
// that was made before is left behind.
#include <gtest/gtest.h>

#include "runtime/base/warn.h"
#include "test/runtime/cuda/test_kernels.h"
#include "test/runtime/session_helpers.h"

namespace gpuc::test {
namespace {

std::string errorOf(const Status& status) { return status.ok() ? "" : status.message(); }

/// Everything that a session does, up to the first error. `calls`: how many it took before the end of the
/// session, whose calls no one hears of.
Status useSession(FakeGpu& gpu, size_t& calls) {
  GPUC_ASSIGN_OR_RETURN(Session session, Session::create(everythingPlan(TargetKind::cuda).parse()));
  GPUC_RETURN_IF_ERROR(session.initialize());
  GPUC_ASSIGN_OR_RETURN(ProgramId step, session.program("train_step"));
  GPUC_ASSIGN_OR_RETURN(ProgramId predict, session.program("predict"));
  std::vector<float> ones(64, 1.0f), weight(256);
  const int64_t shape[] = {4, 16};
  HostTensorView x = viewOf(ones, DataType::f32, shape);
  for (int run = 0; run < 3; ++run) GPUC_RETURN_IF_ERROR(session.run(step, {&x, 1}));
  GPUC_RETURN_IF_ERROR(session.wait());
  GPUC_RETURN_IF_ERROR(session.readVariable("fc1.weight", std::as_writable_bytes(std::span(weight))));
  GPUC_RETURN_IF_ERROR(session.writeVariable("fc1.weight", std::as_bytes(std::span(weight))));
  session.output(step, 0);                              // copies; an error is kept…
  GPUC_RETURN_IF_ERROR(session.run(predict, {&x, 1}));  // …until here
  GPUC_RETURN_IF_ERROR(session.wait());
  calls = gpu.calls.size();
  return okStatus();
}

/// The same of a plan that convolves.
Status useConvolutions(FakeGpu& gpu, size_t& calls) {
  GPUC_ASSIGN_OR_RETURN(Session session,
                        Session::create(convolutionsPlan(DataType::f32, TargetKind::cuda).parse()));
  GPUC_ASSIGN_OR_RETURN(ProgramId predict, session.program("predict"));
  std::vector<float> x(864), w(135), dy(1440);
  const int64_t x_shape[] = {4, 3, 9, 8}, w_shape[] = {5, 3, 3, 3}, y_shape[] = {4, 5, 9, 8};
  const HostTensorView inputs[] = {viewOf(x, DataType::f32, x_shape), viewOf(w, DataType::f32, w_shape),
                                   viewOf(dy, DataType::f32, y_shape)};
  GPUC_RETURN_IF_ERROR(session.run(predict, inputs));
  GPUC_RETURN_IF_ERROR(session.wait());
  calls = gpu.calls.size();
  return okStatus();
}

bool gives(const std::string& call) {
  for (const char* word : {"Destroy", "Free", "Unload", "Release"})
    if (call.find(word) != std::string::npos) return true;
  return false;
}

using UseSession = Status (*)(FakeGpu&, size_t&);
class EveryCall : public testing::TestWithParam<UseSession> {};
INSTANTIATE_TEST_SUITE_P(Errors, EveryCall, testing::Values(useSession, useConvolutions));

TEST_P(EveryCall, ThatFailsIsNamed) {
  size_t calls = 0;
  std::vector<std::string> names;
  {
    FakeGpu gpu;
    defineTestKernels(gpu);
    ASSERT_EQ(errorOf(GetParam()(gpu, calls)), "");
    for (size_t i = 0; i < calls; ++i) names.push_back(gpu.calls[i].name);
  }
  ASSERT_GT(calls, 100u);
  for (size_t number = 1; number <= calls; ++number) {
    const std::string& name = names[number - 1];
    SCOPED_TRACE("call " + std::to_string(number) + ": " + name);
    FakeGpu gpu;
    defineTestKernels(gpu);
    gpu.may_leak = gives(name);
    gpu.failCall(number, CUDA_ERROR_LAUNCH_FAILED, CUBLAS_STATUS_EXECUTION_FAILED,
                 CUDNN_STATUS_EXECUTION_FAILED);
    size_t ignored = 0;
    const KeptWarnings warnings;  // of what is captured in a graph, and otherwise launched as before
    std::string error = errorOf(GetParam()(gpu, ignored));
    if (error.empty() && !warnings.lines().empty()) error = warnings.lines()[0];
    if (gives(name)) continue;  // an end that fails is no one's business
    EXPECT_NE(error.find(name + ": "), std::string::npos) << error;
    EXPECT_NE(error.find("compute-sanitizer"), std::string::npos) << "the cure: " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(Errors, ThatStayEndASessionButNotTheProcess) {
  FakeGpu gpu;
  defineTestKernels(gpu);
  gpu.may_leak = true;  // a lost context takes nothing back
  Session session = open(everythingPlan(TargetKind::cuda));
  ASSERT_EQ(errorOf(session.initialize()), "");
  gpu.lose(CUDA_ERROR_ILLEGAL_ADDRESS);
  std::vector<float> ones(64, 1.0f);
  const int64_t shape[] = {4, 16};
  HostTensorView x = viewOf(ones, DataType::f32, shape);
  ProgramId step = programOf(session, "train_step");
  std::string error = errorOf(session.run(step, {&x, 1}));
  EXPECT_NE(error.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << error;
  gpu.lose(CUDA_SUCCESS);
  EXPECT_EQ(errorOf(session.run(step, {&x, 1})), error) << "what a run left half done is not gone on from";
}

TEST(Errors, OfMemoryStateItsBytes) {
  FakeGpu gpu;
  defineTestKernels(gpu);
  PlanBuilder builder = everythingPlan(TargetKind::cuda);
  gpu.memory_bytes = builder.plan.arena_bytes - 1;
  EXPECT_EQ(Session::create(builder.parse()).message(),
            "no memory for the arena of " + std::to_string(builder.plan.arena_bytes) +
                " bytes: cuMemAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY): compile for a smaller batch, "
                "or free "
                "the GPU's memory");
  gpu.memory_bytes = builder.plan.arena_bytes;
  // x: 2 slots of 256; rows: 2 of 64; y and staged: 256 each; predict's x and y: 2 · 256 + 256.
  EXPECT_EQ(Session::create(builder.parse()).message(),
            "no pinned memory of 1920 bytes for inputs and outputs: cuMemHostAlloc: out of memory "
            "(CUDA_ERROR_OUT_OF_MEMORY): compile for a smaller batch, or free the machine's memory");
}

TEST(Errors, OfAPlanForANewerGpuNameBoth) {
  FakeGpu gpu;
  gpu.major = 7;
  gpu.minor = 5;
  Plan plan = everythingPlan(TargetKind::cuda).parse();
  EXPECT_EQ(
      Session::create(plan).message(),
      "plan compiled for cuda (sm_80), the device is too old: Fake GPU is sm_75, expected sm_80 or newer");
}

TEST(Errors, OfAPlanWithoutCodeForThisGpuNameBoth) {
  FakeGpu gpu;
  defineTestKernels(gpu);
  PlanBuilder builder = everythingPlan(TargetKind::cuda);
  builder.plan.code[0]->kind = fb::CodeKind::cubin;  // of sm_80, for sm_8x alone
  EXPECT_EQ(Session::create(builder.parse()).message(),
            "the plan's code is cubin for sm_80, the device is sm_90: compile with --target=cuda:sm_90");
}

TEST(Errors, OfAPlanForTheHostNameTheTarget) {
  FakeGpu gpu;
  EXPECT_EQ(Session::create(everythingPlan(TargetKind::host).parse(), {.device = "cuda"}).message(),
            "plan compiled for host (test), the device is cuda (sm_90, Fake GPU): compile with "
            "--target=cuda:sm_90");
}

TEST(Errors, OfCodeQuoteTheDriversLogOnOneLine) {
  FakeGpu gpu;
  defineTestKernels(gpu);
  PlanBuilder builder = everythingPlan(TargetKind::cuda);
  builder.plan.code[0]->data = {'n', 'o', 'n', 'e'};
  EXPECT_EQ(Session::create(builder.parse()).message(),
            "cuModuleLoadDataEx: the fake's words (CUDA_ERROR_INVALID_PTX) (ptx for sm_80): ptxas fatal : no "
            "version "
            "ptxas fatal : aborted");
}

TEST(Errors, OfAVariableThatIsToBeSeenInTheGpusMemoryNameTheCure) {
  FakeGpu gpu;
  defineTestKernels(gpu);
  Session session = open(everythingPlan(TargetKind::cuda));
  EXPECT_EQ(errorOf(session.variable("fc1.weight").status()),
            "variable 'fc1.weight' lies in the memory of Fake GPU: read and write it instead");
}

TEST(Errors, OfAMissingDeviceSayWhy) {
  FakeGpu gpu;
  Plan plan = everythingPlan(TargetKind::cuda).parse();
  EXPECT_EQ(Session::create(plan, {.device = "cuda:2"}).message(),
            "no CUDA device 2: this machine has 1, cuda:0 to cuda:0");
  gpu.devices = 0;
  EXPECT_EQ(Session::create(plan).message(), "no CUDA device: NVIDIA's driver is there, but it finds no GPU");
  gpu.fail("cuDeviceGetCount", CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(
      Session::create(plan).message(),
      "no CUDA device: cuDeviceGetCount: the fake's words (CUDA_ERROR_NO_DEVICE): no GPU is visible to this "
      "process (see CUDA_VISIBLE_DEVICES)");
}

TEST(Errors, OfAnUnknownNumberStillNameTheCall) {
  FakeGpu gpu;
  gpu.fail("cuDevicePrimaryCtxRetain", static_cast<CUresult>(998));
  EXPECT_EQ(Session::create(everythingPlan(TargetKind::cuda).parse()).message(),
            "cuDevicePrimaryCtxRetain: error 998, which this driver has no words for");
}

TEST(LibraryVersion, OfCublasLtIsHeldAgainstThePlans) {
  FakeGpu gpu;
  defineTestKernels(gpu);
  gpu.blas_version = 130205;
  auto errorFor = [](const std::string& version, bool strict, std::vector<std::string>* warnings = nullptr) {
    PlanBuilder builder = everythingPlan(TargetKind::cuda);
    auto& library = *builder.plan.libraries.emplace_back(std::make_unique<fb::LibraryT>());
    library.name = "cublasLt";
    library.version = version;
    Result<Session> session = Session::create(builder.parse(), {.strict = strict});
    if (session.ok() && warnings) *warnings = session->warnings();
    return errorOf(session.status());
  };
  std::vector<std::string> warnings;
  EXPECT_EQ(errorFor("13.2.0", true), "");
  EXPECT_EQ(errorFor("13.1.0", false, &warnings), "");
  EXPECT_EQ(warnings,
            std::vector<std::string>{"plan compiled for cublasLt 13.1.0, found 13.2.5: bits may differ"});
  EXPECT_NE(errorFor("13.1.0", true).find("--strict refuses"), std::string::npos);
  EXPECT_NE(errorFor("12.8.0", false).find("another major version"), std::string::npos);
}

}  // namespace
}  // namespace gpuc::test
