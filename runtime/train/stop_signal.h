// Ctrl-C as a wish that training hears between two steps.
#pragma once

#include <atomic>

namespace gpuc {

/// From now on SIGINT and SIGTERM turn the flag true, each once: a second one ends the process at once.
const std::atomic<bool>& listenForStop();

}  // namespace gpuc
