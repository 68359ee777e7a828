//===- FusedKernel.cpp - A set of ops as the region of one kernel -----------===//

#include "passes/kernels/FusedKernel.h"

#include "passes/base/Locations.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringExtras.h"

namespace gpuc {

using namespace mlir;

//===----------------------------------------------------------------------===//
// FusedKernel
//===----------------------------------------------------------------------===//

FusedKernel::FusedKernel(ArrayRef<Operation *> ops, ArrayRef<Value> outputs, Predicate isCopied)
    : body_(std::make_unique<Block>()), outputs_(outputs) {
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      require(operand, isCopied);
    copy(op);
    locations_.push_back(op->getLoc());
  }
  auto yielded = llvm::map_to_vector(outputs, [&](Value value) { return mapping_.lookup(value); });
  OpBuilder builder(ops.front());
  builder.setInsertionPointToEnd(body_.get());
  ir::YieldOp::create(builder, ops.back()->getLoc(), yielded);
}

void FusedKernel::copy(Operation *op) {
  OpBuilder builder(op);
  builder.setInsertionPointToEnd(body_.get());
  IRMapping operands;
  for (Value operand : op->getOperands())
    operands.map(operand, mapping_.lookup(operand));
  for (auto [original, result] :
       llvm::zip_equal(op->getResults(), builder.clone(*op, operands)->getResults()))
    mapping_[original] = result;
}

/// Makes `value` known in the body: by copying its op, with all that it stands on, or as an argument.
void FusedKernel::require(Value value, Predicate isCopied) {
  if (mapping_.contains(value))
    return;
  Operation *op = value.getDefiningOp();
  if (op && isCopied(op)) {
    for (Value operand : op->getOperands())
      require(operand, isCopied);
    return copy(op);
  }
  mapping_[value] = addArgument(value);
}

BlockArgument FusedKernel::addArgument(Value value) {
  inputs_.push_back(value);
  return body_->addArgument(value.getType(), value.getLoc());
}

ir::FusedOp FusedKernel::build(OpBuilder &builder, StringRef name) {
  Location location = locations_.size() == 1 ? locations_.front() : builder.getFusedLoc(locations_);
  SmallVector<Type> types = llvm::map_to_vector(outputs_, [](Value value) { return value.getType(); });
  auto fused = ir::FusedOp::create(builder, location, types, name, inputs_);
  fused.getBody().push_back(body_.release());
  for (auto [output, result] : llvm::zip_equal(outputs_, fused->getResults()))
    output.replaceAllUsesWith(result);
  return fused;
}

//===----------------------------------------------------------------------===//
// KernelNames
//===----------------------------------------------------------------------===//

/// More ops than this do not make a name clearer.
static constexpr size_t kMaxNamedOps = 4;

/// The layer of the first op that has one, else of an op that reads the kernel: constants, for one, are
/// shared by layers.
static std::string layerOf(ArrayRef<Operation *> ops) {
  SmallVector<Operation *> candidates(ops);
  llvm::append_range(candidates, ops.back()->getUsers());
  for (Operation *op : candidates)
    if (std::string layer = layerName(op->getLoc()); !layer.empty())
      return layer;
  return "";
}

std::string KernelNames::nameFor(ArrayRef<Operation *> ops) {
  SmallVector<std::string> parts;
  for (Operation *op : ops) {
    std::string whole = wholeOf(op->getLoc());
    std::string part = whole.empty() ? op->getName().stripDialect().str() : whole;
    if (parts.size() < kMaxNamedOps && !llvm::is_contained(parts, part))
      parts.push_back(part);
  }
  std::string name = llvm::join(parts, "_");
  if (llvm::any_of(ops, [](Operation *op) { return isBackward(op->getLoc()); }))
    name = "backward." + name;
  if (std::string layer = layerOf(ops); !layer.empty())
    name = layer + "." + name;
  unsigned count = ++used_[name];
  if (count == 1)
    return name;
  std::string numbered = name + "_" + std::to_string(count);
  return used_.try_emplace(numbered, 1).second ? numbered : nameFor(ops);
}

} // namespace gpuc
