#include "runtime/data/sampler.h"

#include <algorithm>

#include "runtime/data/permutation.h"

namespace gpuc {

Result<Sampler> Sampler::create(const SamplerOptions& options) {
  long long size = options.size, batch = options.batch, rank = options.rank, world = options.world_size;
  if (size < 1) return errorf("the data set has %lld samples, expected at least 1", size);
  if (batch < 1) return errorf("batch of %lld rows, expected at least 1", batch);
  if (world < 1 || rank < 0 || rank >= world) return errorf("rank %lld of %lld ranks", rank, world);
  if (batch > INT64_MAX / 2 / world)
    return errorf("batch of %lld rows on %lld ranks is too large", batch, world);
  int64_t global = options.batch * options.world_size;
  Sampler sampler;
  sampler.options_ = options;
  sampler.steps_per_epoch_ = options.size / global;
  if (options.last_batch == LastBatch::pad && options.size % global != 0) ++sampler.steps_per_epoch_;
  if (sampler.steps_per_epoch_ == 0)
    return errorf(
        "the data set has %lld samples, fewer than one global batch of %lld rows; compile with a smaller "
        "--batch or pass --last-batch=pad",
        size, static_cast<long long>(global));
  return sampler;
}

LoaderPosition Sampler::following(LoaderPosition position) const {
  if (position.step + 1 < steps_per_epoch_) return {position.epoch, position.step + 1};
  return {position.epoch + 1, 0};
}

int64_t Sampler::validRows(int64_t step) const {
  int64_t first = step * options_.batch * options_.world_size + options_.rank * options_.batch;
  return std::clamp<int64_t>(options_.size - first, 0, options_.batch);
}

int64_t Sampler::globalRows(int64_t step) const {
  const int64_t batch = options_.batch * options_.world_size;
  return std::clamp<int64_t>(options_.size - step * batch, 0, batch);
}

void Sampler::sampleIndices(LoaderPosition position, std::span<int64_t> indices) const {
  int64_t global_first = position.step * options_.batch * options_.world_size;
  int64_t first = global_first + options_.rank * options_.batch;
  int64_t valid = validRows(position.step);
  Permutation permutation(options_.size, options_.seed, static_cast<uint64_t>(position.epoch));
  for (int64_t row = 0; row < options_.batch; ++row) {
    int64_t place = row < valid ? first + row : global_first;
    indices[static_cast<size_t>(row)] = options_.shuffle ? permutation(place) : place;
  }
}

}  // namespace gpuc
