//===- AttentionOps.cpp - Types, costs and verifiers of attention -----------===//

#include "dialects/gpuc/ExprHelpers.h"
#include "dialects/gpuc/NumberText.h"

#include <cmath>

using namespace mlir;

namespace gpuc::ir {

//===----------------------------------------------------------------------===//
// What attention and its gradient share
//===----------------------------------------------------------------------===//

template <typename Op> static double scaleOf(Op op) {
  if (std::optional<APFloat> scale = op.getScale())
    return scale->convertToDouble();
  return 1 / std::sqrt(static_cast<double>(shapeOf(op.getQuery()).back()));
}
double AttentionOp::getScaleOrDefault() { return scaleOf(*this); }
double AttentionGradientOp::getScaleOrDefault() { return scaleOf(*this); }

/// The label of constraint `number`; a gradient has one for all that attention asks for.
template <typename Op> static std::string label(int number) {
  return labelOf(Op::getOperationName(), std::is_same_v<Op, AttentionOp> ? number : 1);
}

/// The types of result and log_sum_exp, or a message.
template <typename Op>
static FailureOr<Types> inferAttention(std::optional<Location> location, Value query, Value key,
                                       Value value) {
  auto fail = [&](int constraint, const char *text) {
    return emitTypeError<Op>(location, "query ", query.getType(), ", key ", key.getType(), " and value ",
                             value.getType(), " ", text, " [", label<Op>(constraint), "]");
  };
  auto q = tensorType(query), k = tensorType(key), v = tensorType(value);
  if (q.getRank() != 4 || k.getRank() != 4 || v.getRank() != 4 || q.getElementType() != k.getElementType() ||
      q.getElementType() != v.getElementType())
    return fail(1, "must have rank 4 and one element type");
  ArrayRef<int64_t> queries = q.getShape(), keys = k.getShape(), values = v.getShape();
  if (queries[0] != keys[0] || queries[3] != keys[3] || keys.take_front(3) != values.take_front(3) ||
      keys[1] < 1 || queries[1] % keys[1] != 0)
    return fail(2, "do not fit: [B, H, T, D], [B, G, S, D] and [B, G, S, E], H a multiple of G");
  if (queries[3] == 0 || keys[2] == 0)
    return fail(5, "leave nothing to attend to: D and S are at least 1");
  return Types{withShape(query, {queries[0], queries[1], queries[2], values[3]}),
               wideType(query, queries.take_front(3))};
}

/// Mask, scale and dropout.
template <typename Op> static LogicalResult checkScores(Op op) {
  if (Value mask = op.getMask()) {
    ArrayRef<int64_t> queries = shapeOf(op.getQuery());
    int64_t scores[] = {queries[0], queries[1], queries[2], shapeOf(op.getKey())[2]};
    Type element = tensorType(mask).getElementType();
    if (!isBroadcastable(shapeOf(mask), scores) ||
        !(element.isInteger(1) || element == tensorType(op.getQuery()).getElementType()))
      return op.emitOpError() << "mask " << mask.getType() << " must be i1 or of the element type of query "
                              << op.getQuery().getType() << ", and broadcast to the scores "
                              << withShape(op.getQuery(), scores) << " [" << label<Op>(3) << "]";
  }
  if (std::optional<APFloat> scale = op.getScale(); scale && !scale->isFinite())
    return op.emitOpError() << "scale must be finite, but is " << numberText(scale->convertToDouble()) << " ["
                            << label<Op>(6) << "]";
  double p = op.getDropout().convertToDouble();
  auto id = static_cast<int64_t>(op.getId());
  if (p >= 0 && p <= 1 && id >= 0 && id < randomDrawStride)
    return success();
  return op.emitOpError() << "dropout must lie in [0, 1] and id in [0, " << randomDrawStride << "), but are "
                          << numberText(p) << " and " << id << " [" << label<Op>(4) << "]";
}

/// Multiply-adds of `products` matrices [T, S] with an inner extent each, and `pointwise` operations a score.
template <typename Op> static int64_t countFlops(Op op, int64_t byKey, int64_t byValue, int64_t pointwise) {
  ArrayRef<int64_t> keys = shapeOf(op.getKey()), queries = shapeOf(op.getQuery());
  auto scores = RankedTensorType::get({queries[0], queries[1], queries[2], keys[2]},
                                      tensorType(op.getQuery()).getElementType());
  return elementCount(scores) * (2 * (byKey * keys[3] + byValue * shapeOf(op.getValue())[3]) + pointwise);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

FailureOr<Types> AttentionOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  return inferAttention<AttentionOp>(location, adaptor.getQuery(), adaptor.getKey(), adaptor.getValue());
}

LogicalResult AttentionOp::verify() { return checkScores(*this); }

/// Scores and result; scale, mask, maximum, difference, exponential, sum and quotient.
int64_t AttentionOp::getFlops() { return countFlops(*this, 1, 1, 7); }

//===----------------------------------------------------------------------===//
// Its gradient
//===----------------------------------------------------------------------===//

LogicalResult AttentionGradientOp::verify() {
  auto types = inferAttention<AttentionGradientOp>(getLoc(), getQuery(), getKey(), getValue());
  if (failed(types) || failed(checkScores(*this)) ||
      failed(checkType(*this, "attention_gradient_C2", "cotangent", getCotangent().getType(), (*types)[0])) ||
      failed(checkType(*this, "attention_gradient_C2", "result", getResult().getType(), (*types)[0])) ||
      failed(checkType(*this, "attention_gradient_C2", "log_sum_exp", getLogSumExp().getType(), (*types)[1])))
    return failure();
  SmallVector<Type> expected{getQuery().getType(), getKey().getType(), getValue().getType()};
  if (Value mask = getMask(); mask && isa<FloatType>(tensorType(mask).getElementType()))
    expected.push_back(mask.getType());
  if (getResultTypes() == TypeRange(expected))
    return success();
  return emitOpError() << "must return (" << expected << "), but returns (" << getResultTypes()
                       << ") [attention_gradient_C3]";
}

/// Scores, dquery and dkey by the key's extent, dP and dvalue by the value's. What nobody reads is not
/// computed.
int64_t AttentionGradientOp::getFlops() {
  int64_t byKey = 1 + !getQueryCotangent().use_empty() + !getKeyCotangent().use_empty();
  return countFlops(*this, byKey, 1 + !getValueCotangent().use_empty(), 7);
}

} // namespace gpuc::ir
