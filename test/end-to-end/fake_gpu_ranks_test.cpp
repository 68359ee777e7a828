//===- fake_gpu_ranks_test.cpp - Ranks on GPUs that are not there -----------===//
//
// A data-parallel plan for CUDA trains on several fake GPUs, one for each rank, a thread, that add up by a
// fake NCCL; and to the losses and variables of ranks on the host. GPUC_ALL_PLANS=1: more models, and four
// ranks.
//
//===----------------------------------------------------------------------===//

#include "test/end-to-end/drawn_batch.h"
#include "test/end-to-end/plan_kernels.h"
#include "test/end-to-end/zoo_plan.h"
#include "test/runtime/cuda/fake_ranks.h"

#include <cstdlib>
#include <map>
#include <mutex>

namespace gpuc::test {
namespace {

constexpr int kSteps = 5;

struct Case {
  ZooSpec spec;
  double tolerance;    ///< Of a variable, as of fake_gpu_test.
  bool isLong = false; ///< With GPUC_ALL_PLANS alone.
};

bool isAll() { return std::getenv("GPUC_ALL_PLANS") != nullptr; }

/// What training leaves on one rank.
struct State {
  std::vector<double> losses;
  std::map<std::string, Bytes> variables;
  std::map<std::string, DataType> types;
};

double readNumber(Session &session, ProgramId id, const std::string &name) {
  const std::vector<TensorSpec> &outputs = session.plan().info().programs[id.index].outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].name != name)
      continue;
    const OutputView view = session.output(id, i);
    if (view.type == DataType::f64)
      return *static_cast<const double *>(view.data);
    return static_cast<double>(*static_cast<const float *>(view.data));
  }
  ADD_FAILURE() << "no output " << name;
  return 0;
}

Result<State> trainOn(const Plan &plan, Communicator &ranks) {
  GPUC_ASSIGN_OR_RETURN(Session session,
                        Session::create(plan, {.threads = 1, .seed = 3, .communicator = &ranks}));
  GPUC_RETURN_IF_ERROR(session.initialize());
  GPUC_ASSIGN_OR_RETURN(const ProgramId step, session.program("train_step"));
  const ProgramInfo &program = plan.info().programs[step.index];
  State state;
  for (int run = 0; run < kSteps; ++run) {
    const auto seed = static_cast<uint64_t>(100 * ranks.rank() + run);
    GPUC_RETURN_IF_ERROR(session.run(step, Batch(program, seed).views));
    GPUC_RETURN_IF_ERROR(session.wait());
    state.losses.push_back(readNumber(session, step, "loss_sum") / readNumber(session, step, "count"));
  }
  for (const VariableInfo &variable : plan.info().variables) {
    Bytes bytes(static_cast<size_t>(variable.spec.sizeBytes()));
    GPUC_RETURN_IF_ERROR(session.readVariable(variable.spec.name, bytes));
    state.variables[variable.spec.name] = std::move(bytes);
    state.types[variable.spec.name] = variable.spec.type;
  }
  return state;
}

/// Of each rank; `seed` is that of the order in which streams go on.
std::vector<State> trainOnRanks(int count, const Plan &plan, uint64_t seed, const PlanKernels *kernels) {
  std::vector<State> states(static_cast<size_t>(count));
  FakeRanks ranks{.count = count, .seed = seed};
  ranks.prepare = [&](int, FakeGpu &gpu) {
    gpu.rounds_before_bias = true; // what libraries round once, the host rounds twice
    if (kernels)
      kernels->define(gpu);
  };
  const auto said = runOnFakeRanks(ranks, [&](Communicator &communicator, FakeGpu &) -> Status {
    GPUC_ASSIGN_OR_RETURN(states[static_cast<size_t>(communicator.rank())], trainOn(plan, communicator));
    return okStatus();
  });
  for (const std::string &error : said)
    EXPECT_EQ(error, "");
  return states;
}

void expectClose(const State &found, const State &expected, double tolerance) {
  ASSERT_EQ(found.losses.size(), expected.losses.size());
  for (size_t step = 0; step < expected.losses.size(); ++step)
    EXPECT_NEAR(found.losses[step] / expected.losses[step], 1, std::max(1e-5, tolerance / 10))
        << "step " << step;
  for (const auto &[name, bytes] : expected.variables) {
    const Bytes &other = found.variables.at(name);
    if (expected.types.at(name) == DataType::f32)
      EXPECT_LT(relativeDifference<float>(other, bytes), tolerance) << name;
    else if (expected.types.at(name) == DataType::f64)
      EXPECT_LT(relativeDifference<double>(other, bytes), tolerance) << name;
    else
      EXPECT_EQ(other, bytes) << name;
  }
}

class RanksOnFakeGpus : public testing::TestWithParam<Case> {};

// As fake_gpu_test's, which says why learning rates are what they are.
const std::string kSgd = "optimizer=sgd:lr=0.1";
INSTANTIATE_TEST_SUITE_P(
    Zoo, RanksOnFakeGpus,
    testing::Values(
        Case{{"mlp", {"input=1x7x6", "hidden=20,11", "batch=5", "dropout=0.3"}}, 1e-5},
        Case{{"mlp", {"input=1x7x6", "hidden=20", "batch=4", "accumulate=2"}}, 1e-5},
        Case{{"mlp", {"input=1x7x6", "hidden=20", "batch=4", "precision=bf16"}}, 2e-2, true},
        Case{{"mlp", {"input=1x7x6", "hidden=20", "batch=4", "precision=fp16"}}, 2e-2, true},
        Case{{"linear-regression", {"dtype=f64", "batch=8"}}, 1e-12},
        Case{{"convnet", {"in_channels=2", "size=8", "batch=3"}}, 1e-5, true},
        Case{
            {"rnn-classifier", {"cell=lstm", "steps=3", "width=4", "hidden=8", "batch=3", kSgd}}, 1e-5, true},
        Case{{"rnn-classifier", {"cell=gru", "steps=3", "width=4", "hidden=8", "batch=3", kSgd}}, 1e-5, true},
        Case{{"lstm-generator", {"embedding=6", "hidden=8", "length=4", "batch=2", "dropout=0.1", kSgd}},
             1e-5},
        Case{{"transformer",
              {"layers=1", "batch=2", "width=16", "heads=2", "length=9", "src_vocabulary=30",
               "tgt_vocabulary=30", kSgd}},
             1e-5,
             true},
        Case{{"gpt2",
              {"layers=1", "batch=2", "width=32", "heads=2", "length=24", "vocabulary=40", "dropout=0.2",
               kSgd}},
             1e-5},
        Case{{"resnet18", {"size=32", "width=4", "classes=7", "batch=4", "optimizer=sgd:lr=1e-4"}},
             1e-3,
             true},
        // At a hundred times the rate each step multiplies a difference by a thousand, on one rank as well.
        Case{{"resnet50",
              {"size=32", "width=4", "classes=7", "batch=4", "optimizer=sgd:lr=1e-6", "dtype=f64"}},
             1e-5,
             true}),
    [](const auto &info) { return nameOf(info.param.spec); });

TEST_P(RanksOnFakeGpus, TrainAsRanksOfTheHost) {
  if (GetParam().isLong && !isAll())
    GTEST_SKIP() << "GPUC_ALL_PLANS=1 has it";
  ZooSpec spec = GetParam().spec;
  spec.keys.emplace_back("data_parallel=true");
  Result<std::unique_ptr<ZooPlan>> host = compileZooModel(spec, "host"),
                                   cuda = compileZooModel(spec, "cuda:sm_90");
  ASSERT_TRUE(host.ok()) << host.message();
  ASSERT_TRUE(cuda.ok()) << cuda.message();
  Result<Plan> hostPlan = Plan::parse((*host)->bytes), cudaPlan = Plan::parse((*cuda)->bytes);
  ASSERT_TRUE(hostPlan.ok()) << hostPlan.message();
  ASSERT_TRUE(cudaPlan.ok()) << cudaPlan.message();
  PlanKernels kernels(*(*cuda)->module, *cudaPlan);
  for (int count : {2, 4}) {
    if (count == 4 && !isAll())
      continue;
    SCOPED_TRACE(std::to_string(count) + " ranks");
    const std::vector<State> expected = trainOnRanks(count, *hostPlan, 0, nullptr);
    const std::vector<State> first = trainOnRanks(count, *cudaPlan, 0, &kernels);
    if (HasFailure())
      return;
    expectClose(first[0], expected[0], GetParam().tolerance);
    for (uint64_t seed = 1; seed <= 3; ++seed) { // the late, the random and the unfair
      const std::vector<State> other = trainOnRanks(count, *cudaPlan, seed, &kernels);
      if (HasFailure())
        return;
      for (size_t rank = 0; rank < other.size(); ++rank) {
        EXPECT_EQ(other[rank].losses, first[rank].losses) << "seed " << seed << ", rank " << rank;
        EXPECT_EQ(other[rank].variables, first[rank].variables) << "seed " << seed << ", rank " << rank;
      }
    }
    for (const auto &[name, bytes] : first[0].variables)
      if (name != "rank")
        EXPECT_EQ(first.back().variables.at(name), bytes) << name << " of the last rank";
  }
}

} // namespace
} // namespace gpuc::test
