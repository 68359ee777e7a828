//===- fake_gpu_test.cpp - Whole models for CUDA, without a GPU -------------===//
//
// A plan for CUDA is run as the runtime runs it, on a GPU that is not there: streams in any order that events
// allow, matmuls as plain loops, and the plan's own kernels, which are compiled for this CPU instead of to
// PTX. What is left to a real GPU is PTX, cuBLASLt's own bits, and speed.
//
//===----------------------------------------------------------------------===//

#include "test/end-to-end/drawn_batch.h"
#include "test/end-to-end/plan_kernels.h"
#include "test/end-to-end/zoo_plan.h"

#include "runtime/gpuc.h"
#include "runtime/plan/plan_generated.h"
#include "runtime/plan/seal.h"

#include "llvm/ADT/StringRef.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>

namespace gpuc::test {
namespace {

struct Case {
  ZooSpec spec;
  double tolerance;    ///< Of the L2 norm of the difference to the host, relative to the host's.
  uint64_t seeds = 40; ///< Orders in which streams go on.
};

/// What a session leaves: outputs and variables by name.
struct State {
  std::map<std::string, Bytes> values;
  std::map<std::string, DataType> types;

  void add(const std::string &name, const HostTensorView &view) {
    const auto *data = static_cast<const std::byte *>(view.data);
    values[name].assign(data, data + view.sizeBytes());
    types[name] = view.type;
  }
};

Status runProgram(Session &session, const char *name, int runs, uint64_t seed, State &state) {
  GPUC_ASSIGN_OR_RETURN(ProgramId id, session.program(name));
  const ProgramInfo &program = session.plan().info().programs[id.index];
  for (int run = 0; run < runs; ++run) // none is waited for
    GPUC_RETURN_IF_ERROR(session.run(id, Batch(program, seed + static_cast<uint64_t>(run)).views));
  GPUC_RETURN_IF_ERROR(session.wait());
  for (size_t i = 0; i < program.outputs.size(); ++i)
    state.add(std::string(name) + "." + program.outputs[i].name, session.output(id, i));
  return okStatus();
}

/// init, training with an evaluation in between, predict.
Result<State> useModel(const Plan &plan) {
  GPUC_ASSIGN_OR_RETURN(Session session, Session::create(plan, {.threads = 1, .seed = 3}));
  State state;
  GPUC_RETURN_IF_ERROR(session.initialize());
  for (const auto &[program, runs, seed] :
       {std::tuple{"train_step", 4, 10}, {"eval_step", 2, 20}, {"train_step", 3, 30}, {"predict", 1, 40}})
    GPUC_RETURN_IF_ERROR(runProgram(session, program, runs, static_cast<uint64_t>(seed), state));
  for (const VariableInfo &variable : plan.info().variables) {
    Bytes bytes(static_cast<size_t>(variable.spec.sizeBytes()));
    GPUC_RETURN_IF_ERROR(session.readVariable(variable.spec.name, bytes));
    state.add(variable.spec.name, HostTensorView(bytes.data(), variable.spec.type, variable.spec.shape));
  }
  return state;
}

void expectClose(const State &found, const State &expected, double tolerance) {
  for (const auto &[name, bytes] : expected.values) {
    ASSERT_TRUE(found.values.count(name)) << name;
    const Bytes &other = found.values.at(name);
    ASSERT_EQ(other.size(), bytes.size()) << name;
    // A loss averages out what shows in parameters that are close to zero.
    bool loss = llvm::StringRef(name).ends_with(".loss_sum");
    if (expected.types.at(name) == DataType::f32)
      EXPECT_LT(relativeDifference<float>(other, bytes), loss ? std::min(tolerance, 1e-5) : tolerance)
          << name;
    else if (expected.types.at(name) == DataType::f64)
      EXPECT_LT(relativeDifference<double>(other, bytes), tolerance) << name;
    else
      EXPECT_EQ(other, bytes) << name;
  }
}

Result<Plan> changed(const Plan &plan, void (*change)(fb::PlanT &)) {
  std::unique_ptr<fb::PlanT> content(plan.root().UnPack());
  change(*content);
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishPlanBuffer(builder, fb::Plan::Pack(builder, content.get()));
  return Plan::parse(
      sealPlan({reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize()}));
}

/// The plan without the waits of train_step's first stream.
Result<Plan> withoutWaits(const Plan &plan) {
  return changed(plan, [](fb::PlanT &content) {
    for (auto &program : content.programs)
      if (program->name == "train_step")
        std::erase_if(program->streams[0]->commands,
                      [](const auto &command) { return command->work.type == fb::Work::Wait; });
  });
}

class OnFakeGpu : public testing::TestWithParam<Case> {};

// Small enough for hundreds of runs; every kernel form that the big ones have.
INSTANTIATE_TEST_SUITE_P(
    Zoo, OnFakeGpu,
    testing::Values(
        Case{{"mlp", {"input=1x7x6", "hidden=20", "batch=9"}}, 1e-5},
        Case{{"mlp", {"input=1x5x5", "hidden=12,7", "batch=6", "dropout=0.3", "smoothing=0.1"}}, 1e-5},
        Case{{"mlp", {"input=11", "hidden=8", "batch=5", "pixels=false", "dtype=f64"}}, 1e-9},
        Case{{"linear-regression", {"dtype=f64", "batch=8"}}, 1e-13},
        Case{{"convnet", {"in_channels=2", "size=8", "batch=3"}}, 1e-5, 4},
        Case{{"convnet", {"in_channels=1", "size=9", "batch=2", "dtype=f64"}}, 1e-9, 4},
        Case{{"convnet", {"in_channels=1", "size=8", "batch=2", "precision=bf16"}}, 2e-2, 2},
        Case{{"convnet", {"in_channels=1", "size=8", "batch=2", "precision=fp16"}}, 2e-2, 2},
        // Attention of one tile; of three, the last one cut short. The gradient of a key's bias is 0, but for
        // rounding, which Adam would make steps of.
        Case{{"gpt2",
              {"layers=1", "batch=2", "width=32", "heads=2", "length=24", "vocabulary=40",
               "optimizer=sgd:lr=0.1"}},
             1e-5,
             2},
        Case{{"gpt2",
              {"layers=1", "batch=1", "width=32", "heads=2", "length=150", "vocabulary=40", "dropout=0.2",
               "optimizer=sgd:lr=0.1"}},
             1e-5,
             2},
        Case{{"transformer",
              {"layers=1", "batch=2", "width=16", "heads=2", "length=9", "src_vocabulary=30",
               "tgt_vocabulary=30", "optimizer=sgd:lr=0.1"}},
             1e-5,
             2},
        // At ten times the rate the norms over four numbers blow rounding up: the host's own code for two
        // vector lengths is 3% apart after seven steps.
        Case{{"resnet18", {"size=32", "width=4", "classes=7", "batch=4", "optimizer=sgd:lr=1e-4"}}, 1e-3, 2},
        Case{{"resnet18",
              {"size=32", "width=4", "classes=7", "batch=4", "optimizer=sgd:lr=1e-3", "dtype=f64"}},
             1e-9,
             2}),
    [](const auto &info) { return nameOf(info.param.spec); });

TEST_P(OnFakeGpu, TrainsAsTheHostWhateverTheOrder) {
  Result<std::unique_ptr<ZooPlan>> host = compileZooModel(GetParam().spec, "host"),
                                   cuda = compileZooModel(GetParam().spec, "cuda:sm_90");
  ASSERT_TRUE(host.ok()) << host.message();
  ASSERT_TRUE(cuda.ok()) << cuda.message();
  Result<Plan> host_plan = Plan::parse((*host)->bytes), cuda_plan = Plan::parse((*cuda)->bytes);
  ASSERT_TRUE(host_plan.ok()) << host_plan.message();
  ASSERT_TRUE(cuda_plan.ok()) << cuda_plan.message();
  PlanKernels kernels(*(*cuda)->module, *cuda_plan);
  auto onFake = [&](uint64_t seed, const Plan &plan) {
    FakeGpu gpu(seed);
    gpu.rounds_before_bias = true; // what libraries round once, the host rounds twice
    kernels.define(gpu);
    Result<State> state = useModel(plan);
    EXPECT_EQ(gpu.count("cuGraphLaunch") > 0, !plan.root().no_graphs());
    return state;
  };

  Result<State> expected = useModel(*host_plan), first = onFake(0, *cuda_plan);
  ASSERT_TRUE(expected.ok()) << expected.message();
  ASSERT_TRUE(first.ok()) << first.message();
  expectClose(*first, *expected, GetParam().tolerance);
  for (uint64_t seed = 1; seed <= GetParam().seeds; ++seed) {
    Result<State> other = onFake(seed, *cuda_plan);
    ASSERT_TRUE(other.ok()) << other.message();
    for (const auto &[name, bytes] : first->values)
      ASSERT_EQ(other->values.at(name), bytes) << name << ", seed " << seed;
  }

  // Those are steps as graphs; command by command they give the same.
  Result<Plan> single = changed(*cuda_plan, [](fb::PlanT &content) { content.no_graphs = true; });
  ASSERT_TRUE(single.ok()) << single.message();
  Result<State> other = onFake(0, *single);
  ASSERT_TRUE(other.ok()) << other.message();
  ASSERT_EQ(other->values, first->values);

  // And the orders are bad enough to show a plan that lacks what joins its streams.
  Result<Plan> broken = withoutWaits(*cuda_plan);
  ASSERT_TRUE(broken.ok()) << broken.message();
  bool shown = false;
  for (uint64_t seed = 1; seed <= GetParam().seeds && !shown; ++seed) {
    Result<State> other = onFake(seed, *broken);
    shown = !other.ok() || other->values != first->values;
  }
  EXPECT_TRUE(shown);
}

} // namespace
} // namespace gpuc::test
