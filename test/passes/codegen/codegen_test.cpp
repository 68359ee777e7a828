// Kernels as machine code, against plain loops in f64: pointwise ops, broadcasts, reductions, tiles.
#include "test/passes/codegen/kernel_harness.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace gpuc;
using namespace gpuc::test;

namespace {

std::string tensor(std::vector<int64_t> shape, const std::string &element) {
  std::string text = "tensor<";
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text + element + ">";
}

std::vector<float> randomFloats(size_t count, unsigned seed = 1, float low = -2, float high = 2) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(count);
  for (float &value : values)
    value = distribution(generator);
  return values;
}

constexpr double kUnit = std::numeric_limits<float>::epsilon();

class CodegenTest : public testing::TestWithParam<int> {
protected:
  HostTarget target() { return testTargets()[GetParam()]; }
};
INSTANTIATE_TEST_SUITE_P(Targets, CodegenTest, testing::Range(0, int(testTargets().size())),
                         [](auto info) { return info.param == 0 ? "v3" : "v4"; });

TEST_P(CodegenTest, AddsABiasToEachRowAndClampsAtZero) {
  for (int64_t columns : {1, 3, 10, 15, 16, 17, 33, 128}) {
    int64_t rows = 7;
    std::string matrix = tensor({rows, columns}, "f32"), bias = tensor({columns}, "f32");
    TestKernel kernel({matrix, bias}, {matrix},
                      "%0 = gpuc.broadcast %a1 dims [1] : " + bias + " to " + matrix +
                          "\n%1 = gpuc.add %a0, %0 : " + matrix + "\n%2 = gpuc.relu %1 : " + matrix +
                          "\ngpuc.yield %2 : " + matrix,
                      target());
    auto x = randomFloats(rows * columns), b = randomFloats(columns, 2);
    auto y = kernel.run({Buffer::of(x), Buffer::of(b)})[0].values<float>();
    for (int64_t i = 0; i < rows * columns; ++i)
      EXPECT_EQ(y[i], std::max(x[i] + b[i % columns], 0.0f)) << columns << " columns, element " << i;
  }
}

TEST_P(CodegenTest, SumsRowsColumnsAndAll) {
  for (auto [rows, columns] :
       {std::pair<int64_t, int64_t>{5, 1}, {4, 3}, {3, 16}, {17, 33}, {64, 130}, {301, 1027}})
    for (std::string dims : {"[0]", "[1]", "[0, 1]"}) {
      std::string matrix = tensor({rows, columns}, "f32");
      std::string result = dims == "[0]"   ? tensor({columns}, "f32")
                           : dims == "[1]" ? tensor({rows}, "f32")
                                           : "tensor<f32>";
      TestKernel kernel({matrix}, {result},
                        "%0 = gpuc.sum %a0 dims " + dims + " : (" + matrix + ") -> " + result +
                            "\ngpuc.yield %0 : " + result,
                        target());
      auto x = randomFloats(rows * columns);
      auto y = kernel.run({Buffer::of(x)})[0].values<float>();
      std::vector<double> expected(y.size()), magnitude(y.size());
      for (int64_t i = 0; i < rows * columns; ++i) {
        int64_t at = dims == "[0]" ? i % columns : dims == "[1]" ? i / columns : 0;
        expected[at] += x[i];
        magnitude[at] += std::abs(x[i]);
      }
      for (size_t i = 0; i < y.size(); ++i)
        EXPECT_NEAR(y[i], expected[i], 64 * kUnit * magnitude[i])
            << rows << "x" << columns << " dims " << dims;
    }
}

} // namespace
