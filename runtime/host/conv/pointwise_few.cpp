// One tap at the pixel itself, of few results: each has a sum in registers, so that what is read is read
// once, where it lies; and between the multiply-adds lines are asked for that come next.
#include <algorithm>

#include "runtime/host/conv/finish.h"
#include "runtime/host/conv/patch_block.h"

namespace gpuc {
namespace {

constexpr int64_t kMostRows = 16, kMostTerms = 192;

int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// All channels of the result, of one group, at some pixels of an image.
template <typename T>
class FewTile {
 public:
  /// Tiles count parts of an image first, then groups, then images.
  FewTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile)
      : problem_(problem),
        operands_(operands),
        to_input_(problem.shape.kind == ConvKind::input_gradient),
        rows_(problem.blocks.m),
        terms_(problem.blocks.k) {
    const ConvShape& s = problem.shape;
    const FewCut& cut = problem.few;
    pixels_ = s.outputPixels();
    first_pixel_ = tile % cut.parts * cut.part_pixels;
    last_pixel_ = std::min(pixels_, first_pixel_ + cut.part_pixels);
    tile /= cut.parts;
    group_ = tile % s.groups;
    const int64_t image = tile / s.groups;
    const int64_t x = inputOffset(s, image, group_), y = outputOffset(s, image, group_);
    source_ = static_cast<const T*>(operands.a) + (to_input_ ? y : x);
    result_ = static_cast<T*>(operands.c) + (to_input_ ? x : y);
    packFilter();
  }

  void compute() {
    const auto multiply = problem_.patch_kernels->of<T>().few.byRows[problem_.few.rows / 4 - 1];
    const int64_t block = problem_.few.pixels;
    for (int64_t pixel = first_pixel_; pixel < last_pixel_; pixel += block) {
      const int64_t next = pixel + block, columns = std::min(block, last_pixel_ - pixel);
      multiply({.rows = rows_,
                .columns = columns,
                .depth = terms_,
                .w = filter_,
                .source = source_ + pixel,
                .source_row = pixels_,
                .result = result_ + pixel,
                .result_row = pixels_,
                .next = next < last_pixel_ ? source_ + next : nullptr});
      finish<T>(problem_, operands_, group_ * rows_, {rows_, columns, result_ + pixel, pixels_});
    }
  }

 private:
  /// [term][row]; zeros for rows that do not exist.
  void packFilter() {
    const int64_t inputs = problem_.shape.groupInputs();
    const T* from = filterOf<T>(operands_) + filterOffset(problem_.shape, group_);
    T* to = filter_;
    for (int64_t term = 0; term < terms_; ++term)
      for (int64_t row = 0; row < problem_.few.rows; ++row)
        *to++ = row < rows_ ? from[to_input_ ? term * inputs + row : row * inputs + term] : T{0};
  }

  const ConvProblem& problem_;
  const ConvOperands& operands_;
  bool to_input_;
  int64_t rows_, terms_, pixels_, group_, first_pixel_, last_pixel_;
  const T* source_;
  T* result_;
  alignas(64) T filter_[kMostTerms * kMostRows];
};

template <typename T>
void computeFewTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  FewTile<T>(problem, operands, tile).compute();
}

}  // namespace

/// Of large pictures, which come from memory. Small ones lie in the caches, where products of more columns,
/// which load less for each multiply-add, are quicker.
bool hasFewResults(const ConvProblem& problem) {
  constexpr int64_t kFewTerms = 16, kManyPixels = 2048;
  const GemmBlocks& b = problem.blocks;
  return problem.patch_kernels->of<float>().few.byRows[0] && !problem.isWidened() && !problem.takes_pixels &&
         b.m <= kMostRows && b.k > kFewTerms && b.k <= kMostTerms && b.n == problem.shape.outputPixels() &&
         b.n >= kManyPixels;
}

void cutForFewResults(ConvProblem& problem) {
  constexpr int64_t kBlockBytes = 512, kFewTiles = 16;
  const ConvShape& s = problem.shape;
  const GemmBlocks& b = problem.blocks;
  FewCut& cut = problem.few;
  problem.has_own_products = true;
  cut.rows = ceilDivide(b.m, 4) * 4;
  cut.pixels = kBlockBytes / sizeOf(s.type);
  const int64_t others = s.batch * s.groups;
  cut.part_pixels = ceilDivide(ceilDivide(b.n, cut.pixels), ceilDivide(kFewTiles, others)) * cut.pixels;
  cut.parts = ceilDivide(b.n, cut.part_pixels);
  const double terms = static_cast<double>(b.m) * static_cast<double>(b.k);
  problem.phases.push_back(
      {pointwiseFewTile(problem.storage), others * cut.parts,
       convTileNs(2 * terms * static_cast<double>(std::min(b.n, cut.part_pixels)), 0, s.type)});
}

ConvTile pointwiseFewTile(DataType storage) {
  return storage == DataType::f64 ? computeFewTile<double> : computeFewTile<float>;
}

}  // namespace gpuc
