//===- Loops.cpp - What loops of every target share -------------------------===//

#include "passes/codegen/Loops.h"

#include "dialects/gpuc/GpucOps.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gpuc::ir;

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

void emitResults(ElementEmitter &emitter, const Kernel &kernel, ArrayRef<Value> pointers,
                 ArrayRef<unsigned> numbers) {
  // All loads of a position come before its stores: a result may take the place of an operand.
  SmallVector<Expr> values;
  for (unsigned number : numbers)
    values.push_back(emitter.emitLanes(kernel.yields()[number], kernel.indexOf(kernel.yields()[number])));
  for (auto [number, value] : llvm::zip_equal(numbers, values)) {
    Value yield = kernel.yields()[number];
    emitter.store(value, pointers[kernel.body->getNumArguments() + number], elementKind(yield.getType()),
                  linearAddress(kernel.indexOf(yield), shapeOf(yield), kernel.space()));
  }
}

/// The elements in memory's form.
static DenseElementsAttr tableElements(DenseElementsAttr elements, ElementKind kind, Type element) {
  auto type = RankedTensorType::get({elements.getNumElements()}, element);
  if (kind == ElementKind::F64 || kind == ElementKind::F32)
    return DenseElementsAttr::get(type, llvm::to_vector(elements.getValues<APFloat>()));
  unsigned width = element.getIntOrFloatBitWidth();
  SmallVector<APInt> integers;
  if (isFloat(kind))
    for (const APFloat &value : elements.getValues<APFloat>())
      integers.push_back(value.bitcastToAPInt());
  else
    for (const APInt &value : elements.getValues<APInt>())
      integers.push_back(value.zext(std::max(width, value.getBitWidth())));
  return DenseElementsAttr::get(type, integers);
}

void emitTables(ElementEmitter &emitter, const Kernel &kernel, Block &globals, StringRef symbol) {
  ImplicitLocOpBuilder &builder = emitter.builder();
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  for (auto constant : kernel.body->getOps<ConstantOp>()) {
    if (constant.getSplat())
      continue;
    ElementKind kind = elementKind(constant.getResult().getType());
    Type element = memoryType(builder.getContext(), kind, 1);
    auto elements = cast<DenseElementsAttr>(constant.getValue());
    std::string name = (symbol + ".table" + Twine(globals.getOperations().size())).str();
    auto type = LLVM::LLVMArrayType::get(element, elements.getNumElements());
    OpBuilder head = OpBuilder::atBlockBegin(&globals);
    LLVM::GlobalOp::create(head, builder.getLoc(), type, /*isConstant=*/true, LLVM::Linkage::Internal, name,
                           tableElements(elements, kind, element), /*alignment=*/64);
    emitter.setTable(constant, LLVM::AddressOfOp::create(builder, pointer, name));
  }
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
