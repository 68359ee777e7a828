//===- Emitter.cpp - Adds checked ops to the module being built -------------===//
//
// Files from outside decide what is added here. So nothing is believed: types are inferred by the dialect
// where it can, each op is verified as it is made, and what the dialect says against it becomes the error
// instead of a crash.
//
//===----------------------------------------------------------------------===//

#include "frontend/ElementType.h"
#include "frontend/onnx/Tensor.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace gpuc::onnx {

Failure Emitter::fail(const std::string &text) {
  if (error_.empty())
    error_ = text;
  return {};
}

Type Emitter::elementType(DataType type) { return elementTypeOf(builder.getContext(), type); }

RankedTensorType Emitter::tensorType(ArrayRef<int64_t> shape, DataType type) {
  return RankedTensorType::get(shape, elementType(type));
}

NamedAttribute Emitter::attribute(StringRef name, int64_t value) {
  return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
}
NamedAttribute Emitter::attribute(StringRef name, double value) {
  return builder.getNamedAttr(name, builder.getF64FloatAttr(value));
}
NamedAttribute Emitter::attribute(StringRef name, ArrayRef<int64_t> values) {
  return builder.getNamedAttr(name, builder.getDenseI64ArrayAttr(values));
}
NamedAttribute Emitter::flag(StringRef name) { return builder.getNamedAttr(name, builder.getUnitAttr()); }

NamedAttribute Emitter::segments(ArrayRef<int32_t> sizes) {
  return builder.getNamedAttr("operandSegmentSizes", builder.getDenseI32ArrayAttr(sizes));
}

bool isAbsurd(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return false;
  int64_t count = 0;
  Shape shape(tensor.getShape());
  for (int64_t &extent : shape)
    extent = extent == kBatch ? 1 : extent;
  return !checkedElementCount(shape, count) || count > (int64_t{1} << 40);
}

void eraseUnused(Block &body) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// The result types that the dialect infers.
static LogicalResult inferTypes(OperationState &state, ArrayRef<NamedAttribute> attributes,
                                OpBuilder &builder) {
  std::optional<RegisteredOperationName> info = state.name.getRegisteredInfo();
  auto *inference = info ? info->getInterface<InferTypeOpInterface>() : nullptr;
  if (!inference)
    return failure();
  DictionaryAttr dictionary = builder.getDictionaryAttr(attributes);
  SmallVector<Type> types;
  auto infer = [&](OpaqueProperties properties) {
    return inference->inferReturnTypes(builder.getContext(), state.location, state.operands, dictionary,
                                       properties, {}, types);
  };
  LogicalResult result = failure();
  if (size_t size = info->getOpPropertyByteSize()) {
    std::vector<char> storage(size);
    OpaqueProperties properties(storage.data());
    info->initOpProperties(properties, nullptr);
    auto emitHere = [&] { return emitError(state.location); };
    if (succeeded(info->setOpPropertiesFromAttribute(state.name, properties, dictionary, emitHere)))
      result = infer(properties);
    info->destroyOpProperties(properties);
  } else {
    result = infer(nullptr);
  }
  state.addTypes(types);
  return result;
}

std::vector<Tensor> Emitter::emit(StringRef name, ArrayRef<Tensor> operands,
                                  ArrayRef<NamedAttribute> attributes, TypeRange types) {
  if (failed() || llvm::any_of(operands, [](const Tensor &operand) { return !operand; }))
    return fail("an operand of " + name.str() + " could not be computed");
  std::string said;
  ScopedDiagnosticHandler handler(builder.getContext(), [&](Diagnostic &diagnostic) {
    if (said.empty())
      said = diagnostic.str();
    return success();
  });
  OperationState state(location, ("gpuc." + name).str());
  for (const Tensor &operand : operands)
    state.addOperands(operand.value());
  state.addAttributes(attributes);
  state.addTypes(types);
  auto reject = [&]() -> std::vector<Tensor> {
    return fail(said.empty() ? "gpuc." + name.str() + " does not take these operands" : said);
  };
  if (types.empty() && mlir::failed(inferTypes(state, attributes, builder)))
    return reject();
  if (llvm::any_of(state.types, isAbsurd))
    return fail("the result has an absurd shape");
  Operation *op = builder.create(state);
  if (mlir::failed(verify(op, /*verifyRecursively=*/false))) {
    op->erase();
    return reject();
  }
  std::vector<Tensor> results;
  for (Value result : op->getResults())
    results.emplace_back(this, result);
  return results;
}

Tensor Emitter::op(StringRef name, ArrayRef<Tensor> operands, ArrayRef<NamedAttribute> attributes,
                   TypeRange types) {
  std::vector<Tensor> results = emit(name, operands, attributes, types);
  return results.empty() ? Tensor() : results.front();
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

Tensor Emitter::constant(ArrayRef<int64_t> shape, DataType type, double value) {
  if (failed())
    return {};
  Type element = elementType(type);
  Attribute number;
  if (auto floats = dyn_cast<FloatType>(element))
    number = FloatAttr::get(floats, value);
  else if (std::abs(value) < 0x1p63)
    number = IntegerAttr::get(element, APInt(element.getIntOrFloatBitWidth(), static_cast<int64_t>(value),
                                             /*isSigned=*/true, /*implicitTrunc=*/true));
  else
    return fail("needs the number " + llvm::formatv("{0}", value).str() + ", which " +
                std::string(nameOf(type)) + " does not have");
  return op("constant", {}, builder.getNamedAttr("value", number), tensorType(shape, type));
}

/// DenseElementsAttr packs i1 into bits.
static DenseElementsAttr denseBools(RankedTensorType type, const std::string &bytes) {
  SmallVector<bool> values(bytes.begin(), bytes.end());
  return DenseElementsAttr::get(type, values);
}

Tensor Emitter::constant(const HostTensor &tensor) { return constant(tensor.spec.shape, tensor); }

Tensor Emitter::constant(ArrayRef<int64_t> shape, const HostTensor &tensor) {
  if (failed())
    return {};
  if (!tensor.supported)
    return fail("element type " + tensor.typeName + " is not supported");
  RankedTensorType type = tensorType(tensor.spec.shape, tensor.spec.type);
  DenseElementsAttr dense = tensor.spec.type == DataType::i1
                                ? denseBools(type, *tensor.bytes)
                                : DenseElementsAttr::getFromRawBuffer(
                                      type, ArrayRef<char>(tensor.bytes->data(), tensor.bytes->size()));
  // One number is written as such, which folders and kernels understand best.
  Attribute value = dense.isSplat() && type.getNumElements() > 0 ? dense.getSplatValue<Attribute>() : dense;
  return op("constant", {}, builder.getNamedAttr("value", value), tensorType(shape, tensor.spec.type));
}

} // namespace gpuc::onnx
