//===- Blocks.cpp - Layers that are computed again as a whole ----------------===//

#include "passes/recompute/Blocks.h"

#include "passes/base/Locations.h"
#include "runtime/base/flags.h"

#include "dialects/gpuc/GpucOps.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;

namespace gpuc {

namespace {

/// `h`, `h.0`, `h.0.attn` of `h.0.attn`.
SmallVector<StringRef> layersAround(StringRef layer) {
  SmallVector<StringRef> layers;
  for (size_t end = layer.find('.'); end != StringRef::npos; end = layer.find('.', end + 1))
    layers.push_back(layer.take_front(end));
  layers.push_back(layer);
  return layers;
}

class Blocks {
public:
  explicit Blocks(const std::vector<std::string> &patterns) {
    for (const std::string &pattern : patterns)
      patterns_.push_back(cantFail(llvm::GlobPattern::create(pattern))); // checked when it was read
  }

  /// The block of all that the op computes; empty if there is none, as of a kernel that begins in one block
  /// and ends in another: to compute it again would take both. Nor has one that computes gradients beside a
  /// loss: nothing of it waits.
  StringRef of(Operation *op) {
    if (isBackward(op->getLoc()))
      return "";
    std::optional<StringRef> block;
    bool isOne = true;
    op->walk([&](Operation *inner) {
      std::string layer = layerName(inner->getLoc());
      if (layer.empty() || isa<ir::FusedOp>(inner))
        return;
      StringRef here = ofLayer(layer);
      isOne &= here == block.value_or(here);
      block = here;
    });
    return isOne ? block.value_or("") : "";
  }

private:
  StringRef ofLayer(StringRef layer) {
    auto [block, isNew] = blocks_.try_emplace(layer);
    if (isNew)
      block->second = find(block->first());
    return block->second;
  }

  StringRef find(StringRef layer) const {
    for (StringRef around : layersAround(layer))
      if (llvm::any_of(patterns_, [&](const llvm::GlobPattern &pattern) { return pattern.match(around); }))
        return around;
    return "";
  }

  SmallVector<llvm::GlobPattern> patterns_;
  llvm::StringMap<StringRef> blocks_; // by layer
};

} // namespace

std::set<std::string> layersOfFunctions(ModuleOp module) {
  std::set<std::string> names;
  for (auto function : module.getOps<func::FuncOp>())
    for (const std::string &layer : layersIn(function))
      for (StringRef around : layersAround(layer))
        names.insert(around.str());
  return names;
}

LogicalResult checkBlock(StringRef pattern, const std::set<std::string> &layers,
                         llvm::function_ref<InFlightDiagnostic()> emitHere) {
  const llvm::GlobPattern glob = cantFail(llvm::GlobPattern::create(pattern));
  if (llvm::any_of(layers, [&](const std::string &name) { return glob.match(name); }))
    return success();
  InFlightDiagnostic error = emitHere() << "no layer is named '" << pattern << "'";
  if (layers.empty())
    return error << ", nor anything: what was compiled is text without locations";
  return error << "; the nearest is '" << nearestName(pattern.str(), {layers.begin(), layers.end()}) << "'";
}

llvm::BitVector valuesBetweenBlocks(const StepForward &step, const std::vector<std::string> &patterns) {
  Blocks blocks(patterns);
  llvm::BitVector between(step.values().size());
  for (const ForwardPass &forward : step.passes())
    for (Operation *op : forward.ops()) {
      const StringRef block = blocks.of(op);
      for (Value result : op->getResults())
        between[step.numberOf(result)] = block.empty();
      // What is in no block is not computed again: what it reads need not be there.
      for (Value operand : op->getOperands())
        for (Value read : bytesOf(operand))
          if (!block.empty() && forward.computes(read) && blocks.of(read.getDefiningOp()) != block)
            between.set(step.numberOf(read));
    }
  return between;
}

} // namespace gpuc
