// By channels: which pixels meet in which taps, and the pictures that all tiles read.
#include <algorithm>

#include "runtime/host/conv/patch_block.h"

namespace gpuc {
namespace {

/// Where column c of x is packed.
int64_t inputPlace(const ConvShape& s, const PackedPicture& x, int64_t column) {
  return column % s.width.stride * x.phase_columns + column / s.width.stride;
}

/// The places that a column of the result reads, by tap.
std::vector<int32_t> placesRead(const ConvShape& s, const PackedPicture& x, int64_t column) {
  std::vector<int32_t> places;
  for (int64_t tap = 0; tap < s.width.kernel; ++tap) {
    int64_t source = sourceOf(s.width, s.kind, column, tap);
    if (source >= 0 && s.kind != ConvKind::input_gradient) source = inputPlace(s, x, source);
    places.push_back(static_cast<int32_t>(source));
  }
  return places;
}

/// Whether `next` is what the pixel right behind reads.
bool goesOn(const std::vector<int32_t>& places, const std::vector<int32_t>& next) {
  for (size_t i = 0; i < places.size(); ++i)
    if (next[i] != (places[i] < 0 ? -1 : places[i] + 1)) return false;
  return true;
}

/// Cuts a row of the result into runs.
void findRuns(const ConvShape& s, ChannelsProblem& channels) {
  const bool to_input = s.kind == ConvKind::input_gradient;
  const int64_t phases = to_input ? s.width.stride : 1;
  const int64_t extent = to_input ? s.width.input : s.width.output;
  std::vector<int32_t> last;
  for (int64_t phase = 0; phase < phases; ++phase) {
    last.clear();
    for (int64_t column = phase; column < extent; column += phases) {
      std::vector<int32_t> places = placesRead(s, channels.cut.x, column);
      if (!last.empty() && goesOn(last, places)) {
        ++channels.runs.back().count;
      } else {
        const int64_t first = to_input ? inputPlace(s, channels.cut.x, column) : column;
        channels.runs.push_back({static_cast<int32_t>(first), 1});
        channels.source_columns.insert(channels.source_columns.end(), places.begin(), places.end());
      }
      last = std::move(places);
    }
  }
}

void findRows(const ConvShape& s, ChannelsProblem& channels) {
  const int64_t rows = s.kind == ConvKind::input_gradient ? s.height.input : s.height.output;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t tap = 0; tap < s.height.kernel; ++tap)
      channels.source_rows.push_back(static_cast<int32_t>(sourceOf(s.height, s.kind, row, tap)));
}

/// Whether some window has the position.
bool isRead(const ConvAxis& axis, int64_t input) {
  for (int64_t tap = 0; tap < axis.kernel; ++tap)
    if (sourceOf(axis, ConvKind::input_gradient, input, tap) >= 0) return true;
  return false;
}

void findPlaces(const ConvShape& s, ChannelsProblem& channels) {
  const bool to_input = s.kind == ConvKind::input_gradient;
  for (int64_t row = 0; row < s.height.input; ++row)
    for (int64_t column = 0; column < s.width.input; ++column) {
      const bool packed = to_input || (isRead(s.height, row) && isRead(s.width, column));
      const int64_t place = row * channels.cut.x.columns() + inputPlace(s, channels.cut.x, column);
      channels.x_places.push_back(packed ? static_cast<int32_t>(place) : -1);
    }
  for (int64_t pixel = 0; pixel < s.outputPixels(); ++pixel)
    channels.y_places.push_back(static_cast<int32_t>(pixel));
}

/// Channels that one tile packs: few, since a round has some large pictures alone, which threads share.
constexpr int64_t kPackedChannels = 16;

int64_t packTiles(const ChannelsCut& cut, const PackedPicture& picture) {
  return cut.groups * cut.round_parts * ((picture.channels + kPackedChannels - 1) / kPackedChannels);
}

/// Some channels of all images of a part. Tiles count those of one round.
template <typename S>
void packPart(const ConvProblem& problem, const PackedPicture& picture, bool is_x, const S* pictures,
              Computed<S>* packed, int64_t round, int64_t tile) {
  const ConvShape& s = problem.shape;
  const ChannelsProblem& channels = problem.channels;
  const ChannelsCut& cut = channels.cut;
  const int64_t blocks = (picture.channels + kPackedChannels - 1) / kPackedChannels;
  const int64_t channel = tile % blocks * kPackedChannels;
  tile /= blocks;
  const int64_t round_parts = cut.round_parts;
  const int64_t part = tile % round_parts, group = tile / round_parts;
  const int64_t first = (round * round_parts + part) * picture.images;
  const int64_t images = std::min(picture.images, s.batch - first);  // none in the last round, perhaps
  const int64_t group_channels = is_x ? inputsOf(s, cut, group) : outputsOf(s, cut, group);
  const int64_t pixels = is_x ? s.inputPixels() : s.outputPixels();
  const int64_t offset =
      is_x ? inputOffset(s, first, group * cut.joined) : outputOffset(s, first, group * cut.joined);
  const int64_t image_stride = (is_x ? s.in_channels : s.out_channels) * pixels;
  const int64_t end = std::min(channel + kPackedChannels, picture.channels);
  constexpr int64_t kVector = kConvPackBytes / static_cast<int64_t>(sizeof(Computed<S>));
  packed += (group * round_parts + part) * picture.elements();
  for (int64_t c = channel; c < end; c += kVector)
    for (int64_t image = 0; image < images; ++image)
      problem.patch_kernels->of<S>().channels.pack(
          {.channels = std::min(kVector, group_channels - c),
           .packed_channels = kVector,
           .pixels = pixels,
           .picture = pictures + offset + image * image_stride + c * pixels,
           .channel_stride = pixels,
           .places = (is_x ? channels.x_places : channels.y_places).data(),
           .packed = packed + picture.offset(c, images) + image * picture.width(c),
           .pixel_stride = images * picture.width(c)});
}

int64_t allPackTiles(const ConvShape& s, const ChannelsCut& cut) {
  return (s.kind == ConvKind::input_gradient ? 0 : packTiles(cut, cut.x)) +
         (s.kind == ConvKind::forward ? 0 : packTiles(cut, cut.y));
}

/// Tiles count those of x first, then those of y, then rounds. In the workspace x comes first, too.
template <typename S>
void packChannels(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  const ConvShape& s = problem.shape;
  const ChannelsCut& cut = problem.channels.cut;
  Computed<S>* packed = static_cast<Computed<S>*>(operands.workspace);
  const int64_t round = tile / allPackTiles(s, cut);
  tile %= allPackTiles(s, cut);
  if (s.kind != ConvKind::input_gradient) {
    const void* x = s.kind == ConvKind::forward ? operands.a : operands.b;
    const int64_t tiles = packTiles(cut, cut.x);
    if (tile < tiles) return packPart<S>(problem, cut.x, true, static_cast<const S*>(x), packed, round, tile);
    tile -= tiles;
    packed += cut.groups * cut.round_parts * cut.x.elements();
  }
  packPart<S>(problem, cut.y, false, static_cast<const S*>(operands.a), packed, round, tile);
}

}  // namespace

ConvTile packChannelsTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return packChannels<S>; });
}

void cutForChannels(ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  ChannelsProblem& channels = problem.channels;
  const ChannelsCut& cut = channels.cut = cutChannels(s);
  findRuns(s, channels);
  findRows(s, channels);
  findPlaces(s, channels);

  const bool to_filter = s.kind == ConvKind::filter_gradient;
  const int64_t packs = allPackTiles(s, cut);
  const double packed = static_cast<double>(channelsPackedElements(s)) / static_cast<double>(packs);
  const int64_t results = cut.groups * cut.blocks * (to_filter ? cut.input_blocks : 1);
  const int64_t tiles = results * (to_filter ? cut.splits : cut.round_parts * cut.strips);
  const double flops = 2 * static_cast<double>(channelsProducts(s)) / static_cast<double>(tiles * cut.rounds);
  const double filter = static_cast<double>(s.filterElements()) / static_cast<double>(results);
  for (int64_t round = 0; round < cut.rounds; ++round) {
    problem.phases.push_back(
        {packChannelsTile(problem.storage), packs, convTileNs(0, packed, s.type), round * packs});
    problem.phases.push_back({to_filter ? channelsFilterTile(problem.storage) : channelsTile(problem.storage),
                              tiles, convTileNs(flops, filter, s.type), round * tiles});
  }
  if (keepsChannelsSums(s, cut))
    problem.phases.push_back({sumChannelsFilterTile(problem.storage), results,
                              convTileNs(0, filter * static_cast<double>(cut.splits), s.type)});
}

}  // namespace gpuc
