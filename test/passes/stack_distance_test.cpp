//===- stack_distance_test.cpp - What was touched since, counted one by one --------===//

#include "passes/report/StackDistance.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace gpuc {
namespace {

/// The distinct pages behind the last touch of `page`.
std::optional<int64_t> countBehind(const std::vector<int64_t> &touches, int64_t page) {
  std::set<int64_t> others;
  for (auto touch = touches.rbegin(); touch != touches.rend(); ++touch) {
    if (*touch == page)
      return static_cast<int64_t>(others.size());
    others.insert(*touch);
  }
  return std::nullopt;
}

TEST(StackDistance, IsWhatCountingFinds) {
  std::mt19937_64 random(1);
  for (const int64_t pages : {1, 2, 5, 40}) {
    StackDistance distance(pages);
    std::vector<int64_t> touches;
    for (int number = 0; number < 1000; ++number) {
      // Some more often than others.
      const int64_t page = std::min(random() % pages, random() % pages);
      EXPECT_EQ(distance.touch(page), countBehind(touches, page)) << pages << " pages, touch " << number;
      touches.push_back(page);
    }
  }
}

} // namespace
} // namespace gpuc
