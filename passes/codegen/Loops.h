//===- Loops.h - What loops of every target share ---------------------------===//
#pragma once

#include "passes/codegen/Fold.h"

namespace gpuc::codegen {

/// A loop that carries a state; `low` and `high` are i64. `body` is called with the emitter standing inside.
State emitLoop(ElementEmitter &emitter, mlir::Value low, mlir::Value high, int64_t step, const State &start,
               llvm::function_ref<State(mlir::Value, const State &)> body);
/// One that carries none.
void emitLoop(ElementEmitter &emitter, mlir::Value low, mlir::Value high, int64_t step,
              llvm::function_ref<void(mlir::Value)> body);

/// The address of read-only data beside the code: these numbers, an i64 each. `globals` makes the global, in
/// the given address space, the builder its address.
mlir::Value emitNumbers(mlir::ImplicitLocOpBuilder &builder, mlir::OpBuilder globals, llvm::StringRef name,
                        llvm::ArrayRef<int64_t> numbers, unsigned addressSpace = 0);

} // namespace gpuc::codegen
