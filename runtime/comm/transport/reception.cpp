#include "runtime/comm/transport/reception.h"

#include <algorithm>
#include <cerrno>
#include <thread>

namespace gpuc {
namespace {

using Clock = std::chrono::steady_clock;

/// Who connects says its greeting at once.
constexpr std::chrono::milliseconds kGreeting{2000}, kTryAgain{20};
constexpr size_t kMostGuests = 256;

}  // namespace

Status Reception::serve(Deadline deadline, const Take& take) {
  std::vector<pollfd> polled = {{.fd = listener_.number(), .events = POLLIN, .revents = 0}};
  for (const Guest& guest : guests_) {
    polled.push_back({.fd = guest.socket.number(), .events = POLLIN, .revents = 0});
    deadline = std::min(deadline, guest.patience);
  }
  ::poll(polled.data(), polled.size(), millisecondsTo(deadline));

  std::deque<Guest> staying;
  for (size_t i = 0; i < guests_.size(); ++i) {
    Guest& guest = guests_[i];
    const Said said = polled[i + 1].revents != 0 ? listenTo(guest) : Said::less;
    if (said == Said::all)
      GPUC_RETURN_IF_ERROR(take(std::move(guest.socket), guest.hello));
    else if (said == Said::less && Clock::now() < guest.patience)
      staying.push_back(std::move(guest));
  }
  guests_ = std::move(staying);
  if (polled[0].revents != 0) letIn();
  return okStatus();
}

/// Where no descriptor is left, or there are too many, who has had the most time goes.
void Reception::letIn() {
  Socket socket(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  const bool is_full = socket.isOpen() ? guests_.size() == kMostGuests : errno == EMFILE || errno == ENFILE;
  if (is_full && !guests_.empty())
    guests_.pop_front();
  else if (is_full)
    std::this_thread::sleep_for(kTryAgain);
  if (socket.isOpen()) guests_.push_back({.socket = std::move(socket), .patience = Clock::now() + kGreeting});
}

Reception::Said Reception::listenTo(Guest& guest) {
  auto left = std::as_writable_bytes(std::span(&guest.hello, 1)).subspan(guest.heard);
  const ssize_t count = ::recv(guest.socket.number(), left.data(), left.size(), MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR ? Said::less : Said::nothing_of_use;
  if (count == 0) return Said::nothing_of_use;
  guest.heard += static_cast<size_t>(count);
  return guest.heard == sizeof(Hello) ? Said::all : Said::less;
}

}  // namespace gpuc
