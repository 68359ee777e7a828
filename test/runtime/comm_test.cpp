// Ranks as processes: what they say to one another arrives, and who is missing is named.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "runtime/base/half.h"
#include "runtime/comm/launch.h"
#include "runtime/comm/rank_sum.h"
#include "runtime/comm/shared_memory.h"

namespace gpuc {
namespace {

using std::chrono::milliseconds;

/// What the ranks' errors look like on stderr, and the exit status.
struct Outcome {
  int status = -1;
  std::string errors;
};

Outcome launch(const LaunchOptions& options, const RankBody& body) {
  ::testing::internal::CaptureStderr();
  Result<int> status = launchRanks(options, body);
  Outcome outcome{status.ok() ? *status : -1, ::testing::internal::GetCapturedStderr()};
  if (!status.ok()) outcome.errors += status.message();
  return outcome;
}

/// The part of a rank: numbers whose sums depend on their order, the same in any process.
template <typename T>
std::vector<T> partOf(int64_t rank, size_t elements) {
  std::mt19937_64 random(static_cast<uint64_t>(rank) + 1);
  std::vector<T> part(elements);
  for (T& value : part)
    value =
        static_cast<T>(std::ldexp(static_cast<double>(random() >> 40), static_cast<int>(random() % 40) - 30));
  return part;
}

template <typename T>
Status checkSum(Communicator& ranks, DataType type, size_t elements) {
  std::vector<T> expected(elements), mine = partOf<T>(ranks.rank(), elements), result(elements);
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<T> part = partOf<T>(rank, elements);
    for (size_t i = 0; i < elements; ++i) expected[i] += part[i];
  }
  auto bytes = [](std::vector<T>& values) { return reinterpret_cast<std::byte*>(values.data()); };
  GPUC_RETURN_IF_ERROR(ranks.allReduce(type, elements, bytes(mine), bytes(result)));
  if (elements > 0 && std::memcmp(result.data(), expected.data(), elements * sizeof(T)) != 0)
    return errorf("rank %d: another sum of %zu", int(ranks.rank()), elements);
  GPUC_RETURN_IF_ERROR(ranks.allReduce(type, elements, bytes(mine), bytes(mine)));  // in place
  if (mine != expected) return errorf("rank %d: another sum of %zu in place", int(ranks.rank()), elements);
  return okStatus();
}

class Ranks : public ::testing::TestWithParam<int64_t> {};

TEST_P(Ranks, AddUpInTheirOrder) {
  Outcome outcome = launch({.ranks = GetParam()}, [](Communicator& ranks) -> Result<int> {
    for (size_t elements : {0, 1, 3, 64, 1000, 131072, 131073, 262145, 600001}) {
      GPUC_RETURN_IF_ERROR(checkSum<double>(ranks, DataType::f64, elements));
      GPUC_RETURN_IF_ERROR(checkSum<float>(ranks, DataType::f32, elements));
      GPUC_RETURN_IF_ERROR(checkSum<int64_t>(ranks, DataType::i64, elements));
    }
    return 0;
  });
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

TEST_P(Ranks, HandOnBytesOfAnyLength) {
  Outcome outcome = launch({.ranks = GetParam()}, [](Communicator& ranks) -> Result<int> {
    for (size_t length : {0, 1, 7, 1048576, 1048577, 2400000}) {
      const int64_t root = ranks.size() - 1;
      std::vector<std::byte> bytes(length, std::byte(ranks.rank() + 1)),
          all(length * static_cast<size_t>(ranks.size()));
      GPUC_RETURN_IF_ERROR(ranks.gather(bytes, all));
      for (size_t i = 0; i < all.size(); ++i)
        if (all[i] != std::byte(i / length + 1)) return Status::error("gathered something else");
      GPUC_RETURN_IF_ERROR(ranks.broadcast(bytes, root));
      if (bytes != std::vector<std::byte>(length, std::byte(root + 1)))
        return Status::error("another's bytes");
    }
    return 0;
  });
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

/// Short and long ones in turn, and ranks that are late in turn: nobody writes what another has yet to read.
TEST_P(Ranks, MixCollectives) {
  Outcome outcome = launch({.ranks = GetParam()}, [](Communicator& ranks) -> Result<int> {
    constexpr size_t kElements = 50000;
    std::vector<int32_t> sum(kElements), sent(kElements), all(static_cast<size_t>(ranks.size()));
    for (int32_t i = 0; i < 200; ++i) {
      const int64_t root = i % ranks.size();
      const int32_t mine = i + static_cast<int32_t>(ranks.rank());
      std::fill(sum.begin(), sum.end(), mine);
      std::fill(sent.begin(), sent.end(), mine);
      if (ranks.rank() == (i + 1) % ranks.size()) ::usleep(200);
      auto* bytes = reinterpret_cast<std::byte*>(sum.data());
      GPUC_RETURN_IF_ERROR(ranks.allReduce(DataType::i32, kElements, bytes, bytes));
      GPUC_RETURN_IF_ERROR(ranks.broadcast(std::as_writable_bytes(std::span(sent)), root));
      GPUC_RETURN_IF_ERROR(
          ranks.gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))));
      const int32_t expected = std::accumulate(all.begin(), all.end(), 0);
      for (size_t k = 0; k < kElements; ++k)
        if (sum[k] != expected || sent[k] != i + root)
          return errorf("round %d: %d of %d, %d", i, sum[k], expected, sent[k]);
    }
    return 0;
  });
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

INSTANTIATE_TEST_SUITE_P(Some, Ranks, ::testing::Values(1, 2, 3, 4, 7, 8));

TEST(RankSum, RoundsNarrowFloatsOnceAndHasNoNegativeZero) {
  // 1 + 2^-9 + 2^-9 is a bf16 number above 1 only if nothing is rounded in between.
  const uint16_t one = floatToBfloat16(1), little = floatToBfloat16(0x1p-8f), minus_zero = 0x8000;
  const uint16_t parts[3][2] = {{one, minus_zero}, {little, minus_zero}, {little, minus_zero}};
  const std::byte* places[] = {reinterpret_cast<const std::byte*>(parts[0]),
                               reinterpret_cast<const std::byte*>(parts[1]),
                               reinterpret_cast<const std::byte*>(parts[2])};
  uint16_t sum[2] = {};
  sumParts(DataType::bf16, 2, places, reinterpret_cast<std::byte*>(sum));
  EXPECT_EQ(bfloat16ToFloat(sum[0]), 1 + 0x1p-7f);
  EXPECT_EQ(sum[1], 0);
  uint8_t bytes[2] = {200, 100};
  const std::byte* ends[] = {reinterpret_cast<const std::byte*>(bytes),
                             reinterpret_cast<const std::byte*>(bytes + 1)};
  uint8_t wrapped = 0;
  sumParts(DataType::i8, 1, ends, reinterpret_cast<std::byte*>(&wrapped));
  EXPECT_EQ(wrapped, 44);
}

/// Adds up again and again; rank 1 does `failing` before the third time.
RankBody failingInTheMiddle(void (*failing)()) {
  return [failing](Communicator& ranks) -> Result<int> {
    for (int i = 0; i < 100; ++i) {
      if (i == 2 && ranks.rank() == 1) failing();
      GPUC_RETURN_IF_ERROR(checkSum<float>(ranks, DataType::f32, 10));
    }
    return 0;
  };
}

TEST(LostRank, IsNamedByAllOthers) {
  Outcome outcome = launch({.ranks = 3}, failingInTheMiddle([] { ::raise(SIGKILL); }));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.errors,
            "error: rank 1 was ended by signal 9 (Killed)\n"
            "error: rank 0 waits in collective 5, but rank 1 was ended by signal 9 (Killed)\n"
            "error: rank 2 waits in collective 5, but rank 1 was ended by signal 9 (Killed)\n");
}

TEST(LostRank, ThatEndsEarlyIsNamedToo) {
  Outcome outcome = launch({.ranks = 2}, failingInTheMiddle([] { ::_exit(0); }));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.errors, "error: rank 0 waits in collective 5, but rank 1 ended with status 0\n");
}

TEST(LostRank, ThatIsStoppedHoldsNobodyUp) {
  Outcome outcome =
      launch({.ranks = 2, .patience = milliseconds(200)}, failingInTheMiddle([] { ::raise(SIGSTOP); }));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.errors,
            "error: rank 1 is stopped\nerror: rank 0 waits in collective 5, but rank 1 is stopped\n");
}

TEST(LostRank, ThatDoesNotComeIsNamedWhenTheLimitHasPassed) {
  Outcome outcome = launch({.ranks = 2, .limit = milliseconds(1000), .patience = milliseconds(200)},
                           failingInTheMiddle([] { ::pause(); }));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.errors, "error: rank 0 waits in collective 5, but rank 1 has not come to it in 1 s\n");
}

TEST(LostRank, SaysWhyItFailed) {
  Outcome outcome = launch({.ranks = 3}, [](Communicator& ranks) -> Result<int> {
    if (ranks.rank() == 2) return Status::error("no such file");
    GPUC_RETURN_IF_ERROR(checkSum<float>(ranks, DataType::f32, 10));
    return 0;
  });
  EXPECT_EQ(outcome.errors.find("error: no such file\n"), 0u) << outcome.errors;
  EXPECT_NE(outcome.errors.find("rank 1 waits in collective 1, but rank 2 ended with status 1"),
            std::string::npos);
}

TEST(LostRank, OneErrorOfAllIsSaidOnce) {
  Outcome outcome =
      launch({.ranks = 4}, [](Communicator&) -> Result<int> { return Status::error("no such file"); });
  EXPECT_EQ(outcome.errors, "error: no such file\n");
}

TEST(LostRank, WhoAsksForSomethingElseIsNamed) {
  Outcome outcome = launch({.ranks = 2}, [](Communicator& ranks) -> Result<int> {
    GPUC_RETURN_IF_ERROR(checkSum<float>(ranks, DataType::f32, ranks.rank() == 0 ? 10 : 11));
    return 0;
  });
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.errors.find("rank 1 asks for 11 elements in it, not for 10"), std::string::npos)
      << outcome.errors;
}

TEST(Launch, GivesTheStatusThatAllHave) {
  EXPECT_EQ(launch({.ranks = 3}, [](Communicator&) -> Result<int> { return 130; }).status, 130);
  EXPECT_NE(
      launch({.ranks = 0}, [](Communicator&) -> Result<int> { return 0; }).errors.find("from 1 to 1024"),
      std::string::npos);
}

}  // namespace
}  // namespace gpuc
