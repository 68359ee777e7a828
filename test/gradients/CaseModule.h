//===- CaseModule.h - Modules and inputs made from a case --------------------===//
#pragma once

#include "test/gradients/Registry.h"
#include "test/reference/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace gpuc::gradients {

/// `%x0: tensor<…> {gpuc.name = "x0"}, …` and so on, with `$T` replaced by `element` everywhere.
///
/// `@f` is the case itself, public. The variables @seed and @step are declared.
std::string forwardModule(const Case &described, const std::string &element);

/// Adds to the f64 forward module, with s(x, w) = Σ w · f(x) for weights w of the first output's type:
///   @objective   (x…, w)      → s
///   @gradient    (x…, w)      → ∂s/∂x for each differentiated x
///   @directional (x…, w, u…)  → Σ u · ∂s/∂x, with u as the differentiated x
///   @second      (x…, w, u…)  → the gradient of that by each differentiated x
std::string gradientModule(const Case &described);

/// Numbers of the differentiated inputs.
std::vector<int64_t> differentiated(const Case &described);

/// Values for the arguments of a function of the module: those of the case's inputs first; further arguments
/// (weights and directions) are drawn from [-1, 1]. They depend on the case's name and the argument's number
/// alone, and are numbers of their type.
std::vector<reference::Tensor> makeArguments(const Case &described, mlir::func::FuncOp function);

/// An interpreter in which @seed and @step have values.
reference::Interpreter makeInterpreter(mlir::MLIRContext *context);

/// The values of @seed and @step.
constexpr int64_t seedValue = 5, stepValue = 3;

} // namespace gpuc::gradients
