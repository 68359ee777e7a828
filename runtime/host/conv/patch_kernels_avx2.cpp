#include "runtime/host/conv/patches.h"

namespace gpuc {

extern const PatchKernelTable kPatchKernels32;
const PatchKernelTable kPatchKernels32 = {{gatherPatches<float>, scatterPatches<float>},
                                          {gatherPatches<double>, scatterPatches<double>}};

}  // namespace gpuc
