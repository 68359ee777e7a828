//===- CudaTiles.h - Products of tiles by the threads of a block ------------===//
//
// A tile is `size` rows and some columns of numbers that lie in the registers of a block's threads, f32. Its
// rows are a product's rows, or the reverse of one: products(a, b) is a · bᵀ, accumulate(sums, tile, b) is
// sums + tile · b. Who holds which numbers, and what multiplies them, two emitters say: FmaTiles, by the
// multiply-adds that every core has, and TensorTiles, by tensor cores, for operands of 16 bits.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/codegen/Loops.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace gpuc::codegen {

/// Rows of a matrix in global memory, of which those from `rows` on and columns from `width` on are zeros.
struct GlobalRows {
  mlir::Value pointer; ///< To the element (0, 0).
  ElementKind kind;
  int64_t rows, width;
  int64_t stride;          ///< Elements from one row to the next.
  bool isInChunks = false; ///< Eight elements from a multiple of eight on adjoin, and lie at 16 bytes.
};

/// As many of them as a tile has rows, or columns, from row0 on; and where an emitter has put them.
struct TileOperand {
  GlobalRows rows;
  Expr row0;
  State fragments;   ///< Of `hold`, in registers.
  mlir::Value array; ///< Of `stage`, in shared memory.
};

/// How a tile lies in a block's threads.
struct TileShape {
  int64_t threads;
  int64_t columns;               ///< Of the tile.
  int64_t rowsEach, columnsEach; ///< That a thread holds: number columnsEach · i + j of a State.
  int64_t side;                  ///< Threads that share a row.
};

class TileEmitter {
public:
  static constexpr int64_t size = 64; ///< Rows of a tile.

  virtual ~TileEmitter() = default;
  const TileShape &shape() const { return shape_; }
  int64_t rowsEach() const { return shape_.rowsEach; }
  int64_t columnsEach() const { return shape_.columnsEach; }

  /// Rows and columns of a tile that this thread holds, as i32.
  virtual Expr row(int64_t i) = 0;
  virtual Expr column(int64_t j) = 0;
  /// The number of this thread among those that share a row, as i32.
  Expr column() const { return column_; }

  /// For `products`, once for all tiles; in registers, if that says so and the emitter has a use for it.
  virtual TileOperand hold(const GlobalRows &rows, Expr row0, bool) { return {rows, row0, {}, {}}; }
  /// For `products` and `accumulate`, until the next time. Tiles follow one another from where `begin` was
  /// told to `end`. `meanwhile` may write to shared memory what all threads read afterwards, to a place that
  /// the tile before did not have: numbers of `turn`. All threads of the block take part, as in all below.
  virtual void begin(const GlobalRows &, const GlobalRows &, Expr, Expr) {}
  virtual std::pair<TileOperand, TileOperand> stage(
      const GlobalRows &a, const GlobalRows &b, Expr row0, Expr end,
      llvm::function_ref<void()> meanwhile = [] {});
  /// 0 and 1 of one tile after another.
  Expr turn(Expr row0) { return remainderUnsigned(divideUnsigned(row0, shape_.columns), 2); }
  /// a[row] · b[column], over all of their width.
  virtual State products(const TileOperand &a, const TileOperand &b) = 0;
  /// sums[row, c] + Σ_n tile[row, n] · b[n, c] for all columns c of b: those of a thread are
  /// columnOf(b.width, j), and sums[i * columnsOf(b.width) + j] is row i's.
  virtual State accumulate(const State &sums, const State &tile, const TileOperand &b) = 0;
  /// How many columns of rows so wide a thread holds.
  int64_t columnsOf(int64_t width) const { return paddedWidth(width) / shape_.side; }
  /// Column number `j` of this thread, as i32. May lie behind the width.
  virtual Expr columnOf(int64_t width, int64_t j) = 0;
  /// As many zeros as `accumulate` takes sums.
  State zeros(int64_t width) { return State(rowsEach() * columnsOf(width), real(0)); }

  /// Stores this thread's columns of a row.
  virtual void storeRow(const State &values, const GlobalRows &to, Expr row);

  /// Σ a[row] ∘ b[row], by the threads that share a row; every one of them gets the same bits.
  virtual Expr dot(const GlobalRows &a, const GlobalRows &b, Expr row) = 0;
  /// `x` combined over the threads that share a row, in a fixed tree, likewise.
  Expr acrossColumns(Expr x, llvm::function_ref<Expr(Expr, Expr)> combine);
  /// NaN, where `a` is NaN.
  virtual Expr larger(Expr a, Expr b) = 0;
  /// A base to the power x, which is hardly above 0, as exact as this tile's products want it.
  virtual Expr power(Expr x) = 0;
  /// The logarithm of e to that base.
  virtual double logOfE() const = 0;

  /// A loop on i32 that carries registers.
  State loop(Expr low, Expr high, int64_t step, const State &start,
             llvm::function_ref<State(Expr, const State &)> body);
  void ifHolds(Expr condition, llvm::function_ref<void()> body) {
    codegen::ifHolds(builder_, condition.value(), body);
  }
  void barrier() { mlir::gpu::BarrierOp::create(builder_); }

  /// Of f32 arrays in shared memory.
  Expr loadShared(mlir::Value array, Expr position, int64_t lanes);
  void storeShared(mlir::Value array, Expr position, Expr value);
  /// Element `position` (i64) at a global pointer, in compute form, and back.
  Expr load(mlir::Value pointer, ElementKind kind, Expr position);
  void store(Expr value, mlir::Value pointer, ElementKind kind, Expr position);
  mlir::Value advance(mlir::Value pointer, ElementKind kind, Expr elements);

  Expr number(int64_t value) { return constantInt(builder_, builder_.getI32Type(), value); }
  Expr real(double value) { return constant(builder_, builder_.getF32Type(), value); }

protected:
  /// `builder` stands at the function's start.
  TileEmitter(mlir::ImplicitLocOpBuilder &builder, const TileShape &shape);

  static constexpr int64_t widthStep = 16;
  static int64_t paddedWidth(int64_t width) { return llvm::divideCeil(width, widthStep) * widthStep; }
  Expr wide(Expr a) { return zeroExtend(a, builder_.getI64Type()); }
  Expr wideNumber(int64_t a) { return constantInt(builder_, builder_.getI64Type(), a); }

  mlir::ImplicitLocOpBuilder &builder_;
  TileShape shape_;
  Expr thread_, column_;
};

} // namespace gpuc::codegen
