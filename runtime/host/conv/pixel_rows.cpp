// dw[outputs, inputs] = Σ over the images of dy · x^T, of one tap at the pixel itself: lanes run along the
// pixels of a picture. Of x and dy the one with few channels is packed, a run at a time, and meets the other
// where that lies. The sum is cut into parts (cutPixelRows), which lie in the workspace until the last phase
// adds them up.
#include <algorithm>

#include "runtime/host/conv/patch_block.h"

namespace gpuc {
namespace {

/// Channels of 16-bit floats that are widened at once.
int64_t widenedAtOnce(const ConvProblem& problem) {
  const PixelRowsCut& cut = problem.pixel_rows;
  return std::min(cut.many, kPixelRowsBytes / (cut.images * cut.row * sizeOf(problem.shape.type)));
}

/// A part of the sum for one group: a range of all chunks. Tiles count groups first, then parts.
template <typename S>
class PixelRowsTile {
  using T = Computed<S>;

 public:
  PixelRowsTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile)
      : problem_(problem), cut_(problem.pixel_rows) {
    const ConvShape& s = problem.shape;
    const int64_t group = tile % s.groups;
    part_ = tile / s.groups;
    const S* x = static_cast<const S*>(operands.b) + inputOffset(s, 0, group);
    const S* dy = static_cast<const S*>(operands.a) + outputOffset(s, 0, group);
    const int64_t x_image = s.in_channels * s.inputPixels(), y_image = s.out_channels * s.outputPixels();
    few_ = cut_.few_inputs ? x : dy, many_ = cut_.few_inputs ? dy : x;
    few_image_ = cut_.few_inputs ? x_image : y_image, many_image_ = cut_.few_inputs ? y_image : x_image;
    pixels_ = s.outputPixels();
    sums_ = static_cast<T*>(problem.sums_in_workspace ? operands.workspace : operands.c) +
            part_ * s.filterElements() + filterOffset(s, group);
  }

  void compute() {
    alignas(64) std::byte scratch[kPixelRowsBytes];
    T* packed = reinterpret_cast<T*>(scratch);
    const int64_t first = cut_.chunks * part_ / cut_.parts, end = cut_.chunks * (part_ + 1) / cut_.parts;
    for (int64_t chunk = first; chunk < end; ++chunk) {
      const int64_t image = chunk / cut_.runs * cut_.images, pixel = chunk % cut_.runs * cut_.run;
      const int64_t images = std::min(cut_.images, problem_.shape.batch - image);
      const int64_t pixels = std::min(cut_.run, pixels_ - pixel);
      pack(few_ + image * few_image_ + pixel, few_image_, cut_.few, images, pixels, packed);
      const int64_t next = chunk + 1, next_image = next / cut_.runs, next_pixel = next % cut_.runs * cut_.run;
      const bool asks = cut_.images == 1;
      addProducts(many_ + image * many_image_ + pixel,
                  asks && next < end ? many_ + next_image * many_image_ + next_pixel : nullptr, packed,
                  images, pixels, chunk > first);
    }
  }

 private:
  /// packed[image][channel][pixel]
  void pack(const S* from, int64_t from_image, int64_t channels, int64_t images, int64_t pixels,
            T* packed) const {
    for (int64_t image = 0; image < images; ++image)
      problem_.vector_kernels->of<S>().widen({channels, pixels, from + image * from_image, pixels_,
                                              packed + image * channels * cut_.row, cut_.row});
  }

  void addProducts(const S* many, const S* next, const T* few, int64_t images, int64_t pixels,
                   bool accumulate) const {
    const int64_t inputs = problem_.shape.groupInputs();
    FilterProducts<T> products = {.images = images,
                                  .outputs = cut_.few,
                                  .rows = 1,
                                  .columns = pixels,
                                  .image = nullptr,
                                  .image_image = many_image_,
                                  .image_row = 0,
                                  .column_step = 1,
                                  .taps = cut_.many,
                                  .run_taps = 1,
                                  .places = problem_.direct.tap_places.data(),
                                  .dy = few,
                                  .dy_image = cut_.few * cut_.row,
                                  .dy_output = cut_.row,
                                  .dy_pixel = 0,
                                  .sums = sums_,
                                  .sums_output = cut_.few_inputs ? 1 : inputs,
                                  .sums_tap = cut_.few_inputs ? inputs : 1,
                                  .accumulate = accumulate,
                                  .asks = !kIsWidened<S> && cut_.images == 1,
                                  .next = nullptr};
    if constexpr (kIsWidened<S>) {
      addWidened(many, products);
    } else {
      products.image = many, products.next = next;
      problem_.patch_kernels->of<S>().direct.filterProducts(products);
    }
  }

  void addWidened(const S* many, FilterProducts<T> products) const {
    alignas(64) std::byte scratch[kPixelRowsBytes];
    T* widened = reinterpret_cast<T*>(scratch);
    const int64_t most = widenedAtOnce(problem_);
    products.image = widened;
    for (int64_t channel = 0; channel < cut_.many; channel += most) {
      products.taps = std::min(most, cut_.many - channel);
      products.image_image = products.taps * cut_.row;
      pack(many + channel * pixels_, many_image_, products.taps, products.images, products.columns, widened);
      problem_.patch_kernels->of<S>().direct.filterProducts(products);
      products.sums += most * products.sums_tap;
    }
  }

  const ConvProblem& problem_;
  const PixelRowsCut& cut_;
  const S *few_, *many_;
  int64_t few_image_, many_image_;  // elements of an image of all groups
  int64_t pixels_, part_;
  T* sums_;
};

template <typename S>
void computePixelRowsTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  PixelRowsTile<S>(problem, operands, tile).compute();
}

}  // namespace

void cutForPixelRows(ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  PixelRowsCut& cut = problem.pixel_rows;
  cut = cutPixelRows(s);
  const int64_t rows = problem.isWidened() ? widenedAtOnce(problem) : cut.many;
  for (int64_t row = 0; row < rows; ++row)
    problem.direct.tap_places.push_back(
        static_cast<int32_t>(row * (problem.isWidened() ? cut.row : s.outputPixels())));
  problem.parts = cut.parts;
  problem.sums_in_workspace = cut.parts > 1 || problem.isWidened();
  const double pixels = static_cast<double>(s.batch * s.outputPixels()) / static_cast<double>(cut.parts);
  const double flops = 2 * pixels * static_cast<double>(cut.few * cut.many);
  problem.phases.push_back({pixelRowsTile(problem.storage), cut.parts * s.groups,
                            convTileNs(flops, pixels * static_cast<double>(cut.few), s.type)});
}

ConvTile pixelRowsTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computePixelRowsTile<S>; });
}

}  // namespace gpuc
