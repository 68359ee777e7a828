//===- ProductToPlan.cpp - Products as libraries' commands --------------------===//

#include "passes/base/Locations.h"
#include "passes/base/MatmulShapes.h"
#include "passes/base/Target.h"
#include "passes/plan/ConvToPlan.h"

#include "dialects/gpuc/Tf32.h"
#include "runtime/workspace/matmul_plan.h"

using namespace mlir;

namespace gpuc {

/// What the device's matmul may use beside its operands, in bytes. cuBLASLt splits K over partial results of
/// the size of the whole: 16 of them are plenty.
static int64_t workspaceBytes(plan::TargetAttr target, const MatmulShape &shape, RankedTensorType result) {
  const TargetDescription &device = describe(target);
  if (target.getKind() == plan::TargetKind::cuda)
    return std::clamp<int64_t>(16 * ir::sizeInBytes(result), device.leastMatmulWorkspaceBytes,
                               device.mostMatmulWorkspaceBytes);
  return matmulWorkspaceBytes(shape);
}

Value squaresFor(ProgramWriter &writer, Value sum, int64_t tiles, StringRef name) {
  if (tiles == 1)
    return writer.bufferFor(sum, (name + ".squares").str());
  return writer.newBuffer((name + ".squares").str(),
                          RankedTensorType::get({tiles}, getElementTypeOrSelf(sum)), writer.categoryOf(sum),
                          sum.getLoc());
}

LogicalResult writeMatmul(ProgramWriter &writer, const Product &product, const MatmulShape &shape) {
  Operation *op = product.op;
  auto result = ir::tensorType(op->getResult(0));
  const std::string name = product.name.empty() ? nameInLayer(op->getLoc(), "matmul") : product.name;
  Value workspace = writer.workspaceFor(name, workspaceBytes(writer.target, shape, result), product.location);
  Value sum = writer.sums.lookup(op->getResult(0));
  Value squares =
      product.squares ? squaresFor(writer, product.squares, planMatmul(shape).tileCount(), name) : Value();
  plan::MatmulOp::create(
      writer.builder, product.location, writer.buffers.lookup(op->getOperand(0)),
      writer.buffers.lookup(op->getOperand(1)), sum ? sum : writer.bufferFor(product.result, name),
      product.bias, workspace, product.mask, squares, /*update_inputs=*/ValueRange(),
      /*update_outputs=*/ValueRange(),
      /*update=*/FlatSymbolRefAttr(), /*accumulate=*/sum != nullptr, product.relu, ir::isTf32(op),
      shape.transpose_a, shape.transpose_b, result.getElementType(), shape.batch, shape.m, shape.n, shape.k);
  if (squares)
    writer.addUp(squares, product.squares);
  return success();
}

static LogicalResult convert(ProgramWriter &writer, const Product &product) {
  if (auto matmul = dyn_cast<ir::MatmulOp>(product.op))
    return writeMatmul(writer, product, matmulShapeOf(matmul));
  return convertConvolution(writer, product);
}

LogicalResult convertProduct(ProgramWriter &writer, Operation *op) {
  return convert(writer, {.op = op, .result = op->getResult(0), .location = op->getLoc()});
}

/// Where a bias lies: a vector, or a part of one.
static Value biasBuffer(ProgramWriter &writer, Value bias) {
  auto slice = bias ? bias.getDefiningOp<ir::SliceOp>() : ir::SliceOp();
  if (!slice)
    return bias ? writer.buffers.lookup(bias) : Value();
  auto type = cast<RankedTensorType>(bias.getType());
  OpBuilder head = writer.declarations();
  Value whole = writer.buffers.lookup(slice.getOperand());
  return plan::ViewOp::create(head, bias.getLoc(), whole.getType(), whole,
                              slice.getStarts().front() * ir::elementBytes(type.getElementType()), type,
                              ArrayRef<int64_t>());
}

LogicalResult convertProduct(ProgramWriter &writer, ir::FusedOp fused, const Epilogue &epilogue) {
  plan::TargetKind kind = writer.target.getKind();
  if ((epilogue.relu && !takesRelu(kind, epilogue.product, epilogue.bias != nullptr)) ||
      (epilogue.bias && !takesBias(kind, epilogue.product)) ||
      (epilogue.mask && !takesMask(kind, epilogue.product)))
    return fused.emitOpError(
        "was made for the host, and cuda's library does not do what follows the product: "
        "compile the model, not a later stage of it, with --target=cuda");
  for (auto [argument, input] : llvm::zip_equal(fused.getBody().getArguments(), fused.getInputs()))
    writer.buffers[argument] = writer.buffers.lookup(input);
  return convert(writer, {.op = epilogue.product,
                          .result = fused.getOutputs()[0],
                          .name = epilogue.squares ? "" : fused.getName().str(),
                          .location = fused.getLoc(),
                          .bias = biasBuffer(writer, epilogue.bias),
                          .mask = epilogue.mask ? writer.buffers.lookup(epilogue.mask) : Value(),
                          .relu = epilogue.relu,
                          .squares = epilogue.squares ? fused.getOutputs()[1] : Value()});
}

} // namespace gpuc
