#include "runtime/data/permutation.h"

#include "runtime/base/philox.h"

namespace gpuc {
namespace {

constexpr uint32_t kDomain = 0x73687566;  // "shuf": keeps these keys apart from every other use of the seed

uint64_t ceilSqrt(uint64_t n) {
  uint64_t low = 1, high = uint64_t{1} << 32;
  while (low < high) {
    uint64_t middle = (low + high) / 2;
    if (middle * middle >= n)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t addModulo(uint64_t value, uint64_t addend, uint64_t modulus) {
  value += addend;
  return value >= modulus ? value - modulus : value;
}

}  // namespace

Permutation::Permutation(int64_t size, uint64_t seed, uint64_t epoch)
    : size_(static_cast<uint64_t>(size)), columns_(ceilSqrt(size_)), rounds_(size < 1024 ? kMostRounds : 12) {
  rows_ = (size_ + columns_ - 1) / columns_;
  auto randomBits = [&](uint32_t index) {
    return philox4x32({index, static_cast<uint32_t>(epoch), static_cast<uint32_t>(epoch >> 32), kDomain},
                      philoxKey(seed));
  };
  for (int round = 0; round < rounds_; round += 2) {
    PhiloxCounter bits = randomBits(static_cast<uint32_t>(round / 2));
    keys_[round] = bits[0] | uint64_t{bits[1]} << 32;
    keys_[round + 1] = bits[2] | uint64_t{bits[3]} << 32;
  }
  if (size > 1) coin_ = randomBits(kMostRounds / 2)[0] & 1;
}

int64_t Permutation::operator()(int64_t position) const {
  uint64_t x = static_cast<uint64_t>(position);
  do x = permutePair(x);
  while (x >= size_);
  if (x < 2) x ^= coin_;
  return static_cast<int64_t>(x);
}

uint64_t Permutation::permutePair(uint64_t x) const {
  uint64_t left = x / columns_, right = x % columns_;
  for (int round = 0; round < rounds_; round += 2) {
    left = addModulo(left, uniformBelow(mix(right + keys_[round]), rows_), rows_);
    right = addModulo(right, uniformBelow(mix(left + keys_[round + 1]), columns_), columns_);
  }
  return left * columns_ + right;
}

}  // namespace gpuc
