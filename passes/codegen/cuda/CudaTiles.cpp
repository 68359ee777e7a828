//===- CudaTiles.cpp - Products of tiles by the threads of a block ----------===//

#include "passes/codegen/cuda/CudaTiles.h"

#include "passes/codegen/cuda/CudaKernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace gpuc::codegen {

TileEmitter::TileEmitter(ImplicitLocOpBuilder &builder, const TileShape &shape)
    : builder_(builder), shape_(shape) {
  Value thread = gpu::ThreadIdOp::create(builder, gpu::Dimension::x);
  thread_ = {builder, arith::IndexCastOp::create(builder, builder.getI32Type(), thread)};
  column_ = remainderUnsigned(thread_, shape.side);
}

std::pair<TileOperand, TileOperand> TileEmitter::stage(const GlobalRows &a, const GlobalRows &b, Expr row0,
                                                       Expr, llvm::function_ref<void()> meanwhile) {
  meanwhile();
  return {{a, row0, {}, {}}, {b, row0, {}, {}}};
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

State TileEmitter::loop(Expr low, Expr high, int64_t step, const State &start,
                        llvm::function_ref<State(Expr, const State &)> body) {
  return emitLoop(builder_, low.value(), high.value(), number(step).value(), start,
                  [&](Value at, const State &carried) { return body({builder_, at}, carried); });
}

Expr TileEmitter::acrossColumns(Expr x, llvm::function_ref<Expr(Expr, Expr)> combine) {
  // Both threads of a pair combine the same two numbers, and each operation is commutative.
  for (int64_t distance = shape_.side / 2; distance > 0; distance /= 2)
    x = combine(x, fromThreadAt(x, distance));
  return x;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value TileEmitter::advance(Value pointer, ElementKind kind, Expr elements) {
  return LLVM::GEPOp::create(builder_, pointer.getType(), memoryType(builder_.getContext(), kind, 1), pointer,
                             ArrayRef<LLVM::GEPArg>{elements.value()});
}

Expr TileEmitter::loadShared(Value array, Expr position, int64_t lanes) {
  Type type = registerType(builder_.getContext(), ElementKind::F32, lanes);
  return {builder_, LLVM::LoadOp::create(builder_, type, advance(array, ElementKind::F32, position),
                                         /*alignment=*/4 * lanes)};
}

void TileEmitter::storeShared(Value array, Expr position, Expr value) {
  LLVM::StoreOp::create(builder_, value.value(), advance(array, ElementKind::F32, position),
                        /*alignment=*/4 * value.lanes());
}

Expr TileEmitter::load(Value pointer, ElementKind kind, Expr position) {
  Value loaded = LLVM::LoadOp::create(builder_, memoryType(builder_.getContext(), kind, 1),
                                      advance(pointer, kind, position));
  return toCompute(fromMemory({builder_, loaded}, kind), kind);
}

void TileEmitter::store(Expr value, Value pointer, ElementKind kind, Expr position) {
  LLVM::StoreOp::create(builder_, toMemory(fromCompute(value, kind), kind).value(),
                        advance(pointer, kind, position));
}

void TileEmitter::storeRow(const State &values, const GlobalRows &to, Expr row) {
  for (auto [j, value] : llvm::enumerate(values)) {
    Expr column = columnOf(to.width, static_cast<int64_t>(j));
    auto storeOne = [&, value = value] {
      store(value, to.pointer, to.kind, wide(row) * wideNumber(to.stride) + wide(column));
    };
    to.width % widthStep == 0 ? storeOne() : ifHolds(less(column, number(to.width)), storeOne);
  }
}

} // namespace gpuc::codegen
