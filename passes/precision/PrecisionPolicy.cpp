//===- PrecisionPolicy.cpp - What a recipe says of precision ----------------===//

#include "passes/precision/PrecisionPolicy.h"

#include "passes/base/Locations.h"
#include "runtime/base/flags.h"

#include "llvm/Support/GlobPattern.h"

namespace gpuc {

using namespace mlir;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// The texts under a key: one, or a tuple of them.
static FailureOr<std::vector<std::string>> readPatterns(NamedAttribute argument, EmitError emitError) {
  Attribute value = argument.getValue();
  auto list = dyn_cast<ArrayAttr>(value);
  std::vector<std::string> patterns;
  for (Attribute element : list ? list.getValue() : ArrayRef(value)) {
    auto text = dyn_cast<StringAttr>(element);
    if (!text)
      return emitError() << "precision: " << argument.getName().getValue() << " lists layers and ops, not "
                         << valueText(element);
    if (llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(text.getValue()); !glob)
      return emitError() << "precision: '" << text.getValue()
                         << "' is no pattern: " << llvm::toString(glob.takeError());
    patterns.push_back(text.str());
  }
  return patterns;
}

FailureOr<PrecisionPolicy> PrecisionPolicy::fromSpec(ir::SpecAttr spec, EmitError emitError) {
  const std::vector<std::string> known = {"f32", "tf32", "bf16", "fp16"};
  PrecisionPolicy policy;
  policy.name_ = spec.getName().str();
  if (StringRef(policy.name_).starts_with("fp8") || StringRef(policy.name_).starts_with("f8"))
    return emitError() << "precision " << policy.name_
                       << ": plans hold no products of 8 bits, neither for the host nor for CUDA; take bf16";
  if (!llvm::is_contained(known, policy.name_)) {
    std::string near = nearestName(policy.name_, known);
    return emitError() << "unknown precision '" << spec.getName() << "': the nearest is '" << near
                       << "'; known are " << llvm::join(known, ", ");
  }
  MLIRContext *context = spec.getContext();
  if (policy.name_ == "bf16")
    policy.lower_ = BFloat16Type::get(context);
  else if (policy.name_ == "fp16")
    policy.lower_ = Float16Type::get(context);
  else if (policy.name_ == "tf32")
    policy.lower_ = FloatTF32Type::get(context);
  for (NamedAttribute argument : spec.getArguments()) {
    StringRef key = argument.getName();
    if (!policy.lower_)
      return emitError() << "precision f32 has no key '" << key << "': all is f32";
    if (key == "tf32" && policy.isTf32())
      return emitError() << "precision tf32 has no key 'tf32': all products are; known is f32";
    if (key != "f32" && key != policy.name_)
      return emitError() << "precision " << policy.name_ << " has no key '" << key << "': known are f32, "
                         << policy.name_;
    FailureOr<std::vector<std::string>> patterns = readPatterns(argument, emitError);
    if (failed(patterns))
      return failure();
    for (std::string &pattern : *patterns)
      policy.overrides_.push_back(
          {std::move(pattern), key == "f32" ? PrecisionClass::f32 : PrecisionClass::lower});
  }
  return policy;
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

LogicalResult PrecisionPolicy::checkTarget(const Target &target, EmitError emitError) const {
  constexpr int kFirstTensorCores = 80; // with bf16 and tf32
  if (name_ != "bf16" && name_ != "tf32")
    return success();
  if (!target.isCuda()) {
    if (isTf32())
      return emitError() << "precision tf32: the host has no TF32 units; take f32, or compile for cuda:sm_80 "
                            "and newer";
    return success();
  }
  SmallVector<StringRef> architectures;
  StringRef(target.name).split(architectures, ',');
  for (StringRef name : architectures) {
    int architecture = 0;
    StringRef digits = name;
    if (!digits.consume_front("sm_") || digits.take_while(llvm::isDigit).getAsInteger(10, architecture) ||
        architecture >= kFirstTensorCores)
      continue;
    return emitError() << "precision " << name_ << ": cuda:" << name << " has no " << name_ << " units; take "
                       << (isTf32() ? "f32" : "fp16") << ", or compile for cuda:sm_80 and newer";
  }
  return success();
}

bool PrecisionPolicy::Override::matchesOp(StringRef op) const {
  StringRef name = pattern;
  name.consume_front("gpuc.");
  return name == op;
}

bool PrecisionPolicy::Override::matchesLayer(StringRef layer) const {
  llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(pattern);
  assert(glob && "checked when it was read");
  return !layer.empty() && glob->match(layer);
}

LogicalResult PrecisionPolicy::checkPatterns(const std::set<std::string> &layers, EmitError emitError) const {
  for (const Override &entry : overrides_) {
    bool known =
        llvm::any_of(layers, [&](StringRef layer) { return entry.matchesLayer(layer); }) ||
        llvm::any_of(precisionRules(), [&](const PrecisionRule &rule) { return entry.matchesOp(rule.op); });
    if (known)
      continue;
    std::vector<std::string> names(layers.begin(), layers.end());
    for (const PrecisionRule &rule : precisionRules())
      names.push_back("gpuc." + rule.op.str());
    return emitError() << "precision: no layer and no op is named '" << entry.pattern << "'; the nearest is '"
                       << nearestName(entry.pattern, names) << "'";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

static StringRef reasonOf(PrecisionClass kind) {
  switch (kind) {
  case PrecisionClass::lower:
    return "autocast list: lower";
  case PrecisionClass::f32:
    return "autocast list: f32";
  case PrecisionClass::promote:
    return "widest operand";
  case PrecisionClass::wide:
    return "computed in f32, stored as its operand";
  case PrecisionClass::fixed:
    return "its own types";
  }
  llvm_unreachable("a class of precision");
}

PrecisionChoice PrecisionPolicy::choose(Operation *op) const {
  StringRef name = op->getName().stripDialect();
  const PrecisionRule *rule = findPrecisionRule(name);
  PrecisionClass kind = rule ? rule->kind : PrecisionClass::fixed;
  if (kind == PrecisionClass::fixed || isa<ir::ScanOp>(op))
    return {kind, reasonOf(kind).str()};
  std::string layer = layerName(op->getLoc());
  // Where several match, f32 is the careful choice.
  for (PrecisionClass wanted : {PrecisionClass::f32, PrecisionClass::lower})
    for (const Override &entry : overrides_)
      if (entry.kind == wanted && (entry.matchesOp(name) || entry.matchesLayer(layer)))
        return {wanted, "override " + entry.pattern};
  return {kind, reasonOf(kind).str()};
}

} // namespace gpuc
