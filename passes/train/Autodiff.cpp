//===- Autodiff.cpp - Reverse-mode differentiation ---------------------------===//
//
// Contract: puts a forward and a backward pass in the place of each gpuc.gradient. The forward pass is the
// callee's body, calls inlined; the backward pass follows it (BackwardPass.h). Only what varies with a
// differentiated argument or variable is visited, so frozen variables and dead branches cost nothing.
//
// A gradient inside of a differentiated function is expanded first, which makes derivatives of any order.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/GpucOps.h"
#include "passes/Passes.h"
#include "passes/base/Inline.h"
#include "passes/base/Locations.h"
#include "passes/train/BackwardPass.h"

#include "llvm/ADT/ScopeExit.h"

namespace gpuc {
#define GEN_PASS_DEF_AUTODIFFPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

class AutodiffPass : public impl::AutodiffPassBase<AutodiffPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (failed(expandGradients(function, symbols)))
        return signalPassFailure();
  }

  /// A function whose gradients are to be expanded once those in the functions that it uses are.
  struct Use {
    func::FuncOp function;
    SmallVector<func::FuncOp, 0> callees;
    size_t next = 0;
  };

  /// Expands the gradients in `function`, after those in the functions that it uses. Those may use others, as
  /// deeply as there are functions, so this does not recurse.
  LogicalResult expandGradients(func::FuncOp function, const SymbolTable &symbols) {
    SmallVector<Use> uses;
    auto begin = [&](func::FuncOp next) -> LogicalResult {
      if (expanded_.contains(next))
        return success();
      if (!underway_.insert(next).second)
        return next.emitOpError("@") << next.getName()
                                     << " is used by itself: recursion has no end known when compiling";
      uses.push_back({next, functionsIn(next, &symbols).takeVector()});
      return success();
    };
    if (failed(begin(function)))
      return failure();
    while (!uses.empty()) {
      Use &use = uses.back();
      if (use.next < use.callees.size()) {
        if (failed(begin(use.callees[use.next++])))
          return failure();
        continue;
      }
      for (ir::GradientOp gradient : SmallVector<ir::GradientOp>(use.function.getOps<ir::GradientOp>()))
        if (failed(expand(gradient, symbols.lookup<func::FuncOp>(gradient.getCallee()))))
          return failure();
      underway_.erase(use.function);
      expanded_.insert(use.function);
      uses.pop_back();
    }
    return success();
  }

  /// Puts forward and backward pass in place of `gradient`.
  LogicalResult expand(ir::GradientOp gradient, func::FuncOp callee) {
    if (!callee || callee.isExternal())
      return gradient.emitOpError("differentiates @")
             << gradient.getCallee() << ", which has no body in this module";
    if (opsOfGradients_.lookup(callee) > kMostInlinedOps)
      return gradient.emitOpError("differentiates @")
             << gradient.getCallee() << ", which holds " << opsOfGradients_.lookup(callee)
             << " ops of gradients itself, and " << kMostInlinedOps
             << " are the most: differentiate fewer times";
    // A copy has arguments of its own: two of them may be given the same value, and still are different
    // variables.
    OpBuilder builder(gradient);
    auto copy = cast<func::FuncOp>(OpBuilder(callee).clone(*callee));
    llvm::scope_exit eraseCopy([&] { copy.erase(); });
    if (failed(inlineCalls(copy)))
      return failure();

    SmallVector<StringRef> variables;
    if (std::optional<ArrayAttr> symbols = gradient.getVariables())
      for (auto variable : symbols->getAsRange<FlatSymbolRefAttr>())
        variables.push_back(variable.getValue());
    ArrayRef<int64_t> arguments = gradient.getArguments().value_or(ArrayRef<int64_t>());
    SmallVector<Value> inputs(gradient.getInputs());
    Value seed;
    if (gradient.getSeed()) {
      inputs.push_back(gradient.getSeed());
      seed = copy.getBody().front().addArgument(gradient.getSeed().getType(), gradient.getLoc());
    }
    FailureOr<SmallVector<Value>> gradients =
        differentiate(copy.getBody().front(), arguments, variables, seed, gradient.getResultTypes());
    if (failed(gradients))
      return failure();
    Operation *end = copy.getBody().front().getTerminator();
    end->insertOperands(end->getNumOperands(), *gradients);
    opsOfGradients_[gradient->getParentOp()] += llvm::range_size(copy.getBody().front());
    gradient.replaceAllUsesWith(cloneBody(builder, copy, inputs));
    gradient.erase();
    return success();
  }

  /// Appends the backward pass of the first result, whose cotangent is `seed`, or 1 if that is null, to the
  /// block of a function. Returns the cotangents of the arguments, then of the variables; zeros where the
  /// result does not vary with them. `types` end in theirs.
  static FailureOr<SmallVector<Value>> differentiate(Block &block, ArrayRef<int64_t> arguments,
                                                     ArrayRef<StringRef> variables, Value seed,
                                                     TypeRange types) {
    BackwardPass backward(block);
    for (int64_t index : arguments)
      backward.differentiateBy(block.getArgument(index));
    for (StringRef variable : variables)
      backward.differentiateBy(variable);
    backward.findVaried();
    OpBuilder &builder = backward.builder();
    Value loss = block.getTerminator()->getOperand(0);
    if (!seed)
      seed = ir::ConstantOp::create(builder, backwardOf(loss.getLoc()), loss.getType(), 1.0);
    backward.seed(loss, seed);
    if (failed(backward.run()))
      return failure();

    SmallVector<Value> gradients;
    for (int64_t index : arguments)
      gradients.push_back(backward.ofArgument(block.getArgument(index)));
    for (StringRef variable : variables)
      gradients.push_back(backward.ofVariable(variable));
    for (auto [gradient, type] : llvm::zip_equal(gradients, types.take_back(gradients.size())))
      if (!gradient)
        gradient = ir::ConstantOp::create(builder, builder.getUnknownLoc(), type, 0.0);
    return gradients;
  }

  llvm::DenseSet<Operation *> underway_, expanded_;
  llvm::DenseMap<Operation *, uint64_t> opsOfGradients_; ///< That have been put into a function.
};

} // namespace
} // namespace gpuc
