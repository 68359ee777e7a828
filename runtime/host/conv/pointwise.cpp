// One tap at the pixel itself: y[outputs, pixels] = w[outputs, inputs] · x[inputs, pixels], and x's cotangent
// is w^T · dy. The columns of a product are adjoining pixels of one image, or all pixels of some images.
#include <algorithm>

#include "runtime/host/conv/finish.h"
#include "runtime/host/conv/patch_block.h"

namespace gpuc {
namespace {

int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// What one tile computes: some channels of the result at some pixels of one image, or at all of some images.
struct PointwiseTile {
  int64_t image, images, pixel, pixels;
  int64_t group, channel, channels;  // the first channel counts within the group

  /// Tiles count blocks of pixels first, then of channels, then groups, then images.
  PointwiseTile(const ConvProblem& problem, int64_t tile) {
    const GemmBlocks& b = problem.blocks;
    const int64_t column = tile % b.blocksN() * b.block_n, columns = std::min(b.block_n, b.n - column);
    tile /= b.blocksN();
    const int64_t channel_tiles = ceilDivide(b.m, problem.channels_per_tile);
    channel = tile % channel_tiles * problem.channels_per_tile;
    channels = std::min(problem.channels_per_tile, b.m - channel);
    tile /= channel_tiles;
    group = tile % problem.shape.groups;
    const int64_t of_image = problem.shape.outputPixels();
    const bool some_images = b.n != of_image;
    image = some_images ? column / of_image : tile / problem.shape.groups;
    images = some_images ? columns / of_image : 1;
    pixel = some_images ? 0 : column;
    pixels = columns / images;
  }
};

/// The operands of one tile. Sums of f32 and f64 stand in the result where a block's columns adjoin there; a
/// block of the source is packed once for all of them. Others go to the stack, some channels at a time, and
/// what is packed in several blocks is packed for each.
template <typename S>
class PointwiseProducts {
  using T = Computed<S>;

 public:
  PointwiseProducts(const ConvProblem& problem, const ConvOperands& operands, const PointwiseTile& tile,
                    T* packed)
      : problem_(problem), operands_(operands), tile_(tile), packed_(packed) {
    const ConvShape& s = problem.shape;
    const bool to_input = s.kind == ConvKind::input_gradient;
    const int64_t x = inputOffset(s, tile.image, tile.group), y = outputOffset(s, tile.image, tile.group);
    pixels_ = s.outputPixels();
    source_ = static_cast<const S*>(operands.a) + (to_input ? y : x) + tile.pixel;
    result_ = static_cast<S*>(operands.c) + (to_input ? x : y) + tile.channel * pixels_ + tile.pixel;
    source_image_ = (to_input ? s.out_channels : s.in_channels) * pixels_;
    result_image_ = (to_input ? s.in_channels : s.out_channels) * pixels_;
    filter_channel_ = to_input ? 1 : s.groupInputs();
    filter_depth_ = to_input ? s.groupInputs() : 1;
    filter_ = filterOf<S>(operands) + filterOffset(s, tile.group) + tile.channel * filter_channel_;
  }

  void toResult() {
    const GemmBlocks& b = problem_.blocks;
    for (int64_t depth = 0; depth < b.k; depth += b.block_k) {
      const T* columns = pack(depth);
      for (int64_t channel = 0; channel < tile_.channels; channel += b.block_m)
        multiply(channel, depth, columns, reinterpret_cast<T*>(result_) + channel * pixels_);
    }
  }

  void by(T* sums) {
    const GemmBlocks& b = problem_.blocks;
    const T* columns = nullptr;
    for (int64_t channel = 0; channel < tile_.channels; channel += b.block_m) {
      for (int64_t depth = 0; depth < b.k; depth += b.block_k) {
        if (channel == 0 || b.blocksK() > 1) columns = pack(depth);
        multiply(channel, depth, columns, sums);
      }
      for (int64_t image = 0; image < tile_.images; ++image)
        problem_.vector_kernels->of<S>().narrow(
            {channelsFrom(channel), tile_.pixels, sums + image * tile_.pixels, problem_.stride_b,
             result_ + image * result_image_ + channel * pixels_, pixels_});
    }
  }

  void finishResult(const ConvOperands& operands) {
    for (int64_t image = 0; image < tile_.images; ++image)
      finish<S>(problem_, operands, tile_.group * problem_.blocks.m + tile_.channel,
                {tile_.channels, tile_.pixels, result_ + image * result_image_, pixels_});
  }

 private:
  int64_t channelsFrom(int64_t channel) const {
    return std::min(problem_.blocks.block_m, tile_.channels - channel);
  }
  int64_t depthFrom(int64_t depth) const {
    return std::min(problem_.blocks.block_k, problem_.blocks.k - depth);
  }

  const T* pack(int64_t depth) const {
    if (problem_.takes_pixels) return take(depth);
    const S* from = source_ + depth * pixels_;
    if constexpr (!kIsWidened<S>)
      if (problem_.isInPlace()) return from;
    for (int64_t image = 0; image < tile_.images; ++image)
      problem_.vector_kernels->of<S>().widen({depthFrom(depth), tile_.pixels, from + image * source_image_,
                                              pixels_, packed_ + image * tile_.pixels, problem_.stride_b});
    return packed_;
  }

  /// The same of the picture that has strides.
  const T* take(int64_t depth) const {
    const ConvShape& s = *problem_.strided;
    for (int64_t image = 0; image < tile_.images; ++image) {
      TakenPixels<S, T> taken =
          takenPixels(s,
                      static_cast<const S*>(operands_.a) + inputOffset(s, tile_.image + image, tile_.group) +
                          depth * s.inputPixels(),
                      packed_ + image * tile_.pixels);
      taken.channels = depthFrom(depth), taken.values_channel = problem_.stride_b;
      taken.pixel = tile_.pixel, taken.pixels = tile_.pixels;
      problem_.patch_kernels->of<S>().takeWide(taken);
    }
    return packed_;
  }

  void multiply(int64_t channel, int64_t depth, const T* columns, T* sums) const {
    problem_.multiply(filter_ + channel * filter_channel_ + depth * filter_depth_, columns, sums,
                      channelsFrom(channel), tile_.images * tile_.pixels, depthFrom(depth), depth > 0);
  }

  const ConvProblem& problem_;
  const ConvOperands& operands_;
  const PointwiseTile& tile_;
  T* packed_;
  const S* source_;
  S* result_;
  const T* filter_;
  int64_t pixels_;                         // of an image
  int64_t source_image_, result_image_;    // elements of an image of all groups
  int64_t filter_channel_, filter_depth_;  // from one channel of the result, or of the source, to the next
};

template <typename S>
void computePointwiseTile(const ConvProblem& problem, const ConvOperands& operands, int64_t index) {
  using T = Computed<S>;
  const PointwiseTile tile(problem, index);
  alignas(64) std::byte packed[kLongRunBytes];       // block_k x block_n
  alignas(64) std::byte sum_scratch[kConvSumBytes];  // block_m x block_n
  PointwiseProducts<S> products(problem, operands, tile, reinterpret_cast<T*>(packed));
  if (problem.sumsInResult())
    products.toResult();
  else
    products.by(reinterpret_cast<T*>(sum_scratch));
  products.finishResult(operands);
}

}  // namespace

/// Long runs of pixels where memory is what takes the time, since it is quicker at those: where few channels
/// are read, or more than the caches hold; the longest where next to nothing is read for what is written. The
/// same for 16-bit types as for f32, as all extents of products are: an element's sum may depend on them.
int64_t pointwiseRun(const ConvProblem& problem) {
  constexpr int64_t kFewChannels = 128, kHardlyAnyChannels = 16, kCachedBytes = 32 << 20, kRun = 64;
  const ConvShape& s = problem.shape;
  const bool to_input = s.kind == ConvKind::input_gradient;
  const int64_t channels = problem.blocks.k, long_run = 1024 / sizeOf(s.type);
  const int64_t elements = to_input ? s.batch * s.out_channels * s.outputPixels() : s.inputElements();
  if (channels <= kHardlyAnyChannels) return 2 * long_run;
  if (problem.takes_pixels) return channels > kFewChannels / 2 ? 2 * kRun : long_run;
  if (elements * sizeOf(s.type) > kCachedBytes) return long_run;
  if (to_input && channels > kFewChannels) return kRun;
  if (to_input && channels > kFewChannels / 2) return std::max(kRun, long_run / 2);
  return channels <= kFewChannels || s.outputPixels() <= long_run ? long_run : kRun;
}

/// Pixels of a block. Those that are taken from a picture with strides are whole rows, if they fit, of whose
/// numbers the largest among those that leave the fewest lanes idle.
int64_t pointwiseBlock(const ConvProblem& problem, int64_t pixels) {
  constexpr int64_t kLanes = 16;
  const ConvShape& s = problem.strided ? *problem.strided : problem.shape;
  const int64_t columns = s.width.output, run = pointwiseRun(problem);
  if (!problem.takes_pixels || columns > run) return evenConvPart(pixels, run, kLanes);
  int64_t block = columns;
  for (int64_t next = columns; next <= std::min(run, pixels); next += columns)
    if (lanesUsed(next, s) >= lanesUsed(block, s)) block = next;
  return block;
}

void cutForPointwise(ConvProblem& problem) {
  constexpr int64_t kLanes = 16, kManyTiles = 16, kMostDepth = 256;
  const ConvShape& s = problem.shape;
  const bool to_input = s.kind == ConvKind::input_gradient;
  GemmBlocks& b = problem.blocks;
  b.m = to_input ? s.groupInputs() : s.groupOutputs();
  b.k = to_input ? s.groupOutputs() : s.groupInputs();
  const int64_t images = adjoiningImages(s);
  b.n = (images > 1 ? s.batch : 1) * s.outputPixels();
  b.block_n = images > 1 ? images * s.outputPixels() : pointwiseBlock(problem, b.n);
  problem.stride_b = paddedConvRow(b.block_n, s.type);
  // Of a long row a line of the cache more, lest rows share few of its sets.
  if (problem.stride_b > 64) problem.stride_b += kConvPackBytes / sizeOf(s.type);
  const int64_t row_bytes = problem.stride_b * sizeOf(s.type);
  b.block_k = evenConvPart(b.k, std::min(kMostDepth, kLongRunBytes / row_bytes / kLanes * kLanes), kLanes);
  const int64_t others = s.groups * (images > 1 ? 1 : s.batch) * b.blocksN(),
                most = others >= kManyTiles ? 256 : 64;
  b.block_m =
      evenConvPart(std::min(b.m, most), std::min(most, kConvSumBytes / row_bytes / kLanes * kLanes), kLanes);
  // Pixels that a tile takes from a picture with strides are to be taken once.
  const int64_t all = problem.takes_pixels && others >= kManyTiles ? b.m : most;
  problem.channels_per_tile = std::min(b.m, std::max<int64_t>(1, all / b.block_m) * b.block_m);
  if (hasFewResults(problem)) return cutForFewResults(problem);
  if (packsAhead(problem)) return cutForPackingAhead(problem);
  const double elements = static_cast<double>(b.block_n) * static_cast<double>(b.k);
  const double channels = static_cast<double>(problem.channels_per_tile);
  problem.phases.push_back({pointwiseTile(problem.storage),
                            others * ceilDivide(b.m, problem.channels_per_tile),
                            convTileNs(2 * elements * channels, elements, s.type)});
}

ConvTile pointwiseTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computePointwiseTile<S>; });
}

}  // namespace gpuc
