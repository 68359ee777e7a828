//===- Locations.cpp - The layer that an op came from ------------------------===//

#include "passes/base/Locations.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace gpuc {

using namespace mlir;

static constexpr llvm::StringLiteral kBackward = "backward";

static Location tagged(Location location, StringRef tag) {
  MLIRContext *context = location->getContext();
  return FusedLoc::get(context, {location}, StringAttr::get(context, tag));
}

Location backwardOf(Location forward) { return isBackward(forward) ? forward : tagged(forward, kBackward); }

Location partOf(Location whole, StringRef op) { return wholeOf(whole).empty() ? tagged(whole, op) : whole; }

/// What `textOf` gives for the first part of the location for which that is not empty; else "".
static std::string findFirst(Location location, function_ref<std::string(Location)> textOf) {
  std::string text;
  location->walk([&](Location part) {
    text = textOf(part);
    return text.empty() ? WalkResult::advance() : WalkResult::interrupt();
  });
  return text;
}

static StringRef tagOf(Location part) {
  auto fused = dyn_cast<FusedLoc>(part);
  auto tag = fused ? dyn_cast_or_null<StringAttr>(fused.getMetadata()) : StringAttr();
  return tag ? tag.getValue() : "";
}

/// By hand: fusion asks it of each op many times, and to make MLIR's walk takes longer than to go.
bool isBackward(Location location) {
  if (auto named = dyn_cast<NameLoc>(location))
    return isBackward(named.getChildLoc());
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return isBackward(call.getCallee()) || isBackward(call.getCaller());
  auto fused = dyn_cast<FusedLoc>(location);
  return fused && (tagOf(fused) == kBackward || llvm::any_of(fused.getLocations(), isBackward));
}

std::string wholeOf(Location location) {
  return findFirst(location, [](Location part) {
    StringRef tag = tagOf(part);
    return tag == kBackward ? "" : tag.str();
  });
}

std::string layerName(Location location) {
  return findFirst(location, [](Location part) {
    auto named = dyn_cast<NameLoc>(part);
    return named ? named.getName().str() : "";
  });
}

std::set<std::string> layersIn(Operation *root) {
  std::set<std::string> layers;
  root->walk([&](Operation *op) {
    if (std::string layer = layerName(op->getLoc()); !layer.empty())
      layers.insert(std::move(layer));
  });
  return layers;
}

std::string nameInLayer(Location location, StringRef name) {
  std::string layer = layerName(location);
  return layer.empty() ? name.str() : layer + "." + name.str();
}

std::string filePlace(Location location) {
  return findFirst(location, [](Location part) -> std::string {
    auto file = dyn_cast<FileLineColRange>(part);
    if (!file)
      return "";
    return (file.getFilename().getValue() + ":" + Twine(file.getStartLine()) + ":" +
            Twine(file.getStartColumn()))
        .str();
  });
}

} // namespace gpuc
