//===- CudaKernel.cpp - A kernel as a function over threads -----------------===//

#include "passes/codegen/cuda/CudaKernel.h"

#include "passes/codegen/Segments.h"
#include "passes/codegen/cuda/CudaAttention.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace gpuc::codegen {

Value asI64(ImplicitLocOpBuilder &builder, Value index) {
  return arith::IndexCastOp::create(builder, builder.getI64Type(), index);
}

Expr fromThreadAt(Expr x, int64_t distance) {
  ImplicitLocOpBuilder &builder = x.builder();
  auto number = [&](int64_t value) { return constantInt(builder, builder.getI32Type(), value).value(); };
  constexpr int64_t allThreads = -1, lastThread = 31;
  return {builder, NVVM::ShflOp::create(builder, x.type(), number(allThreads), x.value(), number(distance),
                                        number(lastThread), NVVM::ShflKind::bfly,
                                        /*return_value_and_is_valid=*/UnitAttr())};
}

Expr votesOfWarp(ImplicitLocOpBuilder &builder, Value condition) {
  Value all = constantInt(builder, builder.getI32Type(), -1).value();
  return {builder, NVVM::VoteSyncOp::create(builder, builder.getI32Type(), all, condition,
                                            NVVM::VoteSyncKind::ballot)};
}

constexpr unsigned sharedAddressSpace = 3; // as PTX numbers it

static LLVM::GlobalOp createSharedArray(gpu::GPUFuncOp function, Location loc, Type element, int64_t count) {
  Block &globals = *function->getParentOfType<gpu::GPUModuleOp>().getBody();
  std::string name = (function.getName() + ".shared" + Twine(globals.getOperations().size())).str();
  OpBuilder head = OpBuilder::atBlockBegin(&globals);
  return LLVM::GlobalOp::create(head, loc, LLVM::LLVMArrayType::get(element, count),
                                /*isConstant=*/false, LLVM::Linkage::Internal, name, Attribute(),
                                /*alignment=*/16, sharedAddressSpace);
}

static Value addressOf(LLVM::GlobalOp array, ImplicitLocOpBuilder &builder) {
  return LLVM::AddressOfOp::create(
      builder, LLVM::LLVMPointerType::get(builder.getContext(), sharedAddressSpace), array.getSymName());
}

Value sharedArray(gpu::GPUFuncOp function, ImplicitLocOpBuilder &builder, Type element, int64_t count) {
  return addressOf(createSharedArray(function, builder.getLoc(), element, count), builder);
}

static int64_t bytesOfArray(Type type) {
  auto array = cast<LLVM::LLVMArrayType>(type);
  return DataLayout().getTypeSize(array.getElementType()) * array.getNumElements();
}

Value SharedArrays::take(ImplicitLocOpBuilder &builder, Type element, int64_t count) {
  if (next_ == arrays_.size())
    arrays_.push_back(createSharedArray(function_, builder.getLoc(), element, count));
  LLVM::GlobalOp array = arrays_[next_++];
  const Type wanted = LLVM::LLVMArrayType::get(element, count);
  if (bytesOfArray(array.getGlobalType()) < bytesOfArray(wanted))
    array.setGlobalType(wanted);
  return addressOf(array, builder);
}

CudaKernelEmitter::CudaKernelEmitter(gpu::GPUFuncOp function, SharedArrays &shared,
                                     ImplicitLocOpBuilder &builder, const Kernel &kernel,
                                     const CudaLoops &loops, ArrayRef<Value> pointers, const CudaTiles &tiles)
    : KernelEmitter(builder, kernel, pointers, *function->getParentOfType<gpu::GPUModuleOp>().getBody(),
                    function.getName()),
      shared_(shared), loops_(loops), tiles_(tiles) {
  Expr thread(builder_, asI64(builder_, gpu::ThreadIdOp::create(builder_, gpu::Dimension::x)));
  int64_t inner = loops.adjacentColumns ? loops.columns : loops.parts;
  Value low = remainderUnsigned(thread, inner).value(), high = divideUnsigned(thread, inner).value();
  column_ = loops.adjacentColumns ? low : high;
  part_ = loops.adjacentColumns ? high : low;
  if (!loops.foldsLanes())
    setLanes();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void CudaKernelEmitter::forTiles(Body body) {
  emitLoop(emitter_, tiles_.first, tiles_.end, tiles_.step, [&](Value tile) {
    mine_ = add(multiply(tile, loops_.columns), column_);
    exists_ = below(mine_, tiles_.outputs);
    output_ = arith::MinUIOp::create(builder_, mine_, add(tiles_.outputs, index(-1)));
    body();
  });
}

void CudaKernelEmitter::setLanes() {
  if (loops_.lanes > 1)
    emitter_.setLanes(kernel_.groups.size() - 1, loops_.lanes, loops_.alignedLanes ? kVectorBytes : 0);
}

void CudaKernelEmitter::setCoordinates(ArrayRef<size_t> groups, Value linear, int64_t count) {
  // Division of 32 bits is several times faster.
  bool narrow = count <= INT32_MAX;
  Type type = narrow ? builder_.getI32Type() : builder_.getI64Type();
  Expr rest(builder_, narrow ? arith::TruncIOp::create(builder_, type, linear).getResult() : linear);
  for (size_t group : llvm::reverse(groups)) {
    const bool isInLanes = loops_.lanes > 1 && group + 1 == kernel_.groups.size();
    int64_t extent = kernel_.groups[group].extent / (isInLanes ? loops_.lanes : 1);
    Expr position = group == groups.front() ? rest : remainderUnsigned(rest, extent);
    rest = divideUnsigned(rest, extent);
    Value wide = narrow ? zeroExtend(position, builder_.getI64Type()).value() : position.value();
    Value coordinate = isInLanes ? multiply(wide, loops_.lanes) : wide;
    emitter_.setCoordinate(group, coordinate);
    innermost_ = group + 1 == kernel_.groups.size() ? coordinate : innermost_;
  }
}

void CudaKernelEmitter::forLaneRanges(Body body) {
  if (loops_.laneRanges.size() < 2)
    return body();
  for (Range range : loops_.laneRanges) {
    Value from = arith::SubIOp::create(builder_, innermost_, index(range.low)); // without sign: far behind
    ifHolds(below(from, index(range.high - range.low)), [&] {
      emitter_.setCoordinate(kernel_.groups.size() - 1, innermost_, range);
      body();
    });
  }
}

void CudaKernelEmitter::forOutputs(Body body) {
  forTiles([&] {
    ifHolds(exists_, [&] {
      setCoordinates(loops_.outputGroups, output_, loops_.outputs);
      forLaneRanges(body);
    });
  });
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

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
    return AttentionEmitter(function, *attention).run();
  Kernel kernel(body);
  CudaLoops loops(kernel);
  ImplicitLocOpBuilder builder(function.getLoc(), function.getContext());
  builder.setInsertionPointToStart(&function.getBody().front());
  auto number = [&](int64_t value) { return constantInt(builder, builder.getI64Type(), value).value(); };
  SmallVector<Value> pointers(function.getBody().front().getArguments());
  Value block = asI64(builder, gpu::BlockIdOp::create(builder, gpu::Dimension::x));
  CudaTiles tiles{block, number(loops.tiles()), loops.grid, number(loops.outputs),
                  loops.tiles() > loops.grid};
  SharedArrays shared(function);
  CudaKernelEmitter(function, shared, builder, kernel, loops, pointers, tiles).run();
  gpu::ReturnOp::create(builder);
}

} // namespace gpuc::codegen
