// gpuc-train as a user runs it: metrics, evaluation, checkpoints, going on after a stop or a kill, errors.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <thread>

#include "runtime/state/checkpoint.h"
#include "runtime/state/safetensors.h"
#include "runtime/train/progress.h"
#include "test/runtime/train_fixture.h"

namespace gpuc::test {
namespace {

TEST_F(Train, WritesALineForEachUpdateAndEvaluation) {
  expectTrains("--epochs=2 --eval-data=" + eval_ + " --metrics=" + folder_ / "m");
  std::vector<Json> lines = linesOf(folder_ / "m");
  ASSERT_EQ(lines.size(), 2u * (10 + 1) + 1u);  // 42 samples are 10 batches of 4
  for (int64_t i = 0; i < 10; ++i) {
    const Json& line = lines[static_cast<size_t>(i)];
    EXPECT_EQ(line["event"], "step");
    EXPECT_EQ(line["step"], i + 1);
    EXPECT_EQ(line["epoch"], 1);
    EXPECT_EQ(line["loss_scale"], 1.0);
    EXPECT_EQ(line["skipped"], false);
    EXPECT_EQ(line["lr"].get<float>(), 0.01f / (1.0f + 0.001f * static_cast<float>(i)));
    EXPECT_GT(line["grad_norm"], 0.0);
    EXPECT_GT(line["loss"], 0.0);
    EXPECT_GT(line["samples_per_s"], 0.0);
    EXPECT_GE(line["data_us"], 0.0);
    EXPECT_GT(line["compute_us"], 0.0);
  }
  EXPECT_EQ(lines[10]["event"], "eval");
  EXPECT_EQ(lines[10]["step"], 10);
  EXPECT_EQ(lines[11]["epoch"], 2);
  EXPECT_EQ(lines[21]["event"], "eval");
  EXPECT_EQ(lines[21]["step"], 20);
  EXPECT_EQ(lines[22]["event"], "end");
  EXPECT_EQ(lines[22]["steps"], 20);
  EXPECT_EQ(lines[22]["epochs"], 2);
  EXPECT_EQ(lines[22]["loss"], lines[21]["loss"]);
  EXPECT_EQ(lines[22]["accuracy"], lines[21]["accuracy"]);
}

std::vector<float> savedWeight(const std::string& path) {
  Result<SafetensorsFile> file = SafetensorsFile::open(path);
  EXPECT_TRUE(file.ok()) << file.message();
  std::vector<float> weight(16);
  std::memcpy(weight.data(), file->find("weight")->data.data(), 64);
  return weight;
}

/// The mean loss and accuracy of samples [begin, end) of writeIdx's files under these weights.
std::pair<double, double> evaluateByHand(const std::vector<float>& weight, const std::string& prefix,
                                         size_t begin, size_t end) {
  std::string pixels = fileBytes(prefix + "-images-idx3-ubyte").substr(16);
  std::string classes = fileBytes(prefix + "-labels-idx1-ubyte").substr(8);
  double loss = 0, correct = 0, count = static_cast<double>(end - begin);
  for (size_t i = begin; i < end; ++i) {
    double sum = 0;
    for (size_t p = 0; p < 16; ++p)
      sum += static_cast<double>(weight[p]) * static_cast<uint8_t>(pixels[16 * i + p]) / 255;
    loss += (sum - classes[i]) * (sum - classes[i]);
    correct += std::abs(sum - classes[i]) < 0.5;
  }
  return {loss / count, correct / count};
}

TEST_F(Train, LossIsTheMeanOverTheBatch) {
  expectTrains("--steps=1 --no-shuffle --metrics=" + folder_ / "m");
  // The first four samples, under the weights that init gives.
  double loss = evaluateByHand(std::vector<float>(16, 0.5f), folder_ / "train", 0, 4).first;
  EXPECT_NEAR(linesOf(folder_ / "m")[0]["loss"], loss, 1e-5 * loss);
}

TEST_F(Train, EvaluatesEachSampleExactlyOnce) {
  // 11 samples are batches of 4, 4 and 3: the padding of the last one must not count.
  expectTrains("--steps=25 --eval-data=" + eval_ +
               " --metrics=" + folder_ / "m --save-variables=" + folder_ / "w");
  auto [loss, accuracy] = evaluateByHand(savedWeight(folder_ / "w"), folder_ / "eval", 0, 11);
  std::vector<Json> lines = linesOf(folder_ / "m");
  const Json& last = lines[lines.size() - 2];
  EXPECT_EQ(last["event"], "eval");
  EXPECT_EQ(last["step"], 25) << "also at the end within an epoch";
  EXPECT_EQ(last["epoch"], 3);
  EXPECT_NEAR(last["loss"], loss, 1e-5 * loss);
  EXPECT_EQ(last["accuracy"], accuracy);
  EXPECT_EQ(
      std::count_if(lines.begin(), lines.end(), [](const Json& line) { return line["event"] == "eval"; }), 3);
}

TEST_F(Train, RefusesToEvaluateLeftoversThatThePlanCannotLeaveOut) {
  folder_.write("test.plan", trainPlan({.eval_counts_rows = false}).seal());
  expectError(
      1, "--eval-data=" + eval_,
      "eval: 11 samples are no multiple of the batch of 4 (3 are left over), and the plan's 'eval_step' "
      "cannot leave out padding: compile with a --batch that divides the number of samples");
  expectTrains("--eval-data=" + writeIdx(folder_, "even", 12));
}

TEST_F(Train, PadsTheLastBatchIfAsked) {
  const std::string padded = "--last-batch=pad --no-shuffle ";
  expectTrains(padded + "--metrics=" + folder_ / "m");
  std::vector<Json> lines = linesOf(folder_ / "m");
  ASSERT_EQ(lines.size(), 11u + 1u);  // 10 batches of 4, one of 2
  expectTrains(padded + "--steps=10 --save-variables=" + folder_ / "w");
  double loss = evaluateByHand(savedWeight(folder_ / "w"), folder_ / "train", 40, 42).first;
  EXPECT_NEAR(lines[10]["loss"], loss, 1e-5 * loss) << "its padding counts 0";
  folder_.write("test.plan", trainPlan({.train_counts_rows = false}).seal());
  expectError(1, "--last-batch=pad", "'train_step' cannot leave out padding: pass --last-batch=drop");
  expectTrains("--last-batch=drop");
}

/// What must not depend on anything but plan, data and seed.
struct Kept {
  std::string variables, checkpoint;
  std::vector<Json> metrics;
};

class Resume : public Train {
 protected:
  /// The flags of one run that keeps everything under `name`.
  std::string flagsFor(const std::string& name) const {
    return "--eval-data=" + eval_ + " --save-variables=" + folder_ / (name + ".weights") +
           " --metrics=" + folder_ / (name + ".metrics") + " --checkpoint-dir=" + folder_ / name + " ";
  }
  Kept resultOf(const std::string& name, const std::string& last) const {
    return {fileBytes(folder_ / (name + ".weights")), fileBytes(folder_ / name + "/" + last),
            timelessLinesOf(folder_ / (name + ".metrics"))};
  }
  void expectSame(const std::string& a, const std::string& b, const std::string& last) const {
    Kept first = resultOf(a, last), second = resultOf(b, last);
    EXPECT_FALSE(first.variables.empty());
    EXPECT_EQ(first.variables, second.variables);
    EXPECT_FALSE(first.checkpoint.empty());
    EXPECT_EQ(first.checkpoint, second.checkpoint);
    EXPECT_EQ(first.metrics, second.metrics);
  }
};

TEST_F(Resume, GivesTheSameBitsAsNeverStopped) {
  for (const std::string variant :
       {"", "--no-shuffle", "--last-batch=pad", "--seed=12345", "--workers=0", "--workers=3 --prefetch=2"}) {
    SCOPED_TRACE(variant);
    expectTrains(flagsFor("whole") + "--steps=30 " + variant);
    // Stopped within an epoch, at the end of one, and at the very end.
    for (const char* part : {"--steps=13", "--steps=20", "--steps=30", "--steps=30"})
      expectTrains(flagsFor("parts") + part + " --resume " + variant);
    expectSame("whole", "parts", "step-00000030.safetensors");
    for (const char* run : {"whole", "parts"}) std::filesystem::remove_all(folder_ / run);
  }
}

TEST_F(Resume, GivesTheSameBitsWithOtherThreadsAndWorkers) {
  expectTrains(flagsFor("whole") + "--steps=30");
  expectTrains(flagsFor("parts") + "--steps=7 --workers=2 --threads=1");
  expectTrains(flagsFor("parts") + "--steps=30 --workers=0 --threads=3 --resume");
  expectSame("whole", "parts", "step-00000030.safetensors");
}

TEST_F(Resume, SurvivesKillsAtAnyMoment) {
  const std::string flags = "--steps=3000 --checkpoint-every=7 --keep=2 --resume";
  expectTrains(flagsFor("whole") + "--steps=3000 --checkpoint-every=1000");
  std::mt19937 random(1);  // the moments still differ from run to run, as the machine's load does
  int kills = 0;
  for (int attempt = 0; attempt < 16; ++attempt) {
    std::string before = fileBytes(folder_ / "parts/latest");
    pid_t child = start(flagsFor("parts") + flags);
    // Either while it loads, resumes and begins, or between and in checkpoints further on.
    if (attempt % 2 == 1)
      while (fileBytes(folder_ / "parts/latest") == before && !hasEnded(child)) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % (attempt % 2 == 1 ? 5'000 : 15'000)));
    ::kill(child, SIGKILL);
    kills += exitCodeOf(child) == -SIGKILL;
  }
  EXPECT_GE(kills, 8) << "the rest came to its end before";
  expectTrains(flagsFor("parts") + flags);
  expectSame("whole", "parts", "step-00003000.safetensors");
}

TEST_F(Resume, StopsOnSignalsWithACheckpoint) {
  // Far apart, so that the signal comes between two of them.
  const std::string every = "--checkpoint-every=5000 --log-every=0 ";
  for (int signal : {SIGINT, SIGTERM}) {
    for (const char* run : {"whole", "parts"}) std::filesystem::remove_all(folder_ / run);
    pid_t child = start(flagsFor("parts") + every + "--steps=100000000");
    while (!std::filesystem::exists(folder_ / "parts/latest")) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    ::kill(child, signal);
    EXPECT_EQ(exitCodeOf(child), 130);
    int64_t step = linesOf(folder_ / "parts.metrics").back()["step"];
    std::string last = fileBytes(folder_ / "parts/latest");
    EXPECT_EQ(last, checkpointName(step) + "\n") << "of the step that was under way";
    const std::string to_end = every + "--steps=" + std::to_string(step + 5);
    expectTrains(flagsFor("parts") + "--resume " + to_end);
    expectTrains(flagsFor("whole") + to_end);
    expectSame("whole", "parts", checkpointName(step + 5));
  }
}

TEST_F(Train, SaysHowToGoOn) {
  // The signal comes twice, once to the process and once to its group, as timeout(1) sends it.
  auto stopped = [this](const std::string& flags, const std::string& end = "--steps=100000000") {
    const std::string metrics = folder_ / "m";
    std::filesystem::remove(metrics);
    return execute("(" + command(end + " --log-every=0 --metrics=" + metrics + flags) +
                   " & child=$!; until [ -s " + metrics +
                   " ]; do sleep 0.01; done; kill -INT $child; kill -INT $child; wait $child)");
  };
  Outcome outcome = stopped(" --checkpoint-every=100000000 --checkpoint-dir=" + folder_ / "c");
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_NE(outcome.text.find(": the same command with --resume goes on from there\n"), std::string::npos)
      << outcome.text;
  outcome = stopped("");
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_NE(outcome.text.find("nothing was saved (--checkpoint-dir=DIR would let it resume)\n"),
            std::string::npos)
      << outcome.text;
  // More epochs than steps can be counted.
  outcome = stopped("", "--epochs=9223372036854775807");
  EXPECT_EQ(outcome.exit_code, 130) << outcome.text;
}

TEST_F(Train, EndsAtOnceIfStoppedAgain) {
  // A step that cannot be finished: the metrics go into a pipe that nobody reads, and that is soon full.
  std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  pid_t child = start("--steps=100000000 --metrics=" + pipe);
  const int nearly_full = ::fcntl(reader, F_GETPIPE_SZ) - 8192;
  for (int waiting = 0; waiting < nearly_full && !hasEnded(child);) {
    ::ioctl(reader, FIONREAD, &waiting);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ::kill(child, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ::kill(child, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  EXPECT_FALSE(hasEnded(child)) << "the first one is a wish, and so is what comes right after it";
  ::kill(child, SIGINT);
  EXPECT_EQ(exitCodeOf(child), 130);
  ::close(reader);
}

TEST_F(Resume, RefusesAnotherSeedBatchOrData) {
  expectTrains("--steps=3 --seed=1 --checkpoint-dir=" + folder_ / "c");
  const std::string again = "--steps=9 --resume --checkpoint-dir=" + folder_ / "c ";
  expectError(1, again + "--seed=2", "was trained with seed 1, this run has 2: pass --seed=1");
  expectError(1, again + "--no-shuffle", "was trained with shuffling true, this run has false");
  expectError(1, again + "--last-batch=pad", "was trained with --last-batch drop, this run has pad");
  writeIdx(folder_, "train", 43);
  expectError(1, again, "was trained with this many samples: 42, this run has 43: pass the same --data");
  writeIdx(folder_, "train", 42);
  folder_.write("test.plan", trainPlan({.batch = 8}).seal());
  expectError(1, again, "was trained with a global batch of 4, this run has 8");
  folder_.write("test.plan", trainPlan().seal());
  expectTrains(again);  // the checkpoint's seed, if none is asked for
}

TEST_F(Resume, StartsFromScratchIfThereIsNoCheckpoint) {
  folder_.write("m", "{\"event\":\"step\",\"step\":1,\"epoch\":1}\n");
  Outcome outcome = train("--steps=2 --resume --checkpoint-dir=" + folder_ / "c --metrics=" + folder_ / "m");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.text.find("no checkpoint in " + folder_ / "c: starting from scratch"), std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find("warning: " + folder_ / "m holds the metrics of another run, up to step 1, "),
            std::string::npos)
      << outcome.text;
  EXPECT_EQ(linesOf(folder_ / "m").size(), 3u);
}

TEST_F(Train, KeepsCheckpointsAfterEachEpochAndAtTheEnd) {
  auto steps = [&](const std::string& flags) {
    std::filesystem::remove_all(folder_ / "c");
    expectTrains(flags + " --checkpoint-dir=" + folder_ / "c");
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "c"))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(steps("--steps=25"), (Names{"latest", "step-00000010.safetensors", "step-00000020.safetensors",
                                        "step-00000025.safetensors"}));
  EXPECT_EQ(steps("--steps=11 --checkpoint-every=3 --keep=2"),
            (Names{"latest", "step-00000009.safetensors", "step-00000011.safetensors"}));
}

TEST_F(Train, StartsFromWeights) {
  expectTrains("--steps=5 --save-variables=" + folder_ / "w");
  expectTrains("--steps=1 --variables=" + folder_ / "w --metrics=" + folder_ / "m");
  // All of the optimizer's state is there, so that it continues: the rate is that of its sixth step.
  EXPECT_EQ(linesOf(folder_ / "m")[0]["lr"].get<float>(), 0.01f / (1.0f + 0.001f * 5.0f));
  EXPECT_EQ(linesOf(folder_ / "m")[0]["step"], 1);
}

TEST_F(Train, KeepsALogFolderAndAProfile) {
  expectTrains("--steps=3 --log-dir=" + folder_ / "log --profile=" + folder_ / "p");
  EXPECT_EQ(linesOf(folder_ / "log/metrics.jsonl").size(), 4u);
  EXPECT_EQ(fileBytes(folder_ / "log/command.txt"),
            command("--steps=3 --log-dir=" + folder_ / "log --profile=" + folder_ / "p") + "\n");
  EXPECT_EQ(Json::parse(fileBytes(folder_ / "log/plan.json"))["name"], "test");
  EXPECT_FALSE(Json::parse(fileBytes(folder_ / "p"))["traceEvents"].empty());
}

TEST_F(Train, SpeaksInLines) {
  Outcome outcome = train("--steps=20 --log-every=8 --eval-data=" + eval_);
  EXPECT_NE(outcome.text.find("42 samples, batch 4, 10 steps an epoch, seed 7"), std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find("epoch 1  step 8 of 20  loss "), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("epoch 2  step 16 of 20  loss "), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("epoch 2  step 20 of 20  loss "), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("epoch 1  evaluation after step 10:  loss "), std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find("done: 20 steps, 2 whole epochs; this run took "), std::string::npos)
      << outcome.text;
  EXPECT_EQ(outcome.text.find('\r'), std::string::npos) << "no bar where there is no terminal";
  EXPECT_EQ(execute("sh -c '" + command("--steps=2 --metrics=- 2>/dev/null") + "'")
                .text.find("{\"event\":\"step\""),
            0u);
}

TEST_F(Train, TrainsOnWhenNobodyListens) {
  Outcome outcome =
      execute(command("--steps=20000 --log-every=1 --save-variables=" + folder_ / "w") + " | head -n 1");
  EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "w"));
}

TEST_F(Train, ErrorsAreOneLineAndHaveTheirExitCode) {
  folder_.write("kept", "kept");
  const std::string lines = "{\"event\":\"step\",\"step\":1,\"epoch\":1}\n";
  folder_.write("lines", lines);
  const std::string kept = " --save-variables=" + folder_ / "kept --metrics=" + folder_ / "lines";
  expectError(2, "--epochs=1 --steps=1", "--epochs and --steps are both given");
  expectError(2, "--epochs=0", "--epochs");
  expectError(2, "--resume", "--resume needs --checkpoint-dir=DIR");
  expectError(2, "--checkpoint-every=3", "--checkpoint-every needs --checkpoint-dir=DIR");
  expectError(2, "--keep=2", "--keep needs --checkpoint-dir=DIR");
  expectError(2, "--eval-data=idy:x", "--eval-data: data 'idy:x': unknown kind 'idy'");
  expectError(2, "--last-batch=keep", "--last-batch");
  expectError(2, "--step=1", "--steps");
  expectError(1, "--save-variables=" + folder_ / "none/w", folder_ / "none" + " is not a folder");
  expectError(1, "--metrics=" + folder_.path(), "it is a folder");
  expectError(1, "--eval-data=idx:" + folder_ / "none" + kept, "none-images-idx3-ubyte");
  expectError(1, "--variables=" + folder_.write("short", "kept") + kept, "short: cut short");
  writeIdx(folder_, "train", 3);
  expectError(1, kept, "the data set has 3 samples, fewer than one global batch of 4 rows");
  std::string labels = fileBytes(folder_ / "train-labels-idx1-ubyte");
  labels[9] = 10;
  folder_.write("train-labels-idx1-ubyte", labels);
  expectError(
      1, kept,
      "train-labels-idx1-ubyte: sample 1 has labels = 10, which lies outside the plan's range [0, 10)");
  folder_.write("test.plan", trainPlan({.has_eval = false}).seal());
  writeIdx(folder_, "train", 42);
  expectError(1, "--eval-data=" + eval_ + kept,
              "the plan has no entry 'eval_step', it has: init, train_step");
  folder_.write("test.plan", "nothing like it");
  expectError(1, kept, "not a gpuc plan");
  EXPECT_EQ(fileBytes(folder_ / "kept") + fileBytes(folder_ / "lines"), "kept" + lines)
      << "nothing is overwritten by a run that cannot begin";
  EXPECT_EQ(execute(std::string(GPUC_TRAIN) + " " + plan_).exit_code, 2) << "--data is missing";
}

}  // namespace
/// What Progress says, but for lines of steps.
std::string whatIsSaid(const std::function<void(Progress&)>& during) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  {
    Progress progress({.descriptor = ends[1], .log_every = 0, .last_step = 1, .workers = 3});
    during(progress);
  }
  close(ends[1]);
  std::string said(1024, '\0');
  said.resize(static_cast<size_t>(std::max<ssize_t>(0, read(ends[0], said.data(), said.size()))));
  close(ends[0]);
  return said;
}

/// Of a run of one step that took `step_s` and waited `data_us` of that.
std::string endOfRun(double step_s, double data_us) {
  return whatIsSaid([&](Progress& progress) {
    progress.step({.step = 1, .epoch = 1, .data_us = data_us}, step_s, /*rows=*/8);
    progress.end({.step = 1, .epoch = 1, .steps = 1});
  });
}

TEST(Progress, SaysOnceThatTheLossIsLost) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string text = whatIsSaid([&](Progress& progress) {
    int64_t step = 0;
    for (double loss : {2.5, -std::nan(""), 2.5, infinity})
      progress.step({.step = ++step, .loss = loss}, 1, 1);
  });
  EXPECT_EQ(text,
            "note: the loss of step 2 is nan; compiled with --check-numerics, training stops there and names "
            "the op\n");
  const std::string other =
      whatIsSaid([&](Progress& progress) { progress.step({.step = 1, .loss = -infinity}, 1, 1); });
  EXPECT_NE(other.find("step 1 is infinite;"), std::string::npos) << other;
  const StepEvent skipped = {.step = 1, .loss = infinity, .skipped = true};
  EXPECT_EQ(whatIsSaid([&](Progress& progress) { progress.step(skipped, 1, 1); }), "");
}

TEST(Progress, SaysThatStepsWaitedForData) {
  EXPECT_NE(
      endOfRun(2.5, 2e6).find(
          "note: steps waited for data in 2.0 s of their 2.5 s; --workers loads it on more threads than 3\n"),
      std::string::npos);
  EXPECT_EQ(endOfRun(2.5, 0.9e6).find("note"), std::string::npos) << "less than a second";
  EXPECT_EQ(endOfRun(100, 2e6).find("note"), std::string::npos) << "little of the whole";
}

}  // namespace gpuc::test
