// Reading whole files, and writing them so that a failure leaves what was there.
#include "runtime/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "test/runtime/sanitized.h"

namespace gpuc {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "gpuc-file-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }
  size_t fileCount() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  bool knowsUnnamedFiles() const {
    int file = ::open(folder_.c_str(), O_WRONLY | O_TMPFILE, 0600);
    if (file >= 0) ::close(file);
    return file >= 0;
  }

  /// How a process ends that does this, as waitpid has it.
  template <typename Work>
  static int outcomeOf(Work work) {
    pid_t child = ::fork();
    if (child == 0) ::_exit(work());
    int outcome = 0;
    ::waitpid(child, &outcome, 0);
    return outcome;
  }

  fs::path folder_;
};

TEST_F(FileTest, WhatIsWrittenIsRead) {
  std::string bytes("a\0b\n\xff", 5);
  ASSERT_TRUE(writeFileAtomically(path("x"), bytes).ok());
  EXPECT_EQ(*readFile(path("x")), bytes);
  EXPECT_EQ(fileCount(), 1u);
}

TEST_F(FileTest, PiecesAreWrittenInARow) {
  std::string_view pieces[] = {"one", "", "two"};
  ASSERT_TRUE(writeFileAtomically(path("x"), pieces).ok());
  EXPECT_EQ(*readFile(path("x")), "onetwo");
}

TEST_F(FileTest, EmptyAndLargeFiles) {
  ASSERT_TRUE(writeFileAtomically(path("empty"), "").ok());
  EXPECT_EQ(*readFile(path("empty")), "");
  std::string large(3 << 20, 'x');
  ASSERT_TRUE(writeFileAtomically(path("large"), large).ok());
  EXPECT_EQ(*readFile(path("large")), large);
}

TEST_F(FileTest, FilesWithoutASizeAreReadToTheirEnd) {
  Result<std::string> text = readFile("/proc/self/status");  // its size reads as 0
  ASSERT_TRUE(text.ok()) << text.message();
  EXPECT_NE(text->find("Name:"), std::string::npos);
}

TEST_F(FileTest, MissingFileIsNamedWithTheReason) {
  EXPECT_EQ(readFile(path("none")).message(), "cannot open " + path("none") + ": No such file or directory");
}

TEST_F(FileTest, AFileLargerThanTheMemoryIsAnError) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer needs more addresses than are left";
  std::ofstream(path("x")) << "x";
  fs::resize_file(path("x"), uint64_t{1} << 40);  // of holes
  EXPECT_EQ(outcomeOf([&] {
              struct rlimit limit = {rlim_t{1} << 34, rlim_t{1} << 34};
              ::setrlimit(RLIMIT_AS, &limit);
              Status status = readFile(path("x")).status();
              return status.message() == "cannot read " + path("x") + ": out of memory" ? 0 : 1;
            }),
            0);
}

TEST_F(FileTest, FolderIsNotAFile) {
  EXPECT_EQ(readFile(folder_.string()).message(), "cannot read " + folder_.string() + ": Is a directory");
  EXPECT_FALSE(writeFileAtomically(folder_.string(), "x").ok());
}

TEST_F(FileTest, FolderThatIsMissingIsAnError) {
  EXPECT_EQ(writeFileAtomically(path("no/x"), "1").message(),
            "cannot write " + path("no/x") + ": No such file or directory");
}

TEST_F(FileTest, ReplacingKeepsPermissionsAndFollowsLinks) {
  ASSERT_TRUE(writeFileAtomically(path("x"), "old").ok());
  fs::permissions(path("x"), fs::perms(0640));
  fs::create_symlink("x", path("link"));
  ASSERT_TRUE(writeFileAtomically(path("link"), "new").ok());
  EXPECT_EQ(*readFile(path("x")), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(fs::status(path("x")).permissions(), fs::perms(0640));
}

// A killed process leaves its temporary, and its number is given to another one day.
TEST_F(FileTest, NamesThatAKilledPredecessorLeftAreInNobodysWay) {
  std::string begin = "x.tmp." + std::to_string(::getpid()) + ".";
  for (int i = 0; i < 300; ++i) std::ofstream(path((begin + std::to_string(i)).c_str())) << "half";
  Status status = writeFileAtomically(path("x"), "whole");
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(*readFile(path("x")), "whole");
  EXPECT_EQ(fileCount(), 301u);
  EXPECT_EQ(*readFile(path((begin + "0").c_str())), "half");
}

// The limit on files' size kills it in the middle.
TEST_F(FileTest, AWriterThatIsKilledLeavesNothing) {
  if (!knowsUnnamedFiles()) GTEST_SKIP() << folder_ << " lies on a file system without unnamed files";
  ASSERT_TRUE(writeFileAtomically(path("x"), "old").ok());
  for (const char* name : {"x", "new"}) {
    int outcome = outcomeOf([&] {
      std::signal(SIGXFSZ, SIG_DFL);
      struct rlimit small = {1000, 1000};
      ::setrlimit(RLIMIT_FSIZE, &small);
      (void)writeFileAtomically(path(name), std::string(5000, 'n')).ok();
      return 0;
    });
    EXPECT_TRUE(WIFSIGNALED(outcome)) << outcome;
    EXPECT_EQ(fileCount(), 1u);
    EXPECT_EQ(*readFile(path("x")), "old");
  }
}

// What has no name gets one by /proc, which may be hidden.
TEST_F(FileTest, WithoutUnnamedFilesTheTemporaryHasAName) {
  ASSERT_TRUE(writeFileAtomically(path("x"), "old").ok());
  fs::permissions(path("x"), fs::perms(0640));
  constexpr int kMayNot = 77;
  int outcome = outcomeOf([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", "/proc", "tmpfs", 0, nullptr) != 0)
      return kMayNot;
    return writeFileAtomically(path("x"), "new").ok() && writeFileAtomically(path("y"), "new").ok() ? 0 : 1;
  });
  if (WIFEXITED(outcome) && WEXITSTATUS(outcome) == kMayNot) GTEST_SKIP() << "/proc cannot be hidden";
  EXPECT_EQ(outcome, 0);
  EXPECT_EQ(*readFile(path("x")) + *readFile(path("y")), "newnew");
  EXPECT_EQ(fs::status(path("x")).permissions(), fs::perms(0640));
  EXPECT_EQ(fileCount(), 2u);
}

/// The permissions of the first file that was opened and can be written: what a process does at its last.
extern "C" void exitWithPermissions(int) {
  for (int file = 3; file < 256; ++file) {
    struct stat info;
    if (::fstat(file, &info) == 0 && S_ISREG(info.st_mode) &&
        (::fcntl(file, F_GETFL) & O_ACCMODE) == O_WRONLY)
      ::_exit((info.st_mode & 0777) == 0600 ? 60 : 1);
  }
  ::_exit(2);
}

// Seen while the pieces are written: a child, because the test would be the file's owner all the same.
TEST_F(FileTest, WhatReplacesASecretIsNeverReadable) {
  ASSERT_TRUE(writeFileAtomically(path("x"), "old").ok());
  for (int kept : {0600, 0640, 0400, 0666}) {
    fs::permissions(path("x"), fs::perms(kept));
    // The write stops within the temporary.
    int outcome = outcomeOf([&] {
      ::close_range(3, ~0U, 0);  // what this process was started with, a log of ctest's for one
      std::signal(SIGXFSZ, exitWithPermissions);
      struct rlimit small = {1000, 1000};
      ::setrlimit(RLIMIT_FSIZE, &small);
      (void)writeFileAtomically(path("x"), std::string(5000, 'n')).ok();
      return 0;
    });
    EXPECT_TRUE(WIFEXITED(outcome) && WEXITSTATUS(outcome) == 60) << outcome;
    ASSERT_TRUE(writeFileAtomically(path("x"), "new").ok());
    EXPECT_EQ(fs::status(path("x")).permissions(), fs::perms(kept));
  }
}

TEST_F(FileTest, ANewFileHasThePermissionsThatUmaskLeaves) {
  mode_t former = ::umask(0027);
  ASSERT_TRUE(writeFileAtomically(path("x"), "new").ok());
  ::umask(former);
  EXPECT_EQ(fs::status(path("x")).permissions(), fs::perms(0640));
}

TEST_F(FileTest, DevicesAreWrittenAndNotReplaced) {
  ASSERT_TRUE(writeFileAtomically("/dev/null", "x").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(writeFileAtomically("/dev/full", "x").message(),
            "cannot write /dev/full: No space left on device");
}

TEST_F(FileTest, FailedWriteLeavesTheOldBytesAndNoTemporary) {
  ASSERT_TRUE(writeFileAtomically(path("x"), "old").ok());
  // A limit on the size of files fails the write half-way, as a full disk does.
  struct rlimit former;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &former), 0);
  struct rlimit small = {1000, former.rlim_max};
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  Status status = writeFileAtomically(path("x"), std::string(5000, 'n'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &former), 0);
  std::signal(SIGXFSZ, handler);

  EXPECT_EQ(status.message(), "cannot write " + path("x") + ": File too large");
  EXPECT_EQ(*readFile(path("x")), "old");
  EXPECT_EQ(fileCount(), 1u);
}

}  // namespace
}  // namespace gpuc
