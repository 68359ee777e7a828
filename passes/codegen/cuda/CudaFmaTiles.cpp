//===- CudaFmaTiles.cpp - Products of tiles by multiply-adds ----------------===//

#include "passes/codegen/cuda/CudaFmaTiles.h"

#include "passes/codegen/cuda/CudaKernel.h"
#include "passes/codegen/math/Math.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace gpuc::codegen {

// Strides of rows in shared memory: multiples of 4, so that 4 numbers are one access, and 4 more than a
// multiple of 32, so that the accesses of 8 neighbouring threads meet in no bank.
constexpr int64_t depth = 32; ///< Elements of a row that are staged at a time for `products`.
constexpr int64_t stagedStride = depth + 4;
constexpr int64_t keptStride = TileEmitter::size + 4;
constexpr int64_t stagedElements = 2 * TileEmitter::size * stagedStride;

FmaTiles::FmaTiles(gpu::GPUFuncOp function, ImplicitLocOpBuilder &builder) : TileEmitter(builder, kShape) {
  firstColumn_ = column_ * number(each);
  firstRow_ = divideUnsigned(thread_, side) * number(each);
  staged_ = sharedArray(function, builder, builder.getF32Type(), stagedElements);
  otherStaged_ = advance(staged_, ElementKind::F32, number(stagedElements / 2));
  kept_ = sharedArray(function, builder, builder.getF32Type(), size * keptStride);
}

Expr FmaTiles::power(Expr x) { return emitExp(x); }

Expr FmaTiles::dot(const GlobalRows &a, const GlobalRows &b, Expr row) {
  Expr exists = less(row, number(a.rows)), sum = real(0);
  for (int64_t first = 0; first < a.width; first += side) {
    Expr column = column_ + number(first), here = exists & less(column, number(a.width));
    auto elementOf = [&](const GlobalRows &rows) {
      Expr position = wide(row) * wideNumber(rows.stride) + wide(column);
      return load(rows.pointer, rows.kind, select(here, position, wideNumber(0)));
    };
    sum = select(here, fma(elementOf(a), elementOf(b), sum), sum);
  }
  return acrossColumns(sum, [](Expr x, Expr y) { return x + y; });
}

Expr FmaTiles::lane(Expr vector, int64_t number) {
  if (vector.lanes() == 1)
    return vector;
  return {builder_, LLVM::ExtractElementOp::create(builder_, vector.value(), this->number(number).value())};
}

void FmaTiles::stagePart(const GlobalRows &from, Expr row0, int64_t rows, Expr column0, int64_t columns,
                         int64_t stride, bool split, Value array) {
  bool isWhole = from.rows % rows == 0 && from.width % columns == 0;
  Type wide = builder_.getI64Type();
  SmallVector<std::pair<Expr, Expr>> moves; // places and values: all loads come before the stores
  for (int64_t first = 0; first < rows * columns; first += kShape.threads) {
    Expr element = thread_ + number(first);
    Expr row = divideUnsigned(element, columns), column = remainderUnsigned(element, columns);
    Expr fromRow = row0 + row, fromColumn = column0 + column;
    Expr position =
        zeroExtend(fromRow, wide) * constantInt(builder_, wide, from.stride) + zeroExtend(fromColumn, wide);
    Expr value;
    if (isWhole) {
      value = load(from.pointer, from.kind, position);
    } else {
      Expr exists = less(fromRow, number(from.rows)) & less(fromColumn, number(from.width));
      value = load(from.pointer, from.kind, select(exists, position, position.integer(0)));
      value = select(exists, value, value.real(0));
    }
    Expr place = split ? remainderUnsigned(row, each) * number(side) + divideUnsigned(row, each) : row;
    moves.emplace_back(place * number(stride) + column, value);
  }
  for (auto [place, value] : moves)
    storeShared(array, place, value);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

State FmaTiles::products(const TileOperand &lhs, const TileOperand &rhs) {
  const GlobalRows &a = lhs.rows, &b = rhs.rows;
  Expr a0 = lhs.row0, b0 = rhs.row0;
  int64_t columns = std::min(depth, paddedWidth(a.width));
  State start(each * each, real(0));
  return loop(number(0), number(paddedWidth(a.width)), columns, start, [&](Expr at, const State &sums) {
    barrier(); // what lies there has been read
    stagePart(a, a0, size, at, columns, stagedStride, /*split=*/false, staged_);
    stagePart(b, b0, size, at, columns, stagedStride, /*split=*/true, otherStaged_);
    barrier();
    return loop(number(0), number(columns), each, sums, [&](Expr k, const State &carried) {
      SmallVector<Expr> lhs, rhs; // 4 elements of each row
      for (int64_t i = 0; i < each; ++i) {
        lhs.push_back(loadShared(staged_, (firstRow_ + number(i)) * number(stagedStride) + k, each));
        rhs.push_back(
            loadShared(otherStaged_, (column_ + number(side * i)) * number(stagedStride) + k, each));
      }
      State next(carried);
      for (int64_t step = 0; step < each; ++step)
        for (int64_t i = 0; i < each; ++i)
          for (int64_t j = 0; j < each; ++j)
            next[each * i + j] = fma(lane(lhs[i], step), lane(rhs[j], step), next[each * i + j]);
      return next;
    });
  });
}

void FmaTiles::keep(const State &tile) {
  Type row = registerType(builder_.getContext(), ElementKind::F32, each);
  for (int64_t i = 0; i < each; ++i) {
    Value four = LLVM::PoisonOp::create(builder_, row);
    for (int64_t j = 0; j < each; ++j)
      four = LLVM::InsertElementOp::create(builder_, four, tile[each * i + j].value(), number(j).value());
    storeShared(kept_, (firstRow_ + number(i)) * number(keptStride) + firstColumn_, {builder_, four});
  }
}

int64_t FmaTiles::adjacentColumns(int64_t width) {
  return paddedWidth(width) % (4 * side) == 0 ? 4 : paddedWidth(width) % (2 * side) == 0 ? 2 : 1;
}

Expr FmaTiles::columnOf(int64_t width, int64_t j) {
  int64_t adjacent = adjacentColumns(width);
  return column_ * number(adjacent) + number(j / adjacent * adjacent * side + j % adjacent);
}

State FmaTiles::accumulate(const State &sums, const State &tile, const TileOperand &operand) {
  const GlobalRows &b = operand.rows;
  Expr b0 = operand.row0;
  keep(tile);
  int64_t width = paddedWidth(b.width), columns = columnsOf(b.width), adjacent = adjacentColumns(b.width);
  int64_t rows = size;
  while (rows * width > stagedElements)
    rows /= 2;
  return loop(number(0), number(size), rows, sums, [&](Expr part, const State &before) {
    barrier(); // what lies there has been read, and the tile was kept
    stagePart(b, b0 + part, rows, number(0), width, width, /*split=*/false, staged_);
    barrier();
    return loop(number(0), number(rows), each, before, [&](Expr n, const State &carried) {
      SmallVector<Expr> lhs;
      for (int64_t i = 0; i < each; ++i)
        lhs.push_back(loadShared(kept_, (firstRow_ + number(i)) * number(keptStride) + part + n, each));
      State next(carried);
      for (int64_t step = 0; step < each; ++step)
        for (int64_t first = 0; first < columns; first += adjacent) {
          Expr rhs =
              loadShared(staged_, (n + number(step)) * number(width) + columnOf(b.width, first), adjacent);
          for (int64_t i = 0; i < each; ++i)
            for (int64_t j = 0; j < adjacent; ++j) {
              Expr &sum = next[columns * i + first + j];
              sum = fma(lane(lhs[i], step), lane(rhs, j), sum);
            }
        }
      return next;
    });
  });
}

} // namespace gpuc::codegen
