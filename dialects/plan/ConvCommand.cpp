//===- ConvCommand.cpp - Verifier and cost of plan.conv --------------------===//

#include "dialects/plan/ProductCommands.h"

using namespace mlir;

namespace gpuc::plan {

LogicalResult ConvOp::verify() {
  if (failed(verifyTf32(*this)) || failed(verifyUpdate(*this, "")))
    return failure();
  if ((getUpdate() || getSquares()) && getKind() != ConvKind::filter_gradient)
    return emitOpError(getUpdate() ? "has an update, which takes" : "has squares, which are those of")
           << " a filter's gradient alone";
  if (getInput().size() != 3 || getFilter().size() != 4 || getOutput().size() != 3 ||
      getStrides().size() != 2 || getPadding().size() != 4 || getDilation().size() != 2)
    return emitOpError(
        "wants input [C, H, W], filter [O, C / groups, kh, kw], output [O, OH, OW], two strides, four "
        "paddings and two dilations");
  auto check = [&](Value buffer, StringRef name, ArrayRef<int64_t> extents, int64_t count) -> LogicalResult {
    int64_t has = rangeOf(buffer).size,
            needs = saturatingProduct({count, ir::elementBytes(getElement()), saturatingProduct(extents)});
    if (has == needs)
      return success();
    return emitOpError() << name << " has " << has << " bytes, " << count << " x [" << extents << "] take "
                         << needs;
  };
  int64_t batch = getBatch();
  struct Role {
    StringRef name;
    ArrayRef<int64_t> extents;
    int64_t count;
  };
  Role input{"input", getInput(), batch}, filter{"filter", getFilter(), 1},
      output{"output", getOutput(), batch};
  Role roles[3][3] = {{input, filter, output}, {output, filter, input}, {output, input, filter}};
  const Value buffers[] = {getLhs(), getRhs(), getResult()};
  for (auto [buffer, role] : llvm::zip_equal(buffers, roles[static_cast<size_t>(getKind())]))
    if (buffer && failed(check(buffer, role.name, role.extents, role.count)))
      return failure();
  if ((getBias() || getRelu()) && getKind() != ConvKind::forward)
    return emitOpError("is a gradient, which neither bias nor relu follows");
  if (getMask() && getKind() != ConvKind::input_gradient)
    return emitOpError("has a mask, which follows an input_gradient alone");
  if (getMask() && failed(check(getMask(), "mask", getInput(), batch)))
    return failure();
  return getBias() ? check(getBias(), "bias", getOutput().front(), 1) : success();
}

int64_t ConvOp::getFlops() {
  auto elementsOf = [](ArrayRef<int64_t> shape) { return ShapedType::getNumElements(shape); };
  const int64_t results = getResult() ? rangeOf(getResult()).size / ir::elementBytes(getElement()) : 0;
  return flopsOfConv(getBatch() * elementsOf(getOutput()), elementsOf(getFilter().drop_front()), results,
                     opsBehind(*this)); // nothing is behind what has no result
}

} // namespace gpuc::plan
