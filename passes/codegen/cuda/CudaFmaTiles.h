//===- CudaFmaTiles.h - Products of tiles by multiply-adds ------------------===//
//
// 256 threads hold a tile of 64 x 64 numbers in registers, 4 x 4 each: thread t those of rows 4 · (t / 16) +
// i and columns 4 · (t mod 16) + j. Operands are staged in shared memory as f32, a part at a time, so that
// heads of any width take the same 36 KiB.
//
// Every number is one chain of fused multiply-adds in the order of what is summed over: bits depend on no
// tile's size.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/codegen/cuda/CudaTiles.h"

namespace gpuc::codegen {

class FmaTiles : public TileEmitter {
public:
  static constexpr TileShape kShape = {256, size, 4, 4, 16};

  FmaTiles(mlir::gpu::GPUFuncOp function, mlir::ImplicitLocOpBuilder &builder);

  Expr row(int64_t i) override { return firstRow_ + number(i); }
  Expr column(int64_t j) override { return firstColumn_ + number(j); }
  State products(const TileOperand &a, const TileOperand &b) override;
  State accumulate(const State &sums, const State &tile, const TileOperand &b) override;
  Expr columnOf(int64_t width, int64_t j) override;
  Expr dot(const GlobalRows &a, const GlobalRows &b, Expr row) override;
  Expr larger(Expr a, Expr b) override { return select(less(a, b), b, a); }
  Expr power(Expr x) override;
  double logOfE() const override { return 1; }

private:
  static constexpr int64_t each = 4;  ///< Rows and columns of a tile that a thread holds.
  static constexpr int64_t side = 16; ///< Threads along a tile's side.

  /// Leaves a tile in shared memory.
  void keep(const State &tile);
  static int64_t adjacentColumns(int64_t width);
  Expr lane(Expr vector, int64_t number);
  /// Puts columns [column0, column0 + columns) of rows [row0, row0 + rows) to `array` + place, a row every
  /// `stride` elements; `split`: row r to place (r mod 4) · 16 + r / 4.
  void stagePart(const GlobalRows &from, Expr row0, int64_t rows, Expr column0, int64_t columns,
                 int64_t stride, bool split, mlir::Value array);

  Expr firstRow_, firstColumn_;
  mlir::Value staged_, otherStaged_, kept_; // f32 arrays in shared memory; the first two adjoin
};

} // namespace gpuc::codegen
