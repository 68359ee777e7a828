#include "runtime/train/stop_signal.h"

#include <csignal>

namespace gpuc {
namespace {

std::atomic<bool> stop_wanted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

}  // namespace

const std::atomic<bool>& listenForStop() {
  struct sigaction action = {};
  action.sa_handler = [](int) { stop_wanted = true; };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
  return stop_wanted;
}

}  // namespace gpuc
