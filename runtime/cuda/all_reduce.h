// Sums over ranks as a call of a library.
#pragma once

#include <vector>

#include "runtime/cuda/gpu_ranks.h"
#include "runtime/cuda/library_call.h"

namespace gpuc::cuda {

/// What one command asks for.
RankSum rankSumOf(const fb::AllReduce& reduce);

/// Sums that follow one another in a plan and are independent: one exchange. Addresses are those of each
/// one's part and result.
class AllReduceCall final : public LibraryCall {
 public:
  /// `ranks` must outlive it.
  explicit AllReduceCall(GpuRanks& ranks) : ranks_(ranks) {}

  void append(const RankSum& sum) { sums_.push_back(sum); }

  Status enqueue(const CUdeviceptr* addresses, CUstream stream) const override {
    return ranks_.add(sums_, addresses, stream);
  }

 private:
  GpuRanks& ranks_;
  std::vector<RankSum> sums_;
};

}  // namespace gpuc::cuda
