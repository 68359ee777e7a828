// All kernels of convolution at the width that the file which includes this is compiled for (see
// runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/correlate.h"
#include "runtime/host/conv/image_correlate.h"
#include "runtime/host/conv/output_products.h"
#include "runtime/host/conv/pack_images.h"
#include "runtime/host/conv/pack_strip.h"
#include "runtime/host/conv/patches.h"
#include "runtime/host/conv/row_products.h"

namespace gpuc {
namespace {

template <typename S>
constexpr TypedPatchKernels<S> typedPatchKernels() {
  using T = Computed<S>;
  return {gatherPatches<S>,
          scatterPatches<T>,
          {packStrip<S>, correlate<S>, filterProducts<T>, outputProducts<T>},
          {packImages<S>, correlateImages<T>, unpackImages<S>}};
}

constexpr PatchKernelTable makePatchKernelTable() {
  return {typedPatchKernels<float>(), typedPatchKernels<double>(), typedPatchKernels<Half>(),
          typedPatchKernels<Bfloat16>()};
}

}  // namespace
}  // namespace gpuc
