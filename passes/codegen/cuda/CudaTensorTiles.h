//===- CudaTensorTiles.h - Products of tiles by tensor cores ----------------===//
//
// 4 warps of 32 threads hold a tile of 64 rows: warp w rows 16 w to 16 w + 15, as mma.m16n8k16 leaves its
// result (PTX ISA, "Matrix Fragments for mma.m16n8k16"): thread t of a warp rows t / 4 and t / 4 + 8, and of
// every 8 columns number 2 · (t mod 4) and the next. Operands are of 16 bits and their products' sums of 32;
// a tile that is multiplied is rounded to the operands' type, in registers.
//
// What all warps read (`stage`) lies in shared memory, rows padded by 16 bytes, so that the 8 rows that
// ldmatrix reads at a time meet in no bank; widths are padded to multiples of 16 by zeros. Where there is
// room for two of each, the next tile is copied there (cp.async) while this one is computed. What each warp
// reads of its own rows for all tiles (`hold`) stays in registers, or is read again where there are too few.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/codegen/cuda/CudaTiles.h"

#include <numbers>

namespace gpuc::codegen {

class TensorTiles : public TileEmitter {
public:
  /// Of tiles with so many columns.
  static constexpr TileShape shapeOf(int64_t columns) { return {128, columns, 2, columns / 4, 4}; }

  /// `kind`: F16 or BF16. `widths`: of what is staged, which `isInChunks`, or not.
  TensorTiles(mlir::gpu::GPUFuncOp function, mlir::ImplicitLocOpBuilder &builder, ElementKind kind,
              int64_t columns, std::pair<int64_t, int64_t> widths, bool isInChunks);

  Expr row(int64_t i) override { return firstRow_ + number(8 * i); }
  Expr column(int64_t j) override { return columnOf(0, j); }
  TileOperand hold(const GlobalRows &rows, Expr row0, bool inRegisters) override;
  void begin(const GlobalRows &a, const GlobalRows &b, Expr row0, Expr end) override;
  std::pair<TileOperand, TileOperand> stage(const GlobalRows &a, const GlobalRows &b, Expr row0, Expr end,
                                            llvm::function_ref<void()> meanwhile) override;
  State products(const TileOperand &a, const TileOperand &b) override;
  State accumulate(const State &sums, const State &tile, const TileOperand &b) override;
  Expr columnOf(int64_t width, int64_t j) override;
  void storeRow(const State &values, const GlobalRows &to, Expr row) override;
  Expr dot(const GlobalRows &a, const GlobalRows &b, Expr row) override;
  Expr larger(Expr a, Expr b) override;
  Expr power(Expr x) override;
  double logOfE() const override { return std::numbers::log2e; }

private:
  /// Words (i32) of two elements each.
  using Words = llvm::SmallVector<Expr, 4>;
  struct Move {
    Expr row, column; ///< Of the tile.
    int64_t below;    ///< Rows more.
    Expr exists;      ///< Null: always.
    Words words;
  };

  static int64_t strideOf(int64_t width) { return paddedWidth(width) + 8; }

  /// Elements [column, column + 2 · words) of the row `below` rows below a row, zeros where there are none.
  /// The column is a multiple of two; of eight, if there are four words.
  Words loadWords(const GlobalRows &from, Expr row, Expr column, int64_t words, int64_t below = 0);
  /// Where element (row + below, column) lies, and whether it does; null: it is known to.
  std::pair<Expr, Expr> placeOf(const GlobalRows &from, Expr row, Expr column, int64_t below);
  Words loadAdjoining(const GlobalRows &from, Expr position, Expr exists, int64_t words);
  Words loadOneByOne(const GlobalRows &from, Expr row, Expr column, int64_t words);
  /// Elements that one access moves, of a tile's rows: how many there are, and number `first` + the thread's.
  int64_t chunksOf(const GlobalRows &from) const;
  Move moveOf(const GlobalRows &from, Expr row0, Expr first);
  /// The same where threads go on by whole rows, with one place for all moves.
  Move moveBelow(const GlobalRows &from, Expr row0, int64_t below);
  /// Whether threads go on by whole rows, each with as many moves.
  bool isEven(int64_t width) const {
    const int64_t inRow = paddedWidth(width) / 8;
    return shape_.threads % inRow == 0 && shape_.columns * inRow % shape_.threads == 0;
  }
  /// Begins the copies of a tile, if it is one before the end, to its turn's part of both arrays.
  void copyAhead(const GlobalRows &a, const GlobalRows &b, Expr row0, Expr end);
  void copyAhead(const GlobalRows &from, Expr row0, mlir::Value array);
  mlir::Value partOf(mlir::Value array, int64_t width, Expr row0);
  /// This thread's part of the moves that take one load each; of others none.
  llvm::SmallVector<Move> movesOf(const GlobalRows &from, Expr row0);
  /// Ends them, or does the others one after another: their loads would take many registers at once.
  void storeMoves(const GlobalRows &from, Expr row0, llvm::ArrayRef<Move> moves, mlir::Value array);
  void storeMove(const GlobalRows &from, const Move &move, mlir::Value array);

  /// Of a held operand columns k to k + 15, as mma wants them.
  Words loadFragment(const GlobalRows &from, Expr row0, Expr k);
  /// Four matrices of 8 x 8, the row whose address each thread gives at `place`.
  Words loadMatrices(mlir::Value array, Expr place, bool transposed);
  /// sums[0..3] + a · b.
  void multiply(llvm::ArrayRef<Expr> a, llvm::ArrayRef<Expr> b, std::array<Expr *, 4> sums);
  /// Two numbers as one word, each rounded.
  Expr pack(Expr low, Expr high);
  /// Element 0 or 1 of a word, as f32.
  Expr unpack(Expr word, int64_t element);
  mlir::Value intrinsic(llvm::StringRef name, mlir::Type result, llvm::ArrayRef<mlir::Value> arguments);

  ElementKind kind_;
  bool copiesAhead_;
  Expr lane_, firstRow_, firstColumn_;
  mlir::Value staged_, otherStaged_; // arrays of 16-bit elements in shared memory
};

} // namespace gpuc::codegen
