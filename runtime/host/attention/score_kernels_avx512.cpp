#include "runtime/host/attention/score_kernel_table.h"

namespace gpuc {

extern const ScoreKernelTable kScoreKernels64;
const ScoreKernelTable kScoreKernels64 = kScoreKernels;

}  // namespace gpuc
