//===- MixedPrecision.cpp - Products in bf16, f16 or tf32 --------------------===//
//
// Contract: loss, accuracy and predict compute in the recipe's precision, each op as PrecisionLists.h says.
// Arguments, results and variables keep their types: a variable is f32, and cast once for all that read it in
// the lower precision. f64 and integers are left alone. Standing before gpuc-autodiff, the pass decides the
// forward pass; the backward pass follows by the derivatives of the casts, so that the gradient of a weight
// is one of the lower precision, cast to f32. For tf32 products are marked (dialects/gpuc/Tf32.h), and
// nothing is cast.
//
// A function is built anew, op by op, from the types that operands have come to. A loop is built with the
// narrowest types for what it carries, then with wider ones, until its body yields what it takes.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/Tf32.h"
#include "passes/Passes.h"
#include "passes/base/Decisions.h"
#include "passes/base/Inline.h"
#include "passes/base/Locations.h"
#include "passes/precision/PrecisionOperands.h"
#include "passes/precision/PrecisionPolicy.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace gpuc {
#define GEN_PASS_DEF_MIXEDPRECISIONPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }

/// Whether a value as the model has it is one that the pass may change the type of.
bool isSingle(Value value) { return elementOf(value).isF32(); }

/// Whether the op computes in a type that the model chose itself, such as f64.
bool hasOtherFloats(Operation *op) {
  auto isOther = [](Value value) { return isa<FloatType>(elementOf(value)) && !isSingle(value); };
  return llvm::any_of(op->getOperands(), isOther) || llvm::any_of(op->getResults(), isOther);
}

Attribute decisionOver(Operation *op, Type element, StringRef why) {
  std::string type;
  llvm::raw_string_ostream(type) << element;
  return gpuc::decisionOver(op, {type, why});
}

//===----------------------------------------------------------------------===//
// A function
//===----------------------------------------------------------------------===//

class Rewriter {
public:
  Rewriter(const PrecisionPolicy &policy, SmallVectorImpl<Attribute> &decisions)
      : policy_(policy), decisions_(decisions) {}

  LogicalResult run(func::FuncOp function) {
    Block &before = function.getBody().front();
    auto *after = new Block();
    function.getBody().push_back(after);
    for (BlockArgument argument : before.getArguments())
      values_.map(argument, after->addArgument(argument.getType(), argument.getLoc()));
    OpBuilder builder = OpBuilder::atBlockEnd(after);
    if (failed(rewrite(before, builder)))
      return failure();
    SmallVector<Value> results;
    for (Value result : before.getTerminator()->getOperands())
      results.push_back(casted(values_.lookup(result), elementOf(result)));
    func::ReturnOp::create(builder, before.getTerminator()->getLoc(), results);
    before.dropAllDefinedValueUses();
    before.erase();
    return success();
  }

private:
  /// All ops of a block but its terminator.
  LogicalResult rewrite(Block &block, OpBuilder &builder) {
    for (Operation &op : block.without_terminator())
      if (failed(visit(&op, builder)))
        return failure();
    return success();
  }

  LogicalResult visit(Operation *op, OpBuilder &builder) {
    if (auto scan = dyn_cast<ir::ScanOp>(op))
      return visitScan(scan, builder);
    PrecisionChoice choice = policy_.choose(op);
    if (hasOtherFloats(op))
      choice.kind = PrecisionClass::fixed;
    if (auto found = overrideByOperands(op); found && choice.kind == PrecisionClass::promote)
      choice = *found;
    switch (choice.kind) {
    case PrecisionClass::lower:
      return clone(op, builder, policy_.lower(), choice);
    case PrecisionClass::f32:
      return clone(op, builder, builder.getF32Type(), choice);
    case PrecisionClass::promote:
      if (Type element = widestOf(op); element != policy_.lower() || !hasNumberBeyond(op))
        return clone(op, builder, element, choice);
      return cloneWide(op, builder, policy_.lower(),
                       {PrecisionClass::wide, "a number that its type cannot hold"});
    case PrecisionClass::wide:
      return cloneWide(op, builder, elementOf(values_.lookup(op->getOperand(0))), choice);
    case PrecisionClass::fixed:
      return cloneFixed(op, builder);
    }
    llvm_unreachable("a class of precision");
  }

  //===--------------------------------------------------------------------===//
  // Types
  //===--------------------------------------------------------------------===//

  /// The type of what an op promotes: f32 if an operand is, else the lower one if an operand is. Numbers that
  /// fill their tensor have no say, unless there is nothing else.
  Type widestOf(Operation *op) {
    bool anyLower = false;
    for (Value operand : op->getOperands()) {
      if (!isSingle(operand) || isWeak(operand))
        continue;
      if (elementOf(values_.lookup(operand)).isF32())
        return Float32Type::get(op->getContext());
      anyLower = true;
    }
    return anyLower ? Type(policy_.lower()) : Type(Float32Type::get(op->getContext()));
  }

  /// Whether a number would become infinite or 0 in the lower precision. PyTorch computes `x * 1e6` in f32,
  /// and rounds what comes of it.
  bool hasNumberBeyond(Operation *op) {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return isSingle(operand) && isNumberBeyond(operand, policy_.lower());
    });
  }

  /// Sums that are parts of another op in PyTorch: the bias of a layer, which the product takes with it; and
  /// 1 / x, which is `reciprocal`.
  std::optional<PrecisionChoice> overrideByOperands(Operation *op) {
    if (auto div = dyn_cast<ir::DivOp>(op); div && isWeak(div.getLhs()) && !isWeak(div.getRhs()))
      return PrecisionChoice{PrecisionClass::f32, "autocast list: f32 (reciprocal)"};
    auto add = dyn_cast<ir::AddOp>(op);
    if (!add)
      return std::nullopt;
    for (auto [sum, bias] : {std::pair(add.getLhs(), add.getRhs()), {add.getRhs(), add.getLhs()}})
      if (isRepeatedVector(bias) && comesOfProduct(sum) && elementOf(values_.lookup(sum)) == policy_.lower())
        return PrecisionChoice{PrecisionClass::lower, "bias of a product"};
    return std::nullopt;
  }

  //===--------------------------------------------------------------------===//
  // Ops
  //===--------------------------------------------------------------------===//

  /// The value in another type. It is cast but once, where it is computed, for all that want it so.
  Value casted(Value value, Type element) {
    if (elementOf(value) == element)
      return value;
    Value &known = casts_[{value, element}];
    if (!known) {
      OpBuilder builder(value.getContext());
      builder.setInsertionPointAfterValue(value);
      known = ir::CastOp::create(builder, value.getLoc(), ir::tensorType(value).clone(element), value);
    }
    return known;
  }

  /// The op with its f32 operands in `element`, and results to match.
  LogicalResult clone(Operation *op, OpBuilder &builder, Type element, const PrecisionChoice &choice) {
    bool cast = false;
    FailureOr<Operation *> copy = cloneIn(op, builder, element, cast);
    if (failed(copy))
      return failure();
    values_.map(op->getResults(), (*copy)->getResults());
    // What only follows its operands, and needs no cast for that, is no decision.
    if (choice.kind != PrecisionClass::promote || cast)
      note(op, element, choice);
    return success();
  }

  /// The op in f32, its first result stored in `element`.
  LogicalResult cloneWide(Operation *op, OpBuilder &builder, Type element, const PrecisionChoice &choice) {
    if (failed(clone(op, builder, builder.getF32Type(), choice)))
      return failure();
    Value result = op->getResult(0);
    if (isSingle(result)) // a comparison has none
      values_.map(result, casted(values_.lookup(result), element));
    return success();
  }

  /// The op with all operands in the types that the model gave them.
  LogicalResult cloneFixed(Operation *op, OpBuilder &builder) {
    if (isa<ir::CastOp>(op)) { // from whatever type to the one that it says
      values_.map(op->getResult(0), casted(values_.lookup(op->getOperand(0)), elementOf(op->getResult(0))));
      return success();
    }
    Operation *copy = builder.clone(*op, values_);
    for (auto [operand, original] : llvm::zip_equal(copy->getOpOperands(), op->getOperands()))
      operand.set(casted(operand.get(), elementOf(original)));
    return success();
  }

  FailureOr<Operation *> cloneIn(Operation *op, OpBuilder &builder, Type element, bool &cast) {
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = values_.lookup(operand.get());
      Type wanted = staysWide(operand) ? Float32Type::get(op->getContext()) : element;
      if (isSingle(operand.get()) && elementOf(value) != wanted) {
        cast |= !isWeak(operand.get());
        value = casted(value, wanted);
      }
      operands.push_back(value);
    }
    IRMapping mapping;
    mapping.map(op->getOperands(), operands);
    Operation *copy = builder.clone(*op, mapping);
    // One value may be an operand twice, cast for one use and not for the other.
    copy->setOperands(operands);
    if (failed(inferResults(copy, element)))
      return failure();
    return copy;
  }

  /// Gives the results of `op` the types that follow from its operands.
  static LogicalResult inferResults(Operation *op, Type element) {
    SmallVector<Type> types;
    if (auto infer = dyn_cast<InferTypeOpInterface>(op)) {
      if (failed(infer.inferReturnTypes(op->getContext(), op->getLoc(), op->getOperands(),
                                        op->getDiscardableAttrDictionary(), op->getPropertiesStorage(),
                                        op->getRegions(), types)))
        return op->emitOpError("has no type in ") << element;
    } else {
      for (Value result : op->getResults())
        types.push_back(isSingle(result) ? Type(ir::tensorType(result).clone(element)) : result.getType());
    }
    for (auto [result, type] : llvm::zip_equal(op->getResults(), types))
      result.setType(type);
    return success();
  }

  void note(Operation *op, Type element, const PrecisionChoice &choice) {
    bool computes = llvm::any_of(op->getOperands(), isSingle) || llvm::any_of(op->getResults(), isSingle);
    if (computes)
      decisions_.push_back(decisionOver(op, element, choice.why));
  }

  //===--------------------------------------------------------------------===//
  // Loops
  //===--------------------------------------------------------------------===//

  LogicalResult visitScan(ir::ScanOp scan, OpBuilder &builder) {
    SmallVector<Type> carried;
    for (auto [init, isState] : llvm::zip_equal(scan.getInits(), findStates(scan)))
      carried.push_back(isState && isSingle(init) ? Type(policy_.lower()) : elementOf(values_.lookup(init)));
    // Each round makes one at least of the types wider, or is the last.
    while (true) {
      SmallVector<Value> inits;
      for (auto [init, element] : llvm::zip_equal(scan.getInits(), carried))
        inits.push_back(casted(values_.lookup(init), element));
      auto outerCasts = casts_;
      size_t decided = decisions_.size();
      SmallVector<Type> yielded;
      FailureOr<ir::ScanOp> copy = buildScan(scan, builder, inits, yielded);
      if (failed(copy))
        return failure();
      bool widened = false;
      for (auto [before, after] : llvm::zip_equal(carried, yielded))
        if (before == policy_.lower() && after.isF32()) {
          before = after;
          widened = true;
        }
      if (!widened) {
        castOutside(*copy);
        values_.map(scan->getResults(), (*copy)->getResults());
        return success();
      }
      copy->erase();
      casts_ = std::move(outerCasts);
      decisions_.truncate(decided);
    }
  }

  /// The loop that begins with `inits`; `yielded` are the types in which its body computes what is carried.
  FailureOr<ir::ScanOp> buildScan(ir::ScanOp scan, OpBuilder &builder, ArrayRef<Value> inits,
                                  SmallVectorImpl<Type> &yielded) {
    auto mapped = [&](Value value) { return values_.lookup(value); };
    bool built = true;
    auto body = [&](OpBuilder &inner, Location, ValueRange slices, ValueRange carries, ValueRange captured) {
      values_.map(scan.getSlices(), slices);
      values_.map(scan.getCarries(), carries);
      values_.map(scan.getCaptured(), captured);
      built = succeeded(rewrite(scan.getBlock(), inner));
      if (!built)
        return SmallVector<Value>(carries);
      auto results = llvm::map_to_vector(scan.getBlock().getTerminator()->getOperands(), mapped);
      for (auto [result, init] : llvm::zip(results, inits)) {
        yielded.push_back(elementOf(result));
        result = casted(result, elementOf(init));
      }
      return results;
    };
    auto copy = ir::ScanOp::create(builder, scan.getLoc(), llvm::map_to_vector(scan.getInputs(), mapped),
                                   inits, llvm::map_to_vector(scan.getCaptures(), mapped),
                                   scan.getTripCount(), scan.getBatchFirst(), scan.getReverse(), body);
    copy.setRecompute(scan.getRecompute());
    copy.setChunked(scan.getChunked());
    copy.setParallel(scan.getParallel());
    copy->setDiscardableAttrs(scan->getDiscardableAttrDictionary());
    if (!built)
      return failure();
    return copy;
  }

  /// What the body takes in f32 and reads in the lower precision alone is cast before the loop, once.
  void castOutside(ir::ScanOp scan) {
    unsigned inputs = scan.getInputs().size(), inits = scan.getInits().size();
    for (BlockArgument argument : scan.getBlock().getArguments()) {
      unsigned number = argument.getArgNumber();
      bool carried = number >= inputs && number < inputs + inits;
      if (carried || !elementOf(argument).isF32() || argument.use_empty() ||
          !llvm::all_of(argument.getUsers(), [&](Operation *user) {
            return isa<ir::CastOp>(user) && elementOf(user->getResult(0)) == policy_.lower();
          }))
        continue;
      scan->setOperand(number, casted(scan->getOperand(number), policy_.lower()));
      argument.setType(ir::tensorType(argument).clone(policy_.lower()));
      for (Operation *user : llvm::make_early_inc_range(argument.getUsers())) {
        user->getResult(0).replaceAllUsesWith(argument);
        user->erase();
      }
    }
  }

  const PrecisionPolicy &policy_;
  SmallVectorImpl<Attribute> &decisions_;
  IRMapping values_;
  DenseMap<std::pair<Value, Type>, Value> casts_;
};

/// TF32 has no type of its own: the products are marked, and no value is cast.
void markProducts(func::FuncOp function, const PrecisionPolicy &policy,
                  SmallVectorImpl<Attribute> &decisions) {
  function.walk([&](Operation *op) {
    if (!ir::holdsF32Products(op))
      return;
    PrecisionChoice choice = policy.choose(op);
    const bool lower = choice.kind == PrecisionClass::lower;
    if (lower)
      ir::markTf32(op);
    Type element = lower ? Type(policy.lower()) : Type(Float32Type::get(op->getContext()));
    decisions.push_back(decisionOver(op, element, choice.why));
  });
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

class MixedPrecisionPass : public impl::MixedPrecisionPassBase<MixedPrecisionPass> {
  using MixedPrecisionPassBase::MixedPrecisionPassBase;

  void runOnOperation() override {
    bool isIdle = true;
    for (auto recipe : getOperation().getOps<ir::RecipeOp>()) {
      isIdle &= !recipe.getPrecision();
      if (recipe.getPrecision() && failed(lower(recipe)))
        return signalPassFailure();
    }
    if (isIdle)
      markAllAnalysesPreserved(); // nor is the module verified again
  }

  LogicalResult lower(ir::RecipeOp recipe) {
    ModuleOp module = getOperation();
    auto emitHere = [&] { return recipe.emitOpError(); };
    FailureOr<PrecisionPolicy> policy = PrecisionPolicy::fromSpec(*recipe.getPrecision(), emitHere);
    FailureOr<Target> parsed = Target::parse(target, module);
    if (failed(parsed) || failed(policy) || failed(policy->checkTarget(*parsed, emitHere)))
      return failure();
    if (policy->lower() && policy->lower().isF16() && recipe.getLossScale() &&
        recipe.getLossScale()->getName() == "none")
      recipe.emitWarning("trains in fp16 without a loss scale: gradients below 6e-8 become 0");
    if (!policy->lower() || module->hasAttr(kPrecisionAttr))
      return success(); // nothing to do, or done by an earlier run
    FailureOr<llvm::SetVector<func::FuncOp>> functions = findFunctions(module, recipe);
    if (failed(functions))
      return failure();
    std::set<std::string> layers;
    for (func::FuncOp function : *functions)
      layers.merge(layersIn(function));
    if (failed(policy->checkPatterns(layers, emitHere)))
      return failure();
    llvm::SetVector<func::FuncOp> ofLoss;
    if (auto loss = module.lookupSymbol<func::FuncOp>(recipe.getLoss()))
      ofLoss.insert(loss);
    for (size_t next = 0; next < ofLoss.size(); ++next)
      insertDifferentiated(ofLoss, ofLoss[next]);
    SmallVector<Attribute> decisions, others;
    for (func::FuncOp function : *functions) {
      SmallVectorImpl<Attribute> &made = ofLoss.contains(function) ? decisions : others;
      if (policy->isTf32())
        markProducts(function, *policy, made);
      else if (failed(Rewriter(*policy, made).run(function)))
        return failure();
    }
    if (!ofLoss.empty())
      setDecisions(recipe, *policy, decisions);
    return success();
  }

  /// Of the loss. A model that is f64 throughout, say, has nothing to lower.
  void setDecisions(ir::RecipeOp recipe, const PrecisionPolicy &policy, ArrayRef<Attribute> decisions) {
    ModuleOp module = getOperation();
    module->setAttr(kPrecisionAttr, ArrayAttr::get(&getContext(), decisions));
    std::string lower;
    llvm::raw_string_ostream(lower) << policy.lower();
    llvm::json::Array rows = decisionsIn(module, kPrecisionAttr, {"type", "why"});
    if (llvm::none_of(rows, [&](auto &row) { return row.getAsObject()->getString("type") == lower; }))
      recipe.emitWarning("precision ")
          << recipe.getPrecision()->getName() << " changes nothing: @" << recipe.getLoss()
          << " has no product to lower (f64 is left alone); make the model one of f32, or leave it out";
  }

  /// The functions that become entries, and those whose gradients they take, calls inlined.
  static FailureOr<llvm::SetVector<func::FuncOp>> findFunctions(ModuleOp module, ir::RecipeOp recipe) {
    llvm::SetVector<func::FuncOp> functions;
    for (StringRef name : {recipe.getLoss(), recipe.getAccuracy().value_or(""), StringRef("predict")})
      if (auto function = name.empty() ? func::FuncOp() : module.lookupSymbol<func::FuncOp>(name);
          function && !function.isExternal())
        functions.insert(function);
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(ir::kPartitionAttr) || function->hasAttr(kEntryAttr))
        functions.insert(function);
    for (size_t next = 0; next < functions.size(); ++next) {
      if (failed(inlineCalls(functions[next])))
        return failure();
      insertDifferentiated(functions, functions[next]);
    }
    return functions;
  }

  static void insertDifferentiated(llvm::SetVector<func::FuncOp> &functions, func::FuncOp user) {
    user.walk([&](ir::GradientOp gradient) {
      auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(gradient, gradient.getCalleeAttr());
      if (callee && !callee.isExternal())
        functions.insert(callee);
    });
  }
};

} // namespace
} // namespace gpuc
