// The table of score kernels for one vector length; included by score_kernels_*.cpp alone.
#pragma once

#include "runtime/host/attention/dropout.h"
#include "runtime/host/attention/softmax.h"

namespace gpuc {
namespace {

template <typename T>
constexpr TypedScoreKernels<T> kTypedScoreKernels = {
    softmax<T>, finish<T>, differentiate<T>, scaleRows<T>, rowProducts<T>, scale<T>, drop<T>};

constexpr ScoreKernelTable kScoreKernels = {kTypedScoreKernels<float>, kTypedScoreKernels<double>};

}  // namespace
}  // namespace gpuc
