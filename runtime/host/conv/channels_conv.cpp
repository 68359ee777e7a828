// y = filter correlated with x, and x's cotangent from y's, tap by tap as products of packed pixels and a
// block of the filter that is packed by the tile that uses it.
#include <algorithm>

#include "runtime/host/conv/finish.h"
#include "runtime/host/conv/patch_block.h"

namespace gpuc {
namespace {

/// Some channels of the result in a strip of its rows, for a part of the images.
template <typename S>
class ChannelsTile {
 public:
  using T = Computed<S>;

  /// Tiles count strips first, then parts of a round, then blocks of the result's channels, whose filter
  /// tiles so share; where the last block is smaller, blocks before strips, so that threads which take as
  /// many tiles have as much to do. Then groups, then rounds.
  ChannelsTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile)
      : problem_(problem), operands_(operands), cut_(problem.channels.cut) {
    const ConvShape& s = problem.shape;
    to_input_ = s.kind == ConvKind::input_gradient;
    const int64_t places = cut_.strips * cut_.round_parts, within = tile % (places * cut_.blocks);
    const bool is_even = (to_input_ ? s.groupInputs() : s.groupOutputs()) % cut_.lanes == 0;
    const int64_t place = is_even ? within % places : within / cut_.blocks;
    first_ = (is_even ? within / places : within % cut_.blocks) * cut_.lanes;
    strip_ = place % cut_.strips * cut_.strip_rows;
    round_part_ = place / cut_.strips;
    tile /= places * cut_.blocks;
    group_ = tile % cut_.groups;
    part_ = tile / cut_.groups * cut_.round_parts + round_part_;
    const int64_t inputs = inputsOf(s, cut_, group_), outputs = outputsOf(s, cut_, group_);
    results_ = std::min(cut_.lanes, (to_input_ ? inputs : outputs) - first_);
    depth_ = cut_.joined > 1 ? cut_.met : to_input_ ? outputs : inputs;
    rows_ = std::min(cut_.strip_rows, (to_input_ ? s.height.input : s.height.output) - strip_);
    images_ = std::min(cut_.images, s.batch - part_ * cut_.images);
  }

  void compute() {
    if (images_ <= 0) return;  // of the last round, which may have fewer parts
    alignas(64) std::byte filter_scratch[kChannelsFilterRows * kChannelsRowBytes];
    alignas(64) std::byte sum_scratch[kChannelsSumRows * kChannelsRowBytes];
    filter_ = reinterpret_cast<T*>(filter_scratch);
    sums_ = reinterpret_cast<T*>(sum_scratch);
    for (int64_t channel = 0; channel < depth_; channel += cut_.chunk) {
      const int64_t channels = std::min(cut_.chunk, depth_ - channel);
      packFilter(channel, channels);
      addProducts(channel, channels);
    }
    unpack();
  }

 private:
  /// filter_[channel · taps + tap][result], of channels that are summed up.
  void packFilter(int64_t channel, int64_t channels) {
    const ConvShape& s = problem_.shape;
    const TypedVectorKernels<S>& kernels = problem_.vector_kernels->of<S>();
    const S* filter = static_cast<const S*>(operands_.b) + filterOffset(s, group_ * cut_.joined);
    const int64_t taps = s.taps(), row = s.patchRows();
    if (!to_input_)
      return kernels.transpose(
          {results_, channels * taps, filter + first_ * row + channel * taps, row, filter_, cut_.lanes});
    if (cut_.joined > 1) return packJoinedFilter(filter);
    if (taps == 1 && results_ == cut_.lanes)  // it lies so already
      return kernels.widen({channels, results_, filter + channel * row + first_, row, filter_, cut_.lanes});
    for (int64_t i = 0; i < channels; ++i)
      kernels.transpose({results_, taps, filter + (channel + i) * row + first_ * taps, taps,
                         filter_ + i * taps * cut_.lanes, cut_.lanes});
  }

  /// The same of x's cotangent from groups side by side: each of a group's outputs has its filter of all
  /// inputs in their lanes.
  void packJoinedFilter(const S* filter) {
    constexpr int64_t kMostRow = 8 * kMostJoinedTaps;
    const int64_t inputs = cut_.met, taps = problem_.shape.taps();
    T row[kMostRow];
    for (int64_t result = 0; result < results_; ++result) {
      problem_.vector_kernels->of<S>().widen({1, inputs * taps, filter + result * inputs * taps, 0, row, 0});
      T* to = filter_ + result % inputs * taps * cut_.lanes + result / inputs * inputs;
      for (int64_t tap = 0; tap < taps; ++tap, to += cut_.lanes)
        for (int64_t input = 0; input < inputs; ++input) to[input] = row[input * taps + tap];
    }
  }

  void addProducts(int64_t channel, int64_t channels) {
    const ConvShape& s = problem_.shape;
    const ChannelsProblem& taps = problem_.channels;
    const PackedPicture& source = taps.source(s.kind);
    const T* pixels = static_cast<const T*>(operands_.workspace) +
                      (group_ * cut_.round_parts + round_part_) * source.elements() +
                      source.offset(channel, images_);
    for (int64_t row = 0; row < rows_; ++row)
      for (size_t run = 0; run < taps.runs.size(); ++run) {
        ProductRun products[kMostChannelsTaps];
        const int64_t count = findProducts(strip_ + row, static_cast<int64_t>(run), channels, products);
        const auto [first, columns] = taps.runs[run];
        const TypedChannelKernels<S>& kernels = problem_.patch_kernels->of<S>().channels;
        (cut_.joined > 1 ? kernels.groupTermsAlong : kernels.termsAlong)(
            {.rows = columns * images_,
             .columns = results_,
             .group = cut_.met,
             .terms = products,
             .term_count = count,
             .a = pixels,
             .a_step = source.block,
             .b = filter_,
             .b_step = s.taps() * cut_.lanes,
             .sums = sums_ + (row * resultColumns() + first) * images_ * cut_.lanes,
             .sums_row = cut_.lanes,
             .accumulate = channel > 0});
      }
  }

  /// Of each block of channels and tap that meets a run in a row of the result.
  int64_t findProducts(int64_t row, int64_t run, int64_t channels, ProductRun* products) const {
    const ConvShape& s = problem_.shape;
    const ChannelsProblem& taps = problem_.channels;
    const PackedPicture& source = taps.source(s.kind);
    const int32_t* source_rows = taps.source_rows.data() + row * s.height.kernel;
    const int32_t* source_columns = taps.source_columns.data() + run * s.width.kernel;
    const int64_t block = source.offset(source.block, images_);
    int64_t count = 0;
    for (int64_t channel = 0; channel < channels; channel += source.block)
      for (int64_t i = 0; i < s.height.kernel; ++i)
        for (int64_t j = 0; j < s.width.kernel; ++j) {
          if (source_rows[i] < 0 || source_columns[j] < 0) continue;
          const int64_t pixel = source_rows[i] * source.columns() + source_columns[j];
          products[count++] = {
              channel / source.block * block + pixel * images_ * source.block,
              (channel * s.taps() + i * s.width.kernel + j) * cut_.lanes,
              std::min(source.block, channels - channel),
          };
        }
    return count;
  }

  int64_t resultColumns() const { return to_input_ ? cut_.x.columns() : cut_.y.columns(); }

  void unpack() {
    const ConvShape& s = problem_.shape;
    const ChannelsProblem& places = problem_.channels;
    const int64_t all_pixels = to_input_ ? s.inputPixels() : s.outputPixels();
    const int64_t width = to_input_ ? s.width.input : s.width.output;
    const int64_t first_pixel = strip_ * width, pixels = rows_ * width;
    const int64_t channel = group_ * cut_.joined * (to_input_ ? s.groupInputs() : s.groupOutputs()) + first_;
    for (int64_t i = 0; i < images_; ++i) {
      const int64_t image = part_ * cut_.images + i;
      const int64_t group = group_ * cut_.joined;
      const int64_t offset = to_input_ ? inputOffset(s, image, group) : outputOffset(s, image, group);
      S* result = static_cast<S*>(operands_.c) + offset + first_ * all_pixels + first_pixel;
      problem_.patch_kernels->of<S>().channels.unpack(
          {.channels = results_,
           .pixels = pixels,
           .sums = sums_ + i * cut_.lanes,
           .pixel_stride = images_ * cut_.lanes,
           .places = (to_input_ ? places.x_places.data() : places.y_places.data()) + first_pixel,
           .first_place = strip_ * resultColumns(),
           .picture = result,
           .channel_stride = all_pixels});
      finish<S>(problem_, operands_, channel, {results_, pixels, result, all_pixels});
    }
  }

  const ConvProblem& problem_;
  const ConvOperands& operands_;
  const ChannelsCut& cut_;
  int64_t part_, round_part_, group_, first_, results_;  // of the result's channels in the group
  int64_t depth_, images_, strip_, rows_;                // rows_ of the result, from strip_ on
  bool to_input_;
  T *filter_ = nullptr, *sums_ = nullptr;
};

template <typename S>
void computeChannelsTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  ChannelsTile<S>(problem, operands, tile).compute();
}

}  // namespace

ConvTile channelsTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeChannelsTile<S>; });
}

}  // namespace gpuc
