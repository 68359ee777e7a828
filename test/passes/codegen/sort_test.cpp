// sort and top_k against std::sort by value and index, on extents around powers of two and vectors, with many
// ties.
#include "test/passes/codegen/kernel_harness.h"

#include "runtime/base/half.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace gpuc;
using namespace gpuc::test;

namespace {

/// Rows along dimension 1 of three.
struct Problem {
  int64_t outer, extent, inner, kept;
  bool largestFirst;
  bool isSort() const { return kept == 0; }
  int64_t results() const { return isSort() ? extent : kept; }
  int64_t at(int64_t o, int64_t position, int64_t i, int64_t length) const {
    return (o * length + position) * inner + i;
  }
};

std::string tensorOf(const Problem &problem, int64_t extent, const std::string &element) {
  return "tensor<" + std::to_string(problem.outer) + "x" + std::to_string(extent) + "x" +
         std::to_string(problem.inner) + "x" + element + ">";
}

TestKernel kernelOf(const Problem &problem, const std::string &element, const HostTarget &target) {
  std::string in = tensorOf(problem, problem.extent, element),
              values = tensorOf(problem, problem.results(), element),
              indices = tensorOf(problem, problem.results(), "i64"), types = values + ", " + indices;
  std::string op = problem.isSort()
                       ? std::string("sort %a0 dim 1") + (problem.largestFirst ? " descending" : "")
                       : "top_k %a0 k " + std::to_string(problem.kept) + " dim 1" +
                             (problem.largestFirst ? "" : " smallest");
  return TestKernel(
      {in}, {values, indices},
      "%0, %1 = gpuc." + op + " : (" + in + ") -> (" + types + ")\ngpuc.yield %0, %1 : " + types, target);
}

/// `keys` order what `data`, the elements' bits, stand for.
template <typename T>
void check(const Problem &problem, const std::string &element, const std::vector<T> &data,
           const std::vector<double> &keys, const HostTarget &target) {
  TestKernel kernel = kernelOf(problem, element, target);
  std::vector<Buffer> found = kernel.run({Buffer::of(data)}),
                      scattered = kernel.run({Buffer::of(data)}, true);
  auto isLess = [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
  std::vector<T> values(problem.outer * problem.results() * problem.inner);
  std::vector<int64_t> indices(values.size());
  for (int64_t o = 0; o < problem.outer; ++o)
    for (int64_t i = 0; i < problem.inner; ++i) {
      std::vector<int64_t> order(problem.extent);
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        double x = keys[problem.at(o, a, i, problem.extent)], y = keys[problem.at(o, b, i, problem.extent)];
        if (isLess(x, y) || isLess(y, x))
          return problem.largestFirst ? isLess(y, x) : isLess(x, y);
        return a < b;
      });
      for (int64_t n = 0; n < problem.results(); ++n) {
        int64_t place = problem.at(o, n, i, problem.results());
        indices[place] = order[n];
        values[place] = data[problem.at(o, order[n], i, problem.extent)];
      }
    }
  std::string what = element + " " + std::to_string(problem.outer) + "x" + std::to_string(problem.extent) +
                     "x" + std::to_string(problem.inner) + " k " + std::to_string(problem.kept) +
                     (problem.largestFirst ? " largest" : " smallest");
  EXPECT_EQ(found[1].values<int64_t>(), indices) << what;
  EXPECT_TRUE(found[0].values<T>() == values) << what;
  EXPECT_EQ(scattered[1].values<int64_t>(), indices) << what << ", tiles in another order";
}

class SortTest : public testing::TestWithParam<int> {
protected:
  HostTarget target() { return testTargets()[GetParam()]; }

  /// From -range to range, with ties where the range is small.
  std::vector<double> draw(int64_t count, int range) {
    std::vector<double> numbers(count);
    for (double &number : numbers)
      number = static_cast<int>(random_() % (2 * range + 1)) - range;
    return numbers;
  }
  template <typename T> static std::vector<T> as(const std::vector<double> &numbers) {
    return std::vector<T>(numbers.begin(), numbers.end());
  }

  std::mt19937 random_{7};
};
INSTANTIATE_TEST_SUITE_P(Targets, SortTest, testing::Range(0, int(testTargets().size())),
                         [](auto info) { return info.param == 0 ? "v3" : "v4"; });

TEST_P(SortTest, AnyExtentAlongAnyDimension) {
  for (int64_t extent : {1, 2, 5, 16, 17, 33, 100})
    for (int64_t inner : {1, 19})
      for (bool largest : {false, true}) {
        auto numbers = draw(2 * extent * inner, 9);
        check({2, extent, inner, 0, largest}, "i32", as<int32_t>(numbers), numbers, target());
      }
}

TEST_P(SortTest, AnyNumberOfAnyExtent) {
  for (auto [extent, kept] :
       {std::pair<int64_t, int64_t>{1, 1}, {2, 1}, {9, 1}, {9, 3}, {17, 8}, {33, 32}, {33, 33}})
    for (int64_t inner : {1, 5})
      for (bool largest : {false, true}) {
        auto numbers = draw(3 * extent * inner, 6);
        check({3, extent, inner, kept, largest}, "f32", as<float>(numbers), numbers, target());
      }
}

TEST_P(SortTest, EveryElementType) {
  for (int64_t kept : {0, 5})
    for (bool largest : {false, true}) {
      Problem problem{2, 37, 1, kept, largest};
      auto numbers = draw(2 * 37, 120);
      check(problem, "f64", numbers, numbers, target());
      check(problem, "i64", as<int64_t>(numbers), numbers, target());
      check(problem, "i8", as<int8_t>(numbers), numbers, target());
      std::vector<double> shifted = numbers; // above 127: sorted as unsigned
      for (double &number : shifted)
        number += 120;
      check(problem, "ui8", as<uint8_t>(shifted), shifted, target());
      std::vector<uint16_t> half, brain;
      for (double number : numbers) {
        half.push_back(floatToHalf(static_cast<float>(number)));
        brain.push_back(floatToBfloat16(static_cast<float>(number)));
      }
      check(problem, "f16", half, numbers, target());
      check(problem, "bf16", brain, numbers, target());
    }
}

/// NaN above infinity, equal to NaN of either sign; zeros equal. All keep their bits.
TEST_P(SortTest, NumbersOutOfTheOrdinary) {
  const float special[] = {NAN, 1, -0.0F, 0, -INFINITY, -NAN, 1, INFINITY, 0.0F, -0.0F, NAN, -1, 3e-45F};
  std::vector<float> x;
  for (int i = 0; i < 3 * 41; ++i)
    x.push_back(special[random_() % 13]);
  std::vector<double> keys(x.begin(), x.end());
  std::vector<uint32_t> bits(x.size());
  std::memcpy(bits.data(), x.data(), x.size() * sizeof(float));
  for (bool largest : {false, true})
    for (int64_t kept : {0, 6, 30}) {
      check({1, 41, 3, kept, largest}, "f32", bits, keys, target());
      check({3, 41, 1, kept, largest}, "f32", bits, keys, target());
    }
}

TEST_P(SortTest, LongRows) {
  for (int64_t kept : {0, 100}) {
    auto numbers = draw(2 * 5000, 700);
    check({2, 5000, 1, kept, true}, "f32", as<float>(numbers), numbers, target());
  }
}

TEST_P(SortTest, RowsInOrderAndBackwards) {
  std::vector<double> rising(64), falling(64);
  std::iota(rising.begin(), rising.end(), 0);
  std::reverse_copy(rising.begin(), rising.end(), falling.begin());
  for (const auto &numbers : {rising, falling, std::vector<double>(64, 5)})
    for (int64_t kept : {0, 9})
      check({1, 64, 1, kept, true}, "f64", numbers, numbers, target());
}

TEST_P(SortTest, SortsInPlace) {
  Problem problem{3, 21, 5, 0, false};
  TestKernel kernel = kernelOf(problem, "i64", target());
  auto numbers = draw(3 * 21 * 5, 4);
  std::vector<Buffer> arguments{Buffer::of(as<int64_t>(numbers))};
  std::vector<Buffer> apart = kernel.run(arguments);
  for (unsigned result : {0, 1}) {
    ASSERT_TRUE(canUpdateInPlace(kernel.text().block(), 0, result));
    std::vector<Buffer> copy{Buffer::of(as<int64_t>(numbers))};
    std::vector<Buffer> found = kernel.runInPlace(copy, 0, result);
    for (unsigned i : {0, 1})
      EXPECT_EQ(found[i].values<int64_t>(), apart[i].values<int64_t>())
          << result << " in place, result " << i;
  }
}

TEST(CheckKernel, TakesASortWithBothResultsAndNothingAfter) {
  std::string in = "tensor<4x9xf32>", index = "tensor<4x9xi64>";
  std::string sort = "%0, %1 = gpuc.sort %a0 dim 1 : (" + in + ") -> (" + in + ", " + index + ")\n";
  EXPECT_TRUE(succeeded(
      checkKernel(KernelText({in}, {in, index}, sort + "gpuc.yield %0, %1 : " + in + ", " + index).block())));
  EXPECT_TRUE(failed(checkKernel(KernelText({in}, {in}, sort + "gpuc.yield %0 : " + in).block())));
  EXPECT_TRUE(failed(
      checkKernel(KernelText({in}, {index, in}, sort + "gpuc.yield %1, %0 : " + index + ", " + in).block())));
  EXPECT_TRUE(failed(
      checkKernel(KernelText({in}, {in, index},
                             sort + "%2 = gpuc.exp %0 : " + in + "\ngpuc.yield %2, %1 : " + in + ", " + index)
                      .block())));
}

} // namespace
