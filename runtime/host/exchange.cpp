#include "runtime/host/exchange.h"

#include <cstring>
#include <utility>

#include "runtime/comm/communicator.h"
#include "runtime/comm/rank_sum.h"
#include "runtime/hal/lowering.h"

namespace gpuc {
namespace {

/// How many places a command reads and writes.
struct PlaceCounts {
  size_t read, written;
};

/// `exchange` gets the ranks, where what this one has lies, and where what it is to have goes.
template <typename Exchange>
class ExchangeKernel final : public LibraryKernel {
 public:
  ExchangeKernel(Ranks& ranks, PlaceCounts places, double ns, Exchange exchange)
      : ranks_(ranks), places_(places), ns_(ns), exchange_(std::move(exchange)) {}

  int phaseCount() const override { return 1; }
  int64_t tiles(int) const override { return 1; }
  double tileNs(int) const override { return ns_; }
  bool isCutInOrder(uint32_t) const override { return true; }

  void run(int, void* const* operands, int64_t begin, int64_t end) const override {
    if (begin < end)
      exchange_(ranks_, std::span<const void* const>(operands, places_.read),
                std::span<void* const>(operands + places_.read, places_.written));
  }

 private:
  Ranks& ranks_;
  PlaceCounts places_;
  double ns_;
  Exchange exchange_;
};

template <typename Exchange>
std::unique_ptr<LibraryKernel> makeKernel(Ranks& ranks, PlaceCounts places, double ns, Exchange exchange) {
  return std::make_unique<ExchangeKernel<Exchange>>(ranks, places, ns, std::move(exchange));
}

}  // namespace

void Ranks::allReduce(DataType type, size_t elements, const std::byte* part, std::byte* result) {
  if (!status_.ok()) return;
  if (communicator_)
    status_ = communicator_->allReduce(type, elements, part, result);
  else
    sumParts(type, elements, {&part, 1}, result);
}

void Ranks::reduceScatter(DataType type, const Shares& shares, std::span<const void* const> wholes,
                          std::span<void* const> own) {
  if (!status_.ok()) return;
  if (communicator_) {
    status_ = communicator_->reduceScatter(type, shares, wholes, own);
    return;
  }
  for (size_t piece = 0; piece < shares.pieces.size(); ++piece) {
    const auto* part = static_cast<const std::byte*>(wholes[piece]);
    sumParts(type, shares.pieces[piece].elements, {&part, 1}, static_cast<std::byte*>(own[piece]));
  }
}

void Ranks::allGather(DataType type, const Shares& shares, std::span<const void* const> own,
                      std::span<void* const> wholes) {
  if (!status_.ok()) return;
  if (communicator_)
    status_ = communicator_->allGather(type, shares, own, wholes);
  else
    for (size_t piece = 0; piece < shares.pieces.size(); ++piece)
      std::memcpy(wholes[piece], own[piece],
                  shares.pieces[piece].elements * static_cast<size_t>(sizeOf(type)));
}

std::unique_ptr<LibraryKernel> makeExchangeKernel(const fb::Command& command, int64_t world_size,
                                                  Ranks& ranks) {
  if (const fb::AllReduce* reduce = command.work_as_AllReduce()) {
    const auto type = static_cast<DataType>(reduce->type());
    const size_t elements = reduce->result()->size() / static_cast<size_t>(sizeOf(type));
    return makeKernel(ranks, {1, 1}, static_cast<double>(elements),
                      [=](Ranks& others, std::span<const void* const> part, std::span<void* const> result) {
                        others.allReduce(type, elements, static_cast<const std::byte*>(part[0]),
                                         static_cast<std::byte*>(result[0]));
                      });
  }
  if (const fb::ReduceScatter* scatter = command.work_as_ReduceScatter()) {
    const auto type = static_cast<DataType>(scatter->type());
    Shares shares = sharesOf(*scatter, world_size);
    const PlaceCounts places = {countOf(scatter->wholes()), countOf(scatter->shares())};
    return makeKernel(
        ranks, places, static_cast<double>(shares.whole_bytes),
        [type, shares](Ranks& others, std::span<const void* const> wholes, std::span<void* const> own) {
          others.reduceScatter(type, shares, wholes, own);
        });
  }
  if (const fb::AllGather* gather = command.work_as_AllGather()) {
    const auto type = static_cast<DataType>(gather->type());
    Shares shares = sharesOf(*gather, world_size);
    const PlaceCounts places = {countOf(gather->shares()), countOf(gather->wholes())};
    return makeKernel(
        ranks, places, static_cast<double>(shares.whole_bytes),
        [type, shares](Ranks& others, std::span<const void* const> own, std::span<void* const> wholes) {
          others.allGather(type, shares, own, wholes);
        });
  }
  return nullptr;
}

}  // namespace gpuc
