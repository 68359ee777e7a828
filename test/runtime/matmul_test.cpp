// The host's matmul against a plain triple loop in f64: values, bits, bounds of memory, allocations, errors.
#include "runtime/host/matmul.h"

#include <gtest/gtest.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/tooling/allocation_hook.h"
#include "test/runtime/matmul_reference.h"

namespace gpuc {
namespace {

/// The kernel for a shape; the test fails where there is none.
MatmulKernel kernelFor(const MatmulShape& shape) {
  Result<MatmulKernel> kernel = MatmulKernel::create(shape, matmulWorkspaceBytes(shape));
  EXPECT_TRUE(kernel.ok()) << kernel.message();
  return kernel.ok() ? *std::move(kernel) : MatmulKernel();
}

/// Runs all tiles of all phases in one thread.
void runWhole(const MatmulKernel& kernel, const MatmulOperands& operands) {
  for (int phase = 0; phase < kernel.phaseCount(); ++phase)
    kernel.run(phase, operands, 0, kernel.tiles(phase));
}

template <typename T>
void checkShape(const MatmulShape& shape, uint64_t seed) {
  SCOPED_TRACE(describe(shape));
  GuardedMatmul<T> problem(shape, seed);
  MatmulKernel kernel = kernelFor(shape);
  runWhole(kernel, problem.operands());
  EXPECT_EQ(problem.firstError(), "");
}

void checkBothTypes(MatmulShape shape, uint64_t seed) {
  shape.type = DataType::f32;
  checkShape<float>(shape, seed);
  shape.type = DataType::f64;
  checkShape<double>(shape, seed);
}

MatmulShape makeShape(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b, bool bias) {
  MatmulShape shape;
  shape.m = m, shape.n = n, shape.k = k;
  shape.transpose_a = transpose_a, shape.transpose_b = transpose_b;
  shape.bias = bias;
  return shape;
}

/// The same, added to what c holds.
MatmulShape added(MatmulShape shape) {
  shape.bias = false;
  shape.accumulate = true;
  return shape;
}

MatmulShape withRelu(MatmulShape shape) {
  shape.relu = true;
  return shape;
}

/// All four transposes; with bias, with nothing, every other one with relu, and added to what is there.
void checkVariants(int64_t m, int64_t n, int64_t k) {
  for (int variant = 0; variant < 8; ++variant) {
    MatmulShape shape = makeShape(m, n, k, variant & 1, variant & 2, variant & 4);
    shape.relu = (variant / 4 + m + n + k) & 1;
    checkBothTypes(shape, 7 * m + 5 * n + 3 * k + variant);
  }
  for (int variant = 0; variant < 4; ++variant)
    checkBothTypes(added(makeShape(m, n, k, variant & 1, variant & 2, false)), 3 * m + n + k + variant);
}

/// What follows a product changes nothing of the product itself: bit for bit what comes out one after the
/// other.
template <typename T>
void checkFinish(MatmulShape shape, DataType type, uint64_t seed) {
  shape.type = type;
  SCOPED_TRACE(describe(shape));
  MatmulShape bare = shape;
  bare.bias = bare.relu = bare.mask = bare.accumulate = false;
  GuardedMatmul<T> product(bare, seed), problem(shape, seed);
  runWhole(kernelFor(bare), product.operands());
  runWhole(kernelFor(shape), problem.operands());
  const std::vector<T> expected = problem.finished(product.result()), found = problem.result();
  EXPECT_EQ(std::memcmp(expected.data(), found.data(), found.size() * sizeof(T)), 0);
}

TEST(Matmul, FinishesWhatItSummedUp) {
  std::mt19937_64 random(5);
  auto extent = [&](int64_t most) {
    return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most));
  };
  for (int i = 0; i < 200; ++i) {
    MatmulShape shape =
        makeShape(extent(i % 2 ? 20 : 300), i % 7 ? extent(150) : 1, extent(400), i & 1, i & 2, i & 4);
    shape.relu = !shape.bias || (i & 8);
    if (i & 32) shape.batch = 3, shape.batch_stride_a = shape.m * shape.k;
    const uint64_t seed = random();
    checkFinish<float>(shape, DataType::f32, seed);
    checkFinish<double>(shape, DataType::f64, seed);
    shape.bias = shape.relu = false;
    shape.mask = true;
    checkFinish<float>(shape, DataType::f32, seed);
    checkFinish<double>(shape, DataType::f64, seed);
    shape.mask = false;
    checkFinish<float>(added(shape), DataType::f32, seed);
    checkFinish<double>(added(shape), DataType::f64, seed);
  }
  for (int64_t rows : {8, 32, 256}) {  // long sums, in several blocks
    checkFinish<float>(withRelu(makeShape(rows, 128, 784, false, true, true)), DataType::f32, 1);
    checkFinish<float>(withRelu(makeShape(rows, 512, 3000, false, rows == 8, true)), DataType::f32, 2);
    checkFinish<float>(added(makeShape(rows, 128, 784, false, true, false)), DataType::f32, 3);
    checkFinish<float>(added(makeShape(rows, 512, 3000, false, false, false)), DataType::f32, 4);
  }
  for (int64_t side : {256, 1024}) {  // weights' gradients, walked down and packed in the largest tiles
    checkFinish<float>(added(makeShape(side, side, 600, true, false, false)), DataType::f32, 5);
    checkFinish<double>(added(makeShape(side, side, 600, true, false, false)), DataType::f64, 6);
  }
}

//===----------------------------------------------------------------------===//
// Weights' gradients
//===----------------------------------------------------------------------===//

/// What takes a test's tiles: operands are the tile, and c, to which all of its elements are moved.
template <typename T>
struct Taker {
  static inline MatmulPlan plan;

  static void take(void* const* operands, int64_t begin, int64_t end) {
    const auto from = reinterpret_cast<uintptr_t>(operands[0]);
    T* to = static_cast<T*>(operands[1]);
    const MatmulShape& p = plan.problem;
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t first_row = tile / plan.columnTiles() * plan.tile_m;
      const int64_t first_column = tile % plan.columnTiles() * plan.tile_n;
      for (int64_t row = first_row; row < std::min(first_row + plan.tile_m, p.m); ++row)
        for (int64_t column = first_column; column < std::min(first_column + plan.tile_n, p.n); ++column) {
          const auto place = static_cast<uintptr_t>(row * plan.sumStride() + column);
          to[row * p.n + column] = *reinterpret_cast<const T*>(from + place * sizeof(T));
        }
    }
  }
};

template <typename T>
std::vector<T> squaresOfTiles(const MatmulPlan& plan, const std::vector<T>& c) {
  std::vector<long double> sums(static_cast<size_t>(plan.tileCount()));
  for (int64_t i = 0; i < plan.problem.m * plan.problem.n; ++i) {
    const int64_t row = i / plan.problem.n, column = i % plan.problem.n;
    const long double element = c[static_cast<size_t>(i)];
    sums[static_cast<size_t>(row / plan.tile_m * plan.columnTiles() + column / plan.tile_n)] +=
        element * element;
  }
  return {sums.begin(), sums.end()};
}

/// Tiles that are handed on have the bits of a product that is stored, and so have their squares.
template <typename T>
void checkGradient(MatmulShape shape, DataType type, uint64_t seed) {
  shape.type = type;
  if (!canSumSquares(shape)) return;
  SCOPED_TRACE(describe(shape));
  GuardedMatmul<T> product(shape, seed), problem(shape, seed);
  const MatmulPlan plan = planMatmul(shape);
  MatmulShape squared = shape;
  squared.squares = true;
  std::vector<T> squares(static_cast<size_t>(plan.tileCount())), of_handed_on(squares);
  MatmulOperands operands = product.operands();
  operands.squares = squares.data();
  runWhole(kernelFor(squared), operands);
  const std::vector<T> expected = squaresOfTiles<T>(plan, product.result());
  for (size_t i = 0; i < squares.size(); ++i)
    EXPECT_NEAR(squares[i], expected[i], 40 * std::numeric_limits<T>::epsilon() * expected[i])
        << "tile " << i;

  const std::optional<MatmulPlan> handing_on = planMatmulOfUpdate(shape);
  if (!handing_on) return;
  Taker<T>::plan = *handing_on;
  Result<MatmulKernel> kernel = MatmulKernel::create(squared, {.compute = Taker<T>::take, .operands = 2});
  ASSERT_TRUE(kernel.ok()) << kernel.message();
  operands = problem.operands();
  void* const target = operands.c;
  operands.c = nullptr;
  operands.squares = of_handed_on.data();
  operands.of_update = &target;
  runWhole(*kernel, operands);
  const std::vector<T> stored = product.result(), handed_on = problem.result();
  EXPECT_EQ(std::memcmp(stored.data(), handed_on.data(), stored.size() * sizeof(T)), 0);
  EXPECT_EQ(squares, of_handed_on);
}

TEST(Matmul, HandsOnTheTilesOfAGradientAndAddsUpTheirSquares) {
  std::mt19937_64 random(11);
  auto extent = [&](int64_t most) {
    return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most));
  };
  for (int i = 0; i < 200; ++i) {
    const MatmulShape shape =
        makeShape(i % 5 ? extent(300) : 1, i % 7 ? extent(300) : 1, extent(200), i & 1, i & 2, false);
    checkGradient<float>(shape, DataType::f32, random());
    checkGradient<double>(shape, DataType::f64, random());
  }
  for (int64_t side : {256, 1024}) {  // walked down, and packed in the largest tiles
    checkGradient<float>(makeShape(side, side, 600, true, false, false), DataType::f32, 5);
    checkGradient<double>(makeShape(side, side, 600, true, false, false), DataType::f64, 6);
  }
}

TEST(Matmul, OnlyOneMatrixIsHandedOn) {
  MatmulShape shape = makeShape(64, 64, 32, true, false, false);
  EXPECT_TRUE(planMatmulOfUpdate(shape).has_value());
  for (DataType narrow : {DataType::f16, DataType::bf16}) {
    MatmulShape other = shape;
    other.type = narrow;
    EXPECT_FALSE(planMatmulOfUpdate(other).has_value());
  }
  MatmulShape several = shape;
  several.batch = 2;
  EXPECT_FALSE(planMatmulOfUpdate(several).has_value());
  EXPECT_EQ(MatmulKernel::create(several, TileUpdate{.compute = Taker<float>::take, .operands = 2}).message(),
            "matmul: of a shape whose tiles cannot be handed to a weight's update");
  EXPECT_EQ(MatmulKernel::create(shape, TileUpdate{.compute = Taker<float>::take, .operands = 99}).message(),
            "matmul: with a weight's update of 99 operands, at most 32");
}

// relu of NaN is NaN, of -0 it is +0; in whole vectors and in what is left.
TEST(Matmul, ReluKeepsNanAndDropsTheSignOfZero) {
  for (int vector_bytes : {16, 32, 64}) {
    SCOPED_TRACE(vector_bytes);
    std::vector<float> c(37, -0.0f);
    c[3] = c[35] = std::numeric_limits<float>::quiet_NaN();
    c[4] = c[36] = 2;
    kernelsFor<VectorKernelTable>(vector_bytes)
        ->of<float>()
        .finish({.rows = 1,
                 .columns = 37,
                 .c = c.data(),
                 .ldc = 37,
                 .bias = nullptr,
                 .bias_of_rows = false,
                 .relu = true,
                 .mask = nullptr});
    for (size_t i : {3, 35}) EXPECT_TRUE(std::isnan(c[i]));
    for (size_t i : {4, 36}) EXPECT_EQ(c[i], 2);
    for (size_t i : {0, 5, 31, 34}) EXPECT_FALSE(std::signbit(c[i])) << i;
  }
}

TEST(Matmul, EveryOddExtent) {
  for (int64_t m : {1, 3, 8, 17, 33})
    for (int64_t n : {1, 3, 8, 17, 65})
      for (int64_t k : {1, 3, 8, 17, 64}) checkVariants(m, n, k);
}

TEST(Matmul, LayersOfAnMlp) {
  for (int64_t rows : {1, 32, 64, 256}) {
    checkBothTypes(makeShape(rows, 128, 784, false, true, true), 1);    // forward
    checkBothTypes(makeShape(rows, 10, 128, false, true, true), 2);     // forward, last layer
    checkBothTypes(makeShape(rows, 784, 128, false, false, false), 3);  // input gradient
    checkBothTypes(makeShape(128, 784, rows, true, false, false), 4);   // weight gradient
  }
}

// Large enough that both operands are packed, with blocks cut short in every direction.
TEST(Matmul, PackedOperands) {
  checkVariants(300, 530, 700);
  checkBothTypes(makeShape(600, 600, 600, true, false, true), 1);
  checkBothTypes(makeShape(7, 3072, 50, false, false, true), 2);
  checkBothTypes(makeShape(40, 3072, 50, false, false, true), 3);
}

// c^T = b · a^T: one and several strips of rows and blocks of k, alone, with a bias, added, and in batches.
TEST(Matmul, TransposedProducts) {
  for (int64_t m : {16, 32})
    for (int64_t n : {64, 112, 192})
      for (int64_t k : {2, 7, 64, 784, 1000}) {
        const MatmulShape shape = makeShape(m, n, k, false, true, false);
        EXPECT_TRUE(planMatmul(shape).transposed) << describe(shape);
        checkBothTypes(shape, m + n + k);
        MatmulShape biased = makeShape(m, n, k, false, true, true);
        checkBothTypes(biased, m + n + k);
        biased.relu = true;
        checkBothTypes(biased, m + n + k);
        checkBothTypes(added(shape), m + n + k);
        MatmulShape masked = shape;
        masked.mask = true;
        checkBothTypes(masked, m + n + k);
        MatmulShape batched = shape;
        batched.batch = 3;
        batched.batch_stride_a = m * k + 5;
        batched.batch_stride_b = n * k + 3;
        checkBothTypes(batched, m + n + k);
      }
  EXPECT_FALSE(planMatmul(makeShape(16, 72, 64, false, true, false)).transposed)
      << "rows of c are no whole vectors";
}

TEST(Matmul, NarrowWeightGradients) {
  for (int64_t m : {200, 256})
    for (int64_t n : {64, 65, 130, 256})
      for (int64_t k : {31, 128, 130, 400}) {
        const MatmulShape shape = makeShape(m, n, k, true, false, false);
        checkBothTypes(shape, static_cast<uint64_t>(m + n + k));
        checkBothTypes(added(shape), static_cast<uint64_t>(m + n + k));
        const MatmulPlan plan = planMatmul(shape);
        EXPECT_TRUE(!plan.pack_a && !plan.pack_b && plan.tile_n <= 64 && plan.block_k <= 128)
            << describe(shape);
      }
  EXPECT_EQ(planMatmul(makeShape(128, 64, 768, true, false, false)).tile_n, 32) << "two tiles are too few";
  EXPECT_TRUE(planMatmul(makeShape(768, 320, 768, true, false, false)).pack_a) << "many columns";
  EXPECT_EQ(planMatmul(makeShape(256, 128, 400, false, false, false)).tile_n, 32) << "a lies in rows";
}

TEST(Matmul, FewRowsAreATileForEachOfTwoThreads) {
  auto tiles = [](int64_t m, int64_t n, int64_t k) {
    return planMatmul(makeShape(m, n, k, false, false, false)).columnTiles();
  };
  EXPECT_EQ(tiles(16, 256, 512), 2);
  EXPECT_EQ(tiles(1, 512, 512), 2) << "b is long to read";
  EXPECT_EQ(tiles(1, 256, 256), 1) << "not worth a fork";
  EXPECT_EQ(tiles(16, 80, 512), 1) << "halves would not be whole vectors by four";
  EXPECT_EQ(tiles(16, 1024, 512), 2);
}

TEST(Matmul, RandomShapes) {
  std::mt19937_64 random(20260101);
  auto extent = [&](int64_t most) {
    return static_cast<int64_t>(std::exp2(std::log2(most) * (random() % 1000) / 999.0));
  };
  for (int i = 0; i < 300; ++i) {
    MatmulShape shape =
        makeShape(extent(200), extent(200), extent(500), random() & 1, random() & 1, random() & 1);
    shape.batch = random() % 3 ? 1 : extent(6);
    if (shape.batch > 1) {
      shape.batch_stride_a = random() % 3 ? shape.m * shape.k + (random() & 1 ? 5 : 0) : 0;
      shape.batch_stride_b = random() % 3 ? shape.k * shape.n + (random() & 1 ? 3 : 0) : 0;
    }
    checkBothTypes(shape, random());
  }
}

// c computed whole, by random splits in random order, and by two threads. The bits must
// agree.
TEST(Matmul, BitsDoNotDependOnTheSplit) {
  std::mt19937_64 random(11);
  for (int variant = 0; variant < 8; ++variant) {
    MatmulShape shape = makeShape(variant & 4 ? 9 : 530, 700, 600, variant & 1, variant & 2, true);
    if (variant & 2) shape = added(shape);
    SCOPED_TRACE(describe(shape));
    GuardedMatmul<float> problem(shape, variant);
    MatmulKernel kernel = kernelFor(shape);
    const int64_t tiles = kernel.tiles(0);
    runWhole(kernel, problem.operands());
    const std::vector<float> whole = problem.result();

    for (int round = 0; round < 3; ++round) {
      problem.poisonResult();
      std::vector<std::pair<int64_t, int64_t>> ranges;
      for (int64_t begin = 0; begin < tiles;) {
        int64_t end = std::min<int64_t>(tiles, begin + 1 + static_cast<int64_t>(random() % 5));
        ranges.emplace_back(begin, end);
        begin = end;
      }
      std::shuffle(ranges.begin(), ranges.end(), random);
      auto runHalf = [&](size_t first) {
        for (size_t i = first; i < ranges.size(); i += 2)
          kernel.run(0, problem.operands(), ranges[i].first, ranges[i].second);
      };
      std::thread other(runHalf, 1);
      runHalf(0);
      other.join();
      const std::vector<float> split = problem.result();
      EXPECT_EQ(std::memcmp(whole.data(), split.data(), whole.size() * sizeof(float)), 0);
    }
  }
}

/// Whether each call to a micro-kernel has a kernel: whole strips and panels, but at the matrix's own end.
bool isCutAtItsEndAlone(const MatmulPlan& plan) {
  return (plan.tile_m % plan.strip_m == 0 || plan.rowTiles() == 1) &&
         (plan.tile_n % plan.panel_n == 0 || plan.columnTiles() == 1);
}

TEST(Matmul, TilesAreWholeStripsAndPanels) {
  for (DataType type : {DataType::f32, DataType::f64, DataType::bf16})
    for (int64_t m : {1, 5, 7, 8, 9, 10, 13, 14, 16, 17, 64, 200})
      for (int64_t n = 16; n <= 2400; n += 16)
        for (int64_t k : {16, 100, 700})
          for (int variant = 0; variant < 4; ++variant) {
            MatmulShape shape = makeShape(m, n, k, variant & 1, variant & 2, false);
            shape.type = type;
            const MatmulPlan plan = planMatmul(shape);
            if (plan.method == MatmulMethod::tiled) EXPECT_TRUE(isCutAtItsEndAlone(plan)) << describe(shape);
          }
  // Two tiles of 272 columns would be cut in the middle of a panel of 32.
  checkVariants(8, 544, 100);
}

/// The same with one of what may follow a product, or precede it.
MatmulShape withVariant(MatmulShape shape, int variant) {
  shape.bias = variant == 1 || variant == 2;
  shape.relu = variant == 2;
  shape.mask = variant == 3;
  shape.accumulate = variant == 4;
  return shape;
}

/// Whether the whole and each of `parts` of its rows say that they add in order. Their bits must then agree.
template <typename T>
bool addsInOrderInParts(MatmulShape shape, int64_t parts) {
  const MatmulShape whole = shape;
  shape.m /= parts;
  if (!planMatmul(whole).addsInOrder() || !planMatmul(shape).addsInOrder()) return false;
  SCOPED_TRACE(describe(whole) + " in " + std::to_string(parts) + " parts");
  GuardedMatmul<T> problem(whole, static_cast<uint64_t>(7 * whole.m + 5 * whole.n + 3 * whole.k + parts));
  runWhole(kernelFor(whole), problem.operands());
  const std::vector<T> expected = problem.result();
  EXPECT_EQ(problem.firstError(), "");
  problem.poisonResult();
  const MatmulKernel kernel = kernelFor(shape);
  for (int64_t part = 0; part < parts; ++part) {
    MatmulOperands operands = problem.operands();
    const int64_t row = part * shape.m;
    operands.a = static_cast<const T*>(operands.a) + row * shape.k;
    operands.c = static_cast<T*>(operands.c) + row * shape.n;
    if (shape.mask) operands.mask = static_cast<const T*>(operands.mask) + row * shape.n;
    runWhole(kernel, operands);
  }
  const std::vector<T> found = problem.result();
  EXPECT_EQ(std::memcmp(expected.data(), found.data(), found.size() * sizeof(T)), 0);
  return true;
}

// For threads that take a share of a product's rows each, as a product of its own.
TEST(Matmul, RowsThatAreAddedInOrderHaveTheSameBitsInAProductOfFewer) {
  int variant = 0, in_order = 0, all = 0;
  for (int64_t m : {2, 4, 6, 8, 16, 24, 32, 64})
    for (int64_t n : {17, 31, 32, 33, 48, 64, 65, 80, 81, 96, 144, 256, 520})
      for (int64_t k : {1, 3, 16, 22, 23, 24, 25, 64, 100, 256})
        for (bool transpose_b : {false, true})
          for (int64_t parts : {2, 4}) {
            if (m % parts != 0) continue;
            MatmulShape shape = withVariant(makeShape(m, n, k, false, transpose_b, false), variant++ % 5);
            in_order += addsInOrderInParts<float>(shape, parts);
            shape.type = DataType::f64;
            in_order += addsInOrderInParts<double>(shape, parts);
            all += 2;
          }
  EXPECT_GT(in_order, all / 4) << "of " << all;
}

// Row i of c depends on row i of a alone, so an Inf or NaN in a must reach its row and no other. 0 · Inf is
// NaN.
TEST(Matmul, NanAndInfinityPropagateAsInAPlainLoop) {
  for (int variant = 0; variant < 4; ++variant)
    for (int64_t rows : {5, 40}) {
      MatmulShape shape = makeShape(rows, 37, 50, variant & 1, variant & 2, false);
      SCOPED_TRACE(describe(shape));
      GuardedMatmul<float> problem(shape, 5);
      problem.elementA(0, 1, 7) = std::numeric_limits<float>::infinity();
      problem.elementB(0, 7, 3) = 0;
      problem.elementA(0, 3, 9) = std::numeric_limits<float>::quiet_NaN();
      MatmulKernel kernel = kernelFor(shape);
      runWhole(kernel, problem.operands());
      EXPECT_EQ(problem.firstError(), "");
      EXPECT_TRUE(std::isnan(problem.result()[1 * 37 + 3]));  // inf · 0
      EXPECT_TRUE(std::isinf(problem.result()[1 * 37 + 4]));
      EXPECT_TRUE(std::isnan(problem.result()[3 * 37 + 5]));
    }
}

// Every method on the same problem, whichever the plan would choose.
TEST(Matmul, MethodsAgree) {
  for (int variant = 0; variant < 4; ++variant) {
    MatmulShape shape = makeShape(150, 200, 170, variant & 1, variant & 2, true);
    SCOPED_TRACE(describe(shape));
    GuardedMatmul<float> problem(shape, 3);
    const MatmulPlan folded = foldMatmul(shape);
    std::vector<MatmulPlan> plans = {planTiled(folded, false, shape.transpose_b),
                                     planTiled(folded, false, true),
                                     planTiled(folded, shape.transpose_a, true)};
    if (shape.transpose_b && !shape.transpose_a)
      plans.push_back(planDot(folded));
    else if (!shape.transpose_b)
      plans.push_back(planFewRows(folded));
    if (shape.transpose_a && !shape.transpose_b) plans.push_back(planDownward(folded));
    for (const MatmulPlan& plan : plans) {
      problem.poisonResult();
      Result<MatmulKernel> kernel = MatmulKernel::createFromPlan(plan);
      ASSERT_TRUE(kernel.ok()) << kernel.message();
      runWhole(*kernel, problem.operands());
      EXPECT_EQ(problem.firstError(), "");
    }
  }
}

#if defined(__x86_64__)
/// Which parts of the vector registers are in use (XINUSE, Intel SDM volume 1, 13.6).
__attribute__((target("xsave"))) uint64_t registersInUse() { return _xgetbv(1); }

/// Whether that can be asked: CPUID leaf 13, sub-leaf 1, bit 2.
bool canAskForRegistersInUse() {
  unsigned a, b, c, d;
  return __get_cpuid_count(13, 1, &a, &b, &c, &d) && (a & 4);
}

// Wide registers left in use make all SSE code that follows slow.
TEST(Matmul, LeavesNoWideRegistersInUse) {
  if (!canAskForRegistersInUse()) GTEST_SKIP() << "this CPU has no xgetbv with ecx = 1";
  constexpr uint64_t kUpperHalvesOfYmmAndZmm = 1 << 2 | 1 << 6;
  for (int variant = 0; variant < 4; ++variant) {
    MatmulShape shape = makeShape(64, 64, 64, variant & 1, variant & 2, false);
    SCOPED_TRACE(describe(shape));
    GuardedMatmul<float> problem(shape, variant);
    MatmulKernel kernel = kernelFor(shape);
    runWhole(kernel, problem.operands());
    EXPECT_EQ(registersInUse() & kUpperHalvesOfYmmAndZmm, 0u);
  }
}
#endif

TEST(Matmul, RunAllocatesNothing) {
  for (int variant = 0; variant < 12; ++variant) {
    MatmulShape shape = makeShape(variant < 8 ? 300 : 3, 530, 700, variant & 1, variant & 2, variant & 4);
    SCOPED_TRACE(describe(shape));
    GuardedMatmul<float> problem(shape, variant);
    MatmulKernel kernel = kernelFor(shape);
    const MatmulOperands operands = problem.operands();
    const AllocationCount before = allocationCount();
    runWhole(kernel, operands);
    EXPECT_EQ(allocationCount().total() - before.total(), 0);
  }
}

// At 160 GFLOP/s in f32 a tile of 64 x 32 x 784 takes 20 us, and one of 64 x 32 x 128 takes 3.3 us.
TEST(Matmul, EstimatesATilesTime) {
  EXPECT_NEAR(kernelFor(makeShape(64, 128, 784, false, true, true)).tileNs(0), 20'000, 200);
  EXPECT_NEAR(kernelFor(makeShape(64, 128, 128, false, true, true)).tileNs(0), 3'300, 100);
  EXPECT_EQ(kernelFor(makeShape(1, 8, 8, false, true, true)).tileNs(0), 20);        // for the call
  const MatmulKernel row = kernelFor(makeShape(1, 784, 128, false, false, false));  // 4 us in all
  EXPECT_NEAR(row.tileNs(0) * static_cast<double>(row.tiles(0)), 4'000, 200);
}

TEST(Matmul, TilesDependOnTheShapeAlone) {
  MatmulShape shape = makeShape(64, 128, 784, false, true, true);
  EXPECT_EQ(kernelFor(shape).tiles(0), kernelFor(shape).tiles(0));
  EXPECT_GE(kernelFor(shape).tiles(0), 4);
}

std::string errorOf(const MatmulShape& shape, int64_t workspace_bytes) {
  Result<MatmulKernel> kernel = MatmulKernel::create(shape, workspace_bytes);
  return kernel.ok() ? "no error" : kernel.message();
}

TEST(Matmul, ErrorsNameTheCulprit) {
  MatmulShape shape = makeShape(4, 5, 6, false, false, false);
  EXPECT_EQ(errorOf(shape, -1),
            "matmul: the plan gives -1 bytes of workspace, 0 are needed; compile the plan again "
            "with this version of gpuc");
  MatmulShape integers = shape;
  integers.type = DataType::i32;
  EXPECT_EQ(errorOf(integers, 0), "matmul: of i32, but only floats are multiplied");
  MatmulShape empty = shape;
  empty.k = 0;
  EXPECT_EQ(errorOf(empty, 0), "matmul: batch 1, m 4, n 5, k 0: every extent must be at least 1");
  MatmulShape backward = shape;
  backward.batch_stride_b = -30;
  EXPECT_EQ(errorOf(backward, 0), "matmul: batch strides 0 and -30 must not be negative");
  MatmulShape wide = shape;
  wide.n = 5'000'000;
  EXPECT_EQ(errorOf(wide, 0),
            "matmul: a matrix has rows of 5000000 elements, at most 4194304 are supported on the host");
}

}  // namespace
}  // namespace gpuc
