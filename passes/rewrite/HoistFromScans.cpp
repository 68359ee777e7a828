//===- HoistFromScans.cpp - What a loop over time need not do in each step ---===//
//
// Contract: the results stay the same up to the order of sums. A small product in each iteration becomes a
// large one before or behind the loop, where nothing that is carried hangs on it:
//
//   1. An op on captures alone is computed once, before the loop.
//   2. A product of an input's slice and a capture, x_t · W, is one of the stack, before the loop.
//   3. An output that is a product with a capture, y_t = v_t · W, is one of a stack of the v_t, behind it.
//   4. A sum that is carried only to be added to, s ← s + a_tᵀ · b_t (a weight's gradient) or
//      s ← s + Σ u_t (a bias's), is one product, or sum, over stacks, behind the loop.
//
// What a canonicalisation can do then (drop a carry that stays what it was, an output that nobody reads) is
// left to it; the pass a second time finds nothing. Stacks take memory: most of them are there already, as
// what the backward pass reads. Of a scan that is `chunked`, to have no stacks, only 1 is done.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/ScanParts.h"
#include "dialects/gpuc/Tf32.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

namespace gpuc {
#define GEN_PASS_DEF_HOISTFROMSCANSPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

/// Ops that cost nothing within a kernel: they are moved only with what they serve.
bool isFree(Operation *op) {
  return isa<ir::ConstantOp, ir::IotaOp, ir::BroadcastOp, ir::ReshapeOp, ir::TransposeOp, ir::SliceOp,
             ir::ReverseOp>(op);
}

/// Ops that cost nothing, but where a loop reads what they make: no kernel is there to take them in.
bool isFreeHere(Operation *op) {
  return isFree(op) && llvm::none_of(op->getUsers(), [&](Operation *user) {
           return isa<ir::TransposeOp>(op) && isa<ir::ScanOp>(user);
         });
}

/// A product of two matrices of known extents.
bool isPlainMatmul(ir::MatmulOp matmul) {
  return ir::tensorType(matmul.getLhs()).getRank() == 2 && ir::tensorType(matmul.getRhs()).getRank() == 2 &&
         ir::tensorType(matmul.getLhs()).hasStaticShape() && ir::tensorType(matmul.getRhs()).hasStaticShape();
}

class Hoisting {
public:
  Hoisting(ir::ScanOp scan, IRRewriter &rewriter) : parts_(scan), rewriter_(rewriter) {
    for (const ir::ScanParts::Argument &capture : parts_.captures)
      outside_.map(capture.inner, capture.outer);
  }

  void run() {
    hoistInvariants();
    if (!parts_.scan.getChunked()) {
      hoistInputProducts();
      findOutputProducts();
      findSums();
    }
    if (!changed_)
      return;
    ir::ScanOp scan = parts_.rebuild(rewriter_);
    rewriter_.setInsertionPointAfter(scan);
    for (const OutputProduct &product : outputProducts_)
      buildOutputProduct(scan, product);
    for (size_t carry = 0; carry < parts_.carries.size(); ++carry)
      buildSums(scan, carry);
    eraseUnread(scan);
  }

private:
  /// What has left the loop, which would leave it once more if the pass came again.
  void eraseUnread(ir::ScanOp scan) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(scan.getBlock())))
      if (isOpTriviallyDead(&op))
        rewriter_.eraseOp(&op);
  }

  SmallVector<Operation *> ops() {
    return llvm::map_to_vector(parts_.block().without_terminator(), [](Operation &op) { return &op; });
  }

  bool isInvariant(Value value) { return outside_.contains(value); }

  //===--------------------------------------------------------------------===//
  // Before the loop
  //===--------------------------------------------------------------------===//

  /// Clones what depends on captures alone to the front of the loop, free ops when something needs them.
  void hoistInvariants() {
    SetVector<Value> invariant;
    for (const ir::ScanParts::Argument &capture : parts_.captures)
      invariant.insert(capture.inner);
    for (Operation *op : ops()) {
      if (!llvm::all_of(op->getOperands(), [&](Value value) { return invariant.contains(value); }))
        continue;
      invariant.insert_range(op->getResults());
      if (isFreeHere(op))
        continue;
      cloneOutside(op);
      for (Value result : op->getResults())
        invariant.insert(replaceByCapture(result, outside_.lookup(result)));
    }
  }

  void cloneOutside(Operation *op) {
    for (Value operand : op->getOperands())
      if (!outside_.contains(operand))
        cloneOutside(operand.getDefiningOp());
    rewriter_.setInsertionPoint(parts_.scan);
    rewriter_.clone(*op, outside_);
  }

  /// What the value is in the region from then on.
  Value replaceByCapture(Value value, Value outer) {
    Value inner = parts_.addCapture(outer);
    outside_.map(inner, outer);
    parts_.replace(rewriter_, value, inner);
    changed_ = true;
    return inner;
  }

  void hoistInputProducts() {
    for (Operation *op : ops()) {
      auto matmul = dyn_cast<ir::MatmulOp>(op);
      if (!matmul || !isPlainMatmul(matmul) || matmul.getTransposeLhs() || !isInvariant(matmul.getRhs()))
        continue;
      Value stack = inputOf(matmul.getLhs());
      if (!stack)
        continue;
      rewriter_.setInsertionPoint(parts_.scan);
      Value product = productOfStack(matmul, stack, outside_.lookup(matmul.getRhs()));
      parts_.replace(rewriter_, matmul.getResult(), parts_.addInput(product));
      changed_ = true;
    }
  }

  /// The input whose slice the value is; null if it is none.
  Value inputOf(Value slice) {
    for (const ir::ScanParts::Argument &input : parts_.inputs)
      if (input.inner == slice)
        return input.outer;
    return {};
  }

  /// [T, B, K] as [T · B, K].
  Value asRows(Location location, Value stack) {
    RankedTensorType type = ir::tensorType(stack);
    auto rows = type.clone({type.getDimSize(0) * type.getDimSize(1), type.getDimSize(2)});
    return ir::ReshapeOp::create(rewriter_, location, rows, stack);
  }

  /// stack · W of a product slice · W, as a stack.
  Value productOfStack(ir::MatmulOp matmul, Value stack, Value weight) {
    auto type = ir::ScanOp::stackType(matmul.getType(), parts_.trips);
    auto rows = ir::MatmulOp::create(rewriter_, matmul.getLoc(), asRows(matmul.getLoc(), stack), weight,
                                     /*transpose_lhs=*/false, matmul.getTransposeRhs());
    ir::inheritTf32(matmul, rows);
    return ir::ReshapeOp::create(rewriter_, matmul.getLoc(), type, rows);
  }

  //===--------------------------------------------------------------------===//
  // Behind the loop
  //===--------------------------------------------------------------------===//

  /// A stack of a value of the region: an input, or an output of the loop to come.
  struct Stack {
    Value input;
    size_t output;
  };

  Stack stackOf(Value value) {
    changed_ = true;
    if (Value input = inputOf(value))
      return {input, 0};
    return {Value(), parts_.addOutput(value)};
  }
  static Value get(ir::ScanOp scan, Stack stack) {
    return stack.input ? stack.input : scan.getOutputs()[stack.output];
  }

  struct OutputProduct {
    size_t output;
    ir::MatmulOp matmul;
    Value weight;
    Stack lhs;
  };

  void findOutputProducts() {
    for (size_t index = 0, count = parts_.outputs.size(); index < count; ++index) {
      auto matmul = parts_.outputs[index].slice.getDefiningOp<ir::MatmulOp>();
      if (matmul && !parts_.scan.getOutputs()[index].use_empty() && matmul->hasOneUse() &&
          isPlainMatmul(matmul) && !matmul.getTransposeLhs() && isInvariant(matmul.getRhs()) &&
          !isInvariant(matmul.getLhs()))
        outputProducts_.push_back(
            {index, matmul, outside_.lookup(matmul.getRhs()), stackOf(matmul.getLhs())});
    }
  }

  void buildOutputProduct(ir::ScanOp scan, const OutputProduct &product) {
    Value result = productOfStack(product.matmul, get(scan, product.lhs), product.weight);
    rewriter_.replaceAllUsesWith(scan.getOutputs()[product.output], result);
  }

  /// A part of what one iteration adds to a carried sum.
  struct Sum {
    size_t carry;
    Operation *op; // a matmul or a sum
    Stack lhs, rhs;
  };

  void findSums() {
    for (auto [index, carry] : llvm::enumerate(parts_.carries)) {
      auto add = carry.next.getDefiningOp<ir::AddOp>();
      if (!add || !add->hasOneUse() || !carry.inner.hasOneUse())
        continue;
      SmallVector<Value> terms, kept;
      collectTerms(add, terms);
      if (!llvm::is_contained(terms, carry.inner))
        continue;
      for (Value term : terms)
        if (!takeSum(index, term))
          kept.push_back(term);
      if (kept.size() == terms.size())
        continue;
      rewriter_.setInsertionPoint(add);
      Value next = kept.front();
      for (Value term : ArrayRef<Value>(kept).drop_front())
        next = ir::AddOp::create(rewriter_, add.getLoc(), next.getType(), next, term);
      carry.next = next;
    }
  }

  /// What a tree of additions adds up; each of them serves the one above it alone.
  static void collectTerms(ir::AddOp add, SmallVectorImpl<Value> &terms) {
    for (Value operand : {add.getLhs(), add.getRhs()}) {
      auto inner = operand.getDefiningOp<ir::AddOp>();
      if (inner && inner->hasOneUse())
        collectTerms(inner, terms);
      else
        terms.push_back(operand);
    }
  }

  bool takeSum(size_t carry, Value term) {
    Operation *op = term.getDefiningOp();
    if (!op || !op->hasOneUse())
      return false;
    if (auto sum = dyn_cast<ir::SumOp>(op); sum && !isInvariant(sum.getOperand())) {
      sums_.push_back({carry, op, stackOf(sum.getOperand()), {}});
      return true;
    }
    auto matmul = dyn_cast<ir::MatmulOp>(op);
    if (!matmul || !isPlainMatmul(matmul) || !matmul.getTransposeLhs() || matmul.getTransposeRhs() ||
        isInvariant(matmul.getLhs()) || isInvariant(matmul.getRhs()))
      return false;
    sums_.push_back({carry, op, stackOf(matmul.getLhs()), stackOf(matmul.getRhs())});
    return true;
  }

  /// The final value of a carry: what is left of it, and the sums that are computed behind the loop.
  void buildSums(ir::ScanOp scan, size_t carry) {
    Value final = scan.getFinals()[carry], total = isZero(scan, carry) ? Value() : final;
    Operation *firstAdd = nullptr;
    for (const Sum &sum : sums_) {
      if (sum.carry != carry)
        continue;
      Value whole = buildSum(scan, sum);
      if (total)
        total = ir::AddOp::create(rewriter_, sum.op->getLoc(), final.getType(), total, whole);
      else
        total = whole;
      if (!firstAdd && total != whole)
        firstAdd = total.getDefiningOp();
    }
    if (total && total != final)
      final.replaceUsesWithIf(total, [&](OpOperand &use) { return use.getOwner() != firstAdd; });
  }

  Value buildSum(ir::ScanOp scan, const Sum &sum) {
    Location location = sum.op->getLoc();
    if (isa<ir::MatmulOp>(sum.op)) {
      auto product = ir::MatmulOp::create(rewriter_, location, asRows(location, get(scan, sum.lhs)),
                                          asRows(location, get(scan, sum.rhs)), /*transpose_lhs=*/true,
                                          /*transpose_rhs=*/false);
      ir::inheritTf32(sum.op, product);
      return product;
    }
    SmallVector<int64_t> dims = {0};
    for (int64_t dim : cast<ir::SumOp>(sum.op).getDims())
      dims.push_back(dim + 1);
    return ir::SumOp::create(rewriter_, location, get(scan, sum.lhs), dims);
  }

  /// Whether a carry holds zeros from beginning to end.
  static bool isZero(ir::ScanOp scan, size_t carry) {
    auto init = scan.getInits()[carry].getDefiningOp<ir::ConstantOp>();
    auto number = init ? dyn_cast_or_null<FloatAttr>(init.getSplat()) : FloatAttr();
    return number && number.getValue().isZero() && scan.getNextCarries()[carry] == scan.getCarries()[carry];
  }

  ir::ScanParts parts_;
  IRRewriter &rewriter_;
  IRMapping outside_; // values of the region that are known before the loop
  SmallVector<OutputProduct> outputProducts_;
  SmallVector<Sum> sums_;
  bool changed_ = false;
};

class HoistFromScansPass : public impl::HoistFromScansPassBase<HoistFromScansPass> {
  void runOnOperation() override {
    // Inner loops first: what leaves them may leave the outer one too.
    SmallVector<ir::ScanOp> scans;
    getOperation().walk<WalkOrder::PostOrder>([&](ir::ScanOp scan) {
      if (!scan.getBatchFirst()) // until shapes are known
        scans.push_back(scan);
    });
    if (scans.empty())
      return markAllAnalysesPreserved(); // nor is the module verified again
    IRRewriter rewriter(&getContext());
    for (ir::ScanOp scan : scans)
      Hoisting(scan, rewriter).run();
  }
};

} // namespace
} // namespace gpuc
