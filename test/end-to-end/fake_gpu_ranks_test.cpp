//===- fake_gpu_ranks_test.cpp - Ranks on GPUs that are not there -----------===//
//
// A data-parallel plan for CUDA trains on several fake GPUs, one for each rank, a thread, that add up by a
// fake NCCL, or share out; and to the losses and variables of ranks on the host. GPUC_ALL_PLANS=1: more
// models, and four ranks.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/access.h"
#include "test/end-to-end/drawn_batch.h"
#include "test/end-to-end/plan_kernels.h"
#include "test/end-to-end/zoo_plan.h"
#include "test/runtime/cuda/fake_ranks.h"

#include "llvm/ADT/STLExtras.h"

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
  EXPECT_EQ(session.memory().arena_bytes, plan.info().arena_bytes);
  EXPECT_EQ(session.memory().arena_allocations, 1u);
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

/// Of a plan's variables.
uint64_t keptBytes(const Plan &plan) {
  uint64_t bytes = 0;
  for (const fb::Variable *variable : each(plan.root().variables()))
    bytes += plan.root().buffers()->Get(variable->buffer())->size();
  return bytes;
}

class RanksOnFakeGpus : public testing::TestWithParam<Case> {};

// As fake_gpu_test's, which says why learning rates are what they are.
const std::string kSgd = "optimizer=sgd:lr=0.1";
INSTANTIATE_TEST_SUITE_P(
    Zoo, RanksOnFakeGpus,
    testing::Values(
        Case{{"mlp", {"input=1x7x6", "hidden=21,11", "batch=5", "dropout=0.3"}}, 1e-5},
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
        // Two ranks own a block's weights each, and of four the last has none of three.
        Case{
            {"mlp", {"input=1x7x6", "hidden=24,24,24,24", "batch=5", "optimizer=muon:lr=1e-3,adam_eps=1e-3"}},
            1e-4},
        Case{{"resnet18", {"size=32", "width=4", "classes=7", "batch=4", "optimizer=sgd:lr=1e-4"}},
             1e-3,
             true},
        // At a hundred times the rate each step multiplies a difference by a thousand, on one rank as well.
        Case{{"resnet50",
              {"size=32", "width=4", "classes=7", "batch=4", "optimizer=sgd:lr=1e-6", "dtype=f64"}},
             1e-5,
             true}),
    [](const auto &info) { return nameOf(info.param.spec); });

/// The plans of a host and of a GPU.
struct Plans {
  explicit Plans(const ZooSpec &spec) {
    Result<std::unique_ptr<ZooPlan>> onHost = compileZooModel(spec, "host"),
                                     onCuda = compileZooModel(spec, "cuda:sm_90");
    EXPECT_TRUE(onHost.ok()) << onHost.message();
    EXPECT_TRUE(onCuda.ok()) << onCuda.message();
    host = *std::move(onHost);
    cuda = *std::move(onCuda);
  }

  Plan ofHost() const { return *Plan::parse(host->bytes); }
  Plan ofCuda() const { return *Plan::parse(cuda->bytes); }

  std::unique_ptr<ZooPlan> host, cuda;
};

/// GPUs train as ranks of the host do, to the same bits in any order of streams, and alike on all ranks. What
/// the first one has.
State expectAsOnTheHost(const Plans &plans, int count, double tolerance) {
  SCOPED_TRACE(std::to_string(count) + " ranks");
  const Plan plan = plans.ofCuda();
  PlanKernels kernels(*plans.cuda->module, plan);
  const std::vector<State> expected = trainOnRanks(count, plans.ofHost(), 0, nullptr),
                           first = trainOnRanks(count, plan, 0, &kernels);
  if (testing::Test::HasFailure())
    return {};
  expectClose(first[0], expected[0], tolerance);
  for (uint64_t seed = 1; seed <= 3; ++seed) { // the late, the random and the unfair
    const std::vector<State> other = trainOnRanks(count, plan, seed, &kernels);
    if (testing::Test::HasFailure())
      return {};
    for (size_t rank = 0; rank < other.size(); ++rank) {
      EXPECT_EQ(other[rank].losses, first[rank].losses) << "seed " << seed << ", rank " << rank;
      EXPECT_EQ(other[rank].variables, first[rank].variables) << "seed " << seed << ", rank " << rank;
    }
  }
  for (const auto &[name, bytes] : first[0].variables)
    if (name != "rank")
      EXPECT_EQ(first.back().variables.at(name), bytes) << name << " of the last rank";
  return first[0];
}

ZooSpec with(ZooSpec spec, std::initializer_list<std::string> keys) {
  spec.keys.insert(spec.keys.end(), keys);
  return spec;
}

std::vector<int> rankCounts() { return isAll() ? std::vector{2, 4} : std::vector{2}; }

TEST_P(RanksOnFakeGpus, TrainAsRanksOfTheHost) {
  if (GetParam().isLong && !isAll())
    GTEST_SKIP() << "GPUC_ALL_PLANS=1 has it";
  const Plans plans(with(GetParam().spec, {"data_parallel=true"}));
  for (int count : rankCounts())
    if (!HasFailure())
      expectAsOnTheHost(plans, count, GetParam().tolerance);
}

/// And as those that each have all.
TEST_P(RanksOnFakeGpus, ShareOutAsRanksOfTheHost) {
  const ZooSpec spec = with(GetParam().spec, {"data_parallel=true"});
  if (GetParam().isLong && !isAll())
    GTEST_SKIP() << "GPUC_ALL_PLANS=1 has it";
  if (spec.model == "linear-regression")
    GTEST_SKIP() << "has nothing that could be shared out";
  const bool accumulates = llvm::is_contained(spec.keys, "accumulate=2");
  const Plans whole(spec);
  const Plan wholePlan = whole.ofCuda();
  PlanKernels kernels(*whole.cuda->module, wholePlan);
  for (int count : rankCounts())
    for (const char *shard : {"shard=optimizer", "shard=gradients"}) {
      if (HasFailure() || (shard == llvm::StringRef("shard=gradients") && !accumulates))
        continue; // without microbatches the two are one
      const Plans shared(with(spec, {shard, "world_size=" + std::to_string(count)}));
      EXPECT_LT(keptBytes(shared.ofCuda()), keptBytes(wholePlan));
      const State found = expectAsOnTheHost(shared, count, GetParam().tolerance);
      if (!HasFailure())
        expectClose(found, trainOnRanks(count, wholePlan, 0, &kernels)[0], GetParam().tolerance);
    }
}

} // namespace
} // namespace gpuc::test
