//===- ScanToPlan.cpp - A loop over time as repeated commands ----------------===//
//
// No slice is copied: commands read and write the stacks through views that move with the iteration. What is
// carried lies in one of two ways:
//
//   stacked  If the values that come into the iterations, or go out of them, are an output too (an LSTM's h,
//            or what the backward pass reads again), there is a buffer of T + 1 slots. Iteration i reads slot
//            i and writes slot i + 1; in reverse it reads slot i + 1 and writes slot i. Both outputs, and the
//            final value, are parts of that buffer.
//
//   single   Else there is a buffer of one value. Who computes the next value writes it over the last, if all
//            that read it have done so and the kernel itself reads each element no later than it writes it;
//            else the next value is copied there when the iteration ends. A sum that a product is added to
//            lets the matmul add it.
//
// Where iterations are chunks of time, with a loop over a chunk's steps in each (gpuc-cut-scans), and what
// the inner loop stacks so is stacked by the outer one, too, there is one buffer of T + 1 slots for both: a
// chunk of k steps has k + 1 of them, and the chunk behind it begins with the last.
//
// The init, too, is computed where it is needed, unless it lies somewhere else for a reason.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/base/Locations.h"
#include "passes/plan/ProgramWriter.h"

using namespace mlir;

namespace gpuc {

Value throughReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<ir::ReshapeOp>())
    value = reshape.getOperand();
  return value;
}

namespace {

/// Calls `visit` for each op that touches the bytes behind `value`, and whatever it is under another shape.
void forEachUse(Value value, function_ref<void(OpOperand &)> visit) {
  for (OpOperand &use : value.getUses()) {
    if (auto reshape = dyn_cast<ir::ReshapeOp>(use.getOwner()))
      forEachUse(reshape.getResult(), visit);
    else
      visit(use);
  }
}

bool isUsedOnce(Value root) {
  unsigned uses = 0;
  forEachUse(root, [&](OpOperand &) { ++uses; });
  return uses == 1;
}

/// Whether the op can write this value wherever it is told to.
bool isPlaceable(Value value) {
  Operation *op = value.getDefiningOp();
  return op && !isa<ir::ReadOp, ir::ReshapeOp, ir::ConstantOp>(op);
}

/// A carry of the loop in an iteration.
struct InnerCarry {
  ir::ScanOp scan;
  size_t index = 0;
  bool isStacked = false;
};

class ScanBuffers {
public:
  ScanBuffers(ProgramWriter &writer, ir::ScanOp scan)
      : writer_(writer), scan_(scan), trips_(scan.getTripCount()) {}

  /// The carry of an inner loop that lies where this one does, if there is such a loop: it begins with what
  /// comes into an iteration, and what it ends with goes out.
  std::optional<InnerCarry> innerOf(size_t carry) {
    Value argument = scan_.getCarries()[carry];
    auto next = dyn_cast<OpResult>(scan_.getNextCarries()[carry]);
    auto inner = next ? dyn_cast<ir::ScanOp>(next.getOwner()) : ir::ScanOp();
    if (!inner || inner->getBlock() != &scan_.getBlock() || inner.getReverse() != scan_.getReverse())
      return std::nullopt;
    const size_t index = next.getResultNumber();
    if (index >= inner.getInits().size() || inner.getInits()[index] != argument)
      return std::nullopt;
    ScanBuffers within(writer_, inner);
    const bool isWhole = llvm::any_of(
        scan_.getOutputSlices(), [&](Value slice) { return within.slotOfOutput(slice, index).has_value(); });
    // A single value may be written over by both, if nobody but the inner loop reads it.
    const bool isSingle = !within.isStacked(index) && !isStacked(carry) && argument.hasOneUse();
    return isWhole || isSingle ? std::optional(InnerCarry{inner, index, isWhole}) : std::nullopt;
  }

  /// If these slices are what comes into the iterations, or goes out of them: the slot with which they begin.
  std::optional<int64_t> slotOf(Value slice, size_t carry) {
    Value root = throughReshapes(slice), next = throughReshapes(scan_.getNextCarries()[carry]);
    if (root == scan_.getCarries()[carry])
      return incoming();
    const bool isOwn = next.getParentBlock() == &scan_.getBlock() && !isa<BlockArgument>(next);
    return isOwn && root == next ? std::optional(outgoing()) : std::nullopt;
  }

  /// The same of a result of the loop.
  std::optional<int64_t> slotOfOutput(Value result, size_t carry) {
    auto output = llvm::find(scan_.getOutputs(), throughReshapes(result));
    if (output == scan_.getOutputs().end())
      return std::nullopt;
    return slotOf(scan_.getOutputSlices()[output - scan_.getOutputs().begin()], carry);
  }

  /// Which slot iteration i reads, and which it writes, as a distance from i.
  int64_t incoming() { return scan_.getReverse() ? 1 : 0; }
  int64_t outgoing() { return scan_.getReverse() ? 0 : 1; }

  /// Whether the values carried are the slices of an output, before or after an iteration.
  bool isStacked(size_t carry) {
    return llvm::any_of(scan_.getOutputSlices(),
                        [&](Value slice) { return slotOf(slice, carry).has_value(); });
  }

  /// The buffer of a carry: of T + 1 slots, or of one.
  Value makeCarryBuffer(size_t carry) {
    auto type = cast<RankedTensorType>(scan_.getInits()[carry].getType());
    std::string layer = layerName(scan_.getLoc());
    std::string name =
        (layer.empty() ? "scan" : layer) + (isBackward(scan_.getLoc()) ? ".d_carry" : ".carry");
    if (const int64_t values = valuesOf(carry))
      type = ir::ScanOp::stackType(type, values + 1);
    return writer_.newBuffer(name, type, writer_.categoryOf(scan_.getFinals()[carry]), scan_.getLoc());
  }

  /// How many values of a stacked carry follow one another; 0 if it is single.
  int64_t valuesOf(size_t carry) {
    if (std::optional<InnerCarry> inner = innerOf(carry); inner && inner->isStacked)
      return trips_ * inner->scan.getTripCount();
    return isStacked(carry) ? trips_ : 0;
  }

  /// Slot `slot` of a stacked carry.
  Value slot(Value buffer, size_t carry, int64_t slot) {
    return slots(buffer, carry, slot, scan_.getInits()[carry].getType());
  }

  /// The slots that begin with `slot`, one for each iteration, as an output.
  Value slots(Value buffer, size_t carry, int64_t slot, Type type) {
    OpBuilder head = writer_.declarations();
    if (auto moving = buffer.getDefiningOp<plan::ViewOp>()) // in a loop around this one
      head.setInsertionPointAfter(moving);
    int64_t bytes = ir::sizeInBytes(scan_.getInits()[carry].getType());
    return view(head, buffer, slot * bytes, type, 0);
  }

  /// The slot at which a value lies before the first iteration, and after the last.
  int64_t initSlot(size_t carry) { return scan_.getReverse() ? valuesOf(carry) : 0; }
  int64_t finalSlot(size_t carry) { return scan_.getReverse() ? 0 : valuesOf(carry); }

  /// The part of a stack that moves with the iteration: element i, or i + `shift`, of slices of `type`.
  Value movingSlice(Value stack, Type type, int64_t shift = 0) {
    const int64_t bytes = ir::sizeInBytes(type);
    return moving(stack, type, shift * bytes, bytes);
  }

  /// The slots of the inner loop in iteration i, and of them the one that it begins with.
  Value innerSlots(Value buffer, InnerCarry inner) {
    const int64_t steps = inner.scan.getTripCount();
    Type type = inner.scan.getInits()[inner.index].getType();
    return moving(buffer, ir::ScanOp::stackType(type, steps + 1), 0, steps * ir::sizeInBytes(type));
  }
  Value innerInit(Value buffer, InnerCarry inner) {
    Type type = inner.scan.getInits()[inner.index].getType();
    const int64_t bytes = ir::sizeInBytes(type), steps = inner.scan.getTripCount();
    return moving(buffer, type, incoming() * steps * bytes, steps * bytes);
  }

private:
  /// What begins at `offset` in iteration 0, and `stride` bytes further on in each.
  Value moving(Value stack, Type type, int64_t offset, int64_t stride) {
    const int64_t first = offset + (scan_.getReverse() ? (trips_ - 1) * stride : 0);
    return view(writer_.builder, stack, first, type, scan_.getReverse() ? -stride : stride);
  }

  Value view(OpBuilder &builder, Value source, int64_t offset, Type type, int64_t stride) {
    SmallVector<int64_t> strides;
    if (stride != 0) {
      strides.assign(writer_.depth, 0); // of the repeats around; the innermost is this scan's own
      strides.back() = stride;
    }
    return plan::ViewOp::create(builder, scan_.getLoc(), source.getType(), source, offset,
                                cast<RankedTensorType>(type), strides);
  }

  ProgramWriter &writer_;
  ir::ScanOp scan_;
  int64_t trips_;
};

//===----------------------------------------------------------------------===//
// Inits
//===----------------------------------------------------------------------===//

/// An init that nothing but the scan needs the loop may write over.
void prepareScan(ProgramWriter &writer, ir::ScanOp scan) {
  ScanBuffers carried(writer, scan);
  for (auto [index, init] : llvm::enumerate(scan.getInits())) {
    bool stacked = carried.valuesOf(index) != 0;
    Value root = throughReshapes(init);
    if (root.getParentBlock() != scan->getBlock() || !isPlaceable(root) || root.getDefiningOp<ir::ScanOp>() ||
        writer.places.contains(root) || writer.isAssigned(root) || (!stacked && !isUsedOnce(root)))
      continue;
    Value buffer = carried.makeCarryBuffer(index);
    writer.buffers[scan.getCarries()[index]] = buffer;
    writer.places[root] = stacked ? carried.slot(buffer, index, carried.initSlot(index)) : buffer;
  }
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

class Conversion {
public:
  Conversion(ProgramWriter &writer, ir::ScanOp scan)
      : writer_(writer), scan_(scan), block_(scan.getBlock()), carried_(writer, scan) {}

  LogicalResult run() {
    placeInits();
    OpBuilder::InsertionGuard guard(writer_.builder);
    writer_.builder.createBlock(&createLoop());
    ++writer_.depth;
    bindArguments();
    placeYields();
    prepareScans(writer_, block_);
    if (failed(writer_.convertOps(block_)))
      return failure();
    copyYields();
    --writer_.depth;
    bindResults();
    return success();
  }

private:
  /// Where its commands are to stand. A single part is a loop like any other.
  Region &createLoop() {
    const int64_t count = scan_.getTripCount();
    if (scan_.getParallel() && count > 1 && !scan_->hasAttr(kInTurnAttr))
      return plan::ParallelOp::create(writer_.builder, scan_.getLoc(), count, /*by_rows=*/false).getBody();
    return plan::RepeatOp::create(writer_.builder, scan_.getLoc(), count).getBody();
  }

  void copy(Value from, Value to) { plan::CopyOp::create(writer_.builder, scan_.getLoc(), from, to); }

  void placeInits() {
    for (auto [index, init] : llvm::enumerate(scan_.getInits())) {
      Value &buffer = carryBuffers_.emplace_back(writer_.buffers.lookup(scan_.getCarries()[index]));
      if (buffer)
        continue; // it was computed there
      buffer = carried_.makeCarryBuffer(index);
      Value to = carried_.valuesOf(index) ? carried_.slot(buffer, index, carried_.initSlot(index)) : buffer;
      auto number = init.getDefiningOp<ir::ConstantOp>();
      if (number && number.getSplat())
        plan::FillOp::create(writer_.builder, scan_.getLoc(), to, number.getSplat());
      else
        copy(writer_.buffers.lookup(init), to);
    }
  }

  void bindArguments() {
    for (auto [input, slice] : llvm::zip_equal(scan_.getInputs(), scan_.getSlices()))
      writer_.buffers[slice] = carried_.movingSlice(writer_.buffers.lookup(input), slice.getType());
    for (auto [index, argument] : llvm::enumerate(scan_.getCarries())) {
      Value &buffer = writer_.buffers[argument];
      if (std::optional<InnerCarry> inner = carried_.innerOf(index)) {
        Value within = carryBuffers_[index];
        buffer = inner->isStacked ? carried_.innerInit(within, *inner) : within;
        writer_.buffers[inner->scan.getCarries()[inner->index]] =
            inner->isStacked ? carried_.innerSlots(within, *inner) : within;
      } else if (carried_.isStacked(index)) {
        buffer = carried_.movingSlice(carryBuffers_[index], argument.getType(), carried_.incoming());
      } else {
        buffer = carryBuffers_[index];
      }
    }
    for (auto [capture, inner] : llvm::zip_equal(scan_.getCaptures(), scan_.getCaptured()))
      writer_.buffers[inner] = writer_.buffers.lookup(capture);
  }

  /// What is yielded is written where it is needed, if it can be.
  void placeYields() {
    for (auto [index, next] : llvm::enumerate(scan_.getNextCarries())) {
      if (carried_.innerOf(index)) {
        nextPlaces_.push_back(Value()); // where the inner loop leaves it
        continue;
      }
      if (carried_.isStacked(index))
        nextPlaces_.push_back(
            carried_.movingSlice(carryBuffers_[index], next.getType(), carried_.outgoing()));
      else
        nextPlaces_.push_back(carryBuffers_[index]);
      if (carried_.isStacked(index) || mayOverwriteCarry(index))
        place(next, nextPlaces_.back());
      if (!carried_.isStacked(index))
        addInPlace(index);
    }
    for (auto [output, slice] : llvm::zip_equal(scan_.getOutputs(), scan_.getOutputSlices())) {
      stacks_.push_back(stackOf(throughReshapes(slice), output.getType()));
      outputPlaces_.push_back(Value());
      if (stacks_.back())
        continue; // it is a part of something that there is
      stacks_.back() = writer_.places.lookup(output);
      if (!stacks_.back())
        stacks_.back() = writer_.newBuffer(outputName(slice), cast<RankedTensorType>(output.getType()),
                                           writer_.categoryOf(output), output.getLoc());
      outputPlaces_.back() = carried_.movingSlice(stacks_.back(), slice.getType());
      place(slice, outputPlaces_.back());
    }
  }

  void place(Value value, Value where) {
    Value root = throughReshapes(value);
    if (root.getParentBlock() == &block_ && isPlaceable(root))
      writer_.places.try_emplace(root, where);
  }

  /// The stack that has these slices anyway: an input, or slots of a carry. Null if there is none.
  Value stackOf(Value root, Type type) {
    for (auto [input, slice] : llvm::zip_equal(scan_.getInputs(), scan_.getSlices()))
      if (root == slice)
        return writer_.buffers.lookup(input);
    for (size_t index = 0; index < carryBuffers_.size(); ++index)
      if (std::optional<int64_t> slot = slotOf(root, index))
        return carried_.slots(carryBuffers_[index], index, *slot, type);
    return {};
  }

  /// The slot of a carry with which a stack of such slices begins.
  std::optional<int64_t> slotOf(Value root, size_t index) {
    if (std::optional<InnerCarry> inner = carried_.innerOf(index); inner && inner->isStacked)
      return ScanBuffers(writer_, inner->scan).slotOfOutput(root, inner->index);
    return carried_.slotOf(root, index);
  }

  std::string outputName(Value slice) {
    Operation *op = throughReshapes(slice).getDefiningOp();
    auto fused = dyn_cast_or_null<ir::FusedOp>(op);
    if (fused)
      return fused.getName().str() + ".stack";
    std::string layer = layerName(scan_.getLoc());
    return (layer.empty() ? "scan" : layer) + ".stack";
  }

  /// Whether the op that computes the next value may write it over the last one: all others that read that
  /// have done so, and nobody yields it.
  bool mayOverwriteCarry(size_t index) {
    Value root = throughReshapes(scan_.getNextCarries()[index]);
    Operation *producer = root.getDefiningOp();
    if (!producer || producer->getBlock() != &block_ || isa<ir::ScanOp>(producer) || !isPlaceable(root) ||
        writer_.places.contains(root))
      return false;
    bool may = true;
    forEachUse(scan_.getCarries()[index], [&](OpOperand &use) {
      Operation *reader = use.getOwner();
      if (reader == producer)
        may &= updatesInPlace(producer, use, cast<OpResult>(root));
      else
        may &= reader != block_.getTerminator() && reader->isBeforeInBlock(producer);
    });
    return may;
  }

  /// Where all that an iteration does to a carried sum is to add a product to it, the matmul does both. All
  /// others that read the sum have done so by then.
  void addInPlace(size_t index) {
    Value sum = scan_.getCarries()[index];
    auto kernel = throughReshapes(scan_.getNextCarries()[index]).getDefiningOp<ir::FusedOp>();
    if (!kernel || kernel->getBlock() != &block_)
      return;
    Value product = addedProduct(kernel, sum);
    if (!product || writer_.places.contains(product))
      return;
    bool may = true;
    forEachUse(sum, [&](OpOperand &use) {
      Operation *reader = use.getOwner();
      may &= reader == kernel ||
             (reader != block_.getTerminator() && reader->isBeforeInBlock(product.getDefiningOp()));
    });
    if (!may)
      return;
    writer_.sums[product] = carryBuffers_[index];
    writer_.addedElsewhere[kernel] = carryBuffers_[index];
  }

  /// The result of a matmul, in the loop and for this kernel alone, if the kernel adds it to `sum` and does
  /// nothing else.
  Value addedProduct(ir::FusedOp kernel, Value sum) {
    Block &body = kernel.getBody().front();
    auto add = dyn_cast<ir::AddOp>(body.front());
    if (!add || body.getOperations().size() != 2 || kernel->getNumOperands() != 2 ||
        !isa<BlockArgument>(add.getLhs()) || !isa<BlockArgument>(add.getRhs()) ||
        add.getLhs() == add.getRhs())
      return {};
    Value first = throughReshapes(kernel->getOperand(0)), second = throughReshapes(kernel->getOperand(1));
    Value product = first == sum ? second : first;
    if (first != sum && second != sum)
      return {};
    auto matmul = product.getDefiningOp<ir::MatmulOp>();
    return matmul && matmul->getBlock() == &block_ && isUsedOnce(product) ? product : Value();
  }

  static bool updatesInPlace(Operation *producer, OpOperand &operand, OpResult result) {
    auto fused = dyn_cast<ir::FusedOp>(producer);
    return fused && mayUpdateInPlace(fused, operand.getOperandNumber(), result.getResultNumber());
  }

  /// At the end of an iteration: what is yielded and was not written where it belongs. Single carries come
  /// last, because what they held may be yielded too; one that takes what another held goes by way of a
  /// buffer of its own.
  void copyYields() {
    for (auto [place, slice] : llvm::zip_equal(outputPlaces_, scan_.getOutputSlices()))
      if (place && !isAt(slice, place))
        copy(writer_.buffers.lookup(slice), place);
    SmallVector<std::pair<Value, Value>> last;
    for (auto [index, next] : llvm::enumerate(scan_.getNextCarries())) {
      if (!nextPlaces_[index] || isAt(next, nextPlaces_[index]))
        continue;
      Value from = writer_.buffers.lookup(next);
      if (carried_.isStacked(index)) {
        copy(from, nextPlaces_[index]);
        continue;
      }
      if (llvm::is_contained(carryBuffers_, from) && isa<BlockArgument>(throughReshapes(next))) {
        Value held = writer_.newBuffer("scan.held", cast<RankedTensorType>(next.getType()),
                                       plan::Category::activation, scan_.getLoc());
        copy(from, held);
        from = held;
      }
      last.push_back({from, nextPlaces_[index]});
    }
    for (auto [from, to] : last)
      copy(from, to);
  }

  bool isAt(Value value, Value place) {
    Value root = throughReshapes(value);
    return !isa<BlockArgument>(root) && writer_.buffers.lookup(root) == place;
  }

  void bindResults() {
    for (auto [index, result] : llvm::enumerate(scan_.getFinals()))
      if (!result.use_empty())
        writer_.buffers[result] = carried_.valuesOf(index)
                                      ? carried_.slot(carryBuffers_[index], index, carried_.finalSlot(index))
                                      : carryBuffers_[index];
    for (auto [stack, result] : llvm::zip_equal(stacks_, scan_.getOutputs()))
      writer_.buffers[result] = stack;
  }

  ProgramWriter &writer_;
  ir::ScanOp scan_;
  Block &block_;
  ScanBuffers carried_;
  SmallVector<Value> carryBuffers_;
  SmallVector<Value> nextPlaces_; // where each next value belongs
  SmallVector<Value> stacks_,
      outputPlaces_; // of each output: the whole, and where a slice belongs, if it does
};

} // namespace

void prepareScans(ProgramWriter &writer, Block &block) {
  for (auto scan : block.getOps<ir::ScanOp>())
    prepareScan(writer, scan);
}

LogicalResult convertScan(ProgramWriter &writer, ir::ScanOp scan) {
  if (scan.getBatchFirst())
    return scan.emitOpError("has the batch first: gpuc-specialize-batch comes before gpuc-to-plan");
  return Conversion(writer, scan).run();
}

} // namespace gpuc
