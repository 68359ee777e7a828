// One token out of a row of logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"

namespace gpuc {

struct SamplingOptions {
  double temperature = 1;  // logits are divided by it; 0 takes the largest
  int64_t top_k = 0;       // draw among the k largest logits; 0 is all of them
  uint64_t seed = 0;
};

/// Draws tokens with probability softmax(logits / temperature), by Philox4x32-10: draw n is a function of
/// seed, n and the logits.
class TokenSampler {
 public:
  explicit TokenSampler(const SamplingOptions& options) : options_(options) {}

  /// The next token, in [0, logits.size()). Of equal logits the one of the lower number counts as larger.
  /// Error: a logit that is NaN or +infinity, or all of them -infinity; it says which.
  Result<int64_t> draw(std::span<const double> logits);

 private:
  SamplingOptions options_;
  uint64_t draws_ = 0;
  std::vector<int64_t> order_;  // tokens, the largest logit first
};

}  // namespace gpuc
