#include <algorithm>

#include "runtime/host/conv.h"

namespace gpuc {
namespace {

int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// For each tap the outputs that read inside of the image through it: 0 <= p·stride - low + i·dilation <
/// input.
std::vector<ValidRange> validRanges(const ConvAxis& axis) {
  std::vector<ValidRange> ranges;
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    const int64_t shift = axis.low - tap * axis.dilation;  // p·stride >= shift, p·stride < shift + input
    const int64_t begin = shift <= 0 ? 0 : std::min(axis.output, ceilDivide(shift, axis.stride));
    const int64_t room = shift + axis.input;
    const int64_t end = room <= 0 ? 0 : std::min(axis.output, ceilDivide(room, axis.stride));
    ranges.push_back({begin, std::max(begin, end)});
  }
  return ranges;
}

/// Output pixels are the columns, patch rows the depth. Few tiles take fewer outputs each, although every one
/// packs its patches anew.
void cutForward(ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  GemmBlocks& b = problem.blocks;
  b.m = s.groupOutputs();
  b.n = s.outputPixels();
  b.k = s.patchRows();
  b.block_n = evenConvPart(b.n, 64, 16);
  b.block_k = evenConvPart(b.k, 256, 16);
  const int64_t others = s.batch * s.groups * b.blocksN();
  b.block_m = evenConvPart(b.m, others >= 16 ? 256 : 64, 16);
  problem.stride_b = paddedConvRow(b.block_n, s.type);
  const double elements = static_cast<double>(b.block_n) * static_cast<double>(b.k);
  problem.phases.push_back({forwardTile(problem.storage), others * b.blocksM(),
                            convTileNs(2 * elements * static_cast<double>(b.block_m), elements, s.type)});
}

/// A tile owns whole channels of the image, into which it adds the patches of all pixels. Patch rows are m.
void cutInputGradient(ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  GemmBlocks& b = problem.blocks;
  constexpr int64_t kRows = 144, kPackedBytes = 96 * 1024;
  b.n = s.outputPixels();
  b.block_n = evenConvPart(b.n, 64, 16);
  if (spreadsPixels(s))
    b.block_n = std::min(b.n, kSpreadBytes / sizeOf(s.type) / s.width.output * s.width.output);
  problem.stride_b = paddedConvRow(b.block_n, s.type);
  if (problem.stride_b > 64) problem.stride_b += kConvPackBytes / sizeOf(s.type);
  b.k = s.groupOutputs();
  b.block_k = evenConvPart(b.k, kPackedBytes / (problem.stride_b * sizeOf(s.type)) / 16 * 16, 16);
  // Either one block is all rows of a tile's channels, or one channel has several blocks.
  const int64_t most = std::max<int64_t>(1, kRows / s.taps());
  problem.channels_per_tile = std::min(s.groupInputs(), most);
  const int64_t tile_rows = problem.channels_per_tile * s.taps();
  b.m = tile_rows <= kRows ? s.patchRows() : tile_rows;
  b.block_m = evenConvPart(tile_rows, kRows, 16);
  const double elements = static_cast<double>(tile_rows) * static_cast<double>(b.n);
  problem.phases.push_back({inputGradientTile(problem.storage),
                            s.batch * s.groups * ceilDivide(s.groupInputs(), problem.channels_per_tile),
                            convTileNs(2 * elements * static_cast<double>(b.k), 2 * elements, s.type)});
}

/// Patch rows are m, outputs n, and the pixels of all images the depth.
void cutFilter(ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  const FilterGradientCut cut = cutFilterGradient(s);
  problem.exchanged = cut.exchanged;
  problem.blocks = {.m = cut.exchanged ? s.groupOutputs() : s.patchRows(),
                    .n = cut.exchanged ? s.groupInputs() : s.groupOutputs(),
                    .k = (cut.images > 1 ? s.batch : 1) * s.outputPixels(),
                    .block_m = cut.rows_at_once,
                    .block_n = cut.outputs,
                    .block_k = cut.pixels};
  problem.channels_per_tile = cut.rows;
  problem.parts = cut.parts;
  problem.sums_in_workspace = cut.parts > 1;
  problem.stride_b = paddedConvRow(cut.outputs, s.type);
  const double depth = static_cast<double>(s.batch * s.outputPixels() / cut.parts);
  const double rows = static_cast<double>(cut.rows), outputs = static_cast<double>(cut.outputs);
  problem.phases.push_back({filterGradientTile(problem.storage),
                            cut.parts * s.groups * cut.row_blocks * cut.output_blocks,
                            convTileNs(2 * rows * outputs * depth, (rows + outputs) * depth, s.type)});
}

struct LeadingDimensions {
  int64_t a, b, c;
  bool transpose_a;
  bool accumulates;  // whether any block is added to another
};

LeadingDimensions leadingDimensionsOf(const ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  const GemmBlocks& b = problem.blocks;
  const bool in_result =
      s.isPointwise() ? problem.sumsInResult() : s.kind == ConvKind::forward && !problem.isWidened();
  const int64_t columns = problem.isInPlace() ? s.outputPixels() : problem.stride_b;
  switch (s.kind) {
    case ConvKind::forward:
      return {s.patchRows(), columns, in_result ? s.outputPixels() : problem.stride_b, false,
              b.blocksK() > 1};
    case ConvKind::input_gradient:
      return {s.patchRows(), columns, in_result ? s.outputPixels() : problem.stride_b, true, b.blocksK() > 1};
    default:
      return {problem.isInPlace() ? b.k : spreadConvRow(b.block_k, s.type), problem.stride_b,
              problem.stride_b, false, true};
  }
}

/// Generates the micro-kernels for whole blocks and for those cut short.
Result<MicroKernelSet> makeBlockKernels(const ConvProblem& problem) {
  const GemmBlocks& b = problem.blocks;
  const LeadingDimensions leading = leadingDimensionsOf(problem);
  MicroKernelSet set;
  set.after = afterMicroKernels();
  for (int index = 0; index < 16; ++index) {
    const bool m_cut = index & 8, n_cut = index & 4, k_cut = index & 2, accumulate = index & 1;
    const int64_t m = m_cut ? b.m % b.block_m : b.block_m;
    const int64_t n = n_cut ? b.n % b.block_n : b.block_n;
    const int64_t k = k_cut ? b.k % b.block_k : b.block_k;
    if (m == 0 || n == 0 || k == 0 || (accumulate && !leading.accumulates)) continue;
    GPUC_ASSIGN_OR_RETURN(set.kernels[m_cut][n_cut][k_cut][accumulate],
                          makeMicroKernel({.type = problem.shape.type,
                                           .m = m,
                                           .n = n,
                                           .k = k,
                                           .lda = leading.a,
                                           .ldb = leading.b,
                                           .ldc = leading.c,
                                           .transpose_a = leading.transpose_a,
                                           .accumulate = accumulate}));
  }
  return set;
}

bool isPossible(const ConvAxis& axis) {
  constexpr int64_t kMost = INT32_MAX;
  for (int64_t number : {axis.input, axis.output, axis.kernel, axis.stride, axis.dilation})
    if (number < 1 || number > kMost) return false;
  if (axis.low < 0 || axis.high < 0 || axis.low > kMost || axis.high > kMost) return false;
  const int64_t room = axis.input + axis.low + axis.high - (axis.kernel - 1) * axis.dilation - 1;
  return room >= 0 && room / axis.stride + 1 == axis.output;
}

/// An error that names what is wrong with the shape, or success.
Status checkConvShape(const ConvShape& s) {
  if (!isFloat(s.type)) return errorf("conv: of %s, but only floats are convolved", nameOf(s.type));
  constexpr int64_t kMost = INT32_MAX;
  for (int64_t extent : {s.batch, s.groups, s.in_channels, s.out_channels})
    if (extent < 1 || extent > kMost) return errorf("conv: an extent of %" PRId64, extent);
  if (s.in_channels % s.groups != 0 || s.out_channels % s.groups != 0)
    return errorf("conv: %" PRId64 " groups do not divide %" PRId64 " and %" PRId64 " channels", s.groups,
                  s.in_channels, s.out_channels);
  constexpr int64_t kMostTaps = 1 << 16;  // a table has an entry for each
  if (s.height.kernel > kMostTaps || s.width.kernel > kMostTaps)
    return errorf("conv: a filter of %" PRId64 "x%" PRId64 ", at most %" PRId64
                  " either way are supported on the host",
                  s.height.kernel, s.width.kernel, kMostTaps);
  if (!isPossible(s.height) || !isPossible(s.width))
    return errorf("conv: %" PRId64 "x%" PRId64 " windows of %" PRId64 "x%" PRId64
                  " are not what an image of "
                  "%" PRId64 "x%" PRId64 " has",
                  s.height.output, s.width.output, s.height.kernel, s.width.kernel, s.height.input,
                  s.width.input);
  return okStatus();
}

}  // namespace

double convTileNs(double flops, double packed, DataType type) {
  return flops * static_cast<double>(sizeOf(type)) / 480 + 0.3 * packed + 20;
}

Status ConvKernel::handTo(const TileUpdate& update) {
  if (!problem_.tiles) return errorf("conv: of a shape whose tiles cannot be handed to a weight's update");
  if (update.operands == 0 || update.operands > kMostUpdateOperands)
    return errorf("conv: with a weight's update of %zu operands, at most %zu", update.operands,
                  kMostUpdateOperands);
  problem_.update = update;
  problem_.phases.back().tile_ns += update.tile_ns;
  return okStatus();
}

Result<ConvKernel> ConvKernel::create(const ConvShape& shape, int64_t workspace_bytes) {
  GPUC_RETURN_IF_ERROR(checkConvShape(shape));
  return create(shape, convMethod(shape), workspace_bytes);
}

Result<ConvKernel> ConvKernel::create(const ConvShape& given, ConvMethod method, int64_t workspace_bytes) {
  GPUC_RETURN_IF_ERROR(checkConvShape(given));
  GPUC_RETURN_IF_ERROR(checkWorkspace("conv", workspace_bytes, convWorkspaceBytes(given, method)));
  ConvProblem problem;
  const bool strided = method == ConvMethod::subsampled;
  if (strided) problem.strided = given;
  problem.takes_pixels = takesPixelsByTile(given, method);
  const ConvShape shape = strided ? subsampledShape(given) : given;
  problem.shape = shape;
  problem.storage = shape.type;
  problem.shape.type = computedType(shape.type);
  problem.method = strided ? convMethod(shape) : method;
  problem.tiles = convGradientTiles(shape, problem.method);
  problem.correlation = correlationOf(problem.shape);
  problem.widened_filter = convWidenedFilter(shape, problem.method);
  const bool by_images = problem.method == ConvMethod::by_images;
  const bool direct = problem.method != ConvMethod::patches;
  problem.valid_rows = validRanges(direct ? problem.correlation.height : shape.height);
  problem.valid_columns = validRanges(shape.width);
  problem.patch_kernels = kernelsFor<PatchKernelTable>(microKernelVectorBytes());
  problem.vector_kernels = kernelsFor<VectorKernelTable>(microKernelVectorBytes());
  if (problem.widened_filter > 0)
    problem.phases.push_back({widenFilterTile(problem.storage),
                              ceilDivide(shape.filterElements(), kConvSumElements),
                              convTileNs(0, kConvSumElements, DataType::f32)});
  if (problem.method == ConvMethod::by_channels)
    cutForChannels(problem);
  else if (problem.method == ConvMethod::depthwise)
    cutForDepthwise(problem);
  else if (problem.method == ConvMethod::winograd)
    cutForWinograd(problem);
  else if (by_images)
    cutForImages(problem);
  else if (sumsPixelRows(shape, problem.method))
    cutForPixelRows(problem);
  else if (direct)
    cutForDirect(problem);
  else if (shape.isPointwise() && shape.kind != ConvKind::filter_gradient)
    cutForPointwise(problem);
  else if (shape.kind == ConvKind::forward)
    cutForward(problem);
  else if (shape.kind == ConvKind::input_gradient)
    cutInputGradient(problem);
  else
    cutFilter(problem);
  if (problem.sums_in_workspace)
    problem.phases.push_back(
        {sumFilterGradientTile(problem.storage), ceilDivide(shape.filterElements(), convSumElements(shape)),
         convTileNs(0, static_cast<double>(convSumElements(shape) * problem.parts) / 4, problem.shape.type)});
  if (!direct && !problem.has_own_products) {
    GPUC_ASSIGN_OR_RETURN(problem.micro_kernels, makeBlockKernels(problem));
  }
  if (strided && !problem.takes_pixels) subsample(problem);
  return ConvKernel(std::move(problem));
}

}  // namespace gpuc
