// What the commands of a plan say to other ranks.
#pragma once

#include <memory>

#include "runtime/base/data_type.h"
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

  /// The first failure.
  const Status& status() const { return status_; }

 private:
  Communicator* communicator_;
  Status status_ = okStatus();
};

/// One tile, which waits for the other ranks. `ranks` must outlive it.
std::unique_ptr<LibraryKernel> makeAllReduceKernel(const fb::AllReduce& reduce, Ranks& ranks);

}  // namespace gpuc
