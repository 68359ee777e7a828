#include "runtime/comm/transport/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace gpuc {

using Clock = std::chrono::steady_clock;

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

Socket::~Socket() {
  if (number_ >= 0) ::close(number_);
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

int64_t Address::port() const {
  return ntohs(socket.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&socket)->sin6_port
                                            : reinterpret_cast<const sockaddr_in*>(&socket)->sin_port);
}

void Address::setPort(int64_t port) {
  const auto number = htons(static_cast<uint16_t>(port));
  if (socket.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(&socket)->sin6_port = number;
  else
    reinterpret_cast<sockaddr_in*>(&socket)->sin_port = number;
}

bool Address::isLoopback() const {
  constexpr uint8_t kLoopback4 = 127;  // the first byte
  if (socket.ss_family == AF_INET) {
    const in_addr address = reinterpret_cast<const sockaddr_in*>(&socket)->sin_addr;
    return ntohl(address.s_addr) >> 24 == kLoopback4;
  }
  const in6_addr address = reinterpret_cast<const sockaddr_in6*>(&socket)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&address) ||
         (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == kLoopback4);
}

bool Address::isSound() const {
  return (socket.ss_family == AF_INET && length == sizeof(sockaddr_in)) ||
         (socket.ss_family == AF_INET6 && length == sizeof(sockaddr_in6));
}

std::string Address::text() const {
  std::array<char, NI_MAXHOST> host = {};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&socket), length, host.data(), host.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return "an unknown address";
  return std::string(host.data()) + " port " + std::to_string(port());
}

static Address addressOf(const Socket& socket, int (*which)(int, sockaddr*, socklen_t*)) {
  Address address;
  address.length = sizeof(address.socket);
  which(socket.number(), reinterpret_cast<sockaddr*>(&address.socket), &address.length);
  return address;
}

Address ownAddress(const Socket& socket) { return addressOf(socket, ::getsockname); }
Address peerAddress(const Socket& socket) { return addressOf(socket, ::getpeername); }

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

//===----------------------------------------------------------------------===//
// Connections
//===----------------------------------------------------------------------===//

Socket listenAt(int64_t port) {
  constexpr int kBacklog = 1024;
  Socket socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
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
    socket = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    address = reinterpret_cast<const sockaddr*>(&any4);
    length = sizeof(any4);
  }
  ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(socket.number(), address, length) != 0 || ::listen(socket.number(), kBacklog) != 0)
    return Socket();
  return socket;
}

Socket connectTo(const Address& address, Deadline deadline) {
  Socket socket(::socket(address.socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int result =
      ::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address.socket), address.length);
  if (result != 0 && errno != EINPROGRESS && errno != EINTR) return Socket();
  int error = 0;
  socklen_t length = sizeof(error);
  if (!waitFor(socket, POLLOUT, deadline)) return Socket();
  ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error == 0 ? std::move(socket) : Socket();
}

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

bool readAll(const Socket& socket, std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    if (!waitFor(socket, POLLIN, deadline)) return false;
    const ssize_t count = ::recv(socket.number(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return false;
    bytes = bytes.subspan(count < 0 ? 0 : static_cast<size_t>(count));
  }
  return true;
}

bool writeAll(const Socket& socket, std::span<const std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    if (!waitFor(socket, POLLOUT, deadline)) return false;
    const ssize_t count = ::send(socket.number(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN && errno != EINTR) return false;
    bytes = bytes.subspan(count < 0 ? 0 : static_cast<size_t>(count));
  }
  return true;
}

bool hasGone(const Socket& socket) {
  std::byte next;
  const ssize_t count = ::recv(socket.number(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

void allowDescriptors(size_t count) {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count) return;
  limit.rlim_cur = std::min<rlim_t>(count, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace gpuc
