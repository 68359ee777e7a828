#include "runtime/host/conv/patches.h"

namespace gpuc {

extern const PatchKernelTable kPatchKernels16;
const PatchKernelTable kPatchKernels16 = {{gatherPatches<float>, scatterPatches<float>},
                                          {gatherPatches<double>, scatterPatches<double>}};

}  // namespace gpuc
