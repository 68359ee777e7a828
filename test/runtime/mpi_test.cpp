// Ranks that mpirun starts. Each test starts this binary again as ranks, which do what the test's name says.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "rank_bodies.h"
#include "runtime/comm/join.h"
#include "runtime/tooling/allocation_hook.h"

namespace gpuc {
namespace {

using std::chrono::milliseconds;

//===----------------------------------------------------------------------===//
// What ranks do
//===----------------------------------------------------------------------===//

/// Adds up again and again; rank 1 does `failing` before the third time.
RankBody failingInTheMiddle(Status (*failing)()) {
  return [failing](Communicator& ranks) -> Result<int> {
    for (int i = 0; i < 100; ++i) {
      if (i == 2 && ranks.rank() == 1) GPUC_RETURN_IF_ERROR(failing());
      GPUC_RETURN_IF_ERROR(addUp(ranks, 10));
    }
    return 0;
  };
}

Result<int> allCollectives(Communicator& ranks) {
  for (const RankBody& body : {RankBody(addUpInTheirOrder), RankBody(shareOutAndGather),
                               RankBody(handOnBytesOfAnyLength), RankBody(mixCollectives)})
    GPUC_RETURN_IF_ERROR(body(ranks).status());
  return 0;
}

Result<int> askForSomethingElse(Communicator& ranks) {
  GPUC_RETURN_IF_ERROR(addUp(ranks, ranks.rank() == 0 ? 20000 : 30000));
  return 0;
}

/// Says how often the process allocated while ranks exchanged, at least, in some of the rounds behind one
/// that is not looked at: what an MPI keeps for messages that come early grows with how early the other ranks
/// are, now and then.
Result<int> countAllocations(Communicator& ranks) {
  std::vector<std::byte> numbers(4 << 20), all(static_cast<size_t>(ranks.size()) * 4096);
  auto exchange = [&]() -> Status {
    for (size_t elements : {size_t{1}, size_t{5000}, numbers.size() / 4})
      GPUC_RETURN_IF_ERROR(ranks.allReduce(DataType::f32, elements, numbers.data(), numbers.data()));
    GPUC_RETURN_IF_ERROR(ranks.broadcast({numbers.data(), 4096}, 1));
    return ranks.gather({numbers.data(), 4096}, all);
  };
  for (int i = 0; i < 50; ++i) GPUC_RETURN_IF_ERROR(exchange());
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (int round = 0; round < 5; ++round) {
    const int64_t before = allocationCount().total();
    for (int i = 0; i < 40; ++i) GPUC_RETURN_IF_ERROR(exchange());
    fewest = std::min(fewest, allocationCount().total() - before);
  }
  if (fewest > 0) return errorf("%lld allocations", static_cast<long long>(fewest));
  return 0;
}

const std::map<std::string, RankBody>& bodies() {
  static const std::map<std::string, RankBody> all = {
      {"all collectives", allCollectives},
      {"allocations", countAllocations},
      {"another wish", askForSomethingElse},
      {"killed", failingInTheMiddle([] {
         ::raise(SIGKILL);
         return okStatus();
       })},
      {"stopped", failingInTheMiddle([] {
         ::raise(SIGSTOP);
         return okStatus();
       })},
      {"late", failingInTheMiddle([] {
         ::sleep(5);
         return okStatus();
       })},
      {"failed", failingInTheMiddle([] { return Status::error("no such file"); })},
      {"all failed", [](Communicator&) -> Result<int> { return Status::error("no such file"); }},
      {"status", [](Communicator&) -> Result<int> { return 130; }},
  };
  return all;
}

/// "messages" has ranks of one machine exchange as those of several do; "memory" by what they share.
int beRank(const std::string& flavour, const std::string& means, const std::string& body) {
  const Result<std::optional<Launcher>> found = findLauncher();
  if (!found.ok()) return 3;
  // Of one rank alone nobody needs to know that there is a launcher.
  const Launcher alone{.name = "mpirun",
                       .mpi = flavour == "OpenMpi" ? MpiFlavour::open_mpi : MpiFlavour::mpich};
  const milliseconds limit(body == "late" ? 1000 : 20'000);  // on a machine that has much else to do
  return joinRanks(found->value_or(alone),
                   {.limit = limit, .patience = milliseconds(500), .shares_memory = means == "memory"},
                   bodies().at(body));
}

//===----------------------------------------------------------------------===//
// Their launchers
//===----------------------------------------------------------------------===//

struct Flavour {
  std::string name, program, flags, means;
};

/// What a failed test is said to be of.
void PrintTo(const Flavour& flavour, std::ostream* out) { *out << flavour.name << " by " << flavour.means; }

const Flavour kOpenMpi{"OpenMpi", "mpirun.openmpi", "--allow-run-as-root --oversubscribe", "messages"},
    kOpenMpiMemory{"OpenMpi", "mpirun.openmpi", "--allow-run-as-root --oversubscribe", "memory"};
// It gives ranks a second to end when one has failed; none that says why needs it.
const std::string kAtOnce = "--mca odls_base_sigkill_timeout 0";
const Flavour kMpich{"Mpich", "mpirun.mpich", "", "messages"},
    kMpichMemory{"Mpich", "mpirun.mpich", "", "memory"};

bool isThere(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
}

/// What was written, to stdout or stderr, and the exit status.
struct Outcome {
  int status = -1;
  std::string text;

  /// Of some ranks it is 1; MPICH's mpirun may have ended the others by then, and gives an `or` of what all
  /// ended by. `timeout` gives 124.
  bool hasFailed() const { return status > 0 && status < 124; }

  int count(const std::string& line) const {
    int found = 0;
    for (size_t at = text.find(line); at != std::string::npos; at = text.find(line, at + 1)) ++found;
    return found;
  }
};

Outcome launch(const Flavour& flavour, int ranks, const std::string& body) {
  const std::string command = "timeout 60 " + flavour.program + " " + flavour.flags + " -n " +
                              std::to_string(ranks) + " /proc/" + std::to_string(::getpid()) + "/exe " +
                              flavour.name + " " + flavour.means + " '" + body + "' 2>&1";
  Outcome outcome;
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  while (size_t length = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.text.append(buffer.data(), length);
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

class Mpi : public ::testing::TestWithParam<Flavour> {
 protected:
  void SetUp() override {
    if (!isThere(GetParam().program))
      GTEST_SKIP() << "no " << GetParam().program << ": scripts/setup installs it";
  }

  std::string at(int collective, const std::string& rank = "0") const;

  Outcome run(int ranks, const std::string& body, bool at_once = true) {
    Flavour flavour = GetParam();
    if (at_once && flavour.name == "OpenMpi") flavour.flags += " " + kAtOnce;
    return launch(flavour, ranks, body);
  }
};

/// Where a rank waits. By messages two collectives have come before those of the body.
std::string Mpi::at(int collective, const std::string& rank) const {
  const int before = GetParam().means == "memory" ? 2 : 0;
  return "rank " + rank + " waits in collective " + std::to_string(collective - before) + ", ";
}

TEST_P(Mpi, SaysTheSameAsSharedMemory) {
  for (int ranks : {1, 2, 3, 4}) {
    const Outcome outcome = run(ranks, "all collectives");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.text, "");
  }
}

/// Neither ours nor MPI's.
TEST_P(Mpi, AllocatesNothingInTheLongRun) {
  const Outcome outcome = run(2, "allocations");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.text, "");
}

TEST_P(Mpi, GivesTheStatusThatAllHave) { EXPECT_EQ(run(2, "status").status, 130); }

TEST_P(Mpi, NamesWhoAsksForSomethingElse) {
  const Outcome outcome = run(2, "another wish");
  EXPECT_TRUE(outcome.hasFailed()) << outcome.status << ": " << outcome.text;
  EXPECT_EQ(outcome.count(at(3) + "but rank 1 asks for "), 1) << outcome.text;
  EXPECT_GE(outcome.count(": all must run the same plan\n"), 1) << outcome.text;
}

TEST_P(Mpi, NamesWhoWasKilled) {
  const Outcome outcome = run(3, "killed", /*at_once=*/false);
  EXPECT_NE(outcome.status, 0);
  if (GetParam().name == "Mpich") return;  // whose mpirun kills the others before they can say anything
  for (const char* rank : {"0", "2"})
    EXPECT_EQ(outcome.count("error: " + at(7, rank) + "but rank 1 has died\n"), 1) << outcome.text;
}

TEST_P(Mpi, NamesWhoIsStopped) {
  const Outcome outcome = run(2, "stopped");
  EXPECT_NE(outcome.status, 0);
  EXPECT_EQ(outcome.count("error: " + at(7) + "but rank 1 is stopped\n"), 1) << outcome.text;
}

TEST_P(Mpi, NamesWhoIsLate) {
  const Outcome outcome = run(2, "late");
  EXPECT_TRUE(outcome.hasFailed()) << outcome.status << ": " << outcome.text;
  EXPECT_EQ(outcome.count("error: " + at(7) + "but rank 1 has not come to it in 1 s\n"), 1) << outcome.text;
}

TEST_P(Mpi, SaysWhyOneFailed) {
  const Outcome outcome = run(3, "failed");
  EXPECT_TRUE(outcome.hasFailed()) << outcome.status << ": " << outcome.text;
  EXPECT_EQ(outcome.count("error: rank 1: no such file\n"), 1) << outcome.text;
  EXPECT_EQ(outcome.count("but rank 1 failed"), 0) << outcome.text;  // who waited for it says nothing
}

TEST_P(Mpi, SaysOnceWhyAllFailed) {
  const Outcome outcome = run(4, "all failed");
  EXPECT_TRUE(outcome.hasFailed()) << outcome.status << ": " << outcome.text;
  EXPECT_EQ(outcome.count("error: no such file\n"), 1) << outcome.text;
}

INSTANTIATE_TEST_SUITE_P(Of, Mpi, ::testing::Values(kOpenMpi, kMpich, kOpenMpiMemory, kMpichMemory),
                         [](const auto& info) {
                           return info.param.name + (info.param.means == "memory" ? "Memory" : "");
                         });

}  // namespace
}  // namespace gpuc

int main(int argc, char** argv) {
  if (argc == 4) return gpuc::beRank(argv[1], argv[2], argv[3]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
