//===- Autodiff.cpp - Reverse-mode differentiation ---------------------------===//
//
// Contract: puts a forward and a backward pass in the place of each gpuc.gradient. The forward pass is the
// callee's body, calls inlined; the backward pass visits its ops in reverse and asks each
// (DifferentiableOpInterface) for the cotangents of its operands, adding up where a value has several uses.
// Only what varies with a differentiated argument or variable is visited, so frozen variables and dead
// branches cost nothing.
//
// A gradient inside of a differentiated function is expanded first, which makes derivatives of any order.
//
// An op's backward ops may read of the forward pass only what the op declares in getResiduals: recomputation
// later trusts that list, so a breach is an error here, at the op.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/GpucOps.h"
#include "passes/Inline.h"
#include "passes/Locations.h"
#include "passes/Passes.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

namespace gpuc {
#define GEN_PASS_DEF_AUTODIFFPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

//===----------------------------------------------------------------------===//
// The backward pass of one function
//===----------------------------------------------------------------------===//

/// Differentiates the first result of a function of one block without calls, in place.
class BackwardPass {
public:
  BackwardPass(func::FuncOp function, ArrayRef<int64_t> arguments, ArrayRef<StringRef> variables)
      : block_(function.getBody().front()), builder_(block_.getTerminator()) {
    for (int64_t index : arguments)
      varied_.insert(block_.getArgument(index));
    wrt_.insert(variables.begin(), variables.end());
    findVaried();
  }

  /// Appends the backward pass to the block.
  LogicalResult run() {
    SmallVector<Operation *> forward;
    for (Operation &op : block_.without_terminator())
      forward.push_back(&op);
    Value loss = block_.getTerminator()->getOperand(0);
    if (varied_.contains(loss)) {
      Location location = backwardOf(loss.getLoc());
      cotangents_[loss] = ir::ConstantOp::create(builder_, location, loss.getType(), 1.0);
    }
    for (Operation *op : llvm::reverse(forward))
      if (failed(visit(op)))
        return failure();
    eraseDead(forward.empty() ? nullptr : forward.back());
    return success();
  }

  /// The cotangent of the function's argument `index`; zeros if the loss does not vary with it.
  Value ofArgument(int64_t index) {
    Value argument = block_.getArgument(index);
    Value cotangent = cotangents_.lookup(argument);
    return cotangent ? cotangent : zeros(argument.getLoc(), argument.getType());
  }

  /// The cotangent of a variable, over all places that read it; zeros if the loss does not vary with it.
  Value ofVariable(StringRef variable, Type type) {
    Value sum;
    for (auto read : block_.getOps<ir::ReadOp>())
      if (Value cotangent = read.getVariable() == variable ? cotangents_.lookup(read.getResult()) : Value())
        sum = sum ? add(backwardOf(read.getLoc()), sum, cotangent) : cotangent;
    return sum ? sum : zeros(builder_.getUnknownLoc(), type);
  }

private:
  /// Marks what a change of a differentiated argument or variable changes.
  void findVaried() {
    for (Operation &op : block_.without_terminator()) {
      auto read = dyn_cast<ir::ReadOp>(op);
      bool varies = (read && wrt_.contains(read.getVariable())) ||
                    llvm::any_of(op.getOperands(), [&](Value value) { return varied_.contains(value); });
      for (Value result : op.getResults())
        if (varies && isFloat(result))
          varied_.insert(result);
    }
  }

  LogicalResult visit(Operation *op) {
    SmallVector<Value> given =
        llvm::map_to_vector(op->getResults(), [&](Value value) { return cotangents_.lookup(value); });
    if (isa<ir::ReadOp>(op) || llvm::none_of(given, [](Value value) { return value != nullptr; }))
      return success();
    auto differentiable = dyn_cast<ir::DifferentiableOpInterface>(op);
    if (!differentiable)
      return op->emitOpError(
          "stands between the loss and what it is differentiated by, but has no derivative");

    Operation *before = block_.getTerminator()->getPrevNode();
    SmallVector<Value> computed;
    if (failed(differentiable.buildVJP(builder_, given, computed)))
      return op->emitOpError("has no derivative for these operands");
    if (failed(checkVJP(differentiable, given, computed, before)))
      return failure();
    for (auto [operand, cotangent] : llvm::zip_equal(op->getOperands(), computed))
      if (cotangent && varied_.contains(operand))
        accumulate(backwardOf(op->getLoc()), operand, cotangent);
    return success();
  }

  /// Checks what a VJP built after `before`, and moves it to the op's place in the backward pass.
  LogicalResult checkVJP(ir::DifferentiableOpInterface op, ArrayRef<Value> given, ArrayRef<Value> computed,
                         Operation *before) {
    if (computed.size() != op->getNumOperands())
      return op->emitOpError("gives ")
             << computed.size() << " cotangents for " << op->getNumOperands() << " operands";
    llvm::SmallDenseSet<Value> readable(given.begin(), given.end());
    readable.insert_range(op.getResiduals());
    for (auto [index, cotangent] : llvm::enumerate(computed)) {
      if (cotangent && cotangent.getType() != op->getOperand(index).getType())
        return op->emitOpError("gives operand ") << index << " of type " << op->getOperand(index).getType()
                                                 << " a cotangent of type " << cotangent.getType();
    }
    for (Operation *built = before ? before->getNextNode() : &block_.front(); built != block_.getTerminator();
         built = built->getNextNode()) {
      for (Value operand : built->getOperands())
        if (!readable.contains(operand))
          return op->emitOpError("reads, in its backward op ")
                 << built->getName() << ", a value of the forward pass that "
                 << "it does not declare as residual, of type " << operand.getType();
      readable.insert_range(built->getResults());
      built->setLoc(backwardOf(op->getLoc()));
    }
    return success();
  }

  void accumulate(Location location, Value value, Value cotangent) {
    Value &sum = cotangents_[value];
    sum = sum ? add(location, sum, cotangent) : cotangent;
  }

  Value add(Location location, Value lhs, Value rhs) {
    return ir::AddOp::create(builder_, location, lhs.getType(), lhs, rhs);
  }

  Value zeros(Location location, Type type) { return ir::ConstantOp::create(builder_, location, type, 0.0); }

  /// Erases the backward ops, all after `forward`, that no argument's and no variable's cotangent needs.
  void eraseDead(Operation *forward) {
    llvm::SmallDenseSet<Value> kept;
    for (auto [value, cotangent] : cotangents_)
      if (isa<BlockArgument>(value) || value.getDefiningOp<ir::ReadOp>())
        kept.insert(cotangent);
    for (Operation *op = block_.getTerminator()->getPrevNode(); op != forward;) {
      Operation *previous = op->getPrevNode();
      bool needed = llvm::any_of(op->getResults(), [&](Value value) { return kept.contains(value); });
      if (!needed && isOpTriviallyDead(op))
        op->erase();
      op = previous;
    }
  }

  Block &block_;
  OpBuilder builder_;
  llvm::StringSet<> wrt_;
  llvm::DenseSet<Value> varied_;
  llvm::DenseMap<Value, Value> cotangents_;
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

class AutodiffPass : public impl::AutodiffPassBase<AutodiffPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (failed(expandGradients(function)))
        return signalPassFailure();
    SmallVector<ir::RecipeOp> recipes(module.getOps<ir::RecipeOp>());
    for (ir::RecipeOp recipe : recipes) {
      if (!recipe.getOptimizer() || module.lookupSymbol("gradients"))
        continue; // Nothing is trained, or this is the output of an earlier run.
      FailureOr<func::FuncOp> gradients = addGradients(module, recipe);
      if (failed(gradients) || failed(expandGradients(*gradients)))
        return signalPassFailure();
    }
  }

  /// Expands the gradients in `function`, after those in the functions that it uses.
  LogicalResult expandGradients(func::FuncOp function) {
    if (!function || expanded_.contains(function))
      return success();
    if (!underway_.insert(function).second)
      return function.emitOpError("is used by itself: recursion has no end known when compiling");
    SymbolTable symbols(getOperation());
    auto callees = function.walk([&](Operation *op) {
      StringRef callee;
      if (auto call = dyn_cast<func::CallOp>(op))
        callee = call.getCallee();
      else if (auto gradient = dyn_cast<ir::GradientOp>(op))
        callee = gradient.getCallee();
      return WalkResult(callee.empty() ? success() : expandGradients(symbols.lookup<func::FuncOp>(callee)));
    });
    if (callees.wasInterrupted())
      return failure();
    SmallVector<ir::GradientOp> gradients(function.getOps<ir::GradientOp>());
    for (ir::GradientOp gradient : gradients)
      if (failed(expand(gradient, symbols.lookup<func::FuncOp>(gradient.getCallee()))))
        return failure();
    underway_.erase(function);
    expanded_.insert(function);
    return success();
  }

  /// Puts forward and backward pass in place of `gradient`.
  LogicalResult expand(ir::GradientOp gradient, func::FuncOp callee) {
    if (!callee || callee.isExternal())
      return gradient.emitOpError("differentiates @")
             << gradient.getCallee() << ", which has no body in this module";
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
    BackwardPass backward(copy, arguments, variables);
    if (failed(backward.run()))
      return failure();

    Operation *end = copy.getBody().front().getTerminator();
    SmallVector<Value> results(end->getOperands());
    for (int64_t index : arguments)
      results.push_back(backward.ofArgument(index));
    for (StringRef variable : variables)
      results.push_back(backward.ofVariable(variable, gradient.getResult(results.size()).getType()));
    end->setOperands(results);
    gradient.replaceAllUsesWith(cloneBody(builder, copy, gradient.getInputs()));
    gradient.erase();
    return success();
  }

  /// Adds `@gradients`: the recipe's loss, differentiated by every variable that is trained.
  FailureOr<func::FuncOp> addGradients(ModuleOp module, ir::RecipeOp recipe) {
    auto loss = module.lookupSymbol<func::FuncOp>(recipe.getLoss());
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
    return buildGradients(loss, trained);
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
};

} // namespace
} // namespace gpuc
