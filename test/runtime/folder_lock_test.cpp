// A lock on a folder: one holder at a time, gone with it.
#include "runtime/state/folder_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "test/runtime/temporary_folder.h"

namespace gpuc {
namespace {

TEST(FolderLock, HasOneHolder) {
  TemporaryFolder folder;
  {
    Result<FolderLock> first = FolderLock::take(folder.path(), "wait");
    ASSERT_TRUE(first.ok()) << first.message();
    EXPECT_EQ(first->warning(), "");
    EXPECT_EQ(FolderLock::take(folder.path(), "wait").message(),
              "another process is writing to the folder " + folder.path() + ": wait");
    FolderLock moved = *std::move(first);
    EXPECT_FALSE(FolderLock::take(folder.path(), "wait").ok()) << "it moved, and was not let go";
  }
  EXPECT_TRUE(FolderLock::take(folder.path(), "wait").ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(FolderLock, GoesWithAKilledProcess) {
  TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t child = ::fork();
  if (child == 0) {
    Result<FolderLock> lock = FolderLock::take(folder.path(), "wait");
    (void)!::write(ready[1], lock.ok() ? "y" : "n", 1);
    ::pause();
  }
  char held = 0;
  ASSERT_EQ(::read(ready[0], &held, 1), 1);
  EXPECT_EQ(held, 'y');
  EXPECT_FALSE(FolderLock::take(folder.path(), "wait").ok());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(FolderLock::take(folder.path(), "wait").ok());
}

TEST(FolderLock, NeedsAFolder) {
  TemporaryFolder folder;
  EXPECT_EQ(FolderLock::take(folder / "none", "wait").message(),
            "cannot open the folder " + folder / "none" + ": No such file or directory")
      << "nobody is waited for";
}

}  // namespace
}  // namespace gpuc
