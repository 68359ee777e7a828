//===- HostOrdered.cpp - Running sums, scatters and sorts on the host -------===//

#include "passes/codegen/host/HostKernel.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/codegen/Sort.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {

/// One element after another along the dimension, the others side by side. f16 and bf16 are carried in f32;
/// each result is rounded from there.
void HostKernelEmitter::emitCumsum() {
  SmallVector<size_t> scanned = groupsOf(Role::Ordered);
  auto [operand, index] = rootOperands(kernel_).front();
  ElementKind kind = elementKind(operand.getType());
  auto step = [&](Expr carried) {
    Expr total = carried + toCompute(emitter_->emitLanes(operand, index), kind);
    emitter_->bind(kernel_.root, fromCompute(total, kind));
    emitResults(kernel_.resultNumbers(/*wholeRows=*/false));
    return total;
  };
  forTiles([&] {
    forRows([&] {
      forLanes([&] {
        int64_t lanes = emitter_->lanes();
        Expr zero = toCompute(numberIn(builder_, kind, lanes, 0), kind);
        if (scanned.empty()) {
          step(zero);
          return;
        }
        Value extent = this->index(kernel_.groups[scanned.front()].extent);
        loop(this->index(0), extent, 1, {zero}, [&](Value position, const State &carried) -> State {
          emitter_->setCoordinate(scanned.front(), position);
          return {step(carried[0])};
        });
      });
    });
  });
}

/// Copies init, then adds the updates in row-major order of the indices. A tile is a part of what the indices
/// do not address, so no two tiles write the same element.
void HostKernelEmitter::emitScatterAdd() {
  auto operands = rootOperands(kernel_);
  auto [init, initIndex] = operands[0];
  auto [indices, indicesIndex] = operands[1];
  auto [updates, updatesIndex] = operands[2];
  auto scatter = cast<ScatterAddOp>(kernel_.root);
  Value result = scatter.getResult();
  ElementKind kind = elementKind(result.getType());
  Affine address = linearAddress(kernel_.resultIndex, shapeOf(result), kernel_.space());
  SmallVector<size_t> slots = groupsOf(Role::Slot);
  int64_t slotCount = shapeOf(result)[scatter.getDim()];

  auto writeFirst = [&, &init = init, &initIndex = initIndex] {
    emitter_->store(emitter_->emitLanes(init, initIndex), resultPointer(0), kind, address);
  };
  auto addOne = [&, &updates = updates, &updatesIndex = updatesIndex] {
    Expr update = toCompute(emitter_->emitLanes(updates, updatesIndex), kind);
    Expr total = toCompute(emitter_->load(resultPointer(0), kind, address), kind) + update;
    emitter_->store(fromCompute(total, kind), resultPointer(0), kind, address);
  };
  auto addAll = [&, &indices = indices, &indicesIndex = indicesIndex] {
    Expr chosen = castElement(emitter_->emit(indices, indicesIndex).expr, elementKind(indices.getType()),
                              ElementKind::I64);
    Value inside = arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, chosen.value(),
                                         chosen.integer(slotCount).value());
    auto guarded = scf::IfOp::create(builder_, inside, /*withElseRegion=*/false);
    emitter_->enter(guarded.getThenRegion());
    for (size_t slot : slots)
      emitter_->setCoordinate(slot, chosen.value());
    forLanes(addOne);
    emitter_->leave();
  };
  // Row by row, as they lie in memory; indices never vary along the lanes.
  forTiles([&] {
    forRows([&] {
      forGroups(slots, [&] { forLanes(writeFirst); });
      forGroups(groupsOf(Role::Ordered), addAll);
    });
  });
}

void HostKernelEmitter::emitSort() {
  RowSorter sorter(kernel_, *emitter_, resultPointer(0), resultPointer(1));
  bool whole = kernel_.form == Form::Sort;
  forTiles([&] { forRows([&] { forLanes([&] { whole ? sorter.emitSort() : sorter.emitTopK(); }); }); });
}

} // namespace gpuc::codegen
