#include "runtime/host/attention/score_kernel_table.h"

namespace gpuc {

extern const ScoreKernelTable kScoreKernels16;
const ScoreKernelTable kScoreKernels16 = kScoreKernels;

}  // namespace gpuc
