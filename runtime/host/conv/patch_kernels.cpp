// Compiled for each width of vectors (see runtime/host/matmul/vector.h).
#include "runtime/host/conv/patch_kernels.h"

#include "runtime/host/conv/channel_kernels.h"
#include "runtime/host/conv/correlate.h"
#include "runtime/host/conv/depthwise/plane_products.h"
#include "runtime/host/conv/depthwise/plane_sums.h"
#include "runtime/host/conv/filter_products.h"
#include "runtime/host/conv/group_kernels.h"
#include "runtime/host/conv/image_correlate.h"
#include "runtime/host/conv/pack_images.h"
#include "runtime/host/conv/patches.h"
#include "runtime/host/conv/pointwise_few_products.h"
#include "runtime/host/conv/pointwise_products.h"
#include "runtime/host/conv/windows.h"
#include "runtime/host/conv/winograd/winograd_kernels.h"

namespace gpuc {
namespace {

template <int kKernel, typename T>
constexpr PlaneKernels<T> kEveryElement = {planeSums<kKernel, 1, T>, nullptr, planeProducts<kKernel, 1, T>,
                                           addUpProducts<kKernel, 1, T>};
template <int kKernel, typename T>
constexpr PlaneKernels<T> kEveryOther = {planeSums<kKernel, 2, T>, planeSumsBackwards<kKernel, T>,
                                         planeProducts<kKernel, 2, T>, addUpProducts<kKernel, 2, T>};

template <typename T>
constexpr TypedPlaneKernels<T> kPlanes = {{{kEveryElement<3, T>, kEveryOther<3, T>},
                                           {kEveryElement<5, T>, kEveryOther<5, T>},
                                           {kEveryElement<7, T>, kEveryOther<7, T>}}};

template <typename S>
constexpr TypedPatchKernels<S> kKernels = {
    gatherPatches<S>,
    scatterPatches<Computed<S>>,
    {packStrip<S>, correlate<S>, filterProducts<Computed<S>>, outputProducts<Computed<S>>},
    {packImages<S>, correlateImages<Computed<S>>, unpackImages<S>},
    {packPixels<S>, pixelProducts<true, Computed<S>>, pixelProducts<false, Computed<S>>,
     groupTermsAlong<Computed<S>>, groupRowsAlong<Computed<S>>, unpackPixels<S>},
    pointwiseKernels<Computed<S>>(),
    fewKernels<Computed<S>>(),
    kPlanes<Computed<S>>,
    winogradKernels<Computed<S>>(),
    spreadPixels<S>,
    takePixels<S, S>,
    takePixels<S, Computed<S>>,
    takeWindows<S>};

constexpr PatchKernelTable kTable = {kKernels<float>, kKernels<double>, kKernels<Half>, kKernels<Bfloat16>};

}  // namespace

template <>
const PatchKernelTable& kernelsOf<PatchKernelTable, kVectorBytes>() {
  return kTable;
}

}  // namespace gpuc
