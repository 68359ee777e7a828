// A session from outside, on the plan that uses everything: state, inputs, outputs, errors, counters. What is
// named Host… is about the host; the rest is run on every device.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "runtime/base/warn.h"
#include "test/runtime/graphs_plan.h"
#include "test/runtime/sanitized.h"

namespace gpuc::test {
namespace {

constexpr int64_t kShape[] = {4, 16};

std::string errorOf(const Status& status) { return status.ok() ? "" : status.message(); }

TEST(Session, RunsAKernelOnFillAndCopy) {
  PlanBuilder builder;
  uint32_t x = builder.buffer("x", DataType::f32, {64});
  uint32_t ones = builder.buffer("ones", DataType::f32, {64});
  uint32_t y = builder.buffer("y", DataType::f32, {64});
  uint32_t add = builder.kernel("test_add", 3);
  fb::ProgramT& predict = builder.program("predict");
  CommandList& commands = predict.streams[0]->commands;
  builder.copyIn(commands, PlanBuilder::input(predict, "x", x), {x});
  builder.fill(commands, {ones}, patternOf(1.0f));
  builder.launch(commands, add, {{x}, {ones}}, {{y}}, 4);
  PlanBuilder::output(predict, "y", y);

  Session session = open(builder);
  std::vector<float> input = counting(64);
  const int64_t shape[] = {64};
  HostTensorView view(input.data(), DataType::f32, shape);
  ProgramId id = programOf(session, "predict");
  runOnce(session, id, {&view, 1});
  EXPECT_EQ(valuesOf<float>(session.output(id, 0)), counting(64, 1));
}

/// On a GPU that means: the driver takes all of it as graphs, and gives the bits of single launches.
TEST(Session, StepsAreTheSameFromTheSecondRunOn) {
  for (uint32_t slots : {1u, 2u, 3u}) {
    const auto expected = resultsOf(graphsPlan(slots, TargetKind::host));
    for (bool no_graphs : {true, false}) {
      PlanBuilder builder = graphsPlan(slots);
      builder.plan.no_graphs = no_graphs;
      const KeptWarnings warnings;
      EXPECT_EQ(resultsOf(builder), expected) << slots << " slots";
      EXPECT_EQ(warnings.lines(), std::vector<std::string>());
    }
  }
}

TEST(Session, TrainsAStepOfEverything) {
  for (int threads : {1, 2, 3, 8}) {
    Session session = open(everythingPlan(), {.threads = threads, .check_memory = true});
    ASSERT_EQ(errorOf(session.initialize()), "");
    ProgramId step = programOf(session, "train_step");
    std::vector<float> ones(64, 1.0f);
    HostTensorView x = viewOf(ones, DataType::f32, kShape);
    for (int run = 0; run < 5; ++run) runOnce(session, step, {&x, 1});
    // h = ones(4, 16) x 0.5(16, 16) = 8; y is the last slice of the stack, 2 h.
    EXPECT_EQ(valuesOf<float>(session.output(step, 0)), std::vector<float>(64, 16.0f));
    EXPECT_EQ(valuesOf<float>(session.output(step, 1)), std::vector<float>(64, 16.0f))
        << "copied to the host";
    EXPECT_NE(session.output(step, 0).data, session.output(step, 1).data);
    EXPECT_EQ(readVariable<int64_t>(session, "step", 1)[0], 5);
  }
}

TEST(Session, SeedAndStepAreTheRuntimesToSet) {
  Session with_own_seed = open(everythingPlan());
  EXPECT_EQ(readVariable<int64_t>(with_own_seed, "seed", 1)[0], 7) << "the plan's";
  Session session = open(everythingPlan(), {.seed = 42});
  EXPECT_EQ(readVariable<int64_t>(session, "seed", 1)[0], 42);
  int64_t step = 9;
  ASSERT_EQ(errorOf(session.writeVariable("step", std::as_bytes(std::span(&step, 1)))), "");
  EXPECT_EQ(readVariable<int64_t>(session, "step", 1)[0], 9);
  ASSERT_EQ(errorOf(session.initialize()), "");
  EXPECT_EQ(readVariable<int64_t>(session, "step", 1)[0], 0);
  EXPECT_EQ(readVariable<float>(session, "fc1.weight", 256), std::vector<float>(256, 0.5f));
}

TEST(Session, LoadsConstants) {
  PlanBuilder builder = everythingPlan();
  std::vector<float> table = counting(64);
  std::memcpy(builder.plan.constants[0]->data.data(), table.data(), 256);
  Session session = open(builder);
  std::vector<float> zeros(64, 0.0f);
  HostTensorView x = viewOf(zeros, DataType::f32, kShape);
  ProgramId predict = programOf(session, "predict");
  // x has no copy command here: the runtime places it.
  runOnce(session, predict, {&x, 1});
  EXPECT_EQ(valuesOf<float>(session.output(predict, 0)), table);
}

/// One i32 that says how many rows the batch holds, copied to an output.
PlanBuilder rowsPlan(bool copied) {
  PlanBuilder builder(2);
  uint32_t rows = builder.slotBuffer("rows", DataType::i32, {});
  uint32_t out = builder.buffer("out", DataType::i32, {});
  fb::ProgramT& program = builder.program("eval_step");
  CommandList& commands = program.streams[0]->commands;
  uint32_t port = PlanBuilder::input(program, "rows", rows, fb::InputRole::rows);
  if (copied) builder.copyIn(commands, port, {rows});
  builder.copy(commands, {rows}, {out});
  PlanBuilder::output(program, "out", out);
  return builder;
}

TEST(Session, TellsTheProgramHowManyRowsHoldSamples) {
  for (bool copied : {true, false}) {
    Session session = open(rowsPlan(copied));
    ProgramId eval = programOf(session, "eval_step");
    for (int32_t rows : {-1, 3, 0, 4}) {
      runOnce(session, eval, {}, rows);
      EXPECT_EQ(valuesOf<int32_t>(session.output(eval, 0))[0], rows == -1 ? 4 : rows);
    }
    EXPECT_EQ(errorOf(session.run(eval, {}, 5)), "5 rows in a batch of 4");
    EXPECT_EQ(errorOf(session.run(eval, {}, -2)), "-2 rows in a batch of 4");
  }
}

TEST(Session, RefusesRowsWhereNobodyCountsThem) {
  Session session = open(everythingPlan());
  std::vector<float> ones(64, 1.0f);
  HostTensorView x = viewOf(ones, DataType::f32, kShape);
  EXPECT_EQ(errorOf(session.run(programOf(session, "predict"), {&x, 1}, 3)),
            "program 'predict' does not count rows: all 4 must hold samples, not 3");
}

TEST(Session, NamesWhatIsWrongWithAnInput) {
  Session session = open(everythingPlan());
  ProgramId predict = programOf(session, "predict");
  std::vector<float> ones(64, 1.0f);
  EXPECT_EQ(errorOf(session.run(predict, {})), "program 'predict': 0 inputs given, it takes 1");
  const int64_t flat[] = {64};
  HostTensorView x = viewOf(ones, DataType::f32, flat);
  EXPECT_EQ(errorOf(session.run(predict, {&x, 1})),
            "program 'predict', input 'x': got 64xf32, expected 4x16xf32");
  x = viewOf(ones, DataType::i32, kShape);
  EXPECT_EQ(errorOf(session.run(predict, {&x, 1})),
            "program 'predict', input 'x': got 4x16xi32, expected 4x16xf32");
  x = HostTensorView(nullptr, DataType::f32, kShape);
  EXPECT_EQ(errorOf(session.run(predict, {&x, 1})), "program 'predict', input 'x': no data");
}

TEST(Session, RefusesIntegersOutsideTheirInputsRange) {
  for (bool copied : {false, true}) {
    PlanBuilder builder;
    const uint32_t labels = builder.buffer("labels", DataType::i32, {1000}),
                   out = builder.buffer("out", DataType::i32, {1000});
    fb::ProgramT& predict = builder.program("predict");
    const uint32_t port = PlanBuilder::input(predict, "labels", labels);
    predict.inputs[port]->range = 10;
    CommandList& commands = predict.streams[0]->commands;
    if (copied) builder.copyIn(commands, port, {labels});
    builder.copy(commands, {labels}, {out});
    PlanBuilder::output(predict, "out", out);
    Session session = open(builder);
    std::vector<int32_t> given(1000, 9);
    const int64_t shape[] = {1000};
    HostTensorView view = viewOf(given, DataType::i32, shape);
    ProgramId id = programOf(session, "predict");
    runOnce(session, id, {&view, 1});
    for (int32_t wrong : {10, -1, -100, INT32_MAX, INT32_MIN})
      for (size_t at : {0, 511, 512, 999}) {
        given[at] = wrong;
        EXPECT_EQ(errorOf(session.run(id, {&view, 1})),
                  "program 'predict', input 'labels': element " + std::to_string(at) + " is " +
                      std::to_string(wrong) + ", outside its range [0, 10)");
        given[at] = 9;
      }
    runOnce(session, id, {&view, 1});
    EXPECT_EQ(valuesOf<int32_t>(session.output(id, 0)), given) << "what was refused left nothing behind";
  }
}

TEST(HostSession, AVariableIsReadAndWrittenWhereItLies) {
  std::optional<Session> session = open(everythingPlan());
  ASSERT_EQ(errorOf(session->initialize()), "");
  Result<VariableView> weight = session->variable("fc1.weight");
  ASSERT_EQ(errorOf(weight.status()), "");
  EXPECT_EQ(weight->spec->str(), "16x16xf32");
  auto* elements = reinterpret_cast<float*>(weight->data);
  EXPECT_EQ(elements[255], 0.5f);
  elements[255] = 3;
  EXPECT_EQ(readVariable<float>(*session, "fc1.weight", 256)[255], 3);
  EXPECT_EQ(errorOf(session->variable("fc9").status()), "the plan has no variable 'fc9'");
  session.reset();
  EXPECT_EQ(elements[255], 3) << "the view holds the memory";
  EXPECT_EQ(weight->spec->name, "fc1.weight");
}

TEST(HostSession, SaysThatThreadsCannotBeMade) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer needs more addresses than are left";
  Result<Plan> plan = Plan::parse(everythingPlan().seal());
  ASSERT_TRUE(plan.ok()) << plan.message();
  pid_t child = ::fork();
  if (child == 0) {
    struct rlimit limit = {1 << 30, 1 << 30};  // each stack takes 8 MiB of it
    ::setrlimit(RLIMIT_AS, &limit);
    std::string error = Session::create(*plan, {.device = "host", .threads = 1000}).message();
    ::_exit(error.starts_with("cannot open the plan on a device: cannot start a thread: ") ? 0 : 1);
  }
  int outcome = 0;
  ::waitpid(child, &outcome, 0);
  EXPECT_TRUE(WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0);
}

TEST(Session, NamesTheEntriesThatExist) {
  Session session = open(everythingPlan());
  EXPECT_EQ(session.program("test").message(),
            "the plan has no entry 'test', it has: init, train_step, predict");
}

TEST(Session, RefusesProgramsAndOutputsThatThePlanDoesNotHave) {
  Session session = open(everythingPlan());
  const ProgramId other = {99}, step = programOf(session, "train_step");
  EXPECT_EQ(errorOf(session.run(other, {})),
            "the plan has no program 99, it has 3: ask this session for it by its name");
  EXPECT_EQ(session.output(other, 0).data, nullptr);
  EXPECT_EQ(session.output(step, 99).data, nullptr);
}

TEST(Session, RefusesFewerThanNoThreads) {
  EXPECT_EQ(Session::create(everythingPlan().parse(), {.threads = -1}).message(),
            "-1 threads to compute with: 0 is one for each core");
}

TEST(Session, RefusesVariablesOfAnotherNameOrSize) {
  Session session = open(everythingPlan());
  std::vector<std::byte> bytes(12);
  EXPECT_EQ(errorOf(session.readVariable("fc2.weight", bytes)), "the plan has no variable 'fc2.weight'");
  EXPECT_EQ(errorOf(session.writeVariable("fc1.weight", bytes)),
            "variable 'fc1.weight': 12 bytes given, 16x16xf32 takes 1024");
}

TEST(Session, RefusesCountersOfAnotherType) {
  PlanBuilder builder = everythingPlan();
  builder.plan.variables[0]->kind = fb::VariableKind::parameter;
  EXPECT_EQ(Session::create(builder.parse()).message(),
            "variable 'seed' is parameter i64, expected an i64 counter");
}

TEST(Session, RefusesOtherDevices) {
  Plan plan = everythingPlan().parse();
  EXPECT_EQ(Session::create(plan, {.device = "tpu"}).message(),
            "unknown device 'tpu': expected auto, host, cuda or cuda:N");
}

TEST(HostSession, NamesTheCpuFeaturesThatAreMissing) {
  PlanBuilder builder = everythingPlan();
  builder.plan.target->features = {"+sse2", "avx9000", "another"};
  std::string error = Session::create(builder.parse()).message();
  EXPECT_NE(error.find("this machine lacks: avx9000, another; it is "), std::string::npos) << error;
}

TEST(Session, RefusesAPlanForAnotherTarget) {
  PlanBuilder builder(1, TargetKind::cuda);
  std::string error = Session::create(builder.parse(), {.device = "host"}).message();
  EXPECT_EQ(error, "plan compiled for cuda (sm_80), the device is host: compile with --target=host");
}

/// Bytes of this process that are in memory.
int64_t residentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t mapped = 0, resident = 0;
  file >> mapped >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(HostSession, OutputsOfOneBufferTakeNoMemoryBeforeTheyAreWritten) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer's shadow of the outputs is resident, too";
  constexpr int64_t kBytes = int64_t{64} << 20;
  PlanBuilder builder;
  const uint32_t buffer = builder.buffer("y", DataType::i8, {kBytes});
  fb::ProgramT& predict = builder.program("predict");
  for (int i = 0; i < 16; ++i)
    builder.copyOut(predict.streams[0]->commands,
                    PlanBuilder::output(predict, "y" + std::to_string(i), buffer), {buffer});
  const Plan plan = builder.parse();
  const int64_t before = residentBytes();
  Result<Session> session = Session::create(plan, {.device = "host", .threads = 1});
  ASSERT_TRUE(session.ok()) << session.message();
  EXPECT_LT(residentBytes() - before, 4 * kBytes);
}

TEST(Session, RefusesCodeThatLacksASymbol) {
  PlanBuilder builder = everythingPlan();
  builder.plan.kernels[0]->symbol = "no_such_kernel";
  EXPECT_EQ(Session::create(builder.parse()).message(),
            "the plan's code does not define the kernel symbol 'no_such_kernel'");
}

TEST(HostSession, RefusesCodeThatIsNone) {
  PlanBuilder builder = everythingPlan();
  builder.plan.kernels[0]->symbol = "system";  // libc's
  EXPECT_EQ(Session::create(builder.parse()).message(),
            "the plan's code does not define the kernel symbol 'system'");
  builder.plan.code[0]->data = {'E', 'L', 'F'};
  EXPECT_EQ(Session::create(builder.parse()).message(), "the plan's code is not an ELF object");
}

TEST(HostSession, NamesTheLayerOfAMatmulThatTheHostCannotDo) {
  PlanBuilder builder;
  const int64_t wide = 5'000'000;  // more than 2^22
  uint32_t a = builder.buffer("a", DataType::f32, {2, 2});
  uint32_t b = builder.buffer("b", DataType::f32, {2, wide});
  uint32_t c = builder.buffer("c", DataType::f32, {2, wide});
  builder.matmul(builder.program("predict").streams[0]->commands, a, b, c, 2, wide, 2);
  std::string error = Session::create(builder.parse()).message();
  EXPECT_NE(error.find("program 'predict': "), std::string::npos) << error;
  EXPECT_NE(error.find("(fc1)"), std::string::npos) << error;
}

TEST(Session, RefusesAnArenaThatNoMachineHas) {
  PlanBuilder builder;
  builder.plan.arena_bytes = uint64_t{1} << 47;
  std::string error = Session::create(builder.parse()).message();
  EXPECT_NE(error.find("no memory for the arena of 140737488355328 bytes"), std::string::npos) << error;
}

TEST(Session, ManyMayLiveAtOnceEachWithItsOwnCode) {
  Session first = open(everythingPlan());
  std::unique_ptr<Session> second = std::make_unique<Session>(open(everythingPlan()));
  ASSERT_EQ(errorOf(first.initialize()), "");
  second.reset();
  ASSERT_EQ(errorOf(first.initialize()), "");
  std::vector<float> ones(64, 1.0f);
  HostTensorView x = viewOf(ones, DataType::f32, kShape);
  runOnce(first, programOf(first, "predict"), {&x, 1});
}

}  // namespace
}  // namespace gpuc::test
