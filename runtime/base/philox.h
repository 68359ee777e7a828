// Philox4x32-10, the counter-based random generator of Salmon, Moraes, Dror and Shaw, "Parallel Random
// Numbers: As Easy as 1, 2, 3" (SC 2011). Ten rounds of multiply and xor turn a counter (128 bits) and a
// key (64 bits) into 128 random bits. Nothing is kept between calls, so the n-th number of any stream can
// be had at once, by any thread, in any order. Bits equal those of Random123's philox4x32_R(10, …).
#pragma once

#include <array>
#include <cstdint>

namespace gpuc {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

/// The 128 random bits at `counter` in the stream named by `key`.
constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;  // golden ratio, sqrt(3) - 1
  for (int round = 0; round < 10; ++round) {
    uint64_t product0 = kMultiplier0 * counter[0];
    uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

/// A 64-bit seed as a key, low word first.
constexpr PhiloxKey philoxKey(uint64_t seed) {
  return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
}

/// Uniform in [0, 1): the top 24 bits, each value a multiple of 2^-24 and exact in f32.
constexpr float uniformFloat(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

/// Uniform in [0, bound): the high half of a 64 x 64 bit product (Lemire, "Fast Random Integer Generation in
/// an Interval", 2019, without its rejection: the bias is below bound / 2^64).
constexpr uint64_t uniformBelow(uint64_t bits, uint64_t bound) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * bound) >> 64);
}

}  // namespace gpuc
