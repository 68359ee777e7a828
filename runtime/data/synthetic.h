// Samples made up from a seed, to fit whatever a plan wants: for benchmarks, tests and first runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/data/dataset.h"

namespace gpuc {

/// Fills `destination` with sample `index` of input number `field`: a pure function of the arguments.
/// Floats have mean 0 and variance 1 (the sum of four random bytes, within ±3.45). Integers are uniform in
/// [0, range); without a range in [0, 256) for ui8, [0, 128) for i8, i32 and i64, and 0 or 1 for i1.
/// Bits come from Philox4x32-10(counter = {block, index low, index high, "syn\0" + field}, key = seed).
void fillSyntheticSample(const InputSpec& input, size_t field, uint64_t seed, int64_t index,
                         std::byte* destination);

/// `size` samples with a field for each input. Errors: size below 1, an input without a batch extent, a
/// range that its type cannot hold.
Result<std::unique_ptr<Dataset>> makeSyntheticDataset(std::span<const InputSpec> inputs, int64_t size,
                                                      uint64_t seed);

}  // namespace gpuc
