// Compiled for each width of vectors (see runtime/host/matmul/vector.h).
#include "runtime/host/attention/score_kernels.h"

#include "runtime/host/attention/dropout.h"
#include "runtime/host/attention/softmax.h"

namespace gpuc {
namespace {

template <typename T>
constexpr TypedScoreKernels<T> kKernels = {softmax<T>,     finish<T>, differentiate<T>, scaleRows<T>,
                                           rowProducts<T>, scale<T>,  drop<T>};

constexpr ScoreKernelTable kTable = {kKernels<float>, kKernels<double>};

}  // namespace

template <>
const ScoreKernelTable& kernelsOf<ScoreKernelTable, kVectorBytes>() {
  return kTable;
}

}  // namespace gpuc
