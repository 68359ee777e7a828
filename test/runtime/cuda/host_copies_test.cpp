// Copies of a batch into pinned memory, by one thread and by several.
#include "runtime/cuda/host_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace gpuc::cuda {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

/// Bytes that differ from their neighbours', and from those a tile away.
std::vector<uint8_t> bytesOf(uint64_t size) {
  std::vector<uint8_t> bytes(size);
  for (uint64_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + (i >> 8) * 11 + (i >> 16) * 13);
  return bytes;
}

TEST(HostCopies, CopyWhatIsThereAndNothingBehindIt) {
  for (int threads : {1, 2, 3, 16}) {
    HostCopies copies(threads);
    for (uint64_t size : {uint64_t{0}, uint64_t{1}, kMiB - 1, kMiB, kMiB + 1, 5 * kMiB + 12345}) {
      std::vector<uint8_t> from = bytesOf(size), to(size + 64, 0xA5);
      copies.copy(to.data(), from.data(), size);
      to.resize(size + 64);
      EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin())) << size << " bytes, " << threads;
      EXPECT_EQ(std::count(to.begin() + static_cast<int64_t>(size), to.end(), 0xA5), 64) << size;
    }
  }
}

TEST(HostCopies, SmallInputsTakeNoThreads) {
  EXPECT_EQ(threadsForCopies(0, 8), 1);
  EXPECT_EQ(threadsForCopies(kMiB - 65536, 8), 1);
  EXPECT_EQ(threadsForCopies(kMiB, 8), 2);
  EXPECT_EQ(threadsForCopies(100 * kMiB, 8), 8);
  EXPECT_EQ(threadsForCopies(100 * kMiB, 1), 1);
  EXPECT_EQ(threadsForCopies(100 * kMiB, 1000), 16);
  EXPECT_GE(threadsForCopies(100 * kMiB, 0), 1);
}

}  // namespace
}  // namespace gpuc::cuda
