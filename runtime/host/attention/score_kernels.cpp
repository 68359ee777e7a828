#include "runtime/host/attention/score_kernels.h"

namespace gpuc {

extern const ScoreKernelTable kScoreKernels16;
#if defined(__x86_64__)
extern const ScoreKernelTable kScoreKernels32;
extern const ScoreKernelTable kScoreKernels64;
#endif

int scoreKernelVectorBytes(int most_vector_bytes) {
#if defined(__x86_64__)
  if (most_vector_bytes >= 64 && __builtin_cpu_supports("avx512f")) return 64;
  if (most_vector_bytes >= 32 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 32;
#endif
  return 16;
}

const ScoreKernelTable* scoreKernels(int most_vector_bytes) {
#if defined(__x86_64__)
  const int bytes = scoreKernelVectorBytes(most_vector_bytes);
  if (bytes == 64) return &kScoreKernels64;
  if (bytes == 32) return &kScoreKernels32;
#endif
  return &kScoreKernels16;
}

}  // namespace gpuc
