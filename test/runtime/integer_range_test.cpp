#include "runtime/base/integer_range.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

namespace gpuc {
namespace {

/// One integer after the other.
template <typename T>
int64_t plainly(const std::vector<T>& values, int64_t range) {
  for (size_t i = 0; i < values.size(); ++i)
    if (static_cast<int64_t>(values[i]) < 0 || static_cast<int64_t>(values[i]) >= range)
      return static_cast<int64_t>(i);
  return -1;
}

template <typename T>
void tryMany(DataType type) {
  std::mt19937_64 random(1);
  auto below = [&](uint64_t limit) { return random() % limit; };
  const int64_t ranges[] = {
      1, 2, 10, 127, 128, 255, 256, 1000, int64_t{1} << 31, std::numeric_limits<int64_t>::max()};
  int outside = 0;
  for (int round = 0; round < 2000; ++round) {
    const int64_t range = ranges[below(std::size(ranges))];
    std::vector<T> values(below(2000));
    for (T& value : values)
      value = static_cast<T>(below(static_cast<uint64_t>(std::min<int64_t>(range, 100))));
    const T odd[] = {static_cast<T>(-1), static_cast<T>(range), static_cast<T>(range - 1),
                     std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
    for (uint64_t i = below(3); i > 0 && !values.empty(); --i)
      values[below(values.size())] = odd[below(std::size(odd))];
    const int64_t found = firstOutside(values.data(), type, static_cast<int64_t>(values.size()), range);
    ASSERT_EQ(found, plainly(values, range)) << nameOf(type) << " in [0, " << range << ")";
    if (found < 0) continue;
    ++outside;
    EXPECT_EQ(integerAt(values.data(), type, found),
              static_cast<int64_t>(values[static_cast<size_t>(found)]));
  }
  EXPECT_GT(outside, 100);
}

TEST(IntegerRange, FindsTheFirstOutside) {
  tryMany<int64_t>(DataType::i64);
  tryMany<int32_t>(DataType::i32);
  tryMany<int8_t>(DataType::i8);
  tryMany<uint8_t>(DataType::ui8);
}

TEST(IntegerRange, WhatIsIgnoredIsNotOutside) {
  std::vector<int64_t> labels(1000, 3);
  labels[10] = labels[700] = -100;
  auto first = [&](int64_t ignored) { return firstOutside(labels.data(), DataType::i64, 1000, 10, ignored); };
  EXPECT_EQ(first(0), 10);
  EXPECT_EQ(first(-1), 10);
  EXPECT_EQ(first(-100), -1);
  labels[701] = 10;
  EXPECT_EQ(first(-100), 701);
  EXPECT_FALSE(hasIgnored(10, 0));
  EXPECT_FALSE(hasIgnored(-1, -100));
  EXPECT_TRUE(hasIgnored(10, 10));
}

TEST(IntegerRange, OfNothingNothingIsOutside) { EXPECT_EQ(firstOutside(nullptr, DataType::i32, 0, 10), -1); }

}  // namespace
}  // namespace gpuc
