//===- Loop.cpp - gpuc.scan for ONNX's loops over time ----------------------===//

#include "frontend/onnx/Loop.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace gpuc::onnx {

static SmallVector<Value> unwrap(const std::vector<Tensor> &tensors) {
  return llvm::map_to_vector(tensors, [](const Tensor &tensor) { return tensor.value(); });
}

static std::vector<Tensor> wrap(Emitter &emitter, ValueRange values) {
  std::vector<Tensor> tensors;
  for (Value value : values)
    tensors.emplace_back(&emitter, value);
  return tensors;
}

/// The number of steps; 0 after an error.
static int64_t stepsOf(Emitter &e, const std::vector<Tensor> &inputs, int64_t dim) {
  const int64_t steps = inputs.front().extent(dim);
  for (const Tensor &input : inputs)
    if (input.rank() <= dim || input.extent(dim) != steps || steps < 1) {
      e.fail("time, dimension " + std::to_string(dim) + " of a loop's input of shape " +
             toString(input.shape()) + ", is not the same known number of steps for all inputs");
      return 0;
    }
  return steps;
}

/// Whether a step gives values of the types that it got; says why not.
static bool checkStep(Emitter &e, const std::vector<Tensor> &inits, const LoopValues &step, bool batchFirst) {
  auto isEmpty = [](const Tensor &tensor) { return !tensor; };
  if (e.failed() || llvm::any_of(step.carried, isEmpty) || llvm::any_of(step.outputs, isEmpty) ||
      step.carried.size() != inits.size())
    return e.fail("a step of the loop could not be computed");
  for (auto [before, after] : llvm::zip_equal(inits, step.carried))
    if (before.value().getType() != after.value().getType())
      return e.fail("a state of shape " + toString(before.shape()) +
                    " leaves a step of the loop with shape " + toString(after.shape()) +
                    " or another element type");
  for (const Tensor &output : step.outputs)
    if (batchFirst && output.rank() == 0)
      return e.fail("a scalar is the output of a loop over an open batch: bind it with --dim NAME=N");
  return true;
}

LoopValues loop(Emitter &e, const std::vector<Tensor> &inputs, const std::vector<Tensor> &inits,
                const std::vector<Tensor> &captures, LoopOptions options, LoopBody body) {
  for (const std::vector<Tensor> *group : {&inputs, &inits, &captures})
    for (const Tensor &tensor : *group)
      if (e.failed() || !tensor)
        return e.fail("an operand of a loop could not be computed");
  const int64_t steps = stepsOf(e, inputs, options.batchFirst ? 1 : 0);
  if (steps == 0)
    return {};

  bool complete = true;
  auto build = [&](OpBuilder &, Location, ValueRange slices, ValueRange carried, ValueRange captured) {
    LoopValues step = body(wrap(e, slices), wrap(e, carried), wrap(e, captured));
    complete = checkStep(e, inits, step, options.batchFirst);
    if (!complete)
      return SmallVector<Value>(carried);
    SmallVector<Value> yielded = unwrap(step.carried);
    llvm::append_range(yielded, unwrap(step.outputs));
    return yielded;
  };
  std::string said;
  ScopedDiagnosticHandler handler(e.builder.getContext(), [&](Diagnostic &diagnostic) {
    said = said.empty() ? diagnostic.str() : said;
    return success();
  });
  auto op = ir::ScanOp::create(e.builder, e.location, unwrap(inputs), unwrap(inits), unwrap(captures), steps,
                               options.batchFirst, options.reverse, build);
  if (!complete || mlir::failed(verify(op, /*verifyRecursively=*/false))) {
    op.erase();
    return e.fail(said.empty() ? "gpuc.scan does not take these operands" : said);
  }
  return {wrap(e, op.getFinals()), wrap(e, op.getOutputs())};
}

} // namespace gpuc::onnx
