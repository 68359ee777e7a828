// Each form of kernel and each kind of access, on sizes around the vector's: results are exact, so they are
// compared as numbers.
#include "test/passes/codegen/kernel_harness.h"

#include "runtime/base/half.h"
#include "runtime/base/philox.h"

#include "llvm/Object/ELFObjectFile.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
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

/// One op on %a0, %a1, … as a kernel.
TestKernel single(const std::vector<std::string> &arguments, const std::string &result, const std::string &op,
                  const std::string &type, const HostTarget &target) {
  return TestKernel(arguments, {result}, "%0 = gpuc." + op + " : " + type + "\ngpuc.yield %0 : " + result,
                    target);
}

std::string functionType(const std::vector<std::string> &arguments, const std::string &result) {
  std::string text = "(";
  for (size_t i = 0; i < arguments.size(); ++i)
    text += (i ? ", " : "") + arguments[i];
  return text + ") -> " + result;
}

/// 0, 1, 2, … times 7 modulo 31, less 15: small integers, exact in every type, with ties.
template <typename T> std::vector<T> pattern(size_t count) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<T>(static_cast<int>(i * 7 % 31) - 15);
  return values;
}

class FormsTest : public testing::TestWithParam<int> {
protected:
  HostTarget target() { return testTargets()[GetParam()]; }
};
INSTANTIATE_TEST_SUITE_P(Targets, FormsTest, testing::Range(0, int(testTargets().size())),
                         [](auto info) { return info.param == 0 ? "v3" : "v4"; });

const int64_t kSizes[] = {1, 3, 15, 16, 17, 33};

TEST_P(FormsTest, FoldsOverAnyDimension) {
  for (int64_t n : kSizes)
    for (int dim = 0; dim < 3; ++dim)
      for (std::string op : {"sum", "prod", "reduce_max", "reduce_min"}) {
        std::vector<int64_t> shape{2, 2, 2}, kept;
        shape[dim] = n;
        for (int d = 0; d < 3; ++d)
          if (d != dim)
            kept.push_back(shape[d]);
        std::string in = tensor(shape, "i32"), out = tensor(kept, "i32");
        auto kernel = single({in}, out, op + " %a0 dims [" + std::to_string(dim) + "]",
                             functionType({in}, out), target());
        auto x = pattern<int32_t>(4 * n);
        auto y = kernel.run({Buffer::of(x)})[0].values<int32_t>();
        int64_t inner = dim == 2 ? 1 : dim == 1 ? 2 : 4;
        for (size_t at = 0; at < y.size(); ++at) {
          uint32_t expected = op == "prod" ? 1 : op == "sum" ? 0 : x[at / inner * inner * n + at % inner];
          for (int64_t i = 0; i < n; ++i) {
            int32_t v = x[at / inner * inner * n + i * inner + at % inner];
            expected = op == "sum"          ? expected + v
                       : op == "prod"       ? expected * v
                       : op == "reduce_max" ? std::max<int32_t>(expected, v)
                                            : std::min<int32_t>(expected, v);
          }
          EXPECT_EQ(y[at], static_cast<int32_t>(expected)) << op << " dim " << dim << " of " << in;
        }
      }
}

TEST_P(FormsTest, NanWinsInMaximaAndArgmax) {
  for (int64_t n : kSizes) {
    std::string in = tensor({2, n}, "f32"), out = tensor({2}, "f32"), index = tensor({2}, "i64");
    std::vector<float> x = pattern<float>(2 * n);
    x[n + n / 2] = NAN;
    if (n > 3)
      x[n + n / 2 + 1] = NAN;
    auto largest = single({in}, out, "reduce_max %a0 dims [1]", functionType({in}, out), target())
                       .run({Buffer::of(x)})[0]
                       .values<float>();
    auto where = single({in}, index, "argmax %a0 dim 1", functionType({in}, index), target())
                     .run({Buffer::of(x)})[0]
                     .values<int64_t>();
    auto first = std::max_element(x.begin(), x.begin() + n); // the first of equals
    EXPECT_EQ(largest[0], *first);
    EXPECT_EQ(where[0], first - x.begin());
    EXPECT_TRUE(std::isnan(largest[1]));
    EXPECT_EQ(where[1], n / 2);
  }
}

TEST_P(FormsTest, ArgmaxAcrossRowsKeepsTheFirst) {
  for (int64_t n : kSizes) {
    std::string in = tensor({4, n}, "f64"), index = tensor({n}, "i64");
    std::vector<double> x(4 * n, -INFINITY);
    x[1 * n + n - 1] = x[3 * n + n - 1] = 5;
    auto where = single({in}, index, "argmax %a0 dim 0", functionType({in}, index), target())
                     .run({Buffer::of(x)})[0]
                     .values<int64_t>();
    for (int64_t i = 0; i < n; ++i)
      EXPECT_EQ(where[i], i == n - 1 ? 1 : 0) << n << " columns";
  }
}

TEST_P(FormsTest, RunningSums) {
  for (int64_t n : kSizes)
    for (int dim : {0, 1}) {
      std::string type = tensor({n, 18 - 2 * dim}, "f32");
      int64_t columns = 18 - 2 * dim;
      auto x = pattern<float>(n * columns);
      auto kernel = single({type}, type, "cumsum %a0 dim " + std::to_string(dim), type, target());
      auto y = kernel.run({Buffer::of(x)})[0].values<float>();
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          float before = dim == 0 ? (i ? y[(i - 1) * columns + j] : 0) : (j ? y[i * columns + j - 1] : 0);
          EXPECT_EQ(y[i * columns + j], before + x[i * columns + j]);
        }
    }
}

TEST_P(FormsTest, GathersAndScatters) {
  std::vector<int32_t> indices{2, 0, 9, 2, -1, 1}; // 9 and -1 are out of range
  for (int64_t n : kSizes) {
    std::string table = tensor({3, n}, "f32"), index = tensor({2, 3}, "i32"), rows = tensor({2, 3, n}, "f32");
    auto x = pattern<float>(3 * n), u = pattern<float>(6 * n);
    auto gathered =
        single({table, index}, rows, "gather %a0, %a1 dim 0", functionType({table, index}, rows), target())
            .run({Buffer::of(x), Buffer::of(indices)})[0]
            .values<float>();
    auto scattered = single({table, index, rows}, table, "scatter_add %a0, %a1, %a2 dim 0",
                            functionType({table, index, rows}, table), target())
                         .run({Buffer::of(x), Buffer::of(indices), Buffer::of(u)})[0]
                         .values<float>();
    std::vector<float> sums = x;
    for (int64_t i = 0; i < 6; ++i)
      for (int64_t j = 0; j < n; ++j) {
        bool inside = indices[i] >= 0 && indices[i] < 3;
        EXPECT_EQ(gathered[i * n + j], inside ? x[indices[i] * n + j] : 0);
        if (inside)
          sums[indices[i] * n + j] += u[i * n + j];
      }
    EXPECT_EQ(scattered, sums);
  }
}

TEST_P(FormsTest, GathersAndScattersAlongTheLastDimension) {
  std::vector<int64_t> indices{4, 4, -3, 0};
  std::string table = tensor({2, 5}, "f64"), index = tensor({4}, "i64"), picked = tensor({2, 4}, "f64");
  auto x = pattern<double>(10), u = pattern<double>(8);
  auto gathered =
      single({table, index}, picked, "gather %a0, %a1 dim 1", functionType({table, index}, picked), target())
          .run({Buffer::of(x), Buffer::of(indices)})[0]
          .values<double>();
  auto scattered = single({table, index, picked}, table, "scatter_add %a0, %a1, %a2 dim 1",
                          functionType({table, index, picked}, table), target())
                       .run({Buffer::of(x), Buffer::of(indices), Buffer::of(u)})[0]
                       .values<double>();
  EXPECT_EQ(gathered, (std::vector<double>{x[4], x[4], 0, x[0], x[9], x[9], 0, x[5]}));
  std::vector<double> sums = x;
  sums[4] += u[0], sums[4] += u[1], sums[0] += u[3], sums[9] += u[4], sums[9] += u[5], sums[5] += u[7];
  EXPECT_EQ(scattered, sums);
}

TEST_P(FormsTest, TransposesSlicesAndReverses) {
  for (int64_t n : kSizes) {
    std::string in = tensor({n, 5}, "f32"), turned = tensor({5, n}, "f32"), part = tensor({2, n}, "f32");
    TestKernel kernel({in}, {part},
                      "%0 = gpuc.transpose %a0 permutation [1, 0] : (" + in + ") -> " + turned + "\n" +
                          "%1 = gpuc.slice %0 starts [1, 0] limits [5, " + std::to_string(n) +
                          "] strides [3, 1] : (" + turned + ") -> " + part +
                          "\n%2 = gpuc.reverse %1 dims [1] : " + part + "\ngpuc.yield %2 : " + part,
                      target());
    auto x = pattern<float>(5 * n);
    auto y = kernel.run({Buffer::of(x)})[0].values<float>();
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < n; ++j)
        EXPECT_EQ(y[i * n + j], x[(n - 1 - j) * 5 + 1 + 3 * i]);
  }
}

/// Two pictures' rows of channels: less their sum, and the sums. Read where they lie side by side, or
/// transposed from planes of pixels.
template <typename T>
std::vector<std::vector<T>> centeredRows(const std::string &element, int64_t pixels, int64_t channels,
                                         bool isTransposed, const std::vector<T> &x,
                                         const HostTarget &target) {
  std::string rows = tensor({2, pixels, channels}, element), sums = tensor({2, pixels}, element),
              in = isTransposed ? tensor({2, channels, pixels}, element) : rows;
  std::string taken =
      isTransposed ? "%t = gpuc.transpose %a0 permutation [0, 2, 1] : (" + in + ") -> " + rows + "\n" : "";
  taken += std::string("%0 = gpuc.neg ") + (isTransposed ? "%t" : "%a0") + " : " + rows + "\n";
  TestKernel kernel({in}, {rows, sums},
                    taken + "%1 = gpuc.sum %0 dims [2] : (" + rows + ") -> " + sums +
                        "\n%2 = gpuc.broadcast %1 dims [0, 1] : " + sums + " to " + rows +
                        "\n%3 = gpuc.sub %0, %2 : " + rows + "\ngpuc.yield %3, %1 : " + rows + ", " + sums,
                    target);
  auto results = kernel.run({Buffer::walled(x)});
  return {results[0].template values<T>(), results[1].template values<T>()};
}

/// As planes of pixels become rows of channels.
template <typename T>
void checkSquares(const std::string &element, int64_t pixels, int64_t channels, const HostTarget &target) {
  std::string in = tensor({2, channels, pixels}, element), out = tensor({2, pixels, channels}, element),
              bias = tensor({channels}, element);
  TestKernel kernel({in, bias}, {out, out},
                    "%0 = gpuc.transpose %a0 permutation [0, 2, 1] : (" + in + ") -> " + out +
                        "\n%1 = gpuc.broadcast %a1 dims [2] : " + bias + " to " + out +
                        "\n%2 = gpuc.add %0, %1 : " + out + "\ngpuc.yield %0, %2 : " + out + ", " + out,
                    target);
  auto x = pattern<T>(2 * channels * pixels), b = pattern<T>(channels);
  auto results = kernel.run({Buffer::walled(x), Buffer::of(b)});
  auto y = results[0].template values<T>(), z = results[1].template values<T>();
  for (int64_t i = 0; i < 2 * pixels; ++i)
    for (int64_t j = 0; j < channels; ++j) {
      const T expected = x[(i / pixels * channels + j) * pixels + i % pixels];
      ASSERT_EQ(y[i * channels + j], expected) << element << ": " << i << ", " << j;
      ASSERT_EQ(z[i * channels + j], expected + b[j]) << element << ": " << i << ", " << j;
    }
  EXPECT_EQ(centeredRows(element, pixels, channels, /*isTransposed=*/true, x, target),
            centeredRows(element, pixels, channels, /*isTransposed=*/false, y, target));
}

// As many rows as there are lanes at once, where they fall into such squares; else row by row.
TEST_P(FormsTest, TransposesBySquares) {
  for (int64_t pixels : {16, 32, 49, 1024})
    for (int64_t channels : {8, 16, 20, 48, 96}) {
      checkSquares<float>("f32", pixels, channels, target());
      checkSquares<double>("f64", pixels, channels, target());
    }
}

/// Every `stride`-th column from `first` on of two rows of `columns`, the last one among them.
template <typename T>
void checkStrides(const std::string &element, int64_t stride, int64_t first, int64_t taken,
                  const HostTarget &target) {
  const int64_t columns = first + (taken - 1) * stride + 1;
  std::string in = tensor({2, columns}, element), part = tensor({2, taken}, element);
  TestKernel kernel({in}, {part},
                    "%0 = gpuc.slice %a0 starts [0, " + std::to_string(first) + "] limits [2, " +
                        std::to_string(columns) + "] strides [1, " + std::to_string(stride) + "] : (" + in +
                        ") -> " + part + "\ngpuc.yield %0 : " + part,
                    target);
  auto x = pattern<T>(2 * columns);
  std::vector<T> y = kernel.run({Buffer::walled(x)})[0].template values<T>();
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < taken; ++j)
      EXPECT_EQ(y[i * taken + j], x[i * columns + first + j * stride])
          << element << ", every " << stride << " from " << first << ": " << i << ", " << j;
}

// Lanes a few elements apart come from vectors that are loaded whole; nothing behind the last is touched.
TEST_P(FormsTest, TakesEveryFewElements) {
  for (int64_t stride : {2, 3, 4, 5})
    for (int64_t first : {0, 1})
      for (int64_t taken : {1, 8, 15, 16, 17, 48, 61}) {
        checkStrides<float>("f32", stride, first, taken, target());
        checkStrides<double>("f64", stride, first, taken, target());
        checkStrides<int8_t>("i8", stride, first, taken, target());
        checkStrides<int64_t>("i64", stride, first, taken, target());
      }
}

TEST_P(FormsTest, PadsAndConcatenates) {
  for (int64_t n : kSizes) {
    std::string in = tensor({2, n}, "f32"), padded = tensor({4, 2 * n + 2}, "f32"),
                joined = tensor({2, n + 2}, "f32");
    auto x = pattern<float>(2 * n), z = pattern<float>(4);
    auto y = single({in}, padded, "pad %a0 low [1, 1] high [1, 2] interior [0, 1] {value = 9.0 : f64}",
                    functionType({in}, padded), target())
                 .run({Buffer::of(x)})[0]
                 .values<float>();
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 2 * n + 2; ++j) {
        bool inside = i >= 1 && i <= 2 && j >= 1 && j <= 2 * n - 1 && (j - 1) % 2 == 0;
        EXPECT_EQ(y[i * (2 * n + 2) + j], inside ? x[(i - 1) * n + (j - 1) / 2] : 9) << i << ", " << j;
      }
    std::string two = tensor({2, 2}, "f32");
    auto both = single({in, two}, joined, "concat %a0, %a1 dim 1", functionType({in, two}, joined), target())
                    .run({Buffer::of(x), Buffer::of(z)})[0]
                    .values<float>();
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < n + 2; ++j)
        EXPECT_EQ(both[i * (n + 2) + j], j < n ? x[i * n + j] : z[i * 2 + j - n]);
  }
}

TEST_P(FormsTest, DynamicWindowsAreClamped) {
  for (int64_t n : {3, 17, 33})
    for (int64_t start : {-5, 1, 100}) {
      std::string in = tensor({4, n}, "f32"), window = tensor({2, n - 1}, "f32"), at = tensor({2}, "i64");
      auto x = pattern<float>(4 * n), u = pattern<float>(2 * (n - 1));
      std::vector<int64_t> starts{start, start};
      int64_t row = std::clamp<int64_t>(start, 0, 2), column = std::clamp<int64_t>(start, 0, 1);
      auto y = single({in, at}, window, "dynamic_slice %a0, %a1 sizes [2, " + std::to_string(n - 1) + "]",
                      functionType({in, at}, window), target())
                   .run({Buffer::of(x), Buffer::of(starts)})[0]
                   .values<float>();
      auto updated = single({in, window, at}, in, "dynamic_update_slice %a0, %a1, %a2",
                            functionType({in, window, at}, in), target())
                         .run({Buffer::of(x), Buffer::of(u), Buffer::of(starts)})[0]
                         .values<float>();
      for (int64_t i = 0; i < 2; ++i)
        for (int64_t j = 0; j < n - 1; ++j) {
          EXPECT_EQ(y[i * (n - 1) + j], x[(row + i) * n + column + j]);
          x[(row + i) * n + column + j] = u[i * (n - 1) + j];
        }
      EXPECT_EQ(updated, x);
    }
}

TEST_P(FormsTest, RandomBitsArePhilox) {
  for (int64_t n : {1, 5, 37}) {
    std::string type = tensor({3, n}, "i32");
    TestKernel kernel({"tensor<i64>", "tensor<i64>"}, {type},
                      "%0 = gpuc.random_bits seed %a0 step %a1 id 7 : (tensor<i64>, tensor<i64>) -> " + type +
                          "\ngpuc.yield %0 : " + type,
                      target());
    int64_t seed = 0x123456789abcdef, step = 0x500000003;
    auto y = kernel.run({Buffer::of(std::vector{seed}), Buffer::of(std::vector{step})})[0].values<uint32_t>();
    for (uint32_t i = 0; i < y.size(); ++i)
      EXPECT_EQ(y[i], philox4x32({i / 4, 0, uint32_t(step), uint32_t(step >> 32)},
                                 {uint32_t(seed) ^ uint32_t(seed >> 32), 7})[i % 4]);
  }
}

// In rows that begin at a multiple of four elements, where lanes share what is computed for four, and in
// others.
TEST_P(FormsTest, RandomBitsOfRows) {
  const int64_t seed = 0x123456789abcdef, step = 0x500000003;
  auto check = [&](int64_t n, int64_t first, int64_t stride) {
    SCOPED_TRACE(std::to_string(n) + " columns from " + std::to_string(first) + " by " +
                 std::to_string(stride));
    const int64_t width = (n - first + stride - 1) / stride;
    const std::string all = tensor({3, n}, "i32"), part = tensor({3, width}, "i32"),
                      row = tensor({width}, "i32");
    TestKernel kernel({"tensor<i64>", "tensor<i64>", row}, {part},
                      "%0 = gpuc.random_bits seed %a0 step %a1 id 7 : (tensor<i64>, tensor<i64>) -> " + all +
                          "\n%1 = gpuc.slice %0 starts [0, " + std::to_string(first) + "] limits [3, " +
                          std::to_string(n) + "] strides [1, " + std::to_string(stride) + "] : (" + all +
                          ") -> " + part + "\n%2 = gpuc.broadcast %a2 dims [1] : " + row + " to " + part +
                          "\n%3 = gpuc.add %1, %2 : " + part + "\ngpuc.yield %3 : " + part,
                      target());
    std::vector<int32_t> added(static_cast<size_t>(width));
    std::iota(added.begin(), added.end(), 100);
    auto y = kernel.run({Buffer::of(std::vector{seed}), Buffer::of(std::vector{step}), Buffer::of(added)})[0]
                 .values<uint32_t>();
    for (int64_t i = 0; i < 3 * width; ++i) {
      const auto element = uint32_t(i / width * n + first + i % width * stride);
      ASSERT_EQ(y[size_t(i)], philox4x32({element / 4, 0, uint32_t(step), uint32_t(step >> 32)},
                                         {uint32_t(seed) ^ uint32_t(seed >> 32), 7})[element % 4] +
                                  uint32_t(100 + i % width));
    }
  };
  for (int64_t n : {36, 37, 64, 70})
    for (int64_t first : {0, 1, 4})
      for (int64_t stride : {1, 2})
        check(n, first, stride);
}

// Two dropouts of one shape must not draw one mask, though all else in their kernels is the same.
TEST_P(FormsTest, KernelsThatDifferInAnIdAloneDrawOtherBits) {
  const std::string type = "tensor<32xi32>";
  auto drawing = [&](const std::string &id) {
    return std::make_unique<KernelText>(
        std::vector<std::string>{"tensor<i64>", "tensor<i64>"}, std::vector{type},
        "%0 = gpuc.random_bits seed %a0 step %a1 id " + id + " : (tensor<i64>, tensor<i64>) -> " + type +
            "\ngpuc.yield %0 : " + type);
  };
  std::unique_ptr<KernelText> texts[] = {drawing("7"), drawing("8"), drawing("7")};
  std::vector<KernelSource> kernels;
  for (auto &text : texts)
    kernels.push_back({"kernel", &text->block(), text->block().front().getLoc()});
  auto code = compileHostKernels(kernels, target());
  ASSERT_TRUE(succeeded(code));
  EXPECT_EQ(code->symbols[0], code->symbols[2]) << "equal kernels share their code";

  LoadedObject loaded(code->object);
  int64_t seed = 5, step = 6;
  auto draw = [&](size_t kernel) {
    std::vector<uint32_t> bits(32);
    void *operands[] = {&seed, &step, bits.data()};
    loaded.find(code->symbols[kernel])(operands, 0,
                                       scheduleHostKernel(texts[kernel]->block(), target()).tiles);
    return bits;
  };
  EXPECT_EQ(draw(0)[0], philox4x32({0, 0, 6, 0}, {5, 7})[0]);
  EXPECT_EQ(draw(1)[0], philox4x32({0, 0, 6, 0}, {5, 8})[0]);
}

// Initial weights of layers: one code, scaled by its own number each.
TEST_P(FormsTest, KernelsThatDifferInAScaleAloneShareTheirCode) {
  const std::string type = "tensor<32xf32>", bits = "tensor<32xi32>";
  auto scaled = [&](const std::string &scale) {
    return std::make_unique<KernelText>(
        std::vector<std::string>{"tensor<i64>", "tensor<i64>"}, std::vector{type},
        "%0 = gpuc.random_bits seed %a0 step %a1 id 7 : (tensor<i64>, tensor<i64>) -> " + bits +
            "\n%1 = gpuc.cast %0 : " + bits + " to " + type + "\n%2 = gpuc.constant " + scale + " : " + type +
            "\n%3 = gpuc.mul %1, %2 : " + type + "\ngpuc.yield %3 : " + type);
  };
  std::unique_ptr<KernelText> texts[] = {scaled("0.5"), scaled("0.1")};
  auto sourceOf = [](KernelText &text) {
    return KernelSource{"kernel", &text.block(), text.block().front().getLoc()};
  };
  auto code = compileHostKernels({sourceOf(*texts[0]), sourceOf(*texts[1])}, target());
  auto first = compileHostKernels({sourceOf(*texts[0])}, target());
  ASSERT_TRUE(succeeded(code) && succeeded(first));
  EXPECT_LT(code->object.size(), first->object.size() + 1000) << "the second is a few instructions";

  LoadedObject loaded(code->object);
  int64_t seed = 5, step = 6;
  auto draw = [&](size_t kernel) {
    std::vector<float> numbers(32);
    void *operands[] = {&seed, &step, numbers.data()};
    loaded.find(code->symbols[kernel])(operands, 0,
                                       scheduleHostKernel(texts[kernel]->block(), target()).tiles);
    return numbers;
  };
  auto drawn = static_cast<float>(static_cast<int32_t>(philox4x32({0, 0, 6, 0}, {5, 7})[0]));
  EXPECT_EQ(draw(0)[0], drawn * 0.5f);
  EXPECT_EQ(draw(1)[0], drawn * 0.1f);
}

// While a plan is made its kernels are compiled already, and some that it turns out not to have.
TEST_P(FormsTest, KernelsThatBeganEarlierHaveTheSameCode) {
  auto sumOf = [](int64_t width) {
    const std::string whole = tensor({3, width}, "f32"), row = tensor({3}, "f32");
    return std::make_unique<KernelText>(std::vector{whole}, std::vector{row},
                                        "%0 = gpuc.sum %a0 dims [1] : (" + whole + ") -> " + row +
                                            "\ngpuc.yield %0 : " + row);
  };
  std::unique_ptr<KernelText> texts[] = {sumOf(5), sumOf(70), sumOf(200)};
  auto sourceOf = [](KernelText &text) {
    return KernelSource{"kernel", &text.block(), text.block().front().getLoc()};
  };
  const std::vector<KernelSource> kernels = {sourceOf(*texts[0]), sourceOf(*texts[1])};
  auto expected = compileHostKernels(kernels, target());
  HostCompiler compiler(target(), {});
  compiler.begin(texts[2]->block()); // in vain
  compiler.begin(texts[1]->block());
  auto code = compiler.finish(kernels);
  ASSERT_TRUE(succeeded(expected) && succeeded(code));
  EXPECT_EQ(code->symbols, expected->symbols);
  EXPECT_EQ(code->object, expected->object);
}

// A loop that is straight code has as many instructions for LLVM's later passes as it has iterations.
TEST_P(FormsTest, LongSumsStayLoops) {
  auto sizeOf = [&](int64_t width) {
    const std::string whole = tensor({2, 3, width}, "f32"), row = tensor({3}, "f32");
    KernelText text({whole}, {row},
                    "%0 = gpuc.sum %a0 dims [0, 2] : (" + whole + ") -> " + row + "\ngpuc.yield %0 : " + row);
    CodegenOptions options;
    options.optLevel = 3;
    auto code =
        compileHostKernels({{"kernel", &text.block(), text.block().front().getLoc()}}, target(), options);
    return succeeded(code) ? code->object.size() : 0;
  };
  EXPECT_GT(sizeOf(64), 0u);
  EXPECT_LT(sizeOf(196 * 64), sizeOf(64) + 4000);
}

/// The kernels of an addition of a number to each channel of `images` pictures.
std::unique_ptr<KernelText> addToChannels(int64_t images, int64_t channels, int64_t pixels) {
  const std::string whole = tensor({images, channels, pixels}, "f32"), row = tensor({channels}, "f32");
  return std::make_unique<KernelText>(std::vector{whole, row}, std::vector{whole},
                                      "%0 = gpuc.broadcast %a1 dims [1] : " + row + " to " + whole +
                                          "\n%1 = gpuc.add %a0, %0 : " + whole +
                                          "\ngpuc.yield %1 : " + whole);
}

// The layers of a deep network: how many rows there are, how far apart, and, element by element, how long
// they are stands beside the code.
TEST_P(FormsTest, KernelsThatDifferInTheirRowsAloneShareTheirCode) {
  struct Shape {
    int64_t images, channels, pixels;
  };
  const Shape shapes[] = {{2, 6, 256}, {3, 5, 128}, {2, 64, 4096}};
  std::vector<std::unique_ptr<KernelText>> texts;
  std::vector<KernelSource> kernels;
  for (auto [images, channels, pixels] : shapes) {
    texts.push_back(addToChannels(images, channels, pixels));
    kernels.push_back({"kernel", &texts.back()->block(), texts.back()->block().front().getLoc()});
  }
  auto code = compileHostKernels(kernels, target());
  ASSERT_TRUE(succeeded(code));
  auto implementation = [&](size_t kernel) {
    // gpuc_HASH, or gpuc_HASH_NUMBER where numbers beside the code make it a kernel's
    return code->symbols[kernel].substr(0, code->symbols[kernel].find('_', strlen("gpuc_")));
  };
  EXPECT_EQ(implementation(0), implementation(1));
  EXPECT_EQ(implementation(0), implementation(2));

  LoadedObject loaded(code->object);
  for (size_t kernel = 0; kernel < kernels.size(); ++kernel) {
    auto [images, channels, pixels] = shapes[kernel];
    std::vector<float> x(images * channels * pixels), row(channels), y(x.size());
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(i % 1000);
    for (size_t i = 0; i < row.size(); ++i)
      row[i] = static_cast<float>(1000 * i);
    void *operands[] = {x.data(), row.data(), y.data()};
    loaded.find(code->symbols[kernel])(operands, 0,
                                       scheduleHostKernel(texts[kernel]->block(), target()).tiles);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(y[i], x[i] + row[i / pixels % channels]) << i << " of kernel " << kernel;
  }
}

TEST_P(FormsTest, CastsSaturateAndRoundOnce) {
  std::vector<double> x{0,     -0.9, 2.5,      -3.99,    255.5,
                        300,   -200, 3e9,      -3e9,     1e30,
                        -1e30, NAN,  INFINITY, 65519.99, 1 + 0x1p-11 + 0x1p-40};
  auto cast = [&](const std::string &to) {
    std::string in = tensor({int64_t(x.size())}, "f64"), out = tensor({int64_t(x.size())}, to);
    return single({in}, out, "cast %a0", in + " to " + out, target()).run({Buffer::of(x)})[0];
  };
  EXPECT_EQ(cast("i8").values<int8_t>(),
            (std::vector<int8_t>{0, 0, 2, -3, 127, 127, -128, 127, -128, 127, -128, 0, 127, 127, 1}));
  EXPECT_EQ(cast("ui8").values<uint8_t>(),
            (std::vector<uint8_t>{0, 0, 2, 0, 255, 255, 0, 255, 0, 255, 0, 0, 255, 255, 1}));
  EXPECT_EQ(cast("i32").values<int32_t>(),
            (std::vector<int32_t>{0, 0, 2, -3, 255, 300, -200, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 0,
                                  INT32_MAX, 65519, 1}));
  EXPECT_EQ(cast("i64").values<int64_t>(),
            (std::vector<int64_t>{0, 0, 2, -3, 255, 300, -200, 3000000000, -3000000000, INT64_MAX, INT64_MIN,
                                  0, INT64_MAX, 65519, 1}));
  EXPECT_EQ(cast("i1").values<uint8_t>(),
            (std::vector<uint8_t>{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
  auto half = cast("f16").values<uint16_t>();
  EXPECT_EQ(half[4], floatToHalf(255.5f));
  EXPECT_EQ(half[13], 0x7bff); // below the tie at 65520
  EXPECT_EQ(half[14], 0x3c01); // just above a tie: rounding twice would give 0x3c00
  auto brain = cast("bf16").values<uint16_t>();
  EXPECT_EQ(brain[2], floatToBfloat16(2.5f));
  EXPECT_EQ(brain[9], floatToBfloat16(1e30f));
}

TEST_P(FormsTest, ArithmeticInEveryType) {
  auto check = [&]<typename T>(T, const std::string &element) {
    for (int64_t n : kSizes) {
      std::string type = tensor({n}, element);
      TestKernel kernel({type, type}, {type},
                        "%0 = gpuc.mul %a0, %a1 : " + type + "\n%1 = gpuc.sub %0, %a1 : " + type +
                            "\n%2 = gpuc.max %1, %a0 : " + type + "\ngpuc.yield %2 : " + type,
                        target());
      auto x = pattern<T>(n), y = pattern<T>(n);
      std::reverse(y.begin(), y.end());
      auto z = kernel.run({Buffer::of(x), Buffer::of(y)})[0].template values<T>();
      for (int64_t i = 0; i < n; ++i)
        EXPECT_EQ(z[i], std::max(T(T(x[i] * y[i]) - y[i]), x[i])) << element << " " << i;
    }
  };
  check(float(), "f32"), check(double(), "f64"), check(int8_t(), "i8"), check(uint8_t(), "ui8");
  check(int32_t(), "i32"), check(int64_t(), "i64");
}

/// LLVM 22 made a 32-bit store of the one element that is left of a row of 17 16-bit ones.
TEST_P(FormsTest, NarrowingStoresKeepToTheirRow) {
  for (std::string element : {"bf16", "f16", "i8"})
    for (int64_t n : {1, 9, 17, 33}) {
      std::string wide = tensor({n}, "f32"), narrow = tensor({n}, element);
      auto kernel = single({wide}, narrow, "cast %a0", wide + " to " + narrow, target());
      kernel.run({Buffer::of(pattern<float>(n))}); // which looks behind the end
    }
}

TEST_P(FormsTest, IntegerDivisionNeverTraps) {
  std::vector<int32_t> a{7, -7, 7, INT32_MIN, 5, 0}, b{2, 2, -2, -1, 0, 0};
  std::string type = tensor({6}, "i32");
  TestKernel kernel({type, type}, {type, type},
                    "%0 = gpuc.div %a0, %a1 : " + type + "\n%1 = gpuc.rem %a0, %a1 : " + type +
                        "\ngpuc.yield %0, %1 : " + type + ", " + type,
                    target());
  auto results = kernel.run({Buffer::of(a), Buffer::of(b)});
  EXPECT_EQ(results[0].values<int32_t>(), (std::vector<int32_t>{3, -3, -3, INT32_MIN, 0, 0}));
  EXPECT_EQ(results[1].values<int32_t>(), (std::vector<int32_t>{1, -1, 1, 0, 0, 0}));
}

TEST_P(FormsTest, TilesMayRunInAnyOrder) {
  std::string matrix = tensor({513, 1025}, "f32"), row = tensor({1025}, "f32"), column = tensor({513}, "f32");
  auto x = pattern<float>(513 * 1025);
  for (float &value : x)
    value /= 3;
  TestKernel pointwise({matrix, row}, {matrix},
                       "%0 = gpuc.broadcast %a1 dims [1] : " + row + " to " + matrix +
                           "\n%1 = gpuc.tanh %a0 : " + matrix + "\n%2 = gpuc.mul %0, %1 : " + matrix +
                           "\ngpuc.yield %2 : " + matrix,
                       target());
  auto rows = single({matrix}, column, "sum %a0 dims [1]", functionType({matrix}, column), target());
  auto columns = single({matrix}, row, "sum %a0 dims [0]", functionType({matrix}, row), target());
  std::vector<float> weights(x.begin(), x.begin() + 1025);
  EXPECT_GT(pointwise.schedule().tiles, 1);
  EXPECT_GT(rows.schedule().tiles, 1);
  EXPECT_EQ(pointwise.run({Buffer::of(x), Buffer::of(weights)})[0].values<float>(),
            pointwise.run({Buffer::of(x), Buffer::of(weights)}, true)[0].values<float>());
  EXPECT_EQ(rows.run({Buffer::of(x)})[0].values<float>(), rows.run({Buffer::of(x)}, true)[0].values<float>());
  EXPECT_EQ(columns.run({Buffer::of(x)})[0].values<float>(),
            columns.run({Buffer::of(x)}, true)[0].values<float>());
}

TEST_P(FormsTest, UpdatesInPlaceWhereItSaysSo) {
  std::string type = tensor({7, 33}, "f32"), row = tensor({33}, "f32");
  TestKernel kernel({type, type, row}, {type},
                    "%0 = gpuc.broadcast %a2 dims [1] : " + row + " to " + type +
                        "\n%1 = gpuc.reverse %a1 dims [0] : " + type + "\n%2 = gpuc.add %a0, %1 : " + type +
                        "\n%3 = gpuc.add %2, %0 : " + type + "\ngpuc.yield %3 : " + type,
                    target());
  EXPECT_TRUE(canUpdateInPlace(kernel.text().block(), 0, 0));
  EXPECT_FALSE(canUpdateInPlace(kernel.text().block(), 1, 0)); // read at another index
  EXPECT_FALSE(canUpdateInPlace(kernel.text().block(), 2, 0)); // another shape
  std::vector<Buffer> arguments{Buffer::of(pattern<float>(231)), Buffer::of(pattern<float>(231)),
                                Buffer::of(pattern<float>(33))};
  auto apart = kernel.run(arguments)[0].values<float>();
  EXPECT_EQ(kernel.runInPlace(arguments, 0, 0)[0].values<float>(), apart);
}

TEST_P(FormsTest, ObjectsNeedNothingAndRepeat) {
  std::string type = tensor({100}, "f64"), half = tensor({100}, "bf16");
  std::string body = "%0 = gpuc.pow %a0, %a0 : " + type + "\n%1 = gpuc.rem %0, %a0 : " + type +
                     "\n%2 = gpuc.sin %1 : " + type + "\n%3 = gpuc.cast %2 : " + type + " to " + half +
                     "\ngpuc.yield %3 : " + half;
  TestKernel one({type}, {half}, body, target()), two({type}, {half}, body, target());
  EXPECT_EQ(one.object(), two.object());
  auto buffer = llvm::MemoryBufferRef(one.object(), "kernels");
  auto file = llvm::cantFail(llvm::object::ObjectFile::createELFObjectFile(buffer));
  size_t defined = 0;
  for (auto symbol :
       static_cast<llvm::object::ELFObjectFileBase *>(file.get())->getDynamicSymbolIterators()) {
    EXPECT_FALSE(llvm::cantFail(symbol.getFlags()) & llvm::object::SymbolRef::SF_Undefined)
        << llvm::cantFail(symbol.getName()).str();
    defined += llvm::cantFail(symbol.getName()).starts_with("gpuc_");
  }
  EXPECT_EQ(defined, 2u); // the code, and the entry that hands it the length
}

TEST(CheckKernel, RefusesWhatOneLoopNestCannotDo) {
  std::string matrix = tensor({4, 3}, "f32"), row = tensor({4}, "f32");
  std::string sum = "%0 = gpuc.sum %a0 dims [1] : (" + matrix + ") -> " + row + "\n";
  EXPECT_TRUE(succeeded(checkKernel(
      KernelText({matrix}, {row}, sum + "%1 = gpuc.exp %0 : " + row + "\ngpuc.yield %1 : " + row).block())));
  KernelText twoRoots({matrix}, {matrix, row},
                      sum + "%1 = gpuc.cumsum %a0 dim 1 : " + matrix + "\ngpuc.yield %1, %0 : " + matrix +
                          ", " + row);
  EXPECT_TRUE(failed(checkKernel(twoRoots.block())));
  KernelText twoShapes({matrix, row}, {matrix, row},
                       "%0 = gpuc.exp %a0 : " + matrix + "\n%1 = gpuc.exp %a1 : " + row +
                           "\ngpuc.yield %0, %1 : " + matrix + ", " + row);
  EXPECT_TRUE(failed(checkKernel(twoShapes.block())));
}

TEST(HostTarget, RefusesCpusWithoutFusedMultiplyAdd) {
  std::string error;
  EXPECT_TRUE(mlir::failed(HostTarget::parse("x86-64", &error)));
  EXPECT_NE(error.find("x86-64-v3 or newer"), std::string::npos) << error;
  EXPECT_TRUE(mlir::failed(HostTarget::parse("no-such-cpu", &error)));
  EXPECT_NE(error.find("unknown CPU 'no-such-cpu'"), std::string::npos) << error;
  EXPECT_EQ(HostTarget::parse("x86-64-v4")->vectorBytes, 64);
}

} // namespace
