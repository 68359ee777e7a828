// Memory that a host has left, by what /proc and a control group say.
#include "runtime/host/free_memory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/base/file.h"

namespace gpuc {
namespace {

class FreeMemory : public testing::Test {
 protected:
  FreeMemory() { std::filesystem::remove_all(root_); }
  ~FreeMemory() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    ASSERT_TRUE(writeFileAtomically(root_ + path, text).ok());
  }

  std::string root_ = testing::TempDir() + "free_memory";
};

TEST_F(FreeMemory, IsWhatTheKernelSays) {
  write("/proc/meminfo", "MemTotal:       9000 kB\nMemFree:         100 kB\nMemAvailable:    5000 kB\n");
  Result<uint64_t> bytes = freeHostMemory(root_);
  ASSERT_TRUE(bytes.ok()) << bytes.message();
  EXPECT_EQ(*bytes, 5000u << 10);
  write("/sys/fs/cgroup/memory.max", "max\n");
  write("/sys/fs/cgroup/memory.current", "1000\n");
  EXPECT_EQ(*freeHostMemory(root_), 5000u << 10);
}

TEST_F(FreeMemory, IsNoMoreThanAControlGroupHasLeft) {
  write("/proc/meminfo", "MemAvailable:    5000 kB\n");
  write("/sys/fs/cgroup/memory.max", "1000000\n");
  write("/sys/fs/cgroup/memory.current", "600000\n");
  EXPECT_EQ(*freeHostMemory(root_), 400000u);
  write("/sys/fs/cgroup/memory.stat", "anon 500000\ninactive_file 100000\n");
  EXPECT_EQ(*freeHostMemory(root_), 500000u) << "files' pages can be had";
  write("/sys/fs/cgroup/memory.current", "2000000\n");
  EXPECT_EQ(*freeHostMemory(root_), 0u);
  write("/sys/fs/cgroup/memory.max", "max\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "70000\n");
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "30000\n");
  EXPECT_EQ(*freeHostMemory(root_), 40000u) << "of the first version";
}

TEST_F(FreeMemory, MayBeUnknown) {
  EXPECT_EQ(freeHostMemory(root_).message(),
            root_ + "/proc/meminfo does not say how much memory is available");
}

TEST(FreeMemoryHere, IsSomething) {
  Result<uint64_t> bytes = freeHostMemory();
  ASSERT_TRUE(bytes.ok()) << bytes.message();
  EXPECT_GT(*bytes, 0u);
}

}  // namespace
}  // namespace gpuc
