// y = filter correlated with x, and x's cotangent from y's: for each of a tile's 16 places the product of the
// transformed source and the transformed filter, and what these stand for.
#include "runtime/host/conv/finish.h"
#include "runtime/host/conv/patch_block.h"
#include "runtime/host/conv/winograd/strips.h"

namespace gpuc {
namespace {

constexpr int64_t kVector = WinogradCut::kVector, kTaps = 9;

/// A block of the result's channels of a vector of those that are summed up. Tiles count such vectors first,
/// then a turn's blocks, then turns.
template <typename S>
void computeFilterTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  using T = Computed<S>;
  alignas(64) T taps[kVector * kTaps * 64];
  const ConvShape& s = problem.correlation;
  const WinogradCut& cut = problem.winograd;
  const int64_t number = tile / cut.vectors();
  const WinogradBlock block(cut, number / cut.turn_blocks, number % cut.turn_blocks, s.out_channels);
  if (block.results == 0) return;
  const int64_t channel = tile % cut.vectors() * kVector;
  const int64_t channels = std::min(kVector, s.in_channels - channel), row = problem.shape.patchRows();
  const S* filter = static_cast<const S*>(operands.b);
  const TypedVectorKernels<S>& kernels = problem.vector_kernels->of<S>();
  const bool flipped = s.kind == ConvKind::input_gradient;
  if (!flipped)
    kernels.transpose({block.results, channels * kTaps, filter + block.first * row + channel * kTaps, row,
                       taps, block.lanes});
  else
    for (int64_t i = 0; i < channels; ++i)
      kernels.transpose({block.results, kTaps, filter + (channel + i) * row + block.first * kTaps, kTaps,
                         taps + i * kTaps * block.lanes, block.lanes});
  T* planes = static_cast<T*>(operands.workspace) + block.place * kWinogradPlanes * cut.filterPlane() +
              channel * block.lanes;
  problem.patch_kernels->of<S>().winograd.filter({.count = channels,
                                                  .lanes = block.lanes,
                                                  .taps = flipped ? taps + (kTaps - 1) * block.lanes : taps,
                                                  .filter_step = kTaps * block.lanes,
                                                  .tap_step = flipped ? -block.lanes : block.lanes,
                                                  .planes = planes,
                                                  .plane = cut.filterPlane()});
}

/// A block of the result's channels in a part of the pictures.
template <typename S>
class WinogradTile {
 public:
  using T = Computed<S>;

  WinogradTile(const ConvProblem& problem, const ConvOperands& operands, const WinogradPlace& place)
      : problem_(problem),
        operands_(operands),
        s_(problem.correlation),
        cut_(problem.winograd),
        part_(place.part),
        block_(cut_, place.turn, place.block, s_.out_channels),
        tiles_(tilesOf(cut_, s_.batch, part_)) {}

  void compute() {
    if (block_.results == 0) return;  // of the last turn
    alignas(64) T sums[kWinogradPlanes * (64 * kWinogradTiles + kVector)];
    alignas(64) T pixels[kWinogradPixels];
    multiply(sums);
    forEachStrip(cut_, s_.batch, part_, [&](const WinogradStrip& strip) { leave(strip, sums, pixels); });
  }

 private:
  void multiply(T* sums) const {
    ProductRun terms[kMostWinogradChannels / kVector];
    for (int64_t i = 0; i < cut_.vectors(); ++i)
      terms[i] = {i * kVector * cut_.part_tiles, i * kVector * block_.lanes,
                  std::min(kVector, s_.in_channels - i * kVector)};
    const T* filter = static_cast<const T*>(operands_.workspace);
    const T* source = filter + winogradFilters(cut_) + part_ % cut_.round_parts * cut_.sourceElements();
    filter += block_.place * kWinogradPlanes * cut_.filterPlane();
    for (int64_t plane = 0; plane < kWinogradPlanes; ++plane)
      problem_.patch_kernels->of<S>().channels.termsAlong({.rows = tiles_,
                                                           .columns = block_.lanes,
                                                           .group = 0,
                                                           .terms = terms,
                                                           .term_count = cut_.vectors(),
                                                           .a = source + plane * cut_.sourcePlane(),
                                                           .a_step = 0,
                                                           .b = filter + plane * cut_.filterPlane(),
                                                           .b_step = block_.lanes,
                                                           .sums = sums + plane * cut_.resultPlane(),
                                                           .sums_row = block_.lanes,
                                                           .accumulate = false});
  }

  void leave(const WinogradStrip& strip, T* sums, T* pixels) const {
    const int64_t width = s_.width.output, rows = std::min(2 * strip.rows, s_.height.output - 2 * strip.row);
    const TypedPatchKernels<S>& kernels = problem_.patch_kernels->of<S>();
    kernels.winograd.result({.rows = strip.rows,
                             .columns = cut_.columns,
                             .lanes = block_.lanes,
                             .pixels = pixels,
                             .pixel_rows = rows,
                             .pixel_columns = width,
                             .pixel_row = width * block_.lanes,
                             .planes = sums + strip.first_tile * block_.lanes,
                             .plane = cut_.resultPlane()});
    S* result = static_cast<S*>(operands_.c) +
                (strip.image * s_.out_channels + block_.first) * s_.outputPixels() + 2 * strip.row * width;
    kernels.channels.unpack({.channels = block_.results,
                             .pixels = rows * width,
                             .sums = pixels,
                             .pixel_stride = block_.lanes,
                             .places = nullptr,
                             .first_place = 0,
                             .picture = result,
                             .channel_stride = s_.outputPixels()});
    finish<S>(problem_, operands_, block_.first, {block_.results, rows * width, result, s_.outputPixels()});
  }

  const ConvProblem& problem_;
  const ConvOperands& operands_;
  const ConvShape& s_;
  const WinogradCut& cut_;
  int64_t part_;
  WinogradBlock block_;
  int64_t tiles_;
};

template <typename S>
void computeWinogradTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  WinogradTile<S>(problem, operands, WinogradPlace(problem.winograd, tile)).compute();
}

}  // namespace

ConvTile winogradFilterTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeFilterTile<S>; });
}

ConvTile winogradTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeWinogradTile<S>; });
}

}  // namespace gpuc
