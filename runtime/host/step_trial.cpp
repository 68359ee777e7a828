#include "runtime/host/step_trial.h"

#include <algorithm>

namespace gpuc {

bool StepTrial::endStep(int64_t ns) {
  if (median_ns_.size() < 2) return false;
  const size_t before = way_;
  if (steps_to_trial_ > 0) {
    if (--steps_to_trial_ == 0) way_ = 0;
  } else if (settling_ns_ < kSettlingNs || settling_steps_ < kSettlingSteps) {
    settling_ns_ += ns;
    ++settling_steps_;
  } else {
    times_ns_[timed_steps_] = ns;
    if (++timed_steps_ == kTimedSteps) endWay();
  }
  return way_ != before;
}

void StepTrial::endWay() {
  const auto middle = times_ns_.begin() + kTimedSteps / 2;
  std::nth_element(times_ns_.begin(), middle, times_ns_.end());
  median_ns_[way_] = *middle;
  settling_ns_ = settling_steps_ = 0;
  timed_steps_ = 0;
  if (way_ == 0 && *middle > kLongStepNs) return median_ns_.resize(1);
  if (++way_ == median_ns_.size()) decide();
}

void StepTrial::decide() {
  const auto least = std::min_element(median_ns_.begin(), median_ns_.end());
  if (static_cast<double>(*least) < kClearlyLess * static_cast<double>(median_ns_[best_]))
    best_ = static_cast<size_t>(least - median_ns_.begin());
  way_ = best_;
  steps_to_trial_ = kBetweenNs / std::max<int64_t>(1, median_ns_[best_]);
}

}  // namespace gpuc
