//===- CudaReduction.cpp - Reductions on a GPU ------------------------------===//
//
// The tree in which a reduction adds up follows from its shape alone. Of P threads that share an output,
// thread p folds the positions p, p + P, p + 2P … in that order; of rows that lie one number behind the other
// a position is a vector, whose lanes are merged at the end, and what fills none is folded after it. Then the
// upper half of the P results is merged into the lower until one is left. Short folds are done by one thread.
// The same threads take the same positions in every sweep over a row, and when its results are written: in
// the last sweep if none of them needs anything of that, else in one more.
// Columns that lie side by side may be a vector as well, of which each lane is folded by itself.
//
// Neighbours in a warp give one another what they have. Others, and what is no number of 32 bits, meet in
// shared memory.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/cuda/CudaKernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace gpuc::codegen {

State CudaKernelEmitter::foldVectors(const State &start, llvm::function_ref<State(const State &)> body) {
  return emitLoop(emitter_, part_, index(loops_.foldedVectors()), loops_.parts, start,
                  [&](Value position, const State &carried) {
                    setCoordinates(loops_.foldedGroups, position, loops_.foldedVectors());
                    if (loops_.foldsLanes())
                      setLanes();
                    return body(carried);
                  });
}

State CudaKernelEmitter::foldRest(const State &start, llvm::function_ref<State(const State &)> body) {
  const int64_t whole = loops_.foldedVectors() * loops_.lanes;
  if (!loops_.foldsLanes() || whole == loops_.folded)
    return start;
  return emitLoop(emitter_, add(part_, index(whole)), index(loops_.folded), loops_.parts, start,
                  [&](Value position, const State &carried) {
                    emitter_.setCoordinate(loops_.foldedGroups.front(), position);
                    return body(carried);
                  });
}

void CudaKernelEmitter::forPart(Body body) {
  auto visit = [&](const State &) {
    body();
    return State();
  };
  foldVectors({}, visit);
  foldRest({}, visit);
}

State CudaKernelEmitter::foldPart(Folds &folds, ArrayRef<unsigned> rows) {
  auto elements = [&] {
    State state = folds.elements({});
    if (!rows.empty())
      ifHolds(exists_, [&] { emitResults(rows); });
    return state;
  };
  if (loops_.foldedGroups.empty())
    return elements();
  auto mergeElements = [&](const State &carried) { return folds.merge(carried, elements()); };
  State vectors = foldVectors(folds.identity(loops_.lanes), mergeElements);
  return loops_.foldsLanes() ? foldRest(folds.mergeLanes(vectors), mergeElements) : vectors;
}

Value CudaKernelEmitter::sharedElement(Value array, Type element, Value position) {
  return LLVM::GEPOp::create(builder_, array.getType(), element, array, ArrayRef<LLVM::GEPArg>{position});
}

/// Of a register, or a vector of them, in an array that begins at a multiple of 16 bytes.
static unsigned sharedAlignment(Expr register_) {
  const unsigned bytes = llvm::divideCeil(getElementTypeOrSelf(register_.type()).getIntOrFloatBitWidth(), 8);
  return std::min<unsigned>(bytes * static_cast<unsigned>(register_.lanes()), 16);
}

static bool isF32(const State &state) {
  return llvm::all_of(state, [](Expr register_) { return register_.type().isF32(); });
}

State CudaKernelEmitter::mergeParts(Folds &folds, const State &part, bool forAll) {
  if (loops_.adjacentColumns || !isF32(part))
    return mergeShared(folds, part, forAll);
  return loops_.parts <= kWarp ? mergeNeighbours(folds, part, loops_.parts) : mergeWarps(folds, part);
}

State CudaKernelEmitter::mergeNeighbours(Folds &folds, State part, int64_t count) {
  // Both threads of a pair merge the same two states, and merging is commutative.
  for (int64_t distance = count / 2; distance > 0; distance /= 2)
    part = folds.merge(part, llvm::map_to_vector<2>(part, [&](Expr x) { return fromThreadAt(x, distance); }));
  return part;
}

/// A row of several warps: each merges what it has, and then each the same results of all.
State CudaKernelEmitter::mergeWarps(Folds &folds, const State &part) {
  const int64_t warps = loops_.parts / kWarp;
  State own = mergeNeighbours(folds, part, kWarp), all;
  Value lane = arith::RemUIOp::create(builder_, part_, index(kWarp)),
        ownWarp = arith::DivUIOp::create(builder_, part_, index(kWarp)), first = multiply(column_, warps),
        other = arith::RemUIOp::create(builder_, lane, index(warps));
  SmallVector<Value> arrays;
  for (Expr register_ : own)
    arrays.push_back(shared_.take(builder_, register_.type(), loops_.columns * warps));
  ifHolds(below(lane, index(1)), [&] {
    for (auto [array, register_] : llvm::zip_equal(arrays, own))
      LLVM::StoreOp::create(builder_, register_.value(),
                            sharedElement(array, register_.type(), add(first, ownWarp)));
  });
  gpu::BarrierOp::create(builder_);
  for (auto [array, register_] : llvm::zip_equal(arrays, own))
    all.push_back(
        {builder_, LLVM::LoadOp::create(builder_, register_.type(),
                                        sharedElement(array, register_.type(), add(first, other)))});
  return mergeNeighbours(folds, all, warps);
}

State CudaKernelEmitter::mergeShared(Folds &folds, const State &part, bool forAll) {
  auto elementOf = [&](Value array, Expr register_, Value part) {
    return sharedElement(array, register_.type(), add(multiply(part, loops_.columns), column_));
  };
  SmallVector<Value> arrays;
  for (Expr register_ : part)
    arrays.push_back(shared_.take(builder_, register_.type(), loops_.block()));
  auto store = [&](const State &state) {
    for (auto [array, register_] : llvm::zip_equal(arrays, state))
      LLVM::StoreOp::create(builder_, register_.value(), elementOf(array, register_, part_),
                            sharedAlignment(register_));
  };
  auto load = [&](Value from) {
    State state;
    for (auto [array, register_] : llvm::zip_equal(arrays, part))
      state.push_back(
          {builder_, LLVM::LoadOp::create(builder_, register_.type(), elementOf(array, register_, from),
                                          sharedAlignment(register_))});
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
    ifHolds(exists_, [&] { forPart([&] { emitResults(rows); }); });
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
