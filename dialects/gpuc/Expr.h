//===- Expr.h - Building gpuc ops as one writes formulas --------------------===//
//
// Derivatives, decompositions, and what passes compute of scalars are written with it.
//
#pragma once

#include "dialects/gpuc/TypeChecks.h"

namespace gpuc::ir {

/// A value and where to build what is computed from it. A number beside an Expr is a constant of the Expr's
/// type.
class Expr {
public:
  Expr() = default;
  Expr(mlir::OpBuilder &builder, mlir::Location location, mlir::Value value)
      : builder_(&builder), location_(location), value_(value) {}

  operator mlir::Value() const { return value_; }
  mlir::Value value() const { return value_; }
  mlir::RankedTensorType type() const { return tensorType(value_); }
  mlir::Type elementType() const { return type().getElementType(); }
  llvm::ArrayRef<int64_t> shape() const { return type().getShape(); }
  int64_t rank() const { return type().getRank(); }

  /// The op with these operands and attributes, at this Expr's place.
  template <typename Op, typename... Args> Expr make(Args &&...args) const {
    return at(Op::create(*builder_, *location_, std::forward<Args>(args)...));
  }
  /// The same for an op with several results.
  template <typename Op, typename... Args> Op makeOp(Args &&...args) const {
    return Op::create(*builder_, *location_, std::forward<Args>(args)...);
  }
  /// Another value, at this Expr's place.
  Expr at(mlir::Value value) const { return Expr(*builder_, *location_, value); }
  /// `number` in each element of a tensor of this Expr's type, or of another.
  Expr constant(double number) const { return constant(type(), number); }
  Expr constant(mlir::Type type, double number) const { return make<ConstantOp>(type, number); }

private:
  mlir::OpBuilder *builder_ = nullptr;
  std::optional<mlir::Location> location_;
  mlir::Value value_;
};

#define GPUC_EXPR_BINARY(NAME, OP)                                                                           \
  inline Expr NAME(Expr a, Expr b) { return a.make<OP>(a.value(), b.value()); }                              \
  inline Expr NAME(Expr a, double b) { return NAME(a, a.constant(b)); }                                      \
  inline Expr NAME(double a, Expr b) { return NAME(b.constant(a), b); }
GPUC_EXPR_BINARY(operator+, AddOp)
GPUC_EXPR_BINARY(operator-, SubOp)
GPUC_EXPR_BINARY(operator*, MulOp)
GPUC_EXPR_BINARY(operator/, DivOp)
GPUC_EXPR_BINARY(pow, PowOp)
GPUC_EXPR_BINARY(rem, RemOp)
GPUC_EXPR_BINARY(min, MinOp)
GPUC_EXPR_BINARY(max, MaxOp)
GPUC_EXPR_BINARY(operator&, AndOp)
GPUC_EXPR_BINARY(operator|, OrOp)
GPUC_EXPR_BINARY(operator^, XorOp)
#undef GPUC_EXPR_BINARY

#define GPUC_EXPR_COMPARE(NAME, PREDICATE)                                                                   \
  inline Expr NAME(Expr a, Expr b) {                                                                         \
    return a.make<CompareOp>(Comparison::PREDICATE, a.value(), b.value());                                   \
  }                                                                                                          \
  inline Expr NAME(Expr a, double b) { return NAME(a, a.constant(b)); }
GPUC_EXPR_COMPARE(operator==, eq)
GPUC_EXPR_COMPARE(operator!=, ne)
GPUC_EXPR_COMPARE(operator<, lt)
GPUC_EXPR_COMPARE(operator<=, le)
GPUC_EXPR_COMPARE(operator>, gt)
GPUC_EXPR_COMPARE(operator>=, ge)
#undef GPUC_EXPR_COMPARE

#define GPUC_EXPR_UNARY(NAME, OP)                                                                            \
  inline Expr NAME(Expr x) { return x.make<OP>(x.value()); }
GPUC_EXPR_UNARY(operator-, NegOp)
GPUC_EXPR_UNARY(operator!, NotOp)
GPUC_EXPR_UNARY(sign, SignOp)
GPUC_EXPR_UNARY(round, RoundOp)
GPUC_EXPR_UNARY(floor, FloorOp)
GPUC_EXPR_UNARY(exp, ExpOp)
GPUC_EXPR_UNARY(log, LogOp)
GPUC_EXPR_UNARY(sqrt, SqrtOp)
GPUC_EXPR_UNARY(sin, SinOp)
GPUC_EXPR_UNARY(cos, CosOp)
GPUC_EXPR_UNARY(tanh, TanhOp)
GPUC_EXPR_UNARY(sigmoid, SigmoidOp)
GPUC_EXPR_UNARY(erf, ErfOp)
GPUC_EXPR_UNARY(isFinite, IsFiniteOp)
GPUC_EXPR_UNARY(stopGradient, StopGradientOp)
#undef GPUC_EXPR_UNARY

inline Expr select(Expr condition, Expr onTrue, Expr onFalse) {
  return onTrue.make<SelectOp>(onTrue.type(), condition.value(), onTrue.value(), onFalse.value());
}
inline Expr select(Expr condition, Expr onTrue, double onFalse) {
  return select(condition, onTrue, onTrue.constant(onFalse));
}
inline Expr select(Expr condition, double onTrue, Expr onFalse) {
  return select(condition, onFalse.constant(onTrue), onFalse);
}

/// The same numbers in another element type.
inline Expr cast(Expr x, mlir::Type element) {
  return x.elementType() == element
             ? x
             : x.make<CastOp>(withShape(x, x.type().getShape()).clone(element), x.value());
}
inline Expr reshape(Expr x, mlir::Type type) { return x.make<ReshapeOp>(type, x.value()); }
inline Expr transpose(Expr x, llvm::ArrayRef<int64_t> permutation) {
  return x.make<TransposeOp>(x.value(), permutation);
}
inline Expr sum(Expr x, llvm::ArrayRef<int64_t> dims) { return x.make<SumOp>(x.value(), dims); }

/// 0, 1, … rank - 1.
Shape allDims(Expr x);
/// The dimensions of a tensor of the given rank that `dims` does not name.
Shape otherDims(int64_t rank, llvm::ArrayRef<int64_t> dims);

inline Expr sumAll(Expr x) { return sum(x, allDims(x)); }

/// x repeated to `shape`; its dimension i becomes dims[i].
Expr broadcast(Expr x, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> shape);
/// Undoes a reduction of `dims`: repeats x along them to `shape`.
Expr broadcastAlong(Expr x, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> shape);
/// A scalar in each element.
Expr broadcastScalar(Expr x, llvm::ArrayRef<int64_t> shape);

} // namespace gpuc::ir
