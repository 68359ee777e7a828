//===- Loss.h - A loss and a recipe for an imported model -------------------===//
#pragma once

#include "frontend/onnx/Tensor.h"
#include "runtime/base/status.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gpuc::onnx {

/// What --loss says. Names, arguments and defaults are those of PyTorch's functions.
struct LossSpec {
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

/// Adds @loss, for classes @accuracy, and a recipe to the module of `predict`. An error says why the model
/// does not suit the loss; `notes` gets what a user may want to know of how it was understood.
Status addLoss(Emitter &emitter, mlir::func::FuncOp predict, const LossSpec &spec,
               std::vector<std::string> &notes);

/// The number of the result of `predict` that the loss names, or of the first.
Result<unsigned> findOutput(mlir::func::FuncOp predict, const LossSpec &spec);

/// @loss as one of the model's own outputs, which @predict then no longer computes.
Status addModelsLoss(Emitter &emitter, mlir::func::FuncOp predict, const LossSpec &spec,
                     std::vector<std::string> &notes);

/// (sum, count) of the number that `function` returns as its loss: those of the one loss of the dialect that
/// it is, if it is the sum or the mean of one, else (value, 1) with no loss in it masked. `padded`: whether
/// rows that are padding can be left out.
llvm::SmallVector<mlir::Value> lossPair(Emitter &emitter, mlir::func::FuncOp function, mlir::Value value,
                                        bool *padded = nullptr);

/// Where such a pair is the sum of a loss over the batch: its count is said to be that of the whole batch,
/// however that is cut, so that parts of it add up to the same.
void countOnce(mlir::func::FuncOp function, mlir::Value count, bool padded);

} // namespace gpuc::onnx
