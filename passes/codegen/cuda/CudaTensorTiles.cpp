//===- CudaTensorTiles.cpp - Products of tiles by tensor cores --------------===//

#include "passes/codegen/cuda/CudaTensorTiles.h"

#include "passes/codegen/cuda/CudaKernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace gpuc::codegen {

constexpr int64_t warp = 32;
constexpr int64_t warpRows = 16;
constexpr int64_t chunk = 8;                   ///< Elements of one access of 16 bytes.
constexpr int64_t mostSharedBytes = 46 * 1024; ///< Of 48 KiB, some of which attention keeps numbers in.

TensorTiles::TensorTiles(gpu::GPUFuncOp function, ImplicitLocOpBuilder &builder, ElementKind kind,
                         int64_t columns, std::pair<int64_t, int64_t> widths, bool isInChunks)
    : TileEmitter(builder, shapeOf(columns)), kind_(kind) {
  lane_ = remainderUnsigned(thread_, warp);
  firstRow_ = divideUnsigned(thread_, warp) * number(warpRows) + divideUnsigned(lane_, 4);
  firstColumn_ = column_ * number(2);
  const int64_t elements = columns * (strideOf(widths.first) + strideOf(widths.second));
  copiesAhead_ =
      isInChunks && isEven(widths.first) && isEven(widths.second) && 2 * 2 * elements <= mostSharedBytes;
  const int64_t times = copiesAhead_ ? 2 : 1;
  Type element = builder.getI16Type();
  staged_ = sharedArray(function, builder, element, times * columns * strideOf(widths.first));
  otherStaged_ = sharedArray(function, builder, element, times * columns * strideOf(widths.second));
}

Expr TensorTiles::columnOf(int64_t, int64_t j) { return firstColumn_ + number(j / 2 * 8 + j % 2); }

Value TensorTiles::intrinsic(StringRef name, Type result, ArrayRef<Value> arguments) {
  auto call =
      LLVM::CallIntrinsicOp::create(builder_, result, builder_.getStringAttr(name), ValueRange(arguments));
  return call.getResults();
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

TensorTiles::Words TensorTiles::loadAdjoining(const GlobalRows &from, Expr position, Expr exists,
                                              int64_t words) {
  Type word = builder_.getI32Type(), type = words == 1 ? word : VectorType::get({words}, word);
  Expr loaded(builder_, LLVM::LoadOp::create(builder_, type, advance(from.pointer, from.kind, position),
                                             /*alignment=*/4 * words));
  Words result;
  for (int64_t i = 0; i < words; ++i) {
    Expr one = words == 1 ? loaded
                          : Expr(builder_,
                                 LLVM::ExtractElementOp::create(builder_, loaded.value(), number(i).value()));
    result.push_back(exists ? select(exists, one, number(0)) : one);
  }
  return result;
}

TensorTiles::Words TensorTiles::loadOneByOne(const GlobalRows &from, Expr row, Expr column, int64_t words) {
  Type word = builder_.getI32Type();
  Expr first = wide(row) * wideNumber(from.stride) + wide(column), hasRow = less(row, number(from.rows));
  Words result;
  for (int64_t i = 0; i < words; ++i) {
    Expr halves[2];
    for (int64_t j = 0; j < 2; ++j) {
      Expr exists = hasRow & less(column + number(2 * i + j), number(from.width));
      Expr position = select(exists, first + wideNumber(2 * i + j), wideNumber(0));
      Value loaded =
          LLVM::LoadOp::create(builder_, builder_.getI16Type(), advance(from.pointer, from.kind, position));
      halves[j] = select(exists, zeroExtend({builder_, loaded}, word), number(0));
    }
    result.push_back(halves[0] | shiftLeft(halves[1], 16));
  }
  return result;
}

TensorTiles::Words TensorTiles::loadWords(const GlobalRows &from, Expr row, Expr column, int64_t words,
                                          int64_t below) {
  if (!from.isInChunks)
    return loadOneByOne(from, row + number(below), column, words);
  auto [position, exists] = placeOf(from, row, column, below);
  return loadAdjoining(from, position, exists, words);
}

std::pair<Expr, Expr> TensorTiles::placeOf(const GlobalRows &from, Expr row, Expr column, int64_t below) {
  // One place, and what is known beside it: addresses that differ by numbers in the code take no registers.
  Expr position = wide(row) * wideNumber(from.stride) + wide(column) + wideNumber(below * from.stride),
       exists;
  if (from.rows % size || shape_.columns < size) // `dot` has a row for each of a tile
    exists = less(row + number(below), number(from.rows));
  if (from.width % widthStep) {
    Expr hasColumn = less(column, number(from.width));
    exists = exists ? exists & hasColumn : hasColumn;
  }
  if (exists)
    position = select(exists, position, wideNumber(0));
  return {position, exists};
}

TensorTiles::Words TensorTiles::loadFragment(const GlobalRows &from, Expr row0, Expr k) {
  Words fragment;
  for (int64_t right : {0, 8})
    for (int64_t i : {0, 1})
      fragment.append(loadWords(from, row0 + row(i), firstColumn_ + k + number(right), 1));
  return fragment;
}

TileOperand TensorTiles::hold(const GlobalRows &rows, Expr row0, bool inRegisters) {
  TileOperand operand{rows, row0, {}, {}};
  if (inRegisters)
    for (int64_t k = 0; k < paddedWidth(rows.width); k += 16)
      operand.fragments.append(loadFragment(rows, row0, number(k)));
  return operand;
}

Expr TensorTiles::dot(const GlobalRows &a, const GlobalRows &b, Expr row) {
  Expr sum = real(0);
  const int64_t width = paddedWidth(a.width), step = chunk * shape_.side;
  for (int64_t first = 0; first < width; first += step) {
    Expr column = column_ * number(chunk) + number(first), exists;
    if (first + step > width) { // the last ones read the first again, for nothing
      exists = less(column, number(width));
      column = select(exists, column, number(0));
    }
    Words lhs = loadWords(a, row, column, chunk / 2), rhs = loadWords(b, row, column, chunk / 2);
    Expr next = sum;
    for (auto [x, y] : llvm::zip(lhs, rhs))
      for (int64_t element : {0, 1})
        next = fma(unpack(x, element), unpack(y, element), next);
    sum = exists ? select(exists, next, sum) : next;
  }
  return acrossColumns(sum, [](Expr x, Expr y) { return x + y; });
}

void TensorTiles::storeRow(const State &values, const GlobalRows &to, Expr row) {
  if (!to.isInChunks || to.kind != kind_)
    return TileEmitter::storeRow(values, to, row);
  for (size_t j = 0; j < values.size(); j += 2) { // two that adjoin, as one word
    Expr column = columnOf(to.width, static_cast<int64_t>(j)), word = pack(values[j], values[j + 1]);
    auto store = [&] {
      Expr position = wide(row) * wideNumber(to.stride) + wide(column);
      LLVM::StoreOp::create(builder_, word.value(), advance(to.pointer, to.kind, position), /*alignment=*/4);
    };
    to.width % widthStep == 0 ? store() : ifHolds(less(column, number(to.width)), store);
  }
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

int64_t TensorTiles::chunksOf(const GlobalRows &from) const {
  return shape_.columns * paddedWidth(from.width) / chunk;
}

TensorTiles::Move TensorTiles::moveOf(const GlobalRows &from, Expr row0, Expr first) {
  const int64_t inRow = paddedWidth(from.width) / chunk, all = chunksOf(from);
  Expr number = first + thread_, exists;
  if (all % shape_.threads) {
    exists = less(number, this->number(all));
    number = select(exists, number, this->number(0));
  }
  Expr row = divideUnsigned(number, inRow), column = remainderUnsigned(number, inRow) * this->number(chunk);
  return {row, column, 0, exists, loadWords(from, row0 + row, column, chunk / 2)};
}

TensorTiles::Move TensorTiles::moveBelow(const GlobalRows &from, Expr row0, int64_t below) {
  const int64_t inRow = paddedWidth(from.width) / chunk;
  Expr row = divideUnsigned(thread_, inRow), column = remainderUnsigned(thread_, inRow) * number(chunk);
  return {row, column, below, {}, loadWords(from, row0 + row, column, chunk / 2, below)};
}

SmallVector<TensorTiles::Move> TensorTiles::movesOf(const GlobalRows &from, Expr row0) {
  const int64_t inRow = paddedWidth(from.width) / chunk, all = chunksOf(from);
  SmallVector<Move> moves;
  if (from.isInChunks)
    for (int64_t first = 0; first < all; first += shape_.threads)
      moves.push_back(isEven(from.width) ? moveBelow(from, row0, first / inRow)
                                         : moveOf(from, row0, number(first)));
  return moves;
}

void TensorTiles::storeMoves(const GlobalRows &from, Expr row0, ArrayRef<Move> moves, Value array) {
  for (const Move &move : moves)
    storeMove(from, move, array);
  if (moves.empty())
    loop(number(0), number(chunksOf(from)), shape_.threads, {}, [&](Expr first, const State &) {
      storeMove(from, moveOf(from, row0, first), array);
      return State();
    });
}

void TensorTiles::storeMove(const GlobalRows &from, const Move &move, Value array) {
  const int64_t stride = strideOf(from.width);
  auto type = VectorType::get({chunk / 2}, builder_.getI32Type());
  Value four = LLVM::PoisonOp::create(builder_, type);
  for (auto [i, word] : llvm::enumerate(move.words))
    four = LLVM::InsertElementOp::create(builder_, four, word.value(), number(i).value());
  auto store = [&] {
    Value place = advance(array, kind_, move.row * number(stride) + move.column);
    LLVM::StoreOp::create(builder_, four, advance(place, kind_, number(move.below * stride)),
                          /*alignment=*/16);
  };
  move.exists ? ifHolds(move.exists, store) : store();
}

Value TensorTiles::partOf(Value array, int64_t width, Expr row0) {
  return advance(array, kind_, turn(row0) * number(shape_.columns * strideOf(width)));
}

void TensorTiles::copyAhead(const GlobalRows &from, Expr row0, Value array) {
  const int64_t inRow = paddedWidth(from.width) / chunk, stride = strideOf(from.width);
  Expr row = divideUnsigned(thread_, inRow), column = remainderUnsigned(thread_, inRow) * number(chunk);
  Value to = advance(partOf(array, from.width, row0), kind_, row * number(stride) + column);
  constexpr unsigned globalAddressSpace = 1; // as PTX numbers it
  Type global = LLVM::LLVMPointerType::get(builder_.getContext(), globalAddressSpace);
  for (int64_t below = 0; below < shape_.columns; below += shape_.threads / inRow) {
    auto [position, exists] = placeOf(from, row0 + row, column, below);
    Value source =
        LLVM::AddrSpaceCastOp::create(builder_, global, advance(from.pointer, from.kind, position));
    Value target = advance(to, kind_, number(below * stride));
    // Of what does not exist 0 bytes are read, and zeros written.
    Expr bytes = exists ? select(exists, number(2 * chunk), number(0)) : number(2 * chunk);
    LLVM::CallIntrinsicOp::create(builder_,
                                  builder_.getStringAttr("llvm.nvvm.cp.async.cg.shared.global.16.s"),
                                  ValueRange{target, source, bytes.value()});
  }
}

void TensorTiles::copyAhead(const GlobalRows &a, const GlobalRows &b, Expr row0, Expr end) {
  ifHolds(less(row0, end), [&] {
    copyAhead(a, row0, staged_);
    copyAhead(b, row0, otherStaged_);
  });
}

void TensorTiles::begin(const GlobalRows &a, const GlobalRows &b, Expr row0, Expr end) {
  if (!copiesAhead_)
    return;
  barrier(); // what lies there has been read
  copyAhead(a, b, row0, end);
}

std::pair<TileOperand, TileOperand> TensorTiles::stage(const GlobalRows &a, const GlobalRows &b, Expr row0,
                                                       Expr end, llvm::function_ref<void()> meanwhile) {
  if (copiesAhead_) {
    meanwhile();
    LLVM::CallIntrinsicOp::create(builder_, builder_.getStringAttr("llvm.nvvm.cp.async.wait.all"),
                                  ValueRange());
    barrier(); // this tile is there, and the one before has been read
    copyAhead(a, b, row0 + number(shape_.columns), end);
    return {{a, row0, {}, partOf(staged_, a.width, row0)},
            {b, row0, {}, partOf(otherStaged_, b.width, row0)}};
  }
  SmallVector<Move> ofA = movesOf(a, row0), ofB = movesOf(b, row0);
  barrier(); // what lies there has been read
  storeMoves(a, row0, ofA, staged_);
  storeMoves(b, row0, ofB, otherStaged_);
  meanwhile();
  barrier();
  return {{a, row0, {}, staged_}, {b, row0, {}, otherStaged_}};
}

TensorTiles::Words TensorTiles::loadMatrices(Value array, Expr place, bool transposed) {
  Type word = builder_.getI32Type();
  auto type = LLVM::LLVMStructType::getLiteral(builder_.getContext(), {word, word, word, word});
  Value loaded = intrinsic(transposed ? "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16"
                                      : "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16",
                           type, advance(array, kind_, place));
  Words words;
  for (int64_t i = 0; i < 4; ++i)
    words.push_back({builder_, LLVM::ExtractValueOp::create(builder_, loaded, ArrayRef<int64_t>{i})});
  return words;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Expr TensorTiles::pack(Expr low, Expr high) {
  bool isF16 = kind_ == ElementKind::F16;
  Type element = isF16 ? Type(builder_.getF16Type()) : builder_.getBF16Type();
  Value packed = intrinsic(isF16 ? "llvm.nvvm.ff2f16x2.rn" : "llvm.nvvm.ff2bf16x2.rn",
                           VectorType::get({2}, element), {high.value(), low.value()});
  return {builder_, LLVM::BitcastOp::create(builder_, builder_.getI32Type(), packed)};
}

Expr TensorTiles::unpack(Expr word, int64_t element) {
  if (kind_ == ElementKind::BF16) // the upper half of an f32
    return floatFromBits(element ? word & word.integer(0xFFFF0000) : shiftLeft(word, 16));
  return toCompute(narrow(element ? shiftRight(word, 16) : word, builder_.getI16Type()), kind_);
}

void TensorTiles::multiply(ArrayRef<Expr> a, ArrayRef<Expr> b, std::array<Expr *, 4> sums) {
  bool isF16 = kind_ == ElementKind::F16;
  SmallVector<Value> arguments;
  for (ArrayRef<Expr> operand : {a, b})
    for (Expr word : operand)
      arguments.push_back(isF16 ? Value(LLVM::BitcastOp::create(
                                      builder_, VectorType::get({2}, builder_.getF16Type()), word.value()))
                                : word.value());
  for (Expr *sum : sums)
    arguments.push_back(sum->value());
  Type f32 = builder_.getF32Type();
  Value result =
      intrinsic(isF16 ? "llvm.nvvm.mma.m16n8k16.row.col.f32.f32" : "llvm.nvvm.mma.m16n8k16.row.col.bf16",
                LLVM::LLVMStructType::getLiteral(builder_.getContext(), {f32, f32, f32, f32}), arguments);
  for (auto [i, sum] : llvm::enumerate(sums))
    *sum = {builder_, LLVM::ExtractValueOp::create(builder_, result, ArrayRef<int64_t>{int64_t(i)})};
}

State TensorTiles::products(const TileOperand &a, const TileOperand &b) {
  // Of two times 8 rows of b (its columns, to mma) the first and the second 8 of 16 columns.
  const int64_t stride = strideOf(b.rows.width), width = paddedWidth(b.rows.width);
  Expr row = divideUnsigned(lane_, 16) * number(8) + remainderUnsigned(lane_, 8);
  Expr column = remainderUnsigned(divideUnsigned(lane_, 8), 2) * number(8);
  Value mine = advance(b.array, kind_, row * number(stride) + column);
  auto add = [&](ArrayRef<Expr> fragment, Expr k, State &tile) {
    for (int64_t n = 0; n < shape_.columns; n += 16) {
      Words pair = loadMatrices(mine, number(n * stride) + k, /*transposed=*/false);
      for (int64_t half : {0, 1}) {
        Expr *upper = &tile[(n / 8 + half) * 2], *lower = upper + shape_.columnsEach;
        multiply(fragment, ArrayRef<Expr>(pair).slice(2 * half, 2), {upper, upper + 1, lower, lower + 1});
      }
    }
  };
  State tile(shape_.rowsEach * shape_.columnsEach, real(0));
  if (a.fragments.empty()) // one after another: all at once they would take the registers that there are not
    return loop(number(0), number(width), 16, tile, [&](Expr k, const State &carried) {
      State next(carried);
      add(loadFragment(a.rows, a.row0, k), k, next);
      return next;
    });
  for (int64_t k = 0; k < width; k += 16)
    add(ArrayRef<Expr>(a.fragments).slice(k / 4, 4), number(k), tile);
  return tile;
}

State TensorTiles::accumulate(const State &sums, const State &tile, const TileOperand &b) {
  // Of 16 rows of b the first and the second 8, transposed, of two times 8 columns.
  const int64_t stride = strideOf(b.rows.width), columns = columnsOf(b.rows.width);
  Expr row = remainderUnsigned(divideUnsigned(lane_, 8), 2) * number(8) + remainderUnsigned(lane_, 8);
  Expr column = divideUnsigned(lane_, 16) * number(8);
  Value mine = advance(b.array, kind_, row * number(stride) + column);
  State next(sums);
  for (int64_t k = 0; k < shape_.columns; k += 16) {
    Words fragment;
    for (int64_t right : {0, 1})
      for (int64_t i : {0, 1}) {
        const Expr *two = &tile[i * shape_.columnsEach + (k / 8 + right) * 2];
        fragment.push_back(pack(two[0], two[1]));
      }
    for (int64_t n = 0; n < paddedWidth(b.rows.width); n += 16) {
      Words pair = loadMatrices(mine, number(k * stride + n), /*transposed=*/true);
      for (int64_t half : {0, 1}) {
        Expr *upper = &next[(n / 8 + half) * 2], *lower = upper + columns;
        multiply(fragment, ArrayRef<Expr>(pair).slice(2 * half, 2), {upper, upper + 1, lower, lower + 1});
      }
    }
  }
  return next;
}

/// One instruction; of NaN and a number it is NaN.
Expr TensorTiles::larger(Expr a, Expr b) {
  return {builder_, arith::MaximumFOp::create(builder_, a.value(), b.value())};
}

/// Off by up to 2^-22 of it [PTX ISA, "ex2"], where what is multiplied has 8 or 11 bits.
Expr TensorTiles::power(Expr x) {
  return {builder_, intrinsic("llvm.nvvm.ex2.approx.ftz", x.type(), {x.value()})};
}

} // namespace gpuc::codegen
