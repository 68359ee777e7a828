// Depthwise: the filter's gradient. Each tap's sum is a vector until the last image of a part; parts lie in
// the workspace until the last phase adds them up.
#include "runtime/host/conv/depthwise/depthwise.h"

namespace gpuc {
namespace {

/// Some channels over one part of all images. Tiles count blocks of channels first, then parts.
template <typename S>
class DepthwiseFilterTile {
 public:
  DepthwiseFilterTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile)
      : problem_(problem),
        operands_(operands),
        cut_(problem.depthwise),
        first_(tile % cut_.blocks * cut_.channels),
        part_(tile / cut_.blocks) {}

  void compute() {
    const ConvShape& s = problem_.shape;
    alignas(64) std::byte lane_scratch[std::max(kDepthwiseSumBytes, kDepthwiseLaneSumBytes)];
    lanes_ = reinterpret_cast<T*>(lane_scratch);
    const int64_t channels = std::min(cut_.channels, s.groups - first_);
    const int64_t sums = channels * s.groupOutputs() * s.taps();
    std::fill_n(lanes_, sums * kRoom, T(0));
    const int64_t image_end = s.batch * (part_ + 1) / cut_.parts;
    const int64_t at_once = imagesAtOnce();
    for (int64_t image = s.batch * part_ / cut_.parts; image < image_end; image += at_once)
      for (int64_t channel = 0; channel < channels; channel += cut_.planes)
        for (int64_t row = 0; row < s.height.output; row += cut_.rows)
          addStrip(image, std::min(at_once, image_end - image), channel,
                   std::min(cut_.planes, channels - channel), row,
                   std::min(row + cut_.rows, s.height.output));
    T* to = static_cast<T*>(problem_.sums_in_workspace ? operands_.workspace : operands_.c);
    to += part_ * s.filterElements() + filterOffset(s, first_);
    for (int64_t channel = 0; channel < channels; channel += cut_.planes)
      addUp(channel, std::min(cut_.planes, channels - channel), to);
  }

 private:
  using T = Computed<S>;
  static constexpr int64_t kRoom = kPlaneLaneBytes / static_cast<int64_t>(sizeof(T));

  /// Images that a plane meets while its sums are in registers, where it has so little that to load and store
  /// them takes as long; more of them have lines that drive each other out of the first-level cache.
  int64_t imagesAtOnce() const {
    constexpr int64_t kFewPixels = 16 * 16, kImages = 4;
    return !kIsWidened<S> && problem_.shape.outputPixels() <= kFewPixels ? kImages : 1;
  }

  /// Rows of y of some images, of the tile's `channels` channels from `channel` on.
  void addStrip(int64_t image, int64_t images, int64_t channel, int64_t channels, int64_t row,
                int64_t row_end) const {
    const ConvShape& s = problem_.shape;
    const int64_t many = s.groupOutputs();
    alignas(64) std::byte x_scratch[kIsWidened<S> ? kDepthwiseScratchBytes : 1];
    alignas(64) std::byte y_scratch[kIsWidened<S> ? kDepthwiseScratchBytes : 1];
    const ReadPlanes<T> x =
        readPlanes<S>(problem_, rowsMet(s, channels, row, row_end, true),
                      static_cast<const S*>(operands_.b) + inputOffset(s, image, first_ + channel), 1,
                      reinterpret_cast<T*>(x_scratch));
    ReadPlanes<T> y =
        readPlanes<S>(problem_, {channels * many, s.outputPixels(), s.width.output, row, row_end},
                      static_cast<const S*>(operands_.a) + outputOffset(s, image, first_ + channel), many,
                      reinterpret_cast<T*>(y_scratch));
    for (int64_t i = 0; i < many; ++i, y.data += y.plane / many)
      kernels().products(productsOf(images, channel, channels, i, x, y));
  }

  /// What the kernels have added up of some channels.
  void addUp(int64_t channel, int64_t channels, T* sums) const {
    const ConvShape& s = problem_.shape;
    const int64_t many = s.groupOutputs();
    const PlaneRows met = rowsMet(s, channels, 0, std::min(cut_.rows, s.height.output), true);
    const ReadPlanes<T> x = {nullptr, 0, s.width.input, met.row, met.row_end};
    const ReadPlanes<T> y = {nullptr, 0, s.width.output, 0, std::min(cut_.rows, s.height.output)};
    for (int64_t i = 0; i < many; ++i)
      kernels().addUp(productsOf(1, channel, channels, i, x, y), sums + (channel * many + i) * s.taps(),
                      many * s.taps());
  }

  /// Those of output i of each channel.
  PlaneProducts<T> productsOf(int64_t images, int64_t channel, int64_t channels, int64_t i,
                              const ReadPlanes<T>& x, const ReadPlanes<T>& y) const {
    const ConvShape& s = problem_.shape;
    const int64_t many = s.groupOutputs();
    return {.images = images,
            .planes = channels,
            .x = x,
            .y = y,
            .x_image = s.in_channels * s.inputPixels(),
            .y_image = s.out_channels * s.outputPixels(),
            .low_row = s.height.low,
            .low_column = s.width.low,
            .lanes = lanes_ + (channel * many + i) * s.taps() * kRoom,
            .lanes_plane = many * s.taps() * kRoom};
  }

  const PlaneKernels<T>& kernels() const {
    const ConvAxis& width = problem_.shape.width;
    return problem_.patch_kernels->of<S>().planes.of(width.kernel, width.stride);
  }

  const ConvProblem& problem_;
  const ConvOperands& operands_;
  const DepthwiseCut& cut_;
  int64_t first_, part_;
  T* lanes_ = nullptr;
};

template <typename S>
void computeDepthwiseFilterTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  DepthwiseFilterTile<S>(problem, operands, tile).compute();
}

}  // namespace

ConvTile depthwiseFilterTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeDepthwiseFilterTile<S>; });
}

}  // namespace gpuc
