// What NCCL is asked for, between fake GPUs that are threads of one process, and plain loops that do it.
#pragma once

#include <nccl.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpuc::test {

struct FakeComm;

struct FakeSum {
  ncclDataType_t type = ncclFloat32;
  size_t count = 0;
  const std::byte* part = nullptr;
  std::byte* result = nullptr;
};

/// One rank's side of what one call, or one group of calls, exchanges: the kernel that its stream runs. It
/// arrives; reads its parts, at once or when all have arrived; and writes the sums when all have read. It
/// begins with the last rank's part, as NCCL's order is not the host's, and rounds after each.
struct FakeExchange {
  static constexpr size_t kMostSums = 16;

  FakeComm* comm = nullptr;
  uint64_t number = 0;  // of its communicator
  std::array<FakeSum, kMostSums> sums = {};
  size_t count = 0;
  bool reads_late = false;
  enum class State : uint8_t { enqueued, arrived, has_read } state = State::enqueued;

  bool isAborted() const;
  /// Whether goOn() would do anything. Once its rank has aborted it ends, and leaves nothing useful.
  bool isReady() const;
  /// True if that was the end.
  bool goOn();
};

}  // namespace gpuc::test
