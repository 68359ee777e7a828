// What gpuc-train does with folders and files that are there already: it begins no run anew over another's,
// and says whatever it replaces or leaves unread.
#include <fstream>
#include <thread>

#include "runtime/state/checkpoint.h"
#include "test/runtime/train_fixture.h"

namespace gpuc::test {
namespace {

using TrainFolders = Train;

TEST_F(TrainFolders, RefusesOtherDataOfTheSameSize) {
  const std::string flags = "--resume --checkpoint-dir=" + folder_ / "c ";
  expectTrains("--steps=3 " + flags);
  const std::string labels = folder_ / "train-labels-idx1-ubyte";
  std::string bytes = fileBytes(labels);
  bytes.back() = static_cast<char>(bytes.back() == 0);
  std::ofstream(labels, std::ios::binary) << bytes;
  expectError(1, "--steps=9 " + flags, "was trained with data of the checksum ");
}

TEST_F(TrainFolders, AUsedFolderIsNotBegunAnew) {
  const std::string flags = "--steps=3 --checkpoint-dir=" + folder_ / "c";
  expectTrains(flags);
  std::string before = fileBytes(folder_ / "c/step-00000003.safetensors");
  // With `latest` gone the checkpoints are another run's all the same.
  for (bool has_latest : {true, false}) {
    if (!has_latest) std::filesystem::remove(folder_ / "c/latest");
    expectError(1, flags + " --seed=9",
                folder_ / "c" +
                    " holds checkpoints of another run, up to step 3: pass --resume to go on from there, or "
                    "another --checkpoint-dir to begin anew");
    EXPECT_EQ(fileBytes(folder_ / "c/step-00000003.safetensors"), before);
  }
  std::filesystem::create_directory(folder_ / "empty");
  expectTrains("--steps=3 --checkpoint-dir=" + folder_ / "empty");
}

TEST_F(TrainFolders, OfTwoRunsInAFolderTheSecondIsRefused) {
  for (bool is_there : {false, true}) {
    const std::string folder = folder_ / (is_there ? "used" : "new");
    if (is_there) expectTrains("--steps=3 --checkpoint-dir=" + folder);
    std::string before = fileBytes(folder + "/latest");
    const std::string flags = "--checkpoint-every=100 --resume --checkpoint-dir=" + folder;
    pid_t child = start("--log-every=0 --steps=100000000 " + flags);
    while (fileBytes(folder + "/latest") == before && !hasEnded(child)) std::this_thread::yield();
    for (const std::string& second : {"--steps=5 " + flags, "--steps=5 --checkpoint-dir=" + folder})
      expectError(1, second,
                  "another process is writing to the folder " + folder +
                      ": wait for it to end, or give another --checkpoint-dir");
    ::kill(child, SIGKILL);
    EXPECT_EQ(exitCodeOf(child), -SIGKILL);
    expectTrains("--steps=5 " + flags);  // the lock went with its holder, and there is nothing else of it
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      EXPECT_TRUE(isCheckpointName(entry.path().filename().string())) << entry.path();
  }
}

TEST_F(TrainFolders, SaysThatWeightsAreNotRead) {
  expectTrains("--steps=3 --save-variables=" + folder_ / "w --checkpoint-dir=" + folder_ / "c");
  Outcome outcome =
      train("--steps=4 --resume --variables=" + folder_ / "w --checkpoint-dir=" + folder_ / "c");
  EXPECT_NE(outcome.text.find("warning: --variables is not read: training goes on from " +
                              folder_ / "c/step-00000003.safetensors\n"),
            std::string::npos)
      << outcome.text;
}

TEST_F(TrainFolders, SaysThatLinesOfMetricsAreMissing) {
  const std::string flags = "--checkpoint-dir=" + folder_ / "c --metrics=" + folder_ / "m ";
  expectTrains("--steps=3 " + flags);
  expectTrains("--steps=6 --resume --checkpoint-dir=" + folder_ / "c");
  Outcome outcome = train("--steps=8 --resume " + flags);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.text.find("warning: " + folder_ / "m" +
                              " ends with step 3, and training goes on after step 6: the lines between are "
                              "missing\n"),
            std::string::npos)
      << outcome.text;
}

TEST_F(TrainFolders, SaysWhichLogsItReplaces) {
  auto warns = [&](const std::string& flags, const std::string& text) {
    EXPECT_EQ(train(flags).text.find("warning: "), std::string::npos) << "the first run";
    Outcome outcome = train(flags);
    EXPECT_EQ(outcome.text.find("warning: " + text + " keeps both\n"), 0u) << outcome.text;
    EXPECT_EQ(outcome.text.find("warning: ", 1), std::string::npos) << outcome.text;
  };
  warns("--steps=3 --metrics=" + folder_ / "m",
        folder_ /
            "m holds the metrics of another run, up to step 3, which this one replaces; another --metrics");
  warns("--steps=3 --log-dir=" + folder_ / "log",
        folder_ / "log holds the logs of another run, which this one replaces; another --log-dir");
  // Cut within its first line, as by a kill.
  folder_.write("m", "{\"event\":\"ste");
  EXPECT_EQ(train("--steps=3 --metrics=" + folder_ / "m").exit_code, 0);
  for (const char* text : {"Dear reader,", "Dear reader,\n", "{\"event\":\n", "{}\n"}) {
    folder_.write("letter", text);
    for (const std::string& flags : {std::string(), " --resume --checkpoint-dir=" + folder_ / "c"})
      expectError(1, "--steps=3 --metrics=" + folder_ / "letter" + flags,
                  "letter: it holds something else, which would be lost; give --metrics another name");
    EXPECT_EQ(fileBytes(folder_ / "letter"), text);
  }
}

TEST_F(TrainFolders, ACommandThatGoesOnIsWrittenBelowTheFirst) {
  const std::string flags = "--log-dir=" + folder_ / "log --checkpoint-dir=" + folder_ / "log --steps=";
  expectTrains(flags + "3");
  expectTrains(flags + "5 --resume");
  EXPECT_EQ(fileBytes(folder_ / "log/command.txt"),
            command(flags + "3") + "\n" + command(flags + "5 --resume") + "\n");
}

TEST_F(TrainFolders, OutputsAreNotWhatIsRead) {
  expectTrains("--steps=1 --save-variables=" + folder_ / "w");
  std::filesystem::create_hard_link(folder_ / "w", folder_ / "twin");
  std::filesystem::create_symlink(folder_ / "w", folder_ / "link");
  std::filesystem::create_directory(folder_ / "log");
  std::filesystem::create_symlink(folder_ / "w", folder_ / "log/plan.json");
  const std::string start = "--steps=1 --variables=" + folder_ / "w ";
  const std::string images = folder_ / "train-images-idx3-ubyte", labels = folder_ / "eval-labels-idx1-ubyte";
  const std::string before =
      fileBytes(folder_ / "w") + fileBytes(images) + fileBytes(labels) + fileBytes(plan_);
  for (const char* flag : {"--save-variables=", "--save-trained=", "--profile=", "--metrics="}) {
    for (const char* name : {"w", "twin", "link", "log/../w"})
      expectError(1, start + flag + folder_ / name, "cannot write " + folder_ / name + ": it is read, too");
    for (const std::string& path : {images, labels, plan_})
      expectError(1, start + flag + path + " --eval-data=" + eval_,
                  "cannot write " + path + ": it is read, too");
  }
  expectError(1, start + "--log-dir=" + folder_ / "log", "log/plan.json: it is read, too");
  EXPECT_EQ(fileBytes(folder_ / "w") + fileBytes(images) + fileBytes(labels) + fileBytes(plan_), before);
}

TEST_F(TrainFolders, OutputsAreNotCheckpoints) {
  expectTrains("--steps=2 --checkpoint-dir=" + folder_ / "c");
  for (const char* name : {"latest", "step-00000002.safetensors", "step-00000009.safetensors"})
    for (const char* flag : {"--save-variables=", "--metrics=", "--profile="})
      expectError(1, "--steps=3 --resume --checkpoint-dir=" + folder_ / "c " + flag + folder_ / "c/" + name,
                  "checkpoints have such names there; give it another");
  expectTrains("--steps=3 --resume --checkpoint-dir=" + folder_ / "c --save-variables=" + folder_ / "c/w");
}

}  // namespace
}  // namespace gpuc::test
