// Depthwise: y, and x's cotangent.
#include "runtime/host/conv/depthwise/depthwise.h"
#include "runtime/host/conv/finish.h"

namespace gpuc {
namespace {

/// Some channels of one image, or of some. Tiles count blocks of channels first, then images.
template <typename S>
class DepthwiseTile {
 public:
  DepthwiseTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile)
      : problem_(problem),
        operands_(operands),
        cut_(problem.depthwise),
        to_input_(problem.shape.kind == ConvKind::input_gradient),
        image_(tile / cut_.blocks * cut_.images),
        first_(tile % cut_.blocks * cut_.channels) {}

  void compute() {
    // What is widened has room for one image.
    const int64_t end = std::min(image_ + cut_.images, problem_.shape.batch);
    images_ = kIsWidened<S> ? 1 : end - image_;
    for (; image_ < end; image_ += images_) computeImages();
  }

 private:
  using T = Computed<S>;

  void computeImages() {
    const ConvShape& s = problem_.shape;
    const int64_t end = std::min(first_ + cut_.channels, s.groups);
    const int64_t rows = to_input_ ? s.height.input : s.height.output;
    for (int64_t channel = first_; channel < end; channel += cut_.planes)
      for (int64_t row = 0; row < rows; row += cut_.rows)
        computeStrip(channel, std::min(cut_.planes, end - channel), row, std::min(row + cut_.rows, rows));
  }

  /// Rows of `channels` channels of x, or of the planes of y that belong to them.
  void computeStrip(int64_t channel, int64_t channels, int64_t row, int64_t row_end) {
    const ConvShape& s = problem_.shape;
    const int64_t many = to_input_ ? 1 : s.groupOutputs();  // planes of the result for each that is read
    const PlaneRows to = to_input_
                             ? PlaneRows{channels, s.inputPixels(), s.width.input, row, row_end}
                             : PlaneRows{channels * many, s.outputPixels(), s.width.output, row, row_end};
    const S* source = static_cast<const S*>(operands_.a) + offset(channel, !to_input_, image_);
    S* result = static_cast<S*>(operands_.c) + offset(channel, to_input_, image_);
    alignas(64) std::byte from_scratch[kIsWidened<S> ? kDepthwiseScratchBytes : 1];
    alignas(64) std::byte to_scratch[kIsWidened<S> ? kDepthwiseScratchBytes : 1];
    T* sums = kIsWidened<S> ? reinterpret_cast<T*>(to_scratch) : reinterpret_cast<T*>(result);
    const int64_t plane = kIsWidened<S> ? to.stripElements() : to.pixels;
    PlaneSums<T> work = sumsOf(channel);
    work.images = images_, work.planes = channels;
    work.source = readPlanes<S>(problem_, rowsMet(s, channels, row, row_end, !to_input_), source, 1,
                                reinterpret_cast<T*>(from_scratch));
    work.result_plane = many * plane, work.columns = to.columns;
    work.row = row, work.row_end = row_end;
    work.source_image = offset(0, !to_input_, 1) - offset(0, !to_input_, 0);
    work.result_image = offset(0, to_input_, 1) - offset(0, to_input_, 0);
    for (int64_t i = 0; i < many; ++i, work.filter += s.taps()) {
      work.result = sums + i * plane - (kIsWidened<S> ? row * to.columns : 0);
      sumPlanes(work);
    }
    S* strip = result + row * to.columns;
    if constexpr (kIsWidened<S>)
      problem_.vector_kernels->of<S>().narrow({to.planes, plane, sums, plane, strip, to.pixels});
    for (int64_t image = 0; image < images_; ++image)
      finish<S>(problem_, operands_, channel * many,
                {to.planes, to.stripElements(), strip + image * work.result_image, to.pixels});
  }

  bool isBackwards() const { return to_input_ && problem_.shape.width.stride > 1; }

  /// By strides of one, x's cotangent is the sum of the flipped filter's windows of y's.
  PlaneSums<T> sumsOf(int64_t channel) const {
    const ConvShape& s = problem_.shape;
    const ConvShape& padded = isBackwards() ? s : problem_.correlation;
    PlaneSums<T> p{};
    p.low_row = padded.height.low, p.low_column = padded.width.low;
    p.filter = filterOf<S>(operands_) + filterOffset(s, channel);
    p.filter_plane = s.groupOutputs() * s.taps();
    p.flipped = to_input_ && !isBackwards();
    return p;
  }

  void sumPlanes(const PlaneSums<T>& p) const {
    const ConvAxis& width = problem_.shape.width;
    const PlaneKernels<T>& kernels = problem_.patch_kernels->of<S>().planes.of(width.kernel, width.stride);
    (isBackwards() ? kernels.backwards : kernels.sums)(p);
  }

  int64_t offset(int64_t channel, bool of_x, int64_t image) const {
    return of_x ? inputOffset(problem_.shape, image, channel) : outputOffset(problem_.shape, image, channel);
  }

  const ConvProblem& problem_;
  const ConvOperands& operands_;
  const DepthwiseCut& cut_;
  bool to_input_;
  int64_t image_, first_, images_ = 1;
};

template <typename S>
void computeDepthwiseTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  DepthwiseTile<S>(problem, operands, tile).compute();
}

}  // namespace

ConvTile depthwiseTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeDepthwiseTile<S>; });
}

void cutForDepthwise(ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  const DepthwiseCut& cut = problem.depthwise = cutDepthwise(s);
  const bool to_filter = s.kind == ConvKind::filter_gradient;
  const int64_t tiles = cut.blocks * (to_filter ? cut.parts : (s.batch + cut.images - 1) / cut.images);
  const double outputs = static_cast<double>(s.batch * s.out_channels * s.outputPixels());
  const double ns =
      convTileNs(2 * outputs * static_cast<double>(s.taps()) / static_cast<double>(tiles), 0, s.type);
  problem.phases.push_back(
      {to_filter ? depthwiseFilterTile(problem.storage) : depthwiseTile(problem.storage), tiles, 2 * ns});
  if (!to_filter) return;
  problem.parts = cut.parts;
  problem.sums_in_workspace = cut.parts > 1 || problem.isWidened();
}

}  // namespace gpuc
