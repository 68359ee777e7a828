// How the direct method's shapes become places of taps and tiles.
#include "runtime/host/conv/problem.h"

namespace gpuc {
namespace {

/// Elements from a packed strip's first to the one that tap (i, j) of output (0, 0) reads.
int64_t tapPlace(const ConvProblem& problem, int64_t rows, int64_t i, int64_t j) {
  const ConvAxis &height = problem.correlation.height, &width = problem.correlation.width;
  const DirectCut& cut = problem.direct.cut;
  const int64_t row = i * height.dilation, column = j * width.dilation;
  const int64_t phase = row % height.stride * cut.column_phases + column % cut.column_step;
  return (phase * rows + row / height.stride) * cut.row_stride + column / cut.column_step;
}

}  // namespace

void cutForDirect(ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  DirectProblem& direct = problem.direct;
  direct.cut = cutDirect(s, problem.method);
  const ConvShape& c = problem.correlation;
  const DirectCut& cut = direct.cut;
  const int64_t rows = cut.strip_rows + cut.more_rows;
  const bool flipped = s.kind == ConvKind::input_gradient;
  for (int64_t i = 0; i < c.height.kernel; ++i)
    for (int64_t j = 0; j < c.width.kernel; ++j) {
      const int64_t tap = i * c.width.kernel + j;
      direct.taps.push_back({.image = static_cast<int32_t>(tapPlace(problem, rows, i, j)),
                             .filter = static_cast<int32_t>(flipped ? c.taps() - 1 - tap : tap)});
    }

  const double packed =
      static_cast<double>(cut.packedElements(cut.strip_rows) / cut.channels * c.groupInputs());
  const double pixels = static_cast<double>(cut.strip_rows * c.width.output);
  const double flops = 2 * pixels * static_cast<double>(c.groupOutputs() * c.patchRows());
  if (s.kind != ConvKind::filter_gradient) {
    problem.phases.push_back(
        {directTile(problem.storage), s.batch * s.groups * cut.strips, convTileNs(flops, packed, s.type)});
    return;
  }
  const int64_t channel = cut.row_phases * cut.column_phases * rows * cut.row_stride;
  const bool by_outputs = problem.method == ConvMethod::by_outputs;
  for (int64_t row = 0; row < c.patchRows(); row += by_outputs ? c.width.kernel : 1)
    direct.tap_places.push_back(static_cast<int32_t>(row / c.taps() * channel +
                                                     direct.taps[static_cast<size_t>(row % c.taps())].image));
  problem.parts = cut.parts;
  problem.sums_in_workspace = cut.parts > 1 || problem.isWidened();
  const double images = static_cast<double>(s.batch * cut.strips) / static_cast<double>(cut.parts);
  problem.phases.push_back({directFilterTile(problem.storage), cut.parts * s.groups,
                            convTileNs(images * flops, images * packed, s.type)});
}

}  // namespace gpuc
