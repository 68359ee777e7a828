// What a well-formed problem is, and the bound that follows from it.
#include "passes/placement/Problem.h"

#include <gtest/gtest.h>

#include "test/placement/problems.h"

namespace gpuc::placement {
namespace {

std::string errorOf(std::vector<Buffer> buffers, std::vector<std::pair<size_t, size_t>> conflicts = {},
                    std::optional<int64_t> capacity = {}) {
  return checkProblem({std::move(buffers), std::move(conflicts), capacity}).message();
}

TEST(Problem, EmptyIsWellFormedWithBoundZero) {
  EXPECT_EQ(errorOf({}), "");
  EXPECT_EQ(lowerBound({}), 0);
  EXPECT_TRUE(findPeak({}).live.empty());
}

TEST(Problem, ExtremeTimesAreWellFormed) {
  EXPECT_EQ(errorOf({buffer("a", INT64_MIN, INT64_MAX, 1)}), "");
  EXPECT_EQ(errorOf({buffer("a", -5, -4, 0)}, {}, 0), "");
}

TEST(Problem, EmptyAndReversedIntervalsAreErrors) {
  EXPECT_EQ(errorOf({buffer("a", 3, 3, 1)}),
            "buffer 'a': the interval [3, 3) is empty; upper must be more than lower");
  EXPECT_NE(errorOf({buffer("a", 3, 2, 1)}), "");
}

TEST(Problem, NegativeNumbersAreErrors) {
  EXPECT_EQ(errorOf({buffer("a", 0, 1, -1)}), "buffer 'a': the size -1 is negative");
  EXPECT_EQ(errorOf({buffer("a", 0, 1, 1, 0)}), "buffer 'a': the alignment 0 is less than 1");
  EXPECT_EQ(errorOf({}, {}, -1), "the capacity -1 is negative");
}

TEST(Problem, SizesMayReachButNotPassTheEndOfInt64) {
  EXPECT_EQ(errorOf({buffer("a", 0, 1, INT64_MAX)}), "");
  EXPECT_EQ(errorOf({buffer("a", 0, 1, INT64_MAX), buffer("b", 5, 6, 1)}),
            "buffer 'b': the sizes up to here sum to 2^63 bytes or more");
  // Rounded up to the alignment it would be 2^63.
  EXPECT_NE(errorOf({buffer("a", 0, 1, INT64_MAX, 2)}), "");
}

TEST(Problem, ConflictsNameTwoKnownBuffers) {
  std::vector<Buffer> two = {buffer("a", 0, 1, 1), buffer("b", 1, 2, 1)};
  EXPECT_EQ(errorOf(two, {{0, 1}}), "");
  EXPECT_EQ(errorOf(two, {{0, 2}}), "a conflict names buffer 2 of only 2");
  EXPECT_EQ(errorOf(two, {{1, 1}}), "buffer 'b': it is listed as in conflict with itself");
}

TEST(Problem, PeakSumsAlignedSizesOfLiveBuffers) {
  // At time 2 live a, b and c: 16 + 8 + 3.
  Problem problem{
      {buffer("a", 0, 4, 10, 16), buffer("b", 1, 3, 8), buffer("c", 2, 5, 3), buffer("d", 4, 6, 20)}, {}, {}};
  Peak peak = findPeak(problem);
  EXPECT_EQ(peak.bytes, 27);
  EXPECT_EQ(peak.time, 2);
  EXPECT_EQ(peak.live, (std::vector<size_t>{0, 1, 2}));
}

TEST(Problem, TouchingIntervalsAreNeverLiveAtOnce) {
  EXPECT_EQ(lowerBound({{buffer("a", 0, 2, 5), buffer("b", 2, 4, 7)}, {}, {}}), 7);
}

TEST(Problem, BoundEqualsTheSumAtTheFullestTime) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Problem problem = randomProblem(seed, {});
    int64_t most = 0;
    for (int64_t time = 0; time < 80; ++time) {
      int64_t live = 0;
      for (const Buffer& b : problem.buffers)
        if (b.lower <= time && time < b.upper) live += occupiedBytes(b);
      most = std::max(most, live);
    }
    ASSERT_EQ(lowerBound(problem), most) << "seed " << seed;
  }
}

}  // namespace
}  // namespace gpuc::placement
