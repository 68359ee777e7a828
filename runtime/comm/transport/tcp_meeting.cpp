#include "runtime/comm/transport/tcp_meeting.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <thread>

#include "runtime/comm/transport/reception.h"

namespace gpuc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kAnswer{2000}, kTryAgain{50}, kLook{200}, kComeBack{5000};

class Meeting {
 public:
  Meeting(const MeetingPlace& place, int64_t rank, int64_t size, std::chrono::milliseconds limit)
      : place_(place), absent_(place.here), size_(size), limit_(limit), deadline_(Clock::now() + limit) {
    own_.job = std::hash<std::string>{}(place.job);
    own_.rank = rank;
    own_.size = size;
    sockets_.resize(static_cast<size_t>(size));
    addresses_.resize(static_cast<size_t>(size));
    gone_at_.resize(static_cast<size_t>(size));
  }

  Result<std::vector<Socket>> meet() {
    GPUC_RETURN_IF_ERROR(own_.rank == 0 ? receiveAll() : goToFirst());
    for (int64_t other = 1; other < own_.rank; ++other) GPUC_RETURN_IF_ERROR(goTo(other));
    if (own_.rank > 0) GPUC_RETURN_IF_ERROR(takeInAll());
    return std::move(sockets_);
  }

 private:
  /// The first rank: takes all others in, and then tells each where all of them are.
  Status receiveAll() {
    for (int64_t port = place_.port; port < place_.port + MeetingPlace::kPorts && !listener_.isOpen(); ++port)
      listener_ = listenAt(port);
    if (!listener_.isOpen())
      return errorf(
          "MASTER_PORT=%lld and the %lld ports above it are taken, or, below 1,024, root's alone: choose "
          "another one",
          static_cast<long long>(place_.port), static_cast<long long>(MeetingPlace::kPorts - 1));
    GPUC_RETURN_IF_ERROR(takeInAll());
    for (int64_t other = 1; other < size_; ++other)
      if (!writeAll(sockets_[static_cast<size_t>(other)], std::as_bytes(std::span(addresses_)), deadline_))
        return gone(other);
    return okStatus();
  }

  /// Takes in those of higher rank, which connect to this one, whoever else may come.
  Status takeInAll() {
    Reception reception(listener_);
    const Reception::Take take = [this](Socket socket, const Hello& hello) {
      return takeIn(std::move(socket), hello);
    };
    while (!areAllHere()) {
      if (Clock::now() >= deadline_) return missing();
      GPUC_RETURN_IF_ERROR(reception.serve(std::min(deadline_, Clock::now() + kLook), take));
      GPUC_RETURN_IF_ERROR(findGone());
      GPUC_RETURN_IF_ERROR(findAbsent());
    }
    return okStatus();
  }

  Status takeIn(Socket socket, const Hello& hello) {
    if (!hello.isOf(own_.job)) return okStatus();
    if (hello.version() != own_.version())
      return Status::error("a rank of another gpuc has come to rank " + std::to_string(own_.rank) +
                           ": all must be of one version");
    if (hello.size != size_ || hello.rank <= own_.rank || hello.rank >= size_)
      return errorf("one that came says that it is rank %lld of %lld, but there are %lld ranks",
                    static_cast<long long>(hello.rank), static_cast<long long>(hello.size),
                    static_cast<long long>(size_));
    // Who has waited in vain for an answer has connected again.
    if (hasGone(socket)) return okStatus();
    const auto other = static_cast<size_t>(hello.rank);
    if (sockets_[other].isOpen() && !hasGone(sockets_[other]))
      return Status::error("two ranks say that they are rank " + std::to_string(other));
    addresses_[other] = peerAddress(socket);
    addresses_[other].setPort(hello.port);
    if (!writeAll(socket, std::as_bytes(std::span(&own_, 1)), Clock::now() + kAnswer)) return okStatus();
    sockets_[other] = std::move(socket);
    return okStatus();
  }

  bool areAllHere() const {
    for (int64_t other = own_.rank + 1; other < size_; ++other)
      if (!isHere(other)) return false;
    return true;
  }

  bool isHere(int64_t other) const {
    const Socket& socket = sockets_[static_cast<size_t>(other)];
    return socket.isOpen() && (own_.rank > 0 || !hasGone(socket));
  }

  /// The error if one that had come to the first rank has gone, and does not come back.
  Status findGone() {
    for (int64_t other = 1; other < size_ && own_.rank == 0; ++other) {
      std::optional<Deadline>& gone_at = gone_at_[static_cast<size_t>(other)];
      if (!sockets_[static_cast<size_t>(other)].isOpen() || isHere(other))
        gone_at.reset();
      else if (!gone_at)
        gone_at = Clock::now();
      else if (Clock::now() - *gone_at >= kComeBack)
        return gone(other);
    }
    return okStatus();
  }

  /// The error if one has ended that has not come.
  Status findAbsent() {
    const std::optional<int64_t> ended = absent_.look();
    if (!ended || sockets_[static_cast<size_t>(*ended)].isOpen()) return okStatus();
    return Status::error(AbsentRanks::wordsOf(*ended));
  }

  static Status gone(int64_t other) {
    return Status::error("rank " + std::to_string(other) + " has gone while others came");
  }

  /// The first rank, be it because it has missed another one: that one is named then.
  Status goneAsWell() {
    const Deadline end = Clock::now() + kAnswer;
    while (Clock::now() < end) {
      GPUC_RETURN_IF_ERROR(findAbsent());
      std::this_thread::sleep_for(kLook);
    }
    return gone(0);
  }

  Status missing() const {
    std::string ranks;
    int64_t count = 0;
    for (int64_t other = own_.rank + 1; other < size_; ++other)
      if (!isHere(other)) ranks += (count++ == 0 ? " " : ", ") + std::to_string(other);
    return Status::error((count == 1 ? "rank" : "ranks") + ranks + (count == 1 ? " has" : " have") +
                         " not come to rank " + std::to_string(own_.rank) + " in " +
                         std::to_string(limit_.count() / 1000) + " s");
  }

  /// Every other rank: the first one may come later than this one, to any of some ports.
  Status goToFirst() {
    listener_ = listenAt(0);
    if (!listener_.isOpen())
      return errorf("rank %lld cannot listen at any port", static_cast<long long>(own_.rank));
    own_.port = ownAddress(listener_).port();
    GPUC_ASSIGN_OR_RETURN(std::vector<Address> hosts, resolve(place_.host));
    while (Clock::now() < deadline_) {
      for (Address& address : hosts)
        for (int64_t port = place_.port; port < place_.port + MeetingPlace::kPorts; ++port) {
          address.setPort(port);
          sockets_[0] = greet(address, 0);
          if (sockets_[0].isOpen()) return learnAddresses();
        }
      GPUC_RETURN_IF_ERROR(findAbsent());
      std::this_thread::sleep_for(kTryAgain);
    }
    return errorf("rank 0 does not listen at %s, ports %lld to %lld (MASTER_ADDR, MASTER_PORT), in %lld s",
                  place_.host.c_str(), static_cast<long long>(place_.port),
                  static_cast<long long>(place_.port + MeetingPlace::kPorts - 1),
                  static_cast<long long>(limit_.count() / 1000));
  }

  /// A rank of the first one's machine may have come to it by an address that means another machine here:
  /// many a machine knows itself by 127.0.1.1. It is where the first one is.
  Status learnAddresses() {
    while (Clock::now() < deadline_ && !waitFor(sockets_[0], POLLIN, Clock::now() + kLook))
      GPUC_RETURN_IF_ERROR(findAbsent());
    // Who waits no longer than the first rank is missing there, if its clock is a little ahead.
    if (!readAll(sockets_[0], std::as_writable_bytes(std::span(addresses_)), deadline_ + kAnswer))
      return goneAsWell();
    for (int64_t other = 1; other < size_; ++other) {
      Address& address = addresses_[static_cast<size_t>(other)];
      if (!address.isSound())
        return errorf("rank 0 does not say where rank %lld is: all must be of one version",
                      static_cast<long long>(other));
      if (!address.isLoopback()) continue;
      const int64_t port = address.port();
      address = peerAddress(sockets_[0]);
      address.setPort(port);
    }
    return okStatus();
  }

  Status goTo(int64_t other) {
    const Address& address = addresses_[static_cast<size_t>(other)];
    sockets_[static_cast<size_t>(other)] = greet(address, other);
    if (sockets_[static_cast<size_t>(other)].isOpen()) return okStatus();
    return Status::error("rank " + std::to_string(own_.rank) + " cannot reach rank " + std::to_string(other) +
                         " at " + address.text() +
                         ": MASTER_ADDR must be an address of its machine that all know it by");
  }

  /// Not open unless that rank of this job is there.
  Socket greet(const Address& address, int64_t other) const {
    Socket socket = connectTo(address, std::min(deadline_, Clock::now() + kAnswer));
    Hello answer;
    const Deadline deadline = other == 0 ? Clock::now() + kAnswer : deadline_;
    if (!socket.isOpen() || !writeAll(socket, std::as_bytes(std::span(&own_, 1)), deadline) ||
        !readAll(socket, std::as_writable_bytes(std::span(&answer, 1)), deadline))
      return Socket();
    return answer.isOf(own_.job) && answer.rank == other ? std::move(socket) : Socket();
  }

  const MeetingPlace& place_;
  AbsentRanks absent_;
  const int64_t size_;
  const std::chrono::milliseconds limit_;
  const Deadline deadline_;
  Hello own_;
  Socket listener_;
  std::vector<Socket> sockets_;
  std::vector<Address> addresses_;  // of those that listen
  std::vector<std::optional<Deadline>> gone_at_;
};

}  // namespace

Result<std::vector<Socket>> meetByTcp(const MeetingPlace& place, int64_t rank, int64_t size,
                                      std::chrono::milliseconds limit) {
  // Connections, what is opened to watch each rank, and some for what else is open.
  constexpr size_t kOthers = 1024;
  allowDescriptors(2 * static_cast<size_t>(size) + kOthers);
  return Meeting(place, rank, size, limit).meet();
}

}  // namespace gpuc
