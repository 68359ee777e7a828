//===- Losses.h - What is minimised, and what is counted --------------------===//
#pragma once

#include "frontend/builder/Tensor.h"

namespace gpuc::nn {

/// A sum over the rows of a batch and how many counted: two scalars. Their quotient, over all microbatches,
/// is what is minimised or reported.
struct Loss {
  Tensor sum;
  Tensor count;
};

struct CrossEntropyOptions {
  double smoothing = 0;       ///< In [0, 1): the weight of the uniform distribution in the target.
  int64_t ignoreIndex = -100; ///< Rows with this label do not count.
};

/// -log softmax(logits)[label]; logits [batch, classes], labels [batch] i32 or i64.
Loss crossEntropy(const Tensor &logits, const Tensor &labels, CrossEntropyOptions options = {});

/// (prediction - target)², summed over all elements; both of one type.
Loss mse(const Tensor &prediction, const Tensor &target);

/// Rows whose largest logit stands at the label; logits [batch, classes], labels [batch] i32 or i64.
Loss accuracy(const Tensor &logits, const Tensor &labels, int64_t ignoreIndex = -100);

} // namespace gpuc::nn
