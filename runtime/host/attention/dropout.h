// Dropout's factors; included by score_kernels.cpp alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/attention/score_kernels.h"
#include "runtime/host/matmul/vector.h"

namespace gpuc {
namespace {

typedef uint64_t Words __attribute__((vector_size(kVectorBytes)));
constexpr int kWordLanes = kVectorBytes / 8;

/// Philox4x32-10 [Salmon et al. 2011] of kWordLanes counters (group, step), as runtime/base/philox.h has it
/// for one: the four words of each, one after another.
inline void philox(const DropoutBits& bits, uint64_t first_group, uint32_t* words) {
  constexpr uint64_t kLow = 0xffffffff, kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint64_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  Words group;
  for (int lane = 0; lane < kWordLanes; ++lane) group[lane] = first_group + static_cast<uint64_t>(lane);
  Words c0 = group & kLow, c1 = group >> 32, c2 = Words{} + (bits.step & kLow),
        c3 = Words{} + (bits.step >> 32);
  uint64_t key0 = (bits.seed ^ (bits.seed >> 32)) & kLow, key1 = bits.id & kLow;
  for (int round = 0; round < 10; ++round) {
    const Words product0 = (c0 & kLow) * kMultiplier0, product1 = (c2 & kLow) * kMultiplier1;
    c0 = (product1 >> 32) ^ c1 ^ key0;
    c1 = product1 & kLow;
    c2 = (product0 >> 32) ^ c3 ^ key1;
    c3 = product0 & kLow;
    key0 = (key0 + kWeyl0) & kLow;
    key1 = (key1 + kWeyl1) & kLow;
  }
  const Words even = c0 | (c1 << 32), odd = c2 | (c3 << 32);
  for (int lane = 0; lane < kWordLanes; ++lane) {
    const uint64_t pair[2] = {even[lane], odd[lane]};
    __builtin_memcpy(words + 4 * lane, pair, sizeof pair);
  }
}

template <typename T>
void drop(const DropoutBits& bits, int64_t queries, int64_t keys, T factor, T* factors, int64_t stride) {
  constexpr int64_t kWords = 4 * kWordLanes;  // of one call
  for (int64_t query = 0; query < queries; ++query, factors += stride) {
    const uint64_t element = bits.first + static_cast<uint64_t>(query) * bits.between;
    int64_t key = -static_cast<int64_t>(element % 4);  // of the words' first
    for (uint64_t group = element / 4; key < keys; group += kWordLanes, key += kWords) {
      uint32_t words[kWords];
      philox(bits, group, words);
      const int64_t begin = key < 0 ? -key : 0, end = keys - key < kWords ? keys - key : kWords;
      T* to = factors + key;
      for (int64_t i = begin; i < end; ++i) to[i] = (words[i] >> 8) >= bits.threshold ? factor : T(0);
    }
  }
}

}  // namespace
}  // namespace gpuc
