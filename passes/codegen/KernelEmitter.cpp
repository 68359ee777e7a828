//===- KernelEmitter.cpp - What kernels of every target share ----------------===//

#include "passes/codegen/KernelEmitter.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/codegen/Sort.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {

KernelEmitter::KernelEmitter(ImplicitLocOpBuilder &builder, const Kernel &kernel, ArrayRef<Value> pointers,
                             Block &globals, StringRef symbol, size_t laneGroup)
    : kernel_(kernel), builder_(builder), pointers_(pointers),
      emitter_(builder, kernel, pointers.take_front(kernel.body->getNumArguments())), laneGroup_(laneGroup) {
  emitTables(globals, symbol);
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

void KernelEmitter::emitTables(Block &globals, StringRef symbol) {
  Type pointer = LLVM::LLVMPointerType::get(builder_.getContext());
  for (auto constant : kernel_.body->getOps<ConstantOp>()) {
    if (constant.getSplat())
      continue;
    ElementKind kind = elementKind(constant.getResult().getType());
    Type element = memoryType(builder_.getContext(), kind, 1);
    auto elements = cast<DenseElementsAttr>(constant.getValue());
    std::string name = (symbol + ".table" + Twine(globals.getOperations().size())).str();
    auto type = LLVM::LLVMArrayType::get(element, elements.getNumElements());
    OpBuilder head = OpBuilder::atBlockBegin(&globals);
    LLVM::GlobalOp::create(head, builder_.getLoc(), type, /*isConstant=*/true, LLVM::Linkage::Internal, name,
                           tableElements(elements, kind, element), /*alignment=*/64);
    emitter_.setTable(constant, LLVM::AddressOfOp::create(builder_, pointer, name));
  }
}

SmallVector<size_t> KernelEmitter::groupsOf(Role role) const {
  SmallVector<size_t> result;
  for (auto [number, group] : llvm::enumerate(kernel_.groups))
    if (group.role == role && number != laneGroup_)
      result.push_back(number);
  return result;
}

void KernelEmitter::forGroups(ArrayRef<size_t> groups, Body body) {
  if (groups.empty())
    return body();
  emitLoop(emitter_, index(0), index(kernel_.groups[groups.front()].extent), 1, [&](Value position) {
    emitter_.setCoordinate(groups.front(), position);
    forGroups(groups.drop_front(), body);
  });
}

//===----------------------------------------------------------------------===//
// Forms
//===----------------------------------------------------------------------===//

void KernelEmitter::run() {
  switch (kernel_.form) {
  case Form::Elementwise:
    return forOutputs([&] { emitResults(kernel_.resultNumbers(/*wholeRows=*/false)); });
  case Form::Reduction:
    return emitReduction();
  case Form::Cumsum:
    return emitCumsum();
  case Form::ScatterAdd:
    return emitScatterAdd();
  case Form::Sort:
  case Form::TopK:
    return emitSort();
  }
}

void KernelEmitter::emitResults(ArrayRef<unsigned> numbers) {
  // All loads of a position come before its stores: a result may take the place of an operand.
  SmallVector<Expr> values;
  for (unsigned number : numbers)
    values.push_back(emitter_.emitLanes(kernel_.yields()[number], kernel_.indexOf(kernel_.yields()[number])));
  for (auto [number, value] : llvm::zip_equal(numbers, values)) {
    Value yield = kernel_.yields()[number];
    emitter_.store(value, resultPointer(number), elementKind(yield.getType()),
                   linearAddress(kernel_.indexOf(yield), shapeOf(yield), kernel_.space()));
  }
}

/// One element after another along the dimension, the others side by side. f16 and bf16 are carried in f32;
/// each result is rounded from there.
void KernelEmitter::emitCumsum() {
  SmallVector<size_t> scanned = groupsOf(Role::Ordered);
  auto [operand, position] = rootOperands(kernel_).front();
  ElementKind kind = elementKind(operand.getType());
  forOutputs([&, &operand = operand, &position = position] {
    auto step = [&](Expr carried) {
      Expr total = carried + toCompute(emitter_.emitLanes(operand, position), kind);
      emitter_.bind(kernel_.root, fromCompute(total, kind));
      emitResults(kernel_.resultNumbers(/*wholeRows=*/false));
      return total;
    };
    Expr zero = toCompute(numberIn(builder_, kind, emitter_.lanes(), 0), kind);
    if (scanned.empty()) {
      step(zero);
      return;
    }
    Value extent = index(kernel_.groups[scanned.front()].extent);
    emitLoop(emitter_, index(0), extent, 1, {zero}, [&](Value at, const State &carried) -> State {
      emitter_.setCoordinate(scanned.front(), at);
      return {step(carried[0])};
    });
  });
}

void KernelEmitter::emitSort() {
  RowSorter sorter(kernel_, emitter_, resultPointer(0), resultPointer(1));
  forOutputs([&] { kernel_.form == Form::Sort ? sorter.emitSort() : sorter.emitTopK(); });
}

//===----------------------------------------------------------------------===//
// Scatters
//===----------------------------------------------------------------------===//

Value KernelEmitter::chosenSlot() {
  auto [indices, position] = rootOperands(kernel_)[1];
  return castElement(emitter_.emit(indices, position).expr, elementKind(indices.getType()), ElementKind::I64)
      .value();
}

void KernelEmitter::setSlot(Value slot) {
  for (size_t group : groupsOf(Role::Slot)) // none if there is one slot
    emitter_.setCoordinate(group, slot);
}

/// Of a scatter's result.
static Affine slotAddress(const Kernel &kernel) {
  return linearAddress(kernel.resultIndex, shapeOf(kernel.yields().front()), kernel.space());
}

void KernelEmitter::copySlot() {
  auto [init, position] = rootOperands(kernel_)[0];
  emitter_.store(emitter_.emitLanes(init, position), resultPointer(0), elementKind(init.getType()),
                 slotAddress(kernel_));
}

void KernelEmitter::addUpdate() {
  auto [updates, position] = rootOperands(kernel_)[2];
  ElementKind kind = elementKind(updates.getType());
  Expr update = toCompute(emitter_.emitLanes(updates, position), kind);
  Expr total = toCompute(emitter_.load(resultPointer(0), kind, slotAddress(kernel_)), kind) + update;
  emitter_.store(fromCompute(total, kind), resultPointer(0), kind, slotAddress(kernel_));
}

} // namespace gpuc::codegen
