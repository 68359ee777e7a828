//===- GpucDialect.cpp - Registration and what all ops share ----------------===//

#include "dialects/gpuc/GpucOps.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialects/gpuc/GpucDialect.cpp.inc"
#include "dialects/gpuc/GpucEnums.cpp.inc"
#include "dialects/gpuc/GpucInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/gpuc/GpucAttributes.cpp.inc"

static ParseResult parseWord(OpAsmParser &parser, StringAttr &word) {
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  word = parser.getBuilder().getStringAttr(keyword);
  return success();
}

static void printWord(OpAsmPrinter &printer, Operation *, StringAttr word) { printer << word.getValue(); }

/// What is no tensor is refused where it stands.
static ParseResult parseColonTensor(OpAsmParser &parser, TypeAttr &type) {
  RankedTensorType tensor;
  if (parser.parseColonType(tensor))
    return failure();
  type = TypeAttr::get(tensor);
  return success();
}

static void printColonTensor(OpAsmPrinter &printer, Operation *, TypeAttr type) {
  printer << ": " << type.getValue();
}

#define GET_OP_CLASSES
#include "dialects/gpuc/GpucOps.cpp.inc"

namespace gpuc::ir {

void GpucDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/gpuc/GpucAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/gpuc/GpucOps.cpp.inc"
      >();
}

Operation *GpucDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                            Location location) {
  return ConstantOp::create(builder, location, type, value);
}

bool isElement(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.isSignless() ? llvm::is_contained({1u, 8u, 32u, 64u}, integer.getWidth())
                                : integer.isUnsignedInteger(8);
  return type.isF64() || type.isF32() || type.isF16() || type.isBF16();
}

bool hasStaticOrBatchShape(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getEncoding())
    return false;
  for (auto [index, extent] : llvm::enumerate(tensor.getShape()))
    if (ShapedType::isDynamic(extent) && index != 0)
      return false;
  return true;
}

/// The largest int64 stands for itself and all above: a verifier may meet any shape, long before anyone has
/// asked whether its bytes can be counted.
static int64_t saturatingProduct(int64_t a, int64_t b) {
  auto product = llvm::SaturatingMultiply(static_cast<uint64_t>(a), static_cast<uint64_t>(b));
  return static_cast<int64_t>(std::min<uint64_t>(product, std::numeric_limits<int64_t>::max()));
}

int64_t elementCount(Type type) {
  int64_t count = 1;
  for (int64_t extent : cast<RankedTensorType>(type).getShape())
    count = saturatingProduct(count, ShapedType::isDynamic(extent) ? 1 : extent);
  return count;
}

int64_t rowCount(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getRank() == 0 ? 1 : tensor.getShape().front();
}

int64_t elementBytes(Type element) { return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8); }

int64_t sizeInBytes(Type tensor) {
  return saturatingProduct(elementCount(tensor),
                           elementBytes(cast<RankedTensorType>(tensor).getElementType()));
}

int64_t elementwiseFlops(Operation *op) {
  int64_t flops = 0;
  for (Type type : op->getResultTypes())
    flops += elementCount(type);
  return flops;
}

int64_t touchedBytes(Operation *op) {
  int64_t bytes = 0;
  for (Type type : op->getOperandTypes())
    bytes += sizeInBytes(type);
  for (Type type : op->getResultTypes())
    bytes += sizeInBytes(type);
  return bytes;
}

} // namespace gpuc::ir
