// Attention's kernels for GPUs of 16 bits, run on the CPU, against plain loops in f64: widths, lengths, masks
// and layouts that tensor cores are given.
#include "test/passes/codegen/attention_kernel.h"
#include "test/passes/codegen/cuda_harness.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace gpuc;
using namespace gpuc::test;

namespace {

using Case = AttentionKernelCase;
using Part = Case::Part;

uint16_t narrow(float value, bool isF16) {
  if (isF16)
    return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

double widen(uint16_t bits, bool isF16) {
  return isF16 ? static_cast<double>(std::bit_cast<_Float16>(bits))
               : std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// [batch, heads, rows, width] as numbers and as bits, dense or as a projection leaves it.
struct Heads {
  int64_t heads, rows, width;
  std::vector<double> numbers;

  Heads(int64_t batch, int64_t heads, int64_t rows, int64_t width)
      : heads(heads), rows(rows), width(width), numbers(static_cast<size_t>(batch * heads * rows * width)) {}

  size_t at(int64_t b, int64_t h, int64_t row, int64_t i) const {
    return static_cast<size_t>(((b * heads + h) * rows + row) * width + i);
  }
  double &operator()(int64_t b, int64_t h, int64_t row, int64_t i) { return numbers[at(b, h, row, i)]; }
};

/// What the three kernels are given, and what they should give.
class Reference {
public:
  Reference(const Case &c, unsigned seed)
      : query(c.batch, c.heads, c.queries, c.width), key(c.batch, c.groups, c.keys, c.width),
        value(c.batch, c.groups, c.keys, c.valueWidth), cotangent(c.batch, c.heads, c.queries, c.valueWidth),
        result(cotangent), log(c.batch, c.heads, c.queries, 1), queryCotangent(query), keyCotangent(key),
        valueCotangent(value), mask(static_cast<size_t>(c.queries * c.keys)), c_(c), random_(seed) {
    for (Heads *heads : {&query, &key, &value, &cotangent})
      for (double &number : heads->numbers)
        number = widen(narrow(static_cast<float>(2 * uniform_(random_) - 1), isF16()), isF16());
    for (uint8_t &flag : mask)
      flag = uniform_(random_) < 0.7;
    for (int64_t j = 0; j < c.keys; ++j)
      mask[static_cast<size_t>(j)] = 0; // the first query sees nothing
    for (Heads *heads : {&queryCotangent, &keyCotangent, &valueCotangent})
      std::fill(heads->numbers.begin(), heads->numbers.end(), 0);
    for (int64_t b = 0; b < c.batch; ++b)
      for (int64_t h = 0; h < c.heads; ++h)
        for (int64_t row = 0; row < c.queries; ++row)
          computeRow(b, h, row);
  }

  Heads query, key, value, cotangent, result, log, queryCotangent, keyCotangent, valueCotangent;
  std::vector<uint8_t> mask; ///< [queries, keys]

private:
  bool isF16() const { return c_.element == "f16"; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(c_.width)); }
  bool isSeen(int64_t row, int64_t j) const {
    return !(c_.attributes == "causal" && j > row) &&
           (c_.mask.empty() || mask[static_cast<size_t>(row * c_.keys + j)]);
  }

  void computeRow(int64_t b, int64_t h, int64_t row) {
    const int64_t group = h / (c_.heads / c_.groups);
    std::vector<double> p(static_cast<size_t>(c_.keys));
    double sum = 0;
    for (int64_t j = 0; j < c_.keys; ++j) {
      double score = 0;
      for (int64_t i = 0; i < c_.width; ++i)
        score += query(b, h, row, i) * key(b, group, j, i);
      sum += p[static_cast<size_t>(j)] = isSeen(row, j) ? std::exp(score * scale()) : 0;
    }
    log(b, h, row, 0) = sum > 0 ? std::log(sum) : -INFINITY;
    double delta = 0;
    for (int64_t i = 0; i < c_.valueWidth; ++i) {
      double y = 0;
      for (int64_t j = 0; j < c_.keys; ++j)
        y += sum > 0 ? p[static_cast<size_t>(j)] / sum * value(b, group, j, i) : 0;
      result(b, h, row, i) = y;
      delta += widen(narrow(static_cast<float>(y), isF16()), isF16()) * cotangent(b, h, row, i);
    }
    for (int64_t j = 0; j < c_.keys && sum > 0; ++j)
      addPair(b, h, group, row, j, p[static_cast<size_t>(j)] / sum, delta);
  }

  void addPair(int64_t b, int64_t h, int64_t group, int64_t row, int64_t j, double p, double delta) {
    double slope = -delta;
    for (int64_t i = 0; i < c_.valueWidth; ++i) {
      slope += cotangent(b, h, row, i) * value(b, group, j, i);
      valueCotangent(b, group, j, i) += p * cotangent(b, h, row, i);
    }
    for (int64_t i = 0; i < c_.width; ++i) {
      queryCotangent(b, h, row, i) += scale() * p * slope * key(b, group, j, i);
      keyCotangent(b, group, j, i) += scale() * p * slope * query(b, h, row, i);
    }
  }

  const Case &c_;
  std::mt19937 random_;
  std::uniform_real_distribution<double> uniform_{0, 1};
};

Buffer bufferOf(const Heads &heads, bool isF16) {
  std::vector<uint16_t> bits;
  for (double number : heads.numbers)
    bits.push_back(narrow(static_cast<float>(number), isF16));
  return Buffer::of(bits);
}

std::vector<Case> cases() {
  std::vector<Case> cases;
  auto add = [&](const std::string &name, const Case &shape) {
    for (auto [prefix, part] :
         {std::pair{"forward", Part::Forward}, {"query", Part::Query}, {"key_value", Part::KeyValue}}) {
      cases.push_back(shape);
      cases.back().name = std::string(prefix) + "_" + name + "_" + shape.element;
      cases.back().part = part;
    }
  };
  const Part any = Part::Forward;
  for (int64_t width : {16, 32, 64, 80, 128})
    add("width_" + std::to_string(width),
        {"", any, width == 80 ? "f16" : "bf16", 1, 2, 2, 130, 130, width, width, "causal"});
  add("whole_tiles", {"", any, "f16", 1, 1, 1, 128, 192, 64, 64});
  add("grouped", {"", any, "bf16", 2, 4, 2, 70, 100, 32, 64, "causal"});
  add("more_keys", {"", any, "f16", 1, 2, 1, 33, 200, 64, 16});
  add("masked", {"", any, "bf16", 1, 2, 1, 77, 101, 64, 64, "", "tensor<77x101xi1>"});
  add("masked_wide", {"", any, "bf16", 1, 1, 1, 77, 101, 96, 128, "causal", "tensor<77x101xi1>"});
  add("odd_widths", {"", any, "bf16", 1, 2, 2, 77, 101, 20, 63, "causal"});
  add("half_padded", {"", any, "f16", 1, 2, 2, 77, 101, 24, 40, "causal"});
  add("odd_wide", {"", any, "bf16", 1, 1, 1, 66, 70, 100, 97, "causal"});
  add("short", {"", any, "bf16", 2, 2, 1, 1, 3, 64, 64});
  return cases;
}

class CudaAttentionNumbers : public testing::TestWithParam<Case> {
protected:
  static void expectClose(const Heads &expected, const std::vector<uint16_t> &bits, bool isF16,
                          const char *what) {
    // Of rounded probabilities and slopes, and of the result: relative to what is largest.
    double largest = 0;
    for (double number : expected.numbers)
      largest = std::max(largest, std::fabs(number));
    const double tolerance = (isF16 ? 0x1p-10 : 0x1p-7) * largest;
    for (size_t i = 0; i < bits.size(); ++i)
      ASSERT_NEAR(widen(bits[i], isF16), expected.numbers[i], tolerance) << what << " " << i;
  }
};

INSTANTIATE_TEST_SUITE_P(Cuda, CudaAttentionNumbers, testing::ValuesIn(cases()),
                         [](auto info) { return info.param.name; });

TEST_P(CudaAttentionNumbers, AreThoseOfPlainLoops) {
  const Case &c = GetParam();
  const bool isF16 = c.element == "f16";
  Reference reference(c, 7);
  EmulatedKernel kernel(c.arguments(), c.results(), c.body());
  std::vector<Buffer> arguments = {bufferOf(reference.query, isF16), bufferOf(reference.key, isF16),
                                   bufferOf(reference.value, isF16)};
  std::vector<float> logs(reference.log.numbers.begin(), reference.log.numbers.end());
  if (c.part != Part::Forward) {
    arguments.push_back(bufferOf(reference.cotangent, isF16));
    arguments.push_back(bufferOf(reference.result, isF16));
    arguments.push_back(Buffer::of(logs));
  }
  if (!c.mask.empty())
    arguments.push_back(Buffer::of(reference.mask));
  std::vector<Buffer> results = kernel.run(arguments);
  if (c.part == Part::Query)
    return expectClose(reference.queryCotangent, results[0].values<uint16_t>(), isF16, "query's cotangent");
  if (c.part == Part::KeyValue) {
    expectClose(reference.keyCotangent, results[0].values<uint16_t>(), isF16, "key's cotangent");
    expectClose(reference.valueCotangent, results[1].values<uint16_t>(), isF16, "value's cotangent");
    return;
  }
  expectClose(reference.result, results[0].values<uint16_t>(), isF16, "result");
  const std::vector<float> found = results[1].values<float>();
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isinf(logs[i]))
      ASSERT_EQ(found[i], logs[i]);
    else
      ASSERT_NEAR(found[i], logs[i], 1e-5);
  }
}

} // namespace
