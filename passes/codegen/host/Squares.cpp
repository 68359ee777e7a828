//===- Squares.cpp - What is read across, a square at a time ----------------===//
//
// Of a transposed operand each row takes one element of many cache lines, and the rows beside it the others.
// Where lines lie a page apart the first-level cache holds but a few of them, and each row fetched them anew.
// So as many rows as there are lanes are read at once, along the lines, and transposed in registers.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/host/HostKernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace gpuc::codegen {

/// One stage of the butterfly (runtime/host/matmul/transpose.h): exchanges groups of `distance` lanes between
/// vectors so far apart.
static void exchange(ImplicitLocOpBuilder &builder, MutableArrayRef<Value> vectors, int64_t distance) {
  const auto lanes = static_cast<int64_t>(vectors.size());
  for (int64_t number = 0; number < lanes; ++number) {
    if (number & distance)
      continue;
    SmallVector<int64_t> even, odd;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const bool isSecond = lane & distance;
      even.push_back(isSecond ? lanes + lane - distance : lane);
      odd.push_back(isSecond ? lanes + lane : lane + distance);
    }
    Value x = vectors[number], y = vectors[number + distance];
    vectors[number] = vector::ShuffleOp::create(builder, x, y, even);
    vectors[number + distance] = vector::ShuffleOp::create(builder, x, y, odd);
  }
}

static Value elementAt(ImplicitLocOpBuilder &builder, Value place, Type element, Value number) {
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  return LLVM::GEPOp::create(builder, pointer, element, place, ArrayRef<LLVM::GEPArg>{number});
}

/// `value` in the square from `row` and `lane` on, row by row, to `place`.
void HostKernelEmitter::transposeSquare(Value value, Value place, Value row, Value lane) {
  const int64_t lanes = loops_.lanes;
  const Type element = getElementTypeOrSelf(value.getType());
  auto at = [&](Value number) {
    return elementAt(builder_, place, element, arith::MulIOp::create(builder_, number, index(lengthOfRow())));
  };
  emitLoop(emitter_, index(0), index(lanes), 1, [&](Value number) {
    emitter_.setCoordinate(loops_.rowGroups.back(), row);
    emitter_.setCoordinate(loops_.laneGroup, add(lane, number));
    emitter_.setLanes(loops_.rowGroups.back(), lanes);
    LLVM::StoreOp::create(builder_, emitter_.emitLanes(value, kernel_.everywhere).value(), at(number));
  });
  SmallVector<Value> vectors;
  for (int64_t number = 0; number < lanes; ++number)
    vectors.push_back(LLVM::LoadOp::create(builder_, VectorType::get({lanes}, element), at(index(number))));
  for (int64_t distance = lanes / 2; distance > 0; distance /= 2)
    exchange(builder_, vectors, distance);
  for (auto [number, vector] : llvm::enumerate(vectors))
    LLVM::StoreOp::create(builder_, vector, at(index(number)));
}

int64_t HostKernelEmitter::lengthOfRow() const {
  return kernel_.form == Form::Reduction ? wholeLanes().high : loops_.lanes;
}

void HostKernelEmitter::reserveSquares() {
  Type pointer = LLVM::LLVMPointerType::get(builder_.getContext());
  for (Value value : loops_.squares)
    squares_.push_back(LLVM::AllocaOp::create(builder_, pointer, getElementTypeOrSelf(value.getType()),
                                              index(loops_.lanes * lengthOfRow()), /*alignment=*/64));
}

void HostKernelEmitter::forRowsOfSquare(Value row, Value first, Body body) {
  emitLoop(emitter_, index(0), index(loops_.lanes), 1, [&](Value number) {
    emitter_.setCoordinate(loops_.rowGroups.back(), add(row, number));
    // Where the row's first element would lie.
    Value begin = arith::MulIOp::create(builder_, number, index(lengthOfRow()));
    Value passed = arith::SubIOp::create(builder_, begin, first);
    for (auto [value, place] : llvm::zip_equal(loops_.squares, squares_))
      emitter_.readKept(value, elementAt(builder_, place, getElementTypeOrSelf(value.getType()), passed),
                        coordinate(kernel_.groups[loops_.laneGroup].last, kernel_.space()));
    body();
  });
}

void HostKernelEmitter::forSquares(Body body) {
  reserveSquares();
  auto forSquare = [&](Value first) {
    const Value row = emitter_.coordinateOf(loops_.rowGroups.back());
    for (auto [value, place] : llvm::zip_equal(loops_.squares, squares_))
      transposeSquare(value, place, row, first);
    forRowsOfSquare(row, first, [&] {
      emitter_.setCoordinate(loops_.laneGroup, first);
      emitter_.setLanes(loops_.laneGroup, loops_.lanes);
      body();
    });
  };
  forTiles([&] { forRows([&] { emitLoop(emitter_, low_, high_, loops_.lanes, forSquare); }, loops_.lanes); });
}

void HostKernelEmitter::emitRowsOfSquares() {
  reserveSquares();
  auto forRowsBeside = [&] {
    const Value row = emitter_.coordinateOf(loops_.rowGroups.back());
    emitLoop(emitter_, index(0), index(lengthOfRow()), loops_.lanes, [&](Value first) {
      for (auto [value, place] : llvm::zip_equal(loops_.squares, squares_))
        transposeSquare(value, elementAt(builder_, place, getElementTypeOrSelf(value.getType()), first), row,
                        first);
    });
    forRowsOfSquare(row, index(0), [&] { emitRow(); });
  };
  forTiles([&] { forRows(forRowsBeside, loops_.lanes); });
}

} // namespace gpuc::codegen
