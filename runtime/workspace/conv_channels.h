// The host's convolution by channels: which shapes it can be taken for, and how those are cut.
//
// Pictures are packed with a pixel's channels side by side, and pixel by pixel all images of a part. So a tap
// of the filter is a product, over the channels, of runs of adjoining pixels; a run's pixels all meet the
// same taps, so that nothing is multiplied with padding. Lanes run along the channels of the result.
#pragma once

#include <algorithm>

#include "runtime/workspace/conv_pointwise.h"
#include "runtime/workspace/conv_shape.h"
#include "runtime/workspace/conv_subsampled.h"

namespace gpuc {

/// A picture as it is packed, of one group: [block of channels][row][column][image][channel], for each part
/// of the images. So what is read with one another lies side by side.
struct PackedPicture {
  int64_t channels;                      // of a pixel, with zeros up to whole vectors of 64 bytes
  int64_t block;                         // the last one may have fewer
  int64_t column_phases, phase_columns;  // column c is at place (c mod stride) · phase_columns + c / stride
  int64_t rows, images;                  // images: of a part; the last part may have fewer

  constexpr int64_t columns() const { return column_phases * phase_columns; }
  /// Of a part and group.
  constexpr int64_t elements() const { return rows * columns() * images * channels; }
  /// Channels of the block that has this one.
  constexpr int64_t width(int64_t channel) const {
    return std::min(block, channels - channel / block * block);
  }
  /// Where a channel begins in a part of so many images.
  constexpr int64_t offset(int64_t channel, int64_t part_images) const {
    return channel / block * block * rows * columns() * part_images + channel % block;
  }
};

struct ChannelsCut {
  int64_t joined, groups;  // groups whose channels lie side by side as one's; how many such there are
  int64_t lanes, blocks;   // channels of the result that a tile computes; how many such there are in a group
  int64_t images, parts;   // a part of the batch
  int64_t strip_rows, strips;    // forward and input_gradient: rows of the result that a tile computes
  int64_t chunk;                 // likewise: channels whose filter is packed at once
  int64_t inputs, input_blocks;  // filter_gradient: channels of the input that a tile reads,
  int64_t met;                   // and those that each output meets, fewer of joined groups
  int64_t splits;                // likewise: sums over some rows of a round each, which are then added up
  int64_t rounds, round_parts;   // parts that are packed at once, in one round after another
  PackedPicture x, y;
};

/// Channels of a group of the cut, the last of which may join fewer.
constexpr int64_t inputsOf(const ConvShape& s, const ChannelsCut& cut, int64_t group) {
  const int64_t channels = cut.joined * s.groupInputs();
  return std::min(channels, s.in_channels - group * channels);
}
constexpr int64_t outputsOf(const ConvShape& s, const ChannelsCut& cut, int64_t group) {
  const int64_t channels = cut.joined * s.groupOutputs();
  return std::min(channels, s.out_channels - group * channels);
}

/// Bytes of a row of the packed filter, and of the sums: four vectors of the widest kind.
inline constexpr int64_t kChannelsRowBytes = 256;
/// What is packed at once, about: it is to stay in the caches, and to take little memory.
inline constexpr int64_t kChannelsRoundBytes = 2 << 20;

/// Rows of the sums of one tile; of the filter packed at once, which is what is added up before sums are
/// stored; and of the filter's gradient. Of fewer, filters of many taps would meet few channels at a time: by
/// strides of two each element of x's cotangent has a quarter of the taps. In whole vectors, to which the
/// rows of a gradient's tile are filled up.
inline constexpr int64_t kChannelsSumRows = 512, kChannelsFilterRows = 656;
static_assert(kChannelsFilterRows % 16 == 0);

/// So many taps are known at once, of groups side by side fewer.
inline constexpr int64_t kMostChannelsTaps = 128, kMostJoinedTaps = 64;

/// The most channels up to `most` that do not begin or end amid a vector of others: whole vectors, or a part
/// of one that it is a multiple of.
constexpr int64_t wholeVectors(int64_t most, int64_t vector) {
  if (most >= vector) return most / vector * vector;
  int64_t part = vector;
  while (part > std::max<int64_t>(1, most)) part /= 2;
  return part;
}

/// How many groups of few channels fill a vector of 64 bytes together, if that is more than one: of as many
/// inputs as outputs, which are a multiple of the narrowest vector's lanes in f32.
constexpr int64_t joinedGroups(const ConvShape& s) {
  const int64_t channels = s.groupInputs(), vector = 64 / sizeOf(computedType(s.type));
  const bool is_part = (channels == 4 || channels == 8) && channels < vector;
  return is_part && channels == s.groupOutputs() ? std::min(vector / channels, s.groups) : 1;
}

/// The same with such groups as one, the last one filled up. Its filter would be mostly 0.
constexpr ConvShape joinedShape(const ConvShape& s) {
  const int64_t joined = joinedGroups(s);
  if (joined == 1) return s;
  ConvShape shape = s;
  shape.groups = (s.groups + joined - 1) / joined;
  shape.in_channels = shape.out_channels = shape.groups * joined * s.groupInputs();
  return shape;
}

/// Blocks of lanes are of nearly equal size, so that threads which take as many tiles have as much to do.
constexpr ChannelsCut cutChannels(const ConvShape& shape) {
  constexpr int64_t kFewImages = 4, kWantedTiles = 16, kLeastSplitPixels = 256, kLeastTilePixels = 48;
  const ConvShape s = joinedShape(shape);
  const int64_t bytes = sizeOf(computedType(s.type)), vector = 64 / bytes;
  const bool to_input = s.kind == ConvKind::input_gradient, to_filter = s.kind == ConvKind::filter_gradient;
  const int64_t results = to_input ? s.groupInputs() : s.groupOutputs();
  const int64_t depth = to_input ? s.groupOutputs() : s.groupInputs();
  ChannelsCut cut{};
  cut.joined = joinedGroups(shape), cut.groups = s.groups;
  cut.lanes = ceilToMultiple(evenConvPart(results, kChannelsRowBytes / bytes, vector), vector);
  cut.blocks = (results + cut.lanes - 1) / cut.lanes;
  const int64_t rows = to_input ? s.height.input : s.height.output;
  const int64_t columns = to_input ? ceilToMultiple(s.width.input, s.width.stride) : s.width.output;
  // Many images of a small picture; of a large one enough for the runs at its edges, which are a column wide,
  // unless that is more than is to be packed at once.
  const int64_t read = (to_input ? 0 : s.in_channels * s.inputPixels()) +
                       (s.kind == ConvKind::forward ? 0 : s.out_channels * s.outputPixels());
  const int64_t fitting = kChannelsSumRows / (rows * columns);
  const int64_t few =
      std::min({kFewImages, kChannelsSumRows / columns, kChannelsRoundBytes / (read * bytes)});
  const int64_t wanted = fitting >= kFewImages ? fitting : few;
  const int64_t images = std::clamp<int64_t>(wanted, 1, s.batch);
  cut.parts = (s.batch + images - 1) / images;
  cut.images = (s.batch + cut.parts - 1) / cut.parts;
  cut.parts = (s.batch + cut.images - 1) / cut.images;
  cut.strip_rows = std::clamp<int64_t>(kChannelsSumRows / (columns * cut.images), 1, rows);
  cut.chunk = wholeVectors(kChannelsFilterRows / s.taps(), vector);
  cut.inputs = std::min(wholeVectors(kChannelsFilterRows / s.taps(), vector), ceilToMultiple(depth, vector));
  if (cut.joined > 1) cut.chunk = cut.inputs = vector;
  cut.met = cut.joined > 1 ? shape.groupInputs() : cut.inputs;
  cut.input_blocks = (s.groupInputs() + cut.inputs - 1) / cut.inputs;
  const int64_t stride = s.width.stride;
  const bool one_phase = !to_input && s.width.kernel == 1 && s.width.low % stride == 0;
  cut.x = {.channels = ceilToMultiple(s.groupInputs(), vector),
           .block = to_filter ? std::max(vector, cut.inputs) : vector,
           .column_phases = one_phase ? 1 : stride,
           .phase_columns = (s.width.input + stride - 1) / stride,
           .rows = s.height.input,
           .images = cut.images};
  cut.y = {.channels = ceilToMultiple(s.groupOutputs(), vector),
           .block = to_filter ? cut.lanes : vector,
           .column_phases = 1,
           .phase_columns = s.width.output,
           .rows = s.height.output,
           .images = cut.images};
  const int64_t packed =
      s.groups * ((to_input ? 0 : cut.x.elements()) + (s.kind == ConvKind::forward ? 0 : cut.y.elements()));
  const int64_t at_once = std::clamp<int64_t>(kChannelsRoundBytes / (packed * bytes), 1, cut.parts);
  cut.rounds = (cut.parts + at_once - 1) / at_once;
  cut.round_parts = (cut.parts + cut.rounds - 1) / cut.rounds;
  cut.rounds = (cut.parts + cut.round_parts - 1) / cut.round_parts;
  cut.strips = (rows + cut.strip_rows - 1) / cut.strip_rows;
  // Of a round's single tile nobody takes a share, and of three or five one of two threads waits. Each half
  // packs the filter, which so many pixels pay for.
  const int64_t of_round = s.groups * cut.blocks * cut.round_parts * cut.strips;
  const bool is_worthwhile = cut.strips > 1 || rows * columns * cut.images >= 2 * kLeastTilePixels;
  if (!to_filter && of_round % 2 == 1 && of_round < kWantedTiles && is_worthwhile && cut.strips < rows) {
    cut.strip_rows = (rows + cut.strips) / (cut.strips + 1);
    cut.strips = (rows + cut.strip_rows - 1) / cut.strip_rows;
  }
  const int64_t tiles = s.groups * cut.blocks * cut.input_blocks;
  const int64_t worthwhile = cut.round_parts * cut.images * s.outputPixels() / kLeastSplitPixels;
  const int64_t splits = std::min({cut.round_parts * rows, worthwhile, (kWantedTiles + tiles - 1) / tiles});
  cut.splits = to_filter ? std::max<int64_t>(1, splits) : 1;
  return cut;
}

/// Pictures that are read, packed once for all tiles of a round.
constexpr int64_t channelsPackedElements(const ConvShape& s) {
  const ChannelsCut cut = cutChannels(s);
  const int64_t x = s.kind == ConvKind::input_gradient ? 0 : cut.x.elements();
  const int64_t y = s.kind == ConvKind::forward ? 0 : cut.y.elements();
  return cut.groups * cut.round_parts * (x + y);
}

/// Of one tile of the filter's gradient.
constexpr int64_t channelsSumElements(const ConvShape& s, const ChannelsCut& cut) {
  return cut.met * s.taps() * cut.lanes;
}

/// Whether sums of the filter's gradient lie in the workspace until the last phase.
constexpr bool keepsChannelsSums(const ConvShape& s, const ChannelsCut& cut) {
  return s.kind == ConvKind::filter_gradient && (cut.splits > 1 || cut.rounds > 1);
}

/// The packed pictures, and behind them such sums.
constexpr int64_t channelsWorkspaceElements(const ConvShape& s) {
  const ChannelsCut cut = cutChannels(s);
  const int64_t tiles = cut.groups * cut.blocks * cut.input_blocks;
  return channelsPackedElements(s) +
         (keepsChannelsSums(s, cut) ? cut.splits * tiles * channelsSumElements(s, cut) : 0);
}

/// Multiply-adds of any of the three convolutions.
constexpr int64_t channelsProducts(const ConvShape& s) {
  return s.batch * s.out_channels * s.groupInputs() * tapsMet(s.height) * tapsMet(s.width);
}

/// The element of the source that position `at` of the result reads through a tap, or -1.
constexpr int64_t sourceOf(const ConvAxis& axis, ConvKind kind, int64_t at, int64_t tap) {
  if (kind != ConvKind::input_gradient) {
    const int64_t input = at * axis.stride - axis.low + tap * axis.dilation;
    return input >= 0 && input < axis.input ? input : -1;
  }
  const int64_t room = at + axis.low - tap * axis.dilation;
  return room >= 0 && room % axis.stride == 0 && room / axis.stride < axis.output ? room / axis.stride : -1;
}

/// Whether it can be cut so.
constexpr bool fitsChannels(const ConvShape& s) {
  constexpr int64_t kMostStride = 16, kMostPixels = 16384;
  return std::max(s.inputPixels(), s.outputPixels()) <= kMostPixels &&
         s.taps() <= (joinedGroups(s) > 1 ? kMostJoinedTaps : kMostChannelsTaps) &&
         s.width.input + s.width.stride <= kChannelsSumRows && s.width.output <= kChannelsSumRows &&
         s.height.stride <= kMostStride && s.width.stride <= kMostStride;
}

}  // namespace gpuc
