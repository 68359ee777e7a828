//===- StepBuilder.h - The arithmetic of a recipe, as ops --------------------===//
#pragma once

#include "dialects/gpuc/Expr.h"

namespace gpuc {

/// Builds what a recipe is made of, all at one location: formulas (dialects/gpuc/Expr.h) of variables.
class StepBuilder {
public:
  StepBuilder(mlir::OpBuilder &builder, mlir::Location location) : builder_(builder), location_(location) {}

  mlir::OpBuilder &builder() { return builder_; }
  mlir::Location location() const { return location_; }

  /// A value, to be computed with here.
  ir::Expr at(mlir::Value value) { return {builder_, location_, value}; }
  ir::Expr constant(mlir::Type type, double number) {
    return at(ir::ConstantOp::create(builder_, location_, type, number));
  }
  ir::Expr read(ir::VariableOp variable);
  void assign(ir::VariableOp variable, mlir::Value value);

private:
  mlir::OpBuilder &builder_;
  mlir::Location location_;
};

/// A scalar, cast to the element type of `like`, in each element of a tensor of its shape.
ir::Expr spread(mlir::Value scalar, ir::Expr like);

/// `condition`, a scalar, chooses one of two tensors.
ir::Expr choose(mlir::Value condition, ir::Expr yes, ir::Expr no);

/// Declares a variable behind the last one of the module.
ir::VariableOp declareVariable(mlir::ModuleOp module, mlir::Location location, llvm::StringRef name,
                               mlir::RankedTensorType type, ir::SpecAttr initializer, llvm::StringRef kind);

/// `mine` is kept for `variable`, under its name with `suffix` behind it, and is shared out as that is.
void shareOutAs(ir::VariableOp mine, ir::VariableOp variable, llvm::StringRef suffix);

/// The counter `name`, a scalar of i64 or `element`, declared, with `first` in it, if the model has not done
/// so; null after an error: another thing has its name, which is that of `what`.
ir::VariableOp findCounter(mlir::ModuleOp module, llvm::StringRef name, mlir::Type element = {},
                           double first = 0, llvm::StringRef what = "a counter");

/// The initializer of tensors that hold `number` everywhere.
ir::SpecAttr constantInitializer(mlir::MLIRContext *context, double number);

} // namespace gpuc
