// What ranks exchange, as a call of a library.
#pragma once

#include <vector>

#include "runtime/cuda/gpu_ranks.h"
#include "runtime/cuda/library_call.h"

namespace gpuc::cuda {

/// What a collective command asks for, in a plan for so many ranks.
RankExchange rankExchangeOf(const fb::Command& command, int64_t world_size);

/// Exchanges that follow one another in a plan and are independent: one group. Addresses are those of each
/// one's operands.
class ExchangeCall final : public LibraryCall {
 public:
  /// `ranks` must outlive it.
  explicit ExchangeCall(GpuRanks& ranks) : ranks_(ranks) {}

  void append(RankExchange exchange) { exchanges_.push_back(std::move(exchange)); }

  Status enqueue(const CUdeviceptr* addresses, CUstream stream) const override {
    return ranks_.exchange(exchanges_, addresses, stream);
  }

 private:
  GpuRanks& ranks_;
  std::vector<RankExchange> exchanges_;
};

}  // namespace gpuc::cuda
