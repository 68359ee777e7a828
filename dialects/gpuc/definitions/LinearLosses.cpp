//===- LinearLosses.cpp - What fused losses mean, and their VJPs -------------===//
//
// Each op is defined by what it does to one chunk of rows (a linear layer, then the loss of its logits by way
// of the op that there is for that), and by a scan over the chunks that carries what is added up. The second
// derivative goes through the same definition in one chunk, which has no scan.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/definitions/LinearLosses.h"
#include "dialects/gpuc/ExprHelpers.h"
#include "dialects/gpuc/VjpHelpers.h"
#include "dialects/gpuc/definitions/DefinitionVjp.h"

#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace gpuc::ir {

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

RowChunks cutRows(int64_t rows, int64_t classes, Type element, std::optional<int64_t> asked) {
  constexpr int64_t chunkBytes = 512 << 10, fewestRows = 256;
  int64_t rowBytes = std::max<int64_t>(classes, 1) * elementBytes(element);
  int64_t most = asked ? *asked : std::max(chunkBytes / rowBytes, fewestRows);
  if (rows <= most)
    return {rows, 1};
  int64_t fewest = static_cast<int64_t>(llvm::divideCeil(rows, most));
  // A bound, for very many chunks: what is padded then is next to nothing.
  for (int64_t count = fewest, last = fewest + std::min<int64_t>(fewest, 1024); count <= last; ++count)
    if (rows % count == 0)
      return {rows / count, count};
  return {static_cast<int64_t>(llvm::divideCeil(rows, fewest)), fewest};
}

namespace {

/// What is computed of one chunk: values that are added up over the chunks, and values of its rows.
struct Piece {
  SmallVector<Expr> sums, ofRows;
};

/// hidden [rows, features] · weightᵀ + bias.
template <typename Op> Expr logitsOf(Op op, Expr hidden, Expr weight, Value bias) {
  Expr logits = hidden.make<MatmulOp>(hidden.value(), weight.value(), /*transpose_lhs=*/false,
                                      /*transpose_rhs=*/true);
  return bias ? logits + broadcast(logits.at(bias), {1}, logits.shape()) : logits;
}

/// What the op reads in each chunk beside its rows.
struct Captures {
  Value weight, bias, classWeight;
};

Piece pieceOf(LinearAccuracyOp op, Expr hidden, Expr labels, const Captures &captures) {
  Expr logits = logitsOf(op, hidden, hidden.at(captures.weight), captures.bias);
  auto accuracy =
      hidden.makeOp<AccuracyOp>(logits.value(), labels.value(), /*mask=*/Value(), op.getIgnoreIndexAttr());
  return {{hidden.at(accuracy.getSum()), hidden.at(accuracy.getCount())}, {}};
}

template <typename Op> CrossEntropyOp lossOf(Op op, Expr hidden, Expr labels, const Captures &captures) {
  Expr logits = logitsOf(op, hidden, hidden.at(captures.weight), captures.bias);
  return hidden.makeOp<CrossEntropyOp>(logits.value(), labels.value(), captures.classWeight, /*mask=*/Value(),
                                       op.getSmoothingAttr(), op.getIgnoreIndexAttr());
}

Piece pieceOf(LinearCrossEntropyOp op, Expr hidden, Expr labels, const Captures &captures) {
  CrossEntropyOp loss = lossOf(op, hidden, labels, captures);
  return {{hidden.at(loss.getSum()), hidden.at(loss.getCount())}, {}};
}

Piece pieceOf(OpBuilder &builder, LinearCrossEntropyGradientOp op, Expr hidden, Expr labels,
              const Captures &captures) {
  CrossEntropyOp loss = lossOf(op, hidden, labels, captures);
  Expr sum = hidden.at(loss.getSum()), weight = hidden.at(captures.weight);
  SmallVector<Value> cotangents = {sum.constant(1), Value()}, byOperand;
  if (failed(loss.buildVJP(builder, cotangents, byOperand)))
    return {};
  Expr slope = hidden.at(byOperand[0]); // [rows, classes]
  Piece piece{{sum, hidden.at(loss.getCount())}, {}};
  piece.ofRows.push_back(hidden.make<MatmulOp>(slope.value(), weight.value(), false, false));
  piece.sums.push_back(widen(hidden.make<MatmulOp>(slope.value(), hidden.value(), true, false)));
  if (captures.bias)
    piece.sums.push_back(ir::sum(widen(slope), {0}));
  return piece;
}
template <typename Op> Piece pieceOf(OpBuilder &, Op op, Expr hidden, Expr labels, const Captures &captures) {
  return pieceOf(op, hidden, labels, captures);
}

//===----------------------------------------------------------------------===//
// Definitions
//===----------------------------------------------------------------------===//

/// An op's definition, in several chunks or in one.
template <typename Op> class Definition {
public:
  Definition(OpBuilder &builder, Op op) : builder_(builder), op_(op), hidden_(expr(op.getHidden())) {
    captures_ = {op.getWeight(), op.getBias(), {}};
    if constexpr (requires { op.getClassWeight(); })
      captures_.classWeight = op.getClassWeight();
  }

  /// The op's results.
  SmallVector<Value> build(bool whole) {
    if (!tensorType(op_.getLabels()).hasStaticShape()) {
      op_.emitOpError() << "hidden " << op_.getHidden().getType()
                        << " has rows that are not known yet: run gpuc-specialize-batch first";
      return {};
    }
    int64_t rows = elementCount(op_.getLabels().getType()), features = hidden_.shape().back();
    std::optional<int64_t> asked;
    if (op_.getChunk())
      asked = static_cast<int64_t>(*op_.getChunk());
    RowChunks chunks =
        whole ? RowChunks{rows, 1} : cutRows(rows, shapeOf(op_.getWeight())[0], hidden_.elementType(), asked);
    hidden_ = reshape(hidden_, withShape(hidden_, {rows, features}));
    labels_ = reshape(countedLabels(), withShape(op_.getLabels(), {rows}));
    Piece piece = chunks.count == 1 ? pieceOf(builder_, op_, hidden_, labels_, captures_) : scan(chunks);
    return results(piece, rows);
  }

private:
  /// No class: a row with this label does not count.
  static constexpr double kNoClass = -1;

  Expr expr(Value value) { return Expr(builder_, op_.getLoc(), value); }

  /// The labels, those of masked samples replaced.
  Expr countedLabels() {
    Expr labels = expr(op_.getLabels());
    if (Value mask = op_.getMask())
      return select(broadcast(expr(mask), {0}, labels.shape()), labels, kNoClass);
    return labels;
  }

  Expr padded(Expr rows, int64_t count, double value) {
    if (rows.shape()[0] == count)
      return rows;
    Shape none(rows.rank(), 0), high(none);
    high[0] = count - rows.shape()[0];
    return rows.make<PadOp>(rows.value(), none, high, none, APFloat(value));
  }

  /// [chunks · rows, …] as [chunks, rows, …].
  Expr cut(Expr rows, RowChunks chunks) {
    Shape shape = {chunks.count, chunks.rows};
    llvm::append_range(shape, rows.shape().drop_front());
    return reshape(rows, withShape(rows, shape));
  }

  /// The loop over chunks; the sums and rows that come out of it.
  Piece scan(RowChunks chunks) {
    Expr hidden = cut(padded(hidden_, chunks.padded(), 0), chunks),
         labels = cut(padded(labels_, chunks.padded(), kNoClass), chunks);
    SmallVector<Value> given = {captures_.weight}, zeros;
    for (Value optional : {captures_.bias, captures_.classWeight})
      if (optional)
        given.push_back(optional);
    for (Type type : sumTypes())
      zeros.push_back(hidden.constant(type, 0));
    auto body = [&](OpBuilder &builder, Location location, ValueRange slices, ValueRange carried,
                    ValueRange captured) {
      auto here = [&](Value value) { return Expr(builder, location, value); };
      Captures inner = {captured[0], captures_.bias ? captured[1] : Value(),
                        captures_.classWeight ? captured.back() : Value()};
      Piece piece = pieceOf(builder, op_, here(slices[0]), here(slices[1]), inner);
      SmallVector<Value> yielded;
      for (auto [before, sum] : llvm::zip_equal(carried, piece.sums))
        yielded.push_back(here(before) + sum);
      llvm::append_range(yielded, piece.ofRows);
      return yielded;
    };
    auto op = hidden_.makeOp<ScanOp>(ValueRange{hidden, labels}, zeros, given, chunks.count,
                                     /*batchFirst=*/false, /*reverse=*/false, body);
    op.setRecompute(true); // a derivative of this must not stack the logits either
    op.setChunked(true);
    auto outer = [&](Value value) { return expr(value); };
    return {llvm::map_to_vector(op.getFinals(), outer), llvm::map_to_vector(op.getOutputs(), outer)};
  }

  /// Sum, count and the gradients of what all rows share.
  SmallVector<Type> sumTypes() {
    SmallVector<Type> types(2, op_.getSum().getType());
    if constexpr (std::is_same_v<Op, LinearCrossEntropyGradientOp>)
      for (Value shared : {captures_.weight, captures_.bias})
        if (shared)
          types.push_back(tensorType(shared).clone(wideElement(tensorType(shared).getElementType())));
    return types;
  }

  /// Sum and count, then the gradients of hidden and of what all rows share, in the types of the op.
  SmallVector<Value> results(const Piece &piece, int64_t rows) {
    SmallVector<Value> values(ArrayRef<Expr>(piece.sums).take_front(2));
    for (Expr ofRows : piece.ofRows) {
      ArrayRef<int64_t> shape = ofRows.shape();
      Shape all = {elementCount(ofRows.type()) / shape.back(), shape.back()};
      Expr flat = reshape(ofRows, withShape(ofRows, all));
      if (all[0] != rows)
        flat = flat.make<SliceOp>(flat.value(), Shape{0, 0}, Shape{rows, shape.back()}, Shape{1, 1});
      values.push_back(reshape(flat, op_.getHidden().getType()));
    }
    for (Expr sum : ArrayRef<Expr>(piece.sums).drop_front(2))
      values.push_back(cast(sum, hidden_.elementType()));
    return values;
  }

  OpBuilder &builder_;
  Op op_;
  Expr hidden_, labels_; // [rows, features], [rows]
  Captures captures_;
};

} // namespace

SmallVector<Value> LinearCrossEntropyOp::decompose(OpBuilder &builder) {
  return Definition(builder, *this).build(/*whole=*/false);
}
SmallVector<Value> LinearCrossEntropyGradientOp::decompose(OpBuilder &builder) {
  return Definition(builder, *this).build(/*whole=*/false);
}
SmallVector<Value> LinearAccuracyOp::decompose(OpBuilder &builder) {
  return Definition(builder, *this).build(/*whole=*/false);
}

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

/// The gradients of the sum, times its cotangent. The count is constant.
GPUC_VJP_BODY(LinearCrossEntropyOp) {
  auto gradient = ct.makeOp<LinearCrossEntropyGradientOp>(
      op.getHidden(), op.getWeight(), op.getBias(), op.getLabels(), op.getClassWeight(), op.getMask(),
      op.getSmoothingAttr(), op.getIgnoreIndexAttr(), op.getChunkAttr());
  auto scaled = [&](Value unscaled) -> Value {
    // In f32 at least: a loss scale may be more than f16 holds.
    Expr x = ct.at(unscaled), wide = widen(x);
    Expr factor = cast(ct, wide.elementType());
    return cast(wide * broadcastScalar(factor, x.shape()), x.elementType());
  };
  Cotangents cotangents{scaled(gradient.getHiddenGradient()), scaled(gradient.getWeightGradient())};
  if (op.getBias())
    cotangents.push_back(scaled(gradient.getBiasGradient()));
  return cotangents;
}

LogicalResult LinearCrossEntropyGradientOp::buildVJP(OpBuilder &builder, ValueRange cotangents,
                                                     SmallVectorImpl<Value> &operandCotangents) {
  return buildDefinitionVJP(*this, builder, cotangents, operandCotangents, [&](OpBuilder &builder) {
    return Definition(builder, *this).build(/*whole=*/true);
  });
}

//===----------------------------------------------------------------------===//
// Canonicalisation
//===----------------------------------------------------------------------===//

namespace {
/// Sum and count come with the gradients for nothing: where these are computed of the same operands, in the
/// same block, they stand for the op. The gradients hang on nothing else, and so may move to its place.
struct TakeFromGradient : OpRewritePattern<LinearCrossEntropyOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(LinearCrossEntropyOp op, PatternRewriter &rewriter) const override {
    for (Operation *user : op.getHidden().getUsers()) {
      auto gradient = dyn_cast<LinearCrossEntropyGradientOp>(user);
      if (!gradient || gradient->getBlock() != op->getBlock() ||
          gradient->getOperands() != op->getOperands() ||
          gradient->getPropertiesAsAttribute() != op->getPropertiesAsAttribute())
        continue;
      if (op->isBeforeInBlock(gradient))
        rewriter.moveOpBefore(gradient, op);
      rewriter.replaceOp(op, {gradient.getSum(), gradient.getCount()});
      return success();
    }
    return failure();
  }
};
} // namespace

void LinearCrossEntropyOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<TakeFromGradient>(context);
}

} // namespace gpuc::ir
