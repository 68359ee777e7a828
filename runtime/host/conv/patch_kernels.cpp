#include "runtime/host/conv/patch_kernels.h"

namespace gpuc {

extern const PatchKernelTable kPatchKernels16;
#if defined(__x86_64__)
extern const PatchKernelTable kPatchKernels32;
extern const PatchKernelTable kPatchKernels64;
#endif

const PatchKernelTable* patchKernels(int most_vector_bytes) {
#if defined(__x86_64__)
  if (most_vector_bytes >= 64 && __builtin_cpu_supports("avx512f")) return &kPatchKernels64;
  if (most_vector_bytes >= 32 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c"))
    return &kPatchKernels32;
#endif
  return &kPatchKernels16;
}

}  // namespace gpuc
