//===- Epilogues.cpp - What follows a product, element by element -----------===//
//
// Contract: a product to which a bias is added, or of which relu is taken, or one after the other, stands
// with these ops in the region of one gpuc.fused, if nobody else reads what is between them; and so does a
// product that is the cotangent of a relu, with relu's gradient, which a mask makes of it. The library that
// multiplies does it all. On the host every element is rounded as the ops would do one by one; cuBLASLt and
// cuDNN add a bias to the f32 sum and round that once to 16 bits.
//
// A gradient's norm wants the sum of its squares: on the host the product leaves that of each of its tiles
// (of a filter's gradient in f32, where it has tiles: runtime/workspace/conv_tiles.h),
// so that nobody reads a gradient for it once more, or at all (plan-update-in-products).
//
// An addition of a whole tensor (a residual, another product) is not taken in: a library begins the sum of
// products with it, which gives other bits.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/Epilogues.h"
#include "passes/base/ConvShapes.h"
#include "passes/base/MatmulShapes.h"
#include "passes/base/Target.h"

#include "passes/Passes.h"
#include "passes/codegen/Codegen.h"
#include "passes/kernels/FuseSteps.h"

#include "runtime/workspace/conv_tiles.h"
#include "runtime/workspace/matmul_plan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gpuc {
#define GEN_PASS_DEF_EPILOGUESPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

/// Part of a vector, without gaps.
bool isRange(Operation *op) {
  auto slice = dyn_cast<ir::SliceOp>(op);
  return slice && slice.getType().getRank() == 1 && slice.getStrides().front() == 1;
}

/// What `value` repeats along all dimensions but the bias's; null if it is no bias of the product.
ir::BroadcastOp biasOf(Operation *product, Value value) {
  auto broadcast = value.getDefiningOp<ir::BroadcastOp>();
  const int64_t dim = *cast<ir::ProductOpInterface>(product).getBiasDimension();
  bool isBias = broadcast && broadcast.getDims() == ArrayRef(dim) &&
                ir::shapeOf(broadcast.getOperand())[0] == ir::shapeOf(value)[dim] &&
                !broadcast.getOperand().getDefiningOp<ir::ConstantOp>();
  return isBias ? broadcast : ir::BroadcastOp();
}

bool isZero(Value value) {
  auto constant = value.getDefiningOp<ir::ConstantOp>();
  auto number = constant ? dyn_cast_or_null<FloatAttr>(constant.getSplat()) : FloatAttr();
  return number && number.getValue().isPosZero();
}

/// Whether the value is in memory, whatever kernels there will be.
bool isStored(Value value) {
  Operation *op = value.getDefiningOp();
  return !op || !isKernelOp(op) || !llvm::all_of(value.getUsers(), isKernelOp);
}

/// The comparison by which the select is relu's gradient of `cotangent`, y ≤ 0 ? 0 : cotangent; or null.
ir::CompareOp maskOf(ir::SelectOp select, Value cotangent) {
  auto compare = select.getCondition().getDefiningOp<ir::CompareOp>();
  bool isMask = compare && compare.getPredicate() == ir::Comparison::le && isZero(compare.getRhs()) &&
                compare.getLhs().getType() == cotangent.getType() && isStored(compare.getLhs()) &&
                isZero(select.getOnTrue()) && select.getOnFalse() == cotangent;
  return isMask ? compare : ir::CompareOp();
}

/// The squares of all of the value's elements, added up for somebody; null if nobody wants that.
ir::SumOp sumOfSquares(Value value) {
  for (Operation *user : value.getUsers()) {
    auto square = dyn_cast<ir::MulOp>(user);
    if (!square || square.getLhs() != square.getRhs() || !square->hasOneUse() ||
        square->getBlock() != value.getDefiningOp()->getBlock())
      continue;
    auto sum = dyn_cast<ir::SumOp>(*square->user_begin());
    if (sum && sum->getBlock() == square->getBlock() && ir::elementCount(sum.getType()) == 1 &&
        sum.getType().getRank() == 0)
      return sum;
  }
  return {};
}

/// What follows one product, as far as its epilogue goes.
class Chain {
public:
  Chain(Operation *product, plan::TargetKind target) : ops_{product}, target_(target) {
    while (Operation *next = nextReader())
      if (!take(next))
        break;
  }

  bool isWorthIt() const {
    Value result = ops_.back()->getResult(0);
    // The kernel of the only reader does the rest as well.
    if (ops_.size() == 1 || (result.hasOneUse() && (*result.user_begin())->hasTrait<ir::Pointwise>()))
      return false;
    // A bias that is cast is a kernel of its own. It must take the place of one.
    return !castBias_ || relu_ || llvm::none_of(ops_.back()->getUsers(), isKernelOp);
  }

  void build(KernelNames &names) {
    if (castBias_)
      castAhead();
    Value result = ops_.back()->getResult(0);
    std::string name = names.nameFor(ops_);
    OpBuilder builder(ops_.back());
    FusedKernel region(ops_, result, [&](Operation *op) {
      return op == bias_ || op == mask_ ||
             (!isMultiplied(op) && (isRange(op) || (mask_ && isa<ir::ConstantOp>(op))));
    });
    region.build(builder, name);
    for (Operation *op : llvm::reverse(ops_))
      op->erase();
    if (bias_ && bias_->use_empty()) // the region has its own
      bias_->erase();
  }

private:
  Operation *product() const { return ops_.front(); }

  /// Whether the product reads what `op` gives: it reads memory, so that this stays outside.
  bool isMultiplied(Operation *op) const {
    return llvm::is_contained(product()->getOperands(), op->getResult(0));
  }

  /// The only reader of what there is, if it stands in the same block.
  Operation *nextReader() const {
    Value value = ops_.back()->getResult(0);
    if (!value.hasOneUse())
      return nullptr;
    Operation *reader = *value.user_begin();
    return reader->getBlock() == product()->getBlock() ? reader : nullptr;
  }

  bool take(Operation *op) {
    if (relu_ || mask_)
      return false;
    relu_ = isa<ir::ReluOp>(op) && takesRelu(target_, product(), bias_ != nullptr);
    if (!relu_ && !takeAddition(op) && !takeMask(op))
      return false;
    ops_.push_back(op);
    return true;
  }

  bool takeMask(Operation *op) {
    auto select = dyn_cast<ir::SelectOp>(op);
    if (select && ops_.size() == 1 && takesMask(target_, product()))
      mask_ = maskOf(select, product()->getResult(0));
    return mask_ != nullptr;
  }

  bool takeAddition(Operation *add) {
    if (!isa<ir::AddOp>(add) || bias_ || !takesBias(target_, product()))
      return false;
    Value value = ops_.back()->getResult(0);
    Value other = add->getOperand(add->getOperand(0) == value);
    auto cast = other.getDefiningOp<ir::CastOp>();
    bias_ = biasOf(product(), cast ? cast.getOperand() : other);
    castBias_ = bias_ ? cast : ir::CastOp();
    return bias_ != nullptr;
  }

  /// Casts the bias itself, instead of each of its repetitions.
  void castAhead() {
    OpBuilder builder(castBias_);
    Value bias = bias_.getOperand();
    Type element = getElementTypeOrSelf(castBias_.getType());
    Value narrow = ir::CastOp::create(builder, castBias_.getLoc(),
                                      cast<RankedTensorType>(bias.getType()).clone(element), bias);
    bias_ = ir::BroadcastOp::create(builder, bias_.getLoc(), cast<RankedTensorType>(castBias_.getType()),
                                    narrow, bias_.getDims());
    castBias_.replaceAllUsesWith(bias_.getResult());
  }

  SmallVector<Operation *, 4> ops_;
  plan::TargetKind target_;
  ir::BroadcastOp bias_;
  ir::CastOp castBias_; ///< Between the bias and its addition.
  ir::CompareOp mask_;
  bool relu_ = false;
};

class EpiloguesPass : public impl::EpiloguesPassBase<EpiloguesPass> {
  using EpiloguesPassBase::EpiloguesPassBase;

  void runOnOperation() override {
    FailureOr<Target> parsed = Target::parse(target, getOperation());
    if (failed(parsed))
      return signalPassFailure();
    kind_ = parsed->kind;
    KernelNames names;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        fold(function.getBody().front(), names);
  }

  /// The products of a block, and those of the loops in it; not those that have their epilogues already.
  void fold(Block &block, KernelNames &names) {
    SmallVector<Operation *> products;
    for (Operation &op : block)
      if (takesEpilogue(&op) && !contractsOneElement(&op))
        products.push_back(&op);
    for (Operation *product : products)
      if (Chain chain(product, kind_); chain.isWorthIt())
        chain.build(names);
    SmallVector<Operation *> gradients; // whose squares may stand right behind, and go
    for (Operation &op : block)
      if (takesSquares(kind_, &op) && !contractsOneElement(&op))
        gradients.push_back(&op);
    for (Operation *gradient : gradients)
      if (ir::SumOp sum = sumOfSquares(gradient->getResult(0)))
        addSquares(gradient, sum, names);
    for (auto scan : block.getOps<ir::ScanOp>())
      fold(scan.getBlock(), names);
  }

  /// What is wanted of the product comes with it, however much later that is.
  static void addSquares(Operation *product, ir::SumOp sum, KernelNames &names) {
    Operation *square = sum.getOperand().getDefiningOp(), *ops[] = {product, square, sum};
    FusedKernel region(ops, {product->getResult(0), sum.getResult()}, [](Operation *) { return false; });
    OpBuilder builder(product);
    region.build(builder, names.nameFor(ops));
    for (Operation *op : llvm::reverse(ops))
      op->erase();
  }

  bool takesEpilogue(Operation *op) const {
    return takesBias(kind_, op) || takesRelu(kind_, op, /*behindBias=*/false) || takesMask(kind_, op);
  }

  plan::TargetKind kind_ = plan::TargetKind::host;
};

} // namespace

std::optional<Epilogue> epilogueOf(ir::FusedOp fused) {
  Epilogue epilogue;
  for (Operation &op : fused.getBody().front().without_terminator()) {
    if (isa<ir::ProductOpInterface>(op))
      epilogue.product = &op;
    else if (isa<ir::ReluOp>(op))
      epilogue.relu = true;
    else if (auto broadcast = dyn_cast<ir::BroadcastOp>(op))
      epilogue.bias = broadcast.getOperand();
    else if (auto compare = dyn_cast<ir::CompareOp>(op))
      epilogue.mask = compare.getLhs();
    else if (isa<ir::SumOp>(op))
      epilogue.squares = true;
  }
  return epilogue.product ? std::optional(epilogue) : std::nullopt;
}

/// Whether a layer's bias may follow the op.
static bool isLayer(Operation *op) {
  auto product = dyn_cast<ir::ProductOpInterface>(op);
  return product && product.getBiasDimension();
}

bool takesBias(plan::TargetKind target, Operation *product) {
  return isLayer(product) &&
         (target == plan::TargetKind::host || !getElementTypeOrSelf(product->getResult(0)).isF64());
}

// cuBLASLt and cuDNN have none of this for f64, and cuDNN no engine with relu right behind the product.
bool takesRelu(plan::TargetKind target, Operation *product, bool behindBias) {
  if (target == plan::TargetKind::host || !isLayer(product))
    return isLayer(product);
  return isa<ir::MatmulOp>(product) ? !getElementTypeOrSelf(product->getResult(0)).isF64() : behindBias;
}

// cuBLASLt's gradient of relu reads bits that its relu has written, which would be kept beside relu's result.
bool takesMask(plan::TargetKind target, Operation *op) {
  auto product = dyn_cast<ir::ProductOpInterface>(op);
  return target == plan::TargetKind::host && product && product.mayBeInputCotangent();
}

/// Whether the host makes whole sums of it tile by tile.
static bool comesInTiles(Operation *op) {
  if (auto matmul = dyn_cast<ir::MatmulOp>(op))
    return canSumSquares(matmulShapeOf(matmul));
  if (!isa<ir::Conv2dFilterGradientOp>(op))
    return false;
  const ConvShape shape = convShapeOf(op);
  const std::optional<MatmulShape> matmul = productOf(shape);
  return matmul ? canSumSquares(*matmul) : convGradientTiles(shape).has_value();
}

bool takesSquares(plan::TargetKind target, Operation *op) {
  return target == plan::TargetKind::host && comesInTiles(op) &&
         ir::sizeInBytes(op->getResult(0).getType()) >= kLeastGradientBytes;
}

bool mayUpdateInPlace(ir::FusedOp fused, unsigned argument, unsigned result) {
  return !epilogueOf(fused) && canUpdateInPlace(fused.getBody().front(), argument, result);
}

} // namespace gpuc
