// Cutting work into blocks whose sums stay in registers; included by patch_kernels.cpp alone (see
// runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/matmul/vector.h"

namespace gpuc {
namespace {

/// Vectors of sums that the registers hold beside their operands.
constexpr int kMostSums = kVectorBytes == 64 ? 24 : 12;

/// A sum is added up here, before what follows is loaded: else the compiler loads all operands of a step at
/// once, for which there are no registers, and has sums in memory.
template <typename V>
inline __attribute__((always_inline)) void addUpHere(V& sum) {
  asm volatile("" : "+v"(sum) : : "memory");
}

/// Where block `index` begins when `total` is cut into `blocks` of nearly equal size.
inline int64_t evenBegin(int64_t total, int64_t blocks, int64_t index) { return total * index / blocks; }

}  // namespace
}  // namespace gpuc
