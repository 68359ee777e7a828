// Ranks that say what no rank says, by mistake or on purpose: who hears it ends in time, with one line.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "runtime/base/descriptor.h"
#include "runtime/comm/launch.h"
#include "runtime/comm/mesh.h"
#include "runtime/comm/shared_memory.h"
#include "runtime/comm/transport/reception.h"
#include "runtime/comm/transport/tcp.h"

namespace gpuc {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr MeshCommunicator::Options kSoon = {.limit = milliseconds(300), .patience = milliseconds(200)};

/// The first rank of two, and the bare line of the second.
struct TwoRanks {
  TwoRanks() {
    std::array<int, 2> ends = {};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    std::vector<Socket> lines(2);
    lines[1] = Socket(ends[0]);
    transport = speakOver(std::move(lines), /*rank=*/0);
    other = Socket(ends[1]);
  }

  std::unique_ptr<Transport> otherTransport() {
    std::vector<Socket> lines(2);
    lines[0] = std::move(other);
    return speakOver(std::move(lines), /*rank=*/1);
  }

  std::unique_ptr<Transport> transport;
  Socket other;
};

Status addUp(Communicator& ranks, size_t elements) {
  std::vector<float> values(elements, 1);
  auto* bytes = reinterpret_cast<std::byte*>(values.data());
  return ranks.allReduce(DataType::f32, elements, bytes, bytes);
}

void progressWhile(Transport& transport, const std::function<bool()>& is_busy) {
  while (is_busy()) transport.progress();
}

/// It would leave what was there before where numbers are to be.
TEST(HostileRank, WhoseMessageIsTooShortIsNamed) {
  TwoRanks ranks;
  std::thread second([transport = ranks.otherTransport()] {
    std::array<std::byte, 64> bytes = {};
    transport->receive(0, bytes);
    progressWhile(*transport, [&] { return transport->line(0).is_receiving; });
    transport->send(0, transport->line(0).label, std::span(bytes).first(36));
    progressWhile(*transport, [&] { return transport->line(0).sends > 0; });
  });
  MeshCommunicator first(*ranks.transport, kSoon);
  EXPECT_EQ(addUp(first, 10).message(),
            "rank 0 waits in collective 1, but rank 1 asks for something else: all must run the same plan");
  second.join();
}

TEST(HostileRank, WhoseWordsAreSeveralLinesSaysOne) {
  TwoRanks ranks;
  std::thread second([transport = ranks.otherTransport()] {
    MeshCommunicator(*transport, kSoon).giveUp("no\nsuch\x1b[2Jfile");
  });
  MeshCommunicator first(*ranks.transport, kSoon);
  EXPECT_EQ(addUp(first, 10).message(),
            "rank 0 waits in collective 1, but rank 1 failed: no\\x0asuch\\x1b[2Jfile");
  second.join();
}

/// Byte by byte, so that there is always something that moves.
TEST(HostileRank, WhoNeverEndsAMessageIsNamedWhenTheLimitHasPassed) {
  TwoRanks ranks;
  std::atomic<bool> is_over = false;
  std::thread second([&] {
    std::array<char, 8> header = {1, 0, 0, 0, 40, 0, 0, 0};
    (void)::send(ranks.other.number(), header.data(), header.size(), MSG_NOSIGNAL);
    for (int i = 0; i < 39 && !is_over; ++i) {
      (void)::send(ranks.other.number(), header.data(), 1, MSG_NOSIGNAL);
      ::usleep(20'000);
    }
  });
  MeshCommunicator first(*ranks.transport, kSoon);
  const Clock::time_point start = Clock::now();
  EXPECT_EQ(addUp(first, 10).message(), "rank 0 waits in collective 1, but rank 1 has not come to it in 0 s");
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
  is_over = true;
  second.join();
}

/// One that gives up listens to what others have to say, but not for ever.
TEST(HostileRank, WhoNeverStopsTalkingHoldsNobodyUp) {
  TwoRanks ranks;
  std::atomic<bool> is_over = false;
  std::thread second([&] {
    const std::vector<char> nothing(8 * 1024);  // messages of no length
    std::vector<char> heard(nothing.size());
    while (!is_over) {
      (void)::send(ranks.other.number(), nothing.data(), nothing.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      (void)::recv(ranks.other.number(), heard.data(), heard.size(), MSG_DONTWAIT);
    }
  });
  MeshCommunicator first(*ranks.transport, kSoon);
  const Clock::time_point start = Clock::now();
  first.giveUp("no such file");
  first.leave();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
  is_over = true;
  second.join();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// What the second rank makes of it that the first one says where its memory is; whether that has it.
bool hasMemory(int file) {
  TwoRanks ranks;
  std::thread first([&] {
    MeshCommunicator rank(*ranks.transport, kSoon);
    const std::array<int64_t, 2> where = {::getpid(), file};
    std::array<int64_t, 4> theirs = {};
    std::array<std::byte, 2> all = {};
    const std::byte mine{1};
    EXPECT_TRUE(rank.gather(std::as_bytes(std::span(where)), std::as_writable_bytes(std::span(theirs))).ok());
    EXPECT_TRUE(rank.gather({&mine, 1}, all).ok());
  });
  const std::unique_ptr<Transport> transport = ranks.otherTransport();
  MeshCommunicator second(*transport, kSoon);
  const Result<std::optional<SharedRanks>> memory = SharedRanks::meet(second, /*first=*/0, /*count=*/2);
  first.join();
  return memory.ok() && memory->has_value();
}

/// As much as any number of ranks shares.
constexpr off_t kEnough = off_t{128} << 20;

TEST(HostileFirstRank, GetsNoOtherFileMapped) {
  const Descriptor file(::memfd_create("somebody-else's", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), kEnough), 0);
  EXPECT_FALSE(hasMemory(file.get()));
  EXPECT_FALSE(hasMemory(STDIN_FILENO));
  EXPECT_FALSE(hasMemory(12345));
  EXPECT_FALSE(hasMemory(-1));
}

/// Whoever touched what lies behind its end would be killed.
TEST(HostileFirstRank, GetsNoMemoryMappedThatIsTooShort) {
  const Descriptor file(::memfd_create("gpuc-ranks", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  EXPECT_FALSE(hasMemory(file.get()));
}

//===----------------------------------------------------------------------===//
// Meeting
//===----------------------------------------------------------------------===//

/// What the last of three ranks comes to where the first one says this of the others' addresses.
std::string meetFirst(const std::array<Address, 3>& addresses) {
  Socket listener = listenAt(0);  // a port that no test beside this one has
  EXPECT_TRUE(listener.isOpen());
  const MeetingPlace place = {.host = "localhost", .port = ownAddress(listener).port(), .job = "hostile"};
  std::thread first([&] {
    const Deadline end = Clock::now() + std::chrono::seconds(5);
    waitFor(listener, POLLIN, end);
    const Socket guest(::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
    Hello hello;
    readAll(guest, std::as_writable_bytes(std::span(&hello, 1)), end);
    hello.rank = 0;
    writeAll(guest, std::as_bytes(std::span(&hello, 1)), end);
    writeAll(guest, std::as_bytes(std::span(addresses)), end);
    hasGone(guest);
  });
  const std::string error = meetByTcp(place, /*rank=*/2, /*size=*/3, milliseconds(2000)).message();
  first.join();
  return error;
}

TEST(HostileFirstRank, WhoSendsOthersAnywhereIsNotBelieved) {
  std::array<Address, 3> addresses = {};
  for (Address& address : addresses) {
    address.length = sizeof(sockaddr_in);
    address.socket.ss_family = AF_INET;
  }
  const std::string where = "rank 0 does not say where rank 1 is: all must be of one version";
  std::array<Address, 3> longer = addresses;
  longer[1].length = UINT32_MAX;
  EXPECT_EQ(meetFirst(longer), where);
  // A name in the file system is no other machine.
  std::array<Address, 3> local = addresses;
  local[1].socket.ss_family = AF_UNIX;
  EXPECT_EQ(meetFirst(local), where);
  EXPECT_EQ(meetFirst({}), where);
  EXPECT_NE(meetFirst(addresses).find("rank 2 cannot reach rank 1 at "), std::string::npos);
}

}  // namespace
}  // namespace gpuc
