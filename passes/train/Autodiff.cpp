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
#include "passes/recipe/LossScale.h"
#include "passes/train/BackwardPass.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

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
    SmallVector<ir::RecipeOp> recipes(module.getOps<ir::RecipeOp>());
    for (ir::RecipeOp recipe : recipes) {
      if (!recipe.getOptimizer() || module.lookupSymbol("gradients"))
        continue; // Nothing is trained, or this is the output of an earlier run.
      FailureOr<func::FuncOp> gradients = addGradients(module, recipe);
      if (failed(gradients) || failed(expandGradients(*gradients, SymbolTable(module))))
        return signalPassFailure();
    }
  }

  /// A function whose gradients are to be expanded once those in the functions that it uses are.
  struct Use {
    func::FuncOp function;
    SmallVector<func::FuncOp> callees;
    size_t next = 0;
  };

  static Use useOf(func::FuncOp function, const SymbolTable &symbols) {
    Use use{function, {}};
    function.walk([&](Operation *op) {
      StringRef callee;
      if (auto call = dyn_cast<func::CallOp>(op))
        callee = call.getCallee();
      else if (auto gradient = dyn_cast<ir::GradientOp>(op))
        callee = gradient.getCallee();
      if (auto known = callee.empty() ? func::FuncOp() : symbols.lookup<func::FuncOp>(callee))
        use.callees.push_back(known);
    });
    return use;
  }

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
      uses.push_back(useOf(next, symbols));
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
    FailureOr<SmallVector<Value>> gradients =
        differentiate(copy.getBody().front(), arguments, variables, gradient.getResultTypes());
    if (failed(gradients))
      return failure();
    Operation *end = copy.getBody().front().getTerminator();
    end->insertOperands(end->getNumOperands(), *gradients);
    opsOfGradients_[gradient->getParentOp()] += llvm::range_size(copy.getBody().front());
    gradient.replaceAllUsesWith(cloneBody(builder, copy, gradient.getInputs()));
    gradient.erase();
    return success();
  }

  /// Appends the backward pass of the first result to the block of a function. Returns the cotangents of the
  /// arguments, then of the variables; zeros where the result does not vary with them. `types` end in theirs.
  static FailureOr<SmallVector<Value>> differentiate(Block &block, ArrayRef<int64_t> arguments,
                                                     ArrayRef<StringRef> variables, TypeRange types) {
    BackwardPass backward(block);
    for (int64_t index : arguments)
      backward.differentiateBy(block.getArgument(index));
    for (StringRef variable : variables)
      backward.differentiateBy(variable);
    backward.findVaried();
    OpBuilder &builder = backward.builder();
    Value loss = block.getTerminator()->getOperand(0);
    if (backward.varies(loss))
      backward.seed(loss, ir::ConstantOp::create(builder, backwardOf(loss.getLoc()), loss.getType(), 1.0));
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

  /// What gpuc-shard-batch has made; null where it has not.
  static func::FuncOp lossOfShard(ModuleOp module) {
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(kShardsAttr))
        return function;
    return {};
  }

  /// Adds `@gradients`: the recipe's loss, or a shard's, differentiated by every variable that is trained.
  FailureOr<func::FuncOp> addGradients(ModuleOp module, ir::RecipeOp recipe) {
    func::FuncOp loss = lossOfShard(module);
    if (!loss)
      loss = module.lookupSymbol<func::FuncOp>(recipe.getLoss());
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
    FailureOr<std::optional<LossScale>> lossScale = LossScale::fromRecipe(recipe);
    if (failed(lossScale))
      return failure();
    if (!*lossScale)
      return buildGradients(loss, trained);
    FailureOr<func::FuncOp> scaled = buildScaledLoss(loss, **lossScale);
    if (failed(scaled))
      return failure();
    func::FuncOp gradients = buildGradients(*scaled, trained);
    multiplyByCount(gradients);
    return gradients;
  }

  /// Gradients of the scaled mean become sums again, which can be added up over microbatches.
  static void multiplyByCount(func::FuncOp gradients) {
    Operation *end = gradients.getBody().front().getTerminator();
    OpBuilder builder(end);
    StepBuilder ops(builder, NameLoc::get(builder.getStringAttr("loss_scale")));
    Value count = buildLocalDivisor(ops, end->getOperand(1), gradients);
    for (OpOperand &gradient : end->getOpOperands().drop_front(2))
      gradient.set(ops.binary<ir::MulOp>(gradient.get(), ops.spread(count, gradient.get().getType())));
  }

  func::FuncOp buildGradients(func::FuncOp loss, ArrayRef<ir::VariableOp> trained) {
    OpBuilder builder(loss);
    builder.setInsertionPointAfter(loss);
    SmallVector<Type> types(loss.getResultTypes());
    SmallVector<Attribute> variables;
    for (ir::VariableOp variable : trained) {
      types.push_back(variable.getType());
      variables.push_back(FlatSymbolRefAttr::get(variable.getSymNameAttr()));
    }
    auto type = builder.getFunctionType(loss.getArgumentTypes(), types);
    auto function = func::FuncOp::create(builder, loss.getLoc(), "gradients", type);
    function.setPrivate();
    if (Attribute shards = loss->getAttr(kShardsAttr))
      function->setAttr(kShardsAttr, shards);
    if (ArrayAttr attributes = loss.getAllArgAttrs())
      function.setAllArgAttrs(attributes);
    for (unsigned index = 0; index < loss.getNumResults(); ++index)
      function.setResultAttrs(index, loss.getResultAttrs(index));
    for (auto [index, variable] : llvm::enumerate(variables))
      function.setResultAttr(loss.getNumResults() + index, "gpuc.variable", variable);

    builder.setInsertionPointToStart(function.addEntryBlock());
    for (auto [argument, original] : llvm::zip_equal(function.getArguments(), loss.getArguments()))
      argument.setLoc(original.getLoc());
    auto gradient =
        ir::GradientOp::create(builder, loss.getLoc(), types, FlatSymbolRefAttr::get(loss.getSymNameAttr()),
                               function.getArguments(), nullptr, builder.getArrayAttr(variables));
    func::ReturnOp::create(builder, loss.getLoc(), gradient.getResults());
    return function;
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
      if (auto read = dyn_cast_or_null<ir::ReadOp>(op))
        reached.insert(read.getVariable());
      else if (op && !isa<ir::StopGradientOp>(op))
        for (Value operand : llvm::make_filter_range(op->getOperands(), isFloat))
          queue.insert(operand);
    }
    return success();
  }

  llvm::DenseSet<Operation *> underway_, expanded_;
  llvm::DenseMap<Operation *, uint64_t> opsOfGradients_; ///< That have been put into a function.
};

} // namespace
} // namespace gpuc
