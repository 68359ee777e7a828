// How ranks share out tensors: each has a run of elements of each of them, or some of them as a whole.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gpuc {

/// What is shared out, a tensor, or equal tensors one behind the other: rank r has the elements from the
/// (r · each)-th on, `each` of them, of which those behind the last are zeros.
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
///
/// With `owners` a piece is so many equal tensors, of which rank r has the r-th whole, and those behind the
/// last have none.
struct Shares {
  /// Tensors are no larger.
  static constexpr uint64_t kMostBytes = uint64_t{1} << 48;

  std::vector<Piece> pieces;
  size_t owners = 0;       // 0: a piece is one tensor, of which each rank has a run
  size_t whole_bytes = 0;  // of all pieces
  size_t elements = 0;     // of a rank's shares of them

  /// How many tensors each piece is.
  size_t tensorsOfPiece() const { return owners == 0 ? 1 : owners; }

  /// Of tensors of so many elements. None without ranks or tensors, or if the whole is larger than a tensor
  /// may be; nor with more owners than ranks, or where the tensors of a piece are not equal.
  static std::optional<Shares> of(std::span<const uint64_t> elements, uint64_t ranks, size_t element_bytes,
                                  uint64_t owners = 0) {
    if (ranks == 0 || owners > ranks) return std::nullopt;
    Shares shares;
    shares.owners = owners;
    const size_t tensors = shares.tensorsOfPiece();
    if (elements.size() % tensors != 0) return std::nullopt;
    for (size_t first = 0; first < elements.size(); first += tensors) {
      const uint64_t count = elements[first];
      if (count == 0 || count > kMostBytes / element_bytes / tensors) return std::nullopt;
      for (const uint64_t other : elements.subspan(first, tensors))
        if (other != count) return std::nullopt;
      shares.pieces.push_back(
          {.elements = count * tensors, .each = owners == 0 ? (count - 1) / ranks + 1 : count});
      shares.elements += shares.pieces.back().each;
      shares.whole_bytes += count * tensors * element_bytes;
      if (shares.whole_bytes > kMostBytes) return std::nullopt;
    }
    return shares.pieces.empty() ? std::nullopt : std::optional(std::move(shares));
  }
};

}  // namespace gpuc
