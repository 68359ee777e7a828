// How ranks share out tensors: each has a run of elements of each of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gpuc {

/// One tensor of those that are shared out: rank r has the elements from the (r · each)-th on, `each` of
/// them, of which those behind the last are zeros.
struct Piece {
  size_t elements = 0, each = 0;
  size_t whole_offset = 0, share_offset = 0;  // in bytes, from the first piece
};

/// Pieces lie one behind the other, each at a multiple of kAlignment bytes, and so do a rank's shares of
/// them.
struct Shares {
  static constexpr size_t kAlignment = 64;
  /// Tensors are no larger.
  static constexpr uint64_t kMostBytes = uint64_t{1} << 48;

  std::vector<Piece> pieces;
  size_t whole_bytes = 0, share_bytes = 0;
  size_t elements = 0;  // of a share, without what lies between pieces

  /// None without ranks or pieces, or if the whole is larger than a tensor may be.
  static std::optional<Shares> layOut(std::span<const uint64_t> elements, uint64_t ranks,
                                      size_t element_bytes) {
    Shares shares;
    for (const uint64_t count : elements) {
      if (ranks == 0 || count == 0 || count > kMostBytes / element_bytes) return std::nullopt;
      const uint64_t each = (count - 1) / ranks + 1;
      const Piece piece = {.elements = count,
                           .each = each,
                           .whole_offset = aligned(shares.whole_bytes),
                           .share_offset = aligned(shares.share_bytes)};
      shares.whole_bytes = piece.whole_offset + count * element_bytes;
      shares.share_bytes = piece.share_offset + each * element_bytes;
      shares.elements += each;
      if (shares.whole_bytes > kMostBytes) return std::nullopt;
      shares.pieces.push_back(piece);
    }
    return shares.pieces.empty() ? std::nullopt : std::optional(std::move(shares));
  }

 private:
  static size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
};

}  // namespace gpuc
