// What a plan compiled with --check-numerics says of NaN and infinities: which op made them, and how many.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/gpuc.h"

namespace gpuc {

/// Adds up what the steps of a program counted. Nothing allocates until something is said about it.
class Nonfinite {
 public:
  /// For a plan without checks everything is finite.
  Nonfinite(const Session& session, ProgramId program);

  /// Takes in what the last run counted, after wait(). An error names the first op that made NaN or an
  /// infinity in step `step`. Where its update was `skipped` it is none: the loss scale was too large for
  /// what flows back, or the step an outlier. What the forward pass makes no scale can mend: that is an
  /// error, unless outliers are left out.
  Status take(Session& session, int64_t step, bool skipped);

  /// Of a program that says itself, by its output `skipped`, whether its update was.
  Status take(Session& session, int64_t step);

  /// How many were made by each layer, the largest first, as lines; none if there were none.
  std::vector<std::string> table() const;

 private:
  std::string errorText(int64_t step, size_t first, int64_t count) const;
  bool wasSkipped(Session& session) const;

  ProgramId program_;
  size_t output_ = 0, skipped_ = 0;  // skipped_: behind all outputs if there is none
  size_t forward_ = 0;               // so many checks are errors though the update is skipped
  std::vector<CheckInfo> checks_;
  std::vector<int64_t> totals_;  // for each check
};

}  // namespace gpuc
