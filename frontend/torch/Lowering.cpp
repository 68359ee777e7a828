//===- Lowering.cpp - From a recorded graph to functions of the gpuc dialect ---===//
//
// One walk over the nodes of each function in their order, which is a topological one. Each is lowered by its
// record in the OpTable; what comes out is compared with the type that PyTorch has found. A node that cannot
// be lowered is reported and the walk goes on, so that one run lists everything.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/CountsRows.h"
#include "frontend/onnx/Loss.h"
#include "frontend/onnx/Text.h"
#include "frontend/torch/Gradients.h"
#include "frontend/torch/HasRows.h"
#include "frontend/torch/OpTable.h"
#include "frontend/torch/Torch.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

#include <set>

using namespace mlir;

namespace gpuc::torch {
namespace {

class Lowering {
public:
  explicit Lowering(const Graph &graph)
      : graph_(graph), context_(MLIRContext::Threading::DISABLED), builder_(&context_), emitter_(builder_) {
    emitter_.marksRepetitions = true; // markRows() asks
    context_.loadDialect<ir::GpucDialect, func::FuncDialect>();
    module_ = ModuleOp::create(NameLoc::get(builder_.getStringAttr(graph.name)));
    for (const onnx::HostTensorPtr &constant : graph.constants)
      constants_[constant->spec.name] = constant;
  }

  Lowered run() {
    builder_.setInsertionPointToEnd(module_->getBody());
    for (const Variable &variable : graph_.variables)
      declare(variable);
    for (const Function &function : graph_.functions)
      lowerFunction(function);
    addRecipe();
    if (!out_.problems.empty())
      return std::move(out_);
    module_->walk([](ir::ReshapeOp op) { op->removeAttr(onnx::kRepeatsAttr); });
    // Behind the marks of rows, which the functions that this makes have then, too.
    for (auto function : llvm::make_early_inc_range(module_->getOps<func::FuncOp>()))
      expandGradients(function);
    print();
    return std::move(out_);
  }

private:
  //===--------------------------------------------------------------------===//
  // Variables and constants
  //===--------------------------------------------------------------------===//

  /// Their values are written by whoever opens the plan. What PyTorch calls a buffer is never trained; those
  /// that are assigned are statistics.
  void declare(const Variable &variable) {
    const bool isBuffer = variable.role == Variable::Role::buffer;
    auto zeros = ir::SpecAttr::get(&context_, "zeros", builder_.getDictionaryAttr({}));
    Type type = emitter_.tensorType(variable.spec.shape, variable.spec.type);
    auto op =
        ir::VariableOp::create(builder_, NameLoc::get(builder_.getStringAttr(variable.spec.name)),
                               variable.spec.name, cast<RankedTensorType>(type), zeros,
                               variable.role == Variable::Role::frozen, isBuffer ? "statistic" : "parameter");
    if (!variables_.try_emplace(variable.spec.name, op).second)
      report({}, "variable '" + variable.spec.name + "' is declared twice");
  }

  Tensor read(const std::string &name) {
    auto found = variables_.find(name);
    if (found == variables_.end())
      return emitter_.fail("there is no variable '" + name + "'");
    Tensor &value = read_[name];
    if (!value)
      value =
          emitter_.op("read", {}, builder_.getNamedAttr("variable", FlatSymbolRefAttr::get(&context_, name)),
                      found->second.getType());
    return value;
  }

  Tensor resolve(const Reference &reference) {
    if (reference.kind == Reference::Kind::variable)
      return read(reference.name);
    if (reference.kind == Reference::Kind::constant) {
      auto found = constants_.find(reference.name);
      return found == constants_.end() ? emitter_.fail("there is no constant '" + reference.name + "'")
                                       : emitter_.constant(*found->second);
    }
    auto found = values_.find(reference.name);
    if (found == values_.end() || reference.result >= static_cast<int64_t>(found->second.size()))
      return emitter_.fail("there is no value '" + reference.name + "'");
    return found->second[reference.result];
  }

  //===--------------------------------------------------------------------===//
  // Nodes
  //===--------------------------------------------------------------------===//

  void report(const Place &place, const std::string &text) {
    out_.problems.push_back({onnx::oneLine(text), place});
  }

  /// Whether there is such an op with such arguments.
  bool check(const Node &node) {
    const OpRecord *record = findOp(node.op);
    if (!record) {
      report(node.place, node.op + " is not supported");
      return false;
    }
    bool isSound = true;
    for (const auto &[name, value] : node.arguments)
      if (!value.as<std::monostate>() && !llvm::is_contained(record->arguments, name)) {
        report(node.place, node.op + ": argument '" + name + "' is not supported");
        isSound = false;
      }
    return isSound;
  }

  /// Whether what a node reads has been computed. What has not was reported where it failed.
  bool isThere(const Argument &argument) const {
    if (const Reference *reference = argument.as<Reference>())
      return reference->kind != Reference::Kind::node || !broken_.count(reference->name);
    const auto *list = argument.as<std::vector<Argument>>();
    return !list || llvm::all_of(*list, [&](const Argument &element) { return isThere(element); });
  }

  Location locationOf(const Node &node) {
    StringAttr name = builder_.getStringAttr(node.place.layer.empty() ? node.name : node.place.layer);
    if (node.place.file.empty())
      return NameLoc::get(name);
    return NameLoc::get(
        name, FileLineColLoc::get(&context_, node.place.file, static_cast<unsigned>(node.place.line), 1));
  }

  void lowerNode(const Node &node) {
    emitter_.location = locationOf(node);
    bool isSound = check(node);
    for (const auto &[name, value] : node.arguments)
      isSound &= isThere(value);
    if (isSound) {
      auto resolve = [&](const Reference &reference) { return this->resolve(reference); };
      OpScope scope(emitter_, node, resolve, randomIds_);
      scope.batch = batch_;
      Block *block = builder_.getInsertionBlock();
      Operation *before = block->empty() ? nullptr : &block->back();
      findOp(node.op)->lower(scope);
      if (node.forRows)
        sayWhetherForRows(*block, before, *node.forRows);
      isSound = checkResults(scope);
      values_[node.name] = std::move(scope.outputs);
    }
    if (!isSound)
      broken_.insert(node.name);
  }

  /// Of what a node that draws was lowered to, behind `before`.
  void sayWhetherForRows(Block &block, Operation *before, bool forRows) {
    auto first = before ? std::next(before->getIterator()) : block.begin();
    for (Operation &op : llvm::make_range(first, block.end()))
      if (isa<ir::RandomOpInterface, ir::AttentionOp>(op))
        op.setAttr(kRowsAreKnownAttr, builder_.getBoolAttr(forRows));
  }

  /// PyTorch has computed the types of all results; where others come out something was misunderstood.
  bool checkResults(OpScope &scope) {
    const Node &node = scope.node;
    for (size_t i = 0; i < node.results.size() && !emitter_.failed(); ++i) {
      if (!scope.wants(i))
        continue;
      const TensorSpec &expected = scope.spec(i);
      const Tensor &made = scope.outputs[i];
      if (!made)
        emitter_.fail("result " + std::to_string(i) + " is used, which is not supported");
      else if (made.shape() != expected.shape || made.type() != expected.type)
        emitter_.fail("gives " + toString(made.shape()) + " of " + nameOf(made.type()) +
                      " where PyTorch has " + toString(expected.shape) + " of " + nameOf(expected.type));
    }
    if (!emitter_.failed())
      return true;
    report(node.place, node.op + ": " + emitter_.takeError());
    return false;
  }

  //===--------------------------------------------------------------------===//
  // Functions
  //===--------------------------------------------------------------------===//

  void lowerFunction(const Function &function) {
    values_.clear(), read_.clear(), broken_.clear();
    randomIds_ = 0; // The same op draws the same, whichever function it is in.
    batch_ = function.isLoss ? batchOf(function) : 1;
    builder_.setInsertionPointToEnd(module_->getBody());
    Location location = NameLoc::get(builder_.getStringAttr(function.name));
    SmallVector<Type> types;
    for (const TensorSpec &input : function.inputs)
      types.push_back(emitter_.tensorType(input.shape, input.type));
    auto made = func::FuncOp::create(builder_, location, function.name, builder_.getFunctionType(types, {}));
    Block *body = made.addEntryBlock();
    builder_.setInsertionPointToStart(body);
    for (auto [input, argument] : llvm::zip_equal(function.inputs, body->getArguments())) {
      argument.setLoc(NameLoc::get(builder_.getStringAttr(input.name)));
      made.setArgAttr(argument.getArgNumber(), "gpuc.name", builder_.getStringAttr(input.name));
      values_[input.name] = {Tensor(&emitter_, argument)};
    }
    for (auto [number, alike] : llvm::enumerate(function.alike))
      if (alike)
        made.setArgAttr(number, kRowsAreKnownAttr, builder_.getBoolAttr(false));
    for (const Node &node : function.nodes)
      lowerNode(node);
    if (!out_.problems.empty())
      return;
    emitter_.location = location;
    finish(made, function);
    if (emitter_.failed())
      report({}, "@" + function.name + ": " + emitter_.takeError());
  }

  void finish(func::FuncOp made, const Function &function) {
    SmallVector<Value> results;
    for (const Reference &output : function.outputs)
      if (Tensor value = resolve(output))
        results.push_back(value.value());
    for (const auto &[name, reference] : function.assigned)
      if (Tensor value = resolve(reference))
        ir::AssignOp::create(builder_, emitter_.location, FlatSymbolRefAttr::get(&context_, name),
                             value.value());
    if (emitter_.failed())
      return;
    func::ReturnOp::create(builder_, emitter_.location, results);
    SmallVector<std::string> names;
    for (size_t i = 0; i < results.size(); ++i)
      names.push_back("output" + std::to_string(i));
    if (function.isLoss) {
      if (results.empty() || !isOneNumber(results.front().getType()))
        return void(
            emitter_.fail("the loss is no single floating-point number: reduce it, by mean() or sum()"));
      bool padded = false;
      results = onnx::lossPair(emitter_, made, results.front(), &padded);
      names = {"loss_sum", "count"};
      if (padded)
        made->setAttr(kCountsRowsAttr, builder_.getUnitAttr());
      if (emitter_.failed())
        return;
      made.getBody().front().getTerminator()->setOperands(results);
    }
    made.setType(builder_.getFunctionType(made.getArgumentTypes(), TypeRange(ValueRange(results))));
    for (auto [index, name] : llvm::enumerate(names))
      made.setResultAttr(index, "gpuc.name", builder_.getStringAttr(name));
    if (function.isLoss)
      onnx::countOnce(made, results[1], made->hasAttr(kCountsRowsAttr));
    onnx::eraseUnused(made.getBody().front());
  }

  static bool isOneNumber(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return isa<FloatType>(tensor.getElementType()) && tensor.getNumElements() == 1;
  }

  /// That of the first input, or 1.
  static int64_t batchOf(const Function &function) {
    const bool hasRows = !function.inputs.empty() && !function.inputs.front().shape.empty();
    return hasRows ? function.inputs.front().shape.front() : 1;
  }

  void addRecipe() {
    auto loss = llvm::find_if(graph_.functions, [](const Function &f) { return f.name == "loss"; });
    if (loss == graph_.functions.end() || !out_.problems.empty())
      return;
    builder_.setInsertionPointToEnd(module_->getBody());
    auto recipe = ir::RecipeOp::create(builder_, NameLoc::get(builder_.getStringAttr("recipe")),
                                       FlatSymbolRefAttr::get(&context_, "loss"), FlatSymbolRefAttr());
    const int64_t batch = batchOf(*loss);
    recipe.setBatch(batch);
    if (!loss->inputs.empty() && !loss->inputs.front().shape.empty())
      markRows(module_->lookupSymbol<func::FuncOp>("loss"), batch);
    recipe.setOptimizerAttr(
        ir::SpecAttr::get(&context_, "sgd", builder_.getDictionaryAttr(emitter_.attribute("lr", 1e-3))));
  }

  void print() {
    std::string said;
    ScopedDiagnosticHandler handler(&context_, [&](Diagnostic &diagnostic) { said = diagnostic.str(); });
    if (failed(verify(*module_)))
      return report({}, "the lowered module is not sound: " + said);
    llvm::raw_string_ostream stream(out_.text);
    module_->print(stream, OpPrintingFlags().enableDebugInfo().useLocalScope().printNameLocAsPrefix());
    stream << '\n';
  }

  const Graph &graph_;
  MLIRContext context_;
  OwningOpRef<ModuleOp> module_;
  OpBuilder builder_;
  Emitter emitter_;
  Lowered out_;
  std::map<std::string, onnx::HostTensorPtr> constants_;
  std::map<std::string, ir::VariableOp> variables_;

  // Of the function that is being lowered.
  std::map<std::string, std::vector<Tensor>> values_; ///< Of nodes and inputs.
  std::map<std::string, Tensor> read_;                ///< Variables.
  std::set<std::string> broken_;                      ///< Nodes that could not be lowered.
  int64_t randomIds_ = 0, batch_ = 1;
};

} // namespace

Lowered lower(const Graph &graph) { return Lowering(graph).run(); }

} // namespace gpuc::torch
