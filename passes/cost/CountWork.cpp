//===- CountWork.cpp - What commands and ops do, counted -----------------------===//

#include "passes/cost/Work.h"

#include "dialects/gpuc/Tf32.h"
#include "passes/base/AttentionViews.h"
#include "passes/base/ConvShapes.h"
#include "passes/base/MatmulShapes.h"
#include "runtime/workspace/conv_method.h"
#include "runtime/workspace/matmul_plan.h"

#include <cmath>

using namespace mlir;

namespace gpuc {
namespace {

constexpr int64_t kLanes = 16; ///< Of four bytes in the widest vectors.

double roundedUp(int64_t number, int64_t multiple) {
  return static_cast<double>((number + multiple - 1) / multiple * multiple);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

ProductPrecision precisionOf(Type element, bool tf32) {
  return element.getIntOrFloatBitWidth() == 16 ? ProductPrecision::half
         : tf32                                ? ProductPrecision::tf32
                                               : ProductPrecision::full;
}

/// `full` of what is no attention, nor a kernel of one.
ProductPrecision attentionPrecisionOf(Operation *op) {
  bool isHalf = false;
  op->walk([&](Operation *inner) {
    isHalf |= isAttention(inner) && getElementTypeOrSelf(inner->getOperand(0)).getIntOrFloatBitWidth() == 16;
  });
  return isHalf ? ProductPrecision::halfAttention : ProductPrecision::full;
}

/// At most so many rows are multiplied with operands as they lie by a method of their own.
constexpr int64_t kFewRows = 16;

Family familyOf(const MatmulPlan &plan) {
  if (plan.method == MatmulMethod::dot)
    return Family::matmulOfRows;
  if (plan.problem.transpose_b || plan.transposed)
    return Family::matmulByRows;
  if (plan.problem.transpose_a)
    return Family::matmulByColumns;
  return plan.problem.m <= kFewRows ? Family::matmulOfFewRows : Family::matmul;
}

/// As the runtime cuts it.
void countMatmul(MatmulShape shape, Work &work) {
  shape.batch_stride_a = shape.batch > 1 ? shape.m * shape.k : 0;
  shape.batch_stride_b = shape.batch > 1 ? shape.k * shape.n : 0;
  const MatmulPlan plan = planMatmul(shape);
  const MatmulShape &p = plan.problem;
  const double times =
      static_cast<double>(p.batch * std::max<int64_t>(sizeOf(shape.type), 4)) / 4; // f64 counts twice
  const double rows = static_cast<double>(p.m), columns = static_cast<double>(p.n);
  const double depth = static_cast<double>(p.k);
  work.family = familyOf(plan);
  work.parts = plan.tileCount();
  work[Unit::command] = 1;
  if (plan.method == MatmulMethod::dot) {
    work[Unit::flop] = 2 * times * rows * columns * roundedUp(p.k, kLanes);
    work[Unit::row] = times * rows * columns;
    return;
  }
  work[Unit::flop] = 2 * times * rows * roundedUp(p.n, kLanes) * depth;
  work[Unit::packed] = times * depth *
                       ((plan.pack_b ? columns * static_cast<double>(plan.rowTiles()) : 0) +
                        (plan.pack_a ? rows * static_cast<double>(plan.columnTiles()) : 0));
  work[Unit::stored] =
      times * rows * columns * std::ceil(depth / static_cast<double>(std::max<int64_t>(plan.block_k, 1)));
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

Family familyOf(const ConvShape &shape, ConvMethod method) {
  if (method == ConvMethod::winograd)
    return shape.kind == ConvKind::filter_gradient ? Family::winogradConvFilterGradient
                                                   : Family::winogradConv;
  const bool direct = method != ConvMethod::patches && method != ConvMethod::by_channels;
  switch (shape.kind) {
  case ConvKind::forward:
    return direct ? Family::directConv : Family::conv;
  case ConvKind::input_gradient:
    return direct ? Family::directConvInputGradient : Family::convInputGradient;
  case ConvKind::filter_gradient:
    return !direct                            ? Family::convFilterGradient
           : method == ConvMethod::by_outputs ? Family::directConvFilterGradientByOutputs
                                              : Family::directConvFilterGradient;
  }
  llvm_unreachable("a fourth convolution");
}

/// What the host counts to choose a method: vectors of 16 elements, squares of as many vectors. A block that
/// begins takes as long as some runs do.
void countConv(const ConvShape &shape, Work &work) {
  constexpr double kRunsOfABlock = 4, kFlops = 2;
  work[Unit::command] = 1;
  if (!isCountable(shape)) {
    work.family = Family::conv;
    work[Unit::flop] = kFlops * static_cast<double>(shape.batch) * static_cast<double>(shape.out_channels) *
                       static_cast<double>(shape.outputPixels()) * static_cast<double>(shape.patchRows());
    return;
  }
  const ConvMethod method = convMethod(shape);
  if (method == ConvMethod::subsampled)
    countConv(subsampledShape(shape), work);
  else
    work.family = familyOf(shape, method);
  const ConvWork counted = convWork(shape, method);
  const auto add = [&](Unit unit, double times, int64_t count) {
    work[unit] += times * static_cast<double>(count);
  };
  work.parts = std::max(work.parts, counted.tiles);
  add(Unit::flop, kFlops * kLanes, counted.steps);
  add(Unit::packed, kLanes, counted.vectors);
  add(Unit::packed, kLanes * kLanes, counted.squares);
  add(Unit::strided, 1, counted.strided);
  add(Unit::stored, kLanes, counted.sums);
  add(Unit::row, 1, counted.runs);
  add(Unit::row, kRunsOfABlock, counted.blocks);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Random numbers that are made at once, whatever is left of a row: four of each of eight counters
/// (runtime/host/attention/dropout.h).
constexpr int64_t kDrawnAtOnce = 32;

/// So many blocks of scores, each of as many queries by as many keys (runtime/host/attention): keys are its
/// rows, queries its columns, which fill vectors. Of each product what its columns are does: queries of the
/// scores and of their slopes, widths of all others.
void countScores(const AttentionShape &shape, int64_t blocks, int64_t queries, int64_t keys, Work &work) {
  const double rows = static_cast<double>(blocks * keys), wholeQueries = roundedUp(queries, kLanes);
  const double scores = rows * wholeQueries, pairs = rows * static_cast<double>(queries);
  const double width = static_cast<double>(shape.width), wholeWidth = roundedUp(shape.width, kLanes);
  const double values = static_cast<double>(shape.value_width);
  const double wholeValues = roundedUp(shape.value_width, kLanes);
  work[Unit::exponential] += scores;
  if (shape.dropout > 0)
    work[Unit::draw] += static_cast<double>(blocks * queries) * roundedUp(keys, kDrawnAtOnce);
  work[Unit::flop] += 2 * (shape.kind == AttentionKind::gradient
                               ? scores * (width + values) + pairs * (2 * wholeWidth + wholeValues)
                               : scores * width + pairs * wholeValues);
}

/// A block of queries against the blocks of keys that it sees: what lies behind a query is left out block by
/// block. The gradient packs the queries for each part of the keys.
void countQueries(const AttentionShape &shape, const AttentionCut &cut, int64_t first, Work &work) {
  const int64_t queries = std::min(cut.block_queries, shape.queries - first);
  const int64_t seen = shape.causal ? std::min(shape.keys, first + queries) : shape.keys;
  const int64_t blocks = llvm::divideCeil(seen, cut.block_keys);
  const int64_t whole = std::min(blocks, shape.keys / cut.block_keys);
  countScores(shape, whole, queries, cut.block_keys, work);
  countScores(shape, blocks - whole, queries, shape.keys % cut.block_keys, work);
  const int64_t packed =
      shape.kind == AttentionKind::gradient ? llvm::divideCeil(blocks, cut.blocks_per_part) : 1;
  work[Unit::row] += static_cast<double>(packed * queries);
}

/// Of a plan's command and of gpuc's op alike.
void countAttention(const AttentionShape &shape, Work &work) {
  const AttentionCut cut = cutAttention(shape);
  Work head;
  for (int64_t first = 0; first < shape.queries; first += cut.block_queries)
    countQueries(shape, cut, first, head);
  const double times = static_cast<double>(shape.batch * shape.heads * sizeOf(shape.type)) / 4;
  work.family = shape.kind == AttentionKind::gradient ? Family::attentionGradient : Family::attention;
  work[Unit::command] = 1;
  for (Unit unit : {Unit::row, Unit::exponential, Unit::draw, Unit::flop})
    work[unit] = times * head[unit];
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

void countLaunch(plan::LaunchOp launch, plan::KernelOp kernel, Work &work) {
  for (auto [input, argument] : llvm::zip_equal(launch.getInputs(), kernel.getBody().getArguments()))
    work.bytesRead += bytesReadOf(argument, plan::rangeOf(input).size);
  work.flops = flopsIn(kernel);
  work.precision = attentionPrecisionOf(kernel);
  work.family = Family::kernel;
  work[Unit::command] = 1;
  countKernel(kernel.getBody().front(), work);
}

/// The weight's update, which takes the product's result.
void countUpdate(plan::KernelOp update, Work &work) {
  work.flops += flopsIn(update);
  countKernel(update.getBody().front(), work);
}

/// As the host computes it.
void countConvolution(const ConvShape &shape, Work &work) {
  if (std::optional<MatmulShape> matmul = productOf(shape))
    countMatmul(*matmul, work);
  else
    countConv(shape, work);
}

/// Of a product or attention, alone or with what follows it.
void countLibraryOp(Operation *op, Work &work) {
  if (isa<ir::ProductOpInterface>(op))
    work.precision = precisionOf(getElementTypeOrSelf(op->getOperand(0)), ir::isTf32(op));
  if (auto matmul = dyn_cast<ir::MatmulOp>(op))
    countMatmul(matmulShapeOf(matmul), work);
  else if (isa<ir::ProductOpInterface>(op))
    countConvolution(convShapeOf(op), work);
  else if (auto attention = dyn_cast<ir::AttentionOp>(op))
    countAttention(attentionShapeOf(attention), work);
  else if (auto gradient = dyn_cast<ir::AttentionGradientOp>(op))
    countAttention(attentionShapeOf(gradient), work);
  if (isAttention(op))
    work.precision = attentionPrecisionOf(op);
}

/// `kernel`: what is launched, or the update that takes a product's result, if there is one.
Work countCommand(plan::CommandOpInterface command, plan::KernelOp kernel) {
  Work work;
  if (isa<plan::LoopOpInterface>(*command))
    return work;
  work[Unit::command] = 1;
  work.bytesWritten = bytesOf(command.getWrites());
  if (auto launch = dyn_cast<plan::LaunchOp>(*command))
    return countLaunch(launch, kernel, work), work;
  work.bytesRead = bytesOf(command.getReads());
  if (auto cost = dyn_cast<ir::CostOpInterface>(*command))
    work.flops = cost.getFlops();
  if (auto product = dyn_cast<plan::ProductOpInterface>(*command))
    work.precision = precisionOf(product.getElement(), product.getTf32());
  if (auto matmul = dyn_cast<plan::MatmulOp>(*command))
    countMatmul(matmulShapeOf(matmul), work);
  else if (auto conv = dyn_cast<plan::ConvOp>(*command))
    countConv(convShapeOf(conv), work);
  else if (auto attention = dyn_cast<plan::AttentionOp>(*command))
    countAttention(numbersOf(attention, AttentionKind::forward), work);
  else if (auto gradient = dyn_cast<plan::AttentionGradientOp>(*command))
    countAttention(numbersOf(gradient, AttentionKind::gradient), work);
  if (kernel)
    countUpdate(kernel, work);
  return work;
}

/// Of what is launched, or of the update that takes a product's result; null if there is none.
FlatSymbolRefAttr kernelAttrOf(plan::CommandOpInterface command) {
  if (auto launch = dyn_cast<plan::LaunchOp>(*command))
    return launch.getKernelAttr();
  auto product = dyn_cast<plan::ProductOpInterface>(*command);
  return product ? product.getUpdateAttr() : FlatSymbolRefAttr();
}

} // namespace

Work workOf(plan::CommandOpInterface command) {
  FlatSymbolRefAttr name = kernelAttrOf(command);
  auto module = command->getParentOfType<ModuleOp>();
  return countCommand(command, name ? module.lookupSymbol<plan::KernelOp>(name) : plan::KernelOp());
}

plan::KernelOp WorkTable::kernelOf(plan::CommandOpInterface command) const {
  FlatSymbolRefAttr name = kernelAttrOf(command);
  return name ? symbols_.lookup<plan::KernelOp>(name.getValue()) : plan::KernelOp();
}

const Work &WorkTable::operator[](plan::CommandOpInterface command) {
  auto [entry, isNew] = works_.try_emplace(command);
  if (isNew)
    entry->second = countCommand(command, kernelOf(command));
  return entry->second;
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
  work.precision = attentionPrecisionOf(fused);
  work.family = Family::kernel;
  countKernel(fused->getRegion(0).front(), work);
  return work;
}

} // namespace gpuc
