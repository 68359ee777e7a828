//===- LargestBatch.h - How many rows fit ------------------------------------===//
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <optional>

namespace gpuc {

/// Rows of a batch are tried in multiples of this: what units of products and vectors divide.
inline constexpr int64_t kBatchStep = 8;

/// Rows, a multiple of kBatchStep or fewer than that, whose plan takes at most `bytes`, while that of one
/// step more was tried and takes more. Where bytes grow with the rows they are the most. 0 if not even one
/// row fits. `peakOf` makes a plan of so many rows as far as its arena's bytes; none if there is no such
/// plan, as of tensors that are too large. Where that takes long, `from` are rows that will nearly do.
int64_t findLargestBatch(int64_t bytes, llvm::function_ref<std::optional<int64_t>(int64_t rows)> peakOf,
                         int64_t from = 0);

} // namespace gpuc
