#include "runtime/train/stop_signal.h"

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <ctime>

namespace gpuc {
namespace {

std::atomic<bool> stop_wanted{false};
std::atomic<int64_t> first_signal_ns{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free,
              "a signal handler may only touch lock-free atomics");

/// Calls nothing but what POSIX lists as safe in a handler.
void handleSignal(int) {
  constexpr int64_t kPatienceNs = 1'000'000'000;
  timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  int64_t now_ns = int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  int64_t first_ns = 0;
  if (!first_signal_ns.compare_exchange_strong(first_ns, now_ns) && now_ns - first_ns >= kPatienceNs)
    ::_exit(kStoppedExitCode);
  stop_wanted = true;
}

void listen(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

}  // namespace

void endOnStop() {
  listen([](int) { ::_exit(kStoppedExitCode); });
}

const std::atomic<bool>& listenForStop() {
  listen(handleSignal);
  return stop_wanted;
}

}  // namespace gpuc
