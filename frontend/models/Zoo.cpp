//===- Zoo.cpp - The models that gpuc-model knows ---------------------------===//

#include "frontend/models/Zoo.h"

#include "runtime/base/flags.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace gpuc::models {

const std::vector<ZooModel> &zoo() {
  static const std::vector<ZooModel> models = [] {
    std::vector<ZooModel> all = {linearRegression(), mlp(),      convnet(),  rnnClassifier(), lstmGenerator(),
                                 transformer(),      resnet18(), resnet50(), gpt2()};
    for (auto &[name, summary, keys, recipe, build] : all) {
      keys.push_back({"batch", std::to_string(recipe.batch), "rows a step"});
      keys.push_back({"optimizer", recipe.optimizer, "NAME[:key=value,…], as gpuc-compile --optimizer"});
      keys.push_back({"dtype", "f32", "f32 or f64"});
    }
    return all;
  }();
  return models;
}

namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

/// What the model's own keys have, and entries of its recipe.
std::pair<std::vector<std::string>, Entries> splitSettings(const ZooModel &model,
                                                           const std::vector<std::string> &settings) {
  const std::vector<std::string> ofRecipe = nn::recipeEntryNames();
  std::vector<std::string> own;
  Entries entries;
  for (const std::string &setting : settings) {
    auto [key, text] = llvm::StringRef(setting).split('=');
    const bool isOwn = llvm::any_of(model.keys, [&](const Key &each) { return each.name == key; });
    if (!isOwn && llvm::is_contained(ofRecipe, key) && key.size() < setting.size())
      entries.emplace_back(key.str(), text.str());
    else
      own.push_back(setting);
  }
  return {std::move(own), std::move(entries)};
}

} // namespace

Result<nn::Model> buildZooModel(const std::string &name, const std::vector<std::string> &settings) {
  std::vector<std::string> names;
  for (const ZooModel &model : zoo()) {
    names.push_back(model.name);
    if (model.name != name)
      continue;
    auto [ofModel, ofRecipe] = splitSettings(model, settings);
    GPUC_ASSIGN_OR_RETURN(Settings values,
                          Settings::parse(name, model.keys, ofModel, nn::recipeEntryNames()));
    nn::ModelBuilder builder(name, values.floatType("dtype"));
    const nn::Recipe recipe = {values.integer("batch", 1, 1 << 30), values.text("optimizer"),
                               std::move(ofRecipe)};
    GPUC_RETURN_IF_ERROR(model.build(values, builder));
    builder.recipe(recipe);
    return builder.finish();
  }
  return Status::error("no model '" + name + "'; the nearest is '" + nearestName(name, names) +
                       "', all are: " + llvm::join(names, " "));
}

std::string describeZoo() {
  // Defaults stand in one column; help begins where the longest of them ends.
  size_t width = 0;
  for (const ZooModel &model : zoo())
    for (const Key &key : model.keys)
      width = std::max(width, key.name.size() + 1 + key.fallback.size());
  std::string text;
  for (const ZooModel &model : zoo()) {
    text += model.name + ": " + model.summary + "\n";
    for (const Key &key : model.keys) {
      std::string setting = key.name + "=" + key.fallback;
      text += "  " + setting + std::string(width - setting.size() + 2, ' ') + key.help + "\n";
    }
  }
  return text + "  and of every model what a recipe says (docs/recipe.md): " +
         llvm::join(nn::recipeEntryNames(), " ") + "\n";
}

} // namespace gpuc::models
