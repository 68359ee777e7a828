//===- FuseLinearLosses.cpp - A linear layer and the loss of its logits ------===//
//
// Contract: a log-softmax and its negative log-likelihood are a cross entropy (LogitsOfLosses.cpp). A
// cross entropy, or an accuracy, of hidden · weightᵀ (+ bias) that nothing else reads becomes one op,
// which computes the logits a chunk of rows at a time; so that what takes most of a language model's
// memory is never there. Logits that fit into one chunk stay as they are. Of such ops, the model's own
// among them, those that leave the size of chunks open get the target's. Sums of gradients change their
// order, nothing else.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/Tf32.h"
#include "dialects/gpuc/definitions/LinearLosses.h"
#include "passes/Passes.h"
#include "passes/base/Inline.h"
#include "passes/base/Target.h"
#include "passes/rewrite/LogitsOfLosses.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace gpuc {
#define GEN_PASS_DEF_FUSELINEARLOSSESPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

/// A reshape of rows alone: the last dimension stays.
Value throughRowReshape(Value logits) {
  auto reshape = logits.getDefiningOp<ir::ReshapeOp>();
  if (!reshape || !reshape->hasOneUse())
    return logits;
  RankedTensorType from = ir::tensorType(reshape.getOperand()), to = reshape.getType();
  bool keepsClasses =
      from.getRank() >= 2 && to.getRank() >= 2 && from.getShape().back() == to.getShape().back();
  return keepsClasses ? reshape.getOperand() : logits;
}

/// The bias that is added to each row; null if `addend` is something else.
Value biasOf(Value addend) {
  auto repeated = addend.getDefiningOp<ir::BroadcastOp>();
  if (!repeated || ir::tensorType(repeated.getOperand()).getRank() != 1 ||
      repeated.getDims().front() != repeated.getType().getRank() - 1 ||
      ir::tensorType(repeated.getOperand()).getDimSize(0) != repeated.getType().getShape().back())
    return {};
  return repeated.getOperand();
}

/// The layer that makes logits, if nothing else reads them.
struct LinearLayer {
  ir::MatmulOp matmul; // null: there is no such layer
  Value bias;

  static LinearLayer of(Value logits) {
    logits = throughRowReshape(logits);
    Value bias;
    if (auto add = logits.getDefiningOp<ir::AddOp>(); add && add->hasOneUse()) {
      for (auto [product, addend] : {std::pair(add.getLhs(), add.getRhs()), {add.getRhs(), add.getLhs()}})
        if (Value found = bias ? Value() : biasOf(addend)) {
          bias = found;
          logits = throughRowReshape(product);
        }
    }
    auto matmul = logits.getDefiningOp<ir::MatmulOp>();
    bool fits = matmul && matmul->hasOneUse() && !matmul.getTransposeLhs() &&
                ir::tensorType(matmul.getRhs()).getRank() == 2 && matmul.getType().hasStaticShape();
    return fits ? LinearLayer{matmul, bias} : LinearLayer{};
  }
};

class Fusion {
public:
  Fusion(Operation *loss, Value logits, LinearLayer layer)
      : loss_(loss), logits_(ir::tensorType(logits)), layer_(layer), builder_(loss) {}

  bool pays() const {
    int64_t classes = logits_.getShape().back();
    int64_t rows = classes == 0 ? 0 : ir::elementCount(logits_) / classes;
    return ir::cutRows(rows, classes, logits_.getElementType()).count > 1;
  }

  void fuse(ir::CrossEntropyOp loss) {
    replace(ir::LinearCrossEntropyOp::create(
        builder_, location(), hidden(), weight(), layer_.bias, loss.getLabels(), loss.getWeight(),
        loss.getMask(), loss.getSmoothingAttr(), loss.getIgnoreIndexAttr(), /*chunk=*/IntegerAttr()));
  }

  void fuse(ir::AccuracyOp accuracy) {
    replace(ir::LinearAccuracyOp::create(builder_, location(), hidden(), weight(), layer_.bias,
                                         accuracy.getLabels(), accuracy.getMask(),
                                         accuracy.getIgnoreIndexAttr(), /*chunk=*/IntegerAttr()));
  }

private:
  /// The layer's: kernels are named after it.
  Location location() { return layer_.matmul.getLoc(); }

  /// The rows as the loss sees them.
  Value hidden() {
    Value rows = layer_.matmul.getLhs();
    SmallVector<int64_t> shape(logits_.getShape());
    shape.back() = ir::tensorType(rows).getShape().back();
    auto type = ir::tensorType(rows).clone(shape);
    return type == rows.getType() ? rows
                                  : ir::ReshapeOp::create(builder_, location(), type, rows).getResult();
  }

  /// As [classes, features].
  Value weight() {
    Value stored = layer_.matmul.getRhs();
    if (layer_.matmul.getTransposeRhs())
      return stored;
    return ir::TransposeOp::create(builder_, location(), stored, ArrayRef<int64_t>{1, 0});
  }

  void replace(Operation *fused) {
    ir::inheritTf32(layer_.matmul, fused);
    loss_->replaceAllUsesWith(fused);
    loss_->erase();
  }

  Operation *loss_;
  RankedTensorType logits_;
  LinearLayer layer_;
  OpBuilder builder_;
};

class FuseLinearLossesPass : public impl::FuseLinearLossesPassBase<FuseLinearLossesPass> {
public:
  using FuseLinearLossesPassBase::FuseLinearLossesPassBase;

private:
  void runOnOperation() override {
    FailureOr<Target> parsed = Target::parse(target, getOperation());
    if (failed(parsed))
      return signalPassFailure();
    leastRows_ = describe(*parsed).leastLossRows;
    for (auto recipe : getOperation().getOps<ir::RecipeOp>())
      for (StringRef key : {"loss", "accuracy"})
        if (auto symbol = recipe->getAttrOfType<FlatSymbolRefAttr>(key))
          if (auto function = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(recipe, symbol);
              function && !function.isExternal() && failed(inlineCalls(function)))
            return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      eraseDead(function);
      takeLogits(function);
      fuseAll<ir::CrossEntropyOp>(function);
      fuseAll<ir::AccuracyOp>(function);
      chooseChunks<ir::LinearCrossEntropyOp>(function);
      chooseChunks<ir::LinearAccuracyOp>(function);
      eraseDead(function); // the logits
    }
  }

  /// What is inlined computes more than the loss needs, perhaps from the logits; those, once they are not
  /// needed.
  static void eraseDead(func::FuncOp function) {
    if (function.isExternal())
      return;
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  /// Rows of a chunk where the op chooses.
  template <typename Op> static int64_t chunkRowsOf(Op loss) {
    return ir::cutRows(ir::elementCount(loss.getLabels().getType()),
                       ir::tensorType(loss.getWeight()).getDimSize(0),
                       ir::tensorType(loss.getHidden()).getElementType())
        .rows;
  }

  /// Of those that the model has itself, too.
  template <typename Op> void chooseChunks(func::FuncOp function) {
    function.walk([&](Op loss) {
      if (!loss.getChunk() && ir::tensorType(loss.getLabels()).hasStaticShape() &&
          chunkRowsOf(loss) < leastRows_)
        loss.setChunk(leastRows_);
    });
  }

  template <typename Op> void fuseAll(func::FuncOp function) {
    SmallVector<Op> losses;
    function.walk([&](Op loss) { losses.push_back(loss); });
    for (Op loss : losses) {
      LinearLayer layer = LinearLayer::of(loss.getLogits());
      if (!layer.matmul || layer.matmul->getBlock() != loss->getBlock())
        continue;
      Fusion fusion(loss, loss.getLogits(), layer);
      if (fusion.pays())
        fusion.fuse(loss);
    }
  }

  int64_t leastRows_ = 1;
};

} // namespace
} // namespace gpuc
