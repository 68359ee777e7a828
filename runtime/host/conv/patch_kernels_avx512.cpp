#include "runtime/host/conv/patch_kernel_table.h"

namespace gpuc {

extern const PatchKernelTable kPatchKernels64;
const PatchKernelTable kPatchKernels64 = makePatchKernelTable();

}  // namespace gpuc
