#include "runtime/cuda/nccl_exchanges.h"

namespace gpuc::cuda {
namespace {

using Kind = RankExchange::Kind;

ncclDataType_t typeOf(DataType type) {
  constexpr ncclDataType_t kTypes[] = {ncclFloat64, ncclFloat32, ncclFloat16, ncclBfloat16,
                                       ncclInt64,   ncclInt32,   ncclInt8,    ncclUint8};
  return kTypes[static_cast<size_t>(type)];  // of i1 there is no sum
}

/// Calls visit(exchange, piece, from, to) for each piece of each exchange, as long as that returns true.
template <typename Visit>
void forEachPiece(std::span<const RankExchange> exchanges, const CUdeviceptr* addresses, Visit visit) {
  for (const RankExchange& exchange : exchanges) {
    const size_t pieces = exchange.pieces.size();
    for (size_t i = 0; i < pieces; ++i)
      if (!visit(exchange, exchange.pieces[i], addresses[i], addresses[pieces + i])) return;
    addresses += 2 * pieces;
  }
}

}  // namespace

/// One piece of an exchange.
struct NcclExchanges::Place {
  const RankExchange& exchange;
  const Piece& piece;
  CUdeviceptr from, to;

  ncclDataType_t type() const { return typeOf(exchange.type); }
  const void* part(size_t element = 0) const {
    return reinterpret_cast<const void*>(from + element * elementBytes());
  }
  void* result(size_t element = 0) const { return reinterpret_cast<void*>(to + element * elementBytes()); }
  size_t elementBytes() const { return static_cast<size_t>(sizeOf(exchange.type)); }
};

bool NcclExchanges::areOne(std::span<const RankExchange> exchanges) const {
  return exchanges.size() == 1 && exchanges[0].pieces.size() == 1 &&
         isEven(exchanges[0], exchanges[0].pieces[0]);
}

NcclCall NcclExchanges::begin(std::span<const RankExchange> exchanges, const CUdeviceptr* addresses) const {
  NcclCall last;
  forEachPiece(exchanges, addresses, [&](const auto& exchange, const Piece& piece, auto from, auto to) {
    last = begin({exchange, piece, from, to});
    return last.isFine();
  });
  return last;
}

Status NcclExchanges::clearEnds(const Driver& driver, std::span<const RankExchange> exchanges,
                                const CUdeviceptr* addresses) const {
  Status status = okStatus();
  forEachPiece(exchanges, addresses, [&](const auto& exchange, const Piece& piece, auto, auto share) {
    const size_t bytes = static_cast<size_t>(sizeOf(exchange.type)), present = piece.present(rank_).count;
    if (exchange.kind == Kind::reduce_scatter && present < piece.each)
      status = driver.check(
          driver.cuMemsetD8Async(share + present * bytes, 0, (piece.each - present) * bytes, stream_),
          "cuMemsetD8Async");
    return status.ok();
  });
  return status;
}

bool NcclExchanges::isEven(const RankExchange& exchange, const Piece& piece) const {
  return exchange.kind == Kind::all_reduce || piece.each * size_ == piece.elements;
}

NcclCall NcclExchanges::begin(const Place& place) const {
  return isEven(place.exchange, place.piece) ? beginEven(place) : beginUneven(place);
}

NcclCall NcclExchanges::beginEven(const Place& place) const {
  const size_t each = place.piece.each;
  switch (place.exchange.kind) {
    case Kind::all_reduce:
      return {nccl_.ncclAllReduce(place.part(), place.result(), each, place.type(), ncclSum, comm_, stream_),
              "ncclAllReduce"};
    case Kind::reduce_scatter:
      return {
          nccl_.ncclReduceScatter(place.part(), place.result(), each, place.type(), ncclSum, comm_, stream_),
          "ncclReduceScatter"};
    default:
      return {nccl_.ncclAllGather(place.part(), place.result(), each, place.type(), comm_, stream_),
              "ncclAllGather"};
  }
}

/// All make a call for each rank that has any of it.
NcclCall NcclExchanges::beginUneven(const Place& place) const {
  NcclCall last;
  for (size_t owner = 0; owner < size_ && last.isFine(); ++owner) {
    const auto [first, count] = place.piece.present(owner);
    if (count == 0) break;
    const int root = static_cast<int>(owner);
    if (place.exchange.kind == Kind::reduce_scatter)
      last = {nccl_.ncclReduce(place.part(first), place.result(), count, place.type(), ncclSum, root, comm_,
                               stream_),
              "ncclReduce"};
    else
      last = {
          nccl_.ncclBroadcast(place.part(), place.result(first), count, place.type(), root, comm_, stream_),
          "ncclBroadcast"};
  }
  return last;
}

}  // namespace gpuc::cuda
