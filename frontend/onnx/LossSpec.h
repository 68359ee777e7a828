//===- LossSpec.h - What --loss says ----------------------------------------===//
//
// Names, arguments and defaults are those of PyTorch's functions.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/onnx/Model.h"
#include "runtime/base/status.h"

namespace mlir {
class MLIRContext;
}

namespace gpuc::onnx {

struct LossSpec {
  std::string text;           ///< As it was given.
  std::string name;           ///< One that docs/onnx.md lists, of PyTorch's functions.
  std::string output;         ///< Of the model, that the loss is over, or that is the loss; "" is the first.
  std::vector<double> weight; ///< Of each class, or of what is positive; empty is 1.
  std::optional<int64_t> ignoreIndex;
  double smoothing = 0;
  double threshold = 1;       ///< delta, or beta.
  bool sums = false;          ///< reduction=sum
  std::optional<int64_t> dim; ///< Of the classes.

  bool isModels() const { return name == "output"; }
  /// The targets are classes, and have one dimension less than the scores.
  bool isOfClasses() const { return name == "cross_entropy" || name == "nll"; }
};

/// An error names what is known in the place of what is not.
Result<LossSpec> parseLoss(mlir::MLIRContext &context, const std::string &text);

} // namespace gpuc::onnx
