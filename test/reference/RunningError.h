//===- RunningError.h - How wrong an element may be: 64 · ε · Σ|terms| --------===//
//
// Running error analysis (Peters and Wilkinson; Higham, Accuracy and Stability of Numerical Algorithms, 2nd
// edition, sections 3.3 and 4.2): beside each number goes a bound of its rounding error, in units of the
// type. What computes y = f(a, b, …) from a with |â - a| ≤ U · A(a), and so on, has
//
//   A(y) = |y| + Σ over operands of sup |∂f/∂a| · A(a),   the supremum over what a may be,
//
// |y| being its own rounding; A of an argument, constant or variable is its magnitude. Of a sum that makes A
// the sum of its terms' A, and at least Σ|terms|. The unit is U = 64 · ε, with ε the rounding of the type,
// 2^-24 in f32: 64 covers the length of what is added one after another (a block of a product or a reduction
// has at most 64 terms, and a tree above them is short), and functions that err by more than ε.
//
// Where a decision (a comparison, a rounding to an integer, the larger of two) lies so near a tie that the
// errors may turn it, both outcomes count: a select then may be off by the distance of its operands, an index
// by anything. A bound that large says nothing about the element.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "test/reference/Tensor.h"

#include "runtime/base/status.h"

#include "mlir/IR/Operation.h"

namespace gpuc::reference {

/// 64 · ε of a floating-point type: what a term of magnitude 1 may add to an error.
double errorUnit(mlir::Type element);

/// How far a computed element may lie from this one, which was computed in f64 with its terms counted.
inline double toleranceOf(const Element &element, mlir::Type type) { return errorUnit(type) * element.terms; }

/// Sets Element::terms of `results`, which `op` gave for `operands`; 0 or infinity for an integer that is
/// sure or is not. `compute` is the op's own case, to be tried on other operands. Errors: an op without a
/// rule, as composites are: decompose them first.
Status countTerms(mlir::Operation *op, llvm::ArrayRef<Tensor> operands, std::vector<Tensor> &results,
                  llvm::function_ref<std::vector<Tensor>(llvm::ArrayRef<Tensor>)> compute);

//===----------------------------------------------------------------------===//
// Between the files of rules
//===----------------------------------------------------------------------===//

/// A product of magnitudes in which 0 stays 0, whatever the other is.
inline double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

/// Whether two numbers are so near that errors may exchange them. What is the same number twice is not.
bool maySwap(const Element &a, const Element &b, double unit);

/// Whether `op` is computed element by element; if it is, sets the result's terms.
bool countElementTerms(mlir::Operation *op, llvm::ArrayRef<Tensor> operands, Tensor &result);

} // namespace gpuc::reference
