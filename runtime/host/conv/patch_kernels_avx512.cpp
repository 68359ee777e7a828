#include "runtime/host/conv/patches.h"

namespace gpuc {

extern const PatchKernelTable kPatchKernels64;
const PatchKernelTable kPatchKernels64 = {{gatherPatches<float>, scatterPatches<float>},
                                          {gatherPatches<double>, scatterPatches<double>}};

}  // namespace gpuc
