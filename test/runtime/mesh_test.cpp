// Collectives made of messages, by TCP between processes of one machine.
#include "runtime/comm/mesh.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "rank_bodies.h"
#include "runtime/comm/cores.h"
#include "runtime/comm/join.h"
#include "runtime/comm/transport/tcp.h"
#include "test/runtime/allocation_hook.h"

namespace gpuc {
namespace {

using std::chrono::milliseconds;

/// A port of its own for each meeting of this process and most others; the place tries those above, too.
MeetingPlace somePlace() {
  static int64_t count = 0;
  const int64_t port = 20000 + (::getpid() * 16 + count++ * MeetingPlace::kPorts) % 20000;
  return {.host = "localhost", .port = port, .job = std::to_string(::getpid()) + "." + std::to_string(port)};
}

struct Outcome {
  int status = -1;
  std::string errors;
};

/// Ranks that are started as those of one machine, but speak by TCP; their own memory serves for nothing.
Outcome launch(int64_t ranks, const std::function<Result<int>(MeshCommunicator&)>& body) {
  const MeetingPlace place = somePlace();
  ::testing::internal::CaptureStderr();
  const Result<int> status = launchRanks({.ranks = ranks}, [&](Communicator& rank) -> Result<int> {
    GPUC_ASSIGN_OR_RETURN(const std::unique_ptr<Transport> transport,
                          openTcp(place, rank.rank(), rank.size(), std::chrono::seconds(20)));
    MeshCommunicator mesh(*transport, {.limit = milliseconds(20000), .patience = milliseconds(500)});
    Result<int> result = body(mesh);
    if (!result.ok()) mesh.giveUp(result.message());
    return result;
  });
  Outcome outcome{status.ok() ? *status : -1, ::testing::internal::GetCapturedStderr()};
  if (!status.ok()) outcome.errors += status.message();
  return outcome;
}

class Mesh : public ::testing::TestWithParam<int64_t> {};

TEST_P(Mesh, AddsUpInTheOrderOfRanks) {
  const Outcome outcome = launch(GetParam(), addUpInTheirOrder);
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

TEST_P(Mesh, HandsOnBytesOfAnyLength) {
  const Outcome outcome = launch(GetParam(), handOnBytesOfAnyLength);
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

TEST_P(Mesh, MixesCollectives) {
  const Outcome outcome = launch(GetParam(), mixCollectives);
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

INSTANTIATE_TEST_SUITE_P(Of, Mesh, ::testing::Values(1, 3));

TEST(MeshMemory, IsPlannedOnce) {
  const Outcome outcome = launch(3, [](MeshCommunicator& ranks) -> Result<int> {
    GPUC_RETURN_IF_ERROR(ranks.meet());
    std::vector<std::byte> part(3'000'000), all(3 * part.size());
    const int64_t before = allocationCount().total();
    for (size_t elements : {1, 1000, 750'000})
      GPUC_RETURN_IF_ERROR(ranks.allReduce(DataType::f32, elements, part.data(), part.data()));
    GPUC_RETURN_IF_ERROR(ranks.broadcast(part, 1));
    GPUC_RETURN_IF_ERROR(ranks.gather(part, all));
    if (const int64_t count = allocationCount().total() - before; count != 0)
      return errorf("%lld allocations", static_cast<long long>(count));
    return 0;
  });
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

/// Adds up again and again; rank 1 does `failing` before the third time.
std::function<Result<int>(MeshCommunicator&)> failingInTheMiddle(Status (*failing)()) {
  return [failing](MeshCommunicator& ranks) -> Result<int> {
    for (int i = 0; i < 100; ++i) {
      if (i == 2 && ranks.rank() == 1) GPUC_RETURN_IF_ERROR(failing());
      GPUC_RETURN_IF_ERROR(addUp(ranks, 10));
    }
    return 0;
  };
}

TEST(MeshLoss, BreaksALine) {
  const Outcome outcome = launch(3, failingInTheMiddle([] {
                                   ::raise(SIGKILL);
                                   return okStatus();
                                 }));
  EXPECT_EQ(outcome.status, 1);
  for (const char* rank : {"0", "2"})
    EXPECT_NE(
        outcome.errors.find("rank " + std::string(rank) + " waits in collective 5, but rank 1 has ended"),
        std::string::npos)
        << outcome.errors;
}

TEST(MeshLoss, OfOneThatFailsIsExplained) {
  const Outcome outcome = launch(3, failingInTheMiddle([] { return Status::error("no such file"); }));
  EXPECT_EQ(outcome.status, 1);
  for (const char* rank : {"0", "2"})
    EXPECT_NE(outcome.errors.find("rank " + std::string(rank) +
                                  " waits in collective 5, but rank 1 failed: no such file"),
              std::string::npos)
        << outcome.errors;
}

/// Messages that are longer than others expect, and such as are only meant for something else.
TEST(MeshLoss, OfOneThatDoesSomethingElseIsNamed) {
  const std::function<Result<int>(MeshCommunicator&)> others[] = {
      [](MeshCommunicator& ranks) -> Result<int> {
        GPUC_RETURN_IF_ERROR(addUp(ranks, ranks.rank() == 0 ? 10 : 11));
        return 0;
      },
      [](MeshCommunicator& ranks) -> Result<int> {
        std::vector<std::byte> bytes(40), all(80);
        GPUC_RETURN_IF_ERROR(ranks.rank() == 0
                                 ? ranks.allReduce(DataType::f32, 10, bytes.data(), bytes.data())
                                 : ranks.gather(bytes, all));
        return 0;
      }};
  for (const auto& body : others) {
    const Outcome outcome = launch(2, body);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.errors.find("waits in collective 1, but rank"), std::string::npos) << outcome.errors;
    EXPECT_NE(outcome.errors.find("asks for something else: all must run the same plan"), std::string::npos)
        << outcome.errors;
  }
}

//===----------------------------------------------------------------------===//
// Meeting
//===----------------------------------------------------------------------===//

/// What the ranks of a meeting come to, each in a thread.
std::vector<std::string> meet(const std::vector<std::pair<MeetingPlace, int64_t>>& ranks, int64_t size,
                              milliseconds limit) {
  std::vector<std::string> errors(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i)
    threads.emplace_back(
        [&, i] { errors[i] = meetByTcp(ranks[i].first, ranks[i].second, size, limit).message(); });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

TEST(TcpMeeting, NamesWhoDoesNotCome) {
  const MeetingPlace place = somePlace();
  const std::vector<std::string> errors = meet({{place, 0}, {place, 2}}, 4, milliseconds(1000));
  EXPECT_EQ(errors[0], "ranks 1, 3 have not come to rank 0 in 1 s");
  EXPECT_EQ(errors[1], "rank 0 has gone while others came");
}

TEST(TcpMeeting, NamesWhereTheFirstIsExpected) {
  MeetingPlace place = somePlace();
  place.port = 19000;
  EXPECT_EQ(meet({{place, 1}}, 2, milliseconds(1000))[0],
            "rank 0 does not listen at localhost, ports 19000 to 19007 (MASTER_ADDR, MASTER_PORT), in 1 s");
  place.host = "no-such-machine.invalid";
  EXPECT_EQ(meet({{place, 1}}, 2, milliseconds(1000))[0].find("MASTER_ADDR=no-such-machine.invalid: "), 0u);
}

TEST(TcpMeeting, IsOfOneJob) {
  const MeetingPlace place = somePlace();
  MeetingPlace other = place;
  other.job = "another";
  const std::vector<std::string> errors = meet({{place, 0}, {other, 1}}, 2, milliseconds(1000));
  EXPECT_EQ(errors[0], "rank 1 has not come to rank 0 in 1 s");
  EXPECT_NE(errors[1].find("rank 0 does not listen"), std::string::npos);
}

/// Whoever else listens at the port, or connects to it, is none of the ranks.
TEST(TcpMeeting, MindsNoStrangers) {
  const MeetingPlace place = somePlace();
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<uint16_t>(place.port));
  const Socket listener(::socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(::bind(listener.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(listener.number(), 5), 0);
  std::thread stranger([&] {
    address.sin_port = htons(static_cast<uint16_t>(place.port + 1));
    for (int i = 0; i < 200; ++i) {
      const Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
      if (::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
        EXPECT_GT(::send(socket.number(),
                         "GET / HTTP/1.0\r\n\r\nand much more, so that it is as long as a greeting", 64, 0),
                  0);
        return;
      }
      ::usleep(5000);
    }
    ADD_FAILURE() << "nobody listened";
  });
  const std::vector<std::string> errors =
      meet({{place, 0}, {place, 1}, {place, 2}}, 3, std::chrono::seconds(20));
  stranger.join();
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

TEST(Cores, AreSharedByWhoMayRunOnThem) {
  const Outcome outcome = launch(3, [](MeshCommunicator& ranks) -> Result<int> {
    GPUC_ASSIGN_OR_RETURN(CoreShare share, shareCores(ranks));
    if (share.ranks != 3 || share.isCrowded() != (share.cores < 3)) return Status::error("another share");
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(ranks.rank() == 0 ? 0 : 1, &one);
    if (::sched_setaffinity(0, sizeof(one), &one) != 0) return 7;
    GPUC_ASSIGN_OR_RETURN(share, shareCores(ranks));
    if (share.cores != 1 || share.ranks != (ranks.rank() == 0 ? 1 : 2))
      return Status::error("another share of one");
    return 0;
  });
  if (outcome.status == 7) GTEST_SKIP() << "no two cores to be bound to";
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

}  // namespace
}  // namespace gpuc
