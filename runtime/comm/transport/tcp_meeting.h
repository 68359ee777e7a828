// How ranks that know but one address find one another.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace gpuc {

/// Where the first rank listens. Others may have taken its port: some above it are tried, too.
struct MeetingPlace {
  std::string host;
  int64_t port = 0;
  std::string job;  // the same for the ranks that belong together, and no others

  static constexpr int64_t kPorts = 8;
};

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

/// A connection to each other rank; none to this one. All meet at the first rank, which tells them where each
/// listens; then those of higher rank connect to those of lower. Errors, when `limit` has passed: who has not
/// come, or cannot be reached where.
Result<std::vector<Socket>> meetByTcp(const MeetingPlace& place, int64_t rank, int64_t size,
                                      std::chrono::milliseconds limit);

}  // namespace gpuc
