// Ranks as processes: what they say to one another arrives, and who is missing is named.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "rank_bodies.h"
#include "runtime/base/half.h"
#include "runtime/base/last_line.h"
#include "runtime/comm/launch.h"
#include "runtime/comm/launcher.h"
#include "runtime/comm/rank_sum.h"
#include "runtime/comm/shared_memory.h"
#include "runtime/comm/slow_link.h"
#include "runtime/comm/transport/yields.h"
#include "runtime/tooling/allocation_hook.h"

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

class Ranks : public ::testing::TestWithParam<int64_t> {};

TEST_P(Ranks, AddUpInTheirOrder) {
  Outcome outcome = launch({.ranks = GetParam()}, addUpInTheirOrder);
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

TEST_P(Ranks, ShareOutAndGather) {
  Outcome outcome = launch({.ranks = GetParam()}, shareOutAndGather);
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

TEST_P(Ranks, HandOnBytesOfAnyLength) {
  Outcome outcome = launch({.ranks = GetParam()}, handOnBytesOfAnyLength);
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

TEST_P(Ranks, MixCollectives) {
  Outcome outcome = launch({.ranks = GetParam()}, mixCollectives);
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

INSTANTIATE_TEST_SUITE_P(Some, Ranks, ::testing::Values(1, 2, 3, 4, 7, 8));

/// ThreadSanitizer sees of processes nothing that they share: here ranks are threads.
TEST(RanksThatAreThreads, ExchangeInOrder) {
  constexpr int64_t kRanks = 3;
  Result<SharedRanks> shared = SharedRanks::create(kRanks);
  ASSERT_TRUE(shared.ok());
  std::vector<std::string> errors(kRanks);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      SharedCommunicator ranks(*shared, rank, std::chrono::minutes(1));
      for (const RankBody& body :
           {RankBody(mixCollectives), RankBody(handOnBytesOfAnyLength), RankBody(shareOutAndGather)})
        errors[static_cast<size_t>(rank)] += body(ranks).message();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors, std::vector<std::string>(kRanks));
}

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
      GPUC_RETURN_IF_ERROR(addUp(ranks, 10));
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
      launch({.ranks = 2, .patience = milliseconds(1500)}, failingInTheMiddle([] { ::raise(SIGSTOP); }));
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
    GPUC_RETURN_IF_ERROR(addUp(ranks, 10));
    return 0;
  });
  EXPECT_EQ(outcome.errors, "error: rank 2: no such file\n");
}

TEST(LostRank, SaysWhyTheFirstOneFailed) {
  Outcome outcome = launch({.ranks = 3}, [](Communicator& ranks) -> Result<int> {
    if (ranks.rank() == 0) return Status::error("no such file");
    GPUC_RETURN_IF_ERROR(addUp(ranks, 10));
    return 0;
  });
  EXPECT_EQ(outcome.errors, "error: no such file\n");
}

TEST(LostRank, OneErrorOfAllIsSaidOnce) {
  Outcome outcome =
      launch({.ranks = 4}, [](Communicator&) -> Result<int> { return Status::error("no such file"); });
  EXPECT_EQ(outcome.errors, "error: no such file\n");
}

TEST(LostRank, WhoAsksForSomethingElseIsNamed) {
  Outcome outcome = launch({.ranks = 2}, [](Communicator& ranks) -> Result<int> {
    GPUC_RETURN_IF_ERROR(addUp(ranks, ranks.rank() == 0 ? 10 : 11));
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

TEST(Launch, MakesAnErrorOfAnException) {
  Outcome outcome = launch({.ranks = 2}, [](Communicator& ranks) -> Result<int> {
    if (ranks.rank() == 1) throw std::bad_alloc();
    GPUC_RETURN_IF_ERROR(addUp(ranks, 10));
    return 0;
  });
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.errors, "error: rank 1: out of memory\n");
}

/// As a thread does that nobody waits for; its rank is a quiet one.
TEST(Launch, HandsOnTheLastLineOfARank) {
  const Outcome outcome = launch({.ranks = 2}, [](Communicator& ranks) -> Result<int> {
    if (ranks.rank() == 1) endWithError({"out of ", "memory"});
    GPUC_RETURN_IF_ERROR(addUp(ranks, 10));
    return 0;
  });
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.errors.find("error: out of memory\n"), 0u) << outcome.errors;
}

/// As daemons do, and shells by `trap '' CHLD`; it outlives exec.
TEST(Launch, EndsWhereChildrenAreIgnored) {
  ::signal(SIGCHLD, SIG_IGN);
  const Outcome outcome = launch({.ranks = 2}, [](Communicator&) -> Result<int> { return 130; });
  EXPECT_EQ(::signal(SIGCHLD, SIG_DFL), SIG_IGN);
  EXPECT_EQ(outcome.status, 130) << outcome.errors;
}

/// A signal that comes where a process is about to be doubled: to who starts the ranks, or to a rank.
bool signals_starter = false, signals_rank = false;

void raiseOnce(bool& wanted) {
  if (std::exchange(wanted, false)) ::raise(SIGTERM);
}

Result<int> waitForSignal(Communicator& ranks) {
  GPUC_RETURN_IF_ERROR(addUp(ranks, 10));
  ::sleep(10);
  return 0;
}

TEST(Launch, LosesNoSignalWhileItStartsRanks) {
  ::pthread_atfork([] { raiseOnce(signals_starter); }, nullptr, [] { raiseOnce(signals_rank); });
  for (bool* wanted : {&signals_starter, &signals_rank}) {
    *wanted = true;
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = launch({.ranks = 3}, waitForSignal);
    *wanted = false;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.errors.find("was ended by signal 15 (Terminated)"), std::string::npos)
        << outcome.errors;
  }
}

/// The environment's variables that launchers set, for as long as it lives.
class LauncherVariables {
 public:
  explicit LauncherVariables(const std::vector<std::pair<const char*, const char*>>& variables)
      : variables_(variables) {
    for (const auto& [name, value] : variables_) ::setenv(name, value, 1);
  }
  ~LauncherVariables() {
    for (const auto& [name, value] : variables_) ::unsetenv(name);
  }

 private:
  std::vector<std::pair<const char*, const char*>> variables_;
};

TEST(Launcher, IsFoundByItsVariables) {
  EXPECT_FALSE(findLauncher()->has_value());
  {
    // In a job of Slurm, which mpirun does not ask for ranks.
    const LauncherVariables variables({{"OMPI_COMM_WORLD_RANK", "2"},
                                       {"OMPI_COMM_WORLD_SIZE", "4"},
                                       {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                       {"SLURM_STEP_NUM_TASKS", "2"},
                                       {"PMIX_RANK", "2"}});
    const Launcher launcher = findLauncher()->value();
    EXPECT_EQ(launcher.name, "mpirun");
    EXPECT_EQ(launcher.rank, 2);
    EXPECT_EQ(launcher.ranks, 4);
    EXPECT_EQ(launcher.local_rank, 1);
    EXPECT_EQ(launcher.mpi, MpiFlavour::open_mpi);
  }
  {
    const LauncherVariables variables({{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}});
    EXPECT_EQ(findLauncher()->value().mpi, MpiFlavour::mpich);
  }
  {
    const LauncherVariables variables(
        {{"PMIX_RANK", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_LOCALID", "0"}});
    EXPECT_EQ(findLauncher()->value().name, "srun");
  }
  {
    const LauncherVariables variables({{"RANK", "1"},
                                       {"WORLD_SIZE", "2"},
                                       {"LOCAL_RANK", "0"},
                                       {"MASTER_ADDR", "alpha"},
                                       {"MASTER_PORT", "29500"},
                                       {"TORCHELASTIC_RUN_ID", "none"},
                                       {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                       {"PMIX_RANK", "0"},
                                       {"SLURM_STEP_NUM_TASKS", "3"}});
    const Launcher launcher = findLauncher()->value();
    EXPECT_EQ(launcher.name, "torchrun");
    EXPECT_EQ(launcher.ranks, 2);
    EXPECT_EQ(launcher.meeting->host, "alpha");
    EXPECT_EQ(launcher.meeting->port, 29501);  // at 29500 torchrun listens itself
  }
  {
    const LauncherVariables variables({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}});
    EXPECT_EQ(findLauncher().message(),
              "srun has started 2 ranks that cannot find one another: use srun --mpi=pmix or --mpi=pmi2, or "
              "set MASTER_ADDR "
              "and MASTER_PORT");
    const LauncherVariables meeting({{"MASTER_ADDR", "alpha"}, {"MASTER_PORT", "29500"}});
    EXPECT_EQ(findLauncher()->value().meeting->port, 29500);
  }
  // A batch script, and what is started alone.
  EXPECT_FALSE(
      (LauncherVariables({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}), findLauncher()->has_value()));
  EXPECT_FALSE((LauncherVariables({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}), findLauncher()->has_value()));
  EXPECT_FALSE((LauncherVariables({{"RANK", "0"}, {"WORLD_SIZE", "1"}}), findLauncher()->has_value()));
  EXPECT_FALSE(
      (LauncherVariables({{"MASTER_ADDR", "alpha"}, {"MASTER_PORT", "29500"}}), findLauncher()->has_value()));
}

TEST(Launcher, WhoseVariablesContradictOneAnotherIsAnError) {
  const LauncherVariables variables({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}});
  EXPECT_EQ(findLauncher().message(),
            "PMI_RANK=4, PMI_SIZE=4: there are from 1 to 1024 ranks, the first is 0");
  const LauncherVariables other({{"PMI_SIZE", "many"}});
  EXPECT_EQ(findLauncher().message(), "PMI_SIZE=many is no number");
}

/// Each variable at a value that no launcher gives it.
TEST(Launcher, WhoseVariablesAreNonsenseIsAnError) {
  const auto messageWith = [](const char* variable, const char* value) -> std::string {
    std::map<std::string_view, const char*> all = {{"RANK", "1"},
                                                   {"WORLD_SIZE", "2"},
                                                   {"LOCAL_RANK", "1"},
                                                   {"MASTER_ADDR", "alpha"},
                                                   {"MASTER_PORT", "29500"}};
    all[variable] = value;
    std::vector<std::pair<const char*, const char*>> pairs;
    for (const auto& [name, text] : all) pairs.emplace_back(name.data(), text);
    const LauncherVariables variables(pairs);
    const Result<std::optional<Launcher>> found = findLauncher();
    return found.ok() ? "" : found.message();
  };
  const std::string bounds = ": there are from 1 to 1024 ranks, the first is 0";
  EXPECT_EQ(messageWith("RANK", "1"), "");
  EXPECT_EQ(messageWith("RANK", "1.0"), "RANK=1.0 is no number");
  EXPECT_EQ(messageWith("RANK", ""), "RANK= is no number");
  EXPECT_EQ(messageWith("RANK", "-1"), "RANK=-1, WORLD_SIZE=2" + bounds);
  EXPECT_EQ(messageWith("RANK", "99999999999999999999"), "RANK=99999999999999999999 is no number");
  EXPECT_EQ(messageWith("WORLD_SIZE", "0"), "RANK=1, WORLD_SIZE=0" + bounds);
  EXPECT_EQ(messageWith("WORLD_SIZE", "1"), "RANK=1, WORLD_SIZE=1" + bounds);
  EXPECT_EQ(messageWith("WORLD_SIZE", "4096"), "RANK=1, WORLD_SIZE=4096" + bounds);
  EXPECT_EQ(messageWith("LOCAL_RANK", "one"), "LOCAL_RANK=one is no number");
  EXPECT_EQ(messageWith("LOCAL_RANK", "-1"), "LOCAL_RANK=-1: of the ranks of a machine the first is 0");
  EXPECT_EQ(messageWith("MASTER_PORT", "http"), "MASTER_PORT=http is no number");
  EXPECT_EQ(messageWith("MASTER_PORT", "65528"), "MASTER_PORT=65528: a port below 65,528");
  EXPECT_EQ(messageWith("MASTER_ADDR", ""), "MASTER_ADDR is empty: the machine of the first rank");
}

/// Which would otherwise each train by themselves.
TEST(Launcher, ThatLeavesVariablesOutIsAnError) {
  const LauncherVariables variables({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"TORCHELASTIC_RUN_ID", "none"}});
  EXPECT_EQ(findLauncher().message(),
            "TORCHELASTIC_RUN_ID is set, as by torchrun, but not all of RANK, WORLD_SIZE, MASTER_ADDR and "
            "MASTER_PORT: set them, or unset it");
}

TEST(Launcher, ThatIsAHandThatLeavesVariablesOutIsAnError) {
  const LauncherVariables ranks({{"RANK", "0"}, {"WORLD_SIZE", "4"}});
  EXPECT_EQ(
      findLauncher().message(),
      "RANK, WORLD_SIZE are set, as by torchrun, but not MASTER_ADDR, MASTER_PORT: set that too, or unset "
      "them");
  const LauncherVariables port({{"MASTER_PORT", "29500"}});
  EXPECT_EQ(
      findLauncher().message(),
      "RANK, WORLD_SIZE, MASTER_PORT are set, as by torchrun, but not MASTER_ADDR: set that too, or unset "
      "them");
}

/// Looks for lost ranks until one is found, or for so long.
Status lookFor(Communicator& ranks, milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (std::chrono::steady_clock::now() < end) GPUC_RETURN_IF_ERROR(ranks.look());
  return okStatus();
}

/// Of the ranks that have ended: the one that was lost first, and none that ended in order.
TEST(Look, SeesWhoIsLost) {
  static const std::string kKilled = "rank 1 was ended by signal 9 (Killed)";
  const Outcome outcome = launch({.ranks = 3}, [](Communicator& ranks) -> Result<int> {
    if (ranks.rank() == 0) return 0;
    if (ranks.rank() == 2) return lookFor(ranks, milliseconds(10000)).message() == kKilled ? 0 : 3;
    GPUC_RETURN_IF_ERROR(lookFor(ranks, milliseconds(200)));
    return ::raise(SIGKILL);
  });
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.errors, "error: " + kKilled + "\n");
}

TEST(Communicator, AllocatesNothing) {
  const Outcome outcome = launch({.ranks = 2}, [](Communicator& ranks) -> Result<int> {
    std::vector<std::byte> numbers(4 << 20), all(2 * 4096), share(4 << 20);
    const std::vector<uint64_t> pieces = {500'000, 3, 400'000};
    const Shares shares = *Shares::of(pieces, 2, sizeof(float));
    const std::array<void*, 3> wholes = {numbers.data(), numbers.data() + 2'000'000,
                                         numbers.data() + 2'000'016};
    const std::array<void*, 3> own = {share.data(), share.data() + 1'000'000, share.data() + 1'000'008};
    const std::span<const void* const> read_wholes(wholes.data(), 3), read_own(own.data(), 3);
    auto exchange = [&]() -> Status {
      GPUC_RETURN_IF_ERROR(
          ranks.allReduce(DataType::f32, numbers.size() / 4, numbers.data(), numbers.data()));
      GPUC_RETURN_IF_ERROR(ranks.reduceScatter(DataType::f32, shares, read_wholes, own));
      GPUC_RETURN_IF_ERROR(ranks.allGather(DataType::f32, shares, read_own, wholes));
      GPUC_RETURN_IF_ERROR(ranks.broadcast({numbers.data(), 4096}, 1));
      return ranks.gather({numbers.data(), 4096}, all);
    };
    GPUC_RETURN_IF_ERROR(exchange());
    const AllocationCount before = allocationCount();
    for (int i = 0; i < 5; ++i) GPUC_RETURN_IF_ERROR(exchange());
    return static_cast<int>(allocationCount().total() - before.total());
  });
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

TEST(SlowLink, TakesTheTimeOfTheLinkAndGivesTheSameSums) {
  const Outcome outcome = launch({.ranks = 3}, [](Communicator& fast) -> Result<int> {
    SlowLink ranks(fast, {.bytes_per_second = 1e6, .latency = std::chrono::microseconds(2000)});
    const auto begin = std::chrono::steady_clock::now();
    GPUC_RETURN_IF_ERROR(addUp(ranks, 3000));  // two sums
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    // Twice two messages, and 2/3 of 12,000 bytes.
    return took.count() >= 2 * 2 * (0.002 + 0.008) ? 0 : 3;
  });
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

TEST(Yields, AreAsManyAsAWaitMayHaveIfNobodyElseRuns) {
  Yields yields;
  EXPECT_TRUE(yields.next(0, 1));
  EXPECT_FALSE(yields.next(1, 1));
  EXPECT_FALSE(yields.next(0, 0));
}

/// Beside one that computes on the same core, each time for a whole turn.
TEST(Yields, EndOnceSomebodyElseHasHadTheCore) {
  constexpr int64_t kMost = 1000;
  cpu_set_t before = {}, one = {};
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_SET(::sched_getcpu(), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);  // which the other thread has from this one
  std::atomic<bool> is_over = false;
  std::thread other([&] {
    while (!is_over) {
    }
  });
  Yields yields;
  auto wait = [&] {
    int64_t count = 0;
    while (yields.next(count, kMost)) ++count;
    return count;
  };
  for (int round = 0; round < 3; ++round) {
    const int64_t count = wait();
    EXPECT_GT(count, 0);
    EXPECT_LT(count, kMost / 10);
    for (int without = 0; without < 8; ++without) EXPECT_EQ(wait(), 0);
  }
  is_over = true;
  other.join();
  ::sched_setaffinity(0, sizeof(before), &before);
}

}  // namespace
}  // namespace gpuc
