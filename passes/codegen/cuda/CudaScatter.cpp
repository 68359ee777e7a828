//===- CudaScatter.cpp - Updates added where indices say --------------------===//
//
// The order of a sum is fixed: that of the indices. So an element of the result is one thread's, and where
// the updates go is known only when they are there. Each thread has a part of the slots, of one of what the
// indices do not address: it looks through all indices for those of its part. Most it passes over; what that
// costs is waiting for loads, which several at once share.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/cuda/CudaKernel.h"

#include "dialects/gpuc/GpucOps.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {

constexpr int64_t indicesAtOnce = 4;

void CudaKernelEmitter::emitScatterAdd() {
  int64_t slots = shapeOf(kernel_.yields().front())[cast<ScatterAddOp>(kernel_.root).getDim()];
  int64_t elements = std::max<int64_t>(loops_.outputs / loops_.slotParts, 1); // of a slot
  forTiles([&] {
    ifHolds(exists_, [&] {
      Value part = arith::DivUIOp::create(builder_, output_, index(elements));
      Value element = arith::RemUIOp::create(builder_, output_, index(elements));
      setCoordinates(loops_.outputGroups, element, elements);
      Value first = multiply(part, loops_.slotsOfPart);
      Value end = arith::MinUIOp::create(builder_, add(first, index(loops_.slotsOfPart)), index(slots));
      copySlots(first, end);
      addUpdates(first, end);
    });
  });
}

void CudaKernelEmitter::copySlots(Value first, Value end) {
  emitLoop(emitter_, first, end, 1, [&](Value slot) {
    setSlot(slot);
    copySlot();
  });
}

void CudaKernelEmitter::addUpdates(Value first, Value end) {
  Value count = arith::SubIOp::create(builder_, end, first);
  forIndices([&](Value chosen) {
    ifHolds(below(arith::SubIOp::create(builder_, chosen, first), count), [&] {
      setSlot(chosen);
      addUpdate();
    });
  });
}

/// Several positions of the innermost dimension together; those that are left behind them one by one.
void CudaKernelEmitter::forIndices(llvm::function_ref<void(Value chosen)> body) {
  SmallVector<size_t> ordered = groupsOf(Role::Ordered);
  if (ordered.empty())
    return body(chosenSlot());
  size_t innermost = ordered.pop_back_val();
  auto visit = [&](int64_t begin, int64_t end, int64_t count) {
    if (begin == end)
      return;
    emitLoop(emitter_, index(begin), index(end), count, [&](Value position) {
      SmallVector<std::pair<Value, Value>, indicesAtOnce> loaded; // position, slot
      for (int64_t i = 0; i < count; ++i) {
        Value at = add(position, index(i));
        emitter_.setCoordinate(innermost, at);
        loaded.push_back({at, chosenSlot()});
      }
      for (auto [at, chosen] : loaded) {
        emitter_.setCoordinate(innermost, at);
        body(chosen);
      }
    });
  };
  int64_t extent = kernel_.groups[innermost].extent, together = extent - extent % indicesAtOnce;
  forGroups(ordered, [&] {
    visit(0, together, indicesAtOnce);
    visit(together, extent, 1);
  });
}

} // namespace gpuc::codegen
