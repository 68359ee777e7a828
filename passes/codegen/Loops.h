//===- Loops.h - What loops of every target share ---------------------------===//
#pragma once

#include "passes/codegen/Fold.h"

namespace gpuc::codegen {

/// A loop that carries a state; `low` and `high` are i64. `body` is called with the emitter standing inside.
State emitLoop(ElementEmitter &emitter, mlir::Value low, mlir::Value high, int64_t step, const State &start,
               llvm::function_ref<State(mlir::Value, const State &)> body);

/// These of the kernel's results at the present position. `pointers`: of its arguments, then of its results.
void emitResults(ElementEmitter &emitter, const Kernel &kernel, llvm::ArrayRef<mlir::Value> pointers,
                 llvm::ArrayRef<unsigned> numbers);

/// Dense constants of the kernel become read-only data beside the code: globals at the head of `globals`,
/// named after `symbol`.
void emitTables(ElementEmitter &emitter, const Kernel &kernel, mlir::Block &globals, llvm::StringRef symbol);

/// The address of read-only data beside the code: these numbers, an i64 each. `globals` makes the global, in
/// the given address space, the builder its address.
mlir::Value emitNumbers(mlir::ImplicitLocOpBuilder &builder, mlir::OpBuilder globals, llvm::StringRef name,
                        llvm::ArrayRef<int64_t> numbers, unsigned addressSpace = 0);

} // namespace gpuc::codegen
