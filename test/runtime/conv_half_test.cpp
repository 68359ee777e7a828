// The host's convolutions of f16 and bf16: bit for bit what f32 gives for the same operands, rounded once.
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "runtime/host/conv.h"
#include "runtime/tooling/allocation_hook.h"
#include "test/runtime/conv_reference.h"
#include "test/runtime/half_operands.h"

namespace gpuc {
namespace {

constexpr ConvKind kKinds[] = {ConvKind::forward, ConvKind::input_gradient, ConvKind::filter_gradient};
constexpr DataType kHalves[] = {DataType::f16, DataType::bf16};

ConvKernel kernelFor(const ConvShape& shape, ConvMethod method) {
  Result<ConvKernel> kernel = ConvKernel::create(shape, method, convWorkspaceBytes(shape, method));
  EXPECT_TRUE(kernel.ok()) << kernel.message();
  return kernel.ok() ? *std::move(kernel) : ConvKernel();
}

void runAll(const ConvKernel& kernel, const ConvOperands& operands, int threads, uint64_t seed) {
  for (int phase = 0; phase < kernel.phaseCount(); ++phase)
    computeInThreads(kernel.tiles(phase), threads, seed,
                     [&](int64_t begin, int64_t end) { kernel.run(phase, operands, begin, end); });
}

/// The operands of one convolution in a 16-bit type, by one method.
class HalfConv {
 public:
  HalfConv(const ConvShape& shape, ConvMethod method, uint64_t seed)
      : shape_(shape), method_(method), seed_(seed) {
    const int64_t x = shape.inputElements(), w = shape.filterElements();
    const int64_t y = shape.batch * shape.out_channels * shape.outputPixels();
    const bool forward = shape.kind == ConvKind::forward, input = shape.kind == ConvKind::input_gradient;
    a_ = randomHalves(forward ? x : y, shape.type, seed);
    b_ = randomHalves(forward || input ? w : x, shape.type, seed + 1);
    results_ = forward ? y : input ? x : w;
    bias_ = randomHalves(shape.out_channels, shape.type, seed + 2);
    shape_.bias = forward && (seed & 16);
    shape_.relu = forward && (seed & 32);
    shape_.mask = input && (seed & 16);
    mask_ = randomHalves(results_, shape.type, seed + 3);
  }

  std::vector<uint16_t>& a() { return a_; }

  /// The convolution alone, then what follows, each part of it rounded.
  std::vector<float> computeInF32() const {
    ConvShape shape = shape_;
    shape.type = DataType::f32;
    shape.bias = shape.relu = shape.mask = false;
    const std::vector<float> a = widened(a_, shape_.type), b = widened(b_, shape_.type),
                             bias = widened(bias_, shape_.type);
    std::vector<float> c(static_cast<size_t>(results_));
    std::vector<char> workspace(static_cast<size_t>(convWorkspaceBytes(shape, method_)));
    runAll(kernelFor(shape, method_), {a.data(), b.data(), c.data(), nullptr, workspace.data()}, 1, 0);
    const auto pixels = static_cast<size_t>(shape_.outputPixels());
    for (size_t i = 0; i < c.size(); ++i) {
      if (shape_.bias)
        c[i] = widened(rounded(c[i], shape_.type), shape_.type) + bias[i / pixels % bias.size()];
      if (shape_.relu && c[i] <= 0) c[i] = 0;
      if (shape_.mask && widened(mask_[i], shape_.type) <= 0) c[i] = 0;
    }
    return c;
  }

  /// Says how the result, computed in `threads` threads, differs from f32's; empty if it does not.
  std::string difference(int threads) const {
    const uint16_t nan = rounded(std::numeric_limits<float>::quiet_NaN(), shape_.type);
    GuardedArray<uint16_t> a(a_, seed_ & 1), b(b_, seed_ & 2), c(results_, seed_ & 4), bias(bias_, seed_ & 1),
        mask(mask_, seed_ & 2);
    std::fill_n(c.data(), c.size(), nan);
    GuardedArray<float> workspace(std::max<int64_t>(1, convWorkspaceBytes(shape_, method_) / 4), seed_ & 8);
    std::fill_n(workspace.data(), workspace.size(), std::numeric_limits<float>::quiet_NaN());
    runAll(kernelFor(shape_, method_),
           {a.data(), b.data(), c.data(), shape_.bias ? bias.data() : nullptr, workspace.data(),
            shape_.mask ? mask.data() : nullptr},
           threads, seed_);
    return firstDifference(c.data(), computeInF32(), shape_.type);
  }

 private:
  ConvShape shape_;
  ConvMethod method_;
  uint64_t seed_;
  std::vector<uint16_t> a_, b_, bias_, mask_;
  int64_t results_ = 0;
};

/// With each of what may follow, by every method that can compute it.
void checkShape(const ConvShape& shape, uint64_t seed, int threads) {
  const uint64_t following = shape.kind == ConvKind::forward          ? 4
                             : shape.kind == ConvKind::input_gradient ? 2
                                                                      : 1;
  for (ConvMethod method : methodsOf(shape)) {
    SCOPED_TRACE(describe(shape) + ", " + nameOf(method));
    for (uint64_t follows = 0; follows < following; ++follows)
      EXPECT_EQ(HalfConv(shape, method, (seed & 15) + 16 * follows).difference(threads), "") << follows;
  }
}

/// All three convolutions in both types.
void checkAll(ConvShape shape, uint64_t seed, int threads = 1) {
  ASSERT_TRUE(countWindows(shape));
  for (ConvKind kind : kKinds)
    for (DataType type : kHalves) {
      shape.kind = kind;
      shape.type = type;
      checkShape(shape, seed, threads);
    }
}

TEST(ConvHalf, LayersOfTutorials) {
  checkAll(makeShape(2, 1, 6, axis(28, 5), axis(28, 5)), 1);
  checkAll(makeShape(2, 6, 16, axis(12, 5), axis(12, 5)), 2);
  checkAll(makeShape(1, 32, 64, axis(14, 3, 1, 1, 1), axis(14, 3, 1, 1, 1)), 4);
  checkAll(makeShape(1, 3, 64, axis(40, 7, 2, 3, 3), axis(40, 7, 2, 3, 3)), 5);
  checkAll(makeShape(1, 64, 128, axis(14, 1, 2), axis(14, 1, 2)), 6);
}

TEST(ConvHalf, ExtentsOfOne) {
  checkAll(makeShape(1, 1, 1, axis(1, 1), axis(1, 1)), 8);
  checkAll(makeShape(3, 2, 3, axis(1, 1), axis(9, 3, 1, 1, 1)), 9);  // one dimension
  checkAll(makeShape(3, 2, 3, axis(9, 9), axis(7, 7)), 10);          // the kernel is the image
}

// Where no tap reaches beside the pixel the input's gradient is rounded block by block.
TEST(ConvHalf, Pointwise) {
  checkAll(makeShape(1, 70, 90, axis(7, 1), axis(7, 1)), 7);
  checkAll(makeShape(2, 300, 500, axis(9, 1), axis(10, 1)), 20);
  checkAll(makeShape(2, 6, 9, axis(5, 1), axis(3, 1), 3), 21);
  checkAll(makeShape(2, 270, 70, axis(12, 1), axis(13, 1)), 23);
  checkAll(makeShape(1, 512, 64, axis(16, 1), axis(16, 1)), 24);
  checkAll(makeShape(2, 70, 270, axis(12, 1), axis(13, 1)), 25);
  checkAll(makeShape(3, 24, 300, axis(20, 1), axis(33, 1)), 26);
  checkAll(makeShape(2, 20, 390, axis(26, 1, 2), axis(29, 1, 2)), 27);
  checkAll(makeShape(2, 9, 8, axis(5, 1, 2), axis(258, 1, 2)), 28);
  checkAll(makeShape(7, 300, 70, axis(4, 1), axis(4, 1)), 29);
  checkAll(makeShape(17, 40, 580, axis(8, 1), axis(8, 1)), 30);
  checkAll(makeShape(1, 15, 130, axis(32, 1), axis(32, 1)), 39);
}

// More than one block of everything; parts of the filter's gradient that are added up, and one alone.
TEST(ConvHalf, SeveralBlocks) {
  checkAll(makeShape(1, 37, 70, axis(13, 3, 1, 1, 1), axis(11, 3, 1, 1, 1)), 17);
  checkAll(makeShape(1, 3, 500, axis(9, 3), axis(10, 3)), 18);
  checkAll(makeShape(2, 2, 5, axis(30, 14), axis(30, 13)), 19);  // a channel of 182 patch rows
  checkAll(makeShape(1, 200, 600, axis(3, 3, 1, 1, 1), axis(3, 3, 1, 1, 1)), 22);
}

// The methods for few channels: rows, outputs in one vector and in two, strips, several images at once, an
// image in each lane.
TEST(ConvHalf, FewChannels) {
  for (int64_t outputs : {3, 8, 16, 33}) {
    checkAll(makeShape(3, 2, outputs, axis(9, 5, 1, 2, 2), axis(17, 5, 1, 2, 2)), 31);
    checkAll(makeShape(20, 1, outputs, axis(9, 3), axis(15, 3)), 32);
    checkAll(makeShape(7, 8, 8 * outputs, axis(6, 3), axis(9, 3), 8), 35);  // parts of several chunks
    checkAll(makeShape(1, 3, outputs, axis(61, 3, 2, 1, 1), axis(150, 3, 2, 1, 1)), 33);
  }
  checkAll(makeShape(1, 2, 5, axis(61, 3, 1, 1, 1), axis(230, 3, 1, 1, 1)), 34);
  checkAll(makeShape(2, 97, 5, axis(19, 3, 1, 1, 1), axis(47, 5, 1, 2, 2)), 36);  // some channels at a time
  checkAll(makeShape(2, 70, 4, axis(13, 1), axis(47, 1)), 37);
}

// Small pictures with many channels; few by strides.
TEST(ConvHalf, ByChannels) {
  for (ConvShape shape : {makeShape(5, 33, 70, axis(4, 3, 1, 1, 1), axis(5, 3, 2, 1, 1)),
                          makeShape(3, 64, 32, axis(2, 3, 1, 1, 1), axis(2, 3, 1, 1, 1)),
                          makeShape(5, 27, 60, axis(9, 3, 2, 1, 1), axis(10, 3, 2, 1, 1), 3),
                          makeShape(3, 40, 40, axis(9, 3, 2, 1, 1), axis(10, 3, 2, 1, 1), 5),
                          makeShape(3, 28, 28, axis(9, 3, 1, 1, 1), axis(10, 5, 1, 2, 2), 7)}) {
    ASSERT_TRUE(countWindows(shape) && fitsMethod(shape, ConvMethod::by_channels));
    checkAll(shape, 36, 2);
  }
}

// One tap by strides: what is left is by channels, or as many pixels side by side, which tiles may take; and
// windows that adjoin.
TEST(ConvHalf, Subsampled) {
  for (ConvShape shape : {makeShape(17, 80, 130, axis(9, 1, 2), axis(9, 1, 2), 2),
                          makeShape(9, 33, 100, axis(32, 1, 2), axis(37, 1, 2)),
                          makeShape(2, 33, 70, axis(24, 1, 2), axis(25, 1, 2)),
                          makeShape(3, 3, 100, axis(32, 4, 4), axis(70, 4, 4)),
                          makeShape(2, 3, 64, axis(33, 8, 8), axis(50, 10, 10))}) {
    ASSERT_TRUE(countWindows(shape) && fitsMethod(shape, ConvMethod::subsampled));
    checkAll(shape, 38, 2);
  }
}

// Depthwise, with strips and blocks of channels.
TEST(ConvHalf, Depthwise) {
  for (const ConvShape& shape : {makeShape(2, 3, 3, axis(61, 3, 1, 1, 1), axis(150, 3, 1, 1, 1), 3),
                                 makeShape(3, 70, 140, axis(15, 5, 2, 2, 2), axis(14, 5, 2, 2, 2), 70),
                                 makeShape(2, 2, 2, axis(40, 7, 1, 3, 3), axis(512, 7, 1, 3, 3), 2),
                                 makeShape(1, 2, 4, axis(39, 7, 2, 3, 3), axis(512, 7, 2, 3, 3), 2),
                                 makeShape(1, 2, 4, axis(16, 3, 1, 1, 1), axis(512, 3, 1, 1, 1), 2),
                                 makeShape(5, 133, 133, axis(7, 3, 1, 1, 1), axis(7, 3, 1, 1, 1), 133)}) {
    EXPECT_TRUE(fitsDepthwise(shape));
    checkAll(shape, 37, 2);
  }
}

TEST(ConvHalf, RandomShapes) {
  std::mt19937_64 random(8);
  auto upTo = [&](int64_t most) { return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  for (int i = 0; i < 100; ++i) {
    auto any = [&] { return axis(upTo(17), upTo(5), upTo(3), upTo(4) - 1, upTo(4) - 1, upTo(3)); };
    const int64_t groups = upTo(3);
    const int64_t outputs = upTo(2) == 1 ? upTo(20) : 31 + upTo(9);  // few, or enough for patches
    const int64_t batch = upTo(3) == 1 ? 11 + upTo(22) : upTo(3);    // an image in each lane, or not
    ConvShape shape = makeShape(batch, groups * upTo(5), groups * outputs, any(), any(), groups);
    if (countWindows(shape)) checkAll(shape, random());
  }
}

// Depthwise, f32 has kernels that meet some images at once.
TEST(ConvHalf, DepthwiseOfSmallPlanes) {
  for (int64_t kernel : {3, 5, 7})
    for (int64_t stride : {1, 2})
      for (int64_t side : {4, 7, 8, 14})
        for (int64_t channels : {18, 37}) {
          const ConvAxis axes = axis(side, kernel, stride, kernel / 2, kernel / 2);
          checkAll(makeShape(41, channels, channels, axes, axes, channels), static_cast<uint64_t>(side));
        }
}

TEST(ConvHalf, BitsDoNotDependOnThreads) {
  for (int threads : {1, 2, 3})
    for (int64_t outputs : {4, 40})
      checkAll(makeShape(20, 3, outputs, axis(19, 3, 1, 1, 2), axis(21, 5, 1, 1, 2)), 4, threads);
  for (int threads : {1, 2, 3})
    checkAll(makeShape(20, 23, 37, axis(19, 3, 2, 1, 2), axis(21, 5, 1, 1, 2)), 3, threads);
}

// Sums beyond f16's largest number, NaN and infinities go where f32 has them.
TEST(ConvHalf, OverflowAndNan) {
  for (ConvKind kind : kKinds)
    for (DataType type : kHalves) {
      ConvShape shape = makeShape(2, 2, 3, axis(9, 3, 1, 1, 1), axis(9, 3, 1, 1, 1));
      ASSERT_TRUE(countWindows(shape));
      shape.kind = kind, shape.type = type;
      for (ConvMethod method : methodsOf(shape)) {
        SCOPED_TRACE(describe(shape) + ", " + nameOf(method));
        HalfConv problem(shape, method, 3);
        for (size_t i = 10; i < 20; ++i) problem.a()[i] = rounded(60000, type);
        problem.a()[60] = rounded(std::numeric_limits<float>::quiet_NaN(), type);
        problem.a()[90] = rounded(-std::numeric_limits<float>::infinity(), type);
        EXPECT_EQ(problem.difference(1), "");
      }
    }
}

TEST(ConvHalf, RunAllocatesNothing) {
  for (ConvKind kind : kKinds) {
    ConvShape shape = makeShape(4, 16, 32, axis(14, 3, 1, 1, 1), axis(14, 3, 1, 1, 1));
    ASSERT_TRUE(countWindows(shape));
    shape.kind = kind, shape.type = DataType::f16;
    const std::vector<uint16_t> a = randomHalves(4 * 32 * 14 * 14, DataType::f16, 1), b = a;
    std::vector<uint16_t> c = a;
    for (ConvMethod method : methodsOf(shape)) {
      std::vector<char> workspace(static_cast<size_t>(convWorkspaceBytes(shape, method)));
      const ConvKernel kernel = kernelFor(shape, method);
      const AllocationCount before = allocationCount();
      for (int phase = 0; phase < kernel.phaseCount(); ++phase)
        kernel.run(phase, {a.data(), b.data(), c.data(), nullptr, workspace.data()}, 0, kernel.tiles(phase));
      EXPECT_EQ(allocationCount().total(), before.total());
    }
  }
}

// 6 · 25 elements of the filter and 10 up to the next cache line; 8 parts of the filter's gradient, as in
// f32, and one where f32 needs none; 2 · 21 · 21 of the input where each tap is added to it.
TEST(ConvHalf, WorkspaceHoldsWhatIsF32) {
  ConvShape shape = makeShape(32, 1, 6, axis(28, 5), axis(28, 5));
  ASSERT_TRUE(countWindows(shape));
  shape.type = DataType::bf16;
  EXPECT_EQ(convWorkspaceBytes(shape, ConvMethod::by_images), 160 * 4);
  shape.kind = ConvKind::input_gradient;
  EXPECT_EQ(convWorkspaceBytes(shape, ConvMethod::by_images), 160 * 4);
  shape.kind = ConvKind::filter_gradient;
  EXPECT_EQ(convWorkspaceBytes(shape, ConvMethod::by_rows), 8 * 6 * 25 * 4);
  shape.batch = 1;
  EXPECT_EQ(convWorkspaceBytes(shape, ConvMethod::by_rows), 6 * 25 * 4);
  shape.batch = 32;
  ConvShape strided = makeShape(2, 1, 6, axis(21, 5, 2), axis(21, 5, 2));
  ASSERT_TRUE(countWindows(strided));
  strided.type = DataType::bf16, strided.kind = ConvKind::input_gradient;
  EXPECT_EQ(convWorkspaceBytes(strided, ConvMethod::patches), (160 + 2 * 21 * 21) * 4);
  shape.kind = ConvKind::forward;
  EXPECT_EQ(ConvKernel::create(shape, ConvMethod::by_images, 639).message(),
            "conv: the plan gives 639 bytes of workspace, 640 are needed; compile the plan again with this "
            "version of gpuc");
  ConvShape pointwise = makeShape(2, 4, 6, axis(5, 1), axis(5, 1));
  ASSERT_TRUE(countWindows(pointwise));
  pointwise.type = DataType::f16;
  pointwise.kind = ConvKind::input_gradient;
  EXPECT_EQ(convWorkspaceBytes(pointwise, ConvMethod::patches), 32 * 4);  // 24 elements of the filter and 8
}

}  // namespace
}  // namespace gpuc
