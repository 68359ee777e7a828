//===- Sound.cpp - What every op of the plan dialect is checked for ---------===//

#include "dialects/plan/ProductCommands.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace gpuc::plan {

bool isStorable(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && !tensor.getEncoding() && tensor.hasStaticShape() &&
         ir::isElement(tensor.getElementType()) && ir::sizeInBytes(tensor) <= kMostNumber;
}

int64_t saturatingProduct(ArrayRef<int64_t> factors) {
  int64_t product = 1;
  for (int64_t factor : factors) {
    bool negative = (product < 0) != (factor < 0);
    if (llvm::MulOverflow(product, factor, product))
      product = negative ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
  }
  return product;
}

/// Whether `maker` stands before `op`, in its block or in one around it. What leads in a circle does not.
static bool standsBefore(Operation *maker, Operation *op) {
  for (; op; op = op->getParentOp())
    if (op->getBlock() == maker->getBlock())
      return maker->isBeforeInBlock(op);
  return false;
}

/// What a library's command does with its operands; of other ops none are optional.
static ArrayRef<OperandUse> usesOfCommand(Operation *op) {
  return llvm::TypeSwitch<Operation *, ArrayRef<OperandUse>>(op)
      .Case<MatmulOp, ConvOp>([](auto product) { return usesOf(product); })
      .Case<AttentionOp>(
          [](auto) { return ArrayRef(kAttentionOperands).take_front(kForwardAttentionOperands); })
      .Case<AttentionGradientOp>([](auto) { return ArrayRef(kAttentionGradientOperands); })
      .Default([](auto) { return ArrayRef<OperandUse>(); });
}

/// In its generic text an op with optional operands says how many there are of each.
static LogicalResult verifySegments(Operation *op) {
  ArrayRef<OperandUse> uses = usesOfCommand(op);
  if (uses.empty())
    return success();
  auto segments = op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes").asArrayRef();
  // Behind those of the table stand an update's, any number of them.
  for (auto [use, count] : llvm::zip_first(uses, segments))
    if (!use.optional && count != 1)
      return op->emitOpError() << "requires one of " << use.name << ", and operandSegmentSizes say " << count;
  return success();
}

static LogicalResult verifyBuffers(Operation *op) {
  for (Value operand : op->getOperands()) {
    Operation *maker = operand.getDefiningOp();
    if (isa<BufferType>(operand.getType()) &&
        !(isa_and_nonnull<BufferOpInterface, ViewOp>(maker) && standsBefore(maker, op)))
      return op->emitOpError("reads or writes a value that no op before it names as buffer");
    if (isa<EventType>(operand.getType()) && !isa_and_nonnull<EventOp>(maker))
      return op->emitOpError("waits for or records a value that no plan.event declares");
  }
  return success();
}

/// Ranks add up integers as well, batches that they counted among them.
static bool computesWith(Operation *op, Type element) {
  return ir::isElement(element) &&
         (isa<FloatType>(element) ||
          (isa<AllReduceOp, ReduceScatterOp, AllGatherOp>(op) && !element.isInteger(1)));
}

static LogicalResult verifyTypes(Operation *op) {
  for (StringRef name : {"type", "element"})
    if (auto type = op->getAttrOfType<TypeAttr>(name)) {
      Type given = type.getValue();
      if (name == "element" ? !computesWith(op, given) : !isStorable(given))
        return op->emitOpError("is of ")
               << given << ", which plans know no " << (name == "element" ? "products" : "buffers") << " of: "
               << (name == "element" ? "elements are f64, f32, f16 or bf16"
                                     : "tensors are static, of known elements and of 2^48 bytes at most");
    }
  return success();
}

/// Attributes that count nothing: names of random streams, values and labels.
static bool isAnyNumber(StringRef name) { return name == "id" || name == "value" || name == "ignored"; }

static LogicalResult verifyNumbers(Operation *op) {
  auto isCountable = [](int64_t number) { return -kMostNumber <= number && number <= kMostNumber; };
  for (NamedAttribute named : op->getAttrs()) {
    StringRef name = named.getName();
    if (auto list = dyn_cast<DenseI64ArrayAttr>(named.getValue())) {
      for (int64_t number : list.asArrayRef())
        if (!isCountable(number))
          return op->emitOpError() << name << " has " << number << ": beyond 2^48 nothing is counted";
    } else if (auto number = dyn_cast<IntegerAttr>(named.getValue());
               number && number.getType().isInteger(64) && !isAnyNumber(name)) {
      if (number.getInt() < 0 || !isCountable(number.getInt()))
        return op->emitOpError() << name << " is " << number.getInt() << ": it must be from 0 to 2^48";
    }
  }
  return success();
}

LogicalResult verifySound(Operation *op) {
  return success(succeeded(verifySegments(op)) && succeeded(verifyBuffers(op)) &&
                 succeeded(verifyTypes(op)) && succeeded(verifyNumbers(op)));
}

} // namespace gpuc::plan
