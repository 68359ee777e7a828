#include "runtime/host/matmul/kernel_table.h"

namespace gpuc {

int kernelVectorBytes(int most) {
#if defined(__x86_64__)
  if (most >= 64 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return 64;
  if (most >= 32 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c"))
    return 32;
#endif
  return 16;
}

}  // namespace gpuc
