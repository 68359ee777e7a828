// Sockets, and the addresses that they are bound and connected to.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace gpuc {

using Deadline = std::chrono::steady_clock::time_point;

/// A socket, closed with its owner.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int number) : number_(number) {}
  Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  int number() const { return number_; }
  bool isOpen() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

/// Plain bytes, so that ranks can tell one another.
struct Address {
  sockaddr_storage socket = {};
  socklen_t length = 0;

  int64_t port() const;
  void setPort(int64_t port);
  bool isLoopback() const;
  /// Of IPv4 or IPv6, and as long as those are: what came from elsewhere may be anything.
  bool isSound() const;
  /// "10.0.0.1 port 29500"
  std::string text() const;
};

Address ownAddress(const Socket& socket);
Address peerAddress(const Socket& socket);

/// Where a host may be reached; the ports are to be set.
Result<std::vector<Address>> resolve(const std::string& host);

/// At all addresses of this machine; port 0 is any. Not open if the port is taken.
Socket listenAt(int64_t port);

/// Not open if nobody listens there.
Socket connectTo(const Address& address, Deadline deadline);

/// Whether `events` came in time.
bool waitFor(const Socket& socket, short events, Deadline deadline);
int millisecondsTo(Deadline deadline);

/// Whether all came, or went, in time.
bool readAll(const Socket& socket, std::span<std::byte> bytes, Deadline deadline);
bool writeAll(const Socket& socket, std::span<const std::byte> bytes, Deadline deadline);

/// Whether the other end has closed a connection by which it had nothing to say.
bool hasGone(const Socket& socket);

/// Has this process have so many descriptors, as far as its hard limit allows.
void allowDescriptors(size_t count);

}  // namespace gpuc
