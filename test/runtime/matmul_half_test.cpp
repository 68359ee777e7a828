// The host's matmul of f16 and bf16: bit for bit what f32 gives for the same operands, rounded once; then
// what follows, each part of it computed in f32 and rounded.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "runtime/host/matmul.h"
#include "runtime/tooling/allocation_hook.h"
#include "test/runtime/half_operands.h"

namespace gpuc {
namespace {

constexpr DataType kHalves[] = {DataType::f16, DataType::bf16};

MatmulKernel kernelFor(MatmulShape shape, DataType type) {
  shape.type = type;
  Result<MatmulKernel> kernel = MatmulKernel::create(shape, matmulWorkspaceBytes(shape));
  EXPECT_TRUE(kernel.ok()) << kernel.message();
  return kernel.ok() ? *std::move(kernel) : MatmulKernel();
}

/// The product alone.
MatmulShape bare(MatmulShape shape) {
  shape.bias = shape.relu = shape.mask = shape.accumulate = false;
  return shape;
}

/// The same problem in a 16-bit type, between guard pages, and in f32.
class HalfMatmul {
 public:
  HalfMatmul(const MatmulShape& shape, DataType type, uint64_t seed)
      : shape_(shape),
        type_(type),
        a_(randomHalves((shape.batch - 1) * shape.batch_stride_a + shape.m * shape.k, type, seed)),
        b_(randomHalves((shape.batch - 1) * shape.batch_stride_b + shape.k * shape.n, type, seed + 1)),
        before_(randomHalves(shape.batch * shape.m * shape.n, type, seed + 2)),
        bias_(randomHalves(shape.n, type, seed + 3)),
        mask_(randomHalves(shape.batch * shape.m * shape.n, type, seed + 4)),
        seed_(seed) {}

  std::vector<uint16_t>& a() { return a_; }
  std::vector<uint16_t>& b() { return b_; }

  /// By a kernel of the bare product.
  std::vector<float> computeInF32(const MatmulKernel& kernel) const {
    const std::vector<float> a = widened(a_, type_), b = widened(b_, type_), bias = widened(bias_, type_);
    const std::vector<float> before = widened(before_, type_);
    std::vector<float> c(before.size());
    kernel.run(0, {a.data(), b.data(), c.data(), nullptr, nullptr}, 0, kernel.tiles(0));
    for (size_t i = 0; i < c.size(); ++i) {
      if (shape_.bias) c[i] = widened(rounded(c[i], type_), type_) + bias[i % bias.size()];
      if (shape_.relu && c[i] <= 0) c[i] = 0;
      if (shape_.mask && widened(mask_[i], type_) <= 0) c[i] = 0;
      if (shape_.accumulate) c[i] = before[i] + widened(rounded(c[i], type_), type_);
    }
    return c;
  }

  /// Says how the kernel's result, computed in `threads` threads, differs from that of f32's kernel; empty if
  /// it does not.
  std::string difference(const MatmulKernel& kernel, const MatmulKernel& kernel_f32, int threads = 1) const {
    GuardedArray<uint16_t> a(a_, seed_ & 1), b(b_, seed_ & 2), c(before_, seed_ & 4), bias(bias_, seed_ & 8),
        mask(mask_, seed_ & 16);
    const uint16_t nan = rounded(std::numeric_limits<float>::quiet_NaN(), type_);
    if (!shape_.accumulate) std::fill_n(c.data(), c.size(), nan);
    const MatmulOperands operands = {a.data(), b.data(),
                                     c.data(), shape_.bias ? bias.data() : nullptr,
                                     nullptr,  shape_.mask ? mask.data() : nullptr};
    computeInThreads(kernel.tiles(0), threads, seed_,
                     [&](int64_t begin, int64_t end) { kernel.run(0, operands, begin, end); });
    return firstDifference(c.data(), computeInF32(kernel_f32), type_);
  }

 private:
  MatmulShape shape_;
  DataType type_;
  std::vector<uint16_t> a_, b_, before_, bias_, mask_;
  uint64_t seed_;
};

void checkShape(const MatmulShape& shape, uint64_t seed, int threads = 1) {
  for (DataType type : kHalves) {
    SCOPED_TRACE(nameOf(type) + (" of " + describe(shape)));
    EXPECT_EQ(HalfMatmul(shape, type, seed)
                  .difference(kernelFor(shape, type), kernelFor(bare(shape), DataType::f32), threads),
              "");
  }
}

constexpr int kVariants = 24;

/// variant: bits for a transposed, b transposed; then 0: nothing, 4: a bias, 8: added to what c holds, 12:
/// relu, 16: both bias and relu, 20: a mask.
MatmulShape makeShape(int64_t m, int64_t n, int64_t k, int variant) {
  MatmulShape shape;
  shape.m = m, shape.n = n, shape.k = k;
  shape.transpose_a = variant & 1, shape.transpose_b = variant & 2;
  const int follows = variant / 4;
  shape.bias = follows == 1 || follows == 4;
  shape.accumulate = follows == 2;
  shape.relu = follows == 3 || follows == 4;
  shape.mask = follows == 5;
  return shape;
}

void checkVariants(int64_t m, int64_t n, int64_t k) {
  for (int variant = 0; variant < kVariants; ++variant)
    checkShape(makeShape(m, n, k, variant), static_cast<uint64_t>(7 * m + 5 * n + 3 * k + variant));
}

TEST(MatmulHalf, TransposedProducts) {
  for (int64_t m : {16, 32})
    for (int64_t k : {7, 64, 1000})
      for (int variant : {2, 2 + 4, 2 + 8}) checkShape(makeShape(m, 192, k, variant), m + k + variant);
}

TEST(MatmulHalf, EveryOddExtent) {
  for (int64_t m : {1, 3, 8, 17, 33})
    for (int64_t n : {1, 3, 8, 17, 65})
      for (int64_t k : {1, 3, 8, 17, 64}) checkVariants(m, n, k);
}

TEST(MatmulHalf, RowsAndColumns) {
  for (int64_t extent : {15, 100, 1000}) {
    checkVariants(1, extent, 300);
    checkVariants(extent, 1, 300);
    checkVariants(extent, 300, 1);
  }
}

// Blocks of k are cut into pieces, which must not change the order of sums: LIBXSMM adds up to 23 products at
// once, of more than that four by four. 16 columns are one vector, where it does so.
TEST(MatmulHalf, EveryLengthOfTheSum) {
  for (int64_t n : {16, 21, 80})
    for (int64_t k : {22, 23, 24, 25, 55, 56, 57, 87, 88, 89, 111, 127, 128, 129, 130, 151, 152, 300, 1041})
      for (int64_t m : {5, 9, 13, 40})
        for (int variant : {0, 1, 2, 8, 16, 20})
          checkShape(makeShape(m, n, k, variant), static_cast<uint64_t>(k));
}

// Large enough that f32 packs its operands too, with blocks cut short in every direction.
TEST(MatmulHalf, SeveralTiles) {
  checkVariants(300, 530, 700);
  for (int variant = 0; variant < kVariants; variant += 4) {
    checkShape(makeShape(600, 600, 600, variant | 1), 1);
    checkShape(makeShape(7, 3072, 50, variant), 2);
    checkShape(makeShape(40, 3072, 50, variant), 3);
    checkShape(makeShape(9, 1111, 4500, variant), 4);
  }
}

TEST(MatmulHalf, RandomShapesAndBatches) {
  std::mt19937_64 random(20260102);
  auto extent = [&](int64_t most) {
    return static_cast<int64_t>(std::exp2(std::log2(most) * static_cast<double>(random() % 1000) / 999.0));
  };
  for (int i = 0; i < 300; ++i) {
    MatmulShape shape =
        makeShape(extent(200), extent(200), extent(500), static_cast<int>(random() % kVariants));
    shape.batch = random() % 3 ? 1 : extent(6);
    if (shape.batch > 1) {
      shape.batch_stride_a = random() % 3 ? shape.m * shape.k + (random() & 1 ? 5 : 0) : 0;
      shape.batch_stride_b = random() % 3 ? shape.k * shape.n + (random() & 1 ? 3 : 0) : 0;
    }
    checkShape(shape, random());
  }
}

TEST(MatmulHalf, BitsDoNotDependOnThreads) {
  for (int variant = 0; variant < kVariants; ++variant)
    for (int threads : {1, 2, 3})
      checkShape(makeShape(variant & 1 ? 9 : 530, 300, 200, variant), 11, threads);
}

/// c by two kernels, one for the first half of its rows and one for the second.
std::vector<uint16_t> inHalves(MatmulShape shape, const std::vector<uint16_t>& a,
                               const std::vector<uint16_t>& b) {
  std::vector<uint16_t> c(static_cast<size_t>(shape.m * shape.n));
  shape.m /= 2;
  const MatmulKernel kernel = kernelFor(shape, shape.type);
  for (int64_t half : {0, 1})
    kernel.run(0,
               {a.data() + half * shape.m * shape.k, b.data(), c.data() + half * shape.m * shape.n, nullptr,
                nullptr},
               0, kernel.tiles(0));
  return c;
}

TEST(MatmulHalf, RowsThatAreAddedInOrderHaveTheSameBitsInAProductOfFewer) {
  int in_order = 0, all = 0;
  for (DataType type : kHalves)
    for (int64_t m : {2, 6, 16, 24, 64})
      for (int64_t n : {17, 32, 48, 64, 80, 144, 520})
        for (int64_t k : {3, 23, 24, 55, 100, 300})
          for (int variant : {0, 2}) {
            MatmulShape shape = makeShape(m, n, k, variant), half = shape;
            shape.type = half.type = type;
            half.m /= 2;
            ++all;
            if (!planMatmul(shape).addsInOrder() || !planMatmul(half).addsInOrder()) continue;
            SCOPED_TRACE(describe(shape));
            ++in_order;
            const std::vector<uint16_t> a = randomHalves(m * k, type, 1), b = randomHalves(k * n, type, 2);
            std::vector<uint16_t> whole(static_cast<size_t>(m * n));
            const MatmulKernel kernel = kernelFor(shape, type);
            kernel.run(0, {a.data(), b.data(), whole.data(), nullptr, nullptr}, 0, kernel.tiles(0));
            EXPECT_EQ(whole, inHalves(shape, a, b));
          }
  EXPECT_GT(in_order, all / 4) << "of " << all;
}

/// The kernels of a shape by each of the methods that it allows, in one order.
std::vector<MatmulKernel> everyMethod(MatmulShape shape, DataType type) {
  shape.type = type;
  const MatmulPlan folded = foldMatmul(shape);
  std::vector<MatmulPlan> plans = {planTiled(folded, false, shape.transpose_b),
                                   planTiled(folded, shape.transpose_a, true)};
  if (!shape.transpose_b)
    plans.push_back(planFewRows(folded));
  else if (!shape.transpose_a)
    plans.push_back(planDot(folded));
  if (shape.transpose_a && !shape.transpose_b) plans.push_back(planDownward(folded));
  std::vector<MatmulKernel> kernels;
  for (const MatmulPlan& plan : plans) {
    Result<MatmulKernel> kernel = MatmulKernel::createFromPlan(plan);
    EXPECT_TRUE(kernel.ok()) << kernel.message();
    if (kernel.ok()) kernels.push_back(*std::move(kernel));
  }
  return kernels;
}

// The ways in which f32 may compute a shape differ in their bits; each has its counterpart.
TEST(MatmulHalf, EveryMethod) {
  for (int variant = 0; variant < kVariants; ++variant) {
    const MatmulShape shape = makeShape(110, 200, 170, variant);
    SCOPED_TRACE(describe(shape));
    const std::vector<MatmulKernel> in_f32 = everyMethod(bare(shape), DataType::f32);
    for (DataType type : kHalves) {
      const std::vector<MatmulKernel> kernels = everyMethod(shape, type);
      ASSERT_EQ(kernels.size(), in_f32.size());
      for (size_t i = 0; i < kernels.size(); ++i)
        EXPECT_EQ(HalfMatmul(shape, type, 5).difference(kernels[i], in_f32[i]), "") << "method " << i;
    }
  }
}

// 1000 · 1000 is more than f16 holds; NaN and infinities go where f32 has them; 2^-20 · 2^-20 is lost in f16.
TEST(MatmulHalf, OverflowNanAndSmallNumbers) {
  for (int variant = 0; variant < kVariants; ++variant)
    for (int64_t rows : {2, 40})
      for (DataType type : kHalves) {
        MatmulShape shape = makeShape(rows, 37, 50, variant);
        SCOPED_TRACE(nameOf(type) + (" of " + describe(shape)));
        HalfMatmul problem(shape, type, 5);
        auto place = [](std::vector<uint16_t>& halves, size_t at, float value, DataType t) {
          halves[at % halves.size()] = rounded(value, t);
        };
        for (size_t i = 0; i < 20; ++i) {
          place(problem.a(), i, 1000, type), place(problem.b(), 37 * i, 1000, type);
          place(problem.a(), 50 + i, 0x1p-20f, type), place(problem.b(), 37 * i + 1, 0x1p-20f, type);
        }
        place(problem.a(), 77, std::numeric_limits<float>::quiet_NaN(), type);
        place(problem.b(), 99, std::numeric_limits<float>::infinity(), type);
        EXPECT_EQ(problem.difference(kernelFor(shape, type), kernelFor(bare(shape), DataType::f32)), "");
      }
}

TEST(MatmulHalf, RunAllocatesNothing) {
  for (int variant = 0; variant < kVariants; ++variant) {
    MatmulShape shape = makeShape(variant & 1 ? 300 : 3, 530, 700, variant);
    const std::vector<uint16_t> a = randomHalves(shape.m * shape.k, DataType::bf16, 1),
                                b = randomHalves(shape.k * shape.n, DataType::bf16, 2);
    std::vector<uint16_t> c = randomHalves(shape.m * shape.n, DataType::bf16, 3);
    const MatmulKernel kernel = kernelFor(shape, DataType::bf16);
    const AllocationCount before = allocationCount();
    kernel.run(0,
               {a.data(), b.data(), c.data(), shape.bias ? b.data() : nullptr, nullptr,
                shape.mask ? c.data() : nullptr},
               0, kernel.tiles(0));
    EXPECT_EQ(allocationCount().total(), before.total());
  }
}

TEST(MatmulHalf, TilesThatDoNotFitAreRefused) {
  MatmulShape shape = makeShape(1000, 1000, 10, 0);
  shape.type = DataType::f16;
  EXPECT_EQ(MatmulKernel::createFromPlan(planFewRows(foldMatmul(shape))).message(),
            "matmul: a tile of 1000x512 sums is larger than 262144 bytes");
}

template <typename S>
std::vector<float> widen(const VectorKernelTable& table, const std::vector<uint16_t>& halves) {
  std::vector<float> floats(halves.size());
  table.of<S>().widen({1, static_cast<int64_t>(halves.size()), reinterpret_cast<const S*>(halves.data()), 0,
                       floats.data(), 0});
  return floats;
}

template <typename S>
std::vector<uint16_t> narrow(const VectorKernelTable& table, const std::vector<float>& floats) {
  std::vector<uint16_t> halves(floats.size());
  table.of<S>().narrow(
      {1, static_cast<int64_t>(floats.size()), floats.data(), 0, reinterpret_cast<S*>(halves.data()), 0});
  return halves;
}

/// All 2^16 halves to f32; and to halves all f32 whose lower 12 bits are 0, 1, 0x800 or 0xfff, among which
/// are all that lie half way between two, and those beside them.
template <typename S>
void checkConversions(int vector_bytes, DataType type) {
  const VectorKernelTable& table = *kernelsFor<VectorKernelTable>(vector_bytes);
  std::vector<uint16_t> halves(1 << 16);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  const std::vector<float> floats = widen<S>(table, halves);
  for (size_t i = 0; i < halves.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(floats[i]), std::bit_cast<uint32_t>(widened(halves[i], type))) << i;

  std::vector<float> values;
  for (uint32_t upper = 0; upper < 1 << 20; ++upper)
    for (uint32_t lower : {0x000u, 0x001u, 0xfffu, 0x800u})
      values.push_back(std::bit_cast<float>(upper << 12 | lower));
  const std::vector<uint16_t> found = narrow<S>(table, values);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i]))
      ASSERT_TRUE(std::isnan(widened(found[i], type))) << i;
    else
      ASSERT_EQ(found[i], rounded(values[i], type)) << values[i];
  }
}

// Each kind of vectors that this CPU has.
TEST(HalfVectors, ConvertAsOneElementIsConverted) {
  for (int vector_bytes : {16, 32, 64}) {
    SCOPED_TRACE(vector_bytes);
    checkConversions<Half>(vector_bytes, DataType::f16);
    checkConversions<Bfloat16>(vector_bytes, DataType::bf16);
  }
}

// A NaN's upper bits survive, so that every CPU gives the same.
TEST(HalfVectors, NansHaveTheSameBitsEverywhere) {
  std::vector<float> nans;
  for (uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fc00000u, 0xffffffffu, 0x7fabc123u})
    nans.push_back(std::bit_cast<float>(bits));
  for (int vector_bytes : {16, 32, 64}) {
    const VectorKernelTable& table = *kernelsFor<VectorKernelTable>(vector_bytes);
    EXPECT_EQ(narrow<Half>(table, nans), (std::vector<uint16_t>{0x7e00, 0xfe00, 0x7e00, 0xffff, 0x7f5e}));
    EXPECT_EQ(narrow<Bfloat16>(table, nans), (std::vector<uint16_t>{0x7fc0, 0xffc0, 0x7fc0, 0xffff, 0x7feb}));
  }
}

}  // namespace
}  // namespace gpuc
