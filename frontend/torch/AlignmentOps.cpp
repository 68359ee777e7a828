//===- AlignmentOps.cpp - Sequences beside longer ones -------------------------===//
//
// The CTC loss, which python/gpuc/formulas/alignments.py makes a formula of but for its loop over time: how
// likely each place in a row's labels is at each frame.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Loop.h"
#include "frontend/torch/OpTable.h"

namespace gpuc::torch {
namespace {

using Tensors = std::vector<Tensor>;

/// Of each row, behind its second dimension: what stands `distance` places before, and `filling` in front.
Tensor shifted(const Tensor &x, int64_t distance, double filling) {
  return pad(slice(x, 1, 0, x.extent(1) - distance), {0, distance}, {0, 0}, filling);
}

/// log(e^a + e^b + e^c) of numbers that are finite.
Tensor logSumExp(const Tensors &terms) {
  Tensor largest = unary("stop_gradient", binary("max", binary("max", terms[0], terms[1]), terms[2]));
  Tensor sum;
  for (const Tensor &term : terms) {
    Tensor power = unary("exp", term - largest);
    sum = sum ? sum + power : power;
  }
  return largest + unary("log", sum);
}

/// emissions [frames, rows, places], mask i1 [rows, places], first [rows, places], all logarithms: a place is
/// reached from itself, from the one before and, where `mask` says so, from the one before that.
void lowerForward(OpScope &op) {
  Tensor emissions = op.tensor("emissions"), mask = op.tensor("mask"), first = op.tensor("first");
  const double never = op.number("never", 0);
  if (op.failed())
    return;
  auto step = [&](const Tensors &slices, const Tensors &carried,
                  const Tensors &captured) -> onnx::LoopValues {
    const Tensor &before = carried[0];
    Tensor skipping = select(captured[0], shifted(before, 2, never), like(before, never));
    Tensor next = slices[0] + logSumExp({before, shifted(before, 1, never), skipping});
    return {{next}, {next}};
  };
  onnx::LoopValues values = loop(op.emitter, {emissions}, {first}, {mask}, {}, step);
  if (!op.failed() && !values.outputs.empty())
    op.output(values.outputs.front());
}

} // namespace

void addAlignments(OpTable &table) {
  table["gpuc.alignments.default"] = {lowerForward, {"emissions", "mask", "first", "never"}};
}

} // namespace gpuc::torch
