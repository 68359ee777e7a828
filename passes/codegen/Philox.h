//===- Philox.h - Counter-based random bits ---------------------------------===//
#pragma once

#include "passes/codegen/Expr.h"

namespace gpuc::codegen {

/// Word `element` mod 4 of Philox4x32-10 at counter (element div 4, step) under key (seed folded by xor, id),
/// as i32; all operands i64, scalar or vector. [Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
/// SC'11]
Expr emitPhilox(Expr element, Expr seed, Expr step, int64_t id);

} // namespace gpuc::codegen
