#include "runtime/comm/transport/tcp_meeting.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <span>
#include <thread>

namespace gpuc {
namespace {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

constexpr std::chrono::milliseconds kAnswer{2000}, kTryAgain{50};
constexpr uint64_t kMagic = 0x67707563'72616e6b;  // "gpucrank"

/// The first words of who connects.
struct Hello {
  uint64_t magic = kMagic;
  uint64_t job = 0;
  int64_t rank = 0;
  int64_t size = 0;
  int64_t port = 0;  // where it listens itself
};

/// Where a rank listens.
struct Address {
  sockaddr_storage socket = {};
  socklen_t length = 0;
};

int millisecondsTo(Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1000 * 3600));
}

bool waitFor(const Socket& socket, short events, Deadline deadline) {
  pollfd poll = {.fd = socket.number(), .events = events, .revents = 0};
  int count = 0;
  do count = ::poll(&poll, 1, millisecondsTo(deadline));
  while (count < 0 && errno == EINTR);
  return count > 0;
}

template <typename T>
bool readAll(const Socket& socket, std::span<T> values, Deadline deadline) {
  for (std::span<std::byte> left = std::as_writable_bytes(values); !left.empty();) {
    if (!waitFor(socket, POLLIN, deadline)) return false;
    const ssize_t count = ::recv(socket.number(), left.data(), left.size(), MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return false;
    left = left.subspan(count < 0 ? 0 : static_cast<size_t>(count));
  }
  return true;
}

template <typename T>
bool writeAll(const Socket& socket, std::span<const T> values, Deadline deadline) {
  for (std::span<const std::byte> left = std::as_bytes(values); !left.empty();) {
    if (!waitFor(socket, POLLOUT, deadline)) return false;
    const ssize_t count = ::send(socket.number(), left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN && errno != EINTR) return false;
    left = left.subspan(count < 0 ? 0 : static_cast<size_t>(count));
  }
  return true;
}

/// Of all addresses of this machine; port 0 is any. Not open if the port is taken.
Socket listenAt(int64_t port) {
  Socket socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 any6 = {};
  any6.sin6_family = AF_INET6;
  any6.sin6_addr = in6addr_any;
  any6.sin6_port = htons(static_cast<uint16_t>(port));
  sockaddr_in any4 = {};
  any4.sin_family = AF_INET;
  any4.sin_port = any6.sin6_port;
  const sockaddr* address = reinterpret_cast<const sockaddr*>(&any6);
  socklen_t length = sizeof(any6);
  const int on = 1, off = 0;
  if (socket.isOpen()) {
    ::setsockopt(socket.number(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  } else {  // a machine without IPv6
    socket = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    address = reinterpret_cast<const sockaddr*>(&any4);
    length = sizeof(any4);
  }
  ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(socket.number(), address, length) != 0 || ::listen(socket.number(), 1024) != 0) return Socket();
  return socket;
}

int64_t portOf(const Address& address) {
  return ntohs(address.socket.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address.socket)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address.socket)->sin_port);
}

void setPort(Address& address, int64_t port) {
  const auto number = htons(static_cast<uint16_t>(port));
  if (address.socket.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(&address.socket)->sin6_port = number;
  else
    reinterpret_cast<sockaddr_in*>(&address.socket)->sin_port = number;
}

Address addressOf(const Socket& socket, int (*which)(int, sockaddr*, socklen_t*)) {
  Address address;
  address.length = sizeof(address.socket);
  which(socket.number(), reinterpret_cast<sockaddr*>(&address.socket), &address.length);
  return address;
}

std::string textOf(const Address& address) {
  std::array<char, NI_MAXHOST> host = {};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address.socket), address.length, host.data(),
                    host.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return "an unknown address";
  return std::string(host.data()) + " port " + std::to_string(portOf(address));
}

/// Not open if nobody listens there.
Socket connectTo(const Address& address, Deadline deadline) {
  Socket socket(::socket(address.socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int result =
      ::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address.socket), address.length);
  if (result != 0 && errno != EINPROGRESS) return Socket();
  int error = 0;
  socklen_t length = sizeof(error);
  if (!waitFor(socket, POLLOUT, std::min(deadline, Clock::now() + kAnswer))) return Socket();
  ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error == 0 ? std::move(socket) : Socket();
}

Result<std::vector<Address>> resolve(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list); error != 0)
    return Status::error("MASTER_ADDR=" + host + ": " + ::gai_strerror(error));
  std::vector<Address> addresses;
  for (const addrinfo* info = list; info; info = info->ai_next) {
    Address& address = addresses.emplace_back();
    std::memcpy(&address.socket, info->ai_addr, info->ai_addrlen);
    address.length = info->ai_addrlen;
  }
  ::freeaddrinfo(list);
  return addresses;
}

class Meeting {
 public:
  Meeting(const MeetingPlace& place, int64_t rank, int64_t size, std::chrono::milliseconds limit)
      : place_(place), size_(size), limit_(limit), deadline_(Clock::now() + limit) {
    own_.job = std::hash<std::string>{}(place.job);
    own_.rank = rank;
    own_.size = size;
    sockets_.resize(static_cast<size_t>(size));
    addresses_.resize(static_cast<size_t>(size));
  }

  Result<std::vector<Socket>> meet() {
    GPUC_RETURN_IF_ERROR(own_.rank == 0 ? receiveAll() : goToFirst());
    for (int64_t other = 1; other < own_.rank; ++other) GPUC_RETURN_IF_ERROR(goTo(other));
    if (own_.rank > 0) GPUC_RETURN_IF_ERROR(acceptUntil(size_ - own_.rank - 1));
    return std::move(sockets_);
  }

 private:
  /// The first rank: takes all others in, and then tells each where all of them are.
  Status receiveAll() {
    for (int64_t port = place_.port; port < place_.port + MeetingPlace::kPorts && !listener_.isOpen(); ++port)
      listener_ = listenAt(port);
    if (!listener_.isOpen())
      return errorf("MASTER_PORT=%lld and the %lld ports above it are taken: choose another one",
                    static_cast<long long>(place_.port), static_cast<long long>(MeetingPlace::kPorts - 1));
    GPUC_RETURN_IF_ERROR(acceptUntil(size_ - 1));
    for (int64_t other = 1; other < size_; ++other)
      if (!writeAll(sockets_[static_cast<size_t>(other)], std::span<const Address>(addresses_), deadline_))
        return Status::error("rank " + std::to_string(other) + " has gone while others came");
    return okStatus();
  }

  /// Takes so many ranks in that connect to this one, whoever else may come.
  Status acceptUntil(int64_t count) {
    while (count > 0) {
      if (!waitFor(listener_, POLLIN, deadline_)) return missing();
      Socket socket(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      Hello hello;
      if (!socket.isOpen() || !readAll(socket, std::span(&hello, 1), Clock::now() + kAnswer)) continue;
      if (hello.magic != kMagic || hello.job != own_.job) continue;
      if (hello.size != size_ || hello.rank <= own_.rank || hello.rank >= size_)
        return errorf("one that came says that it is rank %lld of %lld, but there are %lld ranks",
                      static_cast<long long>(hello.rank), static_cast<long long>(hello.size),
                      static_cast<long long>(size_));
      const auto other = static_cast<size_t>(hello.rank);
      if (sockets_[other].isOpen())
        return Status::error("two ranks say that they are rank " + std::to_string(other));
      addresses_[other] = addressOf(socket, ::getpeername);
      setPort(addresses_[other], hello.port);
      if (!writeAll(socket, std::span<const Hello>(&own_, 1), Clock::now() + kAnswer)) continue;
      sockets_[other] = std::move(socket);
      --count;
    }
    return okStatus();
  }

  Status missing() const {
    std::string ranks;
    int64_t count = 0;
    for (int64_t other = own_.rank + 1; other < size_; ++other)
      if (!sockets_[static_cast<size_t>(other)].isOpen())
        ranks += (count++ == 0 ? " " : ", ") + std::to_string(other);
    return Status::error((count == 1 ? "rank" : "ranks") + ranks + (count == 1 ? " has" : " have") +
                         " not come to rank " + std::to_string(own_.rank) + " in " +
                         std::to_string(limit_.count() / 1000) + " s");
  }

  /// Every other rank: the first one may come later than this one, to any of some ports.
  Status goToFirst() {
    listener_ = listenAt(0);
    own_.port = portOf(addressOf(listener_, ::getsockname));
    GPUC_ASSIGN_OR_RETURN(std::vector<Address> hosts, resolve(place_.host));
    while (Clock::now() < deadline_) {
      for (Address& address : hosts)
        for (int64_t port = place_.port; port < place_.port + MeetingPlace::kPorts; ++port) {
          setPort(address, port);
          if (Socket socket = greet(address, 0); socket.isOpen()) {
            if (!readAll(socket, std::span(addresses_), deadline_))
              return Status::error("rank 0 has gone while others came");
            sockets_[0] = std::move(socket);
            return okStatus();
          }
        }
      std::this_thread::sleep_for(kTryAgain);
    }
    return errorf("rank 0 does not listen at %s, ports %lld to %lld (MASTER_ADDR, MASTER_PORT), in %lld s",
                  place_.host.c_str(), static_cast<long long>(place_.port),
                  static_cast<long long>(place_.port + MeetingPlace::kPorts - 1),
                  static_cast<long long>(limit_.count() / 1000));
  }

  Status goTo(int64_t other) {
    const Address& address = addresses_[static_cast<size_t>(other)];
    sockets_[static_cast<size_t>(other)] = greet(address, other);
    if (sockets_[static_cast<size_t>(other)].isOpen()) return okStatus();
    return Status::error("rank " + std::to_string(own_.rank) + " cannot reach rank " + std::to_string(other) +
                         " at " + textOf(address) +
                         ": MASTER_ADDR must be an address of its machine that all know it by");
  }

  /// Not open unless that rank of this job is there.
  Socket greet(const Address& address, int64_t other) const {
    Socket socket = connectTo(address, deadline_);
    Hello answer;
    const Deadline deadline = other == 0 ? Clock::now() + kAnswer : deadline_;
    if (!socket.isOpen() || !writeAll(socket, std::span<const Hello>(&own_, 1), deadline) ||
        !readAll(socket, std::span(&answer, 1), deadline))
      return Socket();
    return answer.magic == kMagic && answer.job == own_.job && answer.rank == other ? std::move(socket)
                                                                                    : Socket();
  }

  const MeetingPlace& place_;
  const int64_t size_;
  const std::chrono::milliseconds limit_;
  const Deadline deadline_;
  Hello own_;
  Socket listener_;
  std::vector<Socket> sockets_;
  std::vector<Address> addresses_;  // of those that listen
};

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

Socket::~Socket() {
  if (number_ >= 0) ::close(number_);
}

Result<std::vector<Socket>> meetByTcp(const MeetingPlace& place, int64_t rank, int64_t size,
                                      std::chrono::milliseconds limit) {
  return Meeting(place, rank, size, limit).meet();
}

}  // namespace gpuc
