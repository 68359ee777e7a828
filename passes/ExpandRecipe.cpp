//===- ExpandRecipe.cpp - From a recipe to functions with everything explicit ===//
//
// Contract: takes the model functions, `@gradients` (from gpuc-autodiff) and the recipe, and leaves the
// entries of a plan in their place:
//
//   @init        gives every variable its first value, drawn from @seed alone
//   @train_step  forward, backward, gradients / count, their norm, optimizer updates, and what the model
//                assigns (running statistics); (loss_sum, count, lr, grad_norm)
//   @eval_step   loss and accuracy in inference form; (loss_sum, count, correct, correct_count)
//   @predict     the model in inference form
//
// In inference form no variable is assigned.
//
// Each calls nothing. Without an optimizer, or with training=false, there is no @train_step; without a recipe
// no @eval_step either.
//
//===----------------------------------------------------------------------===//

#include "passes/EntryBuilder.h"
#include "passes/Initializers.h"
#include "passes/Inline.h"
#include "passes/Optimizers.h"
#include "passes/Passes.h"

namespace gpuc {
#define GEN_PASS_DEF_EXPANDRECIPEPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

/// The ids of what @init draws: above those of the model's own random ops, which count from 0.
constexpr int64_t kFirstInitialId = int64_t(1) << 27;

/// The scalar tensor type of `element`.
RankedTensorType scalarOf(Type element) { return RankedTensorType::get({}, element); }

Value constant(OpBuilder &builder, Location location, Type type, double value) {
  return ir::ConstantOp::create(builder, location, type, value);
}

Value read(OpBuilder &builder, Location location, ir::VariableOp variable) {
  return ir::ReadOp::create(builder, location, variable.getType(),
                            FlatSymbolRefAttr::get(variable.getSymNameAttr()));
}

void assign(OpBuilder &builder, Location location, ir::VariableOp variable, Value value) {
  ir::AssignOp::create(builder, location, FlatSymbolRefAttr::get(variable.getSymNameAttr()), value);
}

Value broadcastScalar(OpBuilder &builder, Location location, Value scalar, Type type) {
  if (scalar.getType() == type)
    return scalar;
  return ir::BroadcastOp::create(builder, location, type, scalar, builder.getDenseI64ArrayAttr({}));
}

Value cast(OpBuilder &builder, Location location, Value value, Type element) {
  auto type = mlir::cast<RankedTensorType>(value.getType());
  return type.getElementType() == element
             ? value
             : ir::CastOp::create(builder, location, type.clone(element), value).getResult();
}

/// Puts what they compute outside of training in place of ops like dropout, and leaves out what the model
/// assigns: running statistics are training's to change.
void toInference(func::FuncOp function) {
  function.walk([](ir::TrainingOpInterface op) {
    OpBuilder builder(op);
    SmallVector<Value> results = op.buildInference(builder);
    op->replaceAllUsesWith(results);
    op->erase();
  });
  function.walk([](ir::AssignOp op) { op.erase(); });
}

//===----------------------------------------------------------------------===//
// The train step
//===----------------------------------------------------------------------===//

/// Builds @train_step behind the gradients.
class TrainStep {
public:
  TrainStep(ModuleOp module, const Optimizer &optimizer)
      : module_(module), optimizer_(optimizer), entry_(module, "train_step"), builder_(entry_.builder()),
        location_(NameLoc::get(builder_.getStringAttr("update"))) {}

  LogicalResult build(func::FuncOp gradients, ir::VariableOp step) {
    FailureOr<SmallVector<Value>> computed = entry_.append(gradients);
    if (failed(computed))
      return failure();
    Value loss = (*computed)[0], count = (*computed)[1];
    divisor_ = buildDivisor(count);
    lr_ = constant(builder_, location_, scalarOf(builder_.getF64Type()), optimizer_.learningRate());
    Value one = constant(builder_, location_, step.getType(), 1.0);
    step_ = ir::AddOp::create(builder_, location_, step.getType(), read(builder_, location_, step), one);
    assign(builder_, location_, step, step_);

    SmallVector<Value> sums(llvm::drop_begin(*computed, 2));
    for (auto [index, sum] : llvm::enumerate(sums)) {
      auto symbol = gradients.getResultAttrOfType<FlatSymbolRefAttr>(2 + index, "gpuc.variable");
      update(module_.lookupSymbol<ir::VariableOp>(symbol.getAttr()), sum);
    }
    entry_.addResult("loss_sum", loss);
    entry_.addResult("count", count);
    entry_.addResult("lr", lr_);
    entry_.addResult("grad_norm", buildNorm(sums));
    entry_.finish();
    return success();
  }

private:
  /// The count, or 1 where nothing counts: the sums are zero then, and so is what is left of them.
  Value buildDivisor(Value count) {
    Value zero = constant(builder_, location_, count.getType(), 0.0);
    Value one = constant(builder_, location_, count.getType(), 1.0);
    Value any = ir::CompareOp::create(builder_, location_, ir::Comparison::gt, count, zero);
    return ir::SelectOp::create(builder_, location_, count.getType(), any, count, one);
  }

  Value divide(Location location, Value sum) {
    auto type = mlir::cast<RankedTensorType>(sum.getType());
    Value divisor = cast(builder_, location, divisor_, type.getElementType());
    return ir::DivOp::create(builder_, location, type, sum,
                             broadcastScalar(builder_, location, divisor, type));
  }

  /// The 2-norm of all gradients together. It is taken of the sums and divided after, so that the gradients
  /// need not be kept for it.
  Value buildNorm(ArrayRef<Value> sums) {
    Type element = builder_.getF32Type();
    for (Value sum : sums)
      if (getElementTypeOrSelf(sum.getType()).isF64())
        element = builder_.getF64Type();
    Value squares;
    for (Value sum : sums) {
      Location location = NameLoc::get(builder_.getStringAttr("grad_norm"));
      Value wide = cast(builder_, location, sum, element);
      Value square = ir::MulOp::create(builder_, location, wide.getType(), wide, wide);
      auto dims =
          llvm::to_vector(llvm::seq<int64_t>(0, mlir::cast<RankedTensorType>(sum.getType()).getRank()));
      Value part = dims.empty() ? square : ir::SumOp::create(builder_, location, square, dims).getResult();
      squares =
          squares ? ir::AddOp::create(builder_, location, part.getType(), squares, part).getResult() : part;
    }
    Location location = squares.getLoc();
    return divide(location, ir::SqrtOp::create(builder_, location, squares.getType(), squares));
  }

  void update(ir::VariableOp variable, Value sum) {
    Location location = NameLoc::get(variable.getSymNameAttr());
    UpdateOperands operands;
    operands.weight = read(builder_, location, variable);
    operands.gradient = divide(location, sum);
    operands.step = step_;
    operands.lr = lr_;
    SmallVector<ir::VariableOp> variables{variable};
    for (StringRef slot : optimizer_.slots()) {
      variables.push_back(addSlot(variable, slot));
      operands.slots.push_back(read(builder_, location, variables.back()));
    }
    SmallVector<Value> updated = optimizer_.buildUpdate(builder_, location, operands);
    for (auto [target, value] : llvm::zip_equal(variables, updated))
      assign(builder_, location, target, value);
  }

  /// Declares `<variable>/<slot>` behind the last variable of the module.
  ir::VariableOp addSlot(ir::VariableOp variable, StringRef slot) {
    OpBuilder builder(module_.getContext());
    ir::VariableOp last = *llvm::reverse(llvm::to_vector(module_.getOps<ir::VariableOp>())).begin();
    builder.setInsertionPointAfter(last);
    auto zeros = ir::SpecAttr::get(builder.getContext(), "zeros", builder.getDictionaryAttr({}));
    return ir::VariableOp::create(builder, variable.getLoc(), (variable.getSymName() + "/" + slot).str(),
                                  variable.getType(), zeros, /*frozen=*/false, "optimizer");
  }

  ModuleOp module_;
  const Optimizer &optimizer_;
  EntryBuilder entry_;
  OpBuilder &builder_;
  Location location_;
  Value divisor_, lr_, step_;
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

class ExpandRecipePass : public impl::ExpandRecipePassBase<ExpandRecipePass> {
  using ExpandRecipePassBase::ExpandRecipePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto recipes = module.getOps<ir::RecipeOp>();
    ir::RecipeOp recipe = recipes.empty() ? ir::RecipeOp() : *recipes.begin();
    bool done = module.lookupSymbol("init") != nullptr;
    if (done && !recipe)
      return; // The output of an earlier run.
    if (failed(checkNames(module)) || failed(expand(module, recipe)))
      return signalPassFailure();
  }

  /// No function of the model may have the name of one that is made here.
  static LogicalResult checkNames(ModuleOp module) {
    for (StringRef name : {"init", "train_step", "eval_step"})
      if (Operation *taken = module.lookupSymbol(name))
        return taken->emitOpError("is named @")
               << name << ", as gpuc-expand-recipe names what it makes: rename it";
    return success();
  }

  LogicalResult expand(ModuleOp module, ir::RecipeOp recipe) {
    ir::VariableOp seed = findCounter(module, "seed"), step = findCounter(module, "step");
    if (!seed || !step)
      return failure();
    if (training && recipe && recipe.getOptimizer() && failed(expandTraining(module, recipe, step)))
      return failure();
    if (recipe && failed(buildEvalStep(module, recipe)))
      return failure();
    if (auto predict = module.lookupSymbol<func::FuncOp>("predict")) {
      if (failed(inlineCalls(predict)))
        return failure();
      toInference(predict);
    }
    if (failed(buildInit(module, seed)))
      return failure();
    if (recipe && recipe.getSeed())
      module->setAttr("gpuc.seed", recipe.getSeedAttr());
    eraseModel(module, recipe);
    return success();
  }

  LogicalResult expandTraining(ModuleOp module, ir::RecipeOp recipe, ir::VariableOp step) {
    FailureOr<Optimizer> optimizer =
        Optimizer::fromSpec(*recipe.getOptimizer(), [&] { return recipe.emitOpError(); });
    if (failed(optimizer))
      return failure();
    auto gradients = module.lookupSymbol<func::FuncOp>("gradients");
    if (!gradients)
      return recipe.emitOpError(
          "has an optimizer, but there is no @gradients for it: run gpuc-autodiff first");
    return TrainStep(module, *optimizer).build(gradients, step);
  }

  static LogicalResult buildEvalStep(ModuleOp module, ir::RecipeOp recipe) {
    EntryBuilder entry(module, "eval_step");
    SmallVector<std::pair<FlatSymbolRefAttr, SmallVector<StringRef>>> parts = {
        {recipe.getLossAttr(), {"loss_sum", "count"}}};
    if (FlatSymbolRefAttr accuracy = recipe.getAccuracyAttr())
      parts.push_back({accuracy, {"correct", "correct_count"}});
    for (auto &[symbol, names] : parts) {
      auto callee = module.lookupSymbol<func::FuncOp>(symbol.getAttr());
      if (failed(inlineCalls(callee)))
        return failure();
      FailureOr<SmallVector<Value>> results = entry.append(callee);
      if (failed(results))
        return failure();
      for (auto [name, value] : llvm::zip_equal(names, *results))
        entry.addResult(name, value);
    }
    toInference(entry.finish());
    return success();
  }

  static LogicalResult buildInit(ModuleOp module, ir::VariableOp seed) {
    EntryBuilder entry(module, "init");
    OpBuilder &builder = entry.builder();
    Value key = read(builder, seed.getLoc(), seed);
    Value step = constant(builder, seed.getLoc(), seed.getType(), 0.0);
    for (auto [ordinal, variable] : llvm::enumerate(module.getOps<ir::VariableOp>())) {
      if (variable == seed)
        continue; // The runtime gives it before it runs @init.
      FailureOr<Value> value = buildInitialValue(builder, variable, key, step, kFirstInitialId + ordinal);
      if (failed(value))
        return failure();
      assign(builder, value->getLoc(), variable, *value);
    }
    entry.finish();
    return success();
  }

  /// The counter `name`, declared behind the other variables if the model does not; null after an error.
  static ir::VariableOp findCounter(ModuleOp module, StringRef name) {
    OpBuilder builder(module.getBodyRegion());
    auto type = scalarOf(builder.getI64Type());
    if (Operation *known = module.lookupSymbol(name)) {
      auto variable = dyn_cast<ir::VariableOp>(known);
      if (variable && variable.getType() == type && variable.getKind() == "counter")
        return variable;
      known->emitOpError("is named @")
          << name << ", which is the name of a counter, a variable of type " << type;
      return {};
    }
    auto variables = llvm::to_vector(module.getOps<ir::VariableOp>());
    if (!variables.empty())
      builder.setInsertionPointAfter(variables.back());
    auto zeros = ir::SpecAttr::get(builder.getContext(), "zeros", builder.getDictionaryAttr({}));
    return ir::VariableOp::create(builder, module.getLoc(), name, type, zeros, /*frozen=*/false, "counter");
  }

  static void eraseModel(ModuleOp module, ir::RecipeOp recipe) {
    for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (!llvm::is_contained({"init", "train_step", "eval_step", "predict"}, function.getName()))
        function.erase();
    if (recipe)
      recipe.erase();
  }
};

} // namespace
} // namespace gpuc
