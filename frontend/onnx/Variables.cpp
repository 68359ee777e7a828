//===- Variables.cpp - Weights of an ONNX model -----------------------------===//
//
// A weight's value travels in a safetensors file; the module only says how it would begin without that: with
// the same number everywhere if the weight is so, else drawn with the weight's mean and deviation.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Importer.h"

#include "frontend/onnx/Tables.h"

#include "runtime/base/flags.h"

#include <cmath>
#include <numeric>

using namespace mlir;

namespace gpuc::onnx {

static constexpr int64_t kMostConstantElements = 4096; // More would drown the text.

static bool allEqual(const std::string &bytes, size_t size) {
  // Each element equals the one before it.
  return bytes.size() <= size || std::equal(bytes.begin() + size, bytes.end(), bytes.begin());
}

ir::SpecAttr Importer::initializerOf(const HostTensor &tensor) {
  auto spec = [&](StringRef name, ArrayRef<NamedAttribute> numbers = {}) {
    return ir::SpecAttr::get(&context_, name, builder_.getDictionaryAttr(numbers));
  };
  if (!gpuc::isFloat(tensor.spec.type) || tensor.bytes->empty())
    return spec("zeros");
  std::vector<double> numbers = numbersOf(tensor);
  if (allEqual(*tensor.bytes, sizeOf(tensor.spec.type)) && std::isfinite(numbers[0]))
    return numbers[0] == 0 ? spec("zeros") : spec("constant", emitter_.attribute("value", numbers[0]));
  double sum = 0, squares = 0;
  for (double number : numbers)
    sum += number;
  double mean = sum / numbers.size();
  for (double number : numbers)
    squares += (number - mean) * (number - mean);
  double deviation = std::sqrt(squares / numbers.size());
  if (!std::isfinite(mean) || !std::isfinite(deviation))
    return spec("zeros");
  return spec("normal", {emitter_.attribute("mean", mean), emitter_.attribute("std", deviation)});
}

std::string someOf(const std::vector<std::string> &names) {
  constexpr size_t kMost = 4;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  return text + (names.size() > kMost ? ", …" : "");
}

/// Whether `name` is `pattern`, in which each * stands for any text.
static bool matches(std::string_view name, std::string_view pattern) {
  size_t star = pattern.find('*');
  if (star == std::string_view::npos)
    return name == pattern;
  if (!name.starts_with(pattern.substr(0, star)))
    return false;
  for (size_t from = star; from <= name.size(); ++from)
    if (matches(name.substr(from), pattern.substr(star + 1)))
      return true;
  return false;
}

bool Importer::isNamed(const std::vector<std::string> &patterns, const Operand &operand,
                       std::map<std::string, std::vector<HostTensorPtr>> &found) {
  bool named = false;
  for (const std::string &pattern : patterns)
    if (matches(operand.name, pattern)) {
      found[pattern].push_back(operand.known);
      named = true;
    }
  return named;
}

/// Initializers of floating point are variables; what the exporter made of numbers alone is none. Of single
/// numbers only parameters are: most are constants of the graph.
bool Importer::isVariable(const std::string &name, const HostTensor &tensor, Origin origin) {
  const bool isLarge = tensor.spec.elementCount() > kMostConstantElements;
  if (tensor.spec.elementCount() == 0)
    return false;
  if (!gpuc::isFloat(tensor.spec.type) || origin == Origin::constant)
    return isLarge;
  auto isMeant = [&](const std::string &pattern) { return matches(name, pattern); };
  return !tensor.spec.shape.empty() || origin == Origin::parameter || origin == Origin::state ||
         llvm::any_of(options_.train, isMeant);
}

/// Whether a name is one that modules give to parameters: fc1.weight, cls_token, logit_scale.
static bool isParameterName(const std::string &name) {
  std::string last = name.substr(name.rfind('.') + 1);
  static const char *const kParts[] = {"weight", "bias",  "embed", "token", "gamma", "beta",   "alpha",
                                       "scale",  "param", "proj",  "query", "slope", "kernel", "latent"};
  return llvm::any_of(kParts, [&](const char *part) { return last.find(part) != std::string::npos; });
}

/// What nobody said is trained, but a buffer, or what looks like a mask or a table.
bool Importer::isFrozenByItself(const Operand &operand) {
  if (operand.statistic)
    return false;
  if (operand.origin == Origin::buffer || operand.origin == Origin::constant)
    return true;
  const Table table = tableOf(*operand.known);
  const bool named = isParameterName(operand.name);
  // A parameter may be a table of sines as well: one that needs no gradient, of which no exporter tells.
  if (table == Table::mask || table == Table::sines ||
      (table == Table::progression && operand.origin != Origin::parameter && !named)) {
    say(std::string("not trained, since each holds ") + describe(table) + "; --train=NAME trains one",
        operand.name);
    return true;
  }
  if (operand.origin == Origin::computed)
    computed_.insert(operand.name);
  if (operand.origin == Origin::reshaped)
    say("trained under these names, as the exporter transposed them; do_constant_folding=False keeps "
        "the names",
        operand.name);
  if (operand.origin == Origin::state && !named)
    say("trained, although the file does not say whether they are parameters or buffers; --freeze=NAME "
        "keeps one as it is, and an export with dynamo=True, optimize=False says what is a buffer",
        operand.name);
  return false;
}

/// Only initializers are weights; constants of the graph, and integers, stay as they are.
bool Importer::isFrozen(const Operand &operand) {
  const bool frozen = isNamed(options_.freeze, operand, frozenBy_);
  const bool trained = isNamed(options_.train, operand, trainedBy_);
  if (!operand.weight || !gpuc::isFloat(operand.known->spec.type))
    return true;
  return frozen || (!trained && isFrozenByItself(operand));
}

std::string Importer::suggestWeight(const std::string &pattern) {
  std::vector<std::string> names;
  for (const HostTensorPtr &weight : out_.weights)
    names.push_back(weight->spec.name);
  std::string similar = pattern.find('*') == std::string::npos ? similarName(pattern, names) : "";
  if (!similar.empty())
    return "; did you mean '" + similar + "'?";
  return names.empty() ? "" : "; it has " + someOf(names);
}

void Importer::checkTrained() {
  for (const std::string &pattern : options_.train)
    if (trainedBy_[pattern].empty())
      report("--train: the model has no weight '" + pattern + "'" + suggestWeight(pattern));
}

/// A pattern that no weight has is a misspelt one, and one that has nothing but statistics would do nothing.
void Importer::checkFrozen() {
  auto isStatistic = [&](const HostTensorPtr &tensor) { return declared_[tensor].getKind() == "statistic"; };
  for (const std::string &pattern : options_.freeze) {
    const std::vector<HostTensorPtr> &named = frozenBy_[pattern];
    if (named.empty())
      report("--freeze: the model has no weight '" + pattern + "'" + suggestWeight(pattern));
    else if (llvm::all_of(named, isStatistic))
      report("--freeze: '" + pattern +
             "' names only running statistics, which batch norm assigns in each training step, frozen or "
             "not: leave the flag out, or name weights");
  }
}

/// A variable behind another one, or at the top of the module.
ir::VariableOp Importer::addVariable(Operation *after, const std::string &name, Type type,
                                     ir::SpecAttr initializer, bool frozen, StringRef kind) {
  OpBuilder builder(&context_);
  if (after)
    builder.setInsertionPointAfter(after);
  else
    builder.setInsertionPointToStart(module_->getBody());
  StringAttr symbol = builder.getStringAttr(name);
  return ir::VariableOp::create(builder, NameLoc::get(symbol), name, cast<RankedTensorType>(type),
                                initializer, frozen, kind);
}

ir::VariableOp Importer::declareVariable(const Operand &operand) {
  // One tensor may be known under several names: outside and inside of a function.
  ir::VariableOp &declared = declared_[operand.known];
  if (declared)
    return declared;
  // Names that gpuc itself gives to functions and counters.
  static const std::set<std::string> kReserved = {"predict",    "loss",      "accuracy", "init",
                                                  "train_step", "eval_step", "seed",     "step"};
  std::string name = operand.name;
  while (kReserved.count(name) || variables_.count(name))
    name += "_";
  const HostTensor &value = *operand.known;
  auto variable = addVariable(lastVariable_, name, emitter_.tensorType(value.spec.shape, value.spec.type),
                              initializerOf(value), isFrozen(operand), "parameter");
  lastVariable_ = variable;
  declared = variable;
  variables_.insert(name);
  auto weight = std::make_shared<HostTensor>(value);
  weight->spec.name = name;
  out_.weights.push_back(weight);
  return variable;
}

/// The pass that expands the recipe takes a counter that is there for its own.
Tensor Importer::readCounter(const std::string &name) {
  auto type = emitter_.tensorType({}, DataType::i64);
  if (!module_->lookupSymbol(name)) {
    auto zeros = ir::SpecAttr::get(&context_, "zeros", builder_.getDictionaryAttr({}));
    auto counter = addVariable(/*after=*/nullptr, name, type, zeros, /*frozen=*/false, "counter");
    if (!lastVariable_)
      lastVariable_ = counter;
  }
  return emitter_.op("read", {}, builder_.getNamedAttr("variable", FlatSymbolRefAttr::get(&context_, name)),
                     type);
}

Tensor Importer::readVariable(const Operand &operand) {
  ir::VariableOp variable = declareVariable(operand);
  auto symbol = FlatSymbolRefAttr::get(&context_, variable.getSymName());
  return emitter_.op("read", {}, builder_.getNamedAttr("variable", symbol), variable.getType());
}

Tensor Importer::materialize(Operand &operand) {
  if (operand.tensor || emitter_.failed())
    return operand.tensor;
  if (!operand.known)
    return emitter_.fail("'" + operand.name + "' could not be computed");
  if (operand.known->symbolic)
    return emitter_.fail("'" + operand.name +
                         "' depends on the batch, which is open: bind it with --dim NAME=N");
  if (operand.origin == Origin::computed && !operand.weight && gpuc::isFloat(operand.known->spec.type))
    computed_.insert(operand.name);
  const TensorSpec &spec = operand.known->spec;
  bool stored = operand.weight || (spec.elementCount() > kMostConstantElements &&
                                   !allEqual(*operand.known->bytes, sizeOf(spec.type)));
  return operand.tensor = stored ? readVariable(operand) : emitter_.constant(*operand.known);
}

void Importer::markStatistic(Operand &operand) {
  if (!operand.weight)
    return;
  operand.statistic = true;
  if (!materialize(operand))
    return;
  ir::VariableOp variable = declared_[operand.known];
  variable.setKind("statistic");
  variable.setFrozen(false); // It has no gradient, but is assigned.
  // Drawn numbers could be negative, which no variance is.
  std::vector<double> numbers = numbersOf(*operand.known);
  double mean = std::accumulate(numbers.begin(), numbers.end(), 0.0) / std::max<size_t>(numbers.size(), 1);
  if (std::isfinite(mean) && mean != 0)
    variable.setInitializerAttr(ir::SpecAttr::get(
        &context_, "constant", builder_.getDictionaryAttr(emitter_.attribute("value", mean))));
}

void Importer::assign(Operand &operand, const Tensor &value) {
  if (!value || emitter_.failed())
    return;
  ir::VariableOp variable = declared_[operand.known];
  ir::AssignOp &assign = assigns_[variable];
  if (assign) // A layer that is called twice goes on from its first call.
    assign.erase();
  assign = ir::AssignOp::create(builder_, emitter_.location,
                                FlatSymbolRefAttr::get(&context_, variable.getSymName()), value.value());
  operand.tensor = value;
}

void Importer::listVariables() {
  using Role = ImportedVariable::Role;
  for (const HostTensorPtr &weight : out_.weights) {
    auto variable = module_->lookupSymbol<ir::VariableOp>(weight->spec.name);
    if (!variable)
      continue;
    const bool isStatistic = variable.getKind() == "statistic";
    out_.variables.push_back({weight->spec, isStatistic            ? Role::statistic
                                            : variable.getFrozen() ? Role::frozen
                                                                   : Role::trained});
  }
}

/// What the value is, behind ops that neither leave out elements nor change them.
static Value sourceOf(Value value) {
  while (value) {
    Operation *op = value.getDefiningOp();
    if (!op || !(isa<ir::ReshapeOp, ir::TransposeOp, ir::CastOp>(op)))
      break;
    value = op->getOperand(0);
  }
  return value;
}

bool Importer::limitRange(const Operand &operand, int64_t extent, std::optional<int64_t> ignored) {
  auto argument = dyn_cast_or_null<BlockArgument>(sourceOf(operand.tensor.value()));
  if (!argument || argument.getOwner() != &predict_.getBody().front() ||
      !isa<IntegerType>(getElementTypeOrSelf(argument)))
    return false;
  auto [place, made] = ranges_.try_emplace(argument.getArgNumber(), extent);
  place->second = std::min(place->second, extent);
  if (ignored)
    ignored_[argument.getArgNumber()] = *ignored;
  return true;
}

} // namespace gpuc::onnx
