// Errors of the transcendental functions in units in the last place, against the C library in 64-bit
// precision; and that the bits of an element do not depend on where in a vector it stands. GPUC_LONG_TESTS=1
// sweeps every f32.
#include "test/passes/codegen/kernel_harness.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <mutex>
#include <random>
#include <thread>

using namespace gpuc;
using namespace gpuc::test;

namespace {

struct Function {
  const char *op;
  long double (*reference)(long double);
  double (*sweepReference)(double);
  double low, high;              // where the error is measured
  double boundNarrow, boundWide; // in ULP
};

template <typename T> T sigmoid(T x) { return 1 / (1 + std::exp(-x)); }
template <typename T> T rsqrt(T x) { return 1 / std::sqrt(x); }
constexpr double kMost = std::numeric_limits<double>::infinity();

const Function kFunctions[] = {
    {"exp", std::exp, std::exp, -kMost, kMost, 1.0, 1.5},
    {"expm1", std::expm1, std::expm1, -kMost, kMost, 2.0, 2.0},
    {"sigmoid", sigmoid, sigmoid, -kMost, kMost, 2.5, 2.5},
    {"tanh", std::tanh, std::tanh, -kMost, kMost, 2.0, 2.0},
    {"log", std::log, std::log, 0, kMost, 1.0, 1.5},
    {"log1p", std::log1p, std::log1p, -1, kMost, 1.5, 2.0},
    {"erf", std::erf, std::erf, -kMost, kMost, 1.5, 2.0},
    {"sin", std::sin, std::sin, -0x1p30, 0x1p30, 0.51, 1.5},
    {"cos", std::cos, std::cos, -0x1p30, 0x1p30, 0.51, 1.5},
    {"tan", std::tan, std::tan, -0x1p30, 0x1p30, 0.51, 3.0},
    {"atan", std::atan, std::atan, -kMost, kMost, 1.5, 1.5},
    {"rsqrt", rsqrt, rsqrt, 0, kMost, 1.5, 1.5},
};

/// Distance of `value` from `exact` in units of the last place that T has at `exact`.
template <typename T> double ulps(T value, long double exact) {
  if (std::isnan(exact) || std::isnan(value))
    return std::isnan(exact) && std::isnan(value) ? 0 : kMost;
  T rounded = static_cast<T>(exact);
  if (std::isinf(rounded) || std::isinf(value))
    return rounded == value ? 0
           : std::abs(static_cast<double>(rounded)) == kMost &&
                   value == std::copysign(std::numeric_limits<T>::max(), value)
               ? 1
               : kMost;
  constexpr int digits = std::numeric_limits<T>::digits, least = std::numeric_limits<T>::min_exponent;
  int exponent = exact == 0 ? least : std::max(std::ilogb(exact) + 1, least);
  return static_cast<double>(std::abs(static_cast<long double>(value) - exact) /
                             std::ldexp(1.0L, exponent - digits));
}

template <typename T> using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

/// Numbers over the whole range of exponents, and the exceptions.
template <typename T> std::vector<T> sample(size_t count, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::vector<T> values{0,
                        T(-0.0),
                        T(INFINITY),
                        T(-INFINITY),
                        T(NAN),
                        std::numeric_limits<T>::denorm_min(),
                        -std::numeric_limits<T>::denorm_min(),
                        std::numeric_limits<T>::min(),
                        std::numeric_limits<T>::max(),
                        -std::numeric_limits<T>::max(),
                        1,
                        -1};
  std::uniform_real_distribution<T> near(-4, 4), far(-750, 750);
  while (values.size() < count) {
    values.push_back(std::bit_cast<T>(static_cast<Bits<T>>(generator())));
    values.push_back(near(generator));
    values.push_back(far(generator));
  }
  values.resize(count);
  return values;
}

template <typename T> std::string element() { return sizeof(T) == 4 ? "f32" : "f64"; }

template <typename T> TestKernel unary(const std::string &op, size_t count, const HostTarget &target) {
  std::string type = "tensor<" + std::to_string(count) + "x" + element<T>() + ">";
  return TestKernel({type}, {type}, "%0 = gpuc." + op + " %a0 : " + type + "\ngpuc.yield %0 : " + type,
                    target);
}

constexpr size_t kCount = 3 * 65536 + 13; // ends in a masked tail

template <typename T>
double worst(const Function &function, TestKernel &kernel, const std::vector<T> &x, T &where) {
  std::vector<T> y = kernel.run({Buffer::of(x)})[0].template values<T>();
  double most = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isfinite(x[i]) && (x[i] < function.low || x[i] > function.high))
      continue;
    double error = ulps(y[i], function.reference(x[i]));
    if (error > most)
      most = error, where = x[i];
  }
  return most;
}

template <typename T> void check(double Function::*bound) {
  HostTarget target = testTargets().back();
  for (const Function &function : kFunctions) {
    TestKernel kernel = unary<T>(function.op, kCount, target);
    T where = 0;
    double error = worst(function, kernel, sample<T>(kCount, 7), where);
    std::printf("%-8s %s  %.3f ULP at %.9g\n", function.op, element<T>().c_str(), error, double(where));
    EXPECT_LE(error, function.*bound) << function.op << " of " << where;
  }
}

TEST(Math, ErrorsInF32) { check<float>(&Function::boundNarrow); }
TEST(Math, ErrorsInF64) { check<double>(&Function::boundWide); }

/// The worst error over every f32 of one function, by as many threads as there are cores. The reference is
/// the C library's in f64: its errors of a few units in f64's last place are a billionth of one in f32's, and
/// it takes a tenth of the time of x87.
struct Sweep {
  static constexpr size_t kBlock = 1 << 20;
  static constexpr uint64_t kBlocks = (uint64_t(1) << 32) / kBlock;

  explicit Sweep(const Function &function)
      : function(function), kernel(unary<float>(function.op, kBlock, testTargets().back())) {}

  void run() {
    std::vector<std::thread> others;
    for (unsigned i = 1; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
      others.emplace_back([this] { takeBlocks(); });
    takeBlocks();
    for (std::thread &other : others)
      other.join();
  }

  void takeBlocks() {
    std::vector<float> x(kBlock);
    for (uint64_t block; (block = next++) < kBlocks;) {
      for (size_t i = 0; i < kBlock; ++i)
        x[i] = std::bit_cast<float>(static_cast<uint32_t>(block * kBlock + i));
      checkBlock(x);
    }
  }

  void checkBlock(const std::vector<float> &x) {
    std::vector<float> y = kernel.run({Buffer::of(x)})[0].values<float>();
    double worstHere = 0;
    float whereHere = 0;
    for (size_t i = 0; i < kBlock; ++i) {
      if (std::isfinite(x[i]) && (x[i] < function.low || x[i] > function.high))
        continue;
      double exact = function.sweepReference(x[i]);
      // Most results are the nearest f32, and so no worse than 0.5.
      double error = static_cast<float>(exact) == y[i] ? 0.5 : ulps(y[i], exact);
      if (error > worstHere)
        worstHere = error, whereHere = x[i];
    }
    std::lock_guard lock(mutex);
    visited += kBlock;
    if (worstHere > most)
      most = worstHere, where = whereHere;
  }

  const Function &function;
  TestKernel kernel;
  std::atomic<uint64_t> next = 0;
  std::mutex mutex;
  uint64_t visited = 0;
  double most = 0;
  float where = 0;
};

TEST(Math, ErrorsOfEveryF32) {
  if (!std::getenv("GPUC_LONG_TESTS"))
    GTEST_SKIP() << "set GPUC_LONG_TESTS=1 to sweep all 2^32";
  for (const Function &function : kFunctions) {
    Sweep sweep(function);
    sweep.run();
    std::printf("%-8s f32, all  %.3f ULP at %.9g\n", function.op, sweep.most, double(sweep.where));
    std::fflush(stdout);
    EXPECT_EQ(sweep.visited, uint64_t(1) << 32);
    EXPECT_LE(sweep.most, function.boundNarrow) << function.op << " of " << sweep.where;
  }
}

/// The same numbers in whole vectors, in a masked tail of 5 and one by one as scalars give the same bits, on
/// each target.
template <typename T> void checkPlaces(const std::string &op) {
  std::vector<T> x = sample<T>(1000, 3);
  std::vector<T> expected;
  for (const HostTarget &target : testTargets())
    for (size_t length : {size_t(1000), size_t(5), size_t(1)}) {
      TestKernel kernel = unary<T>(op, length, target);
      for (size_t first = 0; first < x.size(); first += length) {
        auto y = kernel.run({Buffer::of(std::vector<T>(x.begin() + first, x.begin() + first + length))})[0]
                     .template values<T>();
        if (expected.size() < x.size())
          expected = y;
        for (size_t i = 0; i < length; ++i)
          if (!std::isnan(y[i]) || !std::isnan(expected[first + i]))
            ASSERT_EQ(std::bit_cast<Bits<T>>(y[i]), std::bit_cast<Bits<T>>(expected[first + i]))
                << op << " of " << x[first + i] << " in vectors of length " << length;
      }
    }
}

TEST(Math, BitsDoNotDependOnTheLane) {
  for (const Function &function : kFunctions) {
    checkPlaces<float>(function.op);
    checkPlaces<double>(function.op);
  }
}

/// Zeros with their signs, and denormals.
template <typename T> void checkTiny(const std::string &op) {
  T least = std::numeric_limits<T>::denorm_min();
  std::vector<T> x{0, T(-0.0)};
  for (int i = 0; i < 100; ++i)
    for (T sign : {1, -1})
      x.insert(x.end(), {sign * (2 * i + 1) * least, sign * (std::numeric_limits<T>::min() - i * least)});
  auto y = unary<T>(op, x.size(), testTargets().back()).run({Buffer::of(x)})[0].template values<T>();
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(std::bit_cast<Bits<T>>(y[i]), std::bit_cast<Bits<T>>(x[i])) << op << " of " << x[i];
}

TEST(Math, SignsOfZeroAndDenormalsStay) {
  for (std::string op : {"expm1", "tanh"}) {
    checkTiny<float>(op);
    checkTiny<double>(op);
  }
}

/// NaN stays, and both zeros are 0, in whole vectors and in what is left over.
template <typename T> void checkRelu() {
  std::vector<T> x;
  for (int i = 0; i < 5; ++i)
    x.insert(x.end(), {T(0), T(-0.0), T(NAN), T(INFINITY), T(-INFINITY), std::numeric_limits<T>::denorm_min(),
                       -std::numeric_limits<T>::denorm_min(), T(1.5), T(-1.5)});
  for (const auto &target : testTargets()) {
    auto y = unary<T>("relu", x.size(), target).run({Buffer::of(x)})[0].template values<T>();
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i]))
        EXPECT_TRUE(std::isnan(y[i])) << y[i];
      else
        EXPECT_EQ(std::bit_cast<Bits<T>>(y[i]), std::bit_cast<Bits<T>>(x[i] > 0 ? x[i] : T(0))) << x[i];
    }
  }
}

TEST(Math, ReluKeepsNanAndHasOneZero) {
  checkRelu<float>();
  checkRelu<double>();
}

template <typename T>
void checkBinary(const std::string &op, long double (*reference)(long double, long double), double bound) {
  std::mt19937_64 generator(5);
  std::vector<T> x = sample<T>(kCount, 11), y = sample<T>(kCount, 12);
  std::uniform_real_distribution<T> base(0, 3), exponent(-300, 300);
  std::vector<T> special{0, T(-0.0), 1, -1, 2, -2, 3, T(0.5), T(-0.5), T(INFINITY), T(-INFINITY), T(NAN)};
  for (size_t i = 0; i < kCount; i += 2)
    x[i] = base(generator), y[i] = exponent(generator);
  for (size_t i = 0; i < special.size() * special.size(); ++i)
    x[i] = special[i / special.size()], y[i] = special[i % special.size()];
  std::string type = "tensor<" + std::to_string(kCount) + "x" + element<T>() + ">";
  TestKernel kernel({type, type}, {type},
                    "%0 = gpuc." + op + " %a0, %a1 : " + type + "\ngpuc.yield %0 : " + type,
                    testTargets().back());
  auto z = kernel.run({Buffer::of(x), Buffer::of(y)})[0].template values<T>();
  double most = 0;
  for (size_t i = 0; i < kCount; ++i) {
    double error = ulps(z[i], reference(x[i], y[i]));
    most = std::max(most, error);
    ASSERT_LE(error, bound) << op << "(" << x[i] << ", " << y[i] << ") gives " << z[i];
    if (z[i] == 0)
      ASSERT_EQ(std::signbit(z[i]), std::signbit(reference(x[i], y[i])))
          << op << "(" << x[i] << ", " << y[i] << ")";
  }
  std::printf("%-8s %s  %.3f ULP\n", op.c_str(), element<T>().c_str(), most);
}

TEST(Math, Powers) {
  checkBinary<float>("pow", std::pow, 0.51);
  checkBinary<double>("pow", std::pow, 1.5);
}

TEST(Math, RemaindersAreExact) {
  checkBinary<float>("rem", std::fmod, 0);
  checkBinary<double>("rem", std::fmod, 0);
}

} // namespace
