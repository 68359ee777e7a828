// How ranks share out tensors: each has a run of elements of each of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gpuc {

/// One tensor of those that are shared out: rank r has the elements from the (r · each)-th on, `each` of
/// them, of which those behind the last are zeros.
struct Piece {
  /// Elements of the piece that follow one another.
  struct Run {
    size_t begin = 0, count = 0;
  };

  size_t elements = 0, each = 0;

  bool operator==(const Piece&) const = default;

  /// Of a rank's share those that are no zeros behind the last: of `count` from its `first` on…
  Run present(size_t rank, size_t first, size_t count) const {
    const size_t begin = std::min(elements, rank * each + first);
    return {begin, std::min(count, elements - begin)};
  }
  /// …and of all of it.
  Run present(size_t rank) const { return present(rank, 0, each); }
};

/// Tensors of one element type that are shared out together. Each lies where it likes, whole and shared.
struct Shares {
  /// Tensors are no larger.
  static constexpr uint64_t kMostBytes = uint64_t{1} << 48;

  std::vector<Piece> pieces;
  size_t whole_bytes = 0;  // of all pieces
  size_t elements = 0;     // of a rank's shares of them

  /// None without ranks or pieces, or if the whole is larger than a tensor may be.
  static std::optional<Shares> of(std::span<const uint64_t> elements, uint64_t ranks, size_t element_bytes) {
    Shares shares;
    for (const uint64_t count : elements) {
      if (ranks == 0 || count == 0 || count > kMostBytes / element_bytes) return std::nullopt;
      shares.pieces.push_back({.elements = count, .each = (count - 1) / ranks + 1});
      shares.elements += shares.pieces.back().each;
      shares.whole_bytes += count * element_bytes;
      if (shares.whole_bytes > kMostBytes) return std::nullopt;
    }
    return shares.pieces.empty() ? std::nullopt : std::optional(std::move(shares));
  }
};

}  // namespace gpuc
