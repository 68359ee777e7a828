//===- Decompose.cpp - Composite ops by their definitions --------------------===//
//
// Contract: every op with CompositeOpInterface that the target has no kernel for (and that the option `keep`
// does not name) is replaced by its definition, and so are the composites in that definition, until none is
// left. What comes of an op carries its name as a tag in the location, fused<"softmax">["fc2"], by which
// kernels are named.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/base/AttentionViews.h"
#include "passes/base/CompositeOps.h"
#include "passes/base/Target.h"

#include "llvm/ADT/StringSet.h"

namespace gpuc {
#define GEN_PASS_DEF_DECOMPOSEPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

class DecomposePass : public impl::DecomposePassBase<DecomposePass> {
  using DecomposePassBase::DecomposePassBase;

  void runOnOperation() override {
    llvm::StringSet<> kept;
    for (const std::string &name : keep) {
      std::string full = StringRef(name).starts_with("gpuc.") ? name : "gpuc." + name;
      if (failed(checkComposite(full)))
        return signalPassFailure();
      kept.insert(full);
    }

    FailureOr<Target> parsed = target.empty() ? Target() : Target::parse(target, getOperation());
    if (failed(parsed))
      return signalPassFailure();
    const bool isCuda = !target.empty() && parsed->isCuda(), isHost = !target.empty() && !isCuda;
    if (isHost)
      widenAttention();
    auto isDue = [&](ir::CompositeOpInterface op) {
      return !kept.contains(op->getName().getStringRef()) && !(isHost && hasHostAttention(op)) &&
             !(isCuda && hasCudaAttention(op));
    };
    if (failed(decomposeWhere(getOperation(), isDue)))
      signalPassFailure();
  }

  /// The host's attention computes 16 bits as f32, between casts.
  void widenAttention() {
    SmallVector<Operation *> halves;
    getOperation().walk([&](Operation *op) {
      if (isAttention(op) && isHalf(op->getOperand(0)))
        halves.push_back(op);
    });
    for (Operation *op : halves)
      widen(op);
  }

  static bool isHalf(Value value) {
    Type element = getElementTypeOrSelf(value.getType());
    return element.isF16() || element.isBF16();
  }

  static Value castTo(OpBuilder &builder, Value value, Type element) {
    auto type = cast<RankedTensorType>(value.getType());
    return ir::CastOp::create(builder, value.getLoc(), type.clone(element), value);
  }

  /// Puts the op on f32 in its place, if the host has a kernel for that.
  static void widen(Operation *op) {
    OpBuilder builder(op);
    Operation *wide = builder.clone(*op);
    for (OpOperand &operand : wide->getOpOperands())
      if (isHalf(operand.get())) {
        builder.setInsertionPoint(wide);
        operand.set(castTo(builder, operand.get(), builder.getF32Type()));
      }
    for (Value result : wide->getResults())
      if (isHalf(result))
        result.setType(cast<RankedTensorType>(result.getType()).clone(builder.getF32Type()));
    if (!hasHostAttention(wide)) {
      wide->erase(); // and the casts with the next canonicalization
      return;
    }
    builder.setInsertionPointAfter(wide);
    for (auto [before, after] : llvm::zip_equal(op->getResults(), wide->getResults()))
      before.replaceAllUsesWith(
          isHalf(before) ? castTo(builder, after, getElementTypeOrSelf(before.getType())) : after);
    op->erase();
  }

  LogicalResult checkComposite(StringRef name) {
    auto known = RegisteredOperationName::lookup(name, &getContext());
    if (known && known->hasInterface<ir::CompositeOpInterface>())
      return success();
    return getOperation().emitError("keep: '") << name << "' is not a composite op of the gpuc dialect";
  }
};

} // namespace
} // namespace gpuc
