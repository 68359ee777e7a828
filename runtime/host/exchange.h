// What the commands of a plan say to other ranks.
#pragma once

#include <memory>
#include <span>

#include "runtime/base/data_type.h"
#include "runtime/base/shares.h"
#include "runtime/base/status.h"
#include "runtime/host/library_kernel.h"

namespace gpuc {

class Communicator;

/// The other ranks, as one session sees them: none without a communicator. Commands cannot fail, but ranks
/// can: after the first failure none is waited for any more, and whoever ran the commands asks what it was.
class Ranks {
 public:
  explicit Ranks(Communicator* communicator) : communicator_(communicator) {}

  /// As Communicator::allReduce. The result holds nothing useful after a failure.
  void allReduce(DataType type, size_t elements, const std::byte* part, std::byte* result);

  /// The same of Communicator's other two.
  void reduceScatter(DataType type, const Shares& shares, std::span<const void* const> wholes,
                     std::span<void* const> own);
  void allGather(DataType type, const Shares& shares, std::span<const void* const> own,
                 std::span<void* const> wholes);

  /// The first failure.
  const Status& status() const { return status_; }

 private:
  Communicator* communicator_;
  Status status_ = okStatus();
};

/// Of a command with which ranks exchange, in a plan for so many ranks: one tile, which waits for the others.
/// Null for other commands. `ranks` must outlive it.
std::unique_ptr<LibraryKernel> makeExchangeKernel(const fb::Command& command, int64_t world_size,
                                                  Ranks& ranks);

}  // namespace gpuc
