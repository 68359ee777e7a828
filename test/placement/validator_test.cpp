// The validator: each kind of fault is found and named, and it agrees with asking every pair.
#include "passes/placement/Validator.h"

#include <gtest/gtest.h>

#include "test/placement/problems.h"

namespace gpuc::placement {
namespace {

const Problem kTwo{{buffer("a", 0, 5, 10), buffer("b", 4, 9, 10)}, {}, {}};

TEST(Validator, AcceptsWhatIsRight) {
  EXPECT_TRUE(validate(kTwo, {{0, 10}, 20}).ok());
  EXPECT_TRUE(validate({}, {}).ok());
}

TEST(Validator, NamesOverlappingBuffers) {
  EXPECT_EQ(validate(kTwo, {{0, 9}, 19}).message(),
            "buffers 'a' in bytes [0, 10) and 'b' in bytes [9, 19) overlap while both are live");
  EXPECT_EQ(validate(kTwo, {{3, 3}, 13}).message(),
            "buffers 'a' in bytes [3, 13) and 'b' in bytes [3, 13) overlap while both are live");
}

TEST(Validator, FindsALargeBufferAroundASmallOne) {
  Problem problem{{buffer("around", 0, 5, 100), buffer("within", 1, 2, 1)}, {}, {}};
  EXPECT_FALSE(validate(problem, {{0, 50}, 100}).ok());
}

TEST(Validator, TouchingIntervalsMayShareBytes) {
  Problem problem{{buffer("a", 0, 5, 10), buffer("b", 5, 9, 10)}, {}, {}};
  EXPECT_TRUE(validate(problem, {{0, 0}, 10}).ok());
  problem.conflicts = {{1, 0}};
  EXPECT_EQ(validate(problem, {{0, 0}, 10}).message(),
            "buffers 'b' in bytes [0, 10) and 'a' in bytes [0, 10) overlap although they are listed as in "
            "conflict");
}

TEST(Validator, BuffersOfSizeZeroOverlapNothing) {
  Problem problem{{buffer("a", 0, 5, 10), buffer("empty", 0, 5, 0)}, {{0, 1}}, {}};
  EXPECT_TRUE(validate(problem, {{0, 3}, 10}).ok());
}

TEST(Validator, ChecksOffsetsHeightAndCapacity) {
  EXPECT_EQ(validate(kTwo, {{0}, 10}).message(), "1 offsets for 2 buffers");
  EXPECT_EQ(validate(kTwo, {{-1, 10}, 20}).message(), "buffer 'a' has the negative offset -1");
  EXPECT_EQ(validate(kTwo, {{0, 10}, 21}).message(), "the height is said to be 21 but is 20");
  EXPECT_EQ(validate(kTwo, {{0, INT64_MAX - 5}, 20}).message(),
            "buffer 'b' at offset 9223372036854775802 ends beyond 2^63");
  Problem small = kTwo;
  small.capacity = 19;
  EXPECT_EQ(validate(small, {{0, 10}, 20}).message(),
            "buffer 'b' in bytes [10, 20) ends beyond the capacity 19");
}

TEST(Validator, ChecksAlignmentAndTheBytesThatItCosts) {
  Problem problem{{buffer("a", 0, 5, 10, 8), buffer("b", 0, 5, 1)}, {}, {}};
  EXPECT_TRUE(validate(problem, {{0, 16}, 17}).ok());
  EXPECT_EQ(validate(problem, {{4, 0}, 20}).message(),
            "buffer 'a' has the offset 4, which is no multiple of its alignment 8");
  // 'a' occupies 16 bytes, not 10.
  EXPECT_FALSE(validate(problem, {{0, 12}, 16}).ok());
}

TEST(Validator, RefusesAMalformedProblem) {
  EXPECT_FALSE(validate({{buffer("a", 1, 1, 1)}, {}, {}}, {{0}, 1}).ok());
}

TEST(Validator, AgreesWithAskingEveryPair) {
  // Offsets at random in a range of memory that makes about half of the solutions valid.
  size_t valid = 0;
  constexpr uint64_t kProblems = 2000;
  for (uint64_t seed = 0; seed < kProblems; ++seed) {
    Problem problem =
        randomProblem(seed, {.buffers = 9, .times = 40, .max_size = 40, .alignments = true, .conflicts = 2});
    std::mt19937_64 random(seed);
    Solution solution;
    for (const Buffer& b : problem.buffers) {
      solution.offsets.push_back(static_cast<int64_t>(random() % 20) * 16);
      if (b.size > 0) solution.height = std::max(solution.height, solution.offsets.back() + occupiedBytes(b));
    }
    bool expected = isValid(problem, solution);
    ASSERT_EQ(validate(problem, solution).ok(), expected)
        << "seed " << seed << ": " << validate(problem, solution).message();
    valid += expected;
  }
  EXPECT_GT(valid, kProblems / 4);
  EXPECT_LT(valid, kProblems * 3 / 4);
}

}  // namespace
}  // namespace gpuc::placement
