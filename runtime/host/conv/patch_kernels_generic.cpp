#include "runtime/host/conv/patch_kernel_table.h"

namespace gpuc {

extern const PatchKernelTable kPatchKernels16;
const PatchKernelTable kPatchKernels16 = makePatchKernelTable();

}  // namespace gpuc
