#include "runtime/comm/slow_link.h"

#include <thread>

namespace gpuc {

Status SlowLink::allReduce(DataType type, size_t elements, const std::byte* part, std::byte* result) {
  const std::byte here{};
  GPUC_RETURN_IF_ERROR(inner_.gather({&here, 1}, arrived_));  // returns when the last rank has come
  const auto begin = std::chrono::steady_clock::now();
  GPUC_RETURN_IF_ERROR(inner_.allReduce(type, elements, part, result));
  const double ranks = static_cast<double>(size());
  const double bytes = static_cast<double>(elements) * static_cast<double>(sizeOf(type));
  const double seconds = 2 * (ranks - 1) / ranks * bytes / link_.bytes_per_second;
  std::this_thread::sleep_until(
      begin + 2 * link_.latency +
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds)));
  return okStatus();
}

}  // namespace gpuc
