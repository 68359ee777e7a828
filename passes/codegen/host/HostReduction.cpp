//===- HostReduction.cpp - Reductions on the host ---------------------------===//
//
// The tree in which a reduction adds up follows from shape and lane count alone. Where the innermost
// dimension is kept, each lane folds its own column. Where it is folded, up to four vectors of partial
// results run along it, vector k taking every fourth one from k on; they are merged as (0, 1), (2, 3), then
// those; then the upper half of the lanes into the lower until one is left. Long loops are cut into blocks of
// 32 iterations, blocks of blocks likewise, each folded by itself: so the error of a sum grows with the
// logarithm of its length rather than with the length.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/host/HostKernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace gpuc::codegen {

constexpr int64_t blockIterations = 32;

/// How many levels of blocks a loop of so many iterations has above its innermost.
static int blockLevels(int64_t iterations) {
  int levels = 0;
  for (int64_t reach = 2 * blockIterations; reach < iterations; reach *= blockIterations)
    ++levels;
  return levels;
}

static State repeat(const State &state, unsigned copies) {
  State result;
  for (unsigned copy = 0; copy < copies; ++copy)
    result.append(state);
  return result;
}

/// One of `copies` states that lie one after another.
static State copyOf(const State &all, unsigned copies, unsigned copy) {
  size_t size = all.size() / copies;
  return State(ArrayRef(all).slice(copy * size, size));
}

/// Merges two lists of so many states, copy by copy.
static State mergeCopies(Folds &folds, const State &a, const State &b, unsigned copies) {
  State result;
  for (unsigned copy = 0; copy < copies; ++copy)
    result.append(folds.merge(copyOf(a, copies, copy), copyOf(b, copies, copy)));
  return result;
}

State HostKernelEmitter::blocked(Folds &folds, Value low, Value high, int64_t step, int levels, int64_t lanes,
                                 unsigned copies, llvm::function_ref<State(Value, const State &)> body) {
  State start = repeat(folds.identity(lanes), copies);
  if (levels == 0)
    return emitLoop(emitter_, low, high, step, start, body);
  int64_t block = step;
  for (int level = 0; level < levels; ++level)
    block *= blockIterations;
  return emitLoop(emitter_, low, high, block, start, [&](Value first, const State &state) {
    Value end = arith::AddIOp::create(builder_, first, index(block));
    Value last = arith::MinSIOp::create(builder_, end, high);
    State partial = blocked(folds, first, last, step, levels - 1, lanes, copies, body);
    return mergeCopies(folds, state, partial, copies);
  });
}

State HostKernelEmitter::foldGroups(Folds &folds, ArrayRef<size_t> groups, unsigned copies,
                                    llvm::function_ref<State()> innermost) {
  if (groups.empty())
    return innermost();
  int64_t extent = kernel_.groups[groups.front()].extent;
  int64_t lanes = loops_.laneGroup == HostLoops::none ? 1 : loops_.lanes;
  return blocked(folds, index(0), index(extent), 1, blockLevels(extent), lanes, copies,
                 [&](Value position, const State &state) {
                   emitter_.setCoordinate(groups.front(), position);
                   State next = foldGroups(folds, groups.drop_front(), copies, innermost);
                   return mergeCopies(folds, state, next, copies);
                 });
}

State HostKernelEmitter::sweepOver(Folds &folds, Expr mask) {
  State elements = folds.elements(mask);
  emitResults(writing_);
  return elements;
}

/// The whole lane group, folded into one vector.
State HostKernelEmitter::foldAlongLanes(Folds &folds) {
  int64_t lanes = loops_.lanes, extent = kernel_.groups[loops_.laneGroup].extent;
  unsigned copies = extent >= 4 * lanes ? 4 : 1;
  int64_t step = copies * lanes, whole = extent / step * step;
  auto elementsAt = [&](Value first, Expr mask, int64_t count) {
    emitter_.setCoordinate(loops_.laneGroup, first);
    emitter_.setLanes(loops_.laneGroup, lanes);
    emitter_.setTail(mask, count);
    for (auto [value, pointer] : keeping_)
      emitter_.store(emitter_.emitLanes(value, kernel_.everywhere), pointer, elementKind(value.getType()),
                     kernel_.placeInRow());
    return sweepOver(folds, mask);
  };
  State state = blocked(folds, index(0), index(whole), step, blockLevels(whole / step), lanes, copies,
                        [&](Value first, const State &carried) {
                          State elements;
                          for (unsigned copy = 0; copy < copies; ++copy) {
                            Value at = arith::AddIOp::create(builder_, first, index(copy * lanes));
                            elements.append(elementsAt(at, {}, lanes));
                          }
                          return mergeCopies(folds, carried, elements, copies);
                        });
  SmallVector<State> partials;
  for (unsigned copy = 0; copy < copies; ++copy)
    partials.push_back(copyOf(state, copies, copy));
  for (int64_t first = whole, copy = 0; first < extent; first += lanes, ++copy) {
    Expr mask = first + lanes <= extent ? Expr() : maskBelow(builder_, index(extent - first), lanes);
    partials[copy % copies] =
        folds.merge(partials[copy % copies], elementsAt(index(first), mask, extent - first));
  }
  while (partials.size() > 1) {
    SmallVector<State> merged;
    for (size_t pair = 0; pair < partials.size(); pair += 2)
      merged.push_back(folds.merge(partials[pair], partials[pair + 1]));
    partials = std::move(merged);
  }
  return partials.front();
}

bool HostKernelEmitter::foldsLanes() const {
  return loops_.laneGroup != HostLoops::none && kernel_.groups[loops_.laneGroup].role == Role::Ordered;
}

State HostKernelEmitter::foldRow(Folds &folds) {
  SmallVector<size_t> ordered = groupsOf(Role::Ordered);
  if (!foldsLanes())
    return foldGroups(folds, ordered, 1, [&] { return sweepOver(folds, {}); });
  // Lanes are set inside a region of their own: what follows it are scalars again.
  State vector =
      emitLoop(emitter_, index(0), index(1), 1, folds.identity(loops_.lanes), [&](Value, const State &) {
        return foldGroups(folds, ordered, 1, [&] { return foldAlongLanes(folds); });
      });
  return folds.mergeLanes(vector);
}

void HostKernelEmitter::reserveKept() {
  Type pointer = LLVM::LLVMPointerType::get(builder_.getContext());
  for (ArrayRef<Value> values : keptValues(kernel_)) {
    kept_.emplace_back();
    for (Value value : values) {
      Type element = memoryType(builder_.getContext(), elementKind(value.getType()), 1);
      Value count = index(kernel_.rowLength());
      kept_.back().push_back(
          {value, LLVM::AllocaOp::create(builder_, pointer, element, count, /*alignment=*/64)});
    }
  }
}

void HostKernelEmitter::emitRow() {
  for (auto [number, sweep] : llvm::enumerate(kernel_.sweeps)) {
    Folds folds(sweep, kernel_, emitter_);
    keeping_ = kept_[number];
    if (number + 1 == kernel_.sweeps.size())
      writing_ = kernel_.rowsInLastSweep;
    folds.bind(foldRow(folds));
    writing_ = {};
    for (auto [value, pointer] : keeping_)
      emitter_.readKept(value, pointer, kernel_.placeInRow());
  }
  SmallVector<unsigned> rows = kernel_.resultNumbers(/*wholeRows=*/true);
  if (!rows.empty() && kernel_.rowsInLastSweep.empty())
    forGroups(groupsOf(Role::Ordered), [&] {
      if (!foldsLanes())
        return emitResults(rows);
      forLanes(index(0), index(wholeLanes().high), wholeLanes(), [&] { emitResults(rows); });
    });
  // After the row's last sweep: one of these may take the place of an operand that every sweep reads.
  emitResults(kernel_.resultNumbers(/*wholeRows=*/false));
}

void HostKernelEmitter::emitColumns() {
  constexpr unsigned copies = 4;
  int64_t lanes = loops_.lanes;
  auto standAt = [&](Value first, unsigned copy) {
    emitter_.setCoordinate(loops_.laneGroup, arith::AddIOp::create(builder_, first, index(copy * lanes)));
    emitter_.setLanes(loops_.laneGroup, lanes);
  };
  Value length = arith::SubIOp::create(builder_, high_, low_);
  Value rest = arith::AndIOp::create(builder_, length, index(copies * lanes - 1));
  Value middle = arith::SubIOp::create(builder_, high_, rest);
  emitLoop(emitter_, low_, middle, copies * lanes, [&](Value first) {
    Folds folds(kernel_.sweeps.front(), kernel_, emitter_);
    writing_ = kernel_.rowsInLastSweep;
    State state = foldGroups(folds, groupsOf(Role::Ordered), copies, [&] {
      State elements;
      for (unsigned copy = 0; copy < copies; ++copy) {
        standAt(first, copy);
        elements.append(sweepOver(folds, {}));
      }
      return elements;
    });
    writing_ = {};
    for (unsigned copy = 0; copy < copies; ++copy) {
      standAt(first, copy);
      folds.bind(copyOf(state, copies, copy));
      emitResults(kernel_.resultNumbers(/*wholeRows=*/false));
    }
  });
  forLanes(middle, high_, wholeLanes(), [&] { emitRow(); });
}

void HostKernelEmitter::emitReduction() {
  reserveKept();
  if (!loops_.squares.empty())
    return emitRowsOfSquares();
  // Of columns side by side, one after another would use a cache line of each row and leave the next ones.
  bool sideBySide = !foldsLanes() && loops_.laneGroup != HostLoops::none && kernel_.sweeps.size() == 1 &&
                    kernel_.sweeps.front().size() <= 2 &&
                    kernel_.rowsInLastSweep.size() == kernel_.resultNumbers(/*wholeRows=*/true).size();
  forTiles([&] {
    forRows([&] {
      if (foldsLanes())
        return emitRow();
      if (sideBySide)
        return emitColumns();
      forLanes([&] { emitRow(); });
    });
  });
}

} // namespace gpuc::codegen
