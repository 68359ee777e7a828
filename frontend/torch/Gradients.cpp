//===- Gradients.cpp - Derivatives within a model -----------------------------===//
//
// A module may call torch.autograd.grad, which python/gpuc/capture/inner_gradients.py records as
// gpuc::gradient. While the nodes are lowered it is a cast of the sum that is differentiated and of what is
// derived by, and each of these is a cast by itself (gpuc::marked), so that no other value is the same. When
// the function is whole, what lies between them is copied into a function of its own, of which gpuc.gradient
// takes the gradient.
//
//===----------------------------------------------------------------------===//

#include "frontend/torch/Gradients.h"

#include "frontend/torch/OpTable.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace gpuc::torch {
namespace {

using StandIn = UnrealizedConversionCastOp;

constexpr StringLiteral kGradient = "gradient", kMarked = "marked";

StandIn createStandIn(Emitter &emitter, StringRef what, TypeRange types, ValueRange operands) {
  auto made = StandIn::create(emitter.builder, emitter.location, types, operands);
  made->setAttr(what, emitter.builder.getUnitAttr());
  return made;
}

//===----------------------------------------------------------------------===//
// The two ops
//===----------------------------------------------------------------------===//

Tensor mark(const Tensor &value) {
  Emitter &emitter = *value.emitter();
  auto made = createStandIn(emitter, kMarked, value.value().getType(), value.value());
  return {&emitter, made.getResult(0)};
}

void lowerMarked(OpScope &op) {
  if (Tensor value = op.tensor("value"))
    op.output(mark(value));
}

/// A sum, and what in it counts as given, though it may well hang on what is derived by.
struct Weighted {
  Tensor sum;
  SmallVector<Value> seeds;
};

/// The elements of all outputs, each times its seed.
Weighted weightedSum(OpScope &op) {
  Weighted found;
  std::vector<Tensor> outputs = op.tensors("outputs"), seeds = op.optionalTensors("seeds");
  if (outputs.empty() || outputs.size() != seeds.size())
    op.fail("takes outputs, and for each of them a seed or None");
  for (size_t i = 0; i < outputs.size() && !op.failed(); ++i) {
    Tensor weighted = outputs[i];
    if (seeds[i]) {
      const Tensor seed = mark(seeds[i]);
      found.seeds.push_back(seed.value());
      weighted = weighted * seed;
    }
    const Tensor part = onnx::reduce("sum", weighted, onnx::dimsFrom(0, weighted.rank()), /*keep=*/false);
    found.sum = found.sum ? found.sum + cast(part, found.sum.type()) : part;
  }
  return found;
}

void lowerGradient(OpScope &op) {
  const Weighted weighted = weightedSum(op);
  std::vector<Tensor> inputs = op.tensors("inputs");
  if (op.failed())
    return;
  SmallVector<Value> operands = {weighted.sum.value()};
  for (const Tensor &input : inputs)
    operands.push_back(input.value());
  auto types = llvm::to_vector(ValueRange(operands).drop_front().getTypes());
  llvm::append_range(operands, weighted.seeds);
  auto made = createStandIn(op.emitter, kGradient, types, operands);
  for (auto [index, result] : llvm::enumerate(made.getResults()))
    op.output(Tensor(&op.emitter, result), index);
}

//===----------------------------------------------------------------------===//
// What lies between
//===----------------------------------------------------------------------===//

/// The ops by which `sum` hangs on the inputs, in their order, and what else they read.
struct Between {
  SmallVector<Operation *> ops;
  SetVector<Value> captured;
};

SetVector<Value> readBy(Operation *op) {
  SetVector<Value> found(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), found);
  return found;
}

/// What is derived by; the seeds follow.
ValueRange inputsOf(StandIn gradient) { return gradient.getOperands().slice(1, gradient.getNumResults()); }

Between findBetween(StandIn gradient) {
  Value sum = gradient.getOperand(0);
  const DenseSet<Value> given(gradient.getOperands().begin() + 1, gradient.getOperands().end());
  ValueRange inputs = inputsOf(gradient);
  DenseSet<Value> varied(inputs.begin(), inputs.end());
  SmallVector<Operation *> behind; // the inputs
  for (Operation &op : llvm::make_range(gradient->getBlock()->begin(), gradient->getIterator())) {
    const bool isGiven = op.getNumResults() == 1 && given.contains(op.getResult(0));
    if (isGiven || !llvm::any_of(readBy(&op), [&](Value value) { return varied.contains(value); }))
      continue;
    behind.push_back(&op);
    varied.insert(op.result_begin(), op.result_end());
  }
  DenseSet<Value> needed = {sum};
  Between between;
  for (Operation *op : llvm::reverse(behind)) {
    if (llvm::none_of(op->getResults(), [&](Value value) { return needed.contains(value); }))
      continue;
    between.ops.push_back(op);
    for (Value value : readBy(op)) {
      needed.insert(value);
      if (!varied.contains(value))
        between.captured.insert(value);
    }
  }
  std::reverse(between.ops.begin(), between.ops.end());
  if (!varied.contains(sum))
    between.captured.insert(sum);
  return between;
}

/// `sum` as a function of the inputs and of what is captured. Constants stay constants.
func::FuncOp makeFunction(StandIn gradient, const Between &between, ArrayRef<Value> arguments) {
  auto user = gradient->getParentOfType<func::FuncOp>();
  OpBuilder builder(user);
  Value sum = gradient.getOperand(0);
  FunctionType type = builder.getFunctionType(TypeRange(ValueRange(arguments)), sum.getType());
  auto made = func::FuncOp::create(builder, gradient.getLoc(), "differentiated", type);
  made.setPrivate();
  SymbolTable(user->getParentOp()).insert(made);
  builder.setInsertionPointToStart(made.addEntryBlock());
  IRMapping values;
  values.map(arguments, made.getArguments());
  for (Value value : between.captured)
    if (auto constant = value.getDefiningOp<ir::ConstantOp>())
      builder.clone(*constant, values);
  for (Operation *op : between.ops) {
    if (isa<StandIn>(op)) // Derived by elsewhere.
      values.map(op->getResult(0), values.lookup(op->getOperand(0)));
    else
      builder.clone(*op, values);
  }
  func::ReturnOp::create(builder, gradient.getLoc(), values.lookup(sum));
  return made;
}

void expand(StandIn gradient) {
  const Between between = findBetween(gradient);
  SmallVector<Value> arguments(inputsOf(gradient));
  const auto inputs = static_cast<int64_t>(arguments.size());
  for (Value value : between.captured)
    if (!value.getDefiningOp<ir::ConstantOp>())
      arguments.push_back(value);
  func::FuncOp callee = makeFunction(gradient, between, arguments);

  OpBuilder builder(gradient);
  SmallVector<Type> types = {gradient.getOperand(0).getType()};
  llvm::append_range(types, gradient.getResultTypes());
  auto made =
      ir::GradientOp::create(builder, gradient.getLoc(), types, callee.getName(), arguments, Value(),
                             builder.getDenseI64ArrayAttr(llvm::to_vector(llvm::seq(inputs))), ArrayAttr());
  gradient.replaceAllUsesWith(made.getResults().drop_front());
  gradient.erase();
}

} // namespace

void expandGradients(func::FuncOp function) {
  Block &body = function.getBody().front();
  // The order in which they stand: what is derived of a gradient reads that.
  for (auto each : llvm::make_early_inc_range(body.getOps<StandIn>()))
    if (each->hasAttr(kGradient))
      expand(each);
  for (auto each : llvm::make_early_inc_range(body.getOps<StandIn>())) {
    each.replaceAllUsesWith(each.getOperands());
    each.erase();
  }
}

void addGradients(OpTable &table) {
  table["gpuc.gradient.default"] = {lowerGradient, {"outputs", "inputs", "seeds"}};
  table["gpuc.marked.default"] = {lowerMarked, {"value"}};
}

} // namespace gpuc::torch
