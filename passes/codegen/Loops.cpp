//===- Loops.cpp - What loops of every target share -------------------------===//

#include "passes/codegen/Loops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace gpuc::codegen {

State emitLoop(ImplicitLocOpBuilder &builder, Value low, Value high, Value step, const State &start,
               llvm::function_ref<State(Value, const State &)> body) {
  auto valueOf = [](Expr expr) { return expr.value(); };
  auto stateOf = [&](ValueRange values) {
    return llvm::map_to_vector<2>(values, [&](Value value) { return Expr(builder, value); });
  };
  auto loop = scf::ForOp::create(builder, low, high, step, llvm::map_to_vector(start, valueOf));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  State next = body(loop.getInductionVar(), stateOf(loop.getRegionIterArgs()));
  builder.setInsertionPointToEnd(loop.getBody());
  if (!start.empty())
    scf::YieldOp::create(builder, llvm::map_to_vector(next, valueOf));
  return stateOf(loop.getResults());
}

void ifHolds(ImplicitLocOpBuilder &builder, Value condition, llvm::function_ref<void()> body) {
  auto guarded = scf::IfOp::create(builder, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(guarded.thenBlock());
  body();
}

/// Calls `body` one level further in, with the emitter in the region that the builder stands in.
template <typename Body> static auto oneLevelIn(ElementEmitter &emitter, Body body) {
  emitter.enter(*emitter.builder().getInsertionBlock()->getParent());
  llvm::scope_exit leave([&] { emitter.leave(); });
  return body();
}

State emitLoop(ElementEmitter &emitter, Value low, Value high, int64_t step, const State &start,
               llvm::function_ref<State(Value, const State &)> body) {
  Value stride = constantInt(emitter.builder(), emitter.builder().getI64Type(), step).value();
  return emitLoop(emitter.builder(), low, high, stride, start, [&](Value position, const State &carried) {
    return oneLevelIn(emitter, [&] { return body(position, carried); });
  });
}

void ifHolds(ElementEmitter &emitter, Value condition, llvm::function_ref<void()> body) {
  ifHolds(emitter.builder(), condition, [&] { oneLevelIn(emitter, body); });
}

void emitLoop(ElementEmitter &emitter, Value low, Value high, int64_t step,
              llvm::function_ref<void(Value)> body) {
  emitLoop(emitter, low, high, step, {}, [&](Value position, const State &) {
    body(position);
    return State();
  });
}

Value emitNumbers(ImplicitLocOpBuilder &builder, OpBuilder globals, StringRef name, ArrayRef<int64_t> numbers,
                  unsigned addressSpace) {
  auto count = static_cast<int64_t>(numbers.size());
  auto elements = DenseElementsAttr::get(RankedTensorType::get({count}, builder.getI64Type()), numbers);
  LLVM::GlobalOp::create(globals, builder.getLoc(), LLVM::LLVMArrayType::get(builder.getI64Type(), count),
                         /*isConstant=*/true, LLVM::Linkage::Internal, name, elements, /*alignment=*/8,
                         addressSpace);
  return LLVM::AddressOfOp::create(builder, LLVM::LLVMPointerType::get(builder.getContext(), addressSpace),
                                   name);
}

} // namespace gpuc::codegen
