#include "runtime/host/conv/patches.h"

namespace gpuc {

extern const PatchKernelTable kPatchKernels64;
const PatchKernelTable kPatchKernels64 = makePatchKernelTable();

}  // namespace gpuc
