//===- Importer.cpp - From an ONNX graph to functions of the gpuc dialect ---===//

#include "frontend/onnx/Importer.h"

#include "frontend/onnx/Loss.h"
#include "frontend/onnx/Text.h"
#include "frontend/onnx/ops/OpTable.h"

#include "mlir/IR/Verifier.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA1.h"

using namespace mlir;

namespace gpuc::onnx {

Operand *NameScope::find(const std::string &name) {
  auto found = operands_.find(name);
  if (found != operands_.end())
    return &found->second;
  return parent_ ? parent_->find(name) : nullptr;
}

Operand *NameScope::define(const std::string &name, Operand operand) {
  auto [place, made] = operands_.try_emplace(name, std::move(operand));
  place->second.name = name;
  return made ? &place->second : nullptr;
}

Importer::Importer(const Model &model, const ImportOptions &options)
    : model_(model), origins_(model), options_(options), context_(MLIRContext::Threading::DISABLED),
      builder_(&context_), emitter_(builder_) {
  context_.loadDialect<ir::GpucDialect, func::FuncDialect>();
  module_ = ModuleOp::create(
      NameLoc::get(builder_.getStringAttr(model.graph.name.empty() ? "onnx" : model.graph.name)));
}

bool Importer::isOutput(const std::string &name) const {
  return llvm::any_of(model_.graph.outputs, [&](const ValueInfo &output) { return output.name == name; });
}

/// What asks for the batch to be bound says NAME, which by now may be known.
Failure Importer::report(std::string text, std::set<std::string> unknown) {
  constexpr std::string_view kCure = "--dim NAME=";
  size_t cure = text.find(kCure);
  if (cure != std::string::npos && batch_ && !batch_->empty())
    text.replace(cure, kCure.size(), "--dim " + *batch_ + "=");
  out_.problems.push_back({oneLine(text), std::move(unknown)});
  return {};
}

static std::string describe(const std::string &prefix, const Node &node) {
  return "node '" + prefix + node.name + "' (" + (node.domain.empty() ? "" : node.domain + ".") + node.op +
         ")";
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

void Importer::define(NameScope &scope, const std::string &name, Operand operand, const std::string &by) {
  if (!scope.define(name, std::move(operand)))
    report(by + ": '" + name + "' is defined twice");
}

void Importer::bindInitializers(const Graph &graph, NameScope &scope) {
  for (const auto &[name, tensor] : graph.initializers) {
    Operand operand;
    operand.known = tensor;
    operand.origin = origins_.of(name);
    operand.weight = tensor->supported && isVariable(name, *tensor, operand.origin);
    define(scope, name, std::move(operand), "initializer '" + name + "'");
  }
}

/// The shape of an input, the batch with `?`; none after a problem.
std::optional<Shape> Importer::inputShape(const ValueInfo &input) {
  const std::string what = "input '" + input.name + "'";
  if (!input.type)
    return report(what + " is " + input.typeName +
                  ": gpuc knows FLOAT DOUBLE FLOAT16 BFLOAT16 INT64 INT32 INT8 UINT8 BOOL");
  if (!input.shape)
    return report(what + " has no shape");
  Shape shape;
  for (const Extent &extent : *input.shape) {
    const std::string where = what + ": dimension " + std::to_string(shape.size());
    auto given = options_.dims.find(extent.name);
    std::optional<int64_t> number = extent.number;
    if (!number && !extent.name.empty() && given != options_.dims.end())
      number = given->second;
    if (number && *number >= 0) {
      shape.push_back(*number);
    } else if (number && *number < -1) {
      return report(where + " has extent " + std::to_string(*number));
    } else if (!shape.empty()) {
      return report(where + (extent.name.empty()
                                 ? " has neither extent nor name: only the first may be open"
                                 : " ('" + extent.name + "') is open: pass --dim " + extent.name + "=N"));
    } else {
      if (batch_ && *batch_ != extent.name)
        return report(where + " ('" + extent.name + "') and '" + *batch_ +
                      "' are both open, but only one can be the batch: bind the other with --dim");
      batch_ = extent.name;
      shape.push_back(kBatch);
    }
  }
  return shape;
}

void Importer::bindInputs() {
  std::set<std::string> initialized;
  for (const auto &[name, tensor] : model_.graph.initializers)
    initialized.insert(name);
  for (const ValueInfo &input : model_.graph.inputs) {
    if (initialized.count(input.name))
      continue; // Up to IR version 3 weights are listed as inputs too.
    Operand operand;
    operand.origins = {input.name};
    auto constant = options_.constants.find(input.name);
    if (constant != options_.constants.end()) {
      operand.known = constant->second;
    } else if (std::optional<Shape> shape = inputShape(input)) {
      RankedTensorType type = emitter_.tensorType(*shape, *input.type);
      if (isAbsurd(type)) {
        report("input '" + input.name + "' has an absurd shape");
        operand.failed = true;
      } else {
        Location location = NameLoc::get(builder_.getStringAttr(input.name));
        operand.tensor = Tensor(&emitter_, predict_.getBody().addArgument(type, location));
        argumentNames_.push_back(input.name);
      }
    } else {
      operand.failed = true;
    }
    define(globals_, input.name, std::move(operand), "input '" + input.name + "'");
  }
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

void Importer::runNodes(const std::vector<Node> &nodes, NameScope &scope) {
  const std::vector<Node> *outer = std::exchange(running_, &nodes);
  NameScope *outerScope = std::exchange(current_, &scope);
  for (const Node &node : nodes)
    runNode(node, scope);
  running_ = outer;
  current_ = outerScope;
}

/// Whether there is such an op with such attributes, whatever its inputs; reports everything that is not.
bool Importer::check(const Node &node, const Function *function) {
  if (function)
    return true;
  const OpRecord *record = node.domain.empty() ? findOp(node.op) : nullptr;
  if (!record)
    return report(describe(prefix_, node) + ": the op is not supported");
  bool sound = true;
  for (const NodeAttribute &attribute : node.attributes)
    if (!llvm::is_contained(record->attributes, attribute.name))
      sound = report(describe(prefix_, node) + ": attribute '" + attribute.name + "' is not supported");
  return sound;
}

/// Whether the node takes a list of tensors there.
static bool takesSequence(const Node &node, size_t input) {
  static const std::set<std::string> ops = {"SequenceAt",     "SequenceInsert",     "SequenceErase",
                                            "SequenceLength", "ConcatFromSequence", "Identity"};
  return input == 0 && node.domain.empty() && ops.count(node.op) > 0;
}

/// The node's inputs; false if one is missing or could not be computed.
bool Importer::gatherInputs(const Node &node, NameScope &scope, std::vector<Operand *> &inputs) {
  bool sound = true;
  for (const std::string &name : node.inputs) {
    Operand *operand = name.empty() ? nullptr : scope.find(name);
    inputs.push_back(operand);
    if (operand && !operand->absent.empty())
      sound = report(describe(prefix_, node) + ": reads '" + name +
                     "', which gpuc does not compute: " + operand->absent);
    else if (operand && operand->sequence && !takesSequence(node, inputs.size() - 1))
      sound = report(describe(prefix_, node) + ": input '" + name +
                     "' is a sequence, which gpuc only takes apart and joins");
    else if (operand && operand->known && !operand->known->supported)
      sound = report(describe(prefix_, node) + ": input '" + name + "' is " + operand->known->typeName +
                     ", an element type that gpuc does not have");
    sound &= name.empty() || (operand && !operand->failed);
    if (operand || name.empty())
      continue;
    const Node *maker = nullptr;
    for (const Node &other : *running_)
      if (llvm::is_contained(other.outputs, name))
        maker = &other;
    report(describe(prefix_, node) + ": reads '" + name +
           (maker ? "', which " + describe(prefix_, *maker) +
                        " computes only later: the graph has a cycle or is not sorted"
                  : "', which nothing defines: an initializer, or a node, is missing"));
  }
  while (!inputs.empty() && !inputs.back())
    inputs.pop_back(); // Left out at the end, in one of two ways.
  return sound;
}

/// What stands in a function, branch or loop that is not run, since what it reads could not be computed: one
/// run lists everything that is not supported.
void Importer::checkInside(const Node &node, const Function *function) {
  auto checkNodes = [&](const std::vector<Node> &nodes) {
    for (const Node &inner : nodes) {
      const Function *called = findFunction(inner);
      if (check(inner, called))
        checkInside(inner, called);
    }
  };
  std::string outer = std::exchange(prefix_, prefix_ + node.name + "/");
  if (function && checked_.insert(function).second)
    checkNodes(function->nodes);
  for (const NodeAttribute &attribute : node.attributes)
    if (attribute.graph())
      checkNodes(attribute.graph()->nodes);
  prefix_ = outer;
}

void Importer::runNode(const Node &node, NameScope &scope) {
  constexpr int64_t kMostNodes = 1 << 18; // Functions that call others twice make a small file a vast graph.
  if (++nodes_ > kMostNodes) {
    if (nodes_ == kMostNodes + 1)
      report(describe(prefix_, node) + ": the graph has more than " + std::to_string(kMostNodes) + " nodes");
    return;
  }
  const Function *function = findFunction(node);
  std::vector<Operand *> inputs;
  bool known = check(node, function), sound = gatherInputs(node, scope, inputs) && known;
  NodeScope lowering(*this, emitter_, node, inputs);
  if (known && !sound)
    checkInside(node, function);
  if (sound) {
    emitter_.location = NameLoc::get(builder_.getStringAttr(prefix_ + node.name));
    size_t before = out_.problems.size();
    if (function)
      call(*function, lowering);
    else if (!fold(lowering) && !lowering.failed())
      findOp(node.op)->lower(lowering);
    if (emitter_.failed())
      sound = report(describe(prefix_, node) + ": " + emitter_.takeError(), lowering.unknownOrigins());
    sound &= out_.problems.size() == before; // A call reports for itself.
  }
  bindOutputs(lowering, sound, scope);
}

void Importer::bindOutputs(NodeScope &node, bool sound, NameScope &names) {
  // Only what is small can end up as a shape.
  constexpr int64_t kMostShapeElements = 1024;
  std::set<std::string> origins;
  for (size_t i = 0; i < node.inputCount(); ++i)
    if (node.has(i))
      origins.insert(node.operand(i).origins.begin(), node.operand(i).origins.end());
  for (auto [name, operand] : llvm::zip_equal(node.node.outputs, node.outputs)) {
    if (name.empty())
      continue;
    int64_t count = 1;
    for (int64_t extent : operand.tensor.shape())
      count *= extent == kBatch ? kMostShapeElements + 1 : extent;
    if (count <= kMostShapeElements)
      operand.origins = origins;
    operand.failed = !sound;
    if (sound && !operand.tensor && !operand.known && !operand.sequence)
      operand.absent = "an output of " + describe(prefix_, node.node);
    define(names, name, std::move(operand), describe(prefix_, node.node));
  }
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

/// A name as it may stand in a file's name too: gpuc-run writes outputs to NAME.npy.
static std::string portName(const std::string &name, std::set<std::string> &taken) {
  std::string made;
  for (char letter : name)
    made += isalnum(static_cast<unsigned char>(letter)) || letter == '_' || letter == '-' ||
                    (letter == '.' && !made.empty())
                ? letter
                : '_';
  if (made.empty())
    made = "value";
  std::string unique = made;
  for (int i = 1; !taken.insert(unique).second; ++i)
    unique = made + "_" + std::to_string(i);
  return unique;
}

void Importer::finishPredict() {
  std::set<std::string> argumentPorts, resultPorts, listed;
  for (auto [name, argument] : llvm::zip_equal(argumentNames_, predict_.getBody().getArguments()))
    if (llvm::is_contained(cast<RankedTensorType>(argument.getType()).getShape(), 0))
      report("input '" + name + "' has an extent of 0: gpuc has no empty inputs");
  SmallVector<Value> results;
  SmallVector<std::string> names;
  for (const ValueInfo &output : model_.graph.outputs) {
    Operand *operand = globals_.find(output.name);
    if (!operand || !operand->absent.empty()) {
      report("output '" + output.name + "' is computed by " +
             (operand ? "nothing that gpuc knows: it is " + operand->absent : "no node"));
      continue;
    }
    if (operand->failed)
      continue; // Reported where it failed.
    if (!listed.insert(output.name).second) {
      report("output '" + output.name + "' is listed twice");
      continue;
    }
    if (operand->sequence) {
      report("output '" + output.name + "' is a sequence: gpuc gives tensors only");
      continue;
    }
    emitter_.location = NameLoc::get(builder_.getStringAttr(output.name));
    Tensor value = materialize(*operand);
    if (emitter_.failed())
      report("output '" + output.name + "': " + emitter_.takeError());
    else if (llvm::is_contained(value.shape(), 0))
      report("output '" + output.name + "' has shape " + toString(value.shape()) +
             ": gpuc has no empty outputs");
    else
      results.push_back(value.value()), names.push_back(portName(output.name, resultPorts));
  }
  if (!out_.problems.empty())
    return;
  func::ReturnOp::create(builder_, predict_.getLoc(), results);
  predict_.setType(
      builder_.getFunctionType(predict_.getBody().getArgumentTypes(), TypeRange(ValueRange(results))));
  for (auto [index, name] : llvm::enumerate(argumentNames_))
    predict_.setArgAttr(index, "gpuc.name", builder_.getStringAttr(portName(name, argumentPorts)));
  for (auto [argument, extent] : ranges_)
    predict_.setArgAttr(argument, "gpuc.range", builder_.getI64IntegerAttr(extent));
  for (auto [argument, value] : ignored_)
    if (value < 0 || value >= ranges_.at(argument)) // Else the range has it.
      predict_.setArgAttr(argument, "gpuc.ignored", builder_.getI64IntegerAttr(value));
  for (auto [index, name] : llvm::enumerate(names))
    predict_.setResultAttr(index, "gpuc.name", builder_.getStringAttr(name));
  // What only shapes were taken of, or what was read for nothing.
  eraseUnused(predict_.getBody().front());
  checkExtents();
}

/// Programs compute with no empty tensor; what joins one to others or pads it has taken it in.
void Importer::checkExtents() {
  predict_.walk([&](Operation *op) {
    for (Type type : op->getResultTypes()) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || !llvm::is_contained(tensor.getShape(), 0))
        continue;
      auto name = dyn_cast<NameLoc>(op->getLoc());
      report("node '" + (name ? name.getName().str() : "") + "' computes with a tensor of shape " +
             toString(Shape(tensor.getShape())) + ": gpuc takes an empty tensor into Concat and Pad only");
      return WalkResult::interrupt(); // Others follow from the first.
    }
    return WalkResult::advance();
  });
}

Status Importer::addLoss() {
  GPUC_ASSIGN_OR_RETURN(LossSpec spec, parseLoss(context_, options_.loss));
  return onnx::addLoss(emitter_, predict_, spec, out_.notes);
}

/// Files of another export often have the same length.
void Importer::checkExternalFiles() {
  for (const auto &[file, checksum] : model_.checksums) {
    auto bytes = llvm::MemoryBuffer::getFile(file, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!bytes) {
      report("cannot read external data '" + file + "': " + bytes.getError().message());
      continue;
    }
    std::string found =
        llvm::toHex(llvm::SHA1::hash(llvm::arrayRefFromStringRef((*bytes)->getBuffer())), true);
    if (!StringRef(checksum).equals_insensitive(found))
      report("external data '" + file + "' are not those that the model was saved with: their SHA-1 is " +
             found + ", its 'checksum' says " + checksum +
             "; take the file that belongs to it, or save the model again");
  }
}

ImportedModel Importer::run(const Unmerged &unmerged) {
  builder_.setInsertionPointToEnd(module_->getBody());
  Location location = NameLoc::get(builder_.getStringAttr("predict"));
  predict_ = func::FuncOp::create(builder_, location, "predict", builder_.getFunctionType({}, {}));
  builder_.setInsertionPointToStart(&predict_.getBody().emplaceBlock());
  checkExternalFiles();
  bindInitializers(model_.graph, globals_);
  bindInputs();
  runNodes(model_.graph.nodes, globals_);
  if (model_.graph.outputs.empty())
    report("the graph has no output");
  finishPredict();
  if (out_.problems.empty()) {
    checkFrozen();
    checkTrained();
    reportDecisions(unmerged);
  }
  if (out_.problems.empty() && !options_.loss.empty())
    if (Status added = addLoss(); !added.ok())
      report("--loss=" + options_.loss + ": " + added.message());
  if (!out_.problems.empty())
    return std::move(out_);

  std::string said;
  ScopedDiagnosticHandler handler(&context_, [&](Diagnostic &diagnostic) { said = diagnostic.str(); });
  if (failed(verify(*module_))) {
    report("the imported module is not sound: " + said);
    return std::move(out_);
  }
  listVariables();
  llvm::raw_string_ostream stream(out_.text);
  // Each op with loc("node") beside it, and its value named after the node.
  module_->print(stream, OpPrintingFlags().enableDebugInfo().useLocalScope().printNameLocAsPrefix());
  stream << '\n';
  return std::move(out_);
}

ImportedModel importModel(const Model &model, const ImportOptions &options) {
  Model apart = model;
  Unmerged unmerged = unmerge(apart);
  return Importer(apart, options).run(unmerged);
}

Status checkLoss(const std::string &loss) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<ir::GpucDialect>();
  return parseLoss(context, loss).status();
}

} // namespace gpuc::onnx
