//===- ScanOp.cpp - Types, costs and builders of the loop over time ---------===//

#include "dialects/gpuc/TypeChecks.h"

using namespace mlir;

namespace gpuc::ir {

RankedTensorType ScanOp::sliceType(Type stacked, unsigned timeDim) {
  auto type = cast<RankedTensorType>(stacked);
  Shape shape(type.getShape());
  shape.erase(shape.begin() + timeDim);
  return RankedTensorType::get(shape, type.getElementType());
}

RankedTensorType ScanOp::stackType(Type slice, int64_t trips, unsigned timeDim) {
  auto type = cast<RankedTensorType>(slice);
  Shape shape(type.getShape());
  shape.insert(shape.begin() + timeDim, trips);
  return RankedTensorType::get(shape, type.getElementType());
}

int64_t ScanOp::getTripCount() {
  return getCount() ? static_cast<int64_t>(*getCount()) : shapeOf(getInputs().front())[getTimeDim()];
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

/// All but the result types and what the region holds; returns the region's block.
static Block *addOperands(OpBuilder &builder, OperationState &state, ValueRange inputs, ValueRange inits,
                          ValueRange captures, int64_t trips, bool batchFirst, bool reverse, bool recompute) {
  auto &properties = state.getOrAddProperties<ScanOp::Properties>();
  auto *block = new Block();
  state.addRegion()->push_back(block);
  for (ValueRange group : {inputs, inits, captures})
    state.addOperands(group);
  properties.operandSegmentSizes = {static_cast<int32_t>(inputs.size()), static_cast<int32_t>(inits.size()),
                                    static_cast<int32_t>(captures.size())};
  if (inputs.empty())
    properties.count = builder.getI64IntegerAttr(trips);
  if (batchFirst)
    properties.batch_first = builder.getUnitAttr();
  if (reverse)
    properties.reverse = builder.getUnitAttr();
  if (recompute)
    properties.recompute = builder.getUnitAttr();
  for (Value input : inputs)
    block->addArgument(ScanOp::sliceType(input.getType(), batchFirst), input.getLoc());
  for (ValueRange group : {inits, captures})
    for (Value value : group)
      block->addArgument(value.getType(), value.getLoc());
  return block;
}

void ScanOp::build(OpBuilder &builder, OperationState &state, ValueRange inputs, ValueRange inits,
                   ValueRange captures, TypeRange outputs, int64_t trips, bool reverse, bool recompute) {
  addOperands(builder, state, inputs, inits, captures, trips, /*batchFirst=*/false, reverse, recompute);
  state.addTypes(inits.getTypes());
  for (Type slice : outputs)
    state.addTypes(stackType(slice, trips));
}

void ScanOp::build(
    OpBuilder &builder, OperationState &state, ValueRange inputs, ValueRange inits, ValueRange captures,
    int64_t trips, bool batchFirst, bool reverse,
    function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange, ValueRange, ValueRange)> body) {
  Block *block =
      addOperands(builder, state, inputs, inits, captures, trips, batchFirst, reverse, /*recompute=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(block);
  auto arguments = block->getArguments();
  SmallVector<Value> yielded =
      body(builder, state.location, arguments.take_front(inputs.size()),
           arguments.slice(inputs.size(), inits.size()), arguments.take_back(captures.size()));
  YieldOp::create(builder, state.location, yielded);
  state.addTypes(inits.getTypes());
  for (Value slice : ArrayRef<Value>(yielded).drop_front(inits.size()))
    state.addTypes(stackType(slice.getType(), trips, batchFirst));
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

static LogicalResult checkTrips(ScanOp op) {
  if (op.getInputs().empty() != op.getCount().has_value())
    return op.emitOpError() << (op.getCount() ? "has inputs, which say how often it iterates, and a count"
                                              : "has neither inputs nor a count")
                            << " [scan_C1]";
  if (op.getCount() && static_cast<int64_t>(*op.getCount()) < 1)
    return op.emitOpError() << "count must be at least 1, but is " << static_cast<int64_t>(*op.getCount())
                            << " [scan_C1]";
  unsigned dim = op.getTimeDim();
  for (Value input : op.getInputs()) {
    RankedTensorType first = tensorType(op.getInputs().front()), type = tensorType(input);
    if (type.getRank() <= dim || type.isDynamicDim(dim) || type.getDimSize(dim) < 1)
      return op.emitOpError() << "iterates along dimension " << dim << " of input " << type
                              << ", whose extent is not known to be at least 1 [scan_C2]";
    if (type.getDimSize(dim) != first.getDimSize(dim))
      return op.emitOpError() << "iterates along dimension " << dim << " of inputs " << first << " and "
                              << type << ", whose extents differ [scan_C2]";
  }
  return success();
}

static LogicalResult checkRegion(ScanOp op) {
  SmallVector<Type> arguments;
  for (Value input : op.getInputs())
    arguments.push_back(ScanOp::sliceType(input.getType(), op.getTimeDim()));
  llvm::append_range(arguments, op.getInits().getTypes());
  llvm::append_range(arguments, op.getCaptures().getTypes());
  Block &block = op.getBlock();
  if (TypeRange(block.getArgumentTypes()) != TypeRange(arguments))
    return op.emitOpError() << "region takes (" << block.getArgumentTypes()
                            << "), but slices, carried values and captures are (" << arguments
                            << ") [scan_C4]";

  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield)
    return op.emitOpError() << "region must end in a gpuc.yield [scan_C5]";
  TypeRange yielded = yield.getValues().getTypes(), carried = op.getInits().getTypes();
  if (yielded.size() != op.getNumResults() || yielded.take_front(carried.size()) != carried)
    return op.emitOpError() << "region yields (" << yielded << "), but must yield (" << carried
                            << ") to carry and then a slice of each of "
                            << op.getNumResults() - std::min<size_t>(op.getNumResults(), carried.size())
                            << " outputs [scan_C5]";
  SmallVector<Type> results(carried);
  for (Type slice : yielded.drop_front(carried.size())) {
    if (cast<RankedTensorType>(slice).getRank() < op.getTimeDim())
      return op.emitOpError() << "yields the scalar " << slice << " with batch_first [scan_C5]";
    results.push_back(ScanOp::stackType(slice, op.getTripCount(), op.getTimeDim()));
  }
  if (op.getResultTypes() != TypeRange(results))
    return op.emitOpError() << "returns (" << op.getResultTypes() << "), but must return (" << results
                            << ") [scan_C3]";
  return success();
}

/// An op that may not stand in a region that is executed many times, and what to do instead.
static StringRef cureFor(Operation &op) {
  if (isa<ReadOp>(op))
    return "read the variable outside and pass it as a capture";
  if (isa<AssignOp>(op))
    return "carry the value and assign the final one outside";
  auto bits = dyn_cast<RandomBitsOp>(op);
  if (isa<RandomOpInterface>(op) && !(bits && bits.getFrom()))
    return "it would draw the same numbers in each iteration: draw them all outside and pass them as an "
           "input";
  if (isa<func::CallOp, GradientOp>(op))
    return "inline it";
  if (!isa<GpucDialect>(op.getDialect()) || !isMemoryEffectFree(&op))
    return "only pure ops of the gpuc dialect may";
  return "";
}

LogicalResult ScanOp::verify() {
  if (failed(checkTrips(*this)) || failed(checkRegion(*this)))
    return failure();
  for (Operation &op : getBlock().without_terminator())
    if (StringRef cure = cureFor(op); !cure.empty())
      return op.emitOpError() << "may not stand in a gpuc.scan: " << cure << " [scan_C6]";
  if (getParallel() && (!getInits().empty() || isa<ScanOp>((*this)->getParentOp())))
    return emitOpError() << "is parallel: it carries nothing and stands in no other scan [scan_C7]";
  return success();
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

int64_t ScanOp::getFlops() {
  int64_t flops = 0;
  for (auto op : getBlock().getOps<CostOpInterface>())
    flops += op.getFlops();
  return getTripCount() * flops;
}

int64_t ScanOp::getBytes() {
  int64_t bytes = 0;
  for (auto op : getBlock().getOps<CostOpInterface>())
    bytes += op.getBytes();
  return getTripCount() * bytes;
}

} // namespace gpuc::ir
