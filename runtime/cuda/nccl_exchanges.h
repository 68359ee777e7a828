// What commands exchange, in NCCL's calls.
//
// A tensor of which all ranks have equally much is one call. Of another one NCCL knows no shares, and of what
// lies in several places neither: so each is summed to the rank whose it is, or sent by it, by a call of its
// own.
#pragma once

#include <span>

#include "runtime/cuda/gpu_ranks.h"
#include "runtime/cuda/nccl.h"

namespace gpuc::cuda {

/// The call that was made last.
struct NcclCall {
  ncclResult_t result = ncclSuccess;
  const char* name = "";

  bool isFine() const { return result == ncclSuccess || result == ncclInProgress; }
};

/// One rank's calls, on one stream. Addresses are as of GpuRanks::exchange.
class NcclExchanges {
 public:
  NcclExchanges(const Nccl& nccl, ncclComm_t comm, int64_t rank, int64_t size, CUstream stream)
      : nccl_(nccl),
        comm_(comm),
        rank_(static_cast<size_t>(rank)),
        size_(static_cast<size_t>(size)),
        stream_(stream) {}

  /// Whether all is one call, which needs no group around it.
  bool areOne(std::span<const RankExchange> exchanges) const;

  /// Makes the calls, up to one that fails.
  NcclCall begin(std::span<const RankExchange> exchanges, const CUdeviceptr* addresses) const;

  /// What a share has behind the last element of its tensor becomes zeros, which NCCL does not write.
  Status clearEnds(const Driver& driver, std::span<const RankExchange> exchanges,
                   const CUdeviceptr* addresses) const;

 private:
  struct Place;

  bool isEven(const RankExchange& exchange, const Piece& piece) const;
  NcclCall begin(const Place& place) const;
  NcclCall beginEven(const Place& place) const;
  NcclCall beginUneven(const Place& place) const;

  const Nccl& nccl_;
  ncclComm_t comm_;
  size_t rank_, size_;
  CUstream stream_;
};

}  // namespace gpuc::cuda
