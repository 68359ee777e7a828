#include "runtime/comm/transport/tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/comm/transport/yields.h"

namespace gpuc {
namespace {

constexpr int kMostRestMs = 10;
constexpr std::chrono::milliseconds kGoodbye{5000};

/// What stands before the bytes of a message.
struct Header {
  int32_t label = 0;
  uint32_t length = 0;
};

/// One direction of a line: how much of a message has gone through.
struct Sending {
  Header header;
  std::span<const std::byte> bytes;
  size_t done = 0;  // of header and bytes together
};

struct Receiving {
  Header header;
  std::span<std::byte> bytes;
  size_t done = 0;
};

void setOption(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof(value));
}

/// Messages are sent at once; a machine that does not answer is found out.
void prepare(int socket) {
  constexpr int kIdleSeconds = 10, kProbeSeconds = 5, kProbes = 4, kUnansweredMs = 30'000;
  setOption(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  setOption(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  setOption(socket, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  setOption(socket, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  setOption(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  setOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnansweredMs);
}

class TcpTransport final : public Transport {
 public:
  TcpTransport(std::vector<Socket> sockets, int64_t rank)
      : Transport(rank, static_cast<int64_t>(sockets.size())),
        sockets_(std::move(sockets)),
        sending_(sockets_.size()),
        receiving_(sockets_.size()),
        polled_(sockets_.size()) {
    for (const Socket& socket : sockets_)
      if (socket.isOpen()) prepare(socket.number());
  }

  void send(int64_t to, Label label, std::span<const std::byte> bytes) override {
    Line& line = lineTo(to);
    if (line.sends == kMostSends) {
      line.broken = "has more messages to take than can be under way";
      return;
    }
    sending_[static_cast<size_t>(to)][line.sends++] = {
        .header = {.label = label, .length = static_cast<uint32_t>(bytes.size())}, .bytes = bytes};
  }

  void receive(int64_t from, std::span<std::byte> bytes) override {
    receiving_[static_cast<size_t>(from)] = {.header = {}, .bytes = bytes};
    lineTo(from).is_receiving = true;
  }

  bool progress() override {
    bool has_moved = false;
    for (int64_t rank = 0; rank < size(); ++rank) {
      while (isOpen(rank) && line(rank).sends > 0 && goOnSending(rank)) has_moved = true;
      while (isOpen(rank) && line(rank).is_receiving && goOnReceiving(rank)) has_moved = true;
    }
    return has_moved;
  }

  void rest(int64_t idle_calls) override {
    if (!isCrowded() && yields_.next(idle_calls, Yields::kMostIfWoken)) return;
    for (int64_t rank = 0; rank < size(); ++rank) {
      const int events = (line(rank).is_receiving ? POLLIN : 0) | (line(rank).sends > 0 ? POLLOUT : 0);
      polled_[static_cast<size_t>(rank)] = {
          .fd = events != 0 && isOpen(rank) ? sockets_[static_cast<size_t>(rank)].number() : -1,
          .events = static_cast<short>(events),
          .revents = 0};
    }
    ::poll(polled_.data(), polled_.size(), kMostRestMs);
  }

  /// Who has all that it needs may end before another one has; that it had ended would be missed there.
  Status close() override {
    const Deadline end = std::chrono::steady_clock::now() + kGoodbye;
    for (const Socket& socket : sockets_)
      if (socket.isOpen()) ::shutdown(socket.number(), SHUT_WR);
    for (const Socket& socket : sockets_)
      if (socket.isOpen()) waitFor(socket, POLLIN, end);
    sockets_.clear();
    return okStatus();
  }

 private:
  bool isOpen(int64_t rank) const { return line(rank).broken.empty(); }

  /// Whether anything went out.
  bool goOnSending(int64_t rank) {
    Line& line = lineTo(rank);
    auto& queue = sending_[static_cast<size_t>(rank)];
    Sending& first = queue[0];
    auto* header = reinterpret_cast<std::byte*>(&first.header);
    const size_t header_done = std::min(first.done, sizeof(Header)), bytes_done = first.done - header_done;
    std::array<iovec, 2> parts = {
        iovec{.iov_base = header + header_done, .iov_len = sizeof(Header) - header_done},
        iovec{.iov_base = const_cast<std::byte*>(first.bytes.data()) + bytes_done,
              .iov_len = first.bytes.size() - bytes_done}};
    msghdr message = {};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t count =
        ::sendmsg(sockets_[static_cast<size_t>(rank)].number(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0) return breakUnlessBusy(line);
    first.done += static_cast<size_t>(count);
    if (first.done == sizeof(Header) + first.bytes.size()) {
      std::move(queue.begin() + 1, queue.end(), queue.begin());
      --line.sends;
    }
    return true;
  }

  /// Whether anything came in. Header first, since it says how long the rest is.
  bool goOnReceiving(int64_t rank) {
    Line& line = lineTo(rank);
    Receiving& receiving = receiving_[static_cast<size_t>(rank)];
    const bool has_header = receiving.done >= sizeof(Header);
    std::byte* place = has_header ? receiving.bytes.data() + (receiving.done - sizeof(Header))
                                  : reinterpret_cast<std::byte*>(&receiving.header) + receiving.done;
    const size_t left =
        (has_header ? sizeof(Header) + receiving.header.length : sizeof(Header)) - receiving.done;
    const ssize_t count = ::recv(sockets_[static_cast<size_t>(rank)].number(), place, left, MSG_DONTWAIT);
    if (count == 0) line.broken = "has ended";
    if (count < 0) return breakUnlessBusy(line);
    receiving.done += static_cast<size_t>(count);
    if (receiving.done < sizeof(Header)) return count > 0;
    if (receiving.header.length > receiving.bytes.size())
      line.broken = "asks for something else: all must run the same plan";
    if (receiving.done == sizeof(Header) + receiving.header.length) {
      line.is_receiving = false;
      line.label = receiving.header.label;
      line.length = receiving.header.length;
    }
    return count > 0;
  }

  /// False.
  static bool breakUnlessBusy(Line& line) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return false;
    line.broken = errno == ECONNRESET || errno == EPIPE
                      ? "has ended"
                      : std::string("cannot be reached: ") + std::strerror(errno);
    return false;
  }

  std::vector<Socket> sockets_;
  std::vector<std::array<Sending, kMostSends>> sending_;  // by rank, the first of them under way
  std::vector<Receiving> receiving_;
  std::vector<pollfd> polled_;
  Yields yields_;
};

}  // namespace

std::unique_ptr<Transport> speakOver(std::vector<Socket> lines, int64_t rank) {
  return std::make_unique<TcpTransport>(std::move(lines), rank);
}

Result<std::unique_ptr<Transport>> openTcp(const MeetingPlace& place, int64_t rank, int64_t size,
                                           std::chrono::milliseconds limit) {
  GPUC_ASSIGN_OR_RETURN(std::vector<Socket> sockets, meetByTcp(place, rank, size, limit));
  return speakOver(std::move(sockets), rank);
}

}  // namespace gpuc
