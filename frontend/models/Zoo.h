//===- Zoo.h - The models that gpuc-model knows -----------------------------===//
#pragma once

#include "frontend/builder/ModelBuilder.h"
#include "frontend/models/Settings.h"

namespace gpuc::models {

struct ZooModel {
  std::string name;
  std::string summary;   ///< One line.
  std::vector<Key> keys; ///< Its own; in zoo() followed by those that all models have.
  nn::Recipe recipe;     ///< If nothing else is asked for.
  /// Reads the model's own keys and adds its functions; an error says which value does not do.
  Status (*build)(Settings &settings, nn::ModelBuilder &model);
};

// One for each file of this folder.
ZooModel convnet();
ZooModel gpt2();
ZooModel linearRegression();
ZooModel lstmGenerator();
ZooModel mlp();
ZooModel resnet18();
ZooModel resnet50();
ZooModel rnnClassifier();
ZooModel transformer();

/// All models, by name.
const std::vector<ZooModel> &zoo();

/// The model `name` with the key=value `settings`. Errors name the culprit: an unknown model or key (with the
/// nearest and all), a value that does not read.
Result<nn::Model> buildZooModel(const std::string &name, const std::vector<std::string> &settings);

/// Each model with its summary and its keys, their defaults and help.
std::string describeZoo();

} // namespace gpuc::models
