//===- StepBuilder.h - The arithmetic of a recipe, as ops --------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

namespace gpuc {

/// Builds the few ops that a recipe is made of, all at one location.
class StepBuilder {
public:
  StepBuilder(mlir::OpBuilder &builder, mlir::Location location) : builder_(builder), location_(location) {}

  mlir::OpBuilder &builder() { return builder_; }
  mlir::Location location() const { return location_; }

  mlir::Value constant(mlir::Type type, double value) {
    return ir::ConstantOp::create(builder_, location_, type, value);
  }
  /// A number like `value`.
  mlir::Value constantLike(mlir::Value value, double number) { return constant(value.getType(), number); }

  mlir::Value read(ir::VariableOp variable);
  void assign(ir::VariableOp variable, mlir::Value value);

  /// `value` in the element type `element`, rounded if need be.
  mlir::Value cast(mlir::Value value, mlir::Type element);

  /// A scalar, cast to the element type of `type`, in each element of a tensor of that type.
  mlir::Value spread(mlir::Value scalar, mlir::Type type);

  /// Of tensors of one type.
  template <typename Op> mlir::Value binary(mlir::Value lhs, mlir::Value rhs) {
    return Op::create(builder_, location_, lhs.getType(), lhs, rhs);
  }
  mlir::Value compare(ir::Comparison comparison, mlir::Value lhs, mlir::Value rhs) {
    return ir::CompareOp::create(builder_, location_, comparison, lhs, rhs);
  }
  /// Of i1: whether it does not hold.
  mlir::Value negate(mlir::Value condition) {
    return ir::NotOp::create(builder_, location_, condition.getType(), condition);
  }
  /// `condition`, a scalar, chooses one of two tensors.
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);

  /// A tensor divided by a scalar.
  mlir::Value divide(mlir::Value tensor, mlir::Value scalar) {
    return binary<ir::DivOp>(tensor, spread(scalar, tensor.getType()));
  }
  /// A tensor times a scalar.
  mlir::Value scale(mlir::Value tensor, mlir::Value scalar) {
    return binary<ir::MulOp>(tensor, spread(scalar, tensor.getType()));
  }
  mlir::Value reciprocal(mlir::Value tensor) { return binary<ir::DivOp>(constantLike(tensor, 1), tensor); }

  /// The sum of all elements, a scalar.
  mlir::Value sumOfAll(mlir::Value tensor);

private:
  mlir::OpBuilder &builder_;
  mlir::Location location_;
};

/// Declares a variable behind the last one of the module.
ir::VariableOp declareVariable(mlir::ModuleOp module, mlir::Location location, llvm::StringRef name,
                               mlir::RankedTensorType type, ir::SpecAttr initializer, llvm::StringRef kind);

/// The counter `name`, a scalar of i64 or `element`, declared, with `first` in it, if the model has not done
/// so; null after an error: another thing has its name, which is that of `what`.
ir::VariableOp findCounter(mlir::ModuleOp module, llvm::StringRef name, mlir::Type element = {},
                           double first = 0, llvm::StringRef what = "a counter");

/// The initializer of tensors that hold `number` everywhere.
ir::SpecAttr constantInitializer(mlir::MLIRContext *context, double number);

} // namespace gpuc
