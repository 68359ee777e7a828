// The other ranks, as one rank's GPU sees them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/data_type.h"
#include "runtime/cuda/driver.h"
#include "runtime/plan/access.h"

namespace gpuc {
class Communicator;
}

namespace gpuc::cuda {

/// A sum over ranks, of equally many elements of each.
struct RankSum {
  DataType type = DataType::f32;
  uint64_t elements = 0;

  bool operator==(const RankSum&) const = default;
};

/// The sums that a plan asks for, each kind once, in the order in which they stand there.
std::vector<RankSum> rankSumsOf(const fb::Plan& plan);

/// One rank's end of what GPUs say to one another. A kernel that waits for a rank which is lost never ends:
/// so whoever waits for the GPU does it here, where ranks are looked after meanwhile. After the first error
/// all calls fail with it, and no kernel waits for other ranks any more.
class GpuRanks {
 public:
  /// A collective of all ranks, on the current context's GPU. It adds up whatever lies in `scratch` once for
  /// each kind of sum, so that what NCCL allocates and connects is there before the first step; there must be
  /// room for the largest. Errors: no NCCL; ranks whose sums are others; a rank that is lost, or does not
  /// come within the communicator's limit.
  static Result<std::unique_ptr<GpuRanks>> meet(const Driver& driver, Communicator& communicator,
                                                std::span<const RankSum> sums, CUdeviceptr scratch,
                                                CUstream stream);
  virtual ~GpuRanks() = default;

  /// Enqueues sums that are independent of one another, as one exchange; the addresses are those of the first
  /// one's part and result, of the second one's, and so on.
  virtual Status add(std::span<const RankSum> sums, const CUdeviceptr* addresses, CUstream stream) = 0;

  /// Returns when all that was enqueued there is done.
  virtual Status wait(CUstream stream) = 0;
  /// Returns when the last record is reached.
  virtual Status wait(CUevent event) = 0;
};

}  // namespace gpuc::cuda
