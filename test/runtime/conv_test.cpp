// The host's convolutions against plain loops in f64: values, bits, bounds of memory, allocations, errors.
#include "runtime/host/conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/tooling/allocation_hook.h"
#include "test/runtime/conv_reference.h"

namespace gpuc {
namespace {

ConvKernel kernelFor(const ConvShape& shape, ConvMethod method) {
  Result<ConvKernel> kernel = ConvKernel::create(shape, method, convWorkspaceBytes(shape, method));
  EXPECT_TRUE(kernel.ok()) << kernel.message();
  return kernel.ok() ? *std::move(kernel) : ConvKernel();
}

/// Runs all tiles of all phases in one thread.
void runWhole(const ConvKernel& kernel, const ConvOperands& operands) {
  for (int phase = 0; phase < kernel.phaseCount(); ++phase)
    kernel.run(phase, operands, 0, kernel.tiles(phase));
}

/// By every method that can compute it.
template <typename T>
void checkShape(const ConvShape& shape, uint64_t seed) {
  const auto expected = GuardedConv<T>(shape, seed).expected();
  for (ConvMethod method : methodsOf(shape)) {
    SCOPED_TRACE(describe(shape) + ", " + nameOf(method));
    GuardedConv<T> problem(shape, seed, method);
    runWhole(kernelFor(shape, method), problem.operands());
    EXPECT_EQ(problem.firstError(expected), "");
  }
}

/// All three convolutions in both types, by every method.
void checkAll(ConvShape shape, uint64_t seed) {
  ASSERT_TRUE(countWindows(shape));
  for (ConvKind kind : {ConvKind::forward, ConvKind::input_gradient, ConvKind::filter_gradient}) {
    shape.kind = kind;
    shape.type = DataType::f32;
    checkShape<float>(shape, seed);
    shape.type = DataType::f64;
    checkShape<double>(shape, seed);
  }
}

TEST(Conv, LayersOfTutorials) {
  checkAll(makeShape(2, 1, 6, axis(28, 5), axis(28, 5)), 1);
  checkAll(makeShape(2, 6, 16, axis(12, 5), axis(12, 5)), 2);
  checkAll(makeShape(2, 1, 32, axis(28, 3, 1, 1, 1), axis(28, 3, 1, 1, 1)), 3);
  checkAll(makeShape(1, 32, 64, axis(14, 3, 1, 1, 1), axis(14, 3, 1, 1, 1)), 4);
  checkAll(makeShape(1, 3, 64, axis(40, 7, 2, 3, 3), axis(40, 7, 2, 3, 3)), 5);
  checkAll(makeShape(1, 64, 128, axis(14, 1, 2), axis(14, 1, 2)), 6);
  checkAll(makeShape(1, 70, 90, axis(7, 1), axis(7, 1)), 7);
}

TEST(Conv, ExtentsOfOne) {
  checkAll(makeShape(1, 1, 1, axis(1, 1), axis(1, 1)), 8);
  checkAll(makeShape(3, 2, 3, axis(1, 1), axis(9, 3, 1, 1, 1)), 9);  // one dimension
  checkAll(makeShape(3, 2, 3, axis(9, 9), axis(7, 7)), 10);          // the kernel is the image
  checkAll(makeShape(2, 2, 2, axis(1, 3, 1, 1, 1), axis(1, 3, 2, 1, 1)), 11);
}

// Padding beyond half of the kernel, so that whole taps miss the image, and windows that miss it altogether.
TEST(Conv, WidePadding) {
  checkAll(makeShape(2, 2, 3, axis(3, 2, 1, 4, 5), axis(4, 3, 2, 6, 3)), 12);
  checkAll(makeShape(1, 2, 3, axis(3, 3, 2, 4, 0, 3), axis(5, 2, 1, 0, 7, 4)), 13);
}

TEST(Conv, Groups) {
  checkAll(makeShape(2, 6, 9, axis(7, 3, 1, 1, 1), axis(8, 3, 1, 1, 1), 3), 14);
  checkAll(makeShape(2, 8, 8, axis(7, 3, 1, 1, 1), axis(9, 3, 2, 1, 1), 8), 15);  // depthwise
  checkAll(makeShape(2, 4, 8, axis(7, 3), axis(9, 2), 4), 16);
}

// More than one block of everything: pixels, patch rows, outputs, channels.
TEST(Conv, SeveralBlocks) {
  checkAll(makeShape(1, 37, 70, axis(13, 3, 1, 1, 1), axis(11, 3, 1, 1, 1)), 17);
  checkAll(makeShape(1, 3, 500, axis(9, 3), axis(10, 3)), 18);
  checkAll(makeShape(2, 2, 5, axis(30, 14), axis(30, 13)), 19);  // a channel of 182 patch rows
  checkAll(makeShape(1, 300, 20, axis(6, 1), axis(6, 1)), 20);
}

// One tap at the pixel itself: of the filter's gradient the picture lies in the place of patches, or the
// cotangent does, where it has more channels. Blocks of rows, outputs and pixels, long and short ones, that
// are whole and cut short; one row of pixels.
TEST(Conv, Pointwise) {
  for (ConvShape shape :
       {makeShape(2, 270, 70, axis(12, 1), axis(13, 1)), makeShape(1, 256, 64, axis(16, 1), axis(16, 1)),
        makeShape(2, 70, 270, axis(12, 1), axis(13, 1)), makeShape(2, 24, 300, axis(20, 1), axis(33, 1)),
        makeShape(17, 300, 24, axis(20, 1), axis(33, 1)), makeShape(2, 100, 140, axis(17, 1), axis(16, 1)),
        makeShape(2, 16, 130, axis(25, 1), axis(27, 1)), makeShape(2, 30, 66, axis(15, 1), axis(10, 1), 2),
        makeShape(3, 40, 130, axis(1, 1), axis(129, 1)), makeShape(2, 66, 6, axis(15, 1), axis(10, 1), 2),
        makeShape(2, 15, 130, axis(32, 1), axis(64, 1)), makeShape(1, 140, 5, axis(32, 1), axis(32, 1))}) {
    checkAll(shape, 21);
  }
}

// Of many channels each product packs what the next one reads: blocks of one to four vectors of pixels, of
// which the last may be cut short, in one part of an image or several; heights of all blocks of channels;
// more or fewer rows to pack than blocks of channels; several blocks of depth, tiles of channels, groups.
TEST(Conv, PointwiseThatPacksAhead) {
  for (int64_t pixels : {70, 81, 97, 113, 131, 160, 193})
    checkAll(makeShape(2, 70, 66, axis(1, 1), axis(pixels, 1)), 33);
  for (int64_t channels : {1, 2, 3, 4, 5, 7, 8, 11})
    checkAll(makeShape(1, 100, channels, axis(9, 1), axis(15, 1)), 34);
  for (ConvShape shape :
       {makeShape(1, 130, 600, axis(9, 1), axis(11, 1)), makeShape(1, 600, 130, axis(9, 1), axis(11, 1)),
        makeShape(2, 210, 201, axis(16, 1), axis(32, 1), 3), makeShape(20, 65, 3, axis(10, 1), axis(13, 1)),
        makeShape(1, 129, 65, axis(40, 1), axis(40, 1))})
    checkAll(shape, 35);
}

// Few results of large pictures, with channels that fill vectors of sums and not; blocks that end amid a
// vector, one image in several tiles, groups, either way round.
TEST(Conv, PointwiseOfFewResults) {
  for (int64_t results : {1, 3, 4, 5, 8, 11, 12, 13, 15, 16})
    checkAll(makeShape(1, 17 + results, results, axis(45, 1), axis(47, 1)), 36);
  for (ConvShape shape :
       {makeShape(1, 192, 16, axis(1, 1), axis(2048, 1)), makeShape(2, 9, 120, axis(32, 1), axis(65, 1)),
        makeShape(2, 60, 21, axis(50, 1), axis(43, 1), 3), makeShape(17, 20, 2, axis(47, 1), axis(49, 1)),
        makeShape(1, 193, 16, axis(45, 1), axis(46, 1))})
    checkAll(shape, 37);
}

bool fits(ConvShape shape, ConvKind kind, ConvMethod method) {
  EXPECT_TRUE(countWindows(shape));
  shape.kind = kind;
  return fitsMethod(shape, method);
}

// Small pictures: of some images side by side, of whose blocks and parts the last has fewer, or of one where
// it lies; several blocks of what is added up, of channels and of a tile's channels; groups. In f64 other
// extents fill a vector.
TEST(Conv, PointwiseOfSmallPictures) {
  for (ConvShape shape :
       {makeShape(7, 300, 70, axis(4, 1), axis(4, 1)), makeShape(6, 70, 300, axis(4, 1), axis(8, 1)),
        makeShape(17, 40, 580, axis(8, 1), axis(8, 1)), makeShape(3, 340, 90, axis(8, 1), axis(8, 1)),
        makeShape(18, 66, 99, axis(2, 1), axis(8, 1), 3), makeShape(9, 5, 7, axis(1, 1), axis(48, 1)),
        makeShape(5, 70, 40, axis(2, 1), axis(4, 1)), makeShape(2, 33, 34, axis(8, 1), axis(16, 1))}) {
    checkAll(shape, 29);
    for (ConvKind kind : {ConvKind::forward, ConvKind::input_gradient, ConvKind::filter_gradient}) {
      shape.kind = kind;
      ASSERT_TRUE(countWindows(shape));
      shape.type = shape.outputPixels() % 16 == 0 ? DataType::f32 : DataType::f64;
      EXPECT_TRUE(isSmallPointwise(shape));
    }
  }
}

// One tap by strides: x's cotangent is a product with zeros between, in several blocks of rows, and behind
// the last window; of rows too long for a block it is added up.
TEST(Conv, OneTapByStrides) {
  for (int64_t extent : {26, 27, 28})
    checkAll(makeShape(2, 20, 30, axis(extent, 1, 2), axis(extent + 1, 1, 2)), 22);
  checkAll(makeShape(2, 150, 20, axis(40, 1, 3), axis(44, 1, 3)), 23);
  checkAll(makeShape(2, 16, 9, axis(30, 1, 1), axis(21, 1, 2)), 24);
  checkAll(makeShape(2, 16, 9, axis(31, 1, 2), axis(21, 1, 1)), 25);
  checkAll(makeShape(2, 34, 390, axis(8, 1, 2), axis(14, 1, 2), 2), 26);
  for (int64_t width : {127, 128, 129, 255, 256, 257, 258}) {
    ConvShape shape = makeShape(1, 9, 8, axis(5, 1, 2), axis(width, 1, 2));
    checkAll(shape, 27);
    ASSERT_TRUE(countWindows(shape));
    shape.kind = ConvKind::input_gradient;
    EXPECT_EQ(spreadsPixels(shape), width <= 256);
  }
}

// Rows of one vector and one more, of one lane and one less; outputs that fill blocks of registers or not.
// With many channels the pixels that are read come first, or x's cotangent is spread from them: what is left
// is by channels, of small pictures, or of large ones; pixels behind the last window, a stride either way,
// groups.
TEST(Conv, OneTapByStridesOfManyChannels) {
  for (ConvShape shape : {makeShape(3, 40, 70, axis(9, 1, 2), axis(12, 1, 2)),
                          makeShape(5, 33, 100, axis(8, 1, 2), axis(16, 1, 2)),
                          makeShape(2, 70, 34, axis(26, 1, 2), axis(37, 1, 2)),
                          makeShape(2, 66, 68, axis(7, 1, 3), axis(10, 1, 1), 2),
                          makeShape(2, 32, 40, axis(6, 1, 1), axis(11, 1, 4))}) {
    checkAll(shape, 28);
    for (ConvKind kind : {ConvKind::forward, ConvKind::input_gradient, ConvKind::filter_gradient})
      EXPECT_TRUE(fits(shape, kind, ConvMethod::subsampled));
  }
  EXPECT_FALSE(fits(makeShape(2, 40, 40, axis(9, 1, 2, 1, 1), axis(9, 1, 2)), ConvKind::forward,
                    ConvMethod::subsampled));  // a window in the padding
}

// Each element of a window is a channel: windows of one row of elements, of a vector and more, of four; rows
// of windows that fill vectors or not; elements behind the last windows, a window amid a row of groups.
TEST(Conv, WindowsThatAdjoin) {
  for (ConvShape shape : {makeShape(2, 3, 40, axis(32, 4, 4), axis(148, 4, 4)),
                          makeShape(3, 2, 96, axis(42, 8, 8), axis(71, 5, 5)),
                          makeShape(2, 3, 100, axis(83, 16, 16), axis(80, 16, 16)),
                          makeShape(1, 1, 64, axis(5, 1, 1), axis(100, 20, 20)),
                          makeShape(2, 6, 130, axis(34, 4, 4), axis(69, 4, 4), 2)}) {
    checkAll(shape, 31);
    for (ConvKind kind : {ConvKind::forward, ConvKind::filter_gradient})
      EXPECT_TRUE(fits(shape, kind, ConvMethod::subsampled));
    EXPECT_FALSE(fits(shape, ConvKind::input_gradient, ConvMethod::subsampled));
  }
  for (ConvAxis other :
       {axis(32, 4, 4, 1, 0), axis(32, 4, 5), axis(33, 4, 3), axis(32, 4, 4, 0, 4), axis(50, 4, 4, 0, 0, 2)})
    EXPECT_FALSE(fits(makeShape(2, 3, 100, axis(32, 4, 4), other), ConvKind::filter_gradient,
                      ConvMethod::subsampled));  // in the padding, apart, overlapping, dilated
}

// Many pixels: a tile takes its own, which begin and end amid rows; of rows of less than a vector, of one and
// of more; whole small pictures; blocks of depth, groups. Not where a tile would have but a part of the
// outputs, nor x's cotangent.
TEST(Conv, OneTapByStridesWhosePixelsTilesTake) {
  for (ConvShape shape : {makeShape(9, 47, 100, axis(32, 1, 2), axis(32, 1, 2)),
                          makeShape(3, 94, 98, axis(53, 1, 2), axis(61, 1, 2), 2),
                          makeShape(70, 46, 66, axis(16, 1, 2), axis(8, 1, 2)),
                          makeShape(3, 150, 33, axis(60, 1, 2), axis(70, 1, 3)),
                          makeShape(14, 32, 258, axis(24, 1, 2), axis(25, 1, 2))}) {
    checkAll(shape, 30);
    ASSERT_TRUE(countWindows(shape));
    for (ConvKind kind : {ConvKind::forward, ConvKind::input_gradient, ConvKind::filter_gradient}) {
      shape.kind = kind;
      const bool of_one_tile = shape.out_channels > shape.in_channels && shape.out_channels <= 256;
      EXPECT_EQ(takesPixelsByTile(shape, ConvMethod::subsampled),
                kind == ConvKind::forward || (kind == ConvKind::filter_gradient && of_one_tile));
    }
  }
  ConvShape few = makeShape(3, 40, 70, axis(20, 1, 2), axis(30, 1, 2));
  ConvShape large = makeShape(9, 300, 500, axis(32, 1, 2), axis(32, 1, 2));
  ASSERT_TRUE(countWindows(few) && countWindows(large));
  EXPECT_FALSE(takesPixelsByTile(few, ConvMethod::subsampled));
  EXPECT_FALSE(takesPixelsByTile(large, ConvMethod::subsampled));
}

TEST(Conv, FewChannelsByRows) {
  for (int64_t width : {5, 15, 16, 17, 33}) {
    const ConvShape shape =
        makeShape(3, width % 9 + 1, width % 8 + 1, axis(6, 3, 1, 1, 1), axis(width, 3, 1, 1, 1));
    EXPECT_TRUE(fits(shape, ConvKind::forward, ConvMethod::by_rows));
    EXPECT_TRUE(fits(shape, ConvKind::input_gradient, ConvMethod::by_rows));
    checkAll(shape, static_cast<uint64_t>(100 + width));
  }
  for (int64_t channels = 1; channels <= 9; ++channels)
    checkAll(makeShape(2, channels, 10 - channels, axis(7, 2, 1, 0, 1), axis(12 + channels, 4, 1, 2, 0)),
             static_cast<uint64_t>(200 + channels));
}

// An output in each lane of the filter's gradient: one vector and two, of any length, and kernels of each
// width.
TEST(Conv, FewChannelsByOutputs) {
  for (int64_t kernel : {3, 5, 7})
    for (int64_t outputs : {9, 15, 16, 17, 24, 31, 32, 33, 64}) {
      const ConvShape shape =
          makeShape(2, outputs % 3 + 1, outputs, axis(9, kernel, 1, 1, 2), axis(11, kernel, 1, 0, 2));
      EXPECT_TRUE(fits(shape, ConvKind::filter_gradient, ConvMethod::by_outputs));
      checkAll(shape, static_cast<uint64_t>(300 + outputs));
    }
}

// So by strides, of stems: rows lie whole, and an output's pixels as many elements apart as it strides.
TEST(Conv, StemsByOutputs) {
  for (int64_t kernel : {3, 4, 5, 7, 8, 11})
    for (int64_t outputs : {16, 33, 48, 64}) {
      const int64_t stride = 2 + kernel % 3;
      const ConvShape shape = makeShape(3, outputs % 7 + 1, outputs, axis(31, kernel, stride, 1, 2),
                                        axis(14 * stride + kernel - 1, kernel, stride, 1, 0));
      EXPECT_TRUE(fits(shape, ConvKind::filter_gradient, ConvMethod::by_outputs));
      checkAll(shape, static_cast<uint64_t>(800 + outputs));
    }
  checkAll(makeShape(2, 3, 32, axis(130, 3, 2, 1, 1), axis(127, 3, 2, 1, 1)), 801);   // several strips
  checkAll(makeShape(2, 6, 32, axis(30, 3, 1, 1, 1), axis(33, 3, 2, 1, 1), 2), 802);  // groups
  checkAll(makeShape(2, 3, 32, axis(30, 3, 3, 1, 1, 2), axis(35, 5, 2, 2, 2)), 803);  // rows dilated
}

// An image in each lane: vectors of images that are full or not, blocks of outputs and pixels of each size,
// strips, strides, dilation, groups, and padding that no window meets.
TEST(Conv, FewChannelsByImages) {
  auto check = [](const ConvShape& shape, uint64_t seed) {
    EXPECT_TRUE(fits(shape, ConvKind::forward, ConvMethod::by_images));
    checkAll(shape, seed);
  };
  for (int64_t batch : {12, 15, 16, 31, 32, 48})
    check(makeShape(batch, batch % 5 + 1, batch % 7 + 2, axis(7, 3, 1, 1, 1), axis(9, 3, 1, 1, 1)), 400);
  for (int64_t outputs = 1; outputs <= 17; ++outputs)
    check(makeShape(16, 3, outputs, axis(5, 3), axis(4 + outputs, 5, 1, 2, 0)), 420);
  check(makeShape(16, 6, 16, axis(40, 5), axis(14, 5)), 440);  // several strips
  // By strides with few taps rows are not brought together.
  const ConvShape strided = makeShape(16, 3, 33, axis(31, 3, 2, 1, 1), axis(32, 3, 2, 1, 1));
  EXPECT_TRUE(fits(strided, ConvKind::forward, ConvMethod::by_rows));
  checkAll(strided, 445);
  check(makeShape(16, 3, 33, axis(31, 7, 2, 3, 3), axis(32, 7, 2, 3, 3)), 446);
  check(makeShape(32, 3, 5, axis(20, 3, 2, 1, 1), axis(21, 5, 3, 2, 2)), 441);
  check(makeShape(16, 2, 4, axis(17, 3, 1, 2, 1, 3), axis(19, 3, 1, 0, 2, 2)), 442);
  check(makeShape(16, 16, 8, axis(6, 3, 1, 1, 1), axis(9, 3, 1, 1, 1), 8), 443);
  check(makeShape(16, 2, 3, axis(4, 2, 1, 6, 5), axis(5, 2, 1, 7, 4)), 444);
  check(makeShape(16, 1, 2, axis(9, 2, 4), axis(9, 2, 4)), 445);  // pixels that no window holds
}

// Images of more than one strip, the last of them shorter; several images at once, the last time fewer.
TEST(Conv, StripsAndChunks) {
  const ConvShape tall = makeShape(2, 5, 3, axis(83, 3, 1, 1, 1), axis(70, 3, 1, 1, 1));
  const ConvShape wide = makeShape(2, 2, 20, axis(61, 5, 1, 2, 2), axis(110, 5, 1, 2, 2));
  for (ConvKind kind : {ConvKind::forward, ConvKind::input_gradient, ConvKind::filter_gradient})
    for (ConvShape shape : {tall, wide}) {
      const bool by_outputs = kind == ConvKind::filter_gradient && shape.out_channels == 20;
      const ConvMethod method = by_outputs ? ConvMethod::by_outputs : ConvMethod::by_rows;
      ASSERT_TRUE(fits(shape, kind, method));
      shape.kind = kind;
      ASSERT_TRUE(countWindows(shape));
      const DirectCut cut = cutDirect(shape, method);
      EXPECT_GT(cut.strips, 1);
      EXPECT_NE(correlationOf(shape).height.output % cut.strip_rows, 0);
    }
  checkAll(tall, 401);
  checkAll(wide, 402);
  for (int64_t outputs : {5, 16}) {
    ConvShape many = makeShape(29, 2, outputs, axis(9, 3), axis(12, 3));
    ASSERT_TRUE(countWindows(many));
    many.kind = ConvKind::filter_gradient;
    for (ConvMethod method : {ConvMethod::by_rows, ConvMethod::by_outputs}) {
      const DirectCut cut = cutDirect(many, method);
      EXPECT_GT(cut.images, 1);
      EXPECT_NE(many.batch % cut.images, 0);
    }
    checkAll(many, 403);
  }
}

// Parts of more than one chunk, whose sums follow one another.
TEST(Conv, SeveralChunksInAPart) {
  for (int64_t outputs : {2, 16}) {
    ConvShape shape = makeShape(7, 8, 8 * outputs, axis(6, 3), axis(9, 3), 8);
    ASSERT_TRUE(countWindows(shape));
    shape.kind = ConvKind::filter_gradient;
    for (ConvMethod method : {ConvMethod::by_rows, ConvMethod::by_outputs}) {
      const DirectCut cut = cutDirect(shape, method);
      EXPECT_GT(cut.chunks, cut.parts);
      EXPECT_GT(cut.parts, 1);
    }
    checkAll(shape, 404);
  }
}

// Of many channels some are packed at a time, the last time fewer; their sums follow one another. Rows of one
// vector and more, strips, few taps and many, strides, dilation, groups.
TEST(Conv, FewOutputsOfManyChannels) {
  for (ConvShape shape : {makeShape(2, 64, 3, axis(22, 9, 1, 4, 4), axis(35, 9, 1, 4, 4)),
                          makeShape(3, 131, 1, axis(30, 3, 1, 1, 1), axis(33, 3, 1, 1, 1)),
                          makeShape(2, 97, 5, axis(19, 3, 1, 1, 1), axis(47, 5, 1, 2, 2)),
                          makeShape(2, 70, 2, axis(41, 4, 2, 1, 1), axis(50, 4, 2, 1, 1)),
                          makeShape(1, 90, 4, axis(25, 3, 1, 2, 2, 2), axis(70, 3, 1, 2, 2, 2)),
                          makeShape(2, 240, 6, axis(12, 3, 1, 1, 1), axis(31, 3, 1, 1, 1), 2)}) {
    ASSERT_TRUE(countWindows(shape));
    for (ConvKind kind : {ConvKind::forward, ConvKind::filter_gradient}) {
      ASSERT_TRUE(fits(shape, kind, ConvMethod::by_rows));
      shape.kind = kind;
      const DirectCut cut = cutDirect(shape, ConvMethod::by_rows);
      EXPECT_LT(cut.channels, shape.groupInputs());
      EXPECT_NE(shape.groupInputs() % cut.channels, 0);
    }
    checkAll(shape, 33);
  }
}

// One tap of few outputs: long rows are read where others are brought together.
TEST(Conv, OneTapOfFewOutputs) {
  for (int64_t outputs : {1, 2, 4, 5})
    for (int64_t width : {31, 32, 47, 64}) {
      const ConvShape shape = makeShape(3, 70, outputs, axis(13, 1), axis(width, 1));
      EXPECT_TRUE(fits(shape, ConvKind::filter_gradient, ConvMethod::by_rows));
      checkAll(shape, static_cast<uint64_t>(700 + width));
    }
}

// One tap, summed up along pixels: runs of a picture, the last one shorter, and several small pictures at a
// time, the last time fewer; of x and dy the one or the other has fewer channels; groups.
TEST(Conv, OneTapAlongPixels) {
  for (const auto& [inputs, outputs] : {std::pair{24, 70}, {70, 24}, {5, 5}, {64, 66}, {1, 40}}) {
    ConvShape large = makeShape(3, inputs, outputs, axis(31, 1), axis(47, 1));
    ConvShape small = makeShape(35, inputs, outputs, axis(5, 1), axis(7, 1));
    for (ConvShape* shape : {&large, &small}) {
      shape->kind = ConvKind::filter_gradient;
      ASSERT_TRUE(countWindows(*shape));
      ASSERT_TRUE(fitsMethod(*shape, ConvMethod::by_rows));
    }
    const PixelRowsCut runs = cutPixelRows(large), images = cutPixelRows(small);
    EXPECT_GT(runs.runs, 1);
    EXPECT_NE(large.outputPixels() % runs.run, 0);
    EXPECT_GT(images.images, 1);
    EXPECT_NE(small.batch % images.images, 0);
    EXPECT_EQ(images.few_inputs, inputs < outputs);
    checkAll(large, 720);
    checkAll(small, 721);
  }
  checkAll(makeShape(3, 36, 90, axis(20, 1), axis(32, 1), 3), 722);
  ConvShape wide = makeShape(2, 65, 66, axis(8, 1), axis(8, 1));
  ASSERT_TRUE(countWindows(wide));
  EXPECT_FALSE(fits(wide, ConvKind::filter_gradient, ConvMethod::by_rows));
}

// One row of the result reads more of 16 images than is packed of several rows.
TEST(Conv, ImagesOfWhichOneRowIsPacked) {
  ConvShape shape = makeShape(16, 4, 9, axis(20, 8, 4), axis(84, 8, 4));
  ASSERT_TRUE(countWindows(shape));
  ASSERT_TRUE(fits(shape, ConvKind::forward, ConvMethod::by_images));
  EXPECT_EQ(cutImages(shape).strip_rows, 1);
  EXPECT_GT(cutImages(shape).packed_rows * cutImages(shape).packed_columns * 4 * 64, 128 * 1024);
  checkAll(shape, 447);
}

// Strides become phases of the packed image, which differ in height and width; dilation reaches across them.
TEST(Conv, FewChannelsWithStrides) {
  for (int64_t stride : {2, 3})
    for (int64_t dilation : {1, 2, 3}) {
      const ConvShape shape =
          makeShape(2, 3, 7, axis(23, 5, stride, 2, 1, dilation), axis(41, 4, 5 - stride, 1, 3, dilation));
      EXPECT_TRUE(fits(shape, ConvKind::forward, ConvMethod::by_rows));
      EXPECT_TRUE(fits(shape, ConvKind::filter_gradient, ConvMethod::by_rows));
      checkAll(shape, static_cast<uint64_t>(500 + 10 * stride + dilation));
    }
}

// Padding beyond the kernel: the cotangent that is packed for the input's gradient begins before the image.
TEST(Conv, FewChannelsWithWidePadding) {
  checkAll(makeShape(2, 2, 3, axis(6, 3, 1, 4, 3), axis(13, 2, 1, 3, 5)), 601);
  checkAll(makeShape(2, 2, 17, axis(6, 3, 1, 5, 0), axis(4, 3, 1, 0, 7)), 602);
  checkAll(makeShape(1, 1, 1, axis(1, 5, 1, 2, 2), axis(1, 5, 1, 2, 2)), 603);
}

// NaN and infinities beside a row's last window belong to no sum of the lanes behind it.
TEST(Conv, NanOutsideOfAllWindowsIsNotRead) {
  for (int64_t outputs : {3, 16}) {
    ConvShape shape = makeShape(2, 1, outputs, axis(8, 3), axis(14, 3, 2));  // column 13 is in no window
    for (ConvKind kind : {ConvKind::forward, ConvKind::filter_gradient}) {
      shape.kind = kind;
      ASSERT_TRUE(countWindows(shape));
      for (ConvMethod method : methodsOf(shape)) {
        SCOPED_TRACE(nameOf(method));
        GuardedConv<float> problem(shape, 7, method);
        for (int64_t row = 0; row < 16; ++row)
          problem.x()[row * 14 + 13] = std::numeric_limits<float>::quiet_NaN();
        runWhole(kernelFor(shape, method), problem.operands());
        EXPECT_EQ(problem.firstError(), "");
      }
    }
  }
}

// A column that only the later taps read is infinite: the others' sums stay finite.
TEST(Conv, InfinityStaysWithItsTaps) {
  ConvShape shape = makeShape(2, 1, 3, axis(8, 3), axis(14, 3));
  shape.kind = ConvKind::filter_gradient;
  ASSERT_TRUE(countWindows(shape));
  for (ConvMethod method : methodsOf(shape)) {
    SCOPED_TRACE(nameOf(method));
    GuardedConv<float> problem(shape, 7, method);
    for (int64_t row = 0; row < 16; ++row)
      problem.x()[row * 14 + 13] = std::numeric_limits<float>::quiet_NaN();
    runWhole(kernelFor(shape, method), problem.operands());
    EXPECT_EQ(problem.firstError(), "");
    const std::vector<float> dw = problem.result();
    EXPECT_EQ(std::count_if(dw.begin(), dw.end(), [](float v) { return std::isnan(v); }), 3 * 3);
  }
}

// Tiles that come in any order, as of several threads: rows of less than a vector, by strides, do not reach
// into what is behind their picture.
TEST(Conv, ShortRowsStayInTheirTiles) {
  for (int64_t width : {1, 2, 3, 5, 7, 9, 15})
    for (int64_t channels : {20, 150}) {
      ConvShape shape = makeShape(3, channels, 30, axis(7, 1, 2), axis(width, 1, 2));
      ASSERT_TRUE(countWindows(shape));
      shape.kind = ConvKind::input_gradient;
      for (ConvMethod method : methodsOf(shape)) {
        SCOPED_TRACE(describe(shape) + ", " + nameOf(method));
        GuardedConv<float> problem(shape, 29, method);
        ConvKernel kernel = kernelFor(shape, method);
        for (int phase = 0; phase < kernel.phaseCount(); ++phase)
          for (int64_t tile = kernel.tiles(phase); tile-- > 0;)
            kernel.run(phase, problem.operands(), tile, tile + 1);
        EXPECT_EQ(problem.firstError(), "");
      }
    }
}

TEST(Conv, RandomShapes) {
  std::mt19937_64 random(7);
  auto upTo = [&](int64_t most) { return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  for (int i = 0; i < 150; ++i) {
    auto any = [&] { return axis(upTo(17), upTo(5), upTo(3), upTo(4) - 1, upTo(4) - 1, upTo(3)); };
    const int64_t groups = upTo(3);
    const int64_t outputs = upTo(2) == 1 ? upTo(20) : 31 + upTo(9);  // few, or enough for patches
    const int64_t batch = upTo(3) == 1 ? 11 + upTo(22) : upTo(3);    // an image in each lane, or not
    ConvShape shape = makeShape(batch, groups * upTo(5), groups * outputs, any(), any(), groups);
    if (countWindows(shape)) checkAll(shape, random());
  }
}

/// What follows changes nothing of the sums: bit for bit what comes out one after the other.
template <typename T>
void checkFinish(ConvShape shape, ConvMethod method, uint64_t seed) {
  GuardedConv<T> bare(shape, seed, method);
  runWhole(kernelFor(shape, method), bare.operands());
  const bool forward = shape.kind == ConvKind::forward;
  for (int follows = 1; follows < (forward ? 4 : 2); ++follows) {
    shape.bias = forward && (follows & 1), shape.relu = follows & 2, shape.mask = !forward;
    SCOPED_TRACE(describe(shape) + ", " + nameOf(method));
    GuardedConv<T> problem(shape, seed, method);
    runWhole(kernelFor(shape, method), problem.operands());
    const std::vector<T> expected = problem.finished(bare.result()), found = problem.result();
    EXPECT_EQ(std::memcmp(expected.data(), found.data(), found.size() * sizeof(T)), 0);
  }
}

TEST(Conv, FinishesWhatItSummedUp) {
  const ConvShape shapes[] = {makeShape(31, 2, 5, axis(7, 3, 1, 1, 1), axis(9, 3, 1, 1, 1)),  // by images
                              makeShape(16, 8, 8, axis(6, 3, 1, 1, 1), axis(9, 3, 1, 1, 1), 8),
                              makeShape(2, 1, 6, axis(28, 5, 1, 2, 2), axis(28, 5, 1, 2, 2)),  // by rows
                              makeShape(2, 6, 16, axis(14, 5), axis(14, 5)),
                              makeShape(1, 4, 8, axis(9, 3, 2, 1, 0), axis(13, 3, 1, 1, 1), 4),
                              makeShape(1, 32, 64, axis(14, 3, 1, 1, 1), axis(14, 3, 1, 1, 1)),  // by patches
                              makeShape(2, 40, 300, axis(7, 3), axis(9, 3)),
                              makeShape(1, 64, 96, axis(14, 1, 2), axis(14, 1, 2), 2),
                              makeShape(3, 130, 70, axis(5, 1), axis(5, 1)),
                              makeShape(17, 40, 280, axis(20, 1), axis(33, 1)),
                              makeShape(3, 290, 280, axis(20, 1), axis(33, 1)),
                              makeShape(6, 300, 280, axis(4, 1), axis(4, 1)),
                              makeShape(1, 11, 40, axis(45, 1), axis(47, 1)),  // of few results
                              makeShape(1, 60, 21, axis(45, 1), axis(47, 1), 3)};
  for (uint64_t seed = 0; ConvShape shape : shapes)
    for (ConvKind kind : {ConvKind::forward, ConvKind::input_gradient}) {
      ASSERT_TRUE(countWindows(shape));
      shape.kind = kind;
      ++seed;
      for (ConvMethod method : methodsOf(shape)) checkFinish<float>(shape, method, seed);
      shape.type = DataType::f64;
      for (ConvMethod method : methodsOf(shape)) checkFinish<double>(shape, method, seed + 16);
      shape.type = DataType::f32;
    }
}

// Computed whole, and by random splits in random order by three threads. The bits must agree.
TEST(Conv, BitsDoNotDependOnTheSplit) {
  std::mt19937_64 random(11);
  std::vector<ConvShape> shapes;
  for (ConvKind kind : {ConvKind::forward, ConvKind::input_gradient, ConvKind::filter_gradient})
    for (ConvShape shape :
         {makeShape(5, 23, 37, axis(19, 3, 2, 1, 2), axis(21, 5, 1, 1, 2)),
          makeShape(20, 3, 5, axis(19, 3, 1, 1, 2), axis(21, 5, 1, 1, 2)),
          makeShape(20, 3, 40, axis(19, 3, 1, 1, 2), axis(21, 5, 1, 1, 2)),
          makeShape(17, 40, 280, axis(20, 1), axis(33, 1)), makeShape(17, 96, 280, axis(4, 1), axis(4, 1)),
          makeShape(3, 130, 300, axis(20, 1), axis(33, 1)), makeShape(2, 40, 15, axis(45, 1), axis(47, 1)),
          makeShape(20, 96, 200, axis(19, 1, 2), axis(20, 1, 2))}) {
      shape.kind = kind;
      ASSERT_TRUE(countWindows(shape));
      shapes.push_back(shape);
    }
  auto check = [&](const ConvShape& shape, ConvMethod method) {
    SCOPED_TRACE(describe(shape) + ", " + nameOf(method));
    GuardedConv<float> problem(shape, 3, method);
    ConvKernel kernel = kernelFor(shape, method);
    runWhole(kernel, problem.operands());
    const std::vector<float> whole = problem.result();
    problem.poisonResult();
    for (int phase = 0; phase < kernel.phaseCount(); ++phase) {
      std::vector<int64_t> tiles(static_cast<size_t>(kernel.tiles(phase)));
      for (size_t i = 0; i < tiles.size(); ++i) tiles[i] = static_cast<int64_t>(i);
      std::shuffle(tiles.begin(), tiles.end(), random);
      auto runThird = [&](size_t first) {
        for (size_t i = first; i < tiles.size(); i += 3)
          kernel.run(phase, problem.operands(), tiles[i], tiles[i] + 1);
      };
      std::thread second(runThird, 1), third(runThird, 2);
      runThird(0);
      second.join();
      third.join();
    }
    const std::vector<float> split = problem.result();
    EXPECT_EQ(std::memcmp(whole.data(), split.data(), whole.size() * sizeof(float)), 0);
  };
  for (const ConvShape& shape : shapes)
    for (ConvMethod method : methodsOf(shape)) check(shape, method);
}

// A NaN in the input reaches the windows that hold it and no others; what is outside of the image is no NaN.
TEST(Conv, NanStaysInItsWindows) {
  ConvShape shape = makeShape(1, 2, 3, axis(9, 3, 1, 1, 1), axis(9, 3, 1, 1, 1));
  ASSERT_TRUE(countWindows(shape));
  for (ConvMethod method : methodsOf(shape)) {
    SCOPED_TRACE(nameOf(method));
    GuardedConv<float> problem(shape, 3, method);
    problem.x()[4 * 9 + 4] = std::numeric_limits<float>::quiet_NaN();
    runWhole(kernelFor(shape, method), problem.operands());
    EXPECT_EQ(problem.firstError(), "");
    const std::vector<float> y = problem.result();
    EXPECT_EQ(std::count_if(y.begin(), y.end(), [](float v) { return std::isnan(v); }), 3 * 9);
  }
}

TEST(Conv, RunAllocatesNothing) {
  std::vector<ConvShape> shapes;
  for (ConvKind kind : {ConvKind::forward, ConvKind::input_gradient, ConvKind::filter_gradient})
    for (ConvShape shape : {makeShape(4, 3, 5, axis(14, 3, 1, 1, 1), axis(14, 3, 1, 1, 1)),
                            makeShape(4, 16, 32, axis(14, 3, 1, 1, 1), axis(14, 3, 2, 1, 1)),
                            makeShape(2, 130, 70, axis(14, 1), axis(14, 1)),
                            makeShape(4, 16, 32, axis(14, 3, 1, 1, 1), axis(14, 3, 1, 1, 1))}) {
      shape.kind = kind;
      ASSERT_TRUE(countWindows(shape));
      shapes.push_back(shape);
    }
  for (const ConvShape& shape : shapes)
    for (ConvMethod method : methodsOf(shape)) {
      GuardedConv<float> problem(shape, 5, method);
      ConvKernel kernel = kernelFor(shape, method);
      const ConvOperands operands = problem.operands();
      const AllocationCount before = allocationCount();
      runWhole(kernel, operands);
      EXPECT_EQ(allocationCount().total(), before.total());
    }
}

// The plan reserves what the compiler computed; a runtime that needs more must say so.
TEST(Conv, WorkspaceHoldsThePartsOfAFiltersGradient) {
  ConvShape shape = makeShape(32, 1, 6, axis(28, 5), axis(28, 5));
  ASSERT_TRUE(countWindows(shape));
  EXPECT_EQ(convWorkspaceBytes(shape, ConvMethod::by_images), 0);
  shape.kind = ConvKind::filter_gradient;
  // Four images at once, so 8 parts.
  EXPECT_EQ(convWorkspaceBytes(shape, ConvMethod::by_rows), 8 * 6 * 25 * 4);
  Result<ConvKernel> kernel = ConvKernel::create(shape, ConvMethod::by_rows, 100);
  EXPECT_EQ(kernel.message(),
            "conv: the plan gives 100 bytes of workspace, 4800 are needed; compile the plan again with this "
            "version of gpuc");
}

std::string errorOf(const ConvShape& shape) {
  return ConvKernel::create(shape, convWorkspaceBytes(shape)).message();
}

TEST(Conv, ErrorsNameTheCulprit) {
  ConvShape shape = makeShape(2, 4, 6, axis(7, 3), axis(8, 3));
  ASSERT_TRUE(countWindows(shape));
  ConvShape integers = shape;
  integers.type = DataType::i32;
  EXPECT_EQ(errorOf(integers), "conv: of i32, but only floats are convolved");
  ConvShape empty = shape;
  empty.batch = 0;
  EXPECT_EQ(errorOf(empty), "conv: an extent of 0");
  ConvShape grouped = shape;
  grouped.groups = 3;
  EXPECT_EQ(errorOf(grouped), "conv: 3 groups do not divide 4 and 6 channels");
  ConvShape windows = shape;
  windows.height.output = 6;
  EXPECT_EQ(errorOf(windows), "conv: 6x6 windows of 3x3 are not what an image of 7x8 has");
  ConvShape wide = shape;
  wide.height.kernel = 100'000;
  EXPECT_EQ(errorOf(wide), "conv: a filter of 100000x3, at most 65536 either way are supported on the host");
}

}  // namespace
}  // namespace gpuc
