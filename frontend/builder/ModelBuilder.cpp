//===- ModelBuilder.cpp - Entry functions, the recipe, the finished model ---===//

#include "frontend/builder/ModelBuilder.h"
#include "dialects/gpuc/RecipeEntries.h"
#include "frontend/builder/Graph.h"
#include "passes/base/Diagnostics.h"
#include "passes/recipe/RecipeTexts.h"
#include "runtime/base/file.h"
#include "runtime/base/flags.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace gpuc::nn {

using detail::Graph;

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

namespace {

/// What is wrong with an input, or nothing.
std::string mistakeIn(const Input &input, DataType dtype, const llvm::StringSet<> &taken) {
  if (input.name.empty())
    return "an input has no name";
  if (taken.contains(input.name))
    return "two inputs are named " + input.name;
  for (size_t i = 0; i < input.shape.size(); ++i)
    if (input.shape[i] < 1 && !(i == 0 && input.shape[i] == kBatch))
      return "input " + input.name + " has shape " + toString(input.shape) +
             "; extents are at least 1, but for a leading kBatch";
  if (input.range && (isFloat(dtype) || *input.range < 1))
    return "input " + input.name + " has range " + std::to_string(*input.range) +
           "; only integers have one, at least 1";
  return "";
}

llvm::StringSet<> argumentNames(func::FuncOp function) {
  llvm::StringSet<> names;
  for (unsigned i = 0; function && i < function.getNumArguments(); ++i)
    names.insert(function.getArgAttrOfType<StringAttr>(i, "gpuc.name").getValue());
  return names;
}

/// The types of the inputs, or none if one of them is wrong.
std::optional<SmallVector<Type>> inputTypes(Graph &graph, llvm::ArrayRef<Input> inputs,
                                            llvm::StringSet<> taken) {
  SmallVector<Type> types;
  for (const Input &input : inputs) {
    DataType dtype = input.dtype.value_or(graph.floats);
    if (std::string mistake = mistakeIn(input, dtype, taken); !mistake.empty())
      return graph.fail(mistake);
    taken.insert(input.name);
    types.push_back(graph.tensorType(input.shape, dtype));
  }
  return types;
}

/// Names the arguments of `function` from number `first` on.
std::vector<Tensor> nameArguments(Graph &graph, func::FuncOp function, unsigned first,
                                  llvm::ArrayRef<Input> inputs) {
  std::vector<Tensor> tensors;
  for (auto [offset, input] : llvm::enumerate(inputs)) {
    unsigned index = first + offset;
    function.setArgAttr(index, "gpuc.name", graph.builder.getStringAttr(input.name));
    if (input.range)
      function.setArgAttr(index, "gpuc.range", graph.builder.getI64IntegerAttr(*input.range));
    function.getArgument(index).setLoc(graph.named(input.name));
    tensors.push_back(graph.wrap(function.getArgument(index)));
  }
  return tensors;
}

bool isScalarOf(const Tensor &tensor, DataType type) { return tensor.rank() == 0 && tensor.dtype() == type; }

} // namespace

//===----------------------------------------------------------------------===//
// Entry functions
//===----------------------------------------------------------------------===//

ModelBuilder::ModelBuilder(std::string name, DataType floats)
    : graph_(std::make_unique<Graph>(std::move(name), floats)) {}
ModelBuilder::ModelBuilder(ModelBuilder &&) noexcept = default;
ModelBuilder::~ModelBuilder() = default;

DataType ModelBuilder::floats() const { return graph_->floats; }

void ModelBuilder::failArity(const char *entry, size_t expected, size_t taken) {
  graph_->fail(std::string(entry) + " has " + std::to_string(expected) + " tensors, its function takes " +
               std::to_string(taken));
}

void ModelBuilder::buildPredict(const std::vector<Input> &inputs, const std::vector<std::string> &outputs,
                                const Body<std::vector<Tensor>> &body) {
  if (graph_->failed())
    return;
  if (graph_->predict)
    return void(graph_->fail("predict is built twice"));
  std::optional<SmallVector<Type>> types = inputTypes(*graph_, inputs, {});
  if (!types)
    return;
  func::FuncOp function = graph_->beginFunction("predict", *types);
  SmallVector<Value> results;
  {
    detail::LayerScope root(*graph_, "", graph_->name);
    std::vector<Tensor> tensors = body(nameArguments(*graph_, function, 0, inputs));
    for (const Tensor &tensor : tensors) {
      if (!graph_->usable("predict's output", {&tensor}))
        return;
      results.push_back(Graph::unwrap(tensor));
    }
    if (tensors.empty() || tensors.size() != outputs.size())
      return void(graph_->fail("predict returns " + std::to_string(tensors.size()) + " tensors for " +
                               std::to_string(outputs.size()) + " names"));
    root.setOutput(tensors.front());
  }
  graph_->endFunction(function, results, llvm::to_vector_of<StringRef>(outputs));
  graph_->predict = function;
}

/// Whether `entry`, loss or accuracy, can be built now; else the model holds the reason.
bool ModelBuilder::mayBegin(const std::string &entry) {
  if (graph_->failed())
    return false;
  const bool built = entry == "loss" ? graph_->loss != nullptr : graph_->accuracy != nullptr;
  if (!graph_->predict || built)
    graph_->fail(entry + (built ? " is built twice" : " comes before predict; build predict first"));
  return !graph_->failed();
}

void ModelBuilder::buildMetric(const std::string &entry, const std::vector<Input> &targets,
                               const Body<Loss> &body) {
  if (!mayBegin(entry))
    return;
  func::FuncOp predict = graph_->predict;
  std::optional<SmallVector<Type>> targetTypes = inputTypes(*graph_, targets, argumentNames(predict));
  if (!targetTypes)
    return;
  SmallVector<Type> types(predict.getArgumentTypes());
  types.append(*targetTypes);
  func::FuncOp function = graph_->beginFunction(entry, types);

  // What predict takes, the metric takes under the same names.
  for (unsigned i = 0; i < predict.getNumArguments(); ++i) {
    function.setArgAttrs(i, predict.getArgAttrDict(i));
    function.getArgument(i).setLoc(predict.getArgument(i).getLoc());
  }
  auto call = func::CallOp::create(graph_->builder, graph_->named("predict"), predict,
                                   function.getArguments().take_front(predict.getNumArguments()));
  std::vector<Tensor> tensors = {graph_->wrap(call.getResult(0))};
  for (const Tensor &target : nameArguments(*graph_, function, predict.getNumArguments(), targets))
    tensors.push_back(target);
  endMetric(entry, body(tensors));
}

void ModelBuilder::buildMetricFrom(const std::string &entry, const std::vector<Input> &inputs,
                                   const std::vector<Input> &targets, const Body<Loss> &body) {
  if (!mayBegin(entry))
    return;
  std::vector<Input> all = inputs;
  all.insert(all.end(), targets.begin(), targets.end());
  std::optional<SmallVector<Type>> types = inputTypes(*graph_, all, {});
  if (!types)
    return;
  func::FuncOp function = graph_->beginFunction(entry, *types);
  endMetric(entry, body(nameArguments(*graph_, function, 0, all)));
}

/// Returns what the metric's body gave from the function that is being built.
void ModelBuilder::endMetric(const std::string &entry, const Loss &result) {
  if (!graph_->usable(entry == "loss" ? "loss" : "accuracy", {&result.sum, &result.count}))
    return;
  if (!isFloat(result.sum.dtype()) || !isScalarOf(result.sum, result.sum.dtype()) ||
      !isScalarOf(result.count, result.sum.dtype()))
    return void(graph_->fail("sum and count are scalars of one floating-point type, got " +
                             toString(result.sum.shape()) + " " + nameOf(result.sum.dtype()) + " and " +
                             toString(result.count.shape()) + " " + nameOf(result.count.dtype())));
  static constexpr StringRef kLossNames[] = {"loss_sum", "count"},
                             kAccuracyNames[] = {"correct", "correct_count"};
  auto function = cast<func::FuncOp>(graph_->builder.getInsertionBlock()->getParentOp());
  graph_->endFunction(function, {Graph::unwrap(result.sum), Graph::unwrap(result.count)},
                      entry == "loss" ? ArrayRef(kLossNames) : ArrayRef(kAccuracyNames));
  (entry == "loss" ? graph_->loss : graph_->accuracy) = function;
}

//===----------------------------------------------------------------------===//
// The recipe and the end
//===----------------------------------------------------------------------===//

std::vector<std::string> recipeEntryNames() {
  std::vector<std::string> names;
  for (StringRef key : ir::recipeKeys())
    if (!llvm::is_contained({"loss", "accuracy", "batch", "optimizer"}, key)) // said in places of their own
      names.push_back(key.str());
  return names;
}

void ModelBuilder::recipe(const Recipe &recipe) {
  if (graph_->failed())
    return;
  if (!graph_->loss || graph_->recipe)
    return void(
        graph_->fail(graph_->recipe ? "recipe is given twice" : "a recipe needs a loss; build loss first"));
  if (recipe.batch < 1)
    return void(graph_->fail("recipe with batch " + std::to_string(recipe.batch) + "; it is at least 1"));
  for (const auto &[key, text] : recipe.entries)
    if (std::vector<std::string> names = recipeEntryNames(); !llvm::is_contained(names, key))
      return void(graph_->fail("recipe has no entry '" + key + "'; the nearest is '" +
                               nearestName(key, names) + "', all are: " + llvm::join(names, " ")));
  RecipeTexts texts = {{"optimizer", recipe.optimizer}};
  texts.insert(texts.end(), recipe.entries.begin(), recipe.entries.end());
  FirstError unknown(&graph_->context, /*warned=*/nullptr);
  FailureOr<NamedAttrList> entries =
      recipeEntriesOf(&graph_->context, texts, [&] { return emitError(UnknownLoc::get(&graph_->context)); });
  if (failed(entries))
    return void(graph_->fail(unknown.take("recipe").message()));
  graph_->builder.setInsertionPointToEnd(graph_->module->getBody());
  graph_->recipe = ir::RecipeOp::create(
      graph_->builder, graph_->named("recipe"), FlatSymbolRefAttr::get(&graph_->context, "loss"),
      graph_->accuracy ? FlatSymbolRefAttr::get(&graph_->context, "accuracy") : FlatSymbolRefAttr());
  graph_->recipe.setBatch(recipe.batch);
  for (NamedAttribute entry : *entries)
    graph_->recipe->setAttr(entry.getName(), entry.getValue());
}

Result<Model> ModelBuilder::finish() {
  // What is built after the end goes into a model that has failed.
  auto spent = std::make_unique<Graph>(graph_->name, graph_->floats);
  spent->fail("the model is finished already");
  std::unique_ptr<Graph> graph = std::exchange(graph_, std::move(spent));
  if (!graph->failed() && !graph->predict)
    graph->fail("a model needs predict");
  if (graph->failed())
    return graph->error();

  graph->declareBlocks();
  // A backstop: what the builder did not find, an op's verifier does.
  FirstError error(&graph->context, /*warned=*/nullptr);
  if (failed(verify(*graph->module)))
    graph->fail(error.take("the model does not verify").message());
  if (graph->failed())
    return graph->error();
  return Model(std::move(graph));
}

Model::Model(std::unique_ptr<Graph> graph) : graph_(std::move(graph)) {}
Model::Model(Model &&) noexcept = default;
Model::~Model() = default;

const std::vector<std::string> &Model::leftOut() const { return graph_->leftOut; }

ModuleOp Model::module() const { return *graph_->module; }

std::string Model::text() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  // Each op with loc("layer") beside it, and its value named after the layer.
  module().print(stream, OpPrintingFlags().enableDebugInfo().useLocalScope().printNameLocAsPrefix());
  return text + "\n";
}

Status Model::write(const std::string &path) const { return writeFileAtomically(path, text()); }

} // namespace gpuc::nn
