// The filter's gradient: for each of a tile's 16 places the product of the transformed x and y's transformed
// cotangent over all tiles, and the filter that these stand for.
#include "runtime/host/conv/gradient_tile.h"
#include "runtime/host/conv/patch_block.h"
#include "runtime/host/conv/winograd/strips.h"

namespace gpuc {
namespace {

constexpr int64_t kVector = WinogradCut::kVector, kTaps = 9;

/// Of a part of the round: y's cotangents lie behind the sources.
template <typename T>
T* cotangentsOf(const WinogradCut& cut, const ConvOperands& operands, int64_t part) {
  return static_cast<T*>(operands.workspace) + winogradFilters(cut) + cut.round_parts * cut.sourceElements() +
         part % cut.round_parts * cut.cotangentElements();
}

/// A block of y's channels in a part of the pictures.
template <typename S>
void computeCotangentTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  using T = Computed<S>;
  alignas(64) T pixels[kWinogradPixels];
  const ConvShape& s = problem.shape;
  const WinogradCut& cut = problem.winograd;
  const WinogradPlace place(cut, tile);
  const int64_t width = s.width.output;
  const WinogradBlock block(cut, place.turn, place.block, s.out_channels);
  if (block.results == 0) return;
  T* planes = cotangentsOf<T>(cut, operands, place.part) + block.place * kWinogradPlanes * cut.resultPlane();
  forEachStrip(cut, s.batch, place.part, [&](const WinogradStrip& strip) {
    const int64_t rows = std::min(2 * strip.rows, s.height.output - 2 * strip.row);
    const S* from = static_cast<const S*>(operands.a) +
                    (strip.image * s.out_channels + block.first) * s.outputPixels() + 2 * strip.row * width;
    problem.vector_kernels->of<S>().transpose(
        {block.results, rows * width, from, s.outputPixels(), pixels, block.lanes});
    problem.patch_kernels->of<S>().winograd.cotangent({.rows = strip.rows,
                                                       .columns = cut.columns,
                                                       .lanes = block.lanes,
                                                       .pixels = pixels,
                                                       .pixel_rows = rows,
                                                       .pixel_columns = width,
                                                       .pixel_row = width * block.lanes,
                                                       .planes = planes + strip.first_tile * block.lanes,
                                                       .plane = cut.resultPlane()});
  });
}

/// A place of a block of y's channels and all of x's: the sum over a split of a round's tiles, added to that
/// of the rounds before. Tiles count places first, then blocks, then splits, whose parts a thread has
/// transformed likewise, then rounds.
template <typename S>
class ProductsTile {
 public:
  using T = Computed<S>;

  ProductsTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile)
      : problem_(problem),
        s_(problem.shape),
        cut_(problem.winograd),
        block_(cut_, tile / (kWinogradPlanes * cut_.turn_blocks * cut_.splits * cut_.rounds),
               tile / kWinogradPlanes % cut_.turn_blocks, s_.out_channels) {
    const int64_t place = tile % (kWinogradPlanes * cut_.turn_blocks);
    tile /= kWinogradPlanes * cut_.turn_blocks;
    const int64_t split = tile % cut_.splits;
    round_ = tile / cut_.splits % cut_.rounds;
    const int64_t parts = cut_.partsOf(round_);
    first_ = parts * split / cut_.splits, end_ = parts * (split + 1) / cut_.splits;
    T* workspace = static_cast<T*>(operands.workspace);
    sums_ = workspace + split * cut_.filterElements() + place * cut_.filterPlane();
    sources_ = workspace + winogradFilters(cut_) + place % kWinogradPlanes * cut_.sourcePlane();
    cotangents_ = cotangentsOf<T>(cut_, operands, 0) + place * cut_.resultPlane();
  }

  void compute() const {
    if (block_.results == 0) return;
    if (round_ == 0 && first_ == end_) std::fill_n(sums_, s_.in_channels * block_.lanes, T(0));
    for (int64_t channel = 0; channel < s_.in_channels; channel += kVector)
      for (int64_t first = first_; first < end_; first += kMostTerms) addParts(channel, first);
  }

 private:
  static constexpr int64_t kMostTerms = 64;

  /// Products of a vector of x's channels with the parts from `first` on.
  void addParts(int64_t channel, int64_t first) const {
    ProductRun terms[kMostTerms];
    const int64_t count = std::min(kMostTerms, end_ - first);
    for (int64_t i = 0; i < count; ++i)
      terms[i] = {(first + i) * cut_.sourceElements() + channel * cut_.part_tiles,
                  (first + i) * cut_.cotangentElements(),
                  tilesOf(cut_, s_.batch, round_ * cut_.round_parts + first + i)};
    problem_.patch_kernels->of<S>().channels.rowsAlong({.rows = std::min(kVector, s_.in_channels - channel),
                                                        .columns = block_.lanes,
                                                        .group = 0,
                                                        .terms = terms,
                                                        .term_count = count,
                                                        .a = sources_,
                                                        .a_step = kVector,
                                                        .b = cotangents_,
                                                        .b_step = block_.lanes,
                                                        .sums = sums_ + channel * block_.lanes,
                                                        .sums_row = block_.lanes,
                                                        .accumulate = round_ > 0 || first > first_});
  }

  const ConvProblem& problem_;
  const ConvShape& s_;
  const WinogradCut& cut_;
  WinogradBlock block_;
  int64_t round_ = 0, first_ = 0, end_ = 0;  // parts of the round
  T* sums_;
  const T *sources_, *cotangents_;
};

template <typename S>
void computeProductsTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  ProductsTile<S>(problem, operands, tile).compute();
}

/// Adds the sums of the other splits to those of the first: `count` adjoining elements of each plane.
template <typename T>
void addSplits(const WinogradCut& cut, T* planes, int64_t count) {
  for (int64_t split = 1; split < cut.splits; ++split)
    for (int64_t plane = 0; plane < kWinogradPlanes; ++plane) {
      T* sums = planes + plane * cut.filterPlane();
      const T* added = sums + split * cut.filterElements();
      for (int64_t i = 0; i < count; ++i) sums[i] += added[i];
    }
}

/// A vector of x's channels of a block of y's. Tiles count such vectors first, then a turn's blocks, then
/// turns.
template <typename S>
void computeGradientTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  using T = Computed<S>;
  alignas(64) T taps[kVector * kTaps * 64];
  const ConvShape& s = problem.shape;
  const WinogradCut& cut = problem.winograd;
  const int64_t number = tile / cut.vectors(), channel = tile % cut.vectors() * kVector;
  const WinogradBlock block(cut, number / cut.turn_blocks, number % cut.turn_blocks, s.out_channels);
  if (block.results == 0) return;
  const int64_t channels = std::min(kVector, s.in_channels - channel);
  T* planes = static_cast<T*>(operands.workspace) + block.place * kWinogradPlanes * cut.filterPlane() +
              channel * block.lanes;
  addSplits(cut, planes, channels * block.lanes);
  problem.patch_kernels->of<S>().winograd.gradient({.count = channels,
                                                    .lanes = block.lanes,
                                                    .taps = taps,
                                                    .filter_step = kTaps * block.lanes,
                                                    .tap_step = block.lanes,
                                                    .planes = planes,
                                                    .plane = cut.filterPlane()});
  leaveChannelSums<S>(problem, operands,
                      {.row = block.first,
                       .column = channel * kTaps,
                       .rows = block.results,
                       .columns = channels * kTaps,
                       .sums = taps,
                       .lanes = block.lanes});
}

}  // namespace

ConvTile winogradCotangentTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeCotangentTile<S>; });
}

ConvTile winogradFilterProductsTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeProductsTile<S>; });
}

ConvTile winogradFilterGradientTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeGradientTile<S>; });
}

}  // namespace gpuc
