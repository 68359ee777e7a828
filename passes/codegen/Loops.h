//===- Loops.h - What loops of every target share ---------------------------===//
#pragma once

#include "passes/codegen/Fold.h"

namespace gpuc::codegen {

/// A loop that carries a state; the builder stands inside for `body`, and behind the loop afterwards.
State emitLoop(mlir::ImplicitLocOpBuilder &builder, mlir::Value low, mlir::Value high, mlir::Value step,
               const State &start, llvm::function_ref<State(mlir::Value, const State &)> body);
/// `body` where the condition holds, likewise.
void ifHolds(mlir::ImplicitLocOpBuilder &builder, mlir::Value condition, llvm::function_ref<void()> body);

// The same with an emitter, which stands inside, too. `low` and `high` are i64.
State emitLoop(ElementEmitter &emitter, mlir::Value low, mlir::Value high, int64_t step, const State &start,
               llvm::function_ref<State(mlir::Value, const State &)> body);
/// One that carries none.
void emitLoop(ElementEmitter &emitter, mlir::Value low, mlir::Value high, int64_t step,
              llvm::function_ref<void(mlir::Value)> body);
void ifHolds(ElementEmitter &emitter, mlir::Value condition, llvm::function_ref<void()> body);

/// The address of read-only data beside the code: these numbers, an i64 each. `globals` makes the global, in
/// the given address space, the builder its address.
mlir::Value emitNumbers(mlir::ImplicitLocOpBuilder &builder, mlir::OpBuilder globals, llvm::StringRef name,
                        llvm::ArrayRef<int64_t> numbers, unsigned addressSpace = 0);

} // namespace gpuc::codegen
