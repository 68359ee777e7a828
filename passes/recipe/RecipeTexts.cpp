//===- RecipeTexts.cpp - What the command line says of a recipe --------------===//

#include "passes/recipe/RecipeTexts.h"

#include "dialects/gpuc/RecipeEntries.h"
#include "passes/precision/PrecisionPolicy.h"
#include "passes/recipe/LossScale.h"
#include "passes/recipe/Outliers.h"
#include "passes/recipe/ParameterGroups.h"
#include "passes/recipe/Schedules.h"
#include "passes/recipe/WeightMeans.h"

#include "llvm/ADT/MapVector.h"

namespace gpuc {

using namespace mlir;

std::string joinRecipeTexts(const RecipeTexts &texts) {
  std::string joined;
  for (const auto &[key, text] : texts)
    joined += (joined.empty() ? "" : ";") + key + "=" + text;
  return joined;
}

RecipeTexts splitRecipeTexts(StringRef joined) {
  RecipeTexts texts;
  for (StringRef part : llvm::split(joined, ';')) {
    auto [key, text] = part.split('=');
    if (!part.trim().empty())
      texts.emplace_back(key.trim().str(), text.trim().str());
  }
  return texts;
}

LogicalResult checkRecipeEntry(StringRef key, Attribute value, EmitError emitError) {
  // Whoever reads an entry knows what it may say.
  if (key == "optimizer")
    return Optimizer::fromSpec(cast<ir::SpecAttr>(value), emitError);
  if (key == "schedule")
    return LearningRate::fromSpecs(cast<ArrayAttr>(value), emitError);
  if (key == "skip")
    return Outliers::fromSpec(cast<ir::SpecAttr>(value), emitError);
  if (key == "precision")
    return PrecisionPolicy::fromSpec(cast<ir::SpecAttr>(value), emitError);
  if (key == "loss_scale")
    return LossScale::fromSpec(cast<ir::SpecAttr>(value), emitError);
  if (key == "groups")
    return ParameterGroups::check(cast<ArrayAttr>(value), emitError);
  if (key == "ema")
    return WeightMeans::fromSpec(cast<ir::SpecAttr>(value), emitError);
  return success();
}

FailureOr<NamedAttrList> recipeEntriesOf(MLIRContext *context, const RecipeTexts &texts,
                                         EmitError emitError) {
  llvm::MapVector<StringRef, std::vector<std::string>> byKey;
  for (const auto &[key, text] : texts)
    byKey[key].push_back(text);
  NamedAttrList values;
  for (const auto &[key, ofKey] : byKey) {
    std::string error;
    FailureOr<Attribute> value = ir::recipeEntryFromTexts(context, key, ofKey, error);
    if (failed(value))
      return emitError() << key << ": " << error;
    if (failed(checkRecipeEntry(key, *value, emitError)))
      return failure();
    values.append(key, *value);
  }
  return values;
}

} // namespace gpuc
