//===- fake_gpu_recompute_test.cpp - What CUDA computes again has its bits ---===//
//
// Models of the zoo are compiled for CUDA by policies and within budgets, and train on a GPU that is not
// there (fake_gpu_test.cpp): outputs of each step and variables are those of the plan that keeps everything,
// to the bit, and the arena is the plan's.
//
//===----------------------------------------------------------------------===//

#include "test/end-to-end/plan_kernels.h"
#include "test/end-to-end/zoo_plan.h"

#include "runtime/gpuc.h"
#include "runtime/plan/live_bytes.h"
#include "runtime/tooling/program_inputs.h"

#include <cstdlib>
#include <gtest/gtest.h>

namespace gpuc::test {
namespace {

constexpr int kSteps = 20;
constexpr double kShares[] = {0.75, 0.5, 0.35}; // of the bytes that activations take where the most are live

using Bytes = std::vector<std::byte>;

void append(Bytes &bits, const HostTensorView &view) {
  const auto *data = static_cast<const std::byte *>(view.data);
  bits.insert(bits.end(), data, data + view.sizeBytes());
}

/// The outputs of all steps, then the variables.
Result<Bytes> train(const Plan &plan) {
  GPUC_ASSIGN_OR_RETURN(Session session, Session::create(plan, {.threads = 1, .seed = 3}));
  EXPECT_EQ(session.memory().arena_bytes, plan.info().arena_bytes);
  GPUC_RETURN_IF_ERROR(session.initialize());
  GPUC_ASSIGN_OR_RETURN(ProgramId step, session.program("train_step"));
  const ProgramInfo &program = plan.info().programs[step.index];
  Bytes bits;
  for (int number = 0; number < kSteps; ++number) {
    GPUC_ASSIGN_OR_RETURN(ProgramInputs inputs,
                          ProgramInputs::gather(program, {}, static_cast<uint64_t>(number)));
    GPUC_RETURN_IF_ERROR(session.run(step, inputs.views()));
    GPUC_RETURN_IF_ERROR(session.wait());
    for (size_t output = 0; output < program.outputs.size(); ++output)
      append(bits, session.output(step, output));
  }
  for (const VariableInfo &variable : plan.info().variables) {
    Bytes bytes(static_cast<size_t>(variable.spec.sizeBytes()));
    GPUC_RETURN_IF_ERROR(session.readVariable(variable.spec.name, bytes));
    bits.insert(bits.end(), bytes.begin(), bytes.end());
  }
  return bits;
}

struct Trained {
  Plan plan;
  Bytes bits;
};

Result<Trained> trainWith(ZooSpec spec, const std::string &key) {
  spec.keys.push_back(key);
  GPUC_ASSIGN_OR_RETURN(std::unique_ptr<ZooPlan> compiled, compileZooModel(spec, "cuda:sm_90"));
  GPUC_ASSIGN_OR_RETURN(Plan plan, Plan::parse(compiled->bytes));
  PlanKernels kernels(*compiled->module, plan);
  FakeGpu gpu(/*seed=*/1);
  kernels.define(gpu);
  GPUC_ASSIGN_OR_RETURN(Bytes bits, train(plan));
  return Trained{plan, std::move(bits)};
}

/// Within the budget, or, where nothing fits it, in the least that the error names.
Result<Trained> trainWithin(const ZooSpec &spec, uint64_t bytes) {
  constexpr std::string_view kFlag = "memory-budget=";
  Result<Trained> trained = trainWith(spec, std::string(kFlag) + std::to_string(bytes));
  const size_t cure = trained.ok() ? 0 : trained.message().find("give at least --memory-budget=");
  if (trained.ok() || cure == std::string::npos)
    return trained;
  bytes = std::stoull(trained.message().substr(trained.message().find('=', cure) + 1));
  return trainWith(spec, std::string(kFlag) + std::to_string(bytes));
}

const std::vector<ZooSpec> kModels = {
    {"linear-regression", {"batch=9"}},
    {"mlp", {"input=1x7x6", "hidden=24,24,24", "dropout=0.2", "batch=9"}},
    {"convnet", {"in_channels=1", "size=8", "batch=3"}},
    {"rnn-classifier", {"cell=rnn", "steps=6", "width=8", "hidden=16", "layers=2", "dropout=0.2", "batch=4"}},
    {"rnn-classifier",
     {"cell=lstm", "steps=6", "width=8", "hidden=16", "layers=2", "dropout=0.2", "batch=4"}},
    {"rnn-classifier", {"cell=gru", "steps=6", "width=8", "hidden=16", "layers=2", "dropout=0.2", "batch=4"}},
    {"lstm-generator", {"embedding=8", "hidden=16", "length=8", "dropout=0.2", "batch=4"}},
    {"transformer",
     {"width=16", "heads=2", "layers=2", "feedforward=32", "src_vocabulary=30", "tgt_vocabulary=40",
      "length=20", "batch=2"}},
    {"resnet18", {"size=32", "width=4", "classes=7", "batch=2"}},
    {"resnet50", {"size=32", "width=4", "classes=7", "batch=2"}},
    {"gpt2", {"layers=2", "heads=2", "width=16", "length=24", "vocabulary=50", "dropout=0.1", "batch=1"}},
};

bool isDaily(const ZooSpec &spec) {
  const bool isPlain = spec.keys[0] == "precision=f32" && spec.keys[1] == "accumulate=1";
  const bool isMixed = spec.keys[0] == "precision=bf16" && spec.keys[1] == "accumulate=4";
  return (spec.model == "gpt2" && isPlain) || (spec.model == "mlp" && isMixed);
}

/// All of them, GPUC_ALL_PLANS says, where there is time.
std::vector<ZooSpec> cases() {
  std::vector<ZooSpec> specs;
  for (const ZooSpec &model : kModels)
    for (const char *precision : {"precision=f32", "precision=bf16"})
      for (const char *accumulate : {"accumulate=1", "accumulate=4"}) {
        ZooSpec spec = model;
        spec.keys.insert(spec.keys.begin(), {precision, accumulate});
        if (std::getenv("GPUC_ALL_PLANS") || isDaily(spec))
          specs.push_back(std::move(spec));
      }
  return specs;
}

class RecomputedOnFakeGpu : public testing::TestWithParam<ZooSpec> {};

INSTANTIATE_TEST_SUITE_P(Zoo, RecomputedOnFakeGpu, testing::ValuesIn(cases()),
                         [](const auto &info) { return nameOf(info.param); });

TEST_P(RecomputedOnFakeGpu, TrainsToTheBitsOfThePlanThatKeepsEverything) {
  Result<Trained> kept = trainWith(GetParam(), "checkpoint=none");
  ASSERT_TRUE(kept.ok()) << kept.message();
  for (const char *policy : {"checkpoint=sqrt", "checkpoint=full"}) {
    Result<Trained> again = trainWith(GetParam(), policy);
    ASSERT_TRUE(again.ok()) << policy << ": " << again.message();
    EXPECT_EQ(again->bits, kept->bits) << policy;
  }
  const uint64_t activations = memoryByCategory(kept->plan.root()).activation;
  for (double share : kShares) {
    const uint64_t freed = static_cast<uint64_t>(static_cast<double>(activations) * (1 - share));
    Result<Trained> again = trainWithin(GetParam(), kept->plan.info().arena_bytes - freed);
    ASSERT_TRUE(again.ok()) << share << ": " << again.message();
    EXPECT_EQ(again->bits, kept->bits) << share;
    EXPECT_LE(again->plan.info().arena_bytes, kept->plan.info().arena_bytes);
  }
}

} // namespace
} // namespace gpuc::test
