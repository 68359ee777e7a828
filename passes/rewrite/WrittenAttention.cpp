//===- WrittenAttention.cpp - Attention that a model spells out -------------===//
//
// Read from its last product back to its first: probabilities, dropout, softmax, masks, scale. What hides
// keys is said in many ways; those are taken that mean for each row what attention's own masks mean:
//
//   -∞ in a score's place, or added to it: hidden. A row that has nothing else is NaN in the formula, and 0
//     in attention.
//   a large negative number (-1e9, the least f32) likewise, if the mask is known and leaves each row
//     something: its exponential is 0 beside any score. A row that has nothing else would be a mean.
//   any other number that is added: a mask of numbers.
//
//===----------------------------------------------------------------------===//

#include "passes/rewrite/WrittenAttention.h"

#include "dialects/gpuc/Tf32.h"

#include <cmath>

using namespace mlir;

namespace gpuc {
namespace {

/// What is no larger hides a key.
constexpr double kHides = -1e9;

/// What nobody else reads, behind its casts between floating-point types; null if somebody does.
Value onlyRead(Value value) {
  while (value.hasOneUse() && isRounded(value))
    value = value.getDefiningOp()->getOperand(0);
  return value.hasOneUse() ? value : Value();
}

template <typename Op> Op onlyReadOp(Value value) {
  value = onlyRead(value);
  return value ? value.getDefiningOp<Op>() : Op();
}

class Reader {
public:
  Reader(WrittenAttention &found, KnownNumbers &known) : found_(found), known_(known) {}

  bool read() {
    ir::MatmulOp product = found_.product;
    if (!isBatched(product) || product.getTransposeLhs())
      return false;
    Value probabilities = product.getLhs();
    if ((found_.dropout = onlyReadOp<ir::DropoutOp>(probabilities)))
      probabilities = found_.dropout.getOperand();
    auto softmax = onlyReadOp<ir::SoftmaxOp>(probabilities);
    if (!softmax || static_cast<int64_t>(softmax.getDim()) != rank() - 1 || !readMasks(softmax.getOperand()))
      return false;
    // What hides by a number alone leaves a row that another mask hides the rest of.
    const bool isOneMask = !hidesByNumber_ || !found_.mask || !found_.causal;
    return isOneMask && elementOf(found_.scores.getLhs()) == elementOf(product.getRhs());
  }

private:
  static Type elementOf(Value value) { return getElementTypeOrSelf(value); }

  /// Of matrices of one rank, 3 or 4, and static extents.
  static bool isBatched(ir::MatmulOp product) {
    int64_t rank = product.getType().getRank();
    return (rank == 3 || rank == 4) && !product.hasSharedRhs() && product.getType().hasStaticShape();
  }

  int64_t rank() const { return found_.product.getType().getRank(); }

  /// From the softmax back to where the scores have no mask yet.
  bool readMasks(Value scores) {
    scores = onlyRead(scores);
    if (!scores)
      return false;
    if (auto select = scores.getDefiningOp<ir::SelectOp>())
      return readSelect(select);
    if (auto add = scores.getDefiningOp<ir::AddOp>())
      return readSum(add.getLhs(), add.getRhs()) || readSum(add.getRhs(), add.getLhs());
    return readScale(scores);
  }

  bool readSelect(ir::SelectOp select) {
    for (bool hides : {true, false}) {
      std::optional<double> fill = KnownNumbers::splatOf(hides ? select.getOnTrue() : select.getOnFalse());
      if (fill && *fill <= kHides)
        return addFlags(select.getCondition(), hides, *fill) &&
               readMasks(hides ? select.getOnFalse() : select.getOnTrue());
    }
    return false;
  }

  /// `scores` and what is added to them; changes nothing if `scores` are none.
  bool readSum(Value scores, Value mask) {
    const WrittenAttention before = found_;
    const bool hidBefore = hidesByNumber_;
    if (addNumbers(mask) && readMasks(scores))
      return true;
    found_ = before;
    hidesByNumber_ = hidBefore;
    return false;
  }

  /// From the masks back to the first product.
  bool readScale(Value scores) {
    scores = onlyRead(scores);
    if (!scores)
      return false;
    if (auto mul = scores.getDefiningOp<ir::MulOp>()) {
      if (std::optional<double> factor = KnownNumbers::splatOf(mul.getRhs()))
        return multiply(*factor) && readScale(mul.getLhs());
      std::optional<double> factor = KnownNumbers::splatOf(mul.getLhs());
      return factor && multiply(*factor) && readScale(mul.getRhs());
    }
    if (auto div = scores.getDefiningOp<ir::DivOp>()) {
      std::optional<double> divisor = KnownNumbers::splatOf(div.getRhs());
      return divisor && multiply(1 / *divisor) && readScale(div.getLhs());
    }
    found_.scores = scores.getDefiningOp<ir::MatmulOp>();
    return found_.scores && isBatched(found_.scores) && !found_.scores.getTransposeLhs() &&
           found_.scores.getType().getRank() == rank() &&
           found_.scores->getBlock() == found_.product->getBlock();
  }

  bool multiply(double factor) {
    found_.scale *= factor;
    return std::isfinite(found_.scale);
  }

  //===--------------------------------------------------------------------===//
  // Masks
  //===--------------------------------------------------------------------===//

  /// The condition takes scores away where it holds, or where it does not.
  bool addFlags(Value condition, bool hides, double fill) {
    if (std::vector<double> flags = planeOf(condition); !flags.empty()) {
      std::vector<bool> seen;
      for (double flag : flags)
        seen.push_back((flag != 0) != hides);
      return addKnown(seen, fill) || (leavesEachRowOne(seen) && setFlags(condition, hides, fill));
    }
    return std::isinf(fill) && setFlags(condition, hides, fill);
  }

  /// Numbers that hide all that they change are flags.
  bool addNumbers(Value mask) {
    if (std::vector<double> numbers = planeOf(mask); !numbers.empty()) {
      std::vector<bool> seen;
      double fill = -INFINITY;
      for (double number : numbers) {
        seen.push_back(number == 0);
        if (number < 0)
          fill = std::max(fill, number);
      }
      bool areFlags = llvm::all_of(numbers, [](double number) { return number == 0 || number <= kHides; });
      if (areFlags && addKnown(seen, fill))
        return true;
    }
    // Of another type the numbers would have to be rounded. Where each score has one of its own, they are as
    // much to store, and their cotangent takes the scores once more.
    return elementOf(mask) == elementOf(found_.product.getRhs()) && isRepeated(mask) && setMask(mask, false);
  }

  bool isRepeated(Value mask) const {
    while (mask.getDefiningOp<ir::BroadcastOp>() || isRounded(mask))
      mask = mask.getDefiningOp()->getOperand(0);
    return ir::elementCount(mask.getType()) < ir::elementCount(found_.product.getLhs().getType());
  }

  bool setFlags(Value condition, bool hides, double fill) {
    hidesByNumber_ |= std::isfinite(fill);
    return setMask(condition, hides);
  }

  bool setMask(Value mask, bool hides) {
    if (found_.mask)
      return false;
    found_.mask = mask;
    found_.hides = hides;
    return true;
  }

  /// A mask that needs no tensor: one that hides nothing, or what comes later.
  bool addKnown(const std::vector<bool> &seen, double fill) {
    if (llvm::all_of(seen, [](bool is) { return is; }))
      return true;
    for (auto [i, is] : llvm::enumerate(seen))
      if (is != (static_cast<int64_t>(i) % keys() <= static_cast<int64_t>(i) / keys()))
        return false;
    hidesByNumber_ |= std::isfinite(fill);
    return found_.causal = true;
  }

  bool leavesEachRowOne(const std::vector<bool> &seen) const {
    for (size_t row = 0; row < seen.size(); row += keys())
      if (std::none_of(seen.begin() + row, seen.begin() + row + keys(), [](bool is) { return is; }))
        return false;
    return true;
  }

  /// What a mask says of each query and key, if it is known, and the same in each head of each row; else
  /// nothing.
  std::vector<double> planeOf(Value mask) {
    // What is repeated is the same, and rounded it hides as much; nothing is to be gained from larger
    // tensors.
    while (repeatsPlane(mask.getDefiningOp<ir::BroadcastOp>()) || isRounded(mask))
      mask = mask.getDefiningOp()->getOperand(0);
    const std::vector<double> *numbers = endsInPlane(mask) ? known_.of(mask) : nullptr;
    if (!numbers)
      return {};
    std::vector<double> plane(numbers->begin(), numbers->begin() + queries() * keys());
    for (size_t first = 0; first < numbers->size(); first += plane.size())
      if (!std::equal(plane.begin(), plane.end(), numbers->begin() + first))
        return {};
    return plane;
  }

  /// Whether queries and keys are still the last dimensions of what is repeated.
  static bool repeatsPlane(ir::BroadcastOp op) {
    if (!op || op.getDims().size() < 2)
      return false;
    const int64_t last = op.getType().getRank() - 1;
    return op.getDims().back() == last && op.getDims().drop_back().back() == last - 1;
  }

  bool endsInPlane(Value mask) const {
    ArrayRef<int64_t> extents = ir::shapeOf(mask);
    return extents.size() >= 2 && extents.take_back(2) == ArrayRef<int64_t>({queries(), keys()}) &&
           ir::elementCount(mask.getType()) > 0;
  }

  int64_t keys() const { return ir::shapeOf(found_.product.getLhs()).back(); }
  int64_t queries() const { return ir::shapeOf(found_.product.getLhs()).take_back(2).front(); }

  WrittenAttention &found_;
  KnownNumbers &known_;
  bool hidesByNumber_ = false; ///< Something hides keys by a number that is not -∞.
};

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

/// Makes what attention takes of what the model has.
class Operands {
public:
  Operands(Operation *before, Location location) : builder_(before), location_(location) {}

  /// [B, H, rows, columns], one head if there is none.
  Value heads(Value matrices) {
    SmallVector<int64_t> shape(ir::shapeOf(matrices));
    if (shape.size() == 4)
      return matrices;
    shape.insert(shape.begin() + 1, 1);
    return reshape(matrices, shape);
  }

  /// The matrices with rows for columns, by as few transposes as can be.
  Value transposed(Value matrices) {
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(ir::shapeOf(matrices).size()));
    if (auto transpose = matrices.getDefiningOp<ir::TransposeOp>()) {
      order.assign(transpose.getPermutation().begin(), transpose.getPermutation().end());
      matrices = transpose.getOperand();
    }
    std::swap(order.back(), order[order.size() - 2]);
    if (llvm::is_sorted(order))
      return matrices;
    return ir::TransposeOp::create(builder_, location_, matrices, order);
  }

  /// The mask as [B, H, T, S], with the extent 1 where it is repeated; true says what takes part.
  Value mask(Value mask, bool hides) {
    const int64_t rank = ir::shapeOf(mask).size();
    SmallVector<int64_t> dims =
        llvm::to_vector(llvm::seq<int64_t>(rank)); // of the scores, for each of the mask's
    const Type element = getElementTypeOrSelf(mask);
    for (; mask.getDefiningOp<ir::BroadcastOp>() || isRounded(mask);
         mask = mask.getDefiningOp()->getOperand(0))
      if (auto repeated = mask.getDefiningOp<ir::BroadcastOp>())
        dims = llvm::map_to_vector(repeated.getDims(), [&](int64_t dim) { return dims[dim]; });
    if (getElementTypeOrSelf(mask) != element)
      mask = ir::CastOp::create(builder_, location_, ir::tensorType(mask).clone(element), mask);
    SmallVector<int64_t> shape(4, 1);
    for (auto [dim, extent] : llvm::zip_equal(dims, ir::shapeOf(mask)))
      shape[dim > 0 ? dim + 4 - rank : 0] = extent;
    if (hides)
      mask = ir::NotOp::create(builder_, location_, mask.getType(), mask);
    return reshape(mask, shape);
  }

  Value reshape(Value value, ArrayRef<int64_t> shape) {
    auto type = ir::tensorType(value).clone(shape);
    return type == value.getType() ? value
                                   : ir::ReshapeOp::create(builder_, location_, type, value).getResult();
  }

private:
  OpBuilder builder_;
  Location location_;
};

} // namespace

std::optional<WrittenAttention> WrittenAttention::of(ir::MatmulOp product, KnownNumbers &known) {
  WrittenAttention found;
  found.product = product;
  return Reader(found, known).read() ? std::optional(found) : std::nullopt;
}

ir::AttentionOp WrittenAttention::build() const {
  ir::MatmulOp first = scores, last = product;
  OpBuilder builder(last);
  Operands operands(last, last.getLoc());
  Value query = operands.heads(first.getLhs());
  Value key = operands.heads(first.getTransposeRhs() ? first.getRhs() : operands.transposed(first.getRhs()));
  Value value = operands.heads(last.getTransposeRhs() ? operands.transposed(last.getRhs()) : last.getRhs());
  Value extra = mask ? operands.mask(mask, hides) : Value();
  ir::DropoutOp drop = dropout;
  auto attention = ir::AttentionOp::create(
      builder, last.getLoc(), query, key, value, extra, builder.getF64FloatAttr(scale),
      causal ? builder.getUnitAttr() : UnitAttr(), drop ? drop.getPAttr() : builder.getF64FloatAttr(0),
      drop ? drop.getIdAttr() : builder.getI64IntegerAttr(0));
  // Each part of the batch draws numbers of its own.
  if (Attribute partition = drop ? drop->getAttr(ir::kPartitionAttr) : Attribute())
    attention->setAttr(ir::kPartitionAttr, partition);
  ir::inheritTf32(first, attention);
  ir::inheritTf32(last, attention);
  return attention;
}

void WrittenAttention::replaceBy(ir::AttentionOp attention) const {
  ir::MatmulOp last = product;
  Operands operands(last, last.getLoc());
  last.getResult().replaceAllUsesWith(operands.reshape(attention.getResult(), last.getType().getShape()));
}

} // namespace gpuc
