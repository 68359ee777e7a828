// The filter's gradient by channels: of each tap the product of the pixels of x that it meets, transposed,
// and those of y's cotangent.
#include <algorithm>

#include "runtime/host/conv/gradient_tile.h"
#include "runtime/host/conv/patch_block.h"

namespace gpuc {
namespace {

/// Products of so many rows of packed pixels, about, follow one another while the sums stay in registers.
constexpr int64_t kWantedDepth = 128;
constexpr int64_t kMostPieces = 32;

/// Adjoining pixels of a run in a row of the result.
struct Piece {
  int64_t row, run, column, columns;
};

template <typename S>
class ChannelsFilterTile {
 public:
  using T = Computed<S>;

  /// Tiles count blocks of inputs first, then of outputs, then splits, then groups, whose pictures a thread
  /// has packed likewise, then rounds.
  ChannelsFilterTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile, int64_t splits)
      : problem_(problem), operands_(operands), cut_(problem.channels.cut) {
    const ConvShape& s = problem.shape;
    const int64_t blocks = cut_.input_blocks * cut_.blocks, block = tile % blocks;
    tile /= blocks;
    input_ = block % cut_.input_blocks * cut_.inputs;
    output_ = block / cut_.input_blocks * cut_.lanes;
    split_ = tile % splits;
    tile /= splits;
    group_ = tile % cut_.groups;
    round_ = tile / cut_.groups;
    sum_ = group_ * blocks + block;
    inputs_ = std::min(cut_.met, s.groupInputs() - input_);
    outputs_ = std::min(cut_.lanes, outputsOf(s, cut_, group_) - output_);
  }

  void compute() {
    alignas(64) std::byte sum_scratch[kChannelsFilterRows * kChannelsRowBytes];
    const ConvShape& s = problem_.shape;
    const bool keeps = keepsChannelsSums(s, cut_);
    sums_ = keeps ? splitSums(split_) : reinterpret_cast<T*>(sum_scratch);
    if (round_ == 0) std::fill_n(sums_, inputs_ * s.taps() * cut_.lanes, T(0));
    addSplit();
    if (!keeps) leave();
  }

  /// Of tiles without splits: ((split 0 + split 1) + split 2) + …
  void addUp() {
    alignas(64) std::byte sum_scratch[kChannelsFilterRows * kChannelsRowBytes];
    const ConvShape& s = problem_.shape;
    const int64_t count = inputs_ * s.taps() * cut_.lanes;
    sums_ = reinterpret_cast<T*>(sum_scratch);
    std::copy_n(splitSums(0), count, sums_);
    for (int64_t split = 1; split < cut_.splits; ++split) {
      const T* added = splitSums(split);
      for (int64_t i = 0; i < count; ++i) sums_[i] += added[i];
    }
    leave();
  }

 private:
  T* splitSums(int64_t split) const {
    const ConvShape& s = problem_.shape;
    const int64_t sums = cut_.groups * cut_.blocks * cut_.input_blocks;
    return static_cast<T*>(operands_.workspace) + channelsPackedElements(s) +
           (split * sums + sum_) * channelsSumElements(s, cut_);
  }

  void leave() {
    const ConvShape& s = problem_.shape;
    leaveChannelSums<S>(problem_, operands_,
                        {.row = group_ * cut_.joined * s.groupOutputs() + output_,
                         .column = input_ * s.taps(),
                         .rows = outputs_,
                         .columns = inputs_ * s.taps(),
                         .sums = sums_,
                         .lanes = cut_.lanes});
  }

  /// A split is a range of all rows of all parts of the round.
  void addSplit() {
    const ConvShape& s = problem_.shape;
    const int64_t first = round_ * cut_.round_parts, parts = std::min(cut_.round_parts, cut_.parts - first);
    const int64_t rows = s.height.output, all = parts * rows;
    const int64_t end = all * (split_ + 1) / cut_.splits;
    for (int64_t begin = all * split_ / cut_.splits; begin < end;) {
      part_ = begin / rows;
      images_ = std::min(cut_.images, s.batch - (first + part_) * cut_.images);
      const int64_t part_end = std::min(end, (part_ + 1) * rows);
      addRows(begin - part_ * rows, part_end - part_ * rows);
      begin = part_end;
    }
  }

  /// Pieces of the rows of one part, in groups.
  void addRows(int64_t row, int64_t row_end) {
    const ChannelsProblem& taps = problem_.channels;
    const int64_t most = std::max<int64_t>(1, kWantedDepth / images_);  // columns of a piece
    Piece pieces[kMostPieces];
    int64_t count = 0, columns = 0;
    for (; row < row_end; ++row)
      for (size_t run = 0; run < taps.runs.size(); ++run)
        for (int64_t column = 0; column < taps.runs[run].count;) {
          const int64_t taken = std::min(most - columns, taps.runs[run].count - column);
          pieces[count++] = {row, static_cast<int64_t>(run), column, taken};
          column += taken, columns += taken;
          if (columns < most && count < kMostPieces) continue;
          addPieces(pieces, count);
          count = columns = 0;
        }
    if (count > 0) addPieces(pieces, count);
  }

  void addPieces(const Piece* pieces, int64_t count) {
    const ConvShape& s = problem_.shape;
    const int64_t part_of_all = group_ * cut_.round_parts + part_;
    const T* x = static_cast<const T*>(operands_.workspace);
    const T* y = x + cut_.groups * cut_.round_parts * cut_.x.elements();
    x += part_of_all * cut_.x.elements() + cut_.x.offset(input_, images_);
    y += part_of_all * cut_.y.elements() + cut_.y.offset(output_, images_);
    for (int64_t i = 0; i < s.height.kernel; ++i)
      for (int64_t j = 0; j < s.width.kernel; ++j) {
        ProductRun products[kMostPieces];
        const int64_t product_count = findProducts(pieces, count, i, j, products);
        if (product_count == 0) continue;
        const TypedChannelKernels<S>& kernels = problem_.patch_kernels->of<S>().channels;
        (cut_.joined > 1 ? kernels.groupRowsAlong
                         : kernels.rowsAlong)({.rows = inputs_,
                                               .columns = outputs_,
                                               .group = cut_.met,
                                               .terms = products,
                                               .term_count = product_count,
                                               .a = x,
                                               .a_step = cut_.x.width(input_),
                                               .b = y,
                                               .b_step = cut_.y.width(output_),
                                               .sums = sums_ + (i * s.width.kernel + j) * cut_.lanes,
                                               .sums_row = s.taps() * cut_.lanes,
                                               .accumulate = true});
      }
  }

  /// Of each piece that tap (i, j) meets.
  int64_t findProducts(const Piece* pieces, int64_t count, int64_t i, int64_t j, ProductRun* products) const {
    const ConvShape& s = problem_.shape;
    const ChannelsProblem& taps = problem_.channels;
    int64_t found = 0;
    for (const Piece* piece = pieces; piece < pieces + count; ++piece) {
      const int64_t row = taps.source_rows[static_cast<size_t>(piece->row * s.height.kernel + i)];
      const int64_t column = taps.source_columns[static_cast<size_t>(piece->run * s.width.kernel + j)];
      if (row < 0 || column < 0) continue;
      const int64_t from = row * cut_.x.columns() + column + piece->column;
      const int64_t to =
          piece->row * cut_.y.columns() + taps.runs[static_cast<size_t>(piece->run)].first + piece->column;
      products[found++] = {from * images_ * cut_.x.width(input_), to * images_ * cut_.y.width(output_),
                           piece->columns * images_};
    }
    return found;
  }

  const ConvProblem& problem_;
  const ConvOperands& operands_;
  const ChannelsCut& cut_;
  int64_t round_, split_, group_, sum_, input_, inputs_, output_, outputs_;
  int64_t part_ = 0, images_ = 0;  // part_: of the round
  T* sums_ = nullptr;
};

template <typename S>
void computeChannelsFilterTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  ChannelsFilterTile<S>(problem, operands, tile, problem.channels.cut.splits).compute();
}

template <typename S>
void sumChannelsFilterTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  ChannelsFilterTile<S>(problem, operands, tile, 1).addUp();
}

}  // namespace

ConvTile sumChannelsFilterTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return sumChannelsFilterTile<S>; });
}

ConvTile channelsFilterTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeChannelsFilterTile<S>; });
}

}  // namespace gpuc
