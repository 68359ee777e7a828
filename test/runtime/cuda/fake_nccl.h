// What NCCL is asked for, between fake GPUs that are threads of one process, and plain loops that do it.
#pragma once

#include <nccl.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpuc::test {

struct FakeComm;

struct FakeCollective {
  enum class Kind : uint8_t { all_reduce, reduce_scatter, all_gather, reduce, broadcast };

  Kind kind = Kind::all_reduce;
  int root = 0;  // of reduce and broadcast
  ncclDataType_t type = ncclFloat32;
  size_t count = 0;  // of elements, as the call has it
  const std::byte* part = nullptr;
  std::byte* result = nullptr;

  /// Bytes that a rank reads and writes.
  size_t readBytes(int rank, int ranks) const;
  size_t writtenBytes(int rank, int ranks) const;
};

/// One rank's side of what one call, or one group of calls, exchanges: the kernel that its stream runs. It
/// arrives; reads its parts, at once or when all have arrived; and writes the results when all have read.
/// Sums are in no order of the host's, another one for each rank's share, and rounded after each part.
struct FakeExchange {
  static constexpr size_t kMostCollectives = 256;

  FakeComm* comm = nullptr;
  uint64_t number = 0;  // of its communicator
  std::array<FakeCollective, kMostCollectives> collectives = {};
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
