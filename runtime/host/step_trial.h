// Which of several ways to run a step takes least time, found by running them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuc {

/// Takes a step's ways in turn, a few steps each, and then has the quickest run; and again from time to time,
/// since what was quickest need not stay so. It starts with way 0, and keeps to it where steps are so long
/// that the ways make no difference.
class StepTrial {
 public:
  explicit StepTrial(size_t ways) : median_ns_(ways) {}

  /// The way that is to be taken next.
  size_t way() const { return way_; }
  /// Whether the step that follows is one of a trial, whose time is wanted.
  bool isTiming() const { return steps_to_trial_ == 0 && median_ns_.size() > 1; }

  /// The step has been run; how long it took matters if it is one of a trial. True if the way is another now.
  bool endStep(int64_t ns);

 private:
  // A thread that slept takes some steps to be in time again, and data lie where another way left them.
  static constexpr int64_t kSettlingNs = 2'000'000, kSettlingSteps = 2;
  static constexpr size_t kTimedSteps = 9;
  static constexpr int64_t kFirstSteps = 20;  // before the first trial: memory is new to them
  static constexpr int64_t kBetweenNs = 2'000'000'000;
  static constexpr int64_t kLongStepNs = 4'000'000;
  /// Of the best way's time: another one must take less to be taken in its place.
  static constexpr double kClearlyLess = 0.96;

  void endWay();
  void decide();

  std::vector<int64_t> median_ns_;  // of each way
  std::array<int64_t, kTimedSteps> times_ns_{};
  size_t way_ = 0, best_ = 0;
  int64_t steps_to_trial_ = kFirstSteps;
  int64_t settling_ns_ = 0, settling_steps_ = 0;  // of this way, so far
  size_t timed_steps_ = 0;
};

}  // namespace gpuc
