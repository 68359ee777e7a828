//===- Policy.cpp - What of the forward pass is kept -------------------------===//

#include "passes/recompute/Policy.h"

#include "passes/Passes.h"
#include "passes/recompute/Blocks.h"
#include "passes/recompute/Segments.h"

#include "dialects/gpuc/GpucOps.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace gpuc {

static std::string findUnknownOp(StringRef name, MLIRContext *context) {
  bool isKnown = RegisteredOperationName::lookup(("gpuc." + name).str(), context).has_value();
  return isKnown ? "" : "is no op: save= takes names such as matmul, conv2d and attention";
}

FailureOr<CheckpointPolicy> CheckpointPolicy::parse(StringRef text, MLIRContext *context,
                                                    std::string &error) {
  CheckpointPolicy policy;
  auto [word, names] = text.split('=');
  if (word == "save" || word == "blocks") {
    policy.kind = word == "save" ? Kind::save : Kind::blocks;
    for (StringRef name : llvm::split(names, ',')) {
      error =
          policy.kind == Kind::save ? findUnknownOp(name, context) : ir::CheckpointOp::findMalformed(name);
      if (!error.empty())
        return error = ("'" + name + "' " + error).str(), failure();
      policy.names.push_back(name.str());
    }
    return policy;
  }
  auto kind = llvm::StringSwitch<std::optional<Kind>>(text)
                  .Case("none", Kind::none)
                  .Case("sqrt", Kind::sqrt)
                  .Case("full", Kind::full)
                  .Default(std::nullopt);
  if (!kind)
    return error =
               ("'" + text + "' is no policy: model, none, sqrt, full, save=OP,OP… or blocks=LAYER,LAYER…")
                   .str(),
           failure();
  policy.kind = *kind;
  return policy;
}

std::string CheckpointPolicy::text() const {
  static constexpr StringLiteral kWords[] = {"none", "sqrt", "full", "save=", "blocks="};
  return kWords[static_cast<size_t>(kind)].str() + llvm::join(names, ",");
}

//===----------------------------------------------------------------------===//
// What the model says
//===----------------------------------------------------------------------===//

/// The policy of the model's gpuc.checkpoint ops, whose layers are there.
static FailureOr<CheckpointPolicy> policyOf(ArrayRef<ir::CheckpointOp> blocks, ModuleOp module) {
  CheckpointPolicy policy;
  if (blocks.empty() || !module.lookupSymbol("train_step"))
    return policy;
  policy.kind = CheckpointPolicy::Kind::blocks;
  const std::set<std::string> layers = layersOfFunctions(module);
  for (ir::CheckpointOp block : blocks) {
    if (failed(checkBlock(block.getLayers(), layers, [&] { return block.emitOpError(); })))
      return failure();
    policy.names.push_back(block.getLayers().str());
  }
  return policy;
}

/// The policy that is asked for, of whose blocks the layers are there, whatever the model says.
static FailureOr<CheckpointPolicy> policyOf(StringRef text, ArrayRef<ir::CheckpointOp> blocks,
                                            ModuleOp module) {
  std::string error;
  FailureOr<CheckpointPolicy> policy = CheckpointPolicy::parse(text, module.getContext(), error);
  if (failed(policy))
    return emitError(module.getLoc()) << error;
  if (auto step = module.lookupSymbol<func::FuncOp>("train_step");
      step && policy->kind == CheckpointPolicy::Kind::blocks)
    for (const std::string &pattern : policy->names)
      if (failed(checkBlock(pattern, layersOfFunctions(module),
                            [&] { return emitError(step.getLoc()) << "blocks: "; })))
        return failure();
  if (!blocks.empty())
    emitWarning(ir::CheckpointOp(blocks.front()).getLoc())
        << "--checkpoint=" << text << " overrules the model's gpuc.checkpoint \""
        << ir::CheckpointOp(blocks.front()).getLayers() << "\""
        << (blocks.size() > 1 ? " and " + std::to_string(blocks.size() - 1) + " more" : "");
  return policy;
}

FailureOr<CheckpointPolicy> takePolicy(StringRef text, ModuleOp module) {
  SmallVector<ir::CheckpointOp> blocks(module.getOps<ir::CheckpointOp>());
  FailureOr<CheckpointPolicy> policy =
      text == kModelPolicy ? policyOf(blocks, module) : policyOf(text, blocks, module);
  for (ir::CheckpointOp block : blocks)
    block.erase();
  return policy;
}

//===----------------------------------------------------------------------===//
// What is kept
//===----------------------------------------------------------------------===//

/// Whether the op is one of these, or a kernel that holds one.
static bool computesOne(Operation *op, ArrayRef<std::string> names) {
  auto isOne = [&](Operation *inner) {
    return llvm::is_contained(names, inner->getName().stripDialect().str());
  };
  return op
      ->walk([&](Operation *inner) { return isOne(inner) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

/// The results of ops that compute one of these, and of all behind the last of them, where the backward pass
/// begins.
static DenseSet<Value> resultsOf(ArrayRef<std::string> names, const ForwardPass &forward) {
  DenseSet<Value> kept;
  bool isBehind = true;
  for (Operation *op : llvm::reverse(forward.ops())) {
    const bool isSaved = computesOne(op, names);
    if (isSaved || isBehind)
      kept.insert_range(op->getResults());
    isBehind &= !isSaved;
  }
  return kept;
}

static DenseSet<Value> valuesKept(const CheckpointPolicy &policy, const ForwardPass &forward) {
  if (policy.kind == CheckpointPolicy::Kind::save)
    return resultsOf(policy.names, forward);
  Segments segments(forward);
  if (policy.kind == CheckpointPolicy::Kind::sqrt)
    segments.cutByRoot();
  if (policy.kind == CheckpointPolicy::Kind::full)
    segments.cutToLeast();
  DenseSet<Value> kept;
  for (Operation *op : forward.ops())
    for (Value result : op->getResults())
      if (segments.keeps(result) && !forward.isOfChunks(result))
        kept.insert(result);
  return kept;
}

llvm::BitVector valuesKept(const CheckpointPolicy &policy, const StepForward &step) {
  if (policy.kind == CheckpointPolicy::Kind::blocks)
    return valuesBetweenBlocks(step, policy.names);
  llvm::BitVector kept(step.values().size(), policy.kind == CheckpointPolicy::Kind::none);
  if (policy.kind != CheckpointPolicy::Kind::none)
    for (const ForwardPass &forward : step.passes())
      for (Value value : valuesKept(policy, forward))
        kept.set(step.numberOf(value));
  return kept;
}

} // namespace gpuc
