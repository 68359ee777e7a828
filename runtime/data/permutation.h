// The order of the samples in an epoch: a permutation of [0, size) that is computed, not stored.
#pragma once

#include <array>
#include <cstdint>

namespace gpuc {

/// A pseudo-random bijection of [0, size) chosen by (seed, epoch). operator() gives the sample that stands
/// at a position, in constant time and memory, from any thread: no array of shuffled indices exists, and
/// resuming in the middle of an epoch costs nothing.
///
/// How (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002): with
///   columns = ceil(sqrt(size)), rows = ceil(size / columns)
/// a number x < rows * columns is the pair (x / columns, x mod columns) = (left, right). A generalised
/// Feistel network permutes the pairs, in 24 rounds if size < 1024 (few cells mix slowly), else in 12:
///   even rounds: left  = (left  + F(key[round], right)) mod rows
///   odd rounds:  right = (right + F(key[round], left))  mod columns
/// A result >= size is sent through the network again until it falls inside ("cycle walking"); since
/// rows * columns - size < columns, this happens about once in sqrt(size) draws, and it ends because the
/// start itself lies inside and on the same cycle.
/// Rounds over odd x odd pairs are even permutations only, so a last coin evens the odds: if it shows 1, the
/// samples 0 and 1 change places.
///   key[2i], key[2i+1] = words (0,1), (2,3), each pair low word first, of
///     Philox4x32-10(counter = {i, epoch low, epoch high, 0x73687566 "shuf"}, key = seed low, seed high)
///   coin = lowest bit of word 0 at i = 12
///   F(key, half) = high 64 bits of mix(half + key) * modulus  (which lies in [0, modulus))
///   mix(z): z ^= z >> 30; z *= 0xbf58476d1ce4e5b9; z ^= z >> 27; z *= 0x94d049bb133111eb; z ^= z >> 31
/// mix is SplitMix64's finaliser (Steele, Lea, Flood, OOPSLA 2014). The test suite checks uniformity over
/// all permutations of small sizes and over positions and neighbours of larger ones.
class Permutation {
 public:
  /// size >= 1.
  Permutation(int64_t size, uint64_t seed, uint64_t epoch);

  /// The sample at `position`, both in [0, size).
  int64_t operator()(int64_t position) const;

 private:
  static constexpr int kMostRounds = 24;
  uint64_t permutePair(uint64_t x) const;

  uint64_t size_;
  uint64_t rows_;
  uint64_t columns_;
  uint64_t coin_ = 0;  // 0 or 1
  int rounds_;
  std::array<uint64_t, kMostRounds> keys_;
};

}  // namespace gpuc
