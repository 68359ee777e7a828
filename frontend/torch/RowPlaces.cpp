//===- RowPlaces.cpp - Along which dimension the batch's rows lie -------------===//
//
// A reshape keeps the order of elements, in which the rows of a place are a stride apart; the place in its
// result is the dimension in which that stride lies. All else moves, keeps or drops dimensions.
//
//===----------------------------------------------------------------------===//

#include "frontend/torch/RowPlaces.h"

#include "dialects/gpuc/GpucOps.h"
#include "frontend/onnx/Tensor.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace gpuc::torch {
namespace {

using Place = std::optional<RowPlace>;

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

int64_t elementsBehind(ArrayRef<int64_t> shape, int64_t dim) {
  int64_t count = 1;
  for (int64_t extent : shape.drop_front(dim + 1))
    count *= extent;
  return count;
}

/// Of the same elements in the same order.
Place reshaped(RowPlace place, ArrayRef<int64_t> from, ArrayRef<int64_t> to, int64_t batch) {
  const int64_t stride = elementsBehind(from, place.dim) * place.inner;
  for (int64_t dim = 0; dim < static_cast<int64_t>(to.size()); ++dim) {
    const int64_t behind = elementsBehind(to, dim);
    if (behind != 0 && stride % behind == 0 && to[dim] * behind % (stride * batch) == 0)
      return RowPlace{dim, stride / behind};
  }
  return std::nullopt;
}

Place atDim(RowPlace place, int64_t dim) { return RowPlace{dim, place.inner}; }

/// In the other of two tensors that have this dimension in common.
Place sameDim(RowPlace place, Value from, Value to) {
  ArrayRef<int64_t> shape = shapeOf(from), other = shapeOf(to);
  return shape.size() == other.size() && shape[place.dim] == other[place.dim] ? Place(place) : std::nullopt;
}

Place behindSum(RowPlace place, ArrayRef<int64_t> dims) {
  if (llvm::is_contained(dims, place.dim))
    return std::nullopt;
  return atDim(place, place.dim - llvm::count_if(dims, [&](int64_t dim) { return dim < place.dim; }));
}

Place beforeSum(RowPlace place, ArrayRef<int64_t> dims) {
  int64_t dim = 0;
  for (int64_t kept = -1;; ++dim)
    if (!llvm::is_contained(dims, dim) && ++kept == place.dim)
      return atDim(place, dim);
}

/// Whether a product has the dimension of this operand where the operand has it.
bool isKept(ir::MatmulOp product, OpOperand &operand, int64_t dim) {
  const int64_t matrix = static_cast<int64_t>(shapeOf(operand.get()).size()) - 2;
  const bool isRowOfLeft = operand.getOperandNumber() == 0 && dim == matrix && !product.getTransposeLhs();
  return dim < matrix || isRowOfLeft;
}

/// From an operand to a result of its op.
Place forward(OpOperand &operand, Value result, RowPlace place, int64_t batch) {
  return llvm::TypeSwitch<Operation *, Place>(operand.getOwner())
      .Case([&](ir::ReshapeOp) { return reshaped(place, shapeOf(operand.get()), shapeOf(result), batch); })
      .Case([&](ir::TransposeOp op) {
        return atDim(place, llvm::find(op.getPermutation(), place.dim) - op.getPermutation().begin());
      })
      .Case([&](ir::BroadcastOp op) { return atDim(place, op.getDims()[place.dim]); })
      .Case<ir::SumOp, ir::MeanOp, ir::ReduceMaxOp, ir::ReduceMinOp, ir::ProdOp>(
          [&](auto op) { return behindSum(place, op.getDims()); })
      .Case([&](ir::MatmulOp op) {
        return isKept(op, operand, place.dim) ? sameDim(place, operand.get(), result) : std::nullopt;
      })
      .Case([&](ir::GatherOp op) -> Place { // what is chosen from stands in front of the indices
        const int64_t chosen = static_cast<int64_t>(op.getDim());
        if (operand.getOperandNumber() == 1)
          return atDim(place, place.dim + chosen);
        return place.dim < chosen ? Place(place) : Place();
      })
      .Default([&](Operation *) { return sameDim(place, operand.get(), result); });
}

/// From a result of an op to an operand.
Place backward(OpOperand &operand, Value result, RowPlace place, int64_t batch) {
  return llvm::TypeSwitch<Operation *, Place>(operand.getOwner())
      .Case([&](ir::ReshapeOp op) { // of a single row what is repeated has as many elements
        return op->hasAttr(onnx::kRepeatsAttr)
                   ? std::nullopt
                   : reshaped(place, shapeOf(result), shapeOf(operand.get()), batch);
      })
      .Case([&](ir::TransposeOp op) { return atDim(place, op.getPermutation()[place.dim]); })
      .Case([&](ir::BroadcastOp op) -> Place {
        const auto *found = llvm::find(op.getDims(), place.dim);
        return found == op.getDims().end() ? Place() : atDim(place, found - op.getDims().begin());
      })
      .Case<ir::SumOp, ir::MeanOp, ir::ReduceMaxOp, ir::ReduceMinOp, ir::ProdOp>(
          [&](auto op) { return beforeSum(place, op.getDims()); })
      .Case([&](ir::MatmulOp op) {
        return isKept(op, operand, place.dim) ? sameDim(place, result, operand.get()) : std::nullopt;
      })
      .Default([&](Operation *op) {
        const bool keepsDims =
            op->hasTrait<ir::Pointwise>() || isa<ir::ConcatOp>(op) || op->getNumOperands() == 1;
        return keepsDims ? sameDim(place, result, operand.get()) : std::nullopt;
      });
}

/// A loss has a target for each prediction, or a label for each row of them: these dimensions lead both.
Place besideInLoss(RowPlace place, Value from, Value to) {
  ArrayRef<int64_t> shape = shapeOf(from), other = shapeOf(to);
  const size_t count = place.dim + 1;
  return other.size() >= count && shape.take_front(count) == other.take_front(count) ? Place(place)
                                                                                     : std::nullopt;
}

void followBesideInLoss(Operation &op, RowPlaces &places) {
  for (Value from : op.getOperands())
    if (auto found = places.find(from); found != places.end()) {
      const RowPlace place = found->second;
      for (Value to : op.getOperands())
        if (Place beside = besideInLoss(place, from, to))
          places.try_emplace(to, *beside);
    }
}

} // namespace

void followRows(Block &block, int64_t batch, RowPlaces &places) {
  for (Operation &op : block.without_terminator())
    for (OpOperand &operand : op.getOpOperands()) {
      auto found = places.find(operand.get());
      if (found == places.end())
        continue;
      const RowPlace from = found->second;
      for (Value result : op.getResults())
        if (Place place = forward(operand, result, from, batch))
          places.try_emplace(result, *place);
    }
}

void followRowsBack(Block &block, int64_t batch, RowPlaces &places) {
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    if (isa<ir::LossOpInterface>(op))
      followBesideInLoss(op, places);
    for (Value result : op.getResults()) {
      auto found = places.find(result);
      if (found == places.end())
        continue;
      const RowPlace from = found->second;
      for (OpOperand &operand : op.getOpOperands())
        if (Place place = backward(operand, result, from, batch))
          places.try_emplace(operand.get(), *place);
    }
  }
}

} // namespace gpuc::torch
