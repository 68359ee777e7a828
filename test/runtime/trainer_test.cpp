// The training loop's parts as a library, and that its steps allocate nothing.
#include "runtime/train/trainer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/tooling/allocation_hook.h"
#include "runtime/train/metrics_file.h"
#include "runtime/train/progress.h"
#include "test/runtime/session_helpers.h"
#include "test/runtime/train_plan.h"

namespace gpuc::test {
namespace {

using Json = nlohmann::json;

const std::atomic<bool> kNeverStop{false};

Json parsed(const MetricsLine& line) { return Json::parse(line.text()); }

TEST(MetricsLine, NumbersReadBackToTheSameBits) {
  for (double value : {0.1, 1e-300, 2.302585092994046, 123456789.123456789, std::nextafter(1.0, 2.0), -0.0}) {
    StepEvent event;
    event.loss = value;
    event.lr = Number{static_cast<double>(static_cast<float>(value)), true};
    Json line = parsed(MetricsLine(event));
    EXPECT_EQ(std::memcmp(&line["loss"].get_ref<const double&>(), &value, sizeof(value)), 0) << line;
  }
}

TEST(MetricsLine, SinglesHaveNoMoreDigitsThanTheyNeed) {
  StepEvent event;
  event.lr = Number{static_cast<double>(0.001f), true};
  EXPECT_NE(MetricsLine(event).text().find("\"lr\":0.001,"), std::string_view::npos);
}

TEST(MetricsLine, LeavesOutWhatIsNotComputedAndNullsWhatJsonCannotSay) {
  StepEvent event;
  event.grad_norm = Number{std::numeric_limits<double>::quiet_NaN(), true};
  Json line = parsed(MetricsLine(event));
  EXPECT_FALSE(line.contains("loss"));
  EXPECT_FALSE(line.contains("lr"));
  EXPECT_TRUE(line["grad_norm"].is_null());
  EXPECT_EQ(line["loss_scale"], 1.0);
  EXPECT_EQ(line["skipped"], false);
}

TEST(MetricsLine, HasRoomForTheLongestNumbers) {
  StepEvent event;
  event.step = event.epoch = std::numeric_limits<int64_t>::min();
  double longest = -std::numeric_limits<double>::denorm_min() * 1.7976931348623157e16;
  event.loss = event.samples_per_s = event.data_us = event.compute_us = longest;
  event.lr = event.grad_norm = event.loss_scale = Number{longest, false};
  EXPECT_EQ(parsed(MetricsLine(event))["compute_us"], longest);
}

TEST(MetricsFile, CutsWhatALaterRunMakesAgain) {
  const std::string one = "{\"event\":\"step\",\"step\":1,\"epoch\":1}\n",
                    eval_one = "{\"event\":\"eval\",\"step\":1}\n",
                    two = "{\"event\":\"step\",\"step\":2,\"epoch\":1}\n",
                    eval_two = "{\"event\":\"eval\",\"step\":2}\n", end = "{\"event\":\"end\",\"step\":2}\n";
  const std::string all = one + eval_one + two + eval_two + end;
  EXPECT_EQ(all.substr(0, keptMetricsBytes(all, 2)), one + eval_one + two) << "the evaluation is made again";
  EXPECT_EQ(all.substr(0, keptMetricsBytes(all, 1)), one);
  EXPECT_EQ(keptMetricsBytes(all, 0), 0u);
  EXPECT_EQ(all.substr(0, keptMetricsBytes(all, 3)), one + eval_one + two + eval_two)
      << "it did not end there";
  EXPECT_EQ(keptMetricsBytes(one + two.substr(0, 20), 9), one.size())
      << "a line that was not written to its end";
  EXPECT_EQ(keptMetricsBytes(one + "nonsense\n" + two, 9), one.size());
  EXPECT_EQ(keptMetricsBytes("", 9), 0u);
}

TEST(MetricsFile, SaysWhenTheDiskIsFull) {
  Result<MetricsFile> file = MetricsFile::create("/dev/full");
  ASSERT_TRUE(file.ok()) << file.message();
  ASSERT_TRUE(file->write(MetricsLine(StepEvent{})).ok()) << "it is buffered";
  expectError(file->flush(), "cannot write /dev/full: No space left on device");
}

// Of a file that may have so many bytes only.
TEST(MetricsFile, KeepsWholeLinesWhenTheDiskIsFull) {
  TemporaryFolder folder;
  StepEvent event;
  const std::string line(MetricsLine(event).text());
  rlimit old;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = {.rlim_cur = 2 * line.size() + 10, .rlim_max = old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  {
    Result<MetricsFile> file = MetricsFile::create(folder / "m");
    ASSERT_TRUE(file.ok()) << file.message();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(file->write(MetricsLine(event)).ok());
    EXPECT_EQ(file->flush().message(), "cannot write " + folder / "m" + ": File too large");
  }
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(fileBytes(folder / "m"), line + line);
}

/// A program whose outputs are constants of each type.
PlanBuilder scalarsPlan() {
  PlanBuilder builder;
  fb::ProgramT& program = builder.program("train_step");
  auto add = [&](const char* name, DataType type, std::vector<uint8_t> pattern,
                 std::vector<int64_t> shape = {}) {
    uint32_t buffer = builder.buffer(name, type, std::move(shape));
    builder.fill(program.streams[0]->commands, {buffer}, std::move(pattern));
    PlanBuilder::output(program, name, buffer);
  };
  add("loss_sum", DataType::f64, patternOf(0.1));
  add("count", DataType::i32, patternOf(int32_t{-7}));
  add("lr", DataType::f32, patternOf(0.1f));
  add("loss_scale", DataType::f32, patternOf(65536.0f), {1});
  add("skipped", DataType::i1, patternOf(uint8_t{1}));
  add("half", DataType::f16, patternOf(uint16_t{0}));
  add("pair", DataType::f32, patternOf(0.0f), {2});
  return builder;
}

TEST(StepOutputs, AreFoundByNameAndReadByType) {
  Session session = open(scalarsPlan());
  ProgramId id = programOf(session, "train_step");
  Result<TrainOutputs> outputs = TrainOutputs::find(session, id);
  ASSERT_TRUE(outputs.ok()) << outputs.message();
  runOnce(session, id);
  EXPECT_EQ(outputs->loss_sum.read(session)->value, 0.1);
  EXPECT_FALSE(outputs->loss_sum.read(session)->is_single);
  EXPECT_EQ(outputs->count.read(session)->value, -7);
  EXPECT_EQ(outputs->lr.read(session)->value, static_cast<double>(0.1f));
  EXPECT_TRUE(outputs->lr.read(session)->is_single);
  EXPECT_EQ(outputs->loss_scale.read(session)->value, 65536);
  EXPECT_EQ(outputs->skipped.read(session)->value, 1);
  EXPECT_FALSE(outputs->grad_norm.exists());
  EXPECT_FALSE(outputs->grad_norm.read(session));
  expectError(ScalarOutput::find(session, id, "half"),
              "output 'half' of 'train_step' is f16, expected one number");
  expectError(ScalarOutput::find(session, id, "pair"),
              "output 'pair' of 'train_step' is 2xf32, expected one number");
}

/// A safetensors file with these tensors, every element `value`, and the counters if `counter` is not
/// negative.
SafetensorsFile weightsFile(const std::string& path, const std::vector<TensorSpec>& specs, int64_t counter,
                            float value) {
  std::vector<float> values(1024, value);
  std::vector<TensorView> tensors;
  for (const TensorSpec& spec : specs) tensors.push_back({spec, values.data()});
  for (const char* name : {"seed", "step"})
    if (counter >= 0) tensors.push_back({{.name = name, .type = DataType::i64, .shape = {}}, &counter});
  EXPECT_TRUE(writeSafetensors(path, tensors, {}).ok());
  Result<SafetensorsFile> file = SafetensorsFile::open(path);
  EXPECT_TRUE(file.ok()) << file.message();
  return *std::move(file);
}

const TensorSpec kWeight{"weight", DataType::f32, {16}}, kMomentum{"weight/momentum", DataType::f32, {16}},
    kBias{"bias", DataType::f32, {1}};

/// A session of trainPlan() and what starting from files leaves in it.
struct StartTest : testing::Test {
  explicit StartTest(const TrainPlanOptions& options = {}) : session(open(trainPlan(options), {.seed = 3})) {}
  /// Starts from one file.
  Result<std::vector<std::string>> start(const std::vector<TensorSpec>& specs, int64_t step = -1,
                                         float value = 0) {
    return store.start(weightsFile(folder / "weights", specs, step, value));
  }
  std::vector<float> weights() { return readVariable<float>(session, "weight", 16); }
  int64_t counter(const char* name) { return readVariable<int64_t>(session, name, 1)[0]; }

  TemporaryFolder folder;
  Session session;
  VariableStore store{session};
};

TEST_F(StartTest, TakesParametersAlone) {
  const TensorSpec foreign{"weight/exp_avg", DataType::f32, {3}};
  EXPECT_EQ(start({kWeight}).message(), "");
  EXPECT_EQ(weights(), std::vector<float>(16, 0.0f));
  EXPECT_EQ(start({kWeight, foreign}, 9).message(), "") << "another optimizer's state is not minded";
  EXPECT_EQ(counter("step"), 0) << "this one starts anew";
}

TEST_F(StartTest, GoesOnWithTheOptimizersState) {
  EXPECT_EQ(start({kWeight, kMomentum}, 9).message(), "");
  EXPECT_EQ(counter("step"), 9);
  EXPECT_EQ(counter("seed"), 3) << "the run's own";
}

TEST_F(StartTest, NamesWhatDoesNotFit) {
  expectError(start({kMomentum}), "missing weight (16xf32)");
  expectError(start({kWeight, kBias}), "unknown to the plan bias (1xf32)");
  expectError(start({{"weight", DataType::f32, {4, 4}}}), "of another shape or type weight (4x4xf32");
  expectError(start({kWeight, {"weight/momentum", DataType::f32, {4}}}),
              "weight/momentum (4xf32, the plan has 16xf32)");
}

TEST_F(StartTest, NeedsAFile) {
  expectError(store.startFrom({}), "no files to start from: initialize() is what begins anew");
}

TEST_F(StartTest, TakesTheLastOfSeveralFiles) {
  std::vector<SafetensorsFile> files;
  files.push_back(weightsFile(folder / "first", {kWeight, kMomentum}, 9, 1));
  files.push_back(weightsFile(folder / "second", {kWeight}, -1, 2));
  EXPECT_EQ(store.start(NamedTensors(files)).message(), "");
  EXPECT_EQ(weights(), std::vector<float>(16, 2.0f));
  EXPECT_EQ(readVariable<float>(session, "weight/momentum", 16), std::vector<float>(16, 1.0f));
  files.push_back(weightsFile(folder / "third", {kBias}, -1, 0));
  expectError(store.start(NamedTensors(files)),
              folder / "first and " + folder / "second and " + folder / "third" +
                  " does not fit the plan's variables: unknown to the plan bias (1xf32) in " +
                  folder / "third");
}

TEST_F(StartTest, NamesWhatIsLeftUnused) {
  using Warnings = std::vector<std::string>;
  const std::string file = folder / "weights: ";
  const TensorSpec mean{"weight/ema", DataType::f32, {16}}, foreign{"weight/exp_avg", DataType::f32, {3}},
      scale{"loss_scale", DataType::f32, {}}, tracker{"growth_tracker", DataType::i32, {}};
  EXPECT_EQ(*start({kWeight}), Warnings());
  EXPECT_EQ(*start({kWeight, kMomentum}, 9), Warnings()) << "but for the seed, which is the run's";
  EXPECT_EQ(
      *start({kWeight, mean}),
      Warnings({file + "running means of weights are left unused (1: weight/ema): the plan computes with "
                       "the weights themselves; compile it with --ema=… to use the means"}));
  EXPECT_EQ(
      *start({kWeight, foreign}),
      Warnings({file + "an optimizer's state is left unused (1: weight/exp_avg): the plan's optimizer "
                       "keeps other state, or does not train these; compile the model with the one that "
                       "wrote it to go on"}));
  EXPECT_EQ(*start({kWeight, kMomentum, scale, tracker}, 9),
            Warnings({file + "counters are left unused (2: growth_tracker, loss_scale): the plan has none of "
                             "this name"}));
  EXPECT_EQ(*start({kWeight}, 9),
            Warnings({file + "what the plan keeps too is left unused (1: step): the optimizer begins anew"}));
  EXPECT_EQ(*start({kWeight, kMomentum}),
            Warnings({folder / "weights does not hold step: begun as init makes it"}));
  expectError(start({kWeight, {"weigh/ema", DataType::f32, {16}}}), "unknown to the plan weigh/ema");
  expectError(start({kWeight, {"weight/", DataType::f32, {16}}}), "unknown to the plan weight/");
}

/// The same of a plan with a frozen parameter `base` beside the trained `weight`.
struct FrozenStartTest : StartTest {
  FrozenStartTest() : StartTest({.has_frozen = true}) {}
  const TensorSpec base{"base", DataType::f32, {16}};
};

struct TwoTrainedStartTest : StartTest {
  TwoTrainedStartTest() : StartTest({.has_second = true}) {}
};

TEST_F(TwoTrainedStartTest, AnOptimizersStateInPartIsNoState) {
  // As after training with one of them frozen.
  Result<std::vector<std::string>> started =
      start({kWeight, kMomentum, {"second", DataType::f32, {16}}}, 9, 4);
  ASSERT_TRUE(started.ok()) << started.message();
  ASSERT_EQ(started->size(), 1u);
  EXPECT_NE(started->front().find("in part (1 of 2 tensors); it begins anew"), std::string::npos)
      << started->front();
  EXPECT_EQ(counter("step"), 0);
  EXPECT_EQ(readVariable<float>(session, "weight/momentum", 16), std::vector<float>(16, 0.0f));
}

TEST_F(FrozenStartTest, TrainedOnesMayAllBeNew) {
  Result<std::vector<std::string>> started = start({base}, 9, 5);
  ASSERT_TRUE(started.ok()) << started.message();
  ASSERT_EQ(started->size(), 1u);
  EXPECT_NE(started->front().find("the 1 that are trained begin as init makes them"), std::string::npos)
      << started->front();
  EXPECT_EQ(counter("step"), 0) << "what is new begins at its first step";
  EXPECT_EQ(readVariable<float>(session, "base", 16), std::vector<float>(16, 5.0f));
  expectError(start({kWeight}), "missing base (16xf32)");
}

TEST_F(FrozenStartTest, TheBasesOwnHeadIsNotTaken) {
  const TensorSpec other{"weight", DataType::f32, {3}};
  Result<std::vector<std::string>> started = start({base, other}, 9, 5);
  ASSERT_TRUE(started.ok()) << started.message();
  ASSERT_EQ(started->size(), 1u);
  EXPECT_NE(started->front().find("as init makes them begin weight (3xf32, the plan has 16xf32)"),
            std::string::npos)
      << started->front();
  EXPECT_EQ(counter("step"), 0);
  EXPECT_NE(readVariable<float>(session, "weight", 16), std::vector<float>(16, 5.0f));
  // Where nothing is frozen, or in a file of what was trained, it is a mistake.
  expectError(start({other}), "weight (3xf32, the plan has 16xf32)");
}

TEST_F(FrozenStartTest, SavesWhatIsTrainedAlone) {
  ASSERT_EQ(start({base, kWeight}).message(), "");
  ASSERT_TRUE(store.save(folder / "trained", Saved::trained).ok());
  Result<SafetensorsFile> trained = SafetensorsFile::open(folder / "trained");
  ASSERT_TRUE(trained.ok()) << trained.message();
  EXPECT_FALSE(trained->find("base"));
  EXPECT_TRUE(trained->find("weight"));
  EXPECT_TRUE(trained->find("weight/momentum")) << "so that training can go on";
  ASSERT_TRUE(store.save(folder / "all").ok());
  EXPECT_TRUE(SafetensorsFile::open(folder / "all")->find("base"));
}

/// What Progress writes on a terminal of `columns`, or elsewhere.
std::string progressText(bool is_terminal, int columns, std::optional<int64_t> log_every, int64_t steps,
                         std::optional<double> loss = {}) {
  TemporaryFolder folder;
  FILE* file = std::fopen((folder / "out").c_str(), "w");
  {
    Progress progress({.descriptor = ::fileno(file),
                       .is_terminal = is_terminal,
                       .columns = columns,
                       .log_every = log_every,
                       .last_step = 10,
                       .steps_per_epoch = 5});
    for (int64_t step = 1; step <= steps; ++step) {
      StepEvent event;
      event.step = step;
      event.epoch = (step - 1) / 5 + 1;
      event.loss = loss.value_or(static_cast<double>(step));
      progress.step(event, 0.5, 100);
      ::usleep(is_terminal ? 110'000 : 0);  // the bar is drawn ten times a second
    }
  }
  std::fclose(file);
  return fileBytes(folder / "out");
}

TEST(Progress, DrawsABarOnATerminal) {
  std::string text = progressText(true, 200, {}, 7);
  EXPECT_NE(text.find("\r\x1b[Kepoch 1/2 [====        ] 2/5  loss 1.5000  200 samples/s  "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\r\x1b[Kepoch 2/2 [====        ] 2/5  loss 4.0000  "), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\r\x1b[K")) << "the bar goes when training ends";
  std::string narrow = progressText(true, 20, {}, 1);
  EXPECT_EQ(narrow, "\r\x1b[Kepoch 1/2 [==      \r\x1b[K") << "cut to 19 columns";
}

// Of a descriptor that takes nothing until somebody reads, and of one that never takes anything.
TEST(Progress, WaitsForAReaderAndRemembersErrors) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  std::string received;
  {
    Progress progress({.descriptor = ends[1], .log_every = {}});
    std::thread reader([&] {
      for (char buffer[4096]; received.size() < 300'000;) {
        ssize_t count = ::read(ends[0], buffer, sizeof(buffer));
        if (count > 0) received.append(buffer, static_cast<size_t>(count));
      }
    });
    for (int i = 0; i < 3000; ++i) progress.note(std::string(99, 'x'));
    reader.join();
    EXPECT_TRUE(progress.status().ok()) << progress.status().message();
    ::close(ends[0]);
    auto handler = std::signal(SIGPIPE, SIG_IGN);
    progress.note("nobody listens");
    std::signal(SIGPIPE, handler);
    EXPECT_TRUE(progress.status().ok()) << "a reader may go";
  }
  ::close(ends[1]);
  EXPECT_EQ(received.size(), 300'000u) << "nothing is lost";
  int full = ::open("/dev/full", O_WRONLY);
  Progress progress({.descriptor = full, .log_every = {}});
  progress.note("lost");
  EXPECT_EQ(progress.status().message(), "cannot write stdout: No space left on device");
  ::close(full);
}

TEST(Progress, WritesLinesElsewhere) {
  std::string text = progressText(false, 80, 4, 10);
  // The means of losses 1 to 4, 5 to 8, 9 and 10.
  EXPECT_EQ(text.find("epoch 1  step 4 of 10  loss 2.5000  200 samples/s  0:00 left\n"), 0u) << text;
  EXPECT_NE(text.find("\nepoch 2  step 8 of 10  loss 6.5000  "), std::string::npos) << text;
  EXPECT_NE(text.find("\nepoch 2  step 10 of 10  loss 9.5000  "), std::string::npos) << "the last one always";
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
  EXPECT_EQ(progressText(false, 80, 0, 10), "");
}

// The sign of NaN is that of the instruction that made it.
TEST(Progress, NanHasNoSign) {
  for (double sign : {1, -1}) {
    std::string text = progressText(false, 80, 1, 1, std::copysign(std::nan(""), sign));
    EXPECT_NE(text.find("  loss nan  "), std::string::npos) << text;
  }
}

/// How often anything allocates while a trainer runs so many steps.
int64_t allocationsOfRun(TrainOptions options, int64_t steps) {
  options.steps = steps;
  Result<std::unique_ptr<Trainer>> trainer = Trainer::create(options);
  EXPECT_TRUE(trainer.ok()) << trainer.message();
  int64_t before = allocationCount().total();
  Result<TrainOutcome> outcome = (*trainer)->run(kNeverStop);
  int64_t after = allocationCount().total();
  EXPECT_TRUE(outcome.ok()) << outcome.message();
  return after - before;
}

TEST(Trainer, StepsAllocateNothing) {
  TemporaryFolder folder;
  TrainOptions options;
  options.plan = folder.write("plan", trainPlan().seal());
  options.data = writeIdx(folder, "train", 400);
  options.eval_data = writeIdx(folder, "eval", 11);
  options.metrics = folder / "m";
  options.log_every = 3;
  options.log_dir = folder / "log";
  for (int64_t workers : {0, 1, 3}) {
    options.workers = workers;
    options.threads = 3;
    allocationsOfRun(options, 10);  // whatever the process allocates once
    EXPECT_EQ(allocationsOfRun(options, 1000), allocationsOfRun(options, 10))
        << "steps 10 to 1,000 with ten evaluations, " << workers << " workers";
  }
}

/// A program has no flags' ranges before its options.
TEST(Trainer, RefusesOptionsThatGpucTrainWouldRefuse) {
  TemporaryFolder folder;
  TrainOptions valid;
  valid.plan = folder.write("plan", trainPlan().seal());
  valid.data = writeIdx(folder, "train", 400);
  auto refuses = [&](auto change, const std::string& how) {
    TrainOptions options = valid;
    change(options);
    EXPECT_EQ(Trainer::create(options).message(), how);
  };
  refuses([](TrainOptions& o) { o.steps = 0; }, "TrainOptions.steps is 0, but must be at least 1");
  refuses([](TrainOptions& o) { o.epochs = -1; }, "TrainOptions.epochs is -1, but must be at least 1");
  refuses([](TrainOptions& o) { o.checkpoint_every = 0, o.checkpoint_dir = "never"; },
          "TrainOptions.checkpoint_every is 0, but must be at least 1");
  refuses([](TrainOptions& o) { o.log_every = -1; }, "TrainOptions.log_every is -1, but must be at least 0");
  refuses([](TrainOptions& o) { o.seed = -1; }, "TrainOptions.seed is -1, but must be at least 0");
  refuses([](TrainOptions& o) { o.threads = (int64_t{1} << 32) + 1; },
          "TrainOptions.threads is 4294967297, but must be at most 4096");
  refuses([](TrainOptions& o) { o.steps = 5, o.epochs = 1; },
          "--epochs and --steps are both given: which of them ends training?");
  refuses([](TrainOptions& o) { o.resume = true; },
          "--resume needs --checkpoint-dir=DIR: where are the checkpoints?");
  EXPECT_FALSE(std::filesystem::exists("never"));
  PlanBuilder builder = trainPlan({.train_counts_rows = false, .eval_counts_rows = false});
  builder.plan.batch = builder.plan.global_batch = 0;
  folder.write("plan", builder.seal());
  refuses(
      [](TrainOptions&) {},
      "the plan does not say how many rows a batch has: compile with --batch=N, or with a recipe that has "
      "`batch = N`");
}

}  // namespace
}  // namespace gpuc::test
