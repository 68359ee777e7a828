// How a matmul is cut into tiles and what is packed: numbers that follow from the shape alone.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/base/status.h"
#include "runtime/workspace/matmul_workspace.h"

namespace gpuc {

/// The most stack that MatmulKernel::run uses for packed operands.
inline constexpr int64_t kMatmulPanelBytes = 128 * 1024;  // of op(b): block_k x tile_n
inline constexpr int64_t kMatmulStripBytes = 32 * 1024;   // of op(a): block_k x strip_m
/// 16-bit operands are all packed, as f32, in strips of up to 256 rows.
inline constexpr int64_t kMatmulWidenedStripBytes = 96 * 1024;
inline constexpr int64_t kMatmulSumBytes = 256 * 1024;  // of c, where sums are made aside: tile_m x tile_n
inline constexpr int64_t kMatmulTransposedSide = 64;    // at most, of a tile that is transposed
inline constexpr int64_t kMatmulStackBytes = kMatmulPanelBytes + kMatmulWidenedStripBytes + kMatmulSumBytes +
                                             kMatmulTransposedSide * kMatmulTransposedSide * 4;

/// Packed rows are padded to whole vectors of the widest kind, 64 bytes.
inline constexpr int64_t kMatmulPackBytes = 64;

enum class MatmulMethod : uint8_t {
  dot,    // rows of a times rows of b, both contiguous along k: nothing is packed, in any type
  tiled,  // micro-kernels over blocks of k, on operands packed where their layout would be slow or is
          // unsupported
};

/// Of k, what one call to a micro-kernel computes. LIBXSMM has a kernel for each length.
struct MatmulDepth {
  /// A block or what is left of it, that of the block cut short at the end of k, a piece before these.
  enum Kind : uint8_t { whole, cut, piece };
  Kind kind;
  int64_t length;
};

/// A matmul ready to be executed. The problem may differ from the shape it was made from (batches folded into
/// rows, a column vector computed as a row), but its result lies in the same bytes of c.
struct MatmulPlan {
  MatmulShape problem;                // its type is that of the arithmetic
  DataType storage = DataType::f32;   // of the operands in memory
  int64_t lda = 0, ldb = 0, ldc = 0;  // elements from one stored row to the next
  bool swapped = false;               // the operands a and b have changed places
  bool transposed = false;            // so have rows and columns of c: its tiles are transposed at the end
  int64_t bias_step = 1;              // elements from one column's bias to the next's; 0 where all share one

  MatmulMethod method = MatmulMethod::tiled;
  int64_t tile_m = 0, tile_n = 0;  // of c, computed by one thread
  // Of the tiled method; tile_m is a multiple of strip_m, tile_n of panel_n (but for the only tile there is).
  int64_t strip_m = 0, panel_n = 0, block_k = 0;  // of one call to a micro-kernel
  bool pack_a = false, pack_b = false;
  int64_t piece_k = 0;  // cuts what is packed of a block of k, so that it fits; 0: blocks are packed whole

  double tile_ns = 0;  // what a tile takes, by estimate

  int64_t rowTiles() const { return (problem.m + tile_m - 1) / tile_m; }
  int64_t columnTiles() const { return (problem.n + tile_n - 1) / tile_n; }
  int64_t tileCount() const { return problem.batch * rowTiles() * columnTiles(); }

  /// 16-bit operands: they are converted as they are packed or loaded, and c as it is written.
  bool isWidened() const { return storage != problem.type; }

  /// Whether tiles are summed up beside c and then moved there, or handed on. A product that is added to c is
  /// one: so its bits are those of a product by itself, and of an addition behind it.
  bool sumsAside() const { return isWidened() || transposed || problem.accumulate || problem.update; }

  /// Whether each element of c is summed up from the first product to the last, one fused multiply-add after
  /// another. Then it has the same bits in a product of other rows.
  bool addsInOrder() const;
  /// The same of the columns of one panel, or of what is left of one.
  bool addsInOrder(int64_t columns) const;

  /// Whether sums are of so few terms that to keep them aside would be felt: where a panel adds in order,
  /// they are added to c from registers.
  bool addsFewTerms() const;

  /// The part of k that begins at `k` and is computed by one call: a block, or a piece of one.
  MatmulDepth depthAt(int64_t k) const;
  /// The length of such a part; 0 if there is none.
  int64_t lengthOf(MatmulDepth::Kind kind) const;
  /// The most rows of k that are packed at once.
  int64_t packedDepth() const;

  /// `count` elements rounded up to whole vectors.
  int64_t padded(int64_t count) const {
    int64_t lanes = kMatmulPackBytes / sizeOf(problem.type);
    return (count + lanes - 1) / lanes * lanes;
  }
  /// Elements from one row to the next of a packed panel of b, of a packed strip of a, and of a tile of c in
  /// f32. What is converted whole stays without gaps, so that short rows are converted together.
  int64_t panelStride() const {
    return isWidened() && !problem.transpose_b && panel_n == problem.n ? panel_n : padded(panel_n);
  }
  int64_t stripStride() const {
    return problem.transpose_a ? strip_m : packedDepth() == problem.k ? problem.k : padded(packedDepth());
  }
  int64_t sumStride() const { return tile_n >= problem.n ? problem.n : padded(tile_n); }
};

/// An error that names what is wrong with the shape, or success.
Status checkMatmulShape(const MatmulShape& shape);

/// The plan for a shape that checkMatmulShape accepts.
MatmulPlan planMatmul(const MatmulShape& shape);

/// Whether the squares of each tile of the result can be added up: of one matrix, which is not rounded to 16
/// bits.
bool canSumSquares(const MatmulShape& shape);

/// The plan where each tile of the result is handed to a weight's update, if it can be: as for squares, and
/// where tiles and sums are those of a product by itself, so that bits are.
std::optional<MatmulPlan> planMatmulOfUpdate(const MatmulShape& shape);

/// The shape's problem in its simplest form, with no method chosen yet.
MatmulPlan foldMatmul(const MatmulShape& shape);

/// Fills in tiles and blocks of the tiled method for a folded problem of few rows, which packs nothing and
/// reads b in long runs; b must not be transposed. (16-bit operands are packed all the same.)
MatmulPlan planFewRows(MatmulPlan plan);

/// Whether planTransposed() takes this folded problem: b is transposed, a is not, and rows of c are whole
/// vectors.
bool canTranspose(const MatmulPlan& plan);

/// Makes of a folded problem that of c^T = b · a^T, where a is transposed instead of b, and fills in tiles
/// and blocks of the tiled method: for when a is the smaller one.
MatmulPlan planTransposed(MatmulPlan plan);

/// Fills in tiles and blocks of the tiled method for a folded problem, packing as told: a only if it is
/// transposed, b always if it is.
MatmulPlan planTiled(MatmulPlan plan, bool pack_a, bool pack_b);

/// Fills in tiles and blocks of the tiled method for a folded problem with a transposed a and b as it is:
/// tiles of 64 x 64 and short blocks, nothing packed (but 16-bit operands).
MatmulPlan planDownward(MatmulPlan plan);

/// Fills in tiles of the dot method for a folded problem; needs transpose_b and not transpose_a.
MatmulPlan planDot(MatmulPlan plan);

}  // namespace gpuc
