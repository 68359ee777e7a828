// By Winograd's minimal filtering: the phases, and the tiles of what is read, which all products share.
#include "runtime/host/conv/patch_block.h"
#include "runtime/host/conv/winograd/strips.h"

namespace gpuc {
namespace {

constexpr int64_t kVector = WinogradCut::kVector;

/// Where the pixels of a strip's rows go, in order, from the first row and column on that exist.
std::vector<int32_t> placesOf(const ConvShape& s, const WinogradCut& cut) {
  const int64_t width = s.width.input, row = 2 * cut.columns + 2;
  std::vector<int32_t> places;
  for (int64_t i = 0; i < 2 * cut.strip_rows + 2; ++i)
    for (int64_t column = 0; column < width; ++column)
      places.push_back(static_cast<int32_t>(s.width.low + column < row ? i * row + column : -1));
  return places;
}

/// A vector of a part's channels: a strip's pixels, with zeros around the picture, and their tiles.
template <typename S>
class SourceTile {
 public:
  using T = Computed<S>;

  SourceTile(const ConvProblem& problem, const S* source, int64_t part, int64_t channel, T* planes)
      : problem_(problem),
        s_(problem.correlation),
        cut_(problem.winograd),
        source_(source),
        part_(part),
        channel_(channel),
        planes_(planes) {}

  void compute() {
    constexpr int64_t kMostPixels = 4 * (2 * 4 * kWinogradTiles + 2);  // a row of tiles as long as can be
    alignas(64) T pixels[kMostPixels * kVector];
    forEachStrip(cut_, s_.batch, part_, [&](const WinogradStrip& strip) {
      pack(strip, pixels);
      problem_.patch_kernels->of<S>().winograd.source({.rows = strip.rows,
                                                       .columns = cut_.columns,
                                                       .lanes = kVector,
                                                       .pixels = pixels,
                                                       .pixel_rows = 2 * strip.rows + 2,
                                                       .pixel_columns = row() / kVector,
                                                       .pixel_row = row(),
                                                       .planes = planes_ + strip.first_tile * kVector,
                                                       .plane = cut_.sourcePlane()});
    });
  }

 private:
  int64_t row() const { return (2 * cut_.columns + 2) * kVector; }

  void pack(const WinogradStrip& strip, T* pixels) const {
    const int64_t rows = 2 * strip.rows + 2, first = 2 * strip.row - s_.height.low;
    const int64_t begin = std::clamp<int64_t>(-first, 0, rows);  // of those that exist
    const int64_t end = std::clamp<int64_t>(s_.height.input - first, begin, rows);
    const int64_t left = s_.width.low * kVector, right = std::min(row(), left + s_.width.input * kVector);
    std::fill(pixels, pixels + begin * row(), T(0));
    std::fill(pixels + end * row(), pixels + rows * row(), T(0));
    for (int64_t i = begin; i < end; ++i) {
      std::fill(pixels + i * row(), pixels + i * row() + left, T(0));
      std::fill(pixels + i * row() + right, pixels + (i + 1) * row(), T(0));
    }
    problem_.patch_kernels->of<S>().channels.pack(
        {.channels = std::min(kVector, s_.in_channels - channel_),
         .packed_channels = kVector,
         .pixels = (end - begin) * s_.width.input,
         .picture = source_ + (strip.image * s_.in_channels + channel_) * s_.inputPixels() +
                    (first + begin) * s_.width.input,
         .channel_stride = s_.inputPixels(),
         .places = problem_.winograd_places.data(),
         .packed = pixels + begin * row() + left,
         .pixel_stride = kVector});
  }

  const ConvProblem& problem_;
  const ConvShape& s_;
  const WinogradCut& cut_;
  const S* source_;
  int64_t part_, channel_;
  T* planes_;
};

/// Tiles count vectors of channels first, then parts, then rounds.
template <typename S>
void computeSourceTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  const WinogradCut& cut = problem.winograd;
  const int64_t vector = tile % cut.vectors(), part = tile / cut.vectors();
  const bool to_filter = problem.shape.kind == ConvKind::filter_gradient;
  Computed<S>* planes = static_cast<Computed<S>*>(operands.workspace) + winogradFilters(cut) +
                        part % cut.round_parts * cut.sourceElements() + vector * kVector * cut.part_tiles;
  const S* source = static_cast<const S*>(to_filter ? operands.b : operands.a);
  SourceTile<S>(problem, source, part, vector * kVector, planes).compute();
}

}  // namespace

namespace {

double asDouble(int64_t number) { return static_cast<double>(number); }

/// The phases of a problem that is cut, and what their tiles take.
class Phases {
 public:
  explicit Phases(ConvProblem& problem) : problem_(problem), cut_(problem.winograd) {}

  void filters(ConvTile compute, int64_t turn) {
    const int64_t tiles = cut_.turn_blocks * cut_.vectors();
    add(compute, tiles, turn * tiles, packedNs(4 * kWinogradPlanes * cut_.lanes * kVector));
  }
  void sources(int64_t round) {
    addParts(winogradSourceTile(problem_.storage), cut_.vectors(), 0, round,
             packedNs(2 * kWinogradPlanes * kVector * cut_.part_tiles));
  }
  void cotangents(int64_t turn, int64_t round) {
    addParts(winogradCotangentTile(problem_.storage), cut_.turn_blocks, turn, round,
             packedNs(2 * kWinogradPlanes * cut_.lanes * cut_.part_tiles));
  }
  void products(ConvTile compute, int64_t turn, int64_t round) {
    addParts(compute, cut_.turn_blocks, turn, round, convTileNs(partFlops(), 0, problem_.shape.type));
  }
  /// Of the filter's gradient.
  void filterProducts(int64_t turn, int64_t round) {
    const int64_t places = cut_.turn_blocks * kWinogradPlanes, tiles = cut_.splits * places;
    const double flops = partFlops() * asDouble(cut_.partsOf(round) * cut_.turn_blocks);
    add(winogradFilterProductsTile(problem_.storage), tiles, (turn * cut_.rounds + round) * tiles,
        convTileNs(flops / asDouble(tiles), 0, problem_.shape.type));
  }

 private:
  double packedNs(int64_t elements) const { return convTileNs(0, asDouble(elements), problem_.shape.type); }
  /// Of a block.
  double partFlops() const {
    return 2 * asDouble(kWinogradPlanes * cut_.channels * cut_.lanes) * asDouble(cut_.part_tiles);
  }
  /// So many tiles for each part of a round. The last round may have fewer parts, of which threads take as
  /// many.
  void addParts(ConvTile compute, int64_t tiles, int64_t turn, int64_t round, double ns) {
    add(compute, cut_.partsOf(round) * tiles, (turn * cut_.rounds + round) * cut_.round_parts * tiles, ns);
  }
  void add(ConvTile compute, int64_t tiles, int64_t first, double ns) {
    problem_.phases.push_back({compute, tiles, ns, first});
  }

  ConvProblem& problem_;
  const WinogradCut& cut_;
};

/// A filter that has several turns is transformed anew in each round: that takes less than what it would wait
/// for in memory.
void addCorrelation(const ConvProblem& problem, Phases phases) {
  const WinogradCut& cut = problem.winograd;
  for (int64_t round = 0; round < cut.rounds; ++round) {
    phases.sources(round);
    for (int64_t turn = 0; turn < cut.turns; ++turn) {
      if (round == 0 || cut.turns > 1) phases.filters(winogradFilterTile(problem.storage), turn);
      phases.products(winogradTile(problem.storage), turn, round);
    }
  }
}

/// Sources are transformed anew in each turn.
void addFilterGradient(const ConvProblem& problem, Phases phases) {
  const WinogradCut& cut = problem.winograd;
  for (int64_t turn = 0; turn < cut.turns; ++turn) {
    for (int64_t round = 0; round < cut.rounds; ++round) {
      phases.sources(round);
      phases.cotangents(turn, round);
      phases.filterProducts(turn, round);
    }
    phases.filters(winogradFilterGradientTile(problem.storage), turn);
  }
}

}  // namespace

void cutForWinograd(ConvProblem& problem) {
  problem.winograd = cutWinograd(problem.shape);
  problem.winograd_places = placesOf(problem.correlation, problem.winograd);
  if (problem.shape.kind == ConvKind::filter_gradient)
    addFilterGradient(problem, Phases(problem));
  else
    addCorrelation(problem, Phases(problem));
}

ConvTile winogradSourceTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeSourceTile<S>; });
}

}  // namespace gpuc
