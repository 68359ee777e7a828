//===- Loops.cpp - What loops of every target share -------------------------===//

#include "passes/codegen/Loops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace gpuc::codegen {

State emitLoop(ElementEmitter &emitter, Value low, Value high, int64_t step, const State &start,
               llvm::function_ref<State(Value, const State &)> body) {
  ImplicitLocOpBuilder &builder = emitter.builder();
  SmallVector<Value> initial = llvm::map_to_vector(start, [](Expr expr) { return expr.value(); });
  Value stride = constantInt(builder, builder.getI64Type(), step).value();
  auto loop = scf::ForOp::create(builder, low, high, stride, initial);
  emitter.enter(loop.getRegion());
  State carried;
  for (Value argument : loop.getRegionIterArgs())
    carried.push_back({builder, argument});
  State next = body(loop.getInductionVar(), carried);
  if (!start.empty())
    scf::YieldOp::create(builder, llvm::map_to_vector(next, [](Expr expr) { return expr.value(); }));
  emitter.leave();
  return llvm::map_to_vector<2>(loop.getResults(), [&](Value result) { return Expr(builder, result); });
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
