//===- EvaluateGradients.cpp - Gradients that are taken outside of training ---===//
//
// Contract: what is computed outside of training is in inference form, and so is what it differentiates. A
// derivative hangs on the form: a batch norm's mean moves with x, a running mean does not. So before
// gpuc-autodiff writes backward passes, @predict, each entry, and the recipe's loss and accuracy as
// evaluation sees them get copies in inference form of the functions by which they come to a gradient.
// Training keeps the originals. Nothing is copied where no gradient is taken, or no form matters.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/GpucOps.h"
#include "passes/Passes.h"
#include "passes/base/Inline.h"
#include "passes/train/InferenceForm.h"

namespace gpuc {
#define GEN_PASS_DEF_EVALUATEGRADIENTSPASS
#include "passes/Passes.h.inc"

using namespace mlir;

void toInferenceForm(func::FuncOp function) {
  function.walk([](ir::TrainingOpInterface op) {
    OpBuilder builder(op);
    SmallVector<Value> results = op.buildInference(builder);
    op->replaceAllUsesWith(results);
    op->erase();
  });
}

namespace {

using Functions = llvm::SetVector<func::FuncOp>;

template <typename Op> bool anyHolds(const Functions &functions) {
  return llvm::any_of(functions, [](func::FuncOp function) {
    return function.walk([](Op) { return WalkResult::interrupt(); }).wasInterrupted();
  });
}

/// In the body of `user`.
void renameUses(func::FuncOp user, func::FuncOp original, func::FuncOp other) {
  [[maybe_unused]] LogicalResult renamed =
      SymbolTable::replaceAllSymbolUses(original.getSymNameAttr(), other.getSymNameAttr(), &user.getBody());
  assert(succeeded(renamed) && "all that holds symbols is registered");
}

class EvaluateGradientsPass : public impl::EvaluateGradientsPassBase<EvaluateGradientsPass> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (function->hasAttr(kEntryAttr) || function.getName() == "predict")
        evaluateEntry(function, symbols);
    for (auto recipe : getOperation().getOps<ir::RecipeOp>())
      for (FlatSymbolRefAttr symbol : {recipe.getLossAttr(), recipe.getAccuracyAttr()})
        if (auto function = symbol ? symbols.lookup<func::FuncOp>(symbol.getAttr()) : func::FuncOp())
          if (func::FuncOp copy = copyInInferenceForm(function, symbols))
            function->setAttr(kEvaluatedAsAttr, FlatSymbolRefAttr::get(copy.getSymNameAttr()));
  }

  /// The entry becomes the copy. What trains by it, as a loss does by @predict, calls what it was.
  void evaluateEntry(func::FuncOp entry, SymbolTable &symbols) {
    func::FuncOp copy = copyInInferenceForm(entry, symbols);
    if (!copy)
      return;
    Region evaluated;
    evaluated.takeBody(copy.getBody());
    copy.getBody().takeBody(entry.getBody());
    entry.getBody().takeBody(evaluated);
    for (auto function : getOperation().getOps<func::FuncOp>())
      renameUses(function, entry, copy);
  }

  /// A copy of `function`, and of all that it calls or differentiates; null if none is needed.
  static func::FuncOp copyInInferenceForm(func::FuncOp function, SymbolTable &symbols) {
    Functions reached;
    reached.insert(function);
    for (size_t next = 0; next < reached.size(); ++next)
      reached.insert_range(functionsIn(reached[next], &symbols));
    if (!anyHolds<ir::GradientOp>(reached) || !anyHolds<ir::TrainingOpInterface>(reached))
      return {};
    SmallVector<func::FuncOp> copies;
    for (func::FuncOp original : reached) {
      auto copy = cast<func::FuncOp>(original->clone());
      copy.setPrivate();
      copy->removeAttr(kEntryAttr);
      symbols.insert(copy, std::next(Block::iterator(original))); // which finds a name for it
      copies.push_back(copy);
    }
    for (func::FuncOp copy : copies) {
      for (size_t i = 0; i < copies.size(); ++i)
        renameUses(copy, reached[i], copies[i]);
      toInferenceForm(copy);
    }
    return copies.front();
  }
};

} // namespace
} // namespace gpuc
