//===- StableSort.h - Sorting that leaves equals as they stand ---------------===//
#pragma once

#include "llvm/ADT/STLExtras.h"

#include <utility>
#include <vector>

namespace gpuc {

/// Sorts `values`; of those of which none is less than the other, the one that stood first stays so.
/// std::stable_sort of libstdc++ 12 calls a function that C++17 deprecates, and each build says so.
template <typename Range, typename Less> void stableSort(Range &values, Less less) {
  using Value = std::decay_t<decltype(*std::begin(values))>;
  std::vector<std::pair<Value, size_t>> placed;
  for (Value &value : values)
    placed.emplace_back(std::move(value), placed.size());
  llvm::sort(placed, [&](const auto &a, const auto &b) {
    return less(a.first, b.first) || (a.second < b.second && !less(b.first, a.first));
  });
  llvm::transform(placed, std::begin(values), [](auto &entry) -> Value && { return std::move(entry.first); });
}

} // namespace gpuc
