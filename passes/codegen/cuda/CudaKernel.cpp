//===- CudaKernel.cpp - A kernel as a function over threads -----------------===//

#include "passes/codegen/cuda/CudaKernel.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/codegen/Segments.h"
#include "passes/codegen/Sort.h"
#include "passes/codegen/cuda/CudaAttention.h"
#include "passes/codegen/cuda/CudaSegments.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {

Value asI64(ImplicitLocOpBuilder &builder, Value index) {
  return arith::IndexCastOp::create(builder, builder.getI64Type(), index);
}

CudaKernelEmitter::CudaKernelEmitter(gpu::GPUFuncOp function, ImplicitLocOpBuilder &builder,
                                     const Kernel &kernel, const CudaLoops &loops, ArrayRef<Value> pointers,
                                     const CudaTiles &tiles)
    : function_(function), kernel_(kernel), loops_(loops), builder_(builder), pointers_(pointers),
      tiles_(tiles) {
  Value thread = asI64(builder_, gpu::ThreadIdOp::create(builder_, gpu::Dimension::x));
  int64_t inner = loops.adjacentColumns ? loops.columns : loops.parts;
  Value low = arith::RemUIOp::create(builder_, thread, index(inner));
  Value high = arith::DivUIOp::create(builder_, thread, index(inner));
  column_ = loops.adjacentColumns ? low : high;
  part_ = loops.adjacentColumns ? high : low;
  emitter_ = std::make_unique<ElementEmitter>(builder_, kernel,
                                              ArrayRef(pointers_).take_front(kernel.body->getNumArguments()));
  emitTables(*emitter_, kernel, *function->getParentOfType<gpu::GPUModuleOp>().getBody(), function.getName());
}

SmallVector<size_t> CudaKernelEmitter::groupsOf(Role role) const {
  SmallVector<size_t> result;
  for (auto [number, group] : llvm::enumerate(kernel_.groups))
    if (group.role == role)
      result.push_back(number);
  return result;
}

Value CudaKernelEmitter::below(Value a, Value limit) {
  return arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, a, limit);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void CudaKernelEmitter::forTiles(Body body) {
  emitLoop(*emitter_, tiles_.first, tiles_.end, tiles_.step, {}, [&](Value tile, const State &) {
    Value mine = add(multiply(tile, loops_.columns), column_);
    exists_ = below(mine, tiles_.outputs);
    output_ = arith::MinUIOp::create(builder_, mine, add(tiles_.outputs, index(-1)));
    body();
    return State();
  });
}

void CudaKernelEmitter::setCoordinates(ArrayRef<size_t> groups, Value linear, int64_t count) {
  // Division of 32 bits is several times faster.
  bool narrow = count <= INT32_MAX;
  Type type = narrow ? builder_.getI32Type() : builder_.getI64Type();
  Expr rest(builder_, narrow ? arith::TruncIOp::create(builder_, type, linear).getResult() : linear);
  for (size_t group : llvm::reverse(groups)) {
    bool outermost = group == groups.front();
    Value extent = rest.integer(kernel_.groups[group].extent).value();
    Expr position = rest;
    if (!outermost) {
      position = Expr(builder_, arith::RemUIOp::create(builder_, rest.value(), extent));
      rest = Expr(builder_, arith::DivUIOp::create(builder_, rest.value(), extent));
    }
    emitter_->setCoordinate(group,
                            narrow ? zeroExtend(position, builder_.getI64Type()).value() : position.value());
  }
}

void CudaKernelEmitter::forGroups(ArrayRef<size_t> groups, Body body) {
  if (groups.empty())
    return body();
  emitLoop(*emitter_, index(0), index(kernel_.groups[groups.front()].extent), 1, {},
           [&](Value position, const State &) {
             emitter_->setCoordinate(groups.front(), position);
             forGroups(groups.drop_front(), body);
             return State();
           });
}

void CudaKernelEmitter::ifHolds(Value condition, Body body) {
  auto guarded = scf::IfOp::create(builder_, condition, /*withElseRegion=*/false);
  emitter_->enter(guarded.getThenRegion());
  body();
  emitter_->leave();
}

void CudaKernelEmitter::forOutputs(Body body) {
  forTiles([&] {
    ifHolds(exists_, [&] {
      setCoordinates(loops_.outputGroups, output_, loops_.outputs);
      body();
    });
  });
}

//===----------------------------------------------------------------------===//
// Forms
//===----------------------------------------------------------------------===//

/// One element after another along the dimension. f16 and bf16 are carried in f32; each result is rounded
/// from there.
void CudaKernelEmitter::emitCumsum() {
  SmallVector<size_t> scanned = groupsOf(Role::Ordered);
  auto [operand, position] = rootOperands(kernel_).front();
  ElementKind kind = elementKind(operand.getType());
  forOutputs([&, &operand = operand, &position = position] {
    auto step = [&](Expr carried) {
      Expr total = carried + toCompute(emitter_->emitLanes(operand, position), kind);
      emitter_->bind(kernel_.root, fromCompute(total, kind));
      emitResults(kernel_.resultNumbers(/*wholeRows=*/false));
      return total;
    };
    Expr zero = toCompute(numberIn(builder_, kind, 1, 0), kind);
    if (scanned.empty()) {
      step(zero);
      return;
    }
    Value extent = index(kernel_.groups[scanned.front()].extent);
    emitLoop(*emitter_, index(0), extent, 1, {zero}, [&](Value at, const State &carried) -> State {
      emitter_->setCoordinate(scanned.front(), at);
      return {step(carried[0])};
    });
  });
}

/// One thread for each row.
void CudaKernelEmitter::emitSort() {
  RowSorter sorter(kernel_, *emitter_, resultPointer(0), resultPointer(1));
  forOutputs([&] { kernel_.form == Form::Sort ? sorter.emitSort() : sorter.emitTopK(); });
}

void CudaKernelEmitter::run() {
  switch (kernel_.form) {
  case Form::Elementwise:
    forOutputs([&] { emitResults(kernel_.resultNumbers(/*wholeRows=*/false)); });
    break;
  case Form::Reduction:
    emitReduction();
    break;
  case Form::Cumsum:
    emitCumsum();
    break;
  case Form::ScatterAdd:
    emitScatterAdd();
    break;
  case Form::Sort:
  case Form::TopK:
    emitSort();
    break;
  }
}

gpu::GPUFuncOp createCudaFunction(gpu::GPUModuleOp module, StringRef symbol, size_t parameters,
                                  int64_t threads) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  SmallVector<Type> types(parameters, LLVM::LLVMPointerType::get(module.getContext()));
  auto function =
      gpu::GPUFuncOp::create(builder, module.getLoc(), symbol, builder.getFunctionType(types, {}));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  function.setKnownBlockSizeAttr(builder.getDenseI32ArrayAttr({static_cast<int32_t>(threads), 1, 1}));
  return function;
}

void emitCudaKernel(gpu::GPUModuleOp module, StringRef symbol, Block &body) {
  if (isSegmented(body))
    return emitCudaSegments(module, symbol, body);
  gpu::GPUFuncOp function =
      createCudaFunction(module, symbol, body.getNumArguments() + body.getTerminator()->getNumOperands(),
                         scheduleCudaKernel(body).block);
  if (FailureOr<AttentionKernel> attention = AttentionKernel::parse(body); succeeded(attention))
    return emitAttention(function, *attention);
  Kernel kernel(body);
  CudaLoops loops(kernel);
  ImplicitLocOpBuilder builder(function.getLoc(), function.getContext());
  builder.setInsertionPointToStart(&function.getBody().front());
  auto number = [&](int64_t value) { return constantInt(builder, builder.getI64Type(), value).value(); };
  SmallVector<Value> pointers(function.getBody().front().getArguments());
  Value block = asI64(builder, gpu::BlockIdOp::create(builder, gpu::Dimension::x));
  CudaTiles tiles{block, number(loops.tiles()), loops.grid, number(loops.outputs),
                  loops.tiles() > loops.grid};
  CudaKernelEmitter(function, builder, kernel, loops, pointers, tiles).run();
  gpu::ReturnOp::create(builder);
}

} // namespace gpuc::codegen
