//===- HostKernel.cpp - A kernel as a function over tiles -------------------===//

#include "passes/codegen/host/HostKernel.h"

#include "dialects/gpuc/GpucOps.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <limits>

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {

static bool hasWindows(const Kernel &kernel) {
  return llvm::any_of(*kernel.body, [](Operation &op) { return isPooling(&op); });
}

/// Whether the code is as fast if it does not know how many rows there are, and how far apart: a row is long,
/// and not read by windows, which take 5% longer.
static bool mayHaveRowsBeside(const Kernel &kernel, const HostLoops &loops) {
  constexpr int64_t leastVectors = 3;
  const bool isRow = loops.laneGroup != HostLoops::none && !loops.rowGroups.empty() &&
                     kernel.groups[loops.laneGroup].extent >= leastVectors * loops.lanes;
  return isRow && loops.squares.empty() && !hasWindows(kernel) &&
         (kernel.form == Form::Elementwise || kernel.form == Form::Reduction);
}

HostKernelEmitter::HostKernelEmitter(func::FuncOp function, ImplicitLocOpBuilder &builder,
                                     const Kernel &kernel, const HostLoops &loops, ArrayRef<Value> pointers,
                                     const std::optional<ProductTiles> &productTiles)
    : KernelEmitter(builder, kernel, pointers, *function->getParentOfType<ModuleOp>().getBody(),
                    function.getName(), loops.laneGroup),
      loops_(loops), begin_(function.getArgument(1)), end_(function.getArgument(2)),
      parameterPointer_(function.getArgument(3)), afterParameters_(&builder.getInsertionBlock()->back()) {
  if (!hasWindows(kernel)) // whose loops are over windows: they took 6 to 9% longer so
    emitter_.splitAddresses();
  for (auto random : kernel.body->getOps<RandomBitsOp>())
    emitter_.setRandomId(random, parameter(random.getId()));
  if (!kernel.body->getOps<RandomBitsOp>().empty())
    setNumbers();
  if (productTiles) {
    const auto &[rows, columns, tileRows, tileColumns, stride] = *productTiles;
    product_ = {parameter(rows),
                parameter(columns),
                parameter(tileRows),
                parameter(tileColumns),
                parameter(llvm::divideCeil(columns, tileColumns)),
                parameter(stride - columns)};
  } else if (kernel.form == Form::Elementwise && kernel.groups.size() == 1 && loops.laneGroup == 0) {
    laneExtent_ = parameter(loops.laneExtent);
    chunk_ = parameter(loops.chunk);
  } else if (mayHaveRowsBeside(kernel, loops)) {
    rowsAreBeside_ = true;
    lanesAreBeside_ = kernel.form == Form::Elementwise && loops.laneRanges.size() == 1 &&
                      loops.laneExtent >= 8 * loops.lanes;
    SmallVector<size_t> across;
    for (size_t group = 0; group < kernel.groups.size(); ++group)
      if (group != loops.laneGroup)
        across.push_back(group);
    emitter_.setStrides(across, [&](int64_t stride) { return rowNumber(RowNumber::Stride, stride); });
  }
}

/// Initial weights of layers differ in their scale alone, and each such kernel takes LLVM 25 ms.
void HostKernelEmitter::setNumbers() {
  for (auto constant : kernel_.body->getOps<ConstantOp>()) {
    auto splat = dyn_cast_or_null<FloatAttr>(constant.getSplat());
    if (!splat || !splat.getType().isF32())
      continue;
    int64_t bits = llvm::bit_cast<int64_t>(splat.getValueAsDouble());
    Value wide = arith::BitcastOp::create(builder_, builder_.getF64Type(), parameter(bits));
    emitter_.setNumber(constant, arith::TruncFOp::create(builder_, builder_.getF32Type(), wide));
  }
}

Value HostKernelEmitter::parameter(int64_t number) {
  Type pointer = LLVM::LLVMPointerType::get(builder_.getContext()), integer = builder_.getI64Type();
  auto place = static_cast<int32_t>(parameters_.size());
  parameters_.push_back(number);
  OpBuilder::InsertionGuard guard(builder_);
  builder_.setInsertionPointAfter(afterParameters_);
  Value address =
      LLVM::GEPOp::create(builder_, pointer, integer, parameterPointer_, ArrayRef<LLVM::GEPArg>{place});
  auto load = LLVM::LoadOp::create(builder_, integer, address);
  afterParameters_ = load;
  return load;
}

Value HostKernelEmitter::rowNumber(RowNumber what, int64_t number) {
  if (!rowsAreBeside_)
    return index(number);
  Value &known = rowNumbers_[{what, number}];
  return known ? known : known = parameter(number);
}

/// By a number that the code does not know a division takes some 40 cycles, so it is a product with
/// ⌈2⁶⁴ / extent⌉, of which the upper half counts: exact as long as row · extent < 2⁶⁴.
std::pair<Value, Value> HostKernelEmitter::divideRow(Value row, int64_t extent) {
  Value divisor = rowNumber(RowNumber::Extent, extent);
  if (!rowsAreBeside_)
    return {arith::RemUIOp::create(builder_, row, divisor), arith::DivUIOp::create(builder_, row, divisor)};
  const uint64_t reciprocal = std::numeric_limits<uint64_t>::max() / static_cast<uint64_t>(extent) + 1;
  Value factor = rowNumber(RowNumber::Reciprocal, static_cast<int64_t>(reciprocal));
  Value quotient = arith::MulUIExtendedOp::create(builder_, row, factor).getHigh();
  Value passed = arith::MulIOp::create(builder_, quotient, divisor);
  return {arith::SubIOp::create(builder_, row, passed), quotient};
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

static Value lesserOf(ImplicitLocOpBuilder &builder, Value a, Value b) {
  return arith::MinSIOp::create(builder, a, b);
}

/// What else lies as the product does, weights and the optimizer's state, is read and written in pieces of
/// rows, too short for the processor to foresee. So lines of a row to come are asked for, to be written: an
/// MLP of 784-1024-1024-1024-10, batch 128, AdamW on two threads takes 8.5 ms instead of 9.2. Past the last
/// row it is asked in vain, and no harm.
void HostKernelEmitter::prefetchRow(Value row, Value left, Value right) {
  constexpr int64_t rowsAhead = 8, lineBytes = 64;
  Type pointer = LLVM::LLVMPointerType::get(builder_.getContext());
  Value start = arith::MulIOp::create(builder_, add(row, index(rowsAhead)), product_.columns);
  for (BlockArgument operand : kernel_.body->getArguments().drop_front()) {
    if (elementCount(operand.getType()) != kernel_.groups.front().extent)
      continue;
    const int64_t bytes = elementBytes(getElementTypeOrSelf(operand.getType()));
    Type memory = builder_.getIntegerType(8 * static_cast<unsigned>(bytes));
    emitLoop(emitter_, add(start, left), add(start, right), lineBytes / bytes, [&](Value at) {
      Value line = LLVM::GEPOp::create(builder_, pointer, memory, pointers_[operand.getArgNumber()],
                                       ArrayRef<LLVM::GEPArg>{at});
      LLVM::Prefetch::create(builder_, line, /*rw=*/1, /*hint=*/2, /*cache=*/1);
    });
  }
}

/// Row by row, of which each is a piece of the one that all elements form. What is at an element of the
/// product is where it would be if its rows adjoined, and the gaps that are before it.
void HostKernelEmitter::forProductTiles(Body body) {
  auto multiply = [&](Value a, Value b) -> Value { return arith::MulIOp::create(builder_, a, b); };
  Type pointer = LLVM::LLVMPointerType::get(builder_.getContext());
  Type element = getElementTypeOrSelf(kernel_.body->getArgument(0).getType());
  Type memory = builder_.getIntegerType(8 * static_cast<unsigned>(elementBytes(element)));
  const Value product = pointers_.front();
  emitLoop(emitter_, begin_, end_, 1, [&](Value tile) {
    Value across = arith::RemUIOp::create(builder_, tile, product_.tilesAcross);
    Value first = multiply(arith::DivUIOp::create(builder_, tile, product_.tilesAcross), product_.tileRows);
    Value last = lesserOf(builder_, add(first, product_.tileRows), product_.rows);
    Value left = multiply(across, product_.tileColumns);
    Value right = lesserOf(builder_, add(left, product_.tileColumns), product_.columns);
    emitLoop(emitter_, first, last, 1, [&](Value row) {
      Value start = multiply(row, product_.columns);
      low_ = add(start, left);
      high_ = add(start, right);
      emitter_.setPointer(0, LLVM::GEPOp::create(builder_, pointer, memory, product,
                                                 ArrayRef<LLVM::GEPArg>{multiply(row, product_.gap)}));
      prefetchRow(row, left, right);
      body();
    });
  });
}

void HostKernelEmitter::forTiles(Body body) {
  if (product_.rows)
    return forProductTiles(body);
  emitLoop(emitter_, begin_, end_, 1, [&](Value tile) {
    rowTile_ = tile;
    if (laneExtent_) {
      low_ = arith::MulIOp::create(builder_, tile, chunk_);
      high_ = lesserOf(builder_, arith::AddIOp::create(builder_, low_, chunk_), laneExtent_);
      return body();
    }
    low_ = index(0);
    high_ = laneNumber(RowNumber::Lanes, loops_.laneExtent);
    if (loops_.chunks() > 1) {
      Value chunk = laneNumber(RowNumber::Chunk, loops_.chunk);
      auto [part, passed] = divideRow(tile, loops_.chunks());
      rowTile_ = passed;
      low_ = arith::MulIOp::create(builder_, part, chunk);
      high_ = lesserOf(builder_, add(low_, chunk), high_);
    }
    body();
  });
}

void HostKernelEmitter::forRows(Body body, int64_t by) {
  if (loops_.rowGroups.empty())
    return body();
  Value step = rowNumber(RowNumber::RowsPerTile, loops_.rowsPerTile);
  Value first = arith::MulIOp::create(builder_, rowTile_, step);
  Value last = lesserOf(builder_, add(first, step), rowNumber(RowNumber::Rows, loops_.rows));
  emitLoop(emitter_, first, last, by, [&](Value row) {
    for (size_t group : llvm::reverse(loops_.rowGroups)) {
      if (group == loops_.rowGroups.front()) {
        emitter_.setCoordinate(group, row);
        continue;
      }
      auto [position, passed] = divideRow(row, kernel_.groups[group].extent);
      emitter_.setCoordinate(group, position);
      row = passed;
    }
    body();
  });
}

/// The kernel once for each range that a row may be in: with a concat's or a pad's operands chosen for each
/// element, all of them would be computed for all elements.
void HostKernelEmitter::inRowRange(Body body) {
  if (loops_.cutGroup == HostLoops::none)
    return body();
  Value position = emitter_.coordinateOf(loops_.cutGroup);
  for (Range range : loops_.rowRanges) {
    Value isInside = arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult,
                                           arith::SubIOp::create(builder_, position, index(range.low)),
                                           index(range.high - range.low));
    ifHolds(isInside, [&] {
      emitter_.setCoordinate(loops_.cutGroup, position, range);
      body();
    });
  }
}

Expr maskBelow(ImplicitLocOpBuilder &builder, Value count, int64_t lanes) {
  Expr lane = laneNumbers(builder, builder.getI32Type(), lanes);
  return less(lane, splat(narrow(Expr(builder, count), builder.getI32Type()), lanes));
}

void HostKernelEmitter::forLanes(Body body) {
  if (loops_.laneGroup == HostLoops::none)
    return body();
  for (Range range : loops_.laneRanges) {
    // A tile begins and ends at a multiple of the lanes, or at the group's end, and so do ranges.
    Value low = range.low == 0 ? low_ : arith::MaxSIOp::create(builder_, low_, index(range.low)).getResult();
    Value high = range.high == wholeLanes().high ? high_ : lesserOf(builder_, high_, index(range.high));
    forLanes(low, high, range, body);
  }
}

void HostKernelEmitter::forLanes(Value low, Value high, Range range, Body body) {
  int64_t lanes = loops_.lanes;
  auto lanesFrom = [&](Value first) {
    emitter_.setCoordinate(loops_.laneGroup, first, range);
    emitter_.setLanes(loops_.laneGroup, lanes);
  };
  auto whole = [&](Value end) {
    emitLoop(emitter_, low, end, lanes, [&](Value first) {
      lanesFrom(first);
      body();
    });
  };
  if (range.high % lanes == 0 && !product_.rows) // where each row of a tile has an end
    return whole(high);
  Value length = arith::SubIOp::create(builder_, high, low);
  Value rest = arith::AndIOp::create(builder_, length, index(lanes - 1));
  Value middle = arith::SubIOp::create(builder_, high, rest);
  whole(middle);
  Value any = arith::CmpIOp::create(builder_, arith::CmpIPredicate::ne, rest, index(0));
  ifHolds(any, [&] {
    lanesFrom(middle);
    // Of a tile each row has an end, of as many lanes as only the call knows.
    emitter_.setTail(maskBelow(builder_, rest, lanes), product_.rows ? 0 : range.high % lanes);
    body();
  });
}

void HostKernelEmitter::forOutputs(Body body) {
  if (!loops_.squares.empty())
    return forSquares(body);
  forTiles([&] { forRows([&] { inRowRange([&] { forLanes(body); }); }); });
}

/// Copies init, then adds the updates in row-major order of the indices. A tile is a part of what the indices
/// do not address, so no two tiles write the same element.
void HostKernelEmitter::emitScatterAdd() {
  int64_t slots = shapeOf(kernel_.yields().front())[cast<ScatterAddOp>(kernel_.root).getDim()];
  auto addAll = [&] {
    Value chosen = chosenSlot();
    ifHolds(below(chosen, index(slots)), [&] {
      setSlot(chosen);
      forLanes([&] { addUpdate(); });
    });
  };
  // Row by row, as they lie in memory; indices never vary along the lanes.
  forTiles([&] {
    forRows([&] {
      forGroups(groupsOf(Role::Slot), [&] { forLanes([&] { copySlot(); }); });
      forGroups(groupsOf(Role::Ordered), addAll);
    });
  });
}

std::vector<int64_t> emitHostKernel(ModuleOp module, StringRef symbol, Block &body, const HostTarget &target,
                                    const std::optional<ProductTiles> &productTiles) {
  MLIRContext *context = module.getContext();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(context), integer = builder.getI64Type();
  auto type = builder.getFunctionType({pointer, integer, integer, pointer}, {});
  auto function = func::FuncOp::create(builder, module.getLoc(), symbol, type);
  Kernel kernel(body);
  HostLoops loops(kernel, target);
  auto inside = ImplicitLocOpBuilder::atBlockBegin(module.getLoc(), function.addEntryBlock());
  SmallVector<Value> pointers;
  for (size_t number = 0; number < body.getNumArguments() + kernel.yields().size(); ++number) {
    Value slot = LLVM::GEPOp::create(inside, pointer, pointer, function.getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(number)});
    pointers.push_back(LLVM::LoadOp::create(inside, pointer, slot));
  }
  HostKernelEmitter emitter(function, inside, kernel, loops, pointers, productTiles);
  emitter.run();
  func::ReturnOp::create(inside);
  if (emitter.parameters().empty())
    (void)function.eraseArgument(3); // without a use, so it can be
  return emitter.parameters();
}

} // namespace gpuc::codegen
