// Live bytes against a list of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "passes/placement/LiveBytes.h"

namespace gpuc::placement {
namespace {

TEST(LiveBytes, OfNoTimesHasNoPeak) { EXPECT_EQ(LiveBytes(0).peak(), 0); }

TEST(LiveBytes, ThePeakIsTheFirstOfSeveral) {
  LiveBytes bytes(10);
  bytes.add(5, 3, 4);
  bytes.add(5, 7, 9);
  EXPECT_EQ(bytes.peak(), 5);
  EXPECT_EQ(bytes.peakTime(), 3);
  bytes.add(1, 8, 8);
  EXPECT_EQ(bytes.peak(), 5) << "an empty interval changes nothing";
}

TEST(LiveBytes, IsTheListOfAllTimes) {
  std::mt19937 random(7);
  for (int64_t times : {1, 2, 3, 7, 8, 9, 100, 1000}) {
    std::vector<int64_t> list(static_cast<size_t>(times));
    LiveBytes bytes(times);
    for (int change = 0; change < 200; ++change) {
      int64_t lower = static_cast<int64_t>(random()) % times, upper = static_cast<int64_t>(random()) % times;
      if (lower > upper) std::swap(lower, upper);
      ++upper;
      const auto begin = list.begin() + lower, end = list.begin() + upper;
      const int64_t size = static_cast<int64_t>(random() % 100) - 20;
      std::for_each(begin, end, [&](int64_t& live) { live += size; });
      bytes.add(size, lower, upper);
      ASSERT_EQ(bytes.most(lower, upper), *std::max_element(begin, end)) << times;
      const auto peak = std::max_element(list.begin(), list.end());
      if (*peak < 0) continue;  // times that are not there have 0
      ASSERT_EQ(bytes.peak(), std::max<int64_t>(0, *peak)) << times;
      if (*peak > 0) ASSERT_EQ(bytes.peakTime(), peak - list.begin()) << times;
    }
  }
}

}  // namespace
}  // namespace gpuc::placement
