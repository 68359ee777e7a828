//===- Pointwise.h - One op, one element ------------------------------------===//
#pragma once

#include "passes/codegen/math/Expr.h"

namespace gpuc::codegen {

/// What a pointwise gpuc op makes of its operands' elements at one index (or at `lanes` indices), all in
/// register form (Element.h). Scalars, vectors, host and GPU come through here and so agree in every bit.
/// Integers wrap; x / 0 and x rem 0 are 0, and the least integer divided by -1 is itself.
Expr emitPointwise(mlir::Operation *op, llvm::ArrayRef<Expr> operands);

/// max and min that give NaN if either is one, +0 above -0; on integers as the type is signed.
Expr maximum(Expr a, Expr b, bool isUnsigned);
Expr minimum(Expr a, Expr b, bool isUnsigned);

/// True of the ops that `emitPointwise` knows.
bool isPointwise(mlir::Operation *op);

} // namespace gpuc::codegen
