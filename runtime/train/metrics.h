// Metrics as JSON lines, one an event, formatted without allocating.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/train/step_outputs.h"

namespace gpuc {

/// One optimizer update. `step` and `epoch` count from 1. What the plan does not compute is left out of the
/// line.
struct StepEvent {
  int64_t step = 0;
  int64_t epoch = 0;
  std::optional<double> loss = std::nullopt;  // the mean over the global batch
  std::optional<Number> lr = std::nullopt;
  std::optional<Number> grad_norm = std::nullopt;  // of the whole gradient, before clipping
  Number loss_scale = {1.0, false};
  bool skipped = false;
  double samples_per_s = 0;
  double data_us = 0;     // how long the step waited for its batch
  double compute_us = 0;  // from the batch to the results
};

/// One pass over the evaluation data, after `step` updates.
struct EvalEvent {
  int64_t step = 0;
  int64_t epoch = 0;
  std::optional<double> loss = std::nullopt;
  std::optional<double> accuracy = std::nullopt;  // correct predictions / all, from 0 to 1
};

/// Training has reached its end.
struct EndEvent {
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t steps = 0;                              // all of them, resumed runs included
  int64_t epochs = 0;                             // complete ones
  double wall_s = 0;                              // of this process, evaluation and checkpoints included
  double samples_per_s = 0;                       // of this process's training steps alone
  std::optional<double> loss = std::nullopt;      // of the last evaluation; of the last step if there is none
  std::optional<double> accuracy = std::nullopt;  // of the last evaluation
};

/// The text of one line. Numbers are the shortest decimals that read back to the same bits (of f32 where it
/// was f32); what JSON cannot say, infinity and NaN, becomes null.
class MetricsLine {
 public:
  explicit MetricsLine(const StepEvent& event);
  explicit MetricsLine(const EvalEvent& event);
  explicit MetricsLine(const EndEvent& event);

  /// With the newline.
  std::string_view text() const { return {text_.data(), length_}; }

  /// No line is longer.
  static constexpr size_t kMostBytes = 1024;

 private:
  void begin(std::string_view event, int64_t step, int64_t epoch);
  void end();
  void add(std::string_view text);
  void key(std::string_view name);
  void field(std::string_view name, int64_t value);
  void field(std::string_view name, double value);
  void field(std::string_view name, Number value);
  void field(std::string_view name, bool value);
  template <typename T>
  void field(std::string_view name, const std::optional<T>& value);
  template <typename T>
  void number(T value);

  std::array<char, kMostBytes> text_;
  size_t length_ = 0;
};

}  // namespace gpuc
