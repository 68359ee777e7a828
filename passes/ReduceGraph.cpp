//===- ReduceGraph.cpp - Makes a module that shows a defect smaller -----------===//
//
// Contract: every try is a copy of the module with one edit and without what is dead after it. The copy is
// kept if it is valid and the test finds it interesting. Ops are gone through from the end: a constant there
// makes all before it superfluous at once.
//
//===----------------------------------------------------------------------===//

#include "passes/ReduceGraph.h"

#include "dialects/gpuc/GpucOps.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Reducer/Tester.h"

using namespace mlir;

namespace gpuc {

//===----------------------------------------------------------------------===//
// What can be done to an op
//===----------------------------------------------------------------------===//

/// Changes the op, which is one of a copy: nothing but numbers and attributes is captured.
using Edit = std::function<void(Operation *)>;

/// A half, or an integer that is an index of whatever has elements.
static Value buildConstant(OpBuilder &builder, Location location, RankedTensorType type) {
  Type element = type.getElementType();
  TypedAttr value = isa<FloatType>(element) ? TypedAttr(builder.getFloatAttr(element, 0.5))
                                            : TypedAttr(builder.getIntegerAttr(element, 0));
  return ir::ConstantOp::create(builder, location, type, value);
}

static void replaceByConstant(Operation *op, unsigned result) {
  OpBuilder builder(op);
  Value old = op->getResult(result);
  old.replaceAllUsesWith(buildConstant(builder, op->getLoc(), cast<RankedTensorType>(old.getType())));
}

static void addReplacements(Operation *op, SmallVectorImpl<Edit> &edits) {
  for (OpResult result : op->getResults()) {
    if (result.use_empty() || !isa<RankedTensorType>(result.getType()))
      continue;
    const unsigned number = result.getResultNumber();
    edits.push_back([number](Operation *copy) { replaceByConstant(copy, number); });
    for (OpOperand &operand : op->getOpOperands())
      if (operand.get().getType() == result.getType())
        edits.push_back([number, from = operand.getOperandNumber()](Operation *copy) {
          copy->getResult(number).replaceAllUsesWith(copy->getOperand(from));
        });
  }
}

/// The edits of an op, those that take most away first.
static SmallVector<Edit> editsOf(Operation *op, ModuleOp module) {
  SmallVector<Edit> edits;
  if (auto recipe = dyn_cast<ir::RecipeOp>(op)) {
    for (NamedAttribute entry : recipe->getAttrs())
      if (entry.getName() != recipe.getLossAttrName())
        edits.push_back([name = entry.getName()](Operation *copy) { copy->removeAttr(name); });
    return edits;
  }
  if (op->hasTrait<OpTrait::IsTerminator>() || isa<ModuleOp, ir::ConstantOp>(op))
    return edits;
  auto symbol = dyn_cast<SymbolOpInterface>(op);
  if (op->use_empty() && (!symbol || SymbolTable::symbolKnownUseEmpty(symbol, module)))
    edits.push_back([](Operation *copy) { copy->erase(); });
  addReplacements(op, edits);
  return edits;
}

static void eraseDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        eraseDead(inner);
    if (isOpTriviallyDead(&op))
      op.erase();
  }
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

class ReduceGraphPass : public PassWrapper<ReduceGraphPass, OperationPass<ModuleOp>> {
public:
  ReduceGraphPass() = default;
  ReduceGraphPass(const ReduceGraphPass &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "reduce-graph"; }
  StringRef getDescription() const override {
    return "Leave out of a module what its defect does not need, as long as `test` finds it interesting";
  }

private:
  void runOnOperation() override {
    if (!isInteresting(getOperation())) {
      getOperation().emitError() << "is not interesting: '" << test
                                 << "' exits with 0 for it; it must exit with 1 for what shows the defect";
      return signalPassFailure();
    }
    while (reduceOnce()) {
    }
  }

  bool isInteresting(ModuleOp module) {
    ScopedDiagnosticHandler quiet(&getContext(), [](Diagnostic &) { return success(); });
    return succeeded(verify(module)) &&
           Tester(test, {}).isInteresting(module).first == Tester::Interestingness::True;
  }

  /// All ops of a module, those in regions before the op that has them: a copy's are in the same order.
  static SmallVector<Operation *> opsOf(ModuleOp module) {
    SmallVector<Operation *> ops;
    module->walk([&](Operation *op) { ops.push_back(op); });
    return ops;
  }

  /// Keeps a copy of the module in which op number `index` is edited, if it is interesting.
  bool keep(size_t index, const Edit &edit) {
    OwningOpRef<ModuleOp> copy = getOperation().clone();
    edit(opsOf(*copy)[index]);
    eraseDead(*copy->getBody());
    if (!isInteresting(*copy))
      return false;
    getOperation().getBodyRegion().takeBody(copy->getBodyRegion());
    return true;
  }

  /// Tries each op once, from the end; whether any went.
  bool reduceOnce() {
    bool changed = false;
    for (size_t index = opsOf(getOperation()).size(); index-- > 0;) {
      SmallVector<Operation *> ops = opsOf(getOperation());
      if (index >= ops.size())
        continue;
      SmallVector<Edit> edits = editsOf(ops[index], getOperation());
      changed |= llvm::any_of(edits, [&](const Edit &edit) { return keep(index, edit); });
    }
    return changed;
  }

  Option<std::string> test{*this, "test",
                           llvm::cl::desc("Program that exits with 1 for an interesting module's file")};
};

} // namespace

void registerReduceGraphPass() { PassRegistration<ReduceGraphPass>(); }

} // namespace gpuc
