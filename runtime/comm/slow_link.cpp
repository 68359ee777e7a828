#include "runtime/comm/slow_link.h"

#include <thread>

namespace gpuc {

template <typename Exchange>
Status SlowLink::slowly(int messages, size_t bytes, Exchange exchange) {
  const std::byte here{};
  GPUC_RETURN_IF_ERROR(inner_.gather({&here, 1}, arrived_));  // returns when the last rank has come
  const auto begin = std::chrono::steady_clock::now();
  GPUC_RETURN_IF_ERROR(exchange());
  const double ranks = static_cast<double>(size());
  const double seconds = messages * (ranks - 1) / ranks * static_cast<double>(bytes) / link_.bytes_per_second;
  std::this_thread::sleep_until(
      begin + messages * link_.latency +
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds)));
  return okStatus();
}

Status SlowLink::allReduce(DataType type, size_t elements, const std::byte* part, std::byte* result) {
  return slowly(/*messages=*/2, elements * static_cast<size_t>(sizeOf(type)),
                [&] { return inner_.allReduce(type, elements, part, result); });
}

Status SlowLink::reduceScatter(DataType type, const Shares& shares, std::span<const void* const> wholes,
                               std::span<void* const> own) {
  return slowly(/*messages=*/1, shares.whole_bytes,
                [&] { return inner_.reduceScatter(type, shares, wholes, own); });
}

Status SlowLink::allGather(DataType type, const Shares& shares, std::span<const void* const> own,
                           std::span<void* const> wholes) {
  return slowly(/*messages=*/1, shares.whole_bytes,
                [&] { return inner_.allGather(type, shares, own, wholes); });
}

}  // namespace gpuc
