#include "runtime/host/conv/patches.h"

namespace gpuc {

extern const PatchKernelTable kPatchKernels32;
const PatchKernelTable kPatchKernels32 = makePatchKernelTable();

}  // namespace gpuc
