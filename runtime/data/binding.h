// Whether a data set fits the plan that is to eat it.
#pragma once

#include <span>
#include <vector>

#include "runtime/data/dataset.h"

namespace gpuc {

/// For each input the field that feeds it: same name, same type, same elements in the same order (idx gives
/// images of 28x28, a plan may want 1x28x28 or 784, but not 3x28x28 of 28x28x3). Errors name the input or
/// field, what both sides say, and the names that exist: an input without a field, a field that no input
/// takes (unless it may idle), another type, another number of elements, another order, an input without a
/// batch extent.
Result<std::vector<size_t>> bindFields(const Dataset& dataset, std::span<const InputSpec> inputs);

/// A CRC-32 over up to 64 samples, spread evenly over the data, of these fields: other data of the same size
/// hardly has the same.
Result<uint32_t> sampleChecksum(const Dataset& dataset, std::span<const size_t> fields);

/// Reads every value of an integer field and refuses the first outside [0, limit) that is not `ignored`,
/// naming file, sample, value and limit.
Status checkRange(const Dataset& dataset, size_t field, int64_t limit, int64_t ignored = 0);

}  // namespace gpuc
