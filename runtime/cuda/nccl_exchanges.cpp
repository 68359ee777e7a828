#include "runtime/cuda/nccl_exchanges.h"

namespace gpuc::cuda {
namespace {

using Kind = RankExchange::Kind;

ncclDataType_t typeOf(DataType type) {
  constexpr ncclDataType_t kTypes[] = {ncclFloat64, ncclFloat32, ncclFloat16, ncclBfloat16,
                                       ncclInt64,   ncclInt32,   ncclInt8,    ncclUint8};
  return kTypes[static_cast<size_t>(type)];  // of i1 there is no sum
}

}  // namespace

/// One piece of an exchange.
struct NcclExchanges::Place {
  const RankExchange& exchange;
  const Piece& piece;
  const CUdeviceptr* wholes;  // of each tensor
  CUdeviceptr share;          // of a sum over ranks, its result

  ncclDataType_t type() const { return typeOf(exchange.type); }
  void* own() const { return reinterpret_cast<void*>(share); }
  /// Where what a rank has of it lies in the whole.
  void* whole(size_t rank = 0) const {
    if (exchange.owners != 0) return reinterpret_cast<void*>(wholes[rank]);
    return reinterpret_cast<void*>(wholes[0] + piece.present(rank).begin * elementBytes());
  }
  size_t elementBytes() const { return static_cast<size_t>(sizeOf(exchange.type)); }

  /// Calls visit(place) for each piece of each exchange, as long as that returns true.
  template <typename Visit>
  static void forEach(std::span<const RankExchange> exchanges, const CUdeviceptr* addresses, Visit visit) {
    for (const RankExchange& exchange : exchanges) {
      const size_t pieces = exchange.pieces.size(), tensors = exchange.tensorsOfPiece();
      const bool gathers = exchange.kind == Kind::all_gather;
      const CUdeviceptr *wholes = addresses + (gathers ? pieces : 0),
                        *shares = addresses + (gathers ? 0 : pieces * tensors);
      for (size_t i = 0; i < pieces; ++i)
        if (!visit(Place{exchange, exchange.pieces[i], wholes + i * tensors, shares[i]})) return;
      addresses += pieces * (tensors + 1);
    }
  }
};

bool NcclExchanges::areOne(std::span<const RankExchange> exchanges) const {
  return exchanges.size() == 1 && exchanges[0].pieces.size() == 1 &&
         isEven(exchanges[0], exchanges[0].pieces[0]);
}

NcclCall NcclExchanges::begin(std::span<const RankExchange> exchanges, const CUdeviceptr* addresses) const {
  NcclCall last;
  Place::forEach(exchanges, addresses, [&](const Place& place) {
    last = begin(place);
    return last.isFine();
  });
  return last;
}

Status NcclExchanges::clearEnds(const Driver& driver, std::span<const RankExchange> exchanges,
                                const CUdeviceptr* addresses) const {
  Status status = okStatus();
  Place::forEach(exchanges, addresses, [&](const Place& place) {
    const size_t bytes = place.elementBytes(), present = place.piece.present(rank_).count;
    if (place.exchange.kind == Kind::reduce_scatter && present < place.piece.each)
      status = driver.check(driver.cuMemsetD8Async(place.share + present * bytes, 0,
                                                   (place.piece.each - present) * bytes, stream_),
                            "cuMemsetD8Async");
    return status.ok();
  });
  return status;
}

bool NcclExchanges::isEven(const RankExchange& exchange, const Piece& piece) const {
  return exchange.kind == Kind::all_reduce || (exchange.owners == 0 && piece.each * size_ == piece.elements);
}

NcclCall NcclExchanges::begin(const Place& place) const {
  return isEven(place.exchange, place.piece) ? beginEven(place) : beginUneven(place);
}

NcclCall NcclExchanges::beginEven(const Place& place) const {
  const size_t each = place.piece.each;
  switch (place.exchange.kind) {
    case Kind::all_reduce:
      return {nccl_.ncclAllReduce(place.whole(), place.own(), each, place.type(), ncclSum, comm_, stream_),
              "ncclAllReduce"};
    case Kind::reduce_scatter:
      return {
          nccl_.ncclReduceScatter(place.whole(), place.own(), each, place.type(), ncclSum, comm_, stream_),
          "ncclReduceScatter"};
    default:
      return {nccl_.ncclAllGather(place.own(), place.whole(), each, place.type(), comm_, stream_),
              "ncclAllGather"};
  }
}

/// All make a call for each rank that has any of it.
NcclCall NcclExchanges::beginUneven(const Place& place) const {
  NcclCall last;
  for (size_t owner = 0; owner < size_ && last.isFine(); ++owner) {
    const size_t count = place.piece.present(owner).count;
    if (count == 0) break;
    const int root = static_cast<int>(owner);
    if (place.exchange.kind == Kind::reduce_scatter)
      last = {nccl_.ncclReduce(place.whole(owner), place.own(), count, place.type(), ncclSum, root, comm_,
                               stream_),
              "ncclReduce"};
    else
      last = {nccl_.ncclBroadcast(place.own(), place.whole(owner), count, place.type(), root, comm_, stream_),
              "ncclBroadcast"};
  }
  return last;
}

}  // namespace gpuc::cuda
