// dw[outputs, patch rows] = Σ over the images of dy · the patches, without the matrix of patches. The sum is
// cut into parts (cutDirect), which lie in the workspace until the last phase adds them up.
#include "runtime/host/conv/direct_strip.h"

namespace gpuc {
namespace {

/// A part of the sum for one group: a range of all chunks. Tiles count groups first, then parts.
template <typename S>
class DirectFilterTile {
 public:
  DirectFilterTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile)
      : problem_(problem),
        operands_(operands),
        group_(tile % problem.shape.groups),
        part_(tile / problem.shape.groups) {}

  void compute() {
    const ConvShape& s = problem_.shape;
    const DirectCut& cut = problem_.direct.cut;
    alignas(64) std::byte packed_scratch[kDirectPackedBytes];
    T* packed = reinterpret_cast<T*>(packed_scratch);
    T* sums = static_cast<T*>(problem_.sums_in_workspace ? operands_.workspace : operands_.c) +
              part_ * s.filterElements() + filterOffset(s, group_);
    const int64_t first = cut.chunks * part_ / cut.parts, end = cut.chunks * (part_ + 1) / cut.parts;
    for (int64_t index = first; index < end; ++index)
      for (int64_t channel = 0; channel < s.groupInputs(); channel += cut.channels)
        addChunk(DirectChunk(problem_, index), DirectChannels(problem_, channel), packed,
                 sums + channel * s.taps(), index > first);
  }

 private:
  using T = Computed<S>;
  using Products = FilterProducts<T>;

  bool byOutputs() const { return problem_.method == ConvMethod::by_outputs; }

  /// By rows of 16-bit types as many as fit when they are widened.
  int64_t outputsAtOnce(const DirectChunk& chunk) const {
    if (byOutputs()) return mostPackedOutputs(problem_.shape);
    const int64_t pixels = (chunk.end - chunk.first) * chunk.rows * problem_.shape.width.output;
    return kIsWidened<S> ? kDirectPackedBytes / (pixels * int64_t{sizeof(T)}) : problem_.shape.groupOutputs();
  }

  void addChunk(const DirectChunk& chunk, const DirectChannels& channels, T* packed, T* sums,
                bool accumulate) {
    const ConvShape& s = problem_.shape;
    packChunk<S>(problem_, chunk, channels, static_cast<const S*>(operands_.b), group_, packed);
    const int64_t most = outputsAtOnce(chunk);
    for (int64_t output = 0; output < s.groupOutputs(); output += most)
      addOutputs(chunk, output,
                 {.images = chunk.end - chunk.first,
                  .outputs = std::min(most, s.groupOutputs() - output),
                  .rows = chunk.rows,
                  .columns = s.width.output,
                  .image = packed,
                  .image_image = imageElements(problem_),
                  .image_row = problem_.direct.cut.row_stride,
                  .column_step = s.width.stride / problem_.direct.cut.column_step,
                  .taps = channels.count * s.taps(),
                  .run_taps = s.width.kernel,
                  .places = problem_.direct.tap_places.data(),
                  .dy = nullptr,
                  .dy_image = 0,
                  .dy_output = 0,
                  .dy_pixel = 0,
                  .sums = sums + output * s.patchRows(),
                  .sums_output = s.patchRows(),
                  .sums_tap = 1,
                  .accumulate = accumulate,
                  .asks = false,
                  .next = nullptr});
  }

  void addOutputs(const DirectChunk& chunk, int64_t output, Products products) {
    const ConvShape& s = problem_.shape;
    const S* dy = static_cast<const S*>(operands_.a) + outputOffset(s, chunk.first, group_) +
                  output * s.outputPixels() + chunk.row * s.width.output;
    const TypedDirectKernels<S>& kernels = problem_.patch_kernels->of<S>().direct;
    alignas(64) std::byte scratch[kDirectPackedBytes];
    if (byOutputs()) {
      packOutputs(dy, reinterpret_cast<T*>(scratch), products);
      kernels.outputProducts(products);
    } else {
      placeRows(dy, reinterpret_cast<T*>(scratch), products);
      kernels.filterProducts(products);
    }
  }

  /// dy with its outputs side by side, as many as two vectors hold.
  void packOutputs(const S* dy, T* packed, Products& products) const {
    const ConvShape& s = problem_.shape;
    const int64_t lanes = kConvPackBytes / static_cast<int64_t>(sizeof(T));
    const int64_t pixels = products.rows * products.columns;
    products.dy = packed, products.dy_pixel = (products.outputs + lanes - 1) / lanes * lanes;
    for (int64_t image = 0; image < products.images; ++image)
      problem_.vector_kernels->of<S>().transpose(
          {products.outputs, pixels, dy + image * s.out_channels * s.outputPixels(), s.outputPixels(),
           packed + image * pixels * products.dy_pixel, products.dy_pixel});
  }

  /// dy in the type of the arithmetic: where it lies, or widened.
  void placeRows(const S* dy, T* widened, Products& products) const {
    const ConvShape& s = problem_.shape;
    const int64_t image_stride = s.out_channels * s.outputPixels(), pixels = products.rows * products.columns;
    if constexpr (!kIsWidened<S>) {
      products.dy = dy, products.dy_image = image_stride, products.dy_output = s.outputPixels();
    } else {
      products.dy = widened, products.dy_image = products.outputs * pixels, products.dy_output = pixels;
      for (int64_t image = 0; image < products.images; ++image)
        problem_.vector_kernels->of<S>().widen({products.outputs, pixels, dy + image * image_stride,
                                                s.outputPixels(), widened + image * products.dy_image,
                                                pixels});
    }
  }

  const ConvProblem& problem_;
  const ConvOperands& operands_;
  int64_t group_, part_;
};

template <typename S>
void computeDirectFilterTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  DirectFilterTile<S>(problem, operands, tile).compute();
}

}  // namespace

ConvTile directFilterTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeDirectFilterTile<S>; });
}

}  // namespace gpuc
