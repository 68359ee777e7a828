//===- Onnx.h - ONNX models become models of gpuc ---------------------------===//
//
// All that a user of the importer includes; no MLIR, no protobuf.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/onnx/reader/Model.h"
#include "runtime/base/status.h"

#include <map>
#include <set>

namespace gpuc::onnx {

struct ImportOptions {
  std::map<std::string, int64_t> dims;            ///< Extents of named dimensions.
  std::map<std::string, HostTensorPtr> constants; ///< Inputs of the graph that are given a value for good.
  std::vector<std::string> freeze;                ///< Names of weights that are not trained; * is any text.
  std::vector<std::string> train;                 ///< Names of weights that are, whatever they look like.
  bool acceptFolded = false; ///< Trains what is left of parameters that the exporter folded or left out.
  std::string loss;          ///< "", or what checkLoss() takes: adds @loss and a recipe.
};

/// One thing that keeps a model from being imported.
struct Problem {
  std::string text;              ///< "node 'conv1' (Conv): …", one line, without the file's name.
  std::set<std::string> unknown; ///< Inputs of the graph whose value would have been needed.
};

/// What becomes of an initializer that the module keeps as a variable.
struct ImportedVariable {
  enum class Role { trained, statistic, frozen };
  TensorSpec spec;
  Role role = Role::trained;
};

struct ImportedModel {
  std::string text;                        ///< The module, if there are no problems.
  std::vector<HostTensorPtr> weights;      ///< The variables' values, named by spec.name.
  std::vector<ImportedVariable> variables; ///< In the module's order.
  std::vector<Problem> problems;           ///< All of them, in the order of the nodes.
  /// What was decided that may be meant otherwise, with the cure; one line each.
  std::vector<std::string> warnings;
  std::vector<std::string> notes; ///< How the model was understood, where that may not be what was meant.
};

/// Lowers a model that has been read: @predict over the graph's inputs and outputs, weights as variables.
/// Where `options.loss` asks for it, @loss and a recipe.
ImportedModel importModel(const Model &model, const ImportOptions &options);

/// Whether `loss` is one that there is, with arguments that it takes: "cross_entropy:ignore_index=-100".
Status checkLoss(const std::string &loss);

} // namespace gpuc::onnx
