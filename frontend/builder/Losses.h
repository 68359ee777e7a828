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
  Tensor weight = {};         ///< [classes]: a row is weighed, and counts, by the weight of its label.
};

/// -log softmax(logits)[label]; logits [batch, …, classes], labels [batch, …] i32 or i64.
Loss crossEntropy(const Tensor &logits, const Tensor &labels, CrossEntropyOptions options = {});

/// crossEntropy of hidden · weightᵀ + bias, computed a chunk of rows at a time, so that the logits are never
/// stored whole, in training either. hidden [batch, …, features], weight [classes, features] as Linear's and
/// Embedding's, bias [classes] or {}, labels [batch, …].
Loss linearCrossEntropy(const Tensor &hidden, const Tensor &weight, const Tensor &bias, const Tensor &labels,
                        CrossEntropyOptions options = {});

struct NllOptions {
  int64_t ignoreIndex = -100;
  Tensor weight = {};
};

/// -logProbabilities[label]: crossEntropy of what went through logSoftmax already.
Loss nll(const Tensor &logProbabilities, const Tensor &labels, NllOptions options = {});

/// (prediction - target)², summed over all elements; both of one type.
Loss mse(const Tensor &prediction, const Tensor &target);

/// |prediction - target|, summed over all elements; both of one type.
Loss l1(const Tensor &prediction, const Tensor &target);

/// d²/2 where |d| ≤ delta, else delta · (|d| - delta/2), with d = prediction - target.
Loss huber(const Tensor &prediction, const Tensor &target, double delta = 1);

/// huber divided by its delta, which PyTorch calls beta here.
Loss smoothL1(const Tensor &prediction, const Tensor &target, double beta = 1);

/// The binary cross entropy of sigmoid(logits), summed over all elements; targets lie in [0, 1].
/// `positiveWeight`, if it is given, repeats to the logits and weighs what is positive.
Loss bceWithLogits(const Tensor &logits, const Tensor &targets, const Tensor &positiveWeight = {});

/// Rows whose largest logit stands at the label; logits [batch, …, classes], labels [batch, …] i32 or i64.
Loss accuracy(const Tensor &logits, const Tensor &labels, int64_t ignoreIndex = -100);

/// accuracy of hidden · weightᵀ + bias, as linearCrossEntropy.
Loss linearAccuracy(const Tensor &hidden, const Tensor &weight, const Tensor &bias, const Tensor &labels,
                    int64_t ignoreIndex = -100);

} // namespace gpuc::nn
