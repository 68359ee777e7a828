// dw[outputs, patch rows] as in direct_filter.cpp, with an output in each lane: dy is packed with its outputs
// side by side, as many as two vectors hold.
#include "runtime/host/conv/direct_strip.h"

namespace gpuc {
namespace {

/// Tiles count groups first, then parts; a part is a range of all chunks.
template <typename S>
void computeOutputFilterTile(const ConvProblem& problem, const ConvOperands& operands, int64_t tile) {
  using T = Computed<S>;
  const ConvShape& s = problem.shape;
  const DirectCut& cut = problem.direct.cut;
  const int64_t group = tile % s.groups, part = tile / s.groups;
  alignas(64) std::byte packed_scratch[kDirectPackedBytes];
  alignas(64) std::byte cotangent_scratch[kDirectPackedBytes];
  T* packed = reinterpret_cast<T*>(packed_scratch);
  T* packed_dy = reinterpret_cast<T*>(cotangent_scratch);
  T* sums = static_cast<T*>(problem.sums_in_workspace ? operands.workspace : operands.c) +
            part * s.filterElements() + filterOffset(s, group);

  const int64_t lanes = kConvPackBytes / static_cast<int64_t>(sizeof(T)), most = mostPackedOutputs(s);
  const int64_t first = cut.chunks * part / cut.parts, end = cut.chunks * (part + 1) / cut.parts;
  for (int64_t index = first; index < end; ++index) {
    const DirectChunk chunk(problem, index);
    packChunk<S>(problem, chunk, static_cast<const S*>(operands.b), group, packed);
    const int64_t pixels = chunk.rows * s.width.output;
    for (int64_t output = 0; output < s.groupOutputs(); output += most) {
      const int64_t outputs = std::min(most, s.groupOutputs() - output);
      const int64_t dy_pixel = (outputs + lanes - 1) / lanes * lanes;
      for (int64_t image = chunk.first; image < chunk.end; ++image)
        problem.vector_kernels->of<S>().transpose(
            {outputs, pixels,
             static_cast<const S*>(operands.a) + outputOffset(s, image, group) + output * s.outputPixels() +
                 chunk.row * s.width.output,
             s.outputPixels(), packed_dy + (image - chunk.first) * pixels * dy_pixel, dy_pixel});
      problem.patch_kernels->of<S>().direct.outputProducts({.images = chunk.end - chunk.first,
                                                            .outputs = outputs,
                                                            .runs = s.groupInputs() * s.height.kernel,
                                                            .run_taps = s.width.kernel,
                                                            .rows = chunk.rows,
                                                            .columns = s.width.output,
                                                            .image = packed,
                                                            .image_image = imageElements(problem),
                                                            .image_row = cut.row_stride,
                                                            .run_places = problem.direct.tap_places.data(),
                                                            .dy = packed_dy,
                                                            .dy_pixel = dy_pixel,
                                                            .sums = sums + output * s.patchRows(),
                                                            .sums_output = s.patchRows(),
                                                            .accumulate = index > first});
    }
  }
}

}  // namespace

ConvTile outputFilterTile(DataType storage) {
  return withElement(storage, []<typename S>(S) -> ConvTile { return computeOutputFilterTile<S>; });
}

}  // namespace gpuc
