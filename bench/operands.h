// What the benchmarks of kernels have in common: a clock, and operands as a plan's buffers are.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <random>
#include <vector>

#include "runtime/base/data_type.h"
#include "runtime/base/half.h"

namespace gpuc {

/// Of this thread's time on the processor, so that other processes disturb it less.
inline double processorUs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

/// Microseconds of one run in this thread: the least of nine rounds of 1 ms or more.
template <typename Run>
double leastUs(Run run) {
  run();
  double least = 1e30;
  for (int round = 0; round < 9; ++round) {
    int runs = 0;
    double elapsed = 0;
    for (const double begin = processorUs(); elapsed < 1000; ++runs, elapsed = processorUs() - begin) run();
    least = std::min(least, elapsed / runs);
  }
  return least;
}

/// The same of a kernel.
template <typename Kernel, typename Operands>
double leastUs(const Kernel& kernel, const Operands& operands) {
  return leastUs([&] {
    for (int phase = 0; phase < kernel.phaseCount(); ++phase)
      kernel.run(phase, operands, 0, kernel.tiles(phase));
  });
}

/// Buffers one behind the other, each aligned to 64 bytes and full of random numbers in [-1, 1]; in huge
/// pages, as an arena is.
class RandomBuffers {
 public:
  RandomBuffers(DataType type, int64_t count, int64_t bytes) : stride_((bytes + 63) / 64 * 64) {
    storage_.reserve(static_cast<size_t>(count * stride_ + 64));
    askForHugePages();
    storage_.resize(storage_.capacity());
    begin_ = storage_.data() + 63 - (reinterpret_cast<uintptr_t>(storage_.data()) + 63) % 64;
    std::mt19937 random(1);
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (int64_t i = 0; i < count * stride_ / sizeOf(type); ++i) place(type, i, uniform(random));
  }

  std::byte* operator[](int64_t index) const { return begin_ + index * stride_; }

 private:
  /// Before the pages are touched. Where there are none, time is all that is lost.
  void askForHugePages() {
    constexpr uintptr_t kPage = 4096;
    const uintptr_t begin = (reinterpret_cast<uintptr_t>(storage_.data()) + kPage - 1) / kPage * kPage;
    const uintptr_t end =
        (reinterpret_cast<uintptr_t>(storage_.data()) + storage_.capacity()) / kPage * kPage;
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }

  void place(DataType type, int64_t i, double value) {
    const float narrow = static_cast<float>(value);
    if (type == DataType::f64)
      reinterpret_cast<double*>(begin_)[i] = value;
    else if (type == DataType::f32)
      reinterpret_cast<float*>(begin_)[i] = narrow;
    else
      reinterpret_cast<uint16_t*>(begin_)[i] =
          type == DataType::f16 ? floatToHalf(narrow) : floatToBfloat16(narrow);
  }

  int64_t stride_;
  std::vector<std::byte> storage_;
  std::byte* begin_;
};

}  // namespace gpuc
