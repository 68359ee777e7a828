//===- DifferentiateLoss.cpp - The gradient of the recipe's loss --------------===//
//
// Contract: adds `@gradients`, the recipe's loss, or a slice's, and its gradient by every variable that is
// trained, as a gpuc.gradient. What flows back from the loss is the argument `seed`, and what is returned are
// sums, over the rows that the loss is over: for a scale, a count and the whole batch see MeanGradients.h.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/GpucOps.h"
#include "passes/Passes.h"
#include "passes/base/Entries.h"
#include "passes/base/Inline.h"
#include "passes/train/BackwardPass.h"
#include "passes/train/MeanGradients.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

namespace gpuc {
#define GEN_PASS_DEF_DIFFERENTIATELOSSPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

class DifferentiateLossPass : public impl::DifferentiateLossPassBase<DifferentiateLossPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto recipe : module.getOps<ir::RecipeOp>()) {
      if (!recipe.getOptimizer())
        continue;
      if (Operation *gradients = module.lookupSymbol("gradients")) {
        if (isOurs(gradients))
          continue; // This is the output of an earlier run.
        return gradients->emitOpError(
                   "is named @gradients, as gpuc-differentiate-loss names what it makes: rename it"),
               signalPassFailure();
      }
      if (failed(addGradients(module, recipe)))
        return signalPassFailure();
    }
  }

  /// Its results say of which variables they are gradients.
  static bool isOurs(Operation *gradients) {
    auto function = dyn_cast<func::FuncOp>(gradients);
    return function && function.getNumResults() > 2 && function.getResultAttr(2, "gpuc.variable");
  }

  static LogicalResult addGradients(ModuleOp module, ir::RecipeOp recipe) {
    func::FuncOp loss = lossOf(module, recipe);
    if (!loss || loss.isExternal())
      return recipe.emitOpError("trains by @") << recipe.getLoss() << ", which has no body in this module";
    llvm::StringSet<> reached;
    if (failed(findReached(loss, reached)))
      return failure();
    SmallVector<ir::VariableOp> trained;
    for (auto variable : module.getOps<ir::VariableOp>()) {
      if (variable.getFrozen() || variable.getKind() != "parameter")
        continue;
      if (reached.contains(variable.getSymName()))
        trained.push_back(variable);
      else
        variable.emitWarning("variable @")
            << variable.getSymName() << " is not trained: @" << recipe.getLoss() << " does not depend on it";
    }
    if (trained.empty())
      return recipe.emitOpError("has nothing to train: @")
             << recipe.getLoss() << " depends on no variable that is "
             << "not frozen";
    buildGradients(loss, trained);
    return success();
  }

  /// The recipe's, or what gpuc-slice-batch has made of it.
  static func::FuncOp lossOf(ModuleOp module, ir::RecipeOp recipe) {
    for (auto function : module.getOps<func::FuncOp>())
      if (auto partition = function->getAttrOfType<ir::PartitionAttr>(ir::kPartitionAttr);
          partition && partition.isSideBySide())
        return function;
    return module.lookupSymbol<func::FuncOp>(recipe.getLoss());
  }

  static void buildGradients(func::FuncOp loss, ArrayRef<ir::VariableOp> trained) {
    OpBuilder builder(loss);
    builder.setInsertionPointAfter(loss);
    SmallVector<Type> inputs(loss.getArgumentTypes()), types(loss.getResultTypes());
    inputs.push_back(types.front());
    SmallVector<Attribute> variables;
    for (ir::VariableOp variable : trained) {
      types.push_back(variable.getType());
      variables.push_back(FlatSymbolRefAttr::get(variable.getSymNameAttr()));
    }
    auto type = builder.getFunctionType(inputs, types);
    auto function = func::FuncOp::create(builder, loss.getLoc(), "gradients", type);
    function.setPrivate();
    if (Attribute partition = loss->getAttr(ir::kPartitionAttr))
      function->setAttr(ir::kPartitionAttr, partition);
    for (unsigned index = 0; index < loss.getNumArguments(); ++index)
      function.setArgAttrs(index, loss.getArgAttrDict(index));
    function.setArgAttr(loss.getNumArguments(), kRoleAttr, builder.getStringAttr(kSeedRole));
    for (unsigned index = 0; index < loss.getNumResults(); ++index)
      function.setResultAttrs(index, loss.getResultAttrs(index));
    for (auto [index, variable] : llvm::enumerate(variables))
      function.setResultAttr(loss.getNumResults() + index, "gpuc.variable", variable);

    builder.setInsertionPointToStart(function.addEntryBlock());
    for (auto [argument, original] : llvm::zip(function.getArguments(), loss.getArguments()))
      argument.setLoc(original.getLoc());
    auto gradient =
        ir::GradientOp::create(builder, loss.getLoc(), types, FlatSymbolRefAttr::get(loss.getSymNameAttr()),
                               function.getArguments().drop_back(), function.getArguments().back(), nullptr,
                               builder.getArrayAttr(variables));
    func::ReturnOp::create(builder, loss.getLoc(), gradient.getResults());
  }

  /// Finds the variables that the first result of `loss` depends on by way of floating-point values.
  static LogicalResult findReached(func::FuncOp loss, llvm::StringSet<> &reached) {
    auto copy = cast<func::FuncOp>(OpBuilder(loss).clone(*loss));
    llvm::scope_exit eraseCopy([&] { copy.erase(); });
    if (failed(inlineCalls(copy)))
      return failure();
    llvm::SetVector<Value> queue;
    queue.insert(copy.getBody().front().getTerminator()->getOperand(0));
    for (size_t next = 0; next < queue.size(); ++next) {
      Operation *op = queue[next].getDefiningOp();
      if (auto gradient = dyn_cast_or_null<ir::GradientOp>(op))
        return gradient.emitOpError(
            "does not say yet which variables matter to it: gpuc-autodiff comes before "
            "gpuc-differentiate-loss");
      if (auto read = dyn_cast_or_null<ir::ReadOp>(op))
        reached.insert(read.getVariable());
      else if (op && !isa<ir::StopGradientOp>(op))
        for (Value operand : llvm::make_filter_range(op->getOperands(), isFloat))
          queue.insert(operand);
    }
    return success();
  }
};

} // namespace
} // namespace gpuc
