// A convolution as it is executed: how it is cut into tiles and blocks, which follows from the shape alone,
// and the machine code for those.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/host/conv/patch_kernels.h"
#include "runtime/host/matmul/micro_kernel.h"
#include "runtime/host/matmul/vector_kernels.h"
#include "runtime/host/tile_update.h"
#include "runtime/host/tiled_kernel.h"
#include "runtime/workspace/conv_tiles.h"

namespace gpuc {

/// The most stack that a tile uses for what it packs and sums up.
inline constexpr int64_t kConvStackBytes = 344 * 1024;

/// Room for what a tile of a pointwise convolution packs at once, and for the sums of a product by patches.
inline constexpr int64_t kLongRunBytes = 144 * 1024, kConvSumBytes = 84 * 1024;

/// Rows of what is packed are padded to whole vectors of the widest kind, 64 bytes.
inline constexpr int64_t kConvPackBytes = 64;
/// Lines that are a multiple of this apart share a set of the first-level cache, which has 8 to 12.
inline constexpr int64_t kSameSetBytes = 4096;

/// Addresses of one execution, in the order of the plan: what is read, what is written. Aligned to their
/// element type at least; 64 bytes are faster. c overlaps no other.
struct ConvOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;           // overwritten, never read before: old NaNs do not survive; null with an update
  const void* bias = nullptr;  // null exactly where the shape has none
  void* workspace = nullptr;
  const void* mask = nullptr;  // likewise; as c lies
  void* squares = nullptr;     // of a filter's gradient, an element for each of its tiles; null: not wanted
  void* const* of_update = nullptr;  // the update's, but for the tile
};

/// Elements of the filter that one tile converts, and of its gradient that one tile adds up at most.
inline constexpr int64_t kConvSumElements = 4096;

/// The blocks in which one kind of tile calls its micro-kernels: c[m, n] (+)= op(a)[m, k] · b[k, n].
struct GemmBlocks {
  int64_t m = 1, n = 1, k = 1;                    // all there is in one group and image
  int64_t block_m = 1, block_n = 1, block_k = 1;  // of one call; the last of each may be cut short

  int64_t blocksM() const { return (m + block_m - 1) / block_m; }
  int64_t blocksN() const { return (n + block_n - 1) / block_n; }
  int64_t blocksK() const { return (k + block_k - 1) / block_k; }
};

struct ConvProblem;

using ConvPhase = TilePhase<ConvProblem, ConvOperands>;
using ConvTile = ConvPhase::Compute;

/// What the direct method needs beyond the shape.
struct DirectProblem {
  DirectCut cut{};
  std::vector<DirectTap> taps;      // of one channel, in the order in which they are added up
  std::vector<int32_t> tap_places;  // filter_gradient: in the packed strip, of every patch row, or
                                    // (by_outputs) of the first in each row of the filter
};

/// Pixels of a row of the result that adjoin as they are packed, meet the same taps of the filter, and
/// through each read pixels that adjoin as well.
struct ChannelRun {
  int32_t first, count;  // places in a row of the result
};

/// How a pointwise convolution is cut whose products pack what the next one reads (pointwise_ahead.cpp). Rows
/// of the result are its channels.
struct AheadCut {
  int64_t depth, depth_blocks;
  int64_t channels, channel_tiles;        // of a tile; the last may have fewer
  int64_t column_blocks, column_vectors;  // of an image; their vectors are shared out evenly
  int64_t parts;                          // of an image's column blocks, a tile each
};

/// How one is cut that has few results (pointwise_few.cpp).
struct FewCut {
  int64_t rows;                // of the result, a multiple of 4
  int64_t pixels;              // of a block
  int64_t parts, part_pixels;  // of an image, a tile each; whole blocks, but for the last
};

/// What by_channels needs beyond the shape. Sources are the input's pixels; of the input's gradient the
/// output's.
struct ChannelsProblem {
  ChannelsCut cut{};
  std::vector<int32_t> x_places, y_places;  // of each pixel as it is packed; -1: read by none
  std::vector<int32_t> source_rows;         // [row of the result][kernel row], or -1
  std::vector<ChannelRun> runs;
  std::vector<int32_t>
      source_columns;  // [run][kernel column]: the place of what its first pixel reads, or -1

  const PackedPicture& source(ConvKind kind) const {
    return kind == ConvKind::input_gradient ? cut.y : cut.x;
  }
};

struct ConvProblem {
  ConvMethod method = ConvMethod::patches;
  DirectProblem direct;                  // where that is the method
  ImagesCut images{};                    // likewise
  ChannelsProblem channels;              // likewise
  DepthwiseCut depthwise{};              // likewise
  WinogradCut winograd{};                // likewise
  std::vector<int32_t> winograd_places;  // of the pixels of a strip's rows as they are packed; -1: not
  ConvShape shape;                       // its type is that of the arithmetic
  ConvShape correlation;                 // correlationOf(shape)
  std::optional<ConvShape> strided;      // subsampled: what is computed; `shape` is then what is left of it
  bool takes_pixels = false;         // likewise: each tile takes its pixels from the picture that has strides
  DataType storage = DataType::f32;  // of the operands in memory
  GemmBlocks blocks;
  AheadCut ahead{};
  FewCut few{};
  PixelRowsCut pixel_rows{};           // likewise, of the filter's gradient by rows
  bool has_own_products = false;       // none of micro_kernels
  int64_t channels_per_tile = 1;       // of the result: input_gradient, pointwise; filter_gradient: rows
  int64_t parts = 1;                   // filter_gradient
  bool sums_in_workspace = false;      // filter_gradient: the parts, which the last phase adds up
  bool exchanged = false;              // likewise: rows are outputs, columns inputs (FilterGradientCut)
  std::optional<GradientTiles> tiles;  // likewise: of what the last phase makes
  TileUpdate update;                   // likewise: if it is to have these tiles
  int64_t widened_filter = 0;          // elements of the workspace before the input's gradient in f32
  int64_t stride_b = 0;                // elements between the rows of what is packed for b

  std::vector<ConvPhase> phases;

  std::vector<ValidRange> valid_rows, valid_columns;  // of output positions, for each tap
  MicroKernelSet micro_kernels;
  const PatchKernelTable* patch_kernels = nullptr;
  const VectorKernelTable* vector_kernels = nullptr;

  /// 16-bit operands: f32 in the arithmetic and in the workspace.
  bool isWidened() const { return storage != shape.type; }
  /// Whether the products of a pointwise forward convolution or input's gradient add up in the result: a
  /// block's columns adjoin there.
  bool sumsInResult() const {
    return shape.isPointwise() && !isWidened() && blocks.n == shape.outputPixels();
  }
  /// Whether pictures of a pointwise one are multiplied where they lie, unpacked: of the filter's gradient
  /// those that give rows, else those whose rows lie close by.
  bool isInPlace() const {
    if (!shape.isPointwise() || isWidened()) return false;
    if (shape.kind == ConvKind::filter_gradient) return blocks.k == shape.outputPixels() && !rowsShareSets();
    return !takes_pixels && sumsInResult() && blocks.block_n == blocks.n &&
           blocks.n * sizeOf(shape.type) <= 4 * kConvPackBytes;
  }

  /// Whether a product for so few columns, which takes more than 20 rows at a time, would find them in one
  /// set of the first-level cache: for wider ones, of 6 or 14 rows, a copy takes longer than that.
  bool rowsShareSets() const {
    return shape.type == DataType::f32 && blocks.block_n * sizeOf(shape.type) <= kConvPackBytes &&
           blocks.k * sizeOf(shape.type) % kSameSetBytes == 0;
  }

  /// c (+)= op(a) · b for one block. The call reaches generated code, which carries no type for a sanitizer
  /// to look at.
  __attribute__((no_sanitize("undefined"))) void multiply(const void* a, const void* b, void* c, int64_t m,
                                                          int64_t n, int64_t k, bool accumulate) const {
    micro_kernels.kernels[m < blocks.block_m][n < blocks.block_n][k < blocks.block_k][accumulate](b, a, c);
    if (micro_kernels.after) micro_kernels.after();
  }
};

/// A row of `count` elements as it is packed.
constexpr int64_t paddedConvRow(int64_t count, DataType type) {
  const int64_t lanes = kConvPackBytes / sizeOf(type);
  return (count + lanes - 1) / lanes * lanes;
}

/// The same of rows that are read side by side, of which many would lie in one set of the first-level cache.
constexpr int64_t spreadConvRow(int64_t count, DataType type) {
  const int64_t row = paddedConvRow(count, type);
  return row * sizeOf(type) % (kSameSetBytes / 2) == 0 ? row + kConvPackBytes / sizeOf(type) : row;
}

/// Cuts a pointwise shape, forward or the input's gradient.
void cutForPointwise(ConvProblem& problem);
/// Whether its products pack what the next one reads, once it is cut so; then that is done anew.
bool packsAhead(const ConvProblem& problem);
void cutForPackingAhead(ConvProblem& problem);
bool hasFewResults(const ConvProblem& problem);
void cutForFewResults(ConvProblem& problem);
/// Cuts a shape for the direct method.
void cutForDirect(ConvProblem& problem);
/// The same for a filter's gradient of one tap.
void cutForPixelRows(ConvProblem& problem);
/// The same for by_images.
void cutForImages(ConvProblem& problem);
/// The same for by_channels.
void cutForChannels(ConvProblem& problem);
/// The same for depthwise.
void cutForDepthwise(ConvProblem& problem);
/// The same for winograd.
void cutForWinograd(ConvProblem& problem);

/// Adds to what subsampledShape leaves of problem.strided the copies of pixels.
void subsample(ConvProblem& problem);
/// As a phase finds them: what is left of a subsampled one has pictures in the workspace.
ConvOperands operandsOfPhase(const ConvProblem& problem, size_t phase, const ConvOperands& operands);

/// What a tile takes: 120 GFLOP/s in f32 and 60 in f64, and 0.3 ns for each packed element.
double convTileNs(double flops, double packed, DataType type);

// What computes a tile of each kind, whose operands have the type `storage` in memory.
ConvTile forwardTile(DataType storage);
ConvTile inputGradientTile(DataType storage);
ConvTile pointwiseTile(DataType storage);
ConvTile pointwiseAheadTile(DataType storage);
ConvTile pointwiseFewTile(DataType storage);
ConvTile filterGradientTile(DataType storage);
/// The direct method's: of forward and the input's gradient, and of the filter's.
ConvTile directTile(DataType storage);
ConvTile directFilterTile(DataType storage);
ConvTile pixelRowsTile(DataType storage);
ConvTile imagesTile(DataType storage);
/// By channels: the pictures that are packed, forward and the input's gradient, the filter's gradient and its
/// sum over the splits.
ConvTile packChannelsTile(DataType storage);
ConvTile channelsTile(DataType storage);
ConvTile channelsFilterTile(DataType storage);
ConvTile sumChannelsFilterTile(DataType storage);
/// Depthwise: forward and the input's gradient, and the filter's.
ConvTile depthwiseTile(DataType storage);
ConvTile depthwiseFilterTile(DataType storage);
/// By Winograd's filtering: the filter and the tiles of what is read, transformed, and the products of
/// forward and the input's gradient; of the filter's gradient y's cotangent, the products and what they stand
/// for.
ConvTile winogradFilterTile(DataType storage);
ConvTile winogradSourceTile(DataType storage);
ConvTile winogradTile(DataType storage);
ConvTile winogradCotangentTile(DataType storage);
ConvTile winogradFilterProductsTile(DataType storage);
ConvTile winogradFilterGradientTile(DataType storage);
/// Adds up the parts of a range of elements of the filter's gradient.
ConvTile sumFilterGradientTile(DataType storage);
/// Converts a range of elements of the filter into the workspace; of 16-bit types alone.
ConvTile widenFilterTile(DataType storage);

}  // namespace gpuc
