#include "tools/cache_probe.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "runtime/host/arena.h"

namespace gpuc {
namespace {

using Clock = std::chrono::steady_clock;

/// A word of each cache line, eight at a time so that none waits for the last.
uint64_t readLines(const uint64_t* words, size_t bytes) {
  constexpr size_t kWords = 64 / sizeof(uint64_t), kLines = 8;
  uint64_t sums[kLines] = {};
  for (size_t word = 0; word < bytes / sizeof(uint64_t); word += kWords * kLines)
    for (size_t line = 0; line < kLines; ++line) sums[line] += words[word + kWords * line];
  uint64_t sum = 0;
  for (const uint64_t part : sums) sum += part;
  return sum;
}

/// The least of several times but the first, which fetches the bytes: others who use the machine make some of
/// them longer, and none shorter.
double nanosecondsPerByte(const uint64_t* words, size_t bytes) {
  constexpr int kLeastTimes = 4, kMostTimes = 50;
  constexpr double kMostNanoseconds = 2e7;
  volatile uint64_t sum = readLines(words, bytes);
  double least = 0, all = 0;
  for (int i = 0; i < kLeastTimes || (i < kMostTimes && all < kMostNanoseconds); ++i) {
    const auto begin = Clock::now();
    sum = readLines(words, bytes);
    const double time = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    least = i == 0 ? time : std::min(least, time);
    all += time;
  }
  (void)sum;
  return least / static_cast<double>(bytes);
}

}  // namespace

CacheSizes probeCaches(CacheSizes said) {
  std::vector<CacheSample> samples;
  // Twice a core's own would lie there by half.
  for (int64_t bytes = 4 * said.near; bytes <= said.far; bytes *= 2) {
    Result<Arena> arena = Arena::map(static_cast<uint64_t>(bytes), /*guarded=*/false);
    if (!arena.ok()) return said;
    std::fill_n(arena->data(), bytes, std::byte{1});
    samples.push_back({bytes, nanosecondsPerByte(reinterpret_cast<const uint64_t*>(arena->data()),
                                                 static_cast<size_t>(bytes))});
    if (sharedCacheBytes(samples) < bytes) break;
  }
  if (sharedCacheBytes(samples) * 2 <= said.far) said.far = std::max(sharedCacheBytes(samples), said.near);
  return said;
}

}  // namespace gpuc
