//===- ConstantOp.cpp - Tensors known when the model is made ----------------===//

#include "dialects/gpuc/NumberText.h"
#include "dialects/gpuc/TypeChecks.h"

using namespace mlir;

namespace gpuc::ir {

TypedAttr splatNumber(Type element, double value) {
  if (auto type = dyn_cast<FloatType>(element))
    return FloatAttr::get(type, value);
  auto type = cast<IntegerType>(element);
  return IntegerAttr::get(type, APInt(type.getWidth(), static_cast<int64_t>(value), /*isSigned=*/true,
                                      /*implicitTrunc=*/true));
}

Attribute canonicalConstant(Attribute value) {
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense || !dense.isSplat())
    return value;
  return dense.getSplatValue<Attribute>();
}

int64_t ConstantOp::getFlops() { return 0; }

void ConstantOp::build(OpBuilder &, OperationState &state, Type type, double value) {
  Type element = cast<RankedTensorType>(type).getElementType();
  state.getOrAddProperties<Properties>().value = splatNumber(element, value);
  state.addTypes(type);
}

TypedAttr splatOf(Attribute operand) {
  Attribute value = operand ? canonicalConstant(operand) : operand;
  return isa_and_nonnull<FloatAttr, IntegerAttr>(value) ? cast<TypedAttr>(value) : TypedAttr();
}

TypedAttr ConstantOp::getSplat() { return splatOf(getValue()); }

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult ConstantOp::verify() {
  auto type = getType();
  if (auto dense = dyn_cast<DenseElementsAttr>(getValue())) {
    if (dense.getType() == type)
      return success();
    return emitOpError() << "elements are " << dense.getType() << ", but the result is " << type
                         << " [constant_C1]";
  }
  if (!isa<FloatAttr, IntegerAttr>(getValue()))
    return emitOpError() << "value must be a number or dense elements, but is " << getValue()
                         << " [constant_C2]";
  Type number = cast<TypedAttr>(getValue()).getType();
  if (number == type.getElementType())
    return success();
  return emitOpError() << "number is of type " << number << ", but the result is " << type
                       << " [constant_C3]";
}

/// `dense<…> : type`, which reads its own type.
static ParseResult parseDense(OpAsmParser &parser, OperationState &state) {
  Attribute value;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseAttribute(value))
    return failure();
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense)
    return parser.emitError(location, "expected dense elements");
  state.getOrAddProperties<ConstantOp::Properties>().value = canonicalConstant(dense);
  state.addTypes(dense.getType());
  return success();
}

static ParseResult parseSplat(OpAsmParser &parser, OperationState &state) {
  FailureOr<NumberText> number = parseNumber(parser);
  RankedTensorType type;
  if (failed(number) || parser.parseColonType(type))
    return failure();
  FailureOr<TypedAttr> value = convertNumber(parser, *number, type.getElementType());
  if (failed(value))
    return failure();
  state.getOrAddProperties<ConstantOp::Properties>().value = *value;
  state.addTypes(type);
  return success();
}

ParseResult ConstantOp::parse(OpAsmParser &parser, OperationState &state) {
  // The parser has no look-ahead, and no number begins with a letter d.
  bool isDense = *parser.getCurrentLocation().getPointer() == 'd';
  if (isDense ? parseDense(parser, state) : parseSplat(parser, state))
    return failure();
  return parser.parseOptionalAttrDict(state.attributes);
}

void ConstantOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  if (auto number = dyn_cast<FloatAttr>(getValue())) {
    printFloat(printer.getStream(), number.getValue());
    printer << " : " << getType();
  } else if (auto number = dyn_cast<IntegerAttr>(getValue())) {
    printer.printAttributeWithoutType(number);
    printer << " : " << getType();
  } else {
    printer.printAttribute(getValue());
  }
  printer.printOptionalAttrDict((*this)->getAttrs(), {"value"});
}

} // namespace gpuc::ir
