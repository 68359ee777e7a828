// Checkpoints: whatever ends the writer, a whole one is found.
#include "runtime/state/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "runtime/base/file.h"
#include "test/runtime/temporary_folder.h"

namespace gpuc {
namespace {

namespace fs = std::filesystem;

TrainingPosition at(int64_t step) {
  return {.step = step,
          .epoch = step / 10,
          .step_in_epoch = step % 10,
          .seed = ~uint64_t{0},
          .global_batch = 64,
          .samples = 640};
}

/// A checkpoint whose every element is its step.
Status save(const CheckpointFolder& folder, int64_t step, size_t elements = 1000) {
  std::vector<int64_t> values(elements, step);
  int64_t count = static_cast<int64_t>(elements);
  return folder.save(
      at(step), {{{"w", DataType::i64, {count}}, values.data()}, {{"b", DataType::i64, {1}}, values.data()}},
      {{"model", "mlp"}});
}

int64_t stepIn(const Checkpoint& checkpoint) {
  int64_t first;
  std::string_view data = checkpoint.file.find("w")->data;
  std::memcpy(&first, data.data(), 8);
  for (size_t i = 0; i < data.size(); i += 8) EXPECT_EQ(std::memcmp(data.data() + i, &first, 8), 0);
  return first;
}

std::vector<std::string> filesIn(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void flipByte(const std::string& path, size_t from_end) {
  std::string bytes = fileBytes(path);
  bytes[bytes.size() - 1 - from_end] ^= 1;
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(Checkpoint, ComesBackAsItWasSaved) {
  TemporaryFolder temporary;
  CheckpointFolder folder = *CheckpointFolder::open(temporary / "run/checkpoints", 3);
  EXPECT_FALSE(folder.loadNewest()->has_value());
  ASSERT_TRUE(save(folder, 12).ok());
  Result<std::optional<Checkpoint>> checkpoint = folder.loadNewest();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.message();
  EXPECT_EQ((*checkpoint)->position, at(12));
  EXPECT_EQ((*checkpoint)->metadata, (Metadata{{"model", "mlp"}}));
  EXPECT_TRUE((*checkpoint)->warnings.empty());
  EXPECT_EQ(stepIn(**checkpoint), 12);
  EXPECT_EQ(filesIn(folder.path()), (std::vector<std::string>{"latest", "step-00000012.safetensors"}));
  EXPECT_EQ(fileBytes(folder.path() + "/latest"), "step-00000012.safetensors\n");
}

TEST(Checkpoint, SameStateSameBytes) {
  TemporaryFolder one, two;
  ASSERT_TRUE(save(*CheckpointFolder::open(one.path(), 1), 5).ok());
  ASSERT_TRUE(save(*CheckpointFolder::open(two.path(), 9), 5).ok());
  EXPECT_EQ(fileBytes(one / checkpointName(5)), fileBytes(two / checkpointName(5)));
}

TEST(Checkpoint, KeepsTheNewest) {
  TemporaryFolder temporary;
  CheckpointFolder folder = *CheckpointFolder::open(temporary.path(), 2);
  temporary.write("notes.txt", "mine");
  temporary.write("step-1.safetensors", "mine too");  // not a name that gpuc writes
  for (int64_t step : {1, 2, 3, 100000000}) ASSERT_TRUE(save(folder, step).ok());
  EXPECT_EQ(filesIn(folder.path()),
            (std::vector<std::string>{"latest", "notes.txt", "step-00000003.safetensors",
                                      "step-1.safetensors", "step-100000000.safetensors"}));
  EXPECT_EQ((*folder.loadNewest())->position.step, 100000000);
}

TEST(Checkpoint, LaterStepsOfAnotherRunAreNeitherTakenNorRemoved) {
  TemporaryFolder temporary;
  CheckpointFolder folder = *CheckpointFolder::open(temporary.path(), 1);
  ASSERT_TRUE(save(folder, 500).ok());
  ASSERT_TRUE(save(folder, 10).ok());  // a fresh run in the same folder
  ASSERT_TRUE(save(folder, 20).ok());
  EXPECT_EQ((*folder.loadNewest())->position.step, 20);
  EXPECT_EQ(filesIn(folder.path()),
            (std::vector<std::string>{"latest", "step-00000020.safetensors", "step-00000500.safetensors"}));
}

TEST(Checkpoint, FallsBackToAnOlderOneAndSaysSo) {
  TemporaryFolder temporary;
  CheckpointFolder folder = *CheckpointFolder::open(temporary.path(), 5);
  for (int64_t step : {1, 2, 3, 4}) ASSERT_TRUE(save(folder, step).ok());
  flipByte(temporary / checkpointName(4), 100);         // a tensor's byte
  fs::resize_file(temporary / checkpointName(3), 500);  // cut short
  Result<std::optional<Checkpoint>> checkpoint = folder.loadNewest();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.message();
  EXPECT_EQ((*checkpoint)->position.step, 2);
  ASSERT_EQ((*checkpoint)->warnings.size(), 2u);
  EXPECT_NE((*checkpoint)
                ->warnings[0]
                .find("passing over a damaged checkpoint: " + (temporary / checkpointName(4)) +
                      ": its data have the checksum"),
            std::string::npos)
      << (*checkpoint)->warnings[0];
  EXPECT_NE((*checkpoint)->warnings[1].find("step-00000003.safetensors: cut short"), std::string::npos)
      << (*checkpoint)->warnings[1];
}

TEST(Checkpoint, WithoutLatestTheHighestStepCounts) {
  TemporaryFolder temporary;
  CheckpointFolder folder = *CheckpointFolder::open(temporary.path(), 5);
  for (int64_t step : {1, 2}) ASSERT_TRUE(save(folder, step).ok());
  fs::remove(temporary / "latest");
  EXPECT_EQ((*folder.loadNewest())->position.step, 2);
  temporary.write("latest", "rubbish");
  EXPECT_EQ((*folder.loadNewest())->position.step, 2);
}

TEST(Checkpoint, RefusesWhatIsNone) {
  TemporaryFolder temporary;
  CheckpointFolder folder = *CheckpointFolder::open(temporary.path(), 1);
  ASSERT_TRUE(save(folder, 1).ok());
  flipByte(temporary / checkpointName(1), 0);
  expectError(folder.loadNewest(),
              "no checkpoint in " + temporary.path() + " is whole (1 tried); the newest: ");
  float value = 1;
  TensorView view{{"w", DataType::f32, {}}, &value};
  ASSERT_TRUE(writeSafetensors(temporary / "w", {view}, {}).ok());
  expectError(CheckpointFolder::load(temporary / "w"),
              "w: is no checkpoint of training: it has no gpuc.data_crc32");
  std::string crc = "2896259690";  // of the bytes 00 00 80 3f
  ASSERT_TRUE(writeSafetensors(temporary / "w", {view}, {{"gpuc.data_crc32", crc}}).ok());
  expectError(CheckpointFolder::load(temporary / "w"),
              "w: is no checkpoint of training: it has no gpuc.step");
  for (const char* step : {"-1", "1x", "", "1000000000000001", "9223372036854775808"}) {
    ASSERT_TRUE(
        writeSafetensors(temporary / "w", {view}, {{"gpuc.data_crc32", crc}, {"gpuc.step", step}}).ok());
    expectError(CheckpointFolder::load(temporary / "w"),
                "w: gpuc.step is '" + std::string(step) + "', expected an integer");
  }
  expectError(folder.save(at(2), {view}, {{"gpuc.step", "1"}}),
              "metadata gpuc.step: gpuc. names are gpuc's own");
  expectError(CheckpointFolder::open(temporary.path(), 0), "cannot keep 0 checkpoints, expected at least 1");
  expectError(CheckpointFolder::open(temporary / "w/x", 1), "cannot make the folder " + (temporary / "w/x"));
}

/// A file's bytes with `from`, which is there once, as `to`, which is as long.
void edit(const std::string& path, const std::string& from, const std::string& to) {
  std::string bytes = *readFile(path);
  ASSERT_EQ(from.size(), to.size());
  const size_t at = bytes.find(from);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, from.size(), to);
  ASSERT_TRUE(writeFileAtomically(path, bytes).ok());
}

// Another seed or place in the data would train on, on other batches.
TEST(Checkpoint, PassesOverWhatSaysAnotherPosition) {
  TemporaryFolder temporary;
  CheckpointFolder folder = *CheckpointFolder::open(temporary.path(), 5);
  for (int64_t step : {1, 2, 3}) ASSERT_TRUE(save(folder, step).ok());
  const std::string newest = temporary / checkpointName(3);
  edit(newest, "\"gpuc.step\":\"3\"", "\"gpuc.step\":\"2\"");
  expectError(CheckpointFolder::load(newest), newest + ": its metadata have the checksum ");
  EXPECT_EQ((*folder.loadNewest())->position.step, 2);
  fs::copy_file(temporary / checkpointName(1), temporary / checkpointName(2),
                fs::copy_options::overwrite_existing);
  const Result<std::optional<Checkpoint>> oldest = folder.loadNewest();
  EXPECT_EQ((*oldest)->position.step, 1);
  ASSERT_EQ((*oldest)->warnings.size(), 2u);
  EXPECT_NE((*oldest)->warnings[1].find(checkpointName(2) + ": is of step 1, which its name does not say"),
            std::string::npos);
}

/// Runs `body` in a child process; it must not return.
template <typename Body>
pid_t inChild(Body body) {
  pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(99);
  }
  return child;
}

// A limit on file sizes fails a write half way, as a full disk does (EFBIG in place of ENOSPC).
TEST(Checkpoint, AFullDiskLeavesTheFormerOneWhole) {
  TemporaryFolder temporary;
  CheckpointFolder folder = *CheckpointFolder::open(temporary.path(), 1);
  ASSERT_TRUE(save(folder, 1).ok());
  pid_t child = inChild([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit = {4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Status status = save(folder, 2);  // 8 KB
    bool named = status.message() == "cannot write " + (temporary / checkpointName(2)) + ": File too large";
    ::_exit(!status.ok() && named ? 0 : 1);
  });
  int outcome = 0;
  ::waitpid(child, &outcome, 0);
  EXPECT_TRUE(WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0);
  EXPECT_EQ(filesIn(temporary.path()), (std::vector<std::string>{"latest", checkpointName(1)}));
  EXPECT_EQ((*folder.loadNewest())->position.step, 1);
}

/// Whether a process has a file open that is to become one of the folder.
bool hasTemporary(pid_t process, const std::string& folder) {
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(process) + "/fd")) {
    std::error_code ignored;
    const std::string file = fs::read_symlink(entry, ignored).string();
    if (file.starts_with(folder) && (file.ends_with("(deleted)") || file.find(".tmp.") != std::string::npos))
      return true;
  }
  return false;
}

TEST(Checkpoint, AKilledWriterLeavesAWholeOneAndNoStraysAfterTheNextSave) {
  TemporaryFolder temporary;
  CheckpointFolder folder = *CheckpointFolder::open(temporary.path(), 2);
  constexpr size_t kElements = 200000;  // 1.6 MB: most of the time is spent writing
  ASSERT_TRUE(save(folder, 1, kElements).ok());
  std::mt19937 random(1);
  int64_t newest = 1;
  int rounds_within_a_write = 0;
  for (int round = 0; round < 60; ++round) {
    pid_t child = inChild([&] {
      for (int64_t step = newest + 1;; ++step)
        if (!save(folder, step, kElements).ok()) ::_exit(1);
    });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
    ::kill(child, SIGSTOP);
    int outcome = 0;
    ::waitpid(child, &outcome, WUNTRACED);
    rounds_within_a_write += hasTemporary(child, temporary.path());
    ::kill(child, SIGKILL);
    ::waitpid(child, &outcome, 0);
    ASSERT_TRUE(WIFSIGNALED(outcome)) << "the writer failed";
    Result<std::optional<Checkpoint>> checkpoint = folder.loadNewest();
    ASSERT_TRUE(checkpoint.ok() && checkpoint->has_value()) << checkpoint.message();
    ASSERT_TRUE((*checkpoint)->warnings.empty()) << (*checkpoint)->warnings[0];
    ASSERT_GE((*checkpoint)->position.step, newest);
    ASSERT_EQ(stepIn(**checkpoint), (*checkpoint)->position.step);
    newest = (*checkpoint)->position.step;
  }
  EXPECT_GT(rounds_within_a_write, 0) << "no kill hit a writer: the test proves nothing";
  for (const char* stray : {"step-00000003.safetensors.tmp.1.0", "latest.tmp.1.0"})
    std::ofstream(temporary.path() + "/" + stray) << "half";  // of a file system without unnamed files
  ASSERT_TRUE(save(folder, newest + 1000).ok());
  for (const std::string& name : filesIn(temporary.path()))
    EXPECT_EQ(name.find(".tmp."), std::string::npos) << name;
}

}  // namespace
}  // namespace gpuc
