//===- Shape.cpp - Ops that move elements ------------------------------------===//

#include "test/reference/OpTable.h"

using namespace mlir;

namespace gpuc::reference {

/// The result whose element at `index` is the operand's at `source(index)`.
static Tensor moved(Value result, const Tensor &x, llvm::function_ref<Shape(ArrayRef<int64_t>)> source) {
  Tensor moved(typeOf(result));
  forEachIndex(moved.shape(), [&](ArrayRef<int64_t> index) {
    moved.elements[positionOf(index, moved.shape())] = x.elements[positionOf(source(index), x.shape())];
  });
  return moved;
}

static Tensor reshape(ir::ReshapeOp op, Operands x) {
  Tensor result = x[0];
  result.type = typeOf(op.getResult());
  return result;
}

static Tensor transpose(ir::TransposeOp op, Operands x) {
  return moved(op.getResult(), x[0], [&](ArrayRef<int64_t> index) {
    Shape source(index.size());
    for (auto [dim, from] : llvm::enumerate(op.getPermutation()))
      source[from] = index[dim];
    return source;
  });
}

static Tensor broadcast(ir::BroadcastOp op, Operands x) {
  return moved(op.getResult(), x[0], [&](ArrayRef<int64_t> index) {
    return llvm::map_to_vector(op.getDims(), [&](int64_t dim) { return index[dim]; });
  });
}

static Tensor slice(ir::SliceOp op, Operands x) {
  return moved(op.getResult(), x[0], [&](ArrayRef<int64_t> index) {
    Shape source;
    for (auto [dim, coordinate] : llvm::enumerate(index))
      source.push_back(op.getStarts()[dim] + coordinate * op.getStrides()[dim]);
    return source;
  });
}

static Tensor reverse(ir::ReverseOp op, Operands x) {
  return moved(op.getResult(), x[0], [&](ArrayRef<int64_t> index) {
    Shape source(index);
    for (int64_t dim : op.getDims())
      source[dim] = x[0].shape()[dim] - 1 - index[dim];
    return source;
  });
}

static Tensor pad(ir::PadOp op, Operands x) {
  Tensor result(typeOf(op.getResult()));
  double value = op.getValue().convertToDouble();
  Type element = result.type.getElementType();
  Element padding = result.isFloat() ? Element{rounded(value, element), 0}
                                     : Element{0, wrapped(static_cast<int64_t>(value), element)};
  llvm::fill(result.elements, padding);
  forEachIndex(x[0].shape(), [&](ArrayRef<int64_t> index) {
    Shape target;
    for (auto [dim, coordinate] : llvm::enumerate(index))
      target.push_back(op.getLow()[dim] + coordinate * op.getStep(dim));
    result.elements[positionOf(target, result.shape())] = x[0].elements[positionOf(index, x[0].shape())];
  });
  return result;
}

static Tensor concat(ir::ConcatOp op, Operands pieces) {
  Tensor result(typeOf(op.getResult()));
  int64_t start = 0, dim = op.getDim();
  for (const Tensor &piece : pieces) {
    forEachIndex(piece.shape(), [&](ArrayRef<int64_t> index) {
      Shape target(index);
      target[dim] += start;
      result.elements[positionOf(target, result.shape())] = piece.elements[positionOf(index, piece.shape())];
    });
    start += piece.shape()[dim];
  }
  return result;
}

void addShapeOps(OpTable &table) {
  table.add<ir::ReshapeOp>(reshape);
  table.add<ir::TransposeOp>(transpose);
  table.add<ir::BroadcastOp>(broadcast);
  table.add<ir::SliceOp>(slice);
  table.add<ir::ReverseOp>(reverse);
  table.add<ir::PadOp>(pad);
  table.add<ir::ConcatOp>(concat);
}

} // namespace gpuc::reference
