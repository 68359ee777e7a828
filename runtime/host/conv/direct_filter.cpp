// dw[outputs, patch rows] = Σ over the images of dy · the patches, without the matrix of patches. The sum is
// cut into parts (cutDirect), which lie in the workspace until the last phase adds them up.
#include "runtime/host/conv/direct_strip.h"

namespace gpuc {
namespace {

/// dy of `outputs` outputs in the type of the arithmetic: where it lies, or widened into `scratch`.
template <typename S>
void placeCotangent(const ConvProblem& problem, const DirectChunk& chunk, const S* dy, int64_t outputs,
                    Computed<S>* scratch, FilterProducts<Computed<S>>& products) {
  const ConvShape& s = problem.shape;
  const int64_t image_stride = s.out_channels * s.outputPixels(), pixels = chunk.rows * s.width.output;
  if constexpr (!kIsWidened<S>) {
    products.dy = dy, products.dy_image = image_stride, products.dy_output = s.outputPixels();
  } else {
    products.dy = scratch, products.dy_image = outputs * pixels, products.dy_output = pixels;
    for (int64_t image = chunk.first; image < chunk.end; ++image)
      problem.vector_kernels->of<S>().widen({outputs, pixels, dy + (image - chunk.first) * image_stride,
                                             s.outputPixels(),
                                             scratch + (image - chunk.first) * products.dy_image, pixels});
  }
}

/// Tiles count groups first, then parts; a part is a range of all chunks.
template <typename S>
void computeDirectFilterTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  using T = Computed<S>;
  const ConvShape& s = problem.shape;
  const DirectCut& cut = problem.direct.cut;
  const TypedDirectKernels<S>& kernels = problem.patch_kernels->of<S>().direct;
  const int64_t group = tile % s.groups, part = tile / s.groups;
  alignas(64) std::byte packed_scratch[kDirectPackedBytes];
  alignas(64) std::byte cotangent_scratch[kIsWidened<S> ? kDirectPackedBytes : 1];
  T* packed = reinterpret_cast<T*>(packed_scratch);
  T* sums = static_cast<T*>(problem.sums_in_workspace ? operands.workspace : operands.c) +
            part * s.filterElements() + filterOffset(s, group);

  const int64_t first = cut.chunks * part / cut.parts, end = cut.chunks * (part + 1) / cut.parts;
  for (int64_t index = first; index < end; ++index) {
    const DirectChunk chunk(problem, index);
    packChunk<S>(problem, chunk, static_cast<const S*>(operands.b), group, packed);

    // Of 16-bit types as many outputs at once as fit when they are widened.
    const int64_t pixels = (chunk.end - chunk.first) * chunk.rows * s.width.output;
    const int64_t most =
        kIsWidened<S> ? kDirectPackedBytes / (pixels * int64_t{sizeof(T)}) : s.groupOutputs();
    for (int64_t output = 0; output < s.groupOutputs(); output += most) {
      const int64_t outputs = std::min(most, s.groupOutputs() - output);
      const S* dy = static_cast<const S*>(operands.a) + outputOffset(s, chunk.first, group) +
                    output * s.outputPixels() + chunk.row * s.width.output;
      FilterProducts<T> products{.images = chunk.end - chunk.first,
                                 .outputs = outputs,
                                 .taps = s.patchRows(),
                                 .rows = chunk.rows,
                                 .columns = s.width.output,
                                 .image = packed,
                                 .image_image = imageElements(problem),
                                 .image_row = cut.row_stride,
                                 .tap_places = problem.direct.tap_places.data(),
                                 .dy = nullptr,
                                 .dy_image = 0,
                                 .dy_output = 0,
                                 .sums = sums + output * s.patchRows(),
                                 .sums_output = s.patchRows(),
                                 .accumulate = index > first};
      placeCotangent<S>(problem, chunk, dy, outputs, reinterpret_cast<T*>(cotangent_scratch), products);
      kernels.filterProducts(products);
    }
  }
}

}  // namespace

ConvTile directFilterTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeDirectFilterTile<S>; });
}

}  // namespace gpuc
