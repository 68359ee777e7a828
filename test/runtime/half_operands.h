// Arrays of 16-bit floats between guard pages, and what they hold as f32.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/data_type.h"
#include "runtime/base/half.h"
#include "test/runtime/matmul_reference.h"

namespace gpuc {

inline float widened(uint16_t bits, DataType type) {
  return type == DataType::f16 ? halfToFloat(bits) : bfloat16ToFloat(bits);
}
inline uint16_t rounded(float value, DataType type) {
  return type == DataType::f16 ? floatToHalf(value) : floatToBfloat16(value);
}

/// `count` numbers from [-1, 1), rounded.
inline std::vector<uint16_t> randomHalves(int64_t count, DataType type, uint64_t seed) {
  std::mt19937_64 random(seed);
  const Uniform<float> uniform;
  std::vector<uint16_t> halves(static_cast<size_t>(count));
  for (uint16_t& half : halves) half = rounded(uniform(random), type);
  return halves;
}

inline std::vector<float> widened(const std::vector<uint16_t>& halves, DataType type) {
  std::vector<float> floats;
  for (uint16_t half : halves) floats.push_back(widened(half, type));
  return floats;
}

/// The first element of `halves` that is not `floats` rounded, in words; empty if there is none.
inline std::string firstDifference(const uint16_t* halves, const std::vector<float>& floats, DataType type) {
  for (size_t i = 0; i < floats.size(); ++i) {
    const float found = widened(halves[i], type), expected = widened(rounded(floats[i], type), type);
    if (std::isnan(expected) ? std::isnan(found) : std::memcmp(&found, &expected, sizeof found) == 0)
      continue;
    char text[200];
    std::snprintf(text, sizeof text, "element %zu is %.9g, expected %.9g, which is %.9g rounded", i,
                  double(found), double(expected), double(floats[i]));
    return text;
  }
  return "";
}

/// Calls compute(begin, end) on ranges that cover [0, tiles), in random order in `threads` threads.
template <typename Compute>
void computeInThreads(int64_t tiles, int threads, uint64_t seed, Compute compute) {
  std::mt19937_64 random(seed);
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (int64_t begin = 0; begin < tiles;) {
    const int64_t end = std::min<int64_t>(tiles, begin + 1 + static_cast<int64_t>(random() % 3));
    ranges.emplace_back(begin, end);
    begin = end;
  }
  std::shuffle(ranges.begin(), ranges.end(), random);
  auto runShare = [&](size_t first) {
    for (size_t i = first; i < ranges.size(); i += static_cast<size_t>(threads))
      compute(ranges[i].first, ranges[i].second);
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(runShare, i);
  runShare(0);
  for (std::thread& other : others) other.join();
}

}  // namespace gpuc
