// Collectives made of messages, by TCP between processes of one machine.
#include "runtime/comm/mesh.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rank_bodies.h"
#include "runtime/comm/cores.h"
#include "runtime/comm/join.h"
#include "runtime/comm/transport/reception.h"
#include "runtime/comm/transport/tcp.h"
#include "test/runtime/allocation_hook.h"

namespace gpuc {
namespace {

using std::chrono::milliseconds;

/// A port of its own for each meeting of this process and most others; the place tries those above, too.
/// Below 32768, where the kernel takes those of whoever connects.
MeetingPlace somePlace() {
  static int64_t count = 0;
  const int64_t port = 20000 + (::getpid() * 16 + count++ * MeetingPlace::kPorts) % 12000;
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

TEST_P(Mesh, SharesOutAndGathers) {
  const Outcome outcome = launch(GetParam(), shareOutAndGather);
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
    const std::vector<uint64_t> pieces = {500'000, 3, 200'000};
    const Shares shares = *Shares::of(pieces, 3, sizeof(float));
    const std::array<void*, 3> wholes = {part.data(), part.data() + 2'000'000, part.data() + 2'000'016};
    const std::array<void*, 3> own = {all.data(), all.data() + 1'000'000, all.data() + 1'000'008};
    const std::span<const void* const> read_wholes(wholes.data(), 3), read_own(own.data(), 3);
    const int64_t before = allocationCount().total();
    for (size_t elements : {1, 1000, 750'000})
      GPUC_RETURN_IF_ERROR(ranks.allReduce(DataType::f32, elements, part.data(), part.data()));
    GPUC_RETURN_IF_ERROR(ranks.reduceScatter(DataType::f32, shares, read_wholes, own));
    GPUC_RETURN_IF_ERROR(ranks.allGather(DataType::f32, shares, read_own, wholes));
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

TEST(MeshLoss, IsSeenByWhoWaitsForNobody) {
  const Outcome outcome = launch(3, [](MeshCommunicator& ranks) -> Result<int> {
    GPUC_RETURN_IF_ERROR(ranks.meet());
    if (ranks.rank() == 1) return ::raise(SIGKILL);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < end) GPUC_RETURN_IF_ERROR(ranks.look());
    return 0;
  });
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.errors.find("error: rank 1 has "), std::string::npos) << outcome.errors;
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

/// Or it would count as lost where another one has not heard all yet.
TEST(TcpTransport, IsNotClosedBeforeAllHaveComeToTheEnd) {
  const MeetingPlace place = somePlace();
  const Result<int> status = launchRanks({.ranks = 3}, [&](Communicator& rank) -> Result<int> {
    GPUC_ASSIGN_OR_RETURN(const std::unique_ptr<Transport> transport,
                          openTcp(place, rank.rank(), rank.size(), std::chrono::seconds(20)));
    const auto begin = std::chrono::steady_clock::now();
    if (rank.rank() == 1) ::usleep(300'000);
    GPUC_RETURN_IF_ERROR(transport->close());
    return std::chrono::steady_clock::now() - begin >= milliseconds(250) ? 0 : 7;
  });
  EXPECT_EQ(*status, 0);
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

/// Connects to a port of this machine as soon as somebody listens there.
Socket comeTo(int64_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  for (int i = 0; i < 1000; ++i) {
    Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0)
      return socket;
    ::usleep(5000);
  }
  ADD_FAILURE() << "nobody listened";
  return Socket();
}

void say(const Socket& socket, const std::string& words) {
  EXPECT_EQ(::send(socket.number(), words.data(), words.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(words.size()));
}

Hello greetingOf(const MeetingPlace& place, int64_t rank, int64_t size) {
  Hello hello;
  hello.job = std::hash<std::string>{}(place.job);
  hello.rank = rank;
  hello.size = size;
  return hello;
}

std::string bytesOf(const Hello& hello) { return {reinterpret_cast<const char*>(&hello), sizeof(hello)}; }

/// Whoever else listens at the port, or connects to it, is none of the ranks.
TEST(TcpMeeting, MindsNoStrangers) {
  const MeetingPlace place = somePlace();
  const Socket listener = listenAt(place.port);
  ASSERT_TRUE(listener.isOpen());
  std::thread stranger([&] {
    say(comeTo(place.port + 1), "GET / HTTP/1.0\r\n\r\nand much more, so that it is as long as a greeting");
  });
  const std::vector<std::string> errors =
      meet({{place, 0}, {place, 1}, {place, 2}}, 3, std::chrono::seconds(20));
  stranger.join();
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

/// Who connects and says nothing, or the first half of a greeting, or one byte after the other, is not waited
/// for by who has something to say. The ranks come last.
TEST(TcpMeeting, WaitsForNobodyWhoIsSilent) {
  const MeetingPlace place = somePlace();
  const std::string greeting = bytesOf(greetingOf(place, 1, 3));
  std::vector<std::string> first;
  std::thread first_rank([&] { first = meet({{place, 0}}, 3, std::chrono::seconds(20)); });
  std::vector<Socket> strangers;
  for (size_t i = 0; i < 40; ++i) {
    strangers.push_back(comeTo(place.port));
    if (i % 2 == 1) say(strangers.back(), greeting.substr(0, i));
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<std::string> others = meet({{place, 1}, {place, 2}}, 3, std::chrono::seconds(20));
  first_rank.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(1500));
  EXPECT_EQ(first, std::vector<std::string>(1));
  EXPECT_EQ(others, std::vector<std::string>(2));
}

/// A rank that has had no answer in time has closed its connection and made another one; what it said by the
/// first may be read all the same.
TEST(TcpMeeting, TakesNobodyWhoHasGone) {
  const MeetingPlace place = somePlace();
  std::thread gone([&] { say(comeTo(place.port), bytesOf(greetingOf(place, 1, 3))); });
  std::vector<std::string> first;
  std::thread first_rank([&] { first = meet({{place, 0}}, 3, std::chrono::seconds(20)); });
  gone.join();
  ::usleep(300'000);
  const std::vector<std::string> others = meet({{place, 1}, {place, 2}}, 3, std::chrono::seconds(20));
  first_rank.join();
  EXPECT_EQ(first, std::vector<std::string>(1));
  EXPECT_EQ(others, std::vector<std::string>(2));
}

TEST(TcpMeeting, NamesWhoComesAndGoes) {
  const MeetingPlace place = somePlace();
  std::thread stranger([&] {
    const Socket socket = comeTo(place.port);
    say(socket, bytesOf(greetingOf(place, 2, 3)));
    std::array<std::byte, sizeof(Hello)> answer;
    EXPECT_TRUE(readAll(socket, answer, std::chrono::steady_clock::now() + std::chrono::seconds(10)));
  });
  EXPECT_EQ(meet({{place, 0}}, 3, std::chrono::seconds(60))[0], "rank 2 has gone while others came");
  stranger.join();
}

TEST(TcpMeeting, NamesWhatIsWrongWithAGreeting) {
  auto errorOf = [](auto change) {
    const MeetingPlace place = somePlace();
    Hello hello = greetingOf(place, 1, 2);
    change(hello);
    Socket socket;
    std::thread stranger([&] {
      socket = comeTo(place.port);
      say(socket, bytesOf(hello) + "and more");
    });
    const std::string error = meet({{place, 0}}, 2, milliseconds(1000))[0];
    stranger.join();
    return error;
  };
  EXPECT_EQ(errorOf([](Hello& hello) { ++hello.magic; }),
            "a rank of another gpuc has come to rank 0: all must be of one version");
  EXPECT_EQ(errorOf([](Hello& hello) { hello.rank = 7; }),
            "one that came says that it is rank 7 of 2, but there are 2 ranks");
  EXPECT_EQ(errorOf([](Hello& hello) { hello.rank = -1; }),
            "one that came says that it is rank -1 of 2, but there are 2 ranks");
  EXPECT_EQ(errorOf([](Hello& hello) { hello.size = INT64_MAX; }),
            "one that came says that it is rank 1 of 9223372036854775807, but there are 2 ranks");
  EXPECT_EQ(errorOf([](Hello& hello) { hello.job = 0; }), "rank 1 has not come to rank 0 in 1 s");
}

/// Random bytes of random length, by many at once, some of them at the ports of ranks that wait for others.
TEST(TcpMeeting, OutlastsAnyBytes) {
  const MeetingPlace place = somePlace();
  std::atomic<bool> is_over = false;
  std::vector<std::thread> strangers;
  for (unsigned seed = 0; seed < 4; ++seed)
    strangers.emplace_back([&, seed] {
      std::mt19937 random(seed);
      while (!is_over) {
        const Socket socket = comeTo(place.port);
        std::string words(random() % 100, '\0');
        for (char& byte : words) byte = static_cast<char>(random());
        // Half of them begin as a greeting does.
        const std::string greeting = bytesOf(greetingOf(place, 1, 3));
        const size_t same = std::min({words.size(), greeting.size() - 33, size_t{random() % 16}});
        if (seed % 2 == 0) words.replace(0, same, greeting, 0, same);
        (void)::send(socket.number(), words.data(), words.size(), MSG_NOSIGNAL);
        if (random() % 4 == 0) ::usleep(5000);
      }
    });
  std::vector<std::string> first;
  std::thread first_rank([&] {
    first = meet({{place, 0}}, 3, std::chrono::seconds(20));
    is_over = true;
  });
  ::usleep(500'000);
  const std::vector<std::string> others = meet({{place, 1}, {place, 2}}, 3, std::chrono::seconds(20));
  first_rank.join();
  const Socket last_guest = listenAt(place.port);  // for strangers that are on their way
  for (std::thread& stranger : strangers) stranger.join();
  EXPECT_EQ(first, std::vector<std::string>(1));
  EXPECT_EQ(others, std::vector<std::string>(2));
}

/// Where a process may open few files, and strangers take them.
TEST(TcpMeeting, EndsWhereNoDescriptorIsLeft) {
  const MeetingPlace place = somePlace();
  const pid_t child = ::fork();
  if (child == 0) {
    const Socket next(::socket(AF_INET, SOCK_STREAM, 0));
    const auto most = static_cast<rlim_t>(next.number()) + 2;  // a listener, and nobody who comes
    const rlimit limit = {.rlim_cur = most, .rlim_max = most};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    const Result<std::vector<Socket>> met = meetByTcp(place, 0, 2, milliseconds(1000));
    ::_exit(met.message() == "rank 1 has not come to rank 0 in 1 s" ? 0 : 1);
  }
  const Socket stranger = comeTo(place.port);
  int status = -1;
  for (int i = 0; i < 500 && ::waitpid(child, &status, WNOHANG) == 0; ++i) ::usleep(10'000);
  ::kill(child, SIGKILL);
  EXPECT_EQ(status, 0);
}

TEST(TcpMeeting, HasAsManyDescriptorsAsItNeeds) {
  const MeetingPlace place = somePlace();
  const Result<int> status = launchRanks({.ranks = 8}, [&](Communicator& rank) -> Result<int> {
    rlimit limit = {};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 8;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    return meetByTcp(place, rank.rank(), rank.size(), std::chrono::seconds(20)).ok() ? 0 : 7;
  });
  EXPECT_EQ(*status, 0);
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
