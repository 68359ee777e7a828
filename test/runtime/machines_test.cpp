// Ranks of several machines: here threads, which share memory with those alone that stand for one machine
// with them, and speak by TCP with all.
#include "runtime/comm/machines.h"

#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "rank_bodies.h"
#include "runtime/comm/launch.h"
#include "runtime/comm/transport/tcp.h"
#include "test/runtime/allocation_hook.h"

namespace gpuc {
namespace {

using std::chrono::milliseconds;

Machines machinesOf(const std::vector<int64_t>& sizes) {
  Machines machines;
  for (const int64_t size : sizes) machines.first.push_back(machines.first.back() + size);
  return machines;
}

/// What each machine has sent to others, and what its ranks' bodies said.
struct Outcome {
  std::vector<int64_t> sent_bytes;
  std::vector<std::string> errors;

  std::string firstError() const {
    const auto first =
        std::find_if(errors.begin(), errors.end(), [](const auto& text) { return !text.empty(); });
    return first == errors.end() ? "" : *first;
  }
};

int64_t sentBytes(const Socket& socket) {
  tcp_info info = {};
  socklen_t length = sizeof(info);
  EXPECT_EQ(::getsockopt(socket.number(), IPPROTO_TCP, TCP_INFO, &info, &length), 0);
  return static_cast<int64_t>(info.tcpi_bytes_acked);
}

/// As a rank sees it, and all that is left of what it has sent when it is done.
class Rank {
 public:
  Rank(const Machines& machines, std::vector<SharedRanks>& memories, int64_t rank, const MeetingPlace& place)
      : machines_(machines),
        memory_(memories[static_cast<size_t>(machines.of(rank))]),
        rank_(rank),
        place_(place) {}

  std::string be(const RankBody& body, Outcome& outcome, std::mutex& mutex) {
    const int64_t machine = machines_.of(rank_);
    Result<std::vector<Socket>> sockets =
        meetByTcp(place_, rank_, machines_.first.back(), std::chrono::seconds(20));
    if (!sockets.ok()) return sockets.message();
    std::vector<Socket> lines;  // to count by when the transport has closed its own
    for (const Socket& socket : *sockets) lines.emplace_back(socket.isOpen() ? ::dup(socket.number()) : -1);
    const auto transport = speakOver(std::move(*sockets), rank_);
    MeshCommunicator mesh(*transport, {.limit = milliseconds(20000)});
    SharedCommunicator local(
        memory_, rank_ - machines_.begin(machine), std::chrono::seconds(20), nullptr,
        {.ranks_before = machines_.begin(machine), .progress = [&] { mesh.progress(); }});
    MachinesCommunicator ranks(mesh, memory_, local, machines_);
    const Result<int> result = body(ranks);
    if (!result.ok()) {
      memory_.lose(rank_ - machines_.begin(machine), "failed: " + result.message());
      mesh.giveUp(result.message());
    }
    const Status closed = result.ok() ? transport->close() : okStatus();
    const std::lock_guard lock(mutex);
    for (int64_t other = 0; other < machines_.first.back(); ++other)
      if (machines_.of(other) != machine)
        outcome.sent_bytes[static_cast<size_t>(machine)] += sentBytes(lines[static_cast<size_t>(other)]);
    return result.ok() ? std::string(closed.message()) : std::string(result.message());
  }

 private:
  const Machines& machines_;
  SharedRanks& memory_;
  const int64_t rank_;
  const MeetingPlace& place_;
};

Outcome run(const std::vector<int64_t>& sizes, const RankBody& body) {
  static int64_t count = 0;
  // Below those that the kernel gives.
  const int64_t port = 21000 + (::getpid() * 16 + count++ * MeetingPlace::kPorts) % 11000;
  const MeetingPlace place = {
      .host = "localhost", .port = port, .job = std::to_string(::getpid()) + "." + std::to_string(port)};
  const Machines machines = machinesOf(sizes);
  std::vector<SharedRanks> memories;
  for (const int64_t size : sizes) memories.push_back(*SharedRanks::create(size));
  Outcome outcome{std::vector<int64_t>(sizes.size()),
                  std::vector<std::string>(static_cast<size_t>(machines.first.back()))};
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < machines.first.back(); ++rank)
    threads.emplace_back([&, rank] {
      outcome.errors[static_cast<size_t>(rank)] =
          Rank(machines, memories, rank, place).be(body, outcome, mutex);
    });
  for (std::thread& thread : threads) thread.join();
  return outcome;
}

class OnMachines : public ::testing::TestWithParam<std::vector<int64_t>> {};

TEST_P(OnMachines, AddUpInTheOrderOfRanks) { EXPECT_EQ(run(GetParam(), addUpInTheirOrder).firstError(), ""); }

TEST_P(OnMachines, ShareOutAndGather) { EXPECT_EQ(run(GetParam(), shareOutAndGather).firstError(), ""); }

TEST_P(OnMachines, MixCollectives) { EXPECT_EQ(run(GetParam(), mixCollectives).firstError(), ""); }

INSTANTIATE_TEST_SUITE_P(Some, OnMachines,
                         ::testing::Values(std::vector<int64_t>{2, 2}, std::vector<int64_t>{3, 1},
                                           std::vector<int64_t>{1, 4}, std::vector<int64_t>{2, 3, 2},
                                           std::vector<int64_t>{2, 2, 2, 2}));

constexpr size_t kElements = 2'000'000;
constexpr auto kBytes = static_cast<double>(kElements * sizeof(float));

/// Of each machine, relative to the bytes of what is exchanged: to within the messages' heads and what ranks
/// say when they meet.
void expectSent(const std::vector<int64_t>& sizes, const std::vector<double>& expected,
                const RankBody& body) {
  const Outcome outcome = run(sizes, body);
  ASSERT_EQ(outcome.firstError(), "");
  for (size_t machine = 0; machine < sizes.size(); ++machine)
    EXPECT_NEAR(static_cast<double>(outcome.sent_bytes[machine]) / kBytes, expected[machine], 0.01)
        << "machine " << machine;
}

TEST(MachinesSend, TheTotalsOnceAndTheResultsOnce) {
  auto body = [](Communicator& ranks) -> Result<int> {
    std::vector<float> values(kElements);
    auto* bytes = reinterpret_cast<std::byte*>(values.data());
    GPUC_RETURN_IF_ERROR(ranks.allReduce(DataType::f32, kElements, bytes, bytes));
    return 0;
  };
  expectSent({2, 2}, {1, 1}, body);        // each rank for itself: 2 · 2 (4 - 2) / 4 = 2
  expectSent({4, 4}, {1, 1}, body);        // 4
  expectSent({3, 2, 3}, {1, 2, 1}, body);  // 3.75, 3, 3.75
}

TEST(MachinesSend, OfWhatIsSharedOutItsTotalsAndTheSharesOfOthers) {
  auto body = [](Communicator& ranks) -> Result<int> {
    const std::vector<uint64_t> tensors = {kElements};
    const Shares shares = *Shares::of(tensors, static_cast<uint64_t>(ranks.size()), sizeof(float));
    std::vector<float> whole(kElements), own(shares.elements);
    const void* part = whole.data();
    void* share = own.data();
    GPUC_RETURN_IF_ERROR(ranks.reduceScatter(DataType::f32, shares, {&part, 1}, {&share, 1}));
    return 0;
  };
  expectSent({4, 4}, {1, 0.5}, body);            // each rank for itself: 2
  expectSent({4, 4, 4}, {1, 1, 2.0 / 3}, body);  // 2.67
}

TEST(MachinesSend, TheirSharesOnceToEachOther) {
  auto body = [](Communicator& ranks) -> Result<int> {
    const std::vector<uint64_t> tensors = {kElements};
    const Shares shares = *Shares::of(tensors, static_cast<uint64_t>(ranks.size()), sizeof(float));
    std::vector<float> whole(kElements), own(shares.elements);
    const void* share = own.data();
    void* place = whole.data();
    GPUC_RETURN_IF_ERROR(ranks.allGather(DataType::f32, shares, {&share, 1}, {&place, 1}));
    return 0;
  };
  expectSent({2, 2}, {0.5, 0.5}, body);                      // each rank for itself: 1
  expectSent({3, 3, 3}, {2.0 / 3, 2.0 / 3, 2.0 / 3}, body);  // 2
}

TEST(MachinesMemory, IsPlannedOnce) {
  const Outcome outcome = run({2, 3}, [](Communicator& ranks) -> Result<int> {
    const std::vector<uint64_t> tensors = {kElements};
    const Shares shares = *Shares::of(tensors, static_cast<uint64_t>(ranks.size()), sizeof(float));
    std::vector<float> whole(kElements), own(shares.elements);
    void *part = whole.data(), *share = own.data();
    auto* bytes = reinterpret_cast<std::byte*>(part);
    std::vector<std::byte> all(static_cast<size_t>(ranks.size()));
    GPUC_RETURN_IF_ERROR(ranks.gather({bytes, 1}, all));
    const int64_t before = allocationCount().total();
    GPUC_RETURN_IF_ERROR(ranks.allReduce(DataType::f32, kElements, bytes, bytes));
    GPUC_RETURN_IF_ERROR(ranks.reduceScatter(DataType::f32, shares, {&part, 1}, {&share, 1}));
    GPUC_RETURN_IF_ERROR(ranks.allGather(DataType::f32, shares, {&share, 1}, {&part, 1}));
    const int64_t count = allocationCount().total() - before;
    GPUC_RETURN_IF_ERROR(ranks.gather({bytes, 1}, all));  // of all threads, none of which goes on before
    return count == 0 ? Result<int>(0) : errorf("%lld allocations", static_cast<long long>(count));
  });
  EXPECT_EQ(outcome.firstError(), "");
}

/// On its machine and on the others, whether they wait for messages or for one that does.
TEST(LostOnMachines, IsNamedByAll) {
  const Outcome outcome = run({2, 2}, [](Communicator& ranks) -> Result<int> {
    for (int i = 0; i < 10; ++i) {
      if (i == 3 && ranks.rank() == 2) return Status::error("no such file");
      GPUC_RETURN_IF_ERROR(addUp(ranks, kElements));
    }
    return 0;
  });
  EXPECT_EQ(outcome.errors[2], "no such file");
  for (const size_t rank : {0, 1, 3}) {
    EXPECT_EQ(outcome.errors[rank].find("rank " + std::to_string(rank) + " waits in collective "), 0U)
        << outcome.errors[rank];
    EXPECT_NE(outcome.errors[rank].find("no such file"), std::string::npos) << outcome.errors[rank];
  }
}

TEST(MachinesOfRanks, FollowOneAnother) {
  auto of = [](const std::vector<uint64_t>& machines) {
    std::vector<Life> lives;
    for (const uint64_t machine : machines) lives.push_back({.machine = machine});
    return Machines::of(lives);
  };
  EXPECT_EQ(of({7, 7, 7})->first, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(of({9, 9, 7, 5, 5})->first, (std::vector<int64_t>{0, 2, 3, 5}));
  EXPECT_EQ(of({9, 7, 9, 7}), std::nullopt);
  EXPECT_FALSE(of({9, 7})->shareAny());
  EXPECT_TRUE(of({9, 7, 7})->shareAny());
}

}  // namespace
}  // namespace gpuc
