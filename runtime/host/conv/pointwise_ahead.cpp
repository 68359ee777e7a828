// One tap at the pixel itself, of many channels: what a product reads has been packed by the one before it,
// row by row between its multiply-adds, so that memory and arithmetic do not wait for each other.
#include <algorithm>

#include "runtime/host/conv/finish.h"
#include "runtime/host/conv/patch_block.h"

namespace gpuc {
namespace {

/// Of what is packed at once, two thirds of the first-level cache.
constexpr int64_t kMostDepth = 128, kBlockBytes = 256;
/// Of a tile.
constexpr int64_t kMostChannels = 256;

int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t evenBegin(int64_t total, int64_t parts, int64_t index) { return total * index / parts; }

/// Some channels of the result at some pixels of one image.
template <typename S>
class AheadTile {
  using T = Computed<S>;

 public:
  /// Tiles count parts of an image first, then channels, then groups, then images.
  AheadTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile)
      : problem_(problem),
        operands_(operands),
        cut_(problem.ahead),
        kernels_(problem.patch_kernels->of<S>().pointwise) {
    const ConvShape& s = problem.shape;
    const int64_t part = tile % cut_.parts;
    tile /= cut_.parts;
    const int64_t channel = tile % cut_.channel_tiles * cut_.channels;
    tile /= cut_.channel_tiles;
    const int64_t group = tile % s.groups, image = tile / s.groups;
    first_block_ = evenBegin(cut_.column_blocks, cut_.parts, part);
    blocks_ = evenBegin(cut_.column_blocks, cut_.parts, part + 1) - first_block_;
    pixels_ = s.outputPixels();
    to_input_ = s.kind == ConvKind::input_gradient;
    const int64_t x = inputOffset(s, image, group), y = outputOffset(s, image, group);
    source_ = static_cast<const S*>(operands.a) + (to_input_ ? y : x);
    result_ = static_cast<S*>(operands.c) + (to_input_ ? x : y) + channel * pixels_;
    w_ = filterOf<S>(operands) + filterOffset(s, group) + channel * (to_input_ ? 1 : s.groupInputs());
    channels_ = std::min(cut_.channels, (to_input_ ? s.groupInputs() : s.groupOutputs()) - channel);
    first_channel_ = group * (to_input_ ? s.groupInputs() : s.groupOutputs()) + channel;
  }

  void compute() {
    if constexpr (kIsWidened<S>)
      addAside();
    else
      addInResult();
  }

 private:
  int64_t depthBegin(int64_t block) const { return evenBegin(cut_.depth, cut_.depth_blocks, block); }
  int64_t depthOf(int64_t block) const { return depthBegin(block + 1) - depthBegin(block); }
  int64_t columnBegin(int64_t block) const {
    constexpr int64_t kLanes = kConvPackBytes / static_cast<int64_t>(sizeof(T));
    return std::min(pixels_, evenBegin(cut_.column_vectors, cut_.column_blocks, block) * kLanes);
  }
  int64_t columnsOf(int64_t block) const { return columnBegin(block + 1) - columnBegin(block); }

  /// Columns come first: a block of the filter stays in the second-level cache.
  void addInResult() {
    alignas(64) std::byte scratch[2][kMostDepth * kBlockBytes];
    auto room = [&](int64_t step) { return reinterpret_cast<T*>(scratch[step % 2]); };
    const int64_t steps = blocks_ * cut_.depth_blocks;
    kernels_.pack(packed(0, room(0)));
    for (int64_t step = 0; step < steps; ++step) {
      PackedAhead<T> next = {};
      if (step + 1 < steps) next = packed(step + 1, room(step + 1));
      const int64_t block = first_block_ + step % blocks_, depth_block = step / blocks_;
      T* result = result_ + columnBegin(block);
      multiply(block, depth_block, room(step), result, pixels_, next);
      if (depth_block + 1 == cut_.depth_blocks)
        finish<T>(problem_, operands_, first_channel_, {channels_, columnsOf(block), result, pixels_});
    }
  }

  PackedAhead<T> packed(int64_t step, T* to) const {
    const int64_t block = first_block_ + step % blocks_, depth_block = step / blocks_;
    return {.rows = depthOf(depth_block),
            .columns = columnsOf(block),
            .from = source_ + depthBegin(depth_block) * pixels_ + columnBegin(block),
            .from_row = pixels_,
            .to = to};
  }

  /// Of 16-bit types: sums are f32, and rounded once; what is read is widened before it is multiplied.
  void addAside() {
    alignas(64) std::byte scratch[kMostDepth * kBlockBytes], sum_scratch[kMostChannels * kBlockBytes];
    constexpr int64_t kRow = kBlockBytes / static_cast<int64_t>(sizeof(T));
    const TypedVectorKernels<S>& vector_kernels = problem_.vector_kernels->of<S>();
    T *room = reinterpret_cast<T*>(scratch), *sums = reinterpret_cast<T*>(sum_scratch);
    for (int64_t block = first_block_; block < first_block_ + blocks_; ++block) {
      const int64_t columns = columnsOf(block);
      for (int64_t i = 0; i < cut_.depth_blocks; ++i) {
        const S* from = source_ + depthBegin(i) * pixels_ + columnBegin(block);
        vector_kernels.widen({depthOf(i), columns, from, pixels_, room, kRow});
        multiply(block, i, room, sums, kRow, {});
      }
      S* result = result_ + columnBegin(block);
      vector_kernels.narrow({channels_, columns, sums, kRow, result, pixels_});
      finish<S>(problem_, operands_, first_channel_, {channels_, columns, result, pixels_});
    }
  }

  void multiply(int64_t block, int64_t depth_block, const T* from, T* result, int64_t result_row,
                const PackedAhead<T>& next) const {
    const int64_t w_step = problem_.shape.groupInputs(), depth = depthBegin(depth_block);
    (to_input_ ? kernels_.rowsAlong : kernels_.termsAlong)({.rows = channels_,
                                                            .columns = columnsOf(block),
                                                            .depth = depthOf(depth_block),
                                                            .w = w_ + depth * (to_input_ ? w_step : 1),
                                                            .w_step = w_step,
                                                            .packed = from,
                                                            .result = result,
                                                            .result_row = result_row,
                                                            .accumulate = depth > 0,
                                                            .next = next});
  }

  const ConvProblem& problem_;
  const ConvOperands& operands_;
  const AheadCut& cut_;
  const TypedPointwiseKernels<T>& kernels_;
  int64_t first_block_, blocks_, pixels_, channels_;
  int64_t first_channel_;  // of all groups
  bool to_input_;
  const S* source_;
  const T* w_;
  S* result_;
};

template <typename S>
void computeAheadTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  AheadTile<S>(problem, operands, tile).compute();
}

}  // namespace

/// Where many channels are read: with few, longer runs of each are quicker. Not of pictures so small that
/// they are multiplied where they lie, or with others. The same for 16-bit types as for f32: an element's sum
/// may depend on it.
bool packsAhead(const ConvProblem& problem) {
  constexpr int64_t kFewChannels = 64;
  const GemmBlocks& b = problem.blocks;
  return problem.patch_kernels->of<float>().pointwise.pack && b.n == problem.shape.outputPixels() &&
         b.n * sizeOf(problem.shape.type) > kBlockBytes && b.k > kFewChannels && !problem.takes_pixels;
}

void cutForPackingAhead(ConvProblem& problem) {
  constexpr int64_t kFewTiles = 16, kVectors = kBlockBytes / kConvPackBytes;
  const ConvShape& s = problem.shape;
  const GemmBlocks& b = problem.blocks;
  AheadCut& cut = problem.ahead;
  problem.has_own_products = true;
  cut.depth = b.k;
  cut.depth_blocks = ceilDivide(b.k, kMostDepth);
  cut.channels = evenConvPart(b.m, kMostChannels, 1);
  cut.channel_tiles = ceilDivide(b.m, cut.channels);
  cut.column_vectors = paddedConvRow(b.n, s.type) * sizeOf(s.type) / kConvPackBytes;
  cut.column_blocks = ceilDivide(cut.column_vectors, kVectors);
  const int64_t others = s.batch * s.groups * cut.channel_tiles;
  cut.parts = std::min(cut.column_blocks, ceilDivide(kFewTiles, others));
  const int64_t tiles = others * cut.parts;
  const double elements =
      static_cast<double>(b.n) * static_cast<double>(b.k) / static_cast<double>(cut.parts);
  problem.phases.push_back({pointwiseAheadTile(problem.storage), tiles,
                            convTileNs(2 * elements * static_cast<double>(cut.channels), 0, s.type)});
}

ConvTile pointwiseAheadTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeAheadTile<S>; });
}

}  // namespace gpuc
