#include "runtime/host/exchange.h"

#include <cstring>
#include <utility>

#include "runtime/comm/communicator.h"
#include "runtime/comm/rank_sum.h"
#include "runtime/comm/share_runs.h"

namespace gpuc {
namespace {

/// `exchange` gets the ranks, what this one has, and where what it is to have goes.
template <typename Exchange>
class ExchangeKernel final : public LibraryKernel {
 public:
  ExchangeKernel(Ranks& ranks, double ns, Exchange exchange)
      : ranks_(ranks), ns_(ns), exchange_(std::move(exchange)) {}

  int phaseCount() const override { return 1; }
  int64_t tiles(int) const override { return 1; }
  double tileNs(int) const override { return ns_; }
  bool isCutInOrder(uint32_t) const override { return true; }

  void run(int, void* const* operands, int64_t begin, int64_t end) const override {
    if (begin < end)
      exchange_(ranks_, static_cast<const std::byte*>(operands[0]), static_cast<std::byte*>(operands[1]));
  }

 private:
  Ranks& ranks_;
  double ns_;
  Exchange exchange_;
};

template <typename Exchange>
std::unique_ptr<LibraryKernel> makeKernel(Ranks& ranks, double ns, Exchange exchange) {
  return std::make_unique<ExchangeKernel<Exchange>>(ranks, ns, std::move(exchange));
}

/// The file was verified.
template <typename Collective>
Shares sharesOf(const Collective& collective, int64_t world_size) {
  const std::vector<uint64_t> pieces(collective.pieces()->begin(), collective.pieces()->end());
  const auto element = static_cast<size_t>(sizeOf(static_cast<DataType>(collective.type())));
  return *Shares::layOut(pieces, static_cast<uint64_t>(world_size), element);
}

}  // namespace

void Ranks::allReduce(DataType type, size_t elements, const std::byte* part, std::byte* result) {
  if (!status_.ok()) return;
  if (communicator_)
    status_ = communicator_->allReduce(type, elements, part, result);
  else
    sumParts(type, elements, {&part, 1}, result);
}

void Ranks::reduceScatter(DataType type, const Shares& shares, const std::byte* whole, std::byte* share) {
  if (!status_.ok()) return;
  if (communicator_) {
    status_ = communicator_->reduceScatter(type, shares, whole, share);
    return;
  }
  for (const Piece& piece : shares.pieces) {
    const std::byte* part = whole + piece.whole_offset;
    sumParts(type, piece.elements, {&part, 1}, share + piece.share_offset);
  }
}

void Ranks::allGather(DataType type, const Shares& shares, const std::byte* share, std::byte* whole) {
  if (!status_.ok()) return;
  if (communicator_)
    status_ = communicator_->allGather(type, shares, share, whole);
  else
    for (const Piece& piece : shares.pieces)
      std::memcpy(whole + piece.whole_offset, share + piece.share_offset,
                  piece.elements * static_cast<size_t>(sizeOf(type)));
}

std::unique_ptr<LibraryKernel> makeExchangeKernel(const fb::Command& command, int64_t world_size,
                                                  Ranks& ranks) {
  if (const fb::AllReduce* reduce = command.work_as_AllReduce()) {
    const auto type = static_cast<DataType>(reduce->type());
    const size_t elements = reduce->result()->size() / static_cast<size_t>(sizeOf(type));
    return makeKernel(ranks, static_cast<double>(elements),
                      [=](Ranks& others, const std::byte* part, std::byte* result) {
                        others.allReduce(type, elements, part, result);
                      });
  }
  if (const fb::ReduceScatter* scatter = command.work_as_ReduceScatter())
    return makeKernel(
        ranks, static_cast<double>(scatter->part()->size()),
        [type = static_cast<DataType>(scatter->type()), shares = sharesOf(*scatter, world_size)](
            Ranks& others, const std::byte* whole, std::byte* share) {
          others.reduceScatter(type, shares, whole, share);
        });
  if (const fb::AllGather* gather = command.work_as_AllGather())
    return makeKernel(ranks, static_cast<double>(gather->result()->size()),
                      [type = static_cast<DataType>(gather->type()), shares = sharesOf(*gather, world_size)](
                          Ranks& others, const std::byte* share, std::byte* whole) {
                        others.allGather(type, shares, share, whole);
                      });
  return nullptr;
}

}  // namespace gpuc
