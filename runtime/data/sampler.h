// Which samples make up which batch: a pure function of seed, epoch and step.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/status.h"

namespace gpuc {

/// What becomes of the samples at the end of an epoch that fill no global batch.
enum class LastBatch {
  drop,  // they are left out
  pad,   // they make a last batch that is filled up; the batch says how many of its rows count
};

struct SamplerOptions {
  int64_t size = 0;   // samples in the data set
  int64_t batch = 0;  // rows for one rank in one step, all microbatches together
  int64_t rank = 0;
  int64_t world_size = 1;
  uint64_t seed = 0;
  bool shuffle = true;
  LastBatch last_batch = LastBatch::drop;
};

/// A position in training: both count from 0.
struct LoaderPosition {
  int64_t epoch = 0;
  int64_t step = 0;  // within the epoch
  bool operator==(const LoaderPosition&) const = default;
};

/// Step k of an epoch takes positions [k·G, (k+1)·G) of that epoch's order, where G = batch · world_size;
/// rank r gets the r-th run of `batch` of them. The order is Permutation(size, seed, epoch), or 0, 1, 2, …
/// without shuffling. So the global batch does not depend on how many ranks share it, and no sample comes
/// twice in an epoch, padding excepted.
class Sampler {
 public:
  /// Errors: extents below 1, a rank outside the world, a drop that would leave an epoch without any step.
  static Result<Sampler> create(const SamplerOptions& options);

  const SamplerOptions& options() const { return options_; }
  int64_t stepsPerEpoch() const { return steps_per_epoch_; }

  /// The position after `position`, the next epoch's first step after the last one.
  LoaderPosition following(LoaderPosition position) const;

  /// The position `steps` steps after the very start.
  LoaderPosition positionOf(int64_t steps) const {
    return {steps / steps_per_epoch_, steps % steps_per_epoch_};
  }

  /// Rows of this rank's batch that are samples; the other `batch - validRows` are padding. Can be 0 in a
  /// padded last batch.
  int64_t validRows(int64_t step) const;

  /// Rows of the global batch that are samples: of all ranks.
  int64_t globalRows(int64_t step) const;

  /// Writes this rank's `batch` samples. Padding repeats the first sample of the global batch.
  void sampleIndices(LoaderPosition position, std::span<int64_t> indices) const;

 private:
  SamplerOptions options_;
  int64_t steps_per_epoch_ = 0;
};

}  // namespace gpuc
