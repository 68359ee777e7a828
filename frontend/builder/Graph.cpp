//===- Graph.cpp - The module behind a ModelBuilder -------------------------===//

#include "frontend/builder/Graph.h"
#include "frontend/ElementType.h"

#include "llvm/Support/FormatVariadic.h"

#include <array>
#include <charconv>

using namespace mlir;

namespace gpuc::nn::detail {

std::string numberText(double number) {
  std::array<char, 32> text;
  auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number);
  return std::string(text.data(), end);
}

Graph::Graph(std::string name, DataType floats)
    : context(MLIRContext::Threading::DISABLED), builder(&context), name(std::move(name)), floats(floats) {
  context.loadDialect<ir::GpucDialect, func::FuncDialect>();
  module = ModuleOp::create(named(this->name), this->name);
  if (floats != DataType::f32 && floats != DataType::f64)
    fail(std::string("parameters are f32 or f64, not ") + nameOf(floats));
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

Failure Graph::fail(const std::string &text) {
  if (error_.ok()) {
    std::string where = paths_.empty() || paths_.back().empty() ? entry_ : paths_.back();
    error_ = Status::error((where.empty() ? name : where) + ": " + text);
  }
  return {};
}

bool Graph::usable(const char *op, ArrayRef<const Tensor *> operands) {
  if (failed())
    return false;
  for (const Tensor *operand : operands) {
    if (!operand->valid())
      return fail(std::string(op) + " takes a tensor of the model, got an empty one");
    Value value = unwrap(*operand);
    if (operand->graph() != this || !builder.getInsertionBlock() ||
        value.getParentBlock() != builder.getInsertionBlock())
      return fail(std::string(op) +
                  (loops_ == 0
                       ? " takes tensors of the function being built, got one of another; pass it as an input"
                       : " in a scan takes tensors of the step being built, got one of outside; pass it as a "
                         "capture"));
  }
  return true;
}

Graph *Graph::of(const char *op, ArrayRef<const Tensor *> operands) {
  auto inGraph = [](const Tensor *operand) { return operand->graph() != nullptr; };
  const auto *first = llvm::find_if(operands, inGraph);
  return first != operands.end() && (*first)->graph()->usable(op, operands) ? (*first)->graph() : nullptr;
}

bool Graph::isFloating(const char *op, const Tensor &x) {
  if (!isFloat(x.dtype()))
    fail(llvm::formatv("{0} takes floating point, got {1}; convert with to()", op, nameOf(x.dtype())));
  return isFloat(x.dtype());
}

std::optional<int64_t> Graph::dimension(const char *op, const Tensor &x, int64_t dim) {
  if (!of(op, {&x}))
    return std::nullopt;
  if (dim >= -x.rank() && dim < x.rank())
    return dim < 0 ? dim + x.rank() : dim;
  return x.graph()->fail(
      llvm::formatv("{0} along dimension {1} of {2}, which has {3}", op, dim, toString(x.shape()), x.rank()));
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

Type Graph::elementType(DataType type) { return elementTypeOf(&context, type); }

RankedTensorType Graph::tensorType(const Shape &shape, DataType type) {
  static_assert(kBatch == ShapedType::kDynamic, "a Shape is an MLIR shape");
  return RankedTensorType::get(shape, elementType(type));
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

Location Graph::named(const std::string &text) { return NameLoc::get(StringAttr::get(&context, text)); }

Location Graph::location() { return named(paths_.empty() || paths_.back().empty() ? entry_ : paths_.back()); }

LayerCall *Graph::currentCall() { return callStack_.empty() ? nullptr : &calls[callStack_.back()]; }

void Graph::charge(Operation *op) {
  auto cost = dyn_cast<ir::CostOpInterface>(op);
  if (LayerCall *call = currentCall(); call && cost)
    call->flops += repeats_ * cost.getFlops();
}

Tensor Graph::parameter(const Module *owner, const std::string &name, const Shape &shape,
                        const Initializer &initializer) {
  return variable(owner, name, tensorType(shape, floats), initializer, "parameter");
}

Tensor Graph::variable(const Module *owner, const std::string &name, RankedTensorType type,
                       const Initializer &initializer, StringRef kind) {
  if (failed())
    return {};
  const Shape shape = type.getShape();
  if (loops_ != 0)
    return fail((kind + " " + name + " is read in a scan; read it outside and pass it as a capture").str());
  if (llvm::any_of(shape, [](int64_t extent) { return extent < 1; }))
    return fail((kind + " " + name + " has shape " + toString(shape) + "; extents are at least 1").str());
  const bool frozen = kind == "parameter" && !owner->requiresGrad();
  Variable &variable = variables_[name];
  if (!variable.type) {
    SmallVector<NamedAttribute> numbers;
    for (const auto &[key, number] : initializer.numbers)
      numbers.push_back(builder.getNamedAttr(key, key == "fan_in"
                                                      ? Attribute(builder.getI64IntegerAttr(number))
                                                      : builder.getF64FloatAttr(number)));
    auto spec = ir::SpecAttr::get(&context, initializer.name, builder.getDictionaryAttr(numbers));
    // Variables stand first in the module, in the order of their first use.
    OpBuilder atTop(&context);
    if (lastVariable_)
      atTop.setInsertionPointAfter(lastVariable_);
    else
      atTop.setInsertionPointToStart(module->getBody());
    lastVariable_ = ir::VariableOp::create(atTop, location(), name, type, spec, frozen, kind);
    variable = {type, owner, frozen};
    if (frozen && owner->lacksAdapter() && shape.size() > 1) // vectors have no low rank
      leftOut.push_back(name);
    if (LayerCall *call = currentCall(); call && kind == "parameter") {
      call->parameters += type.getNumElements();
      call->frozen += frozen ? type.getNumElements() : 0;
    }
  } else if (variable.owner != owner) {
    return fail((kind + " " + name + " belongs to two modules; give each a name with add()").str());
  } else if (variable.type != type) {
    return fail((kind + " " + name + " has shape " + toString(Shape(variable.type.getShape())) +
                 ", asked for " + toString(shape))
                    .str());
  } else if (variable.frozen != frozen) {
    return fail(
        (kind + " " + name + " was read before it was frozen or set free; call requiresGrad first").str());
  } else if (LayerCall *call = currentCall()) {
    call->shared = true;
  }
  return emitTensor<ir::ReadOp>(type, FlatSymbolRefAttr::get(&context, name));
}

void Graph::checkpoint(const std::string &layer) {
  if (layer.empty())
    fail("a whole model is no block that is computed again; its layers may be");
  else if (layer.find_first_of("*?[]\\,") != std::string::npos)
    fail(
        "a block that is computed again cannot be named so: *, ?, [, ], \\ and commas are those of patterns");
  else if (!llvm::is_contained(blocks, layer))
    blocks.push_back(layer);
}

void Graph::declareBlocks() {
  OpBuilder behind = OpBuilder::atBlockEnd(module->getBody());
  if (recipe)
    behind.setInsertionPoint(recipe);
  for (const std::string &layer : blocks)
    ir::CheckpointOp::create(behind, named(layer), layer);
}

//===----------------------------------------------------------------------===//
// Entry functions
//===----------------------------------------------------------------------===//

func::FuncOp Graph::beginFunction(const std::string &entry, TypeRange arguments) {
  entry_ = entry;
  builder.setInsertionPointToEnd(module->getBody());
  auto function = func::FuncOp::create(builder, named(entry), entry, builder.getFunctionType(arguments, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
  return function;
}

void Graph::endFunction(func::FuncOp function, ValueRange results, ArrayRef<StringRef> names) {
  func::ReturnOp::create(builder, named(entry_), results);
  function.setType(builder.getFunctionType(function.getArgumentTypes(), results.getTypes()));
  for (auto [index, name] : llvm::enumerate(names))
    function.setResultAttr(index, "gpuc.name", builder.getStringAttr(name));
  builder.clearInsertionPoint();
  entry_.clear();
}

LayerScope::LayerScope(Graph &graph, std::string path, std::string description)
    : graph_(graph), counted_(graph.entry_ == "predict" && (!path.empty() || graph.calls.empty())) {
  if (counted_) {
    LayerCall &call = graph_.calls.emplace_back();
    call.path = path;
    call.description = std::move(description);
    call.depth = static_cast<int64_t>(graph_.callStack_.size());
    graph_.callStack_.push_back(graph_.calls.size() - 1);
  }
  graph_.paths_.push_back(std::move(path));
}

LayerScope::~LayerScope() {
  graph_.paths_.pop_back();
  if (counted_)
    graph_.callStack_.pop_back();
}

void LayerScope::setOutput(const Tensor &output) {
  if (counted_)
    graph_.currentCall()->output = output.shape();
}

} // namespace gpuc::nn::detail
