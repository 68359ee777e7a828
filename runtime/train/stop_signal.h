// Ctrl-C as a wish that training hears between two steps.
#pragma once

#include <atomic>

namespace gpuc {

/// What shells give for a process that SIGINT ended.
inline constexpr int kStoppedExitCode = 130;

/// From now on SIGINT and SIGTERM end the process at once, with kStoppedExitCode: nothing is under way yet.
void endOnStop();

/// From now on SIGINT and SIGTERM turn the flag true. One that comes a second or more after the first ends
/// the process at once, with kStoppedExitCode. (Sooner, it is the same wish: timeout(1) sends its signal
/// twice.)
const std::atomic<bool>& listenForStop();

}  // namespace gpuc
