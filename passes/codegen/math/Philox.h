//===- Philox.h - Counter-based random bits ---------------------------------===//
#pragma once

#include "passes/codegen/math/Expr.h"

namespace gpuc::codegen {

/// Word `element` mod 4 of Philox4x32-10 at counter (element div 4, step) under key (seed folded by xor, id),
/// as i32; all operands i64, scalars or vectors of as many lanes. [Salmon et al., "Parallel random numbers:
/// as easy as 1, 2, 3", SC'11]
Expr emitPhilox(Expr element, Expr seed, Expr step, Expr id);

/// The same for `lanes` elements from `first` on, which is a multiple of 4, as lanes is, from 8 on: each
/// group's words are computed once. All operands are scalars.
Expr emitPhiloxRun(Expr first, int64_t lanes, Expr seed, Expr step, Expr id);

/// All four words of counter (group, step), as i32.
llvm::SmallVector<Expr, 4> emitPhiloxWords(Expr group, Expr seed, Expr step, Expr id);

} // namespace gpuc::codegen
