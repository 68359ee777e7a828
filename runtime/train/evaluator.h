// Loss and accuracy over a whole data set, each sample counted exactly once.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "runtime/train/feed.h"
#include "runtime/train/step_outputs.h"

namespace gpuc {

struct Evaluation {
  std::optional<double> loss;      // the mean over all that counts
  std::optional<double> accuracy;  // from 0 to 1
};

class Evaluator {
 public:
  /// For the plan's eval_step. Errors: it has none, the data do not fit it.
  static Result<Evaluator> create(const Session& session, const std::string& data,
                                  const LoaderOptions& options);

  /// One pass in the order of the data; sums are in f64. None if `stop` turned true on the way. Allocates
  /// nothing.
  Result<std::optional<Evaluation>> run(Session& session, const std::atomic<bool>& stop);

 private:
  Evaluator(ProgramId program, EvalOutputs outputs, Feed feed)
      : program_(program), outputs_(outputs), feed_(std::move(feed)) {}

  ProgramId program_;
  EvalOutputs outputs_;
  Feed feed_;
};

}  // namespace gpuc
