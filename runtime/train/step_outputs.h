// The well-known results of train_step and eval_step, found by name and read by type.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "runtime/gpuc.h"

namespace gpuc {

/// A scalar and whether it came as f32, so that it is printed with no more digits than it has.
struct Number {
  double value = 0;
  bool is_single = false;
};

/// One scalar output of a program, or none if the program has no output of that name.
class ScalarOutput {
 public:
  /// Errors: the output is no scalar, or is f16 or bf16.
  static Result<ScalarOutput> find(const Session& session, ProgramId program, const std::string& name);

  bool exists() const { return index_.has_value(); }

  /// What the last run left, after wait(); none if it does not exist.
  std::optional<Number> read(Session& session) const;

 private:
  ProgramId program_;
  std::optional<size_t> index_;
};

/// What train_step gives; plans need not compute all of it.
struct TrainOutputs {
  ScalarOutput loss_sum, count, lr, grad_norm, loss_scale, skipped;
  static Result<TrainOutputs> find(const Session& session, ProgramId program);
};

/// What eval_step gives.
struct EvalOutputs {
  ScalarOutput loss_sum, count, correct, correct_count;
  static Result<EvalOutputs> find(const Session& session, ProgramId program);
};

}  // namespace gpuc
