//===- CudaAttention.cpp - What attention's kernels share -------------------===//

#include "passes/codegen/cuda/CudaAttention.h"

#include "passes/base/AttentionViews.h"
#include "passes/codegen/cuda/CudaFmaTiles.h"
#include "passes/codegen/cuda/CudaKernel.h"
#include "passes/codegen/cuda/CudaTensorTiles.h"
#include "passes/codegen/math/Philox.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <limits>

using namespace mlir;

namespace gpuc::codegen {

//===----------------------------------------------------------------------===//
// The kernel's body
//===----------------------------------------------------------------------===//

namespace {

/// Reads an AttentionKernel off a body. The kernel's parameters are the block's arguments, then what it
/// yields.
template <typename Op> class Parser {
public:
  Parser(Op op, Block &body, AttentionKernel &kernel) : op_(op), body_(body), kernel_(kernel) {}

  LogicalResult readOperands() {
    kernel_.shape = attentionShapeOf(op_);
    if (failed(read(op_.getQuery(), kernel_.query)) || failed(read(op_.getKey(), kernel_.key)) ||
        failed(read(op_.getValue(), kernel_.value)))
      return failure();
    if (Value mask = op_.getMask()) {
      kernel_.maskKind = elementKind(mask.getType());
      if (failed(parameterOf(mask, kernel_.mask)))
        return failure();
    }
    if (kernel_.shape.dropout > 0) { // the last two arguments are read by nothing but dropout
      if (body_.getNumArguments() < 2)
        return failure();
      kernel_.seed = body_.getNumArguments() - 2;
      kernel_.step = body_.getNumArguments() - 1;
    }
    return success();
  }

  LogicalResult read(Value value, AttentionTensor &tensor) {
    StridedView view = viewOf(value);
    locate(value, view, tensor);
    return parameterOf(view.base, tensor.pointer);
  }

  LogicalResult parameterOf(Value value, unsigned &number) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument)
      return failure();
    number = argument.getArgNumber();
    return success();
  }

  /// Leaves out what is not yielded. `yielded` counts what is.
  void readYielded(Value value, std::optional<AttentionTensor> &tensor, unsigned &yielded) {
    StridedView view = viewOf(value);
    if (std::optional<unsigned> number = yieldOf(view.base)) {
      locate(value, view, tensor.emplace());
      tensor->pointer = *number;
      ++yielded;
    }
  }

  std::optional<unsigned> yieldOf(Value value) {
    auto yields = body_.getTerminator()->getOperands();
    auto found = llvm::find(yields, value);
    if (found == yields.end())
      return std::nullopt;
    return body_.getNumArguments() + static_cast<unsigned>(found - yields.begin());
  }

private:
  void locate(Value value, const StridedView &view, AttentionTensor &tensor) {
    auto type = cast<RankedTensorType>(value.getType());
    tensor.kind = elementKind(type);
    tensor.offset = view.offset;
    tensor.layout = {view.strides[0], view.strides[1], view.strides[2]};
    tensor.rows = type.getDimSize(2);
    tensor.width = type.getDimSize(3);
    tensor.isAligned = body_.getParentOp()->hasAttr(kAlignedAttr);
  }

  Op op_;
  Block &body_;
  AttentionKernel &kernel_;
};

} // namespace

static LogicalResult parseForward(ir::AttentionOp op, Block &body, AttentionKernel &kernel) {
  Parser parser(op, body, kernel);
  unsigned yielded = 0;
  parser.readYielded(op.getResult(), kernel.yieldedResult, yielded);
  kernel.logSumExp = parser.yieldOf(op.getLogSumExp());
  yielded += kernel.logSumExp.has_value();
  return success(yielded == body.getTerminator()->getNumOperands() && succeeded(parser.readOperands()));
}

static LogicalResult parseGradient(ir::AttentionGradientOp op, Block &body, AttentionKernel &kernel) {
  Parser parser(op, body, kernel);
  unsigned yielded = 0, logSumExp = 0;
  parser.readYielded(op.getQueryCotangent(), kernel.queryCotangent, yielded);
  parser.readYielded(op.getKeyCotangent(), kernel.keyCotangent, yielded);
  parser.readYielded(op.getValueCotangent(), kernel.valueCotangent, yielded);
  bool isOfKeys = kernel.keyCotangent || kernel.valueCotangent;
  kernel.part = isOfKeys ? AttentionPart::KeyValueGradient : AttentionPart::QueryGradient;
  if (yielded != body.getTerminator()->getNumOperands() || (isOfKeys && kernel.queryCotangent) ||
      failed(parser.readOperands()) || failed(parser.read(op.getResult(), kernel.result)) ||
      failed(parser.read(op.getCotangent(), kernel.cotangent)) ||
      failed(parser.parameterOf(op.getLogSumExp(), logSumExp)))
    return failure();
  kernel.logSumExp = logSumExp;
  return success();
}

FailureOr<AttentionKernel> AttentionKernel::parse(Block &body) {
  Operation *attention = nullptr;
  for (Operation &op : body.without_terminator()) {
    if (!isAttention(&op) && !isa<ir::TransposeOp, ir::SliceOp, ir::ReshapeOp>(op))
      return failure();
    if (isAttention(&op) && std::exchange(attention, &op))
      return failure();
  }
  AttentionKernel kernel;
  if (!attention || body.getTerminator()->getNumOperands() == 0)
    return failure();
  auto forward = dyn_cast<ir::AttentionOp>(attention);
  if (failed(forward ? parseForward(forward, body, kernel)
                     : parseGradient(cast<ir::AttentionGradientOp>(attention), body, kernel)))
    return failure();
  return kernel;
}

CudaSchedule AttentionKernel::schedule() const {
  int64_t blocks =
      part == AttentionPart::KeyValueGradient ? shape.groups * keyTiles() : shape.heads * queryTiles();
  return {static_cast<uint32_t>(shape.batch * blocks), static_cast<uint32_t>(tileShape().threads)};
}

bool AttentionTensor::isInChunks() const {
  const int64_t terms[] = {offset, layout.batch, layout.head, layout.row, width};
  return isAligned && bytesOf(kind) == 2 &&
         llvm::all_of(terms, [](int64_t elements) { return elements % 8 == 0; });
}

bool AttentionKernel::usesTensorCores() const {
  bool isForward = part == AttentionPart::Forward, drops = shape.dropout > 0;
  SmallVector<const AttentionTensor *> operands = {&query, &key, &value};
  if (!isForward)
    operands.append({&cotangent, &result});
  if (query.kind != ElementKind::F16 && query.kind != ElementKind::BF16)
    return false;
  if (llvm::any_of(operands, [&](auto *operand) { return operand->kind != query.kind; }))
    return false;
  // Elements one by one take registers for their places, as a mask's do, and dropout for its counters.
  bool areInChunks = llvm::all_of(operands, [](auto *operand) { return operand->isInChunks(); });
  if (isForward)
    return !(drops && isWide() && !areInChunks);
  bool readsMask = part == AttentionPart::KeyValueGradient && shape.mask != AttentionMask::none;
  return !drops && (!isWide() || (areInChunks && !readsMask));
}

TileShape AttentionKernel::tileShape() const {
  if (!usesTensorCores())
    return FmaTiles::kShape;
  // The sums of wide heads leave registers for half a tile, and so do two sums beside a mask.
  bool hasMask = shape.mask != AttentionMask::none;
  bool isHalf = isWide() ? part != AttentionPart::Forward || shape.dropout > 0 || hasMask
                         : part == AttentionPart::KeyValueGradient && hasMask;
  return TensorTiles::shapeOf(isHalf ? TileEmitter::size / 2 : TileEmitter::size);
}

//===----------------------------------------------------------------------===//
// Who computes what
//===----------------------------------------------------------------------===//

/// What every tile stages: keys and values, or queries and cotangents, which are as wide.
static std::unique_ptr<TileEmitter> createTiles(gpu::GPUFuncOp function, ImplicitLocOpBuilder &builder,
                                                const AttentionKernel &kernel) {
  if (!kernel.usesTensorCores())
    return std::make_unique<FmaTiles>(function, builder);
  bool isOfKeys = kernel.part == AttentionPart::KeyValueGradient;
  const AttentionTensor &a = isOfKeys ? kernel.query : kernel.key,
                        &b = isOfKeys ? kernel.cotangent : kernel.value;
  return std::make_unique<TensorTiles>(function, builder, kernel.query.kind, kernel.tileShape().columns,
                                       std::pair(a.width, b.width), a.isInChunks() && b.isInChunks());
}

AttentionEmitter::AttentionEmitter(gpu::GPUFuncOp function, const AttentionKernel &kernel)
    : kernel_(kernel), function_(function),
      builder_(ImplicitLocOpBuilder::atBlockBegin(function.getLoc(), &function.getBody().front())),
      pointers_(llvm::to_vector_of<Value>(function.getArguments())),
      tiles_(createTiles(function, builder_, kernel)), rowsEach_(tiles_->rowsEach()),
      columnsEach_(tiles_->columnsEach()), scale_(kernel.shape.scale * tiles_->logOfE()) {
  if (drops()) {
    seed_ = tiles_->load(pointers_[kernel.seed], ElementKind::I64, wideNumber(0));
    step_ = tiles_->load(pointers_[kernel.step], ElementKind::I64, wideNumber(0));
  }
  if (kernel.part == AttentionPart::KeyValueGradient) {
    logarithms_ = sharedArray(function, builder_, builder_.getF32Type(), 2 * TileEmitter::size);
    deltas_ = sharedArray(function, builder_, builder_.getF32Type(), 2 * TileEmitter::size);
  }
}

void AttentionEmitter::run() {
  if (int64_t blocks = kernel_.leastBlocksAtOnce())
    function_->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), builder_.getI32IntegerAttr(blocks));
  switch (kernel_.part) {
  case AttentionPart::Forward:
    emitForward();
    break;
  case AttentionPart::QueryGradient:
    emitQueryGradient();
    break;
  case AttentionPart::KeyValueGradient:
    emitKeyValueGradient();
    break;
  }
  gpu::ReturnOp::create(builder_);
}

std::pair<Expr, Expr> AttentionEmitter::splitBlock(int64_t tiles, bool lastFirst) {
  Value block = gpu::BlockIdOp::create(builder_, gpu::Dimension::x);
  Expr number(builder_, arith::IndexCastOp::create(builder_, builder_.getI32Type(), block));
  Expr rest = divideUnsigned(number, tiles), tile = remainderUnsigned(number, tiles);
  if (kernel_.shape.causal) { // what takes longest begins first, of all heads
    const int64_t others = kernel_.schedule().grid / tiles;
    rest = remainderUnsigned(number, others), tile = divideUnsigned(number, others);
  }
  return {(lastFirst ? tile.integer(tiles - 1) - tile : tile) * tile.integer(TileEmitter::size), rest};
}

AttentionEmitter::Head AttentionEmitter::headOf(Expr batch, Expr head) {
  Expr group = divideUnsigned(head, kernel_.shape.headsPerGroup());
  Expr row = (batch * wideNumber(kernel_.shape.heads) + head) * wideNumber(kernel_.shape.queries);
  return {batch, head, group, row, {}};
}

std::pair<Expr, AttentionEmitter::Head> AttentionEmitter::enterQueries() {
  // The last causal queries see most, the first causal keys are seen by most.
  auto [query0, rest] = splitBlock(kernel_.queryTiles(), /*lastFirst=*/kernel_.shape.causal);
  const int64_t heads = kernel_.shape.heads;
  Expr batch = divideUnsigned(rest, heads), head = remainderUnsigned(rest, heads);
  return {query0, headOf(wide(batch), wide(head))};
}

GlobalRows AttentionEmitter::rowsOf(const AttentionTensor &tensor, Expr batch, Expr head) {
  Expr first = wideNumber(tensor.offset) + batch * wideNumber(tensor.layout.batch) +
               head * wideNumber(tensor.layout.head);
  return {tiles_->advance(pointers_[tensor.pointer], tensor.kind, first),
          tensor.kind,
          tensor.rows,
          tensor.width,
          tensor.layout.row,
          tensor.isInChunks()};
}

State AttentionEmitter::overTiles(Head head, Expr low, Expr high, bool seesAll, const State &start,
                                  TileBody body) {
  head.seesAll = seesAll;
  return tiles_->loop(low, high, tiles_->shape().columns, start,
                      [&](Expr first, const State &carried) { return body(head, first, carried); });
}

static Expr smaller(Expr a, Expr b) { return select(less(a, b), a, b); }

State AttentionEmitter::overKeys(Head head, Expr query0, const State &start, TileBody body) {
  const bool isCausal = kernel_.shape.causal;
  Expr all = number(kernel_.shape.keys);
  head.end = isCausal ? smaller(query0 + number(TileEmitter::size), all) : all;
  tiles_->begin(keysOf(kernel_.key, head), keysOf(kernel_.value, head), number(0), head.end);
  if (!isCausal || !kernel_.isPlain())
    return overTiles(head, number(0), head.end, false, start, body);
  Expr diagonal = smaller(query0, all);
  State before = overTiles(head, number(0), diagonal, true, start, body);
  return overTiles(head, diagonal, head.end, false, before, body);
}

State AttentionEmitter::overQueries(Head head, Expr key0, const State &start, TileBody body) {
  const bool isCausal = kernel_.shape.causal;
  Expr all = number(kernel_.shape.queries);
  Expr first = isCausal ? key0 : number(0); // queries before the first key see none of them
  head.end = all;
  tiles_->begin(queriesOf(kernel_.query, head), queriesOf(kernel_.cotangent, head), first, all);
  if (!isCausal || !kernel_.isPlain())
    return overTiles(head, first, all, false, start, body);
  Expr behind = smaller(key0 + number(TileEmitter::size), all);
  State before = overTiles(head, key0, behind, false, start, body);
  return overTiles(head, behind, all, true, before, body);
}

//===----------------------------------------------------------------------===//
// Scores and probabilities
//===----------------------------------------------------------------------===//

Expr AttentionEmitter::probability(Expr product, Expr logarithm, const Head &head, Expr query, Expr key) {
  if (kernel_.usesTensorCores()) // with one rounding less
    return tiles_->power(maskedScore(fma(product, product.real(scale_), -logarithm), head, query, key));
  return tiles_->power(score(product, head, query, key) - logarithm);
}

Expr AttentionEmitter::maskedScore(Expr score, const Head &head, Expr query, Expr key) {
  const AttentionShape &shape = kernel_.shape;
  Expr exists, isSeen;
  auto require = [](Expr &all, Expr condition) { all = all ? all & condition : condition; };
  if (shape.queries % TileEmitter::size)
    require(exists, less(query, number(shape.queries)));
  if (shape.keys % TileEmitter::size)
    require(exists, less(key, number(shape.keys)));
  isSeen = exists;
  if (shape.causal && !head.seesAll)
    require(isSeen, lessEqual(key, query));
  if (shape.mask != AttentionMask::none) {
    Expr position = wideNumber(0);
    const Expr coordinates[] = {head.batch, head.head, wide(query), wide(key)};
    for (auto [coordinate, stride] : llvm::zip(coordinates, shape.mask_strides))
      position = position + coordinate * wideNumber(stride);
    if (exists)
      position = select(exists, position, wideNumber(0));
    Expr mask = tiles_->load(pointers_[kernel_.mask], kernel_.maskKind, position);
    if (shape.mask == AttentionMask::flags)
      require(isSeen, mask);
    else
      score = fma(mask, mask.real(tiles_->logOfE()), score);
  }
  return isSeen ? select(isSeen, score, score.real(-std::numeric_limits<double>::infinity())) : score;
}

SmallVector<Expr, 4> AttentionEmitter::keptBy(const Head &head, Expr query, Expr firstKey, int64_t count) {
  Expr first = (head.firstRow + wide(query)) * wideNumber(kernel_.shape.keys) + wide(firstKey);
  Expr id = wideNumber(kernel_.shape.id);
  SmallVector<Expr, 4> kept;
  // Where rows begin at multiples of 4, four keys that adjoin are the words of one counter.
  if (kernel_.shape.keys % 4 == 0)
    kept = emitPhiloxWords(shiftRight(first, 2), seed_, step_, id);
  else
    for (int64_t j = 0; j < count; ++j)
      kept.push_back(emitPhilox(first + wideNumber(j), seed_, step_, id));
  if (kept.size() > static_cast<size_t>(count)) { // the first two words or the last
    Expr isFirst = equal(first & first.integer(2), first.integer(0));
    kept = {select(isFirst, kept[0], kept[2]), select(isFirst, kept[1], kept[3])};
  }
  for (Expr &word : kept) {
    // As the op `dropout`: the highest 24 bits are a fraction, and exact.
    Expr fraction = toFloat(shiftRight(word, 8), builder_.getF32Type()) * 0x1p-24;
    word = greaterEqual(fraction, fraction.real(kernel_.shape.dropout));
  }
  return kept;
}

Expr AttentionEmitter::dropped(Expr x, Expr isKept) {
  return select(isKept, x * (1 / (1 - kernel_.shape.dropout)), x.real(0));
}

void AttentionEmitter::dropFromRow(Expr *row, const Head &head, Expr query, Expr key0) {
  const int64_t adjoining = kernel_.usesTensorCores() ? 2 : 4;
  for (int64_t first = 0; first < columnsEach_; first += adjoining)
    for (auto [j, isKept] : llvm::enumerate(keptBy(head, query, key0 + column(first), adjoining)))
      row[first + j] = dropped(row[first + j], isKept);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Expr AttentionEmitter::logSumExpOf(const Head &head, Expr query) {
  Expr exists = less(query, number(kernel_.shape.queries));
  Expr position = head.firstRow + wide(select(exists, query, number(0)));
  Expr log = tiles_->load(pointers_[*kernel_.logSumExp], ElementKind::F32, position);
  Expr isNumber = notEqual(log, log.real(-std::numeric_limits<double>::infinity()));
  return select(exists & isNumber, log * tiles_->logOfE(), log.real(0));
}

void AttentionEmitter::storeRows(const State &sums, const GlobalRows &to, Expr row0,
                                 llvm::function_ref<Expr(int64_t, Expr)> transform) {
  const int64_t columns = tiles_->columnsOf(to.width);
  for (int64_t i = 0; i < rowsEach_; ++i) {
    Expr at = row0 + row(i);
    auto store = [&] {
      State values;
      for (int64_t j = 0; j < columns; ++j)
        values.push_back(transform(i, sums[i * columns + j]));
      tiles_->storeRow(values, to, at);
    };
    to.rows % TileEmitter::size == 0 ? store() : tiles_->ifHolds(less(at, number(to.rows)), store);
  }
}

} // namespace gpuc::codegen
