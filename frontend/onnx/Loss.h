//===- Loss.h - A loss and a recipe for an imported model -------------------===//
#pragma once

#include "frontend/onnx/LossSpec.h"
#include "frontend/onnx/Tensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gpuc::onnx {

/// Adds @loss, for classes @accuracy, and a recipe to the module of `predict`. An error says why the model
/// does not suit the loss; `notes` gets what a user may want to know of how it was understood.
Status addLoss(Emitter &emitter, mlir::func::FuncOp predict, const LossSpec &spec,
               std::vector<std::string> &notes);

/// The number of the result of `predict` that the loss names, of several that `isMeant` the first.
Result<unsigned> findOutput(mlir::func::FuncOp predict, const LossSpec &spec);

/// @loss as one of the model's own outputs, which @predict then no longer computes.
Status addModelsLoss(Emitter &emitter, mlir::func::FuncOp predict, const LossSpec &spec,
                     std::vector<std::string> &notes);

} // namespace gpuc::onnx
