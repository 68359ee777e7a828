#include "runtime/host/matmul/vector_kernels.h"

namespace gpuc {

extern const VectorKernelTable kVectorKernels16;
#if defined(__x86_64__)
extern const VectorKernelTable kVectorKernels32;
extern const VectorKernelTable kVectorKernels64;
#endif

const VectorKernelTable* vectorKernels(int most_vector_bytes) {
#if defined(__x86_64__)
  if (most_vector_bytes >= 64 && __builtin_cpu_supports("avx512f")) return &kVectorKernels64;
  if (most_vector_bytes >= 32 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c"))
    return &kVectorKernels32;
#endif
  return &kVectorKernels16;
}

}  // namespace gpuc
