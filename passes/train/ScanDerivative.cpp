//===- ScanDerivative.cpp - The gradient of a loop over time -----------------===//
//
// The region is differentiated as a function would be: behind its ops come those of the backward pass. Then
// it is cut in two. The front stays the region of the forward scan; what the back reads of it becomes
//
//   a slice of an input      the same input of the backward scan
//   a carried value          a stack of what came into each iteration
//   a capture                a capture
//   a result of an op        a stack, unless it costs nothing to have again (a constant, a broadcast, what
//                            depends on captures alone) or the scan says `recompute`
//
// The back becomes the region of a scan in the other direction. It carries the cotangents of what the forward
// one carries, and for each capture the sum of its cotangents; its outputs are the cotangents of the inputs.
//
// A carried value has a cotangent if its final value has one, or if one that has depends on it: found by
// trying, with more of them until none is missing.
//
//===----------------------------------------------------------------------===//

#include "passes/train/ScanDerivative.h"

#include "dialects/gpuc/ScanParts.h"
#include "passes/base/Locations.h"
#include "passes/train/BackwardPass.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/BitVector.h"

namespace gpuc {

using namespace mlir;

/// Marks what varies with these arguments of the region.
static void findVaried(BackwardPass &body, ir::ScanOp scan, const llvm::BitVector &varied) {
  for (unsigned index : varied.set_bits())
    body.differentiateBy(scan.getBlock().getArgument(index));
  body.findVaried();
}

/// For each argument of the region whether it varies: a carried one does if its init does, or what an
/// iteration hands on.
static llvm::BitVector variedArguments(ir::ScanOp scan, VariesFn varies) {
  llvm::BitVector varied(scan->getNumOperands());
  for (OpOperand &operand : scan->getOpOperands())
    varied[operand.getOperandNumber()] = isFloat(operand.get()) && varies(operand.get());
  size_t firstCarry = scan.getInputs().size();
  for (bool changed = true; changed;) {
    changed = false;
    BackwardPass body(scan.getBlock());
    findVaried(body, scan, varied);
    for (auto [index, next] : llvm::enumerate(scan.getNextCarries()))
      if (!varied[firstCarry + index] && body.varies(next))
        varied[firstCarry + index] = changed = true;
  }
  return varied;
}

SmallVector<Value> variedResults(ir::ScanOp scan, VariesFn varies) {
  llvm::BitVector varied = variedArguments(scan, varies);
  BackwardPass body(scan.getBlock());
  findVaried(body, scan, varied);
  SmallVector<Value> results;
  size_t firstCarry = scan.getInputs().size(), carries = scan.getInits().size();
  for (auto [index, yielded] : llvm::enumerate(scan.getBlock().getTerminator()->getOperands()))
    if (index < carries ? varied[firstCarry + index] : body.varies(yielded))
      results.push_back(scan->getResult(index));
  return results;
}

namespace {

//===----------------------------------------------------------------------===//
// Forward and backward ops in one region
//===----------------------------------------------------------------------===//

/// A copy of a scan, with the backward pass of its region behind a marker.
struct Joint {
  Joint(ir::ScanOp scan, const llvm::BitVector &varied, const llvm::BitVector &active, ArrayRef<Value> given)
      : op(cast<ir::ScanOp>(OpBuilder(scan).clone(*scan))), forward(op), backward(op.getBlock()) {
    findVaried(backward, op, varied);
    auto scalar = RankedTensorType::get({}, backward.builder().getF32Type());
    marker = ir::ConstantOp::create(backward.builder(), scan.getLoc(), scalar, 0.0);
    for (auto [index, carry] : llvm::enumerate(forward.carries))
      carryCotangents.push_back(active[index] ? seed(carry.next) : Value());
    for (auto [output, cotangent] :
         llvm::zip_equal(forward.outputs, given.drop_front(forward.carries.size())))
      outputCotangents.push_back(cotangent ? seed(output.slice) : Value());
  }

  /// A new argument of the region as the cotangent of `value`.
  Value seed(Value value) {
    Value cotangent = op.getBlock().addArgument(value.getType(), backwardOf(value.getLoc()));
    backward.seed(value, cotangent);
    return cotangent;
  }

  ir::ScanOp op;
  ir::ScanParts forward;
  BackwardPass backward;
  Operation *marker;
  SmallVector<Value> carryCotangents, outputCotangents; // arguments; null where there is none
};

//===----------------------------------------------------------------------===//
// The backward scan
//===----------------------------------------------------------------------===//

/// Cuts a joint region in two.
class Split {
public:
  Split(Joint &joint, OpBuilder &builder, ArrayRef<Value> given)
      : joint_(joint), forward_(joint.forward), builder_(builder), given_(given),
        location_(backwardOf(joint.op.getLoc())), backward_(emptyScan()),
        bodyBuilder_(backward_.block().getTerminator()) {}

  /// Returns the forward scan; `computed` as for differentiateScan.
  ir::ScanOp run(SmallVectorImpl<Value> &computed) {
    findInvariants();
    takeCotangents();
    for (Operation *op = joint_.marker->getNextNode(); op != forward_.block().getTerminator();
         op = op->getNextNode())
      copy(op);
    handOnCotangents();
    eraseBackwardOps();

    IRRewriter rewriter(builder_);
    ir::ScanOp forward = forward_.rebuild(rewriter);
    for (auto [input, output] : stacks_)
      backward_.inputs[input].outer = forward.getOutputs()[output];
    ir::ScanOp backward = backward_.rebuild(rewriter);
    collect(backward, computed);
    return forward;
  }

private:
  ir::ScanOp emptyScan() {
    auto scan = ir::ScanOp::create(builder_, location_, ValueRange(), ValueRange(), ValueRange(), TypeRange(),
                                   joint_.forward.trips, !joint_.op.getReverse(), /*recompute=*/false);
    scan.setChunked(joint_.op.getChunked());
    OpBuilder inside = OpBuilder::atBlockEnd(&scan.getBlock());
    ir::YieldOp::create(inside, location_, ValueRange());
    return scan;
  }

  static Value zeros(OpBuilder builder, Location location, Type type) {
    return ir::ConstantOp::create(builder, location, type, 0.0);
  }
  /// Zeros to begin with, in front of the backward scan.
  Value initialZeros(Type type) { return zeros(OpBuilder(backward_.scan), location_, type); }

  /// What depends on captures alone is the same in all iterations.
  void findInvariants() {
    for (const ir::ScanParts::Argument &capture : forward_.captures)
      invariant_.insert(capture.inner);
    for (Operation *op = &forward_.block().front(); op != joint_.marker; op = op->getNextNode())
      if (llvm::all_of(op->getOperands(), [&](Value operand) { return invariant_.contains(operand); }))
        invariant_.insert_range(op->getResults());
  }

  /// The cotangents that come in: carried ones, and slices of those of the outputs.
  void takeCotangents() {
    for (auto [index, cotangent] : llvm::enumerate(joint_.carryCotangents))
      if (cotangent) {
        Value init = given_[index] ? given_[index] : initialZeros(cotangent.getType());
        mapping_.map(cotangent, backward_.addCarry(init));
      }
    for (auto [index, cotangent] : llvm::enumerate(joint_.outputCotangents))
      if (cotangent)
        mapping_.map(cotangent, backward_.addInput(given_[forward_.carries.size() + index]));
  }

  /// Puts a copy of an op of the joint region into the backward one.
  void copy(Operation *op) {
    for (Value operand : op->getOperands())
      require(operand);
    bodyBuilder_.clone(*op, mapping_);
  }

  /// Makes a value of the forward region known in the backward one.
  void require(Value value) {
    if (mapping_.contains(value))
      return;
    if (Value argument = backward_.addArgumentOf(forward_, value))
      return mapping_.map(value, argument);
    if (Operation *op = value.getDefiningOp(); op && isComputedAgain(value))
      return copy(op);
    size_t output = forward_.addOutput(value);
    Value slice = backward_.block().addArgument(value.getType(), value.getLoc());
    stacks_.push_back({backward_.inputs.size(), output});
    backward_.inputs.push_back({Value(), slice}); // the stack is there once the forward scan is rebuilt
    mapping_.map(value, slice);
  }

  bool isComputedAgain(Value value) {
    bool stacked = llvm::any_of(forward_.outputs,
                                [&](const ir::ScanParts::Output &output) { return output.slice == value; });
    if (stacked)
      return false;
    return forward_.scan.getRecompute() || invariant_.contains(value) ||
           isa<ir::BroadcastOp, ir::ReshapeOp>(value.getDefiningOp());
  }

  Value cotangentOf(Value argument) {
    Value cotangent = joint_.backward.ofArgument(argument);
    if (!cotangent)
      return {};
    require(cotangent);
    return mapping_.lookup(cotangent);
  }

  /// The cotangents that go out: to the iteration before, to the inputs, and into the captures' sums.
  void handOnCotangents() {
    for (auto [index, carry] : llvm::enumerate(forward_.carries))
      if (joint_.carryCotangents[index]) {
        Value cotangent = cotangentOf(carry.inner);
        carried_.push_back({index, backwardCarries_});
        backward_.carries[backwardCarries_++].next =
            cotangent ? cotangent : zeros(bodyBuilder_, location_, carry.inner.getType());
      }
    for (auto [index, input] : llvm::enumerate(forward_.inputs))
      if (Value cotangent = cotangentOf(input.inner))
        outputs_.push_back({index, backward_.addOutput(cotangent)});
    for (auto [index, capture] : llvm::enumerate(forward_.captures))
      if (Value cotangent = cotangentOf(capture.inner)) {
        Type type = cotangent.getType();
        Value sum = backward_.addCarry(initialZeros(type));
        backward_.carries.back().next = ir::AddOp::create(bodyBuilder_, location_, type, sum, cotangent);
        sums_.push_back({index, backward_.carries.size() - 1});
      }
  }

  void eraseBackwardOps() {
    Operation *op = forward_.block().getTerminator()->getPrevNode();
    for (bool done = false; !done;) {
      Operation *previous = op->getPrevNode();
      done = op == joint_.marker;
      op->erase();
      op = previous;
    }
  }

  void collect(ir::ScanOp backward, SmallVectorImpl<Value> &computed) {
    size_t inits = forward_.inputs.size(), captures = inits + forward_.carries.size();
    computed.assign(captures + forward_.captures.size(), Value());
    for (auto [input, output] : outputs_)
      computed[input] = backward.getOutputs()[output];
    for (auto [carry, index] : carried_)
      computed[inits + carry] = backward.getFinals()[index];
    for (auto [capture, index] : sums_)
      computed[captures + capture] = backward.getFinals()[index];
  }

  using Pairs = SmallVector<std::pair<size_t, size_t>>; // of positions

  Joint &joint_;
  ir::ScanParts &forward_;
  OpBuilder &builder_;
  ArrayRef<Value> given_;
  Location location_;
  ir::ScanParts backward_;
  OpBuilder bodyBuilder_;
  IRMapping mapping_; // joint region → backward region
  llvm::DenseSet<Value> invariant_;
  Pairs stacks_;                   // input of the backward scan, output of the forward one
  Pairs outputs_, carried_, sums_; // of the forward scan, result of the backward one
  size_t backwardCarries_ = 0;
};

} // namespace

FailureOr<ir::ScanOp> differentiateScan(ir::ScanOp scan, OpBuilder &builder, ArrayRef<Value> given,
                                        VariesFn varies, SmallVectorImpl<Value> &computed) {
  llvm::BitVector varied = variedArguments(scan, varies), active(scan.getInits().size());
  for (unsigned index = 0; index < active.size(); ++index)
    active[index] = given[index] != nullptr;
  while (true) {
    Joint joint(scan, varied, active, given);
    if (failed(joint.backward.run())) {
      joint.op.erase();
      return failure();
    }
    bool complete = true;
    for (auto [index, carry] : llvm::enumerate(joint.forward.carries))
      if (!active[index] && joint.backward.ofArgument(carry.inner)) {
        active[index] = true;
        complete = false;
      }
    if (!complete) {
      joint.op.erase();
      continue;
    }
    joint.forward.readYield(); // of loops in the region others have taken the place
    ir::ScanOp forward = Split(joint, builder, given).run(computed);
    scan->replaceAllUsesWith(forward->getResults().take_front(scan->getNumResults()));
    return forward;
  }
}

} // namespace gpuc
