//===- CountWork.cpp - What commands and ops do, counted -----------------------===//

#include "passes/cost/Work.h"

#include "dialects/gpuc/Tf32.h"
#include "passes/base/AttentionViews.h"
#include "passes/base/ConvShapes.h"
#include "runtime/workspace/conv_direct.h"

#include <cmath>

using namespace mlir;

namespace gpuc {
namespace {

constexpr int64_t kLanes = 16; ///< Of four bytes in the widest vectors.

double roundedUp(int64_t number) { return static_cast<double>((number + kLanes - 1) / kLanes * kLanes); }

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

ProductPrecision precisionOf(Type element, bool tf32) {
  return element.getIntOrFloatBitWidth() == 16 ? ProductPrecision::half
         : tf32                                ? ProductPrecision::tf32
                                               : ProductPrecision::full;
}

struct MatmulNumbers {
  ir::ProductExtents extents;
  bool transposeLhs, transposeRhs;
  Type element;
};

MatmulNumbers numbersOf(plan::MatmulOp op) {
  return {{static_cast<int64_t>(op.getBatch()), static_cast<int64_t>(op.getM()),
           static_cast<int64_t>(op.getN()), static_cast<int64_t>(op.getK())},
          op.getTransposeLhs(),
          op.getTransposeRhs(),
          op.getElement()};
}

MatmulNumbers numbersOf(ir::MatmulOp op) {
  return {op.getExtents(), op.getTransposeLhs(), op.getTransposeRhs(), op.getType().getElementType()};
}

/// Sums are kept in registers for so many elements of a row and a column at most.
constexpr double kBlockDepth = 512;

void countMatmul(const MatmulNumbers &numbers, Work &work) {
  auto [batch, m, n, k] = numbers.extents;
  const double depth = static_cast<double>(k), rows = static_cast<double>(m);
  const double times =
      static_cast<double>(batch * std::max<int64_t>(ir::elementBytes(numbers.element), 4)) / 4;
  work.family = numbers.transposeLhs   ? Family::matmulByColumns
                : numbers.transposeRhs ? Family::matmulByRows
                                       : Family::matmul;
  work[Unit::command] = 1;
  work[Unit::flop] = 2 * times * rows * roundedUp(n) * depth;
  work[Unit::packed] = times * depth * (numbers.transposeLhs ? rows : static_cast<double>(n));
  work[Unit::stored] = times * rows * static_cast<double>(n) * std::ceil(depth / kBlockDepth);
}

Family familyOf(const ConvShape &shape, bool direct) {
  switch (shape.kind) {
  case ConvKind::forward:
    return direct ? Family::directConv : Family::conv;
  case ConvKind::input_gradient:
    return direct ? Family::directConvInputGradient : Family::convInputGradient;
  case ConvKind::filter_gradient:
    return direct ? Family::directConvFilterGradient : Family::convFilterGradient;
  }
  llvm_unreachable("a fourth convolution");
}

/// How much of the vectors that a convolution computes with is in use: they run along what conv_direct.h
/// says.
double laneShare(const ConvShape &shape, ConvMethod method) {
  const auto share = [](int64_t extent) { return static_cast<double>(extent) / roundedUp(extent); };
  switch (method) {
  case ConvMethod::patches:
    return share(shape.kind == ConvKind::filter_gradient ? shape.patchRows() : shape.outputPixels());
  case ConvMethod::by_rows:
    return share(correlationOf(shape).width.output);
  case ConvMethod::by_outputs:
    return share(shape.groupOutputs());
  case ConvMethod::by_images:
    return share(shape.batch);
  }
  llvm_unreachable("a fifth method");
}

void countConv(const ConvShape &shape, Work &work) {
  const ConvMethod method = convMethod(shape);
  const double outputs = static_cast<double>(shape.batch * shape.out_channels * shape.outputPixels());
  const double patches =
      static_cast<double>(shape.batch * shape.groups * shape.outputPixels() * shape.patchRows());
  const double size = static_cast<double>(std::max<int64_t>(sizeOf(shape.type), 4)) / 4;
  work.family = familyOf(shape, method != ConvMethod::patches);
  work[Unit::command] = 1;
  work[Unit::flop] = 2 * size * outputs * static_cast<double>(shape.patchRows()) / laneShare(shape, method);
  work[Unit::packed] = shape.isPointwise() ? 0 : size * patches;
  // A filter's gradient is added up image by image.
  const bool isSummed = shape.kind == ConvKind::filter_gradient && method == ConvMethod::patches;
  work[Unit::stored] =
      size * static_cast<double>(isSummed ? shape.batch * shape.filterElements() : shape.inputElements()) +
      (isSummed ? 0 : size * outputs);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Of a plan's command and of gpuc's op alike.
void countAttention(const AttentionShape &shape, Work &work) {
  const bool isGradient = shape.kind == AttentionKind::gradient;
  // What lies behind a query is left out by blocks.
  const double masked = shape.causal ? 0.5 : 1, size = static_cast<double>(sizeOf(shape.type)) / 4;
  const double rows = static_cast<double>(shape.batch * shape.heads * shape.queries);
  const double scores = rows * static_cast<double>(shape.keys) * masked * size;
  const int64_t width =
      isGradient ? 3 * shape.width + 2 * shape.value_width : shape.width + shape.value_width;
  work.family = isGradient ? Family::attentionGradient : Family::attention;
  work[Unit::command] = 1;
  work[Unit::row] = rows;
  work[Unit::exponential] = scores;
  work[Unit::draw] = shape.dropout > 0 ? scores : 0;
  work[Unit::flop] = 2 * scores * static_cast<double>(width);
}

template <typename Op> AttentionShape numbersOf(Op op, AttentionKind kind) {
  AttentionShape shape;
  shape.kind = kind;
  shape.type = op.getElement().isF64() ? DataType::f64 : DataType::f32;
  shape.batch = op.getBatch(), shape.heads = op.getHeads();
  shape.queries = op.getQueries(), shape.keys = op.getKeys();
  shape.width = op.getWidth(), shape.value_width = op.getValueWidth();
  shape.causal = op.getCausal();
  shape.dropout = op.getDropout() ? op.getDropout()->convertToDouble() : 0;
  return shape;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

plan::KernelOp kernelOf(plan::LaunchOp launch) {
  return launch->getParentOfType<ModuleOp>().lookupSymbol<plan::KernelOp>(launch.getKernelAttr());
}

int64_t flopsIn(Operation *op) {
  int64_t flops = 0;
  op->walk([&](ir::CostOpInterface inner) { flops += inner.getFlops(); }); // segments too
  return flops;
}

/// Of a table no more than what is gathered from it.
int64_t bytesReadOf(BlockArgument argument, int64_t size) {
  int64_t gathered = 0;
  for (OpOperand &use : argument.getUses()) {
    auto gather = dyn_cast<ir::GatherOp>(use.getOwner());
    if (!gather || use.get() != gather.getOperand() || use.get() == gather.getIndices())
      return size;
    gathered += ir::sizeInBytes(gather.getType());
  }
  return std::min(size, gathered);
}

int64_t bytesOf(ValueRange values) {
  int64_t bytes = 0;
  for (Value value : values)
    bytes += plan::rangeOf(value).size;
  return bytes;
}

void countLaunch(plan::LaunchOp launch, Work &work) {
  plan::KernelOp kernel = kernelOf(launch);
  for (auto [input, argument] : llvm::zip_equal(launch.getInputs(), kernel.getBody().getArguments()))
    work.bytesRead += bytesReadOf(argument, plan::rangeOf(input).size);
  work.flops = flopsIn(kernel);
  work.family = Family::kernel;
  work[Unit::command] = 1;
  countKernel(kernel.getBody().front(), work);
}

/// Of a product or attention, alone or with what follows it.
void countLibraryOp(Operation *op, Work &work) {
  if (isa<ir::ProductOpInterface>(op))
    work.precision = precisionOf(getElementTypeOrSelf(op->getOperand(0)), ir::isTf32(op));
  if (auto matmul = dyn_cast<ir::MatmulOp>(op))
    countMatmul(numbersOf(matmul), work);
  else if (isa<ir::ProductOpInterface>(op))
    countConv(convShapeOf(op), work);
  else if (auto attention = dyn_cast<ir::AttentionOp>(op))
    countAttention(attentionShapeOf(attention), work);
  else if (auto gradient = dyn_cast<ir::AttentionGradientOp>(op))
    countAttention(attentionShapeOf(gradient), work);
}

} // namespace

Work workOf(plan::CommandOpInterface command) {
  Work work;
  if (isa<plan::LoopOpInterface>(*command))
    return work;
  work[Unit::command] = 1;
  work.bytesWritten = bytesOf(command.getWrites());
  if (auto launch = dyn_cast<plan::LaunchOp>(*command))
    return countLaunch(launch, work), work;
  work.bytesRead = bytesOf(command.getReads());
  if (auto cost = dyn_cast<ir::CostOpInterface>(*command))
    work.flops = cost.getFlops();
  if (auto product = dyn_cast<plan::ProductOpInterface>(*command))
    work.precision = precisionOf(product.getElement(), product.getTf32());
  if (auto matmul = dyn_cast<plan::MatmulOp>(*command))
    countMatmul(numbersOf(matmul), work);
  else if (auto conv = dyn_cast<plan::ConvOp>(*command))
    countConv(convShapeOf(conv), work);
  else if (auto attention = dyn_cast<plan::AttentionOp>(*command))
    countAttention(numbersOf(attention, AttentionKind::forward), work);
  else if (auto gradient = dyn_cast<plan::AttentionGradientOp>(*command))
    countAttention(numbersOf(gradient, AttentionKind::gradient), work);
  return work;
}

Work workOf(Operation *op) {
  Work work;
  work[Unit::command] = 1;
  work.flops = flopsIn(op);
  for (Value operand : llvm::SmallDenseSet<Value>(op->operand_begin(), op->operand_end()))
    work.bytesRead += ir::sizeInBytes(operand.getType());
  for (Value result : op->getResults())
    work.bytesWritten += ir::sizeInBytes(result.getType());
  auto fused = dyn_cast<ir::FusedOp>(op);
  if (!fused)
    return countLibraryOp(op, work), work;
  auto products = fused.getOps<ir::ProductOpInterface>();
  if (!products.empty())
    return countLibraryOp(*products.begin(), work), work;
  work.family = Family::kernel;
  countKernel(fused->getRegion(0).front(), work);
  return work;
}

} // namespace gpuc
