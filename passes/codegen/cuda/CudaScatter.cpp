//===- CudaScatter.cpp - Updates added where indices say --------------------===//
//
// The order of a sum is fixed: that of the indices. So an element of the result is one thread's, and where
// the updates go is known only when they are there. Each thread has a part of the slots, of one of what the
// indices do not address. The threads of a warp, which are neighbours in this order and so have the same part
// or a few that adjoin, look through the indices together: each at one of 32, and then all of them at those
// that somebody found to be in their parts, one after another.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/cuda/CudaKernel.h"

#include "dialects/gpuc/GpucOps.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {

void CudaKernelEmitter::emitScatterAdd() {
  int64_t slots = shapeOf(kernel_.yields().front())[cast<ScatterAddOp>(kernel_.root).getDim()];
  int64_t elements = std::max<int64_t>(loops_.outputs / loops_.slotParts, 1); // of a slot
  auto partOf = [&](Value output) { return arith::DivUIOp::create(builder_, output, index(elements)); };
  auto firstOf = [&](Value part) { return multiply(part, loops_.slotsOfPart); };
  auto endOf = [&](Value part) {
    return arith::MinUIOp::create(builder_, firstOf(add(part, index(1))), index(slots));
  };
  forTiles([&] {
    Value lane = arith::RemUIOp::create(builder_, column_, index(kWarp));
    Value firstOfWarp = arith::SubIOp::create(builder_, mine_, lane);
    Value part = partOf(output_);
    Slots own{firstOf(part), endOf(part)},
        ofWarp{firstOf(partOf(firstOfWarp)), endOf(partOf(add(firstOfWarp, index(kWarp - 1))))};
    Value element = arith::RemUIOp::create(builder_, output_, index(elements));
    setCoordinates(loops_.outputGroups, element, elements);
    ifHolds(exists_, [&] { copySlots(own); });
    addUpdates(own, ofWarp, lane);
  });
}

void CudaKernelEmitter::copySlots(Slots slots) {
  emitLoop(emitter_, slots.first, slots.end, 1, [&](Value slot) {
    setSlot(slot);
    copySlot();
  });
}

Value CudaKernelEmitter::isIn(Value slot, Slots slots) {
  Value count = arith::SubIOp::create(builder_, slots.end, slots.first);
  return below(arith::SubIOp::create(builder_, slot, slots.first), count); // without sign: far behind
}

void CudaKernelEmitter::addUpdates(Slots own, Slots ofWarp, Value lane) {
  SmallVector<size_t> ordered = groupsOf(Role::Ordered);
  int64_t count = 1; // of indices
  for (size_t group : ordered)
    count *= kernel_.groups[group].extent;
  auto standAt = [&](Value position) {
    if (!ordered.empty())
      setCoordinates(ordered, position, count);
  };
  emitLoop(emitter_, index(0), index(count), kWarp, [&](Value first) {
    Value position = add(first, lane);
    // In a loop of its own: what is read at this position is not read again at the next.
    Expr none = constantInt(builder_, builder_.getI32Type(), 0);
    Expr votes = emitLoop(emitter_, index(0), index(1), 1, {none}, [&](Value, const State &) -> State {
                   standAt(arith::MinUIOp::create(builder_, position, index(count - 1)));
                   Value wanted = isIn(chosenSlot(), ofWarp);
                   return {votesOfWarp(
                       builder_, arith::AndIOp::create(builder_, below(position, index(count)), wanted))};
                 }).front();
    Value found =
        zeroExtend({builder_, LLVM::CtPopOp::create(builder_, votes.value())}, builder_.getI64Type()).value();
    emitLoop(emitter_, index(0), found, 1, {votes}, [&](Value, const State &carried) -> State {
      Expr next(builder_, LLVM::CountTrailingZerosOp::create(builder_, votes.type(), carried[0].value(),
                                                             /*is_zero_poison=*/false));
      standAt(add(first, zeroExtend(next, builder_.getI64Type()).value()));
      Value chosen = chosenSlot();
      ifHolds(arith::AndIOp::create(builder_, exists_, isIn(chosen, own)), [&] {
        setSlot(chosen);
        addUpdate();
      });
      return {carried[0] & (carried[0] - carried[0].integer(1))};
    });
  });
}

} // namespace gpuc::codegen
