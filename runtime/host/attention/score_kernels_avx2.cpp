#include "runtime/host/attention/score_kernel_table.h"

namespace gpuc {

extern const ScoreKernelTable kScoreKernels32;
const ScoreKernelTable kScoreKernels32 = kScoreKernels;

}  // namespace gpuc
