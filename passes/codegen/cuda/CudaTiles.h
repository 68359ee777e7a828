//===- CudaTiles.h - Products of tiles by the threads of a block ------------===//
//
// 256 threads hold a tile of 64 x 64 numbers in registers, 4 x 4 each: thread t those of rows 4 · (t / 16) +
// i and columns 4 · (t mod 16) + j, as number 4 i + j of a State. Operands lie in global memory, as rows;
// they are staged in shared memory as f32, a part at a time, so that heads of any width take the same 36 KiB.
//
// Every number is one chain of fused multiply-adds in the order of what is summed over: bits depend on no
// tile's size.
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
  int64_t stride; ///< Elements from one row to the next.
};

class TileEmitter {
public:
  static constexpr int64_t threads = 256;
  static constexpr int64_t size = 64; ///< Rows and columns of a tile.
  static constexpr int64_t each = 4;  ///< Rows and columns of a tile that a thread holds.
  static constexpr int64_t side = 16; ///< Threads along a tile's side.

  /// `builder` stands at the function's start.
  TileEmitter(mlir::gpu::GPUFuncOp function, mlir::ImplicitLocOpBuilder &builder);

  /// The first of the rows, and columns, of a tile that this thread holds, as i32.
  Expr firstRow() const { return firstRow_; }
  Expr firstColumn() const { return firstColumn_; }
  /// The number of this thread along the columns, as i32.
  Expr column() const { return column_; }

  /// a[a0 + row] · b[b0 + column], over all of their width. All threads of the block take part.
  State products(const GlobalRows &a, Expr a0, const GlobalRows &b, Expr b0);

  /// Leaves a tile in shared memory for `accumulate`.
  void keep(const State &tile);
  /// sums[row, c] + Σ_n kept[row, n] · b[b0 + n, c] for all columns c of b: those of a thread are
  /// columnOf(b.width, j), and sums[i * columnsOf(b.width) + j] is row i's. All threads take part.
  State accumulate(const State &sums, const GlobalRows &b, Expr b0);
  /// How many columns of rows so wide a thread holds.
  static int64_t columnsOf(int64_t width) { return paddedWidth(width) / side; }
  /// Column number `j` of this thread, as i32. May lie behind the width.
  Expr columnOf(int64_t width, int64_t j);
  /// As many zeros as `accumulate` takes sums.
  State zeros(int64_t width);

  /// `x` combined over the threads along a tile's row, in a fixed tree; every one of them gets the same bits.
  Expr acrossColumns(Expr x, llvm::function_ref<Expr(Expr, Expr)> combine);

  /// A loop on i32 that carries registers.
  State loop(Expr low, Expr high, int64_t step, const State &start,
             llvm::function_ref<State(Expr, const State &)> body);
  void ifHolds(Expr condition, llvm::function_ref<void()> body) {
    codegen::ifHolds(builder_, condition.value(), body);
  }
  void barrier() { mlir::gpu::BarrierOp::create(builder_); }

  /// Of arrays in shared memory.
  Expr loadShared(mlir::Value array, Expr position, int64_t lanes);
  void storeShared(mlir::Value array, Expr position, Expr value);
  /// Element `position` (i64) at a global pointer, in compute form, and back.
  Expr load(mlir::Value pointer, ElementKind kind, Expr position);
  void store(Expr value, mlir::Value pointer, ElementKind kind, Expr position);
  mlir::Value advance(mlir::Value pointer, ElementKind kind, Expr elements);

  Expr number(int64_t value) { return constantInt(builder_, builder_.getI32Type(), value); }
  Expr real(double value) { return constant(builder_, builder_.getF32Type(), value); }

private:
  static int64_t paddedWidth(int64_t width) { return llvm::divideCeil(width, side) * side; }
  static int64_t adjacentColumns(int64_t width);
  Expr lane(Expr vector, int64_t number);
  /// Puts columns [column0, column0 + columns) of rows [row0, row0 + rows) to `array` + place, a row every
  /// `stride` elements; `split`: row r to place (r mod 4) · 16 + r / 4.
  void stage(const GlobalRows &from, Expr row0, int64_t rows, Expr column0, int64_t columns, int64_t stride,
             bool split, mlir::Value array);

  mlir::ImplicitLocOpBuilder &builder_;
  Expr thread_, column_, firstRow_, firstColumn_;
  mlir::Value staged_, otherStaged_, kept_; // f32 arrays in shared memory; the first two adjoin
};

} // namespace gpuc::codegen
