// What a person sees of training: a bar on a terminal, plain lines elsewhere.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/train/metrics.h"

namespace gpuc {

struct ProgressOptions {
  int descriptor = 1;
  bool is_terminal = false;
  int columns = 80;
  std::optional<int64_t> log_every;  // steps between lines; none: 100, or no lines beside the bar. 0: none
  int64_t first_step = 0;            // updates that were done before
  int64_t last_step = 0;
  int64_t steps_per_epoch = 1;
  int64_t workers = 0;  // threads that load batches

  /// For this descriptor as it is.
  static ProgressOptions forDescriptor(int descriptor);
};

/// Writes go straight to the descriptor, from buffers of fixed size: nothing allocates. A reader that went
/// away is no reason to stop training, and any other error of writing none before its end.
class Progress {
 public:
  explicit Progress(const ProgressOptions& options);
  /// Removes the bar.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// After each update; `step_s` is how long it took and `rows` how many samples it saw.
  void step(const StepEvent& event, double step_s, int64_t rows);
  void evaluation(const EvalEvent& event);
  void end(const EndEvent& event);
  /// A line of its own; without the newline.
  void note(std::string_view text);

  /// The first error of writing, but for a reader that went away.
  Status status() const;

 private:
  using Clock = std::chrono::steady_clock;

  /// What was seen since the last line.
  struct Window {
    double loss_sum = 0;
    int64_t losses = 0;
    double rows = 0;
    double seconds = 0;
  };

  void writeStepLine(const StepEvent& event);
  void drawBar(const StepEvent& event);
  void clearBar();
  void noteWaiting();
  void noteLostLoss(const StepEvent& event);
  void put(std::string_view text);
  double secondsLeft(int64_t step) const;

  ProgressOptions options_;
  Window window_;
  double stepped_s_ = 0, waited_s_ = 0;  // in steps of this run, and of that for their batches
  Clock::time_point start_;
  Clock::time_point last_draw_;
  bool bar_is_drawn_ = false;
  bool told_of_loss_ = false;
  int error_ = 0;  // of the system
};

}  // namespace gpuc
