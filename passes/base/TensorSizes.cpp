//===- TensorSizes.cpp - Tensors whose bytes can be counted ----------------===//

#include "passes/base/TensorSizes.h"

#include "dialects/gpuc/GpucOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace gpuc {

static bool isCountable(RankedTensorType type) {
  int64_t bytes = ir::elementBytes(type.getElementType());
  return llvm::none_of(type.getShape(), [&](int64_t extent) {
    return !ShapedType::isDynamic(extent) && llvm::MulOverflow(bytes, extent, bytes);
  });
}

static LogicalResult check(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || isCountable(type))
    return success();
  return emitError(value.getLoc()) << "tensor of type " << type
                                   << " has 2^63 bytes or more; is the batch too large?";
}

/// Whether `holds` all values that ops make and blocks take, up to the first one that it does not.
static LogicalResult forAllValues(Operation *root, function_ref<LogicalResult(Value)> holds) {
  auto all = [&](ValueRange values) {
    return llvm::all_of(values, [&](Value value) { return succeeded(holds(value)); });
  };
  return success(!root->walk<WalkOrder::PreOrder>([&](Operation *op) {
                        bool fits = all(op->getResults());
                        for (Region &region : op->getRegions())
                          for (Block &block : region)
                            fits = fits && all(block.getArguments());
                        return WalkResult(success(fits));
                      })
                      .wasInterrupted());
}

LogicalResult checkTensorSizes(Operation *root) { return forAllValues(root, check); }

static bool holdsNothing(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && llvm::is_contained(tensor.getShape(), 0);
}

static bool isInput(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

LogicalResult checkExtents(Operation *root) {
  auto refuse = [](Location location, StringRef what, Type type) {
    return emitError(location) << what << " of type " << type << " holds nothing: every extent of "
                               << (what == "input" ? "an " : "a ") << what << " must be at least 1";
  };
  WalkResult variables = root->walk([&](ir::VariableOp variable) -> WalkResult {
    if (!holdsNothing(variable.getType()))
      return WalkResult::advance();
    return refuse(variable.getLoc(), "variable", variable.getType());
  });
  if (variables.wasInterrupted())
    return failure();
  return forAllValues(root, [&](Value value) -> LogicalResult {
    if (!holdsNothing(value.getType()))
      return success();
    return refuse(value.getLoc(), isInput(value) ? "input" : "tensor", value.getType());
  });
}

/// Whether an op of the gpuc dialect could have made a value of this type.
static bool isTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && ir::hasStaticOrBatchShape(tensor) && ir::isElement(tensor.getElementType());
}

static LogicalResult checkTypes(func::FuncOp function) {
  for (auto [role, types] :
       {std::pair("takes", function.getArgumentTypes()), {"gives", function.getResultTypes()}})
    for (Type type : types)
      if (!isTensor(type))
        return function.emitOpError("@")
               << function.getName() << " " << role << " " << type
               << ": a function's values are tensors of static shape, as tensor<i1> is "
                  "for one number";
  if (!function.isExternal() && !function.getBody().hasOneBlock())
    return function.emitOpError("has control flow: a function is one block");
  return success();
}

LogicalResult checkValues(Operation *root) {
  return success(!root->walk<WalkOrder::PreOrder>([&](Operation *op) {
                        if (auto function = dyn_cast<func::FuncOp>(op);
                            function && failed(checkTypes(function)))
                          return WalkResult::interrupt();
                        if (!op->getParentOfType<func::FuncOp>())
                          return WalkResult::advance();
                        for (Type type : op->getResultTypes())
                          if (!isTensor(type))
                            return op->emitOpError("makes a value of type ")
                                       << type << ", which is no tensor that functions compute with",
                                   WalkResult::interrupt();
                        return WalkResult::advance();
                      })
                      .wasInterrupted());
}

} // namespace gpuc
