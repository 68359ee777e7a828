#include "runtime/host/conv/patches.h"

namespace gpuc {

extern const PatchKernelTable kPatchKernels16;
const PatchKernelTable kPatchKernels16 = makePatchKernelTable();

}  // namespace gpuc
