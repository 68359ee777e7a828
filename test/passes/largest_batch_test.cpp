//===- largest_batch_test.cpp - How many rows fit ----------------------------===//

#include "passes/LargestBatch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace gpuc {
namespace {

struct Found {
  int64_t rows = 0;
  int attempts = 0;
};

template <typename Peak> Found find(int64_t bytes, Peak peak, int64_t from = 0) {
  Found found;
  found.rows = findLargestBatch(
      bytes,
      [&](int64_t rows) -> std::optional<int64_t> {
        ++found.attempts;
        return peak(rows);
      },
      from);
  return found;
}

TEST(LargestBatch, IsAMultipleOfEightOrFewer) {
  auto line = [](int64_t rows) { return std::optional<int64_t>(100 + 10 * rows); };
  EXPECT_EQ(find(100 + 10 * 1000, line).rows, 1000);
  EXPECT_EQ(find(100 + 10 * 1007, line).rows, 1000);
  EXPECT_EQ(find(100 + 10 * 8, line).rows, 8);
  EXPECT_EQ(find(100 + 10 * 7, line).rows, 7);
  EXPECT_EQ(find(100 + 10, line).rows, 1);
  EXPECT_EQ(find(100, line).rows, 0);
}

TEST(LargestBatch, EndsWhereThereAreNoPlans) {
  auto limited = [](int64_t rows) { return rows > 100 ? std::nullopt : std::optional<int64_t>(rows); };
  EXPECT_EQ(find(1'000'000, limited).rows, 96);
  EXPECT_EQ(find(1'000'000, [](int64_t) { return std::optional<int64_t>(); }).rows, 0);
}

TEST(LargestBatch, OfABatchThatChangesNothingEnds) {
  EXPECT_LT(find(10, [](int64_t) { return std::optional<int64_t>(1); }).attempts, 60);
}

/// Growing lines with bends and jumps: eight rows more do not fit, and it takes few plans to know.
TEST(LargestBatch, HoldsForWhateverGrows) {
  std::mt19937_64 random(7);
  int most = 0;
  for (int round = 0; round < 2000; ++round) {
    const int64_t fixed = random() % 1'000'000, each = 1 + random() % 100'000, bend = 8 + random() % 4096;
    const int64_t jump = random() % 3 == 0 ? random() % 1'000'000 : 0, more = random() % 100'000;
    auto peak = [&](int64_t rows) {
      return std::optional<int64_t>(fixed + each * rows + (rows > bend ? jump + more * (rows - bend) : 0));
    };
    const int64_t bytes = *peak(8 + random() % 8192);
    const Found found = find(bytes, peak);
    ASSERT_EQ(found.rows % 8, 0) << round;
    ASSERT_LE(*peak(found.rows), bytes) << round;
    ASSERT_GT(*peak(found.rows + 8), bytes) << round;
    most = std::max(most, found.attempts);
  }
  EXPECT_LE(most, 24);
  RecordProperty("most", most);
}

/// From rows that nearly do, of a plan that takes a little more: few plans, and the same answer.
TEST(LargestBatch, GoesOnFromWhereAnotherSearchEnded) {
  std::mt19937_64 random(11);
  int most = 0;
  for (int round = 0; round < 2000; ++round) {
    const int64_t fixed = random() % 1'000'000, each = 1000 + random() % 100'000;
    auto peak = [&](int64_t rows) { return std::optional<int64_t>(fixed + each * rows); };
    auto larger = [&](int64_t rows) { return std::optional<int64_t>(fixed + (each + each / 5) * rows); };
    const int64_t bytes = *peak(64 + random() % 1024);
    const int64_t from = find(bytes, larger).rows;
    const Found found = find(bytes, peak, from);
    ASSERT_EQ(found.rows, find(bytes, peak).rows) << round;
    most = std::max(most, found.attempts);
  }
  EXPECT_LE(most, 6);
  EXPECT_EQ(find(
                1000, [](int64_t rows) { return std::optional(10 * rows); }, 800)
                .rows,
            96)
      << "rows that do not do are taken back";
  EXPECT_EQ(find(50, [](int64_t rows) { return std::optional(10 * rows); }, 3).rows, 5);
}

} // namespace
} // namespace gpuc
