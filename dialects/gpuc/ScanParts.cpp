//===- ScanParts.cpp - A scan taken apart, to be put together otherwise ------===//

#include "dialects/gpuc/ScanParts.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace gpuc::ir {

bool isSplatInit(OpOperand &use) {
  auto scan = dyn_cast<ScanOp>(use.getOwner());
  auto constant = use.get().getDefiningOp<ConstantOp>();
  if (!scan || !constant || !constant.getSplat())
    return false;
  size_t first = scan.getInputs().size(), number = use.getOperandNumber();
  return first <= number && number < first + scan.getInits().size();
}

ScanParts::ScanParts(ScanOp op) : scan(op), trips(op.getTripCount()) {
  for (auto [outer, inner] : llvm::zip_equal(op.getInputs(), op.getSlices()))
    inputs.push_back({outer, inner});
  for (auto [init, inner, next, result] :
       llvm::zip_equal(op.getInits(), op.getCarries(), op.getNextCarries(), op.getFinals()))
    carries.push_back({init, inner, next, result});
  for (auto [outer, inner] : llvm::zip_equal(op.getCaptures(), op.getCaptured()))
    captures.push_back({outer, inner});
  for (auto [slice, result] : llvm::zip_equal(op.getOutputSlices(), op.getOutputs()))
    outputs.push_back({slice, result});
}

static Value findInner(ArrayRef<ScanParts::Argument> arguments, Value outer) {
  for (const ScanParts::Argument &argument : arguments)
    if (argument.outer == outer)
      return argument.inner;
  return {};
}

Value ScanParts::addInput(Value stacked) {
  if (Value known = findInner(inputs, stacked))
    return known;
  Value inner = block().addArgument(ScanOp::sliceType(stacked.getType()), stacked.getLoc());
  return inputs.push_back({stacked, inner}), inner;
}

Value ScanParts::addCapture(Value value) {
  if (Value known = findInner(captures, value))
    return known;
  Value inner = block().addArgument(value.getType(), value.getLoc());
  return captures.push_back({value, inner}), inner;
}

Value ScanParts::addCarry(Value init, Value next) {
  Value inner = block().addArgument(init.getType(), init.getLoc());
  return carries.push_back({init, inner, next, {}}), inner;
}

Value ScanParts::addArgumentOf(const ScanParts &other, Value inner) {
  for (const Argument &input : other.inputs)
    if (input.inner == inner)
      return addInput(input.outer);
  for (const Argument &capture : other.captures)
    if (capture.inner == inner)
      return addCapture(capture.outer);
  return {};
}

size_t ScanParts::addOutput(Value slice) {
  auto known = llvm::find_if(outputs, [&](const Output &output) { return output.slice == slice; });
  if (known == outputs.end())
    known = outputs.insert(outputs.end(), {slice, {}});
  return known - outputs.begin();
}

void ScanParts::replace(RewriterBase &rewriter, Value from, Value to) {
  rewriter.replaceAllUsesWith(from, to);
  for (Carry &carry : carries)
    carry.next = carry.next == from ? to : carry.next;
  for (Output &output : outputs)
    output.slice = output.slice == from ? to : output.slice;
}

void ScanParts::updateYield(RewriterBase &rewriter) {
  SmallVector<Value> yielded;
  for (const Carry &carry : carries)
    yielded.push_back(carry.next);
  for (const Output &output : outputs)
    yielded.push_back(output.slice);
  Operation *yield = block().getTerminator();
  rewriter.modifyOpInPlace(yield, [&] { yield->setOperands(yielded); });
}

void ScanParts::readYield() {
  OperandRange yielded = block().getTerminator()->getOperands();
  for (auto [carry, next] : llvm::zip_equal(carries, yielded.take_front(carries.size())))
    carry.next = next;
  for (auto [output, slice] : llvm::zip_equal(outputs, yielded.drop_front(carries.size())))
    output.slice = slice;
}

ScanOp ScanParts::rebuild(RewriterBase &rewriter) {
  auto outer = [](const Argument &argument) { return argument.outer; };
  auto init = [](const Carry &carry) { return carry.init; };
  auto sliceType = [](const Output &output) { return output.slice.getType(); };
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(scan);
  auto built =
      ScanOp::create(rewriter, scan.getLoc(), llvm::map_to_vector(inputs, outer),
                     llvm::map_to_vector(carries, init), llvm::map_to_vector(captures, outer),
                     llvm::map_to_vector(outputs, sliceType), trips, scan.getReverse(), scan.getRecompute());
  built.setChunked(scan.getChunked());
  built.setParallel(scan.getParallel());
  built->setDiscardableAttrs(scan->getDiscardableAttrDictionary());

  updateYield(rewriter);
  Block &from = block(), &to = built.getBlock();
  DenseMap<Value, Value> places; // the old block's arguments → the new one's
  size_t next = 0;
  for (const Argument &argument : inputs)
    places[argument.inner] = to.getArgument(next++);
  for (const Carry &carry : carries)
    places[carry.inner] = to.getArgument(next++);
  for (const Argument &argument : captures)
    places[argument.inner] = to.getArgument(next++);
  from.eraseArguments([&](BlockArgument argument) { return !places.contains(argument); });
  auto replacements =
      llvm::map_to_vector(from.getArguments(), [&](BlockArgument old) { return places.lookup(old); });
  rewriter.mergeBlocks(&from, &to, replacements);

  for (auto [carry, result] : llvm::zip_equal(carries, built.getFinals()))
    if (carry.result)
      rewriter.replaceAllUsesWith(carry.result, result);
  for (auto [output, result] : llvm::zip_equal(outputs, built.getOutputs()))
    if (output.result)
      rewriter.replaceAllUsesWith(output.result, result);
  rewriter.eraseOp(scan);
  return scan = built;
}

} // namespace gpuc::ir
