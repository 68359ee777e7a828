//===- CudaReduction.cpp - Reductions on a GPU ------------------------------===//
//
// The tree in which a reduction adds up follows from its shape alone. Of P threads that share an output,
// thread p folds the positions p, p + P, p + 2P … in that order; the P results lie in shared memory, and the
// upper half is merged into the lower until one is left. Short folds are done by one thread. The same threads
// take the same positions in every sweep over a row, and when its results are written: in the last sweep if
// none of them needs anything of that, else in one more.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/cuda/CudaKernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace gpuc::codegen {

State CudaKernelEmitter::foldPart(Folds &folds, ArrayRef<unsigned> rows) {
  auto elements = [&] {
    State state = folds.elements({});
    if (!rows.empty())
      ifHolds(exists_, [&] { emitResults(rows); });
    return state;
  };
  if (loops_.foldedGroups.empty())
    return elements();
  return emitLoop(emitter_, part_, index(loops_.folded), loops_.parts, folds.identity(1),
                  [&](Value position, const State &carried) {
                    setCoordinates(loops_.foldedGroups, position, loops_.folded);
                    return folds.merge(carried, elements());
                  });
}

Value CudaKernelEmitter::sharedElement(Value array, Type element, Value part) {
  Value position = add(multiply(part, loops_.columns), column_);
  return LLVM::GEPOp::create(builder_, array.getType(), element, array, ArrayRef<LLVM::GEPArg>{position});
}

State CudaKernelEmitter::mergeParts(Folds &folds, const State &part, bool forAll) {
  SmallVector<Value> arrays;
  for (Expr register_ : part)
    arrays.push_back(sharedArray(function_, builder_, register_.type(), loops_.block()));
  auto store = [&](const State &state) {
    for (auto [array, register_] : llvm::zip_equal(arrays, state))
      LLVM::StoreOp::create(builder_, register_.value(), sharedElement(array, register_.type(), part_));
  };
  auto load = [&](Value from) {
    State state;
    for (auto [array, register_] : llvm::zip_equal(arrays, part))
      state.push_back({builder_, LLVM::LoadOp::create(builder_, register_.type(),
                                                      sharedElement(array, register_.type(), from))});
    return state;
  };
  store(part);
  for (int64_t half = loops_.parts / 2; half >= 1; half /= 2) {
    gpu::BarrierOp::create(builder_);
    ifHolds(below(part_, index(half)),
            [&] { store(folds.merge(load(part_), load(add(part_, index(half))))); });
  }
  if (!forAll)
    return load(part_); // a thread reads only what it wrote itself: no barrier
  gpu::BarrierOp::create(builder_);
  return load(index(0));
}

void CudaKernelEmitter::emitRow() {
  bool shares = loops_.parts > 1;
  SmallVector<unsigned> rows = kernel_.resultNumbers(/*wholeRows=*/true),
                        single = kernel_.resultNumbers(/*wholeRows=*/false);
  if (!kernel_.rowsInLastSweep.empty())
    rows.clear();
  for (ArrayRef<Operation *> sweep : kernel_.sweeps) {
    Folds folds(sweep, kernel_, emitter_);
    bool isLast = sweep.data() == kernel_.sweeps.back().data();
    State part = foldPart(folds, isLast ? ArrayRef(kernel_.rowsInLastSweep) : ArrayRef<unsigned>());
    folds.bind(shares ? mergeParts(folds, part, /*forAll=*/!isLast || !rows.empty()) : part);
  }
  if (!rows.empty())
    ifHolds(exists_, [&] {
      emitLoop(emitter_, part_, index(loops_.folded), loops_.parts, [&](Value position) {
        setCoordinates(loops_.foldedGroups, position, loops_.folded);
        emitResults(rows);
      });
    });
  if (single.empty())
    return;
  if (!shares)
    return emitResults(single);
  if (!rows.empty())
    gpu::BarrierOp::create(builder_); // others may still read what one of these takes the place of
  Value first = below(part_, index(1));
  ifHolds(arith::AndIOp::create(builder_, first, exists_), [&] { emitResults(single); });
}

void CudaKernelEmitter::emitReduction() {
  if (loops_.parts == 1)
    return forOutputs([&] { emitRow(); });
  forTiles([&] {
    // All threads of a block must reach its barriers: those without an output fold the last one, and keep it
    // to themselves.
    setCoordinates(loops_.outputGroups, output_, loops_.outputs);
    emitRow();
    if (tiles_.several)
      gpu::BarrierOp::create(builder_); // before the next tile's parts take their places
  });
}

} // namespace gpuc::codegen
