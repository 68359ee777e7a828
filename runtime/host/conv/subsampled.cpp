// One tap by strides: the pixels that are read are copied to the workspace, and the convolution without
// strides finds them there; or it leaves x's cotangent there, from where it is spread, with zeros between.
#include <algorithm>

#include "runtime/host/conv/finish.h"
#include "runtime/host/conv/patch_block.h"

namespace gpuc {
namespace {

/// Planes of x that a tile copies.
int64_t planesOfTile(const ConvShape& s) {
  constexpr int64_t kTileElements = 32 * 1024;
  return std::clamp<int64_t>(kTileElements / s.inputPixels(), 1, s.batch * s.in_channels);
}

template <typename S>
void takePixels(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  const ConvShape& s = *problem.strided;
  const int64_t planes = planesOfTile(s), first = tile * planes;
  const int64_t channels = std::min(planes, s.batch * s.in_channels - first);
  const S* x = static_cast<const S*>(s.kind == ConvKind::forward ? operands.a : operands.b);
  const S* picture = x + first * s.inputPixels();
  S* values = static_cast<S*>(operands.workspace) + first * s.taps() * s.outputPixels();
  if (s.taps() > 1)
    return problem.patch_kernels->of<S>().takeWindows({.channels = channels,
                                                       .window_rows = s.height.kernel,
                                                       .window_columns = s.width.kernel,
                                                       .rows = s.height.output,
                                                       .columns = s.width.output,
                                                       .picture = picture,
                                                       .picture_channel = s.inputPixels(),
                                                       .picture_row = s.width.input,
                                                       .values = values});
  TakenPixels<S, S> taken = takenPixels<S, S>(s, picture, values);
  taken.channels = channels;
  problem.patch_kernels->of<S>().take(taken);
}

template <typename S>
void spreadToInput(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  const ConvShape& s = *problem.strided;
  const int64_t planes = planesOfTile(s), first = tile * planes;
  const int64_t channels = std::min(planes, s.batch * s.in_channels - first);
  S* dx = static_cast<S*>(operands.c) + first * s.inputPixels();
  problem.patch_kernels->of<S>().spread(
      {.channels = channels,
       .rows = s.height.output,
       .columns = s.width.output,
       .values = static_cast<const S*>(operands.workspace) + first * s.outputPixels(),
       .values_channel = s.outputPixels(),
       .result = dx,
       .result_channel = s.inputPixels(),
       .result_rows = s.height.input,
       .result_columns = s.width.input,
       .row_step = s.height.stride,
       .column_step = s.width.stride});
  finish<S>(problem, operands, 0, {1, channels * s.inputPixels(), dx, 0});
}

bool isToInput(const ConvShape& s) { return s.kind == ConvKind::input_gradient; }

}  // namespace

void subsample(ConvProblem& problem) {
  const ConvShape& shape = *problem.strided;
  const int64_t planes = planesOfTile(shape), all = shape.batch * shape.in_channels;
  const ConvTile compute = withElement(shape.type, [&]<typename S>(S) -> ConvTile {
    return isToInput(shape) ? spreadToInput<S> : takePixels<S>;
  });
  const ConvPhase copy = {
      compute, (all + planes - 1) / planes,
      convTileNs(0, static_cast<double>(planes * shape.inputPixels()) / 2, problem.shape.type)};
  problem.phases.insert(isToInput(shape) ? problem.phases.end() : problem.phases.begin(), copy);
}

ConvOperands operandsOfPhase(const ConvProblem& problem, size_t phase, const ConvOperands& operands) {
  if (!problem.strided || problem.takes_pixels) return operands;
  const ConvShape& s = *problem.strided;
  if (phase == (isToInput(s) ? problem.phases.size() - 1 : 0)) return operands;
  ConvOperands left = operands;
  left.workspace = static_cast<std::byte*>(operands.workspace) + subsampledBytes(s);
  if (isToInput(s))
    left.c = operands.workspace, left.mask = nullptr;
  else
    (s.kind == ConvKind::forward ? left.a : left.b) = operands.workspace;
  return left;
}

}  // namespace gpuc
