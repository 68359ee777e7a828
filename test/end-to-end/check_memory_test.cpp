//===- check_memory_test.cpp - Plans read no byte that is dead --------------===//
//
// Each model of the zoo, by itself and in parts, with what is kept and what is computed again: bytes that
// nobody needs are poison between commands, and no bit of a run is another for it. Then buffers are moved to
// places where they do not belong: either a command is named that reads what is not its buffer's, or the bits
// are the same still.
//
//===----------------------------------------------------------------------===//

#include "frontend/models/Zoo.h"
#include "runtime/gpuc.h"
#include "runtime/plan/contents.h"
#include "runtime/plan/lifetimes.h"
#include "runtime/plan/live_bytes.h"
#include "runtime/plan/seal.h"
#include "runtime/tooling/program_inputs.h"
#include "test/end-to-end/zoo_plan.h"

#include "llvm/Support/JSON.h"

#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

namespace gpuc::test {
namespace {

using Bytes = std::vector<std::byte>;

const std::vector<ZooSpec> kModels = {
    {"linear-regression", {"batch=9"}},
    {"mlp", {"hidden=24,24", "dropout=0.2", "batch=33"}},
    {"convnet", {"size=16", "batch=5"}},
    {"rnn-classifier",
     {"cell=gru", "steps=6", "width=8", "hidden=24", "layers=2", "dropout=0.2", "batch=18"}},
    {"lstm-generator", {"embedding=8", "hidden=16", "length=8", "dropout=0.2", "batch=12"}},
    {"transformer",
     {"width=16", "heads=2", "layers=2", "feedforward=32", "src_vocabulary=30", "tgt_vocabulary=40",
      "length=20", "batch=3"}},
    {"resnet18", {"size=40", "width=8", "classes=7", "batch=4"}},
    {"resnet50", {"size=64", "width=4", "classes=7", "batch=4"}},
    {"gpt2", {"layers=2", "heads=2", "width=16", "length=24", "vocabulary=50", "dropout=0.1", "batch=4"}},
};

ZooSpec withKeys(ZooSpec spec, const std::vector<std::string> &keys) {
  spec.keys.insert(spec.keys.end(), keys.begin(), keys.end());
  return spec;
}

/// Variables and outputs after two runs of a program.
Bytes bitsOf(const Plan &plan, uint32_t program, SessionOptions options) {
  Result<Session> session = Session::create(plan, options);
  EXPECT_TRUE(session.ok()) << session.message();
  const ProgramInfo &info = plan.info().programs[program];
  Result<ProgramInputs> inputs = ProgramInputs::gather(info, {}, 1);
  EXPECT_TRUE(inputs.ok() && session->initialize().ok());
  for (int run = 0; run < 2; ++run)
    EXPECT_TRUE(session->run({program}, inputs->views()).ok() && session->wait().ok());
  Bytes bits;
  for (const VariableInfo &variable : plan.info().variables) {
    Bytes bytes(static_cast<size_t>(variable.spec.sizeBytes()));
    EXPECT_TRUE(session->readVariable(variable.spec.name, bytes).ok());
    bits.insert(bits.end(), bytes.begin(), bytes.end());
  }
  for (size_t output = 0; output < info.outputs.size(); ++output) {
    const HostTensorView view = session->output({program}, output);
    const auto *data = static_cast<const std::byte *>(view.data);
    bits.insert(bits.end(), data, data + view.sizeBytes());
  }
  return bits;
}

class CheckMemory : public testing::TestWithParam<ZooSpec> {
protected:
  /// The zoo's plan, for the host.
  static Plan compiled(const ZooSpec &spec) {
    Result<std::unique_ptr<ZooPlan>> model = compileZooModel(spec, "host");
    EXPECT_TRUE(model.ok()) << model.message();
    Result<Plan> plan = Plan::parse((*model)->bytes);
    EXPECT_TRUE(plan.ok()) << plan.message();
    return *plan;
  }
};

TEST(CheckMemoryZoo, HasEachModel) {
  std::set<std::string> tested;
  for (const ZooSpec &spec : kModels)
    tested.insert(spec.model);
  for (const models::ZooModel &model : models::zoo())
    EXPECT_TRUE(tested.count(model.name)) << model.name;
}

TEST_P(CheckMemory, ChangesNoBit) {
  using Keys = std::vector<std::string>;
  for (const Keys &keys :
       {Keys{}, Keys{"checkpoint=full"}, Keys{"accumulate=4"}, Keys{"accumulate=4", "checkpoint=sqrt"}}) {
    const ZooSpec spec = withKeys(GetParam(), keys);
    SCOPED_TRACE(nameOf(spec));
    const Plan plan = compiled(spec);
    const Result<bool> contents = checkContents(plan.root());
    EXPECT_TRUE(contents.ok() && *contents) << contents.message();
    for (uint32_t program = 0; program < plan.info().programs.size(); ++program) {
      const Bytes expected = bitsOf(plan, program, {.threads = 1});
      for (int threads : {1, 2, 3})
        EXPECT_TRUE(bitsOf(plan, program, {.threads = threads, .check_memory = true}) == expected)
            << plan.info().programs[program].name << " with " << threads << " threads";
    }
  }
}

/// The runtime reads off the plan what the compiler's report says of the arena.
TEST_P(CheckMemory, HasTheReportsCategories) {
  for (const char *target : {"host", "cuda:sm_90"})
    for (const char *accumulate : {"1", "4"}) {
      const ZooSpec spec = withKeys(GetParam(), {std::string("accumulate=") + accumulate});
      SCOPED_TRACE(nameOf(spec) + " for " + target);
      Result<std::unique_ptr<ZooPlan>> model = compileZooModel(spec, target);
      ASSERT_TRUE(model.ok()) << model.message();
      Result<std::string> report = (*model)->compiler.report(*(*model)->module, {}, {});
      ASSERT_TRUE(report.ok()) << report.message();
      llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(*report);
      ASSERT_TRUE(bool(parsed));
      const llvm::json::Object &expected = *parsed->getAsObject()->getObject("by_category");
      const Result<Plan> plan = Plan::parse((*model)->bytes);
      ASSERT_TRUE(plan.ok()) << plan.message();
      const MemoryByCategory found = memoryByCategory(plan->root());
      const std::map<std::string, uint64_t> byName = {{"parameter", found.parameter},
                                                      {"gradient", found.gradient},
                                                      {"optimizer", found.optimizer},
                                                      {"activation", found.activation},
                                                      {"workspace", found.workspace},
                                                      {"input", found.input},
                                                      {"alignment_and_gaps", found.alignment_and_gaps}};
      EXPECT_EQ(expected.size(), byName.size());
      for (const auto &[name, bytes] : byName)
        EXPECT_EQ(expected.getInteger(name), static_cast<int64_t>(bytes)) << name;
      EXPECT_EQ(found.sum(), plan->info().arena_bytes);
    }
}

/// How many results of kernels lie where one of their operands does. Only who knows the kernel can tell
/// whether it may.
int64_t updatesInPlace(const Commands *commands, const fb::Plan &plan) {
  auto placeOf = [&](const fb::Operand *operand) {
    return plan.buffers()->Get(operand->buffer())->offset() + operand->offset();
  };
  int64_t updates = 0;
  for (const fb::Command *command : each(commands)) {
    if (const std::optional<CommandLoop> loop = loopOf(*command))
      updates += updatesInPlace(loop->commands, plan);
    if (const fb::Launch *launch = command->work_as_Launch())
      for (const fb::Operand *read : each(launch->reads()))
        for (const fb::Operand *write : each(launch->writes()))
          updates += placeOf(read) == placeOf(write) && read->size() == write->size();
  }
  return updates;
}

int64_t updatesInPlace(const fb::Plan &plan, uint32_t program) {
  return updatesInPlace(plan.programs()->Get(program)->streams()->Get(0)->commands(), plan);
}

/// A plan of which some buffers of the train step lie where others do.
Result<Plan> moved(const Plan &plan, uint32_t program, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::unique_ptr<fb::PlanT> contents(plan.root().UnPack());
  const std::vector<BufferLifetime> lifetimes =
      lifetimesOf(plan.root(), *plan.root().programs()->Get(program)).lifetimes;
  for (uint64_t move = 0; move <= seed % 3; ++move) {
    fb::BufferT &buffer = *contents->buffers[lifetimes[random() % lifetimes.size()].buffer];
    const fb::BufferT &other = *contents->buffers[lifetimes[random() % lifetimes.size()].buffer];
    buffer.offset = std::min(other.offset, (contents->arena_bytes - buffer.size) / 64 * 64);
  }
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::Plan::Pack(builder, contents.get()), fb::PlanIdentifier());
  return Plan::parse(
      sealPlan({reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize()}));
}

TEST_P(CheckMemory, FindsBuffersThatWereMoved) {
  const Plan plan = compiled(GetParam());
  uint32_t program = 0;
  while (plan.info().programs[program].name != "train_step")
    ++program;
  const Bytes expected = bitsOf(plan, program, {.threads = 1});
  int found = 0, in_place = 0, harmless = 0, refused = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Result<Plan> other = moved(plan, program, seed);
    if (!other.ok()) { // a kernel's parts of a parallel, which the reader looks at
      ++refused;
      continue;
    }
    const Result<bool> contents = checkContents(other->root());
    if (!contents.ok()) {
      ++found;
      continue;
    }
    if (updatesInPlace(other->root(), program) > updatesInPlace(plan.root(), program)) {
      ++in_place;
      continue;
    }
    ++harmless;
    EXPECT_TRUE(bitsOf(*other, program, {.threads = 2, .check_memory = true}) == expected) << "seed " << seed;
  }
  std::printf("%d found, %d now in place, %d harmless, %d refused by the reader\n", found, in_place, harmless,
              refused);
  EXPECT_GT(found, 0);
}

INSTANTIATE_TEST_SUITE_P(Zoo, CheckMemory, testing::ValuesIn(kModels),
                         [](const auto &info) { return nameOf({info.param.model, {}}); });

} // namespace
} // namespace gpuc::test
