//===- WrittenAgain.cpp - Results that the backward pass writes again ---------===//

#include "passes/base/WrittenAgain.h"

#include "dialects/gpuc/GpucOps.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace gpuc {

static constexpr StringLiteral kWrittenAgainAttr = "gpuc.written_again";

static ArrayAttr notesOf(Operation *op) { return op->getAttrOfType<ArrayAttr>(kWrittenAgainAttr); }

void noteWrittenAgain(OpResult result, OpResult first) {
  Operation *kernel = result.getOwner();
  Builder builder(kernel->getContext());
  SmallVector<Attribute> notes;
  if (ArrayAttr before = notesOf(kernel))
    llvm::append_range(notes, before);
  notes.push_back(builder.getArrayAttr({builder.getI64IntegerAttr(result.getResultNumber()),
                                        builder.getStringAttr(cast<ir::FusedOp>(first.getOwner()).getName()),
                                        builder.getI64IntegerAttr(first.getResultNumber())}));
  kernel->setAttr(kWrittenAgainAttr, builder.getArrayAttr(notes));
}

SmallVector<StringRef> writtenAgainBy(Operation *kernel) {
  llvm::SetVector<StringRef> names;
  if (ArrayAttr notes = notesOf(kernel))
    for (Attribute note : notes)
      if (auto parts = dyn_cast<ArrayAttr>(note); parts && parts.size() == 3)
        if (auto name = dyn_cast<StringAttr>(parts[1]))
          names.insert(name);
  return names.takeVector();
}

bool writesAgain(func::FuncOp step) {
  return step
      .walk([](ir::FusedOp kernel) {
        return notesOf(kernel) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The notes of a kernel that keeps these results, in this order. What is anyone's text is left out.
static SmallVector<Attribute> notesOfKept(ir::FusedOp kernel, ArrayRef<int64_t> kept) {
  Builder builder(kernel.getContext());
  SmallVector<Attribute> notes;
  for (Attribute note : notesOf(kernel)) {
    auto parts = dyn_cast<ArrayAttr>(note);
    auto number = parts && parts.size() == 3 ? dyn_cast<IntegerAttr>(parts[0]) : IntegerAttr();
    if (const auto *found = number ? llvm::find(kept, number.getInt()) : kept.end(); found != kept.end())
      notes.push_back(
          builder.getArrayAttr({builder.getI64IntegerAttr(found - kept.begin()), parts[1], parts[2]}));
  }
  return notes;
}

/// Puts a kernel without these results, which nobody reads, in the place of this one.
static void dropResults(ir::FusedOp kernel, const llvm::BitVector &dropped) {
  SmallVector<Value> yielded;
  SmallVector<int64_t> kept;
  Operation *yield = kernel.getBody().front().getTerminator();
  for (auto [number, value] : llvm::enumerate(yield->getOperands()))
    if (!dropped.test(number)) {
      yielded.push_back(value);
      kept.push_back(static_cast<int64_t>(number));
    }
  yield->setOperands(yielded);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(kernel.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  OpBuilder builder(kernel);
  auto types = llvm::map_to_vector(yielded, [](Value value) { return value.getType(); });
  auto less = ir::FusedOp::create(builder, kernel.getLoc(), types, kernel.getName(), kernel.getInputs());
  less.getBody().takeBody(kernel.getBody());
  for (auto [number, result] : llvm::zip_equal(kept, less->getResults()))
    kernel->getResult(number).replaceAllUsesWith(result);
  if (SmallVector<Attribute> notes = notesOfKept(kernel, kept); !notes.empty())
    less->setAttr(kWrittenAgainAttr, builder.getArrayAttr(notes));
  kernel.erase();
}

/// What noteWrittenAgain() was given; nulls if that is not there, in text that is anyone's.
static std::pair<OpResult, OpResult> resultsOf(Attribute note, ir::FusedOp writer,
                                               const llvm::StringMap<ir::FusedOp> &kernels) {
  auto parts = dyn_cast<ArrayAttr>(note);
  if (!parts || parts.size() != 3)
    return {};
  auto resultOf = [](ir::FusedOp kernel, Attribute number) -> OpResult {
    auto integer = dyn_cast<IntegerAttr>(number);
    const bool isThere = kernel && integer && integer.getType().isInteger(64) && integer.getInt() >= 0 &&
                         integer.getInt() < kernel->getNumResults();
    return isThere ? kernel->getResult(integer.getInt()) : OpResult();
  };
  auto name = dyn_cast<StringAttr>(parts[1]);
  ir::FusedOp kernel = name ? kernels.lookup(name) : nullptr;
  OpResult result = resultOf(writer, parts[0]), first = resultOf(kernel, parts[2]);
  const bool isOther = result && first && kernel->getBlock() == writer->getBlock() &&
                       kernel->isBeforeInBlock(writer) && result.getType() == first.getType();
  return isOther ? std::pair(result, first) : std::pair<OpResult, OpResult>();
}

void readFirstWritten(func::FuncOp step, function_ref<bool(Value first, Operation *writer)> isRead) {
  llvm::StringMap<ir::FusedOp> kernels;
  SmallVector<ir::FusedOp> writers;
  step.walk([&](ir::FusedOp kernel) {
    kernels[kernel.getName()] = kernel;
    if (notesOf(kernel))
      writers.push_back(kernel);
  });
  for (ir::FusedOp writer : writers) {
    llvm::BitVector dropped(writer->getNumResults());
    for (Attribute note : notesOf(writer))
      if (auto [result, first] = resultsOf(note, writer, kernels); result && first && isRead(first, writer)) {
        result.replaceAllUsesWith(first);
        dropped.set(result.getResultNumber());
      }
    if (dropped.any())
      dropResults(writer, dropped);
  }
}

} // namespace gpuc
