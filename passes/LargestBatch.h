//===- LargestBatch.h - How many rows fit ------------------------------------===//
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <optional>

namespace gpuc {

/// Rows of a batch are tried in multiples of this: what units of products and vectors divide.
inline constexpr int64_t kBatchStep = 8;

/// The most rows, a multiple of kBatchStep or fewer than that, whose plan takes at most `bytes`: one step
/// more was tried and takes more. 0 if not even one row fits. `peakOf` makes a plan of so many rows as far as
/// its arena's bytes; none if there is no such plan, as of tensors that are too large.
int64_t findLargestBatch(int64_t bytes, llvm::function_ref<std::optional<int64_t>(int64_t rows)> peakOf);

} // namespace gpuc
