//===- Rows.cpp - What a function does to the rows of a batch -----------------===//
//
// A value is one of three:
//
//   rows    its leading dimension is the batch, as a `?` shows
//   sum     a sum over rows, or what is linear in such sums
//   shared  made of neither: weights and constants
//
// Each op must keep rows apart, or add them up; and nothing but more sums may be made of a sum.
//
//===----------------------------------------------------------------------===//

#include "passes/batch/Parts.h"

#include "passes/base/Entries.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace gpuc {
namespace {

bool isRows(Value value) { return isDynamic(value.getType()); }

class Walk {
public:
  /// Whether rows stay apart in the block; added up they may be where `maySum`.
  bool visit(Block &block, bool maySum) {
    return llvm::all_of(block.without_terminator(), [&](Operation &op) { return visit(&op, maySum); });
  }

  bool isSum(Value value) const { return sums_.contains(value); }

private:
  bool visit(Operation *op, bool maySum) {
    if (llvm::any_of(op->getOperands(), [&](Value operand) { return isSum(operand); }))
      return isLinear(op) && isMadeSum(op);
    bool readsRows = llvm::any_of(op->getOperands(), isRows);
    bool makesRows = llvm::any_of(op->getResults(), isRows);
    if (readsRows && !makesRows)
      return maySum && addsUp(op) && isMadeSum(op);
    if (readsRows)
      return llvm::all_of(op->getResults(), isRows) && keepsApart(op);
    return makesRows ? repeats(op) : isShared(op);
  }

  /// Integers wrap and truncate: sums of parts may be others.
  bool isMadeSum(Operation *op) {
    sums_.insert(op->result_begin(), op->result_end());
    return llvm::all_of(op->getResultTypes(),
                        [](Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); });
  }

  /// Sums of sums, and multiples of one.
  bool isLinear(Operation *op) const {
    bool allSums = llvm::all_of(op->getOperands(), [&](Value operand) { return isSum(operand); });
    if (isa<ir::AddOp, ir::SubOp, ir::NegOp, ir::CastOp, ir::ReshapeOp>(op))
      return allSums;
    if (isa<ir::MulOp>(op))
      return !allSums;
    auto quotient = dyn_cast<ir::DivOp>(op);
    return quotient && !isSum(quotient.getRhs());
  }

  /// In a linear loss over rows as classes each knows all others.
  static bool addsUp(Operation *op) {
    if (auto loss = dyn_cast<ir::LinearCrossEntropyOp>(op))
      return !isRows(loss.getWeight());
    if (auto accuracy = dyn_cast<ir::LinearAccuracyOp>(op))
      return !isRows(accuracy.getWeight());
    return isa<ir::LossOpInterface, ir::SumOp>(op);
  }

  /// What has the same in each row. Row numbers differ, as do the numbers of what is drawn, but of those
  /// addPartNumber takes care, unless the op says itself from where it draws.
  static bool repeats(Operation *op) {
    auto iota = dyn_cast<ir::IotaOp>(op);
    return isa<ir::ConstantOp, ir::BroadcastOp>(op) || (iota && iota.getDim() != 0) || isPlainRandom(op);
  }

  static bool isPlainRandom(Operation *op) {
    auto bits = dyn_cast<ir::RandomBitsOp>(op);
    return isa<ir::RandomOpInterface>(op) && !(bits && bits.getFrom());
  }

  /// Random numbers of what has no rows may have the id of others that do.
  static bool isShared(Operation *op) {
    return isMemoryEffectFree(op) && !isa<ir::RandomOpInterface>(op) &&
           (op->getNumRegions() == 0 || isa<ir::ScanOp>(op));
  }

  bool keepsApart(Operation *op) {
    if (op->hasTrait<ir::Pointwise>())
      return true;
    if (auto scan = dyn_cast<ir::ScanOp>(op))
      return visit(scan.getBlock(), /*maySum=*/false);
    return llvm::TypeSwitch<Operation *, bool>(op)
        .Case<ir::SoftmaxOp, ir::LogSoftmaxOp, ir::CumsumOp>([](auto along) { return along.getDim() != 0; })
        // Of these the types say it: a `?` stays in front.
        .Case<ir::ReshapeOp, ir::TransposeOp, ir::BroadcastOp, ir::SliceOp, ir::ConcatOp, ir::ReverseOp,
              ir::GatherOp, ir::MatmulOp>([](auto) { return true; })
        // And of these: along the rows nothing is folded, or they would be gone.
        .Case<ir::SumOp, ir::MeanOp, ir::ReduceMaxOp, ir::ReduceMinOp, ir::ProdOp, ir::ArgmaxOp>(
            [](auto) { return true; })
        .Case<ir::DropoutOp, ir::LayerNormOp, ir::RmsNormOp>([](auto) { return true; })
        .Default(false);
  }

  DenseSet<Value> sums_;
};

} // namespace

bool addsUpIndependentRows(func::FuncOp function) {
  if (argumentOfRole(function, kRowsRole))
    return false; // In a slice that is another number.
  Walk walk;
  Block &body = function.getBody().front();
  return walk.visit(body, /*maySum=*/true) &&
         llvm::all_of(body.getTerminator()->getOperands(), [&](Value value) { return walk.isSum(value); });
}

} // namespace gpuc
