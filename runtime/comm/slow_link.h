// A link that is slower than the one at hand.
#pragma once

#include <chrono>
#include <vector>

#include "runtime/comm/communicator.h"

namespace gpuc {

/// What a rank sends, and receives at the same time, and what one message takes.
struct LinkFigures {
  double bytes_per_second = 0;
  std::chrono::microseconds latency{0};
};

/// Sums take at least the time that they would over such a link, from when the last rank has come: two
/// messages one behind the other, and (ranks - 1) / ranks of the bytes each time; of what is shared out or
/// gathered, one. Who waits for it sleeps, so that what a link costs can be seen, and hidden, without one.
class SlowLink final : public Communicator {
 public:
  /// `inner` must outlive it.
  SlowLink(Communicator& inner, LinkFigures link)
      : inner_(inner), link_(link), arrived_(static_cast<size_t>(inner.size())) {}

  int64_t rank() const override { return inner_.rank(); }
  int64_t size() const override { return inner_.size(); }
  std::chrono::milliseconds limit() const override { return inner_.limit(); }
  Status look() override { return inner_.look(); }
  Status allReduce(DataType type, size_t elements, const std::byte* part, std::byte* result) override;
  Status reduceScatter(DataType type, const Shares& shares, std::span<const void* const> wholes,
                       std::span<void* const> own) override;
  Status allGather(DataType type, const Shares& shares, std::span<const void* const> own,
                   std::span<void* const> wholes) override;
  Status broadcast(std::span<std::byte> bytes, int64_t root) override {
    return inner_.broadcast(bytes, root);
  }
  Status gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return inner_.gather(mine, all);
  }

 private:
  /// Makes an exchange, of so many bytes that are sent in so many messages, one behind the other, that slow.
  template <typename Exchange>
  Status slowly(int messages, size_t bytes, Exchange exchange);

  Communicator& inner_;
  LinkFigures link_;
  std::vector<std::byte> arrived_;  // one of each rank
};

}  // namespace gpuc
