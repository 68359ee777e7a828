//===- drawn_batch.h - Batches that are drawn, and how far results are apart -*-===//
#pragma once

#include "runtime/gpuc.h"

#include <cmath>
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace gpuc::test {

using Bytes = std::vector<std::byte>;

/// One batch for `program`: pixels and labels within their ranges, other numbers in [-1, 1).
class Batch {
public:
  Batch(const ProgramInfo &program, uint64_t seed) : random_(seed) {
    for (const InputInfo &input : program.inputs) {
      Bytes &bytes = bytes_.emplace_back(static_cast<size_t>(input.spec.sizeBytes()));
      fill(bytes, input);
      views.emplace_back(bytes.data(), input.spec.type, input.spec.shape);
    }
  }
  std::vector<HostTensorView> views;

private:
  void fill(Bytes &bytes, const InputInfo &input) {
    switch (input.spec.type) {
    case DataType::ui8:
      return fill<uint8_t>(bytes, [&] { return random_() % 256; });
    case DataType::i32:
      return fill<int32_t>(bytes, [&] { return random_() % static_cast<uint64_t>(input.range); });
    case DataType::f32:
      return fill<float>(bytes, [&] { return std::uniform_real_distribution<float>(-1, 1)(random_); });
    case DataType::f64:
      return fill<double>(bytes, [&] { return std::uniform_real_distribution<double>(-1, 1)(random_); });
    default:
      FAIL() << "an input of type " << nameOf(input.spec.type);
    }
  }
  template <typename T, typename Draw> static void fill(Bytes &bytes, Draw draw) {
    for (size_t i = 0; i < bytes.size(); i += sizeof(T)) {
      T value = static_cast<T>(draw());
      std::memcpy(&bytes[i], &value, sizeof(T));
    }
  }

  std::mt19937_64 random_;
  std::deque<Bytes> bytes_; // which views point into
};

/// The L2 norm of the difference, relative to that of `expected`.
template <typename T> double relativeDifference(const Bytes &found, const Bytes &expected) {
  double difference = 0, magnitude = 0;
  for (size_t i = 0; i < expected.size(); i += sizeof(T)) {
    T a, b;
    std::memcpy(&a, &found[i], sizeof(T));
    std::memcpy(&b, &expected[i], sizeof(T));
    difference += (double(a) - double(b)) * (double(a) - double(b));
    magnitude += double(b) * double(b);
  }
  return difference == 0 ? 0 : std::sqrt(difference / magnitude);
}

} // namespace gpuc::test
