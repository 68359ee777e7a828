#include "runtime/host/conv/patch_kernel_table.h"

namespace gpuc {

extern const PatchKernelTable kPatchKernels32;
const PatchKernelTable kPatchKernels32 = makePatchKernelTable();

}  // namespace gpuc
