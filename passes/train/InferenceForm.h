//===- InferenceForm.h - What ops compute outside of training ---------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gpuc {

/// Puts what they compute outside of training in place of ops like dropout.
void toInferenceForm(mlir::func::FuncOp function);

/// On the loss, or the accuracy: its copy that is evaluated, where gpuc-evaluate-gradients has made one.
inline constexpr llvm::StringLiteral kEvaluatedAsAttr = "gpuc.evaluated_as";

} // namespace gpuc
