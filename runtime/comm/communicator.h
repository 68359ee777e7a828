// What the ranks of a training say to one another.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/data_type.h"
#include "runtime/base/shares.h"
#include "runtime/base/status.h"

namespace gpuc {

/// One rank's end. All ranks make the same calls in the same order, with equally many bytes; each returns
/// when it has what it asked for. Nothing is allocated, unless a call fails. Errors name the rank that ended,
/// is late or asked for something else; no call after one succeeds.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;

  /// How long a rank waits for another one that is alive.
  virtual std::chrono::milliseconds limit() const { return std::chrono::minutes(10); }

  /// For who waits for ranks by other means, as a GPU does: the error "rank 2 was ended by signal 9" if it is
  /// known that one is lost. No collective: it waits for nobody.
  virtual Status look() { return okStatus(); }

  /// result[i] = 0 + part of rank 0 [i] + part of rank 1 [i] + …, in this order: of f64 in f64, of other
  /// floats in f32, of which 16 bits are rounded once, of integers wrapping. The same bits on all ranks,
  /// whatever the timing. `result` may be `part`.
  virtual Status allReduce(DataType type, size_t elements, const std::byte* part, std::byte* result) = 0;

  /// Of each piece: own = this rank's share, as Shares has it, of the sum of all ranks' whole piece, of the
  /// same bits as allReduce() has. `own` says where each piece lies, `wholes` where each tensor of it does,
  /// no two of them on the same bytes.
  virtual Status reduceScatter(DataType type, const Shares& shares, std::span<const void* const> wholes,
                               std::span<void* const> own) = 0;

  /// Of each piece: whole = what all ranks have shares of.
  virtual Status allGather(DataType type, const Shares& shares, std::span<const void* const> own,
                           std::span<void* const> wholes) = 0;

  /// The root's bytes, on all ranks.
  virtual Status broadcast(std::span<std::byte> bytes, int64_t root) = 0;

  /// Each rank's bytes, one behind the other; `all` has size() times as many as `mine`.
  virtual Status gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
};

}  // namespace gpuc
