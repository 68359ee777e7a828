//===- Locations.cpp - The layer that an op came from ------------------------===//

#include "passes/base/Locations.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace gpuc {

using namespace mlir;

static constexpr llvm::StringLiteral kBackward = "backward";

static Location tagged(Location location, StringRef tag) {
  MLIRContext *context = location->getContext();
  return FusedLoc::get(context, {location}, StringAttr::get(context, tag));
}

Location backwardOf(Location forward) { return isBackward(forward) ? forward : tagged(forward, kBackward); }

Location partOf(Location whole, StringRef op) { return wholeOf(whole).empty() ? tagged(whole, op) : whole; }

/// The first tag in the location for which `matches` holds, else "".
static StringRef findTag(Location location, function_ref<bool(StringRef)> matches) {
  StringRef found;
  location->walk([&](Location part) {
    auto fused = dyn_cast<FusedLoc>(part);
    auto tag = fused ? dyn_cast_or_null<StringAttr>(fused.getMetadata()) : StringAttr();
    if (!tag || !matches(tag.getValue()))
      return WalkResult::advance();
    found = tag.getValue();
    return WalkResult::interrupt();
  });
  return found;
}

bool isBackward(Location location) {
  return !findTag(location, [](StringRef tag) { return tag == kBackward; }).empty();
}

std::string wholeOf(Location location) {
  return findTag(location, [](StringRef tag) { return tag != kBackward; }).str();
}

std::string layerName(Location location) {
  std::string name;
  location->walk([&](Location part) {
    auto named = dyn_cast<NameLoc>(part);
    if (!named)
      return WalkResult::advance();
    name = named.getName().str();
    return WalkResult::interrupt();
  });
  return name;
}

std::string filePlace(Location location) {
  std::string text;
  location->walk([&](Location part) {
    auto file = dyn_cast<FileLineColLoc>(part);
    if (!file)
      return WalkResult::advance();
    text =
        (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" + Twine(file.getColumn())).str();
    return WalkResult::interrupt();
  });
  return text;
}

} // namespace gpuc
