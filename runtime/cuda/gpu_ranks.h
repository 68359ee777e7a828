// The other ranks, as one rank's GPU sees them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/data_type.h"
#include "runtime/base/shares.h"
#include "runtime/cuda/driver.h"
#include "runtime/plan/access.h"

namespace gpuc {
class Communicator;
}

namespace gpuc::cuda {

/// What ranks exchange by one command, of equally many elements of each.
struct RankExchange {
  enum class Kind : uint8_t { all_reduce, reduce_scatter, all_gather };

  Kind kind = Kind::all_reduce;
  DataType type = DataType::f32;
  std::vector<Piece> pieces;  // of a sum one, of which each rank has all
  size_t owners = 0;          // as of Shares

  size_t tensorsOfPiece() const { return owners == 0 ? 1 : owners; }

  bool operator==(const RankExchange&) const = default;
};

/// Where one lies, in the first slot and iterations: what it reads of each piece, then what it writes.
struct PlannedExchange {
  RankExchange exchange;
  std::vector<CUdeviceptr> addresses;
};

/// What a plan asks for, each kind once, in the order in which they stand there.
std::vector<PlannedExchange> rankExchangesOf(const fb::Plan& plan, CUdeviceptr arena);

/// One rank's end of what GPUs say to one another. A kernel that waits for a rank which is lost never ends:
/// so whoever waits for the GPU does it here, where ranks are looked after meanwhile. After the first error
/// all calls fail with it, and no kernel waits for other ranks any more.
class GpuRanks {
 public:
  /// A collective of all ranks, on the current context's GPU. It exchanges whatever lies there once for each
  /// kind, so that what NCCL allocates and connects is there before the first step. Errors: no NCCL; ranks
  /// that exchange other things; a rank that is lost, or does not come in the communicator's limit.
  static Result<std::unique_ptr<GpuRanks>> meet(const Driver& driver, Communicator& communicator,
                                                std::span<const PlannedExchange> exchanges, CUstream stream);
  virtual ~GpuRanks() = default;

  /// Enqueues exchanges that are independent of one another, as one group; the addresses are those of the
  /// first one's operands, of the second one's, and so on.
  virtual Status exchange(std::span<const RankExchange> exchanges, const CUdeviceptr* addresses,
                          CUstream stream) = 0;

  /// Returns when all that was enqueued there is done.
  virtual Status wait(CUstream stream) = 0;
  /// Returns when the last record is reached.
  virtual Status wait(CUevent event) = 0;
};

}  // namespace gpuc::cuda
