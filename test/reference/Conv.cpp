//===- Conv.cpp - Convolution and pooling ------------------------------------===//

#include "dialects/gpuc/Convolutions.h"
#include "test/reference/OpTable.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace gpuc::reference {

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

/// Where the element [a, channel, row, column] lies among `extents`, which are of (a, C, H, W).
static int64_t imagePosition(ArrayRef<int64_t> index, ArrayRef<int64_t> extents, bool channelsLast) {
  if (!channelsLast)
    return positionOf(index, extents);
  return positionOf({index[0], index[2], index[3], index[1]},
                    {extents[0], extents[2], extents[3], extents[1]});
}

/// Calls body with the positions in input, filter and output of every product that is summed up.
static void forEachProduct(const ir::Convolution &of,
                           llvm::function_ref<void(int64_t, int64_t, int64_t)> body) {
  ArrayRef<int64_t> input = of.input.getShape(), filter = of.filter.getShape();
  int64_t outputsPerGroup = filter[0] / of.groups;
  forEachIndex(of.result.getShape(), [&](ArrayRef<int64_t> y) {
    forEachIndex(filter.drop_front(), [&](ArrayRef<int64_t> tap) {
      int64_t channel = y[1] / outputsPerGroup * filter[1] + tap[0];
      int64_t row = y[2] * of.windows.rows.stride - of.windows.rows.low + tap[1] * of.windows.rows.dilation;
      int64_t column =
          y[3] * of.windows.columns.stride - of.windows.columns.low + tap[2] * of.windows.columns.dilation;
      if (row < 0 || row >= input[2] || column < 0 || column >= input[3])
        return;
      body(imagePosition({y[0], channel, row, column}, input, of.channelsLast),
           imagePosition({y[1], tap[0], tap[1], tap[2]}, filter, of.channelsLast),
           imagePosition(y, of.result.getShape(), of.channelsLast));
    });
  });
}

static Tensor conv2d(ir::Conv2dOp op, Operands x) {
  Tensor result(typeOf(op.getResult()));
  forEachProduct(ir::convolutionOf(op), [&](int64_t input, int64_t filter, int64_t output) {
    result.elements[output].real += x[0].elements[input].real * x[1].elements[filter].real;
  });
  return result;
}

static Tensor inputGradient(ir::Conv2dInputGradientOp op, Operands x) {
  Tensor result(typeOf(op.getResult()));
  forEachProduct(ir::convolutionOf(op), [&](int64_t input, int64_t filter, int64_t output) {
    result.elements[input].real += x[0].elements[output].real * x[1].elements[filter].real;
  });
  return result;
}

static Tensor filterGradient(ir::Conv2dFilterGradientOp op, Operands x) {
  Tensor result(typeOf(op.getResult()));
  forEachProduct(ir::convolutionOf(op), [&](int64_t input, int64_t filter, int64_t output) {
    result.elements[filter].real += x[0].elements[output].real * x[1].elements[input].real;
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

/// What indices count: elements of an image row by row, or narrow ones those of a window, padding and all.
enum class Count { inImage, inWindow };
static Count countOf(Value indices) {
  return cast<RankedTensorType>(indices.getType()).getElementType().isInteger(64) ? Count::inImage
                                                                                  : Count::inWindow;
}

/// Calls body with the position in memory of each element of the window that is no padding, and its index.
static void forEachInWindow(const ir::Windows2d &windows, ArrayRef<int64_t> image, ArrayRef<int64_t> window,
                            Count count, llvm::function_ref<void(int64_t, int64_t)> body) {
  const size_t rows = windows.rowDim, columns = rows + 1;
  for (int64_t i = 0; i < windows.rows.size; ++i)
    for (int64_t j = 0; j < windows.columns.size; ++j) {
      SmallVector<int64_t> at(window);
      at[rows] = window[rows] * windows.rows.stride - windows.rows.low + i * windows.rows.dilation;
      at[columns] =
          window[columns] * windows.columns.stride - windows.columns.low + j * windows.columns.dilation;
      if (at[rows] >= 0 && at[rows] < image[rows] && at[columns] >= 0 && at[columns] < image[columns])
        body(positionOf(at, image), count == Count::inWindow ? i * windows.columns.size + j
                                                             : at[rows] * image[columns] + at[columns]);
    }
}

static Results maxPool(ir::MaxPool2dOp op, Operands x) {
  Tensor values(typeOf(op.getValues())), indices(typeOf(op.getIndices()));
  ArrayRef<int64_t> image = x[0].shape();
  forEachIndex(values.shape(), [&](ArrayRef<int64_t> window) {
    int64_t best = -1, bestPlace = -1;
    const Count count = countOf(op.getIndices());
    forEachInWindow(ir::windowsOf(op), image, window, count, [&](int64_t position, int64_t place) {
      double element = x[0].elements[position].real;
      double most = best < 0 ? 0 : x[0].elements[best].real;
      if (best < 0 || (!std::isnan(most) && (std::isnan(element) || element > most))) {
        best = position;
        bestPlace = place;
      }
    });
    int64_t at = positionOf(window, values.shape());
    values.elements[at] = x[0].elements[best];
    indices.elements[at].integer = bestPlace;
  });
  return {values, indices};
}

/// Calls body with the window's position and the image's element that the window chose, if it lies in it.
static void forEachChosen(const ir::Windows2d &windows, ArrayRef<int64_t> image, const Tensor &indices,
                          Count count, llvm::function_ref<void(int64_t, int64_t)> body) {
  forEachIndex(indices.shape(), [&](ArrayRef<int64_t> window) {
    int64_t at = positionOf(window, indices.shape());
    forEachInWindow(windows, image, window, count, [&](int64_t position, int64_t place) {
      if (place == indices.elements[at].integer)
        body(at, position);
    });
  });
}

static Tensor maxPoolGradient(ir::MaxPool2dGradientOp op, Operands x) {
  Tensor result(typeOf(op.getResult()));
  const Count count = countOf(op.getIndices());
  forEachChosen(ir::windowsOf(op), result.shape(), x[1], count, [&](int64_t window, int64_t element) {
    result.elements[element].real += x[0].elements[window].real;
  });
  return result;
}

static Tensor maxPoolGather(ir::MaxPool2dGatherOp op, Operands x) {
  Tensor result(typeOf(op.getResult()));
  forEachChosen(ir::windowsOf(op), x[0].shape(), x[1], countOf(op.getIndices()),
                [&](int64_t window, int64_t element) { result.elements[window] = x[0].elements[element]; });
  return result;
}

/// The number by which the window's sum is divided.
static double divisorOf(auto op, ArrayRef<int64_t> image, ArrayRef<int64_t> window) {
  if (!op.getExcludePadding())
    return static_cast<double>(op.getWindow()[0] * op.getWindow()[1]);
  double count = 0;
  forEachInWindow(ir::windowsOf(op), image, window, Count::inImage, [&](int64_t, int64_t) { ++count; });
  return count;
}

static Tensor avgPool(ir::AvgPool2dOp op, Operands x) {
  Tensor result(typeOf(op.getResult()));
  forEachIndex(result.shape(), [&](ArrayRef<int64_t> window) {
    double sum = 0;
    forEachInWindow(ir::windowsOf(op), x[0].shape(), window, Count::inImage,
                    [&](int64_t position, int64_t) { sum += x[0].elements[position].real; });
    result.elements[positionOf(window, result.shape())].real = sum / divisorOf(op, x[0].shape(), window);
  });
  return result;
}

static Tensor avgPoolGradient(ir::AvgPool2dGradientOp op, Operands x) {
  Tensor result(typeOf(op.getResult()));
  forEachIndex(x[0].shape(), [&](ArrayRef<int64_t> window) {
    double share =
        x[0].elements[positionOf(window, x[0].shape())].real / divisorOf(op, result.shape(), window);
    forEachInWindow(ir::windowsOf(op), result.shape(), window, Count::inImage,
                    [&](int64_t position, int64_t) { result.elements[position].real += share; });
  });
  return result;
}

void addConvOps(OpTable &table) {
  table.add<ir::Conv2dOp>(conv2d);
  table.add<ir::Conv2dInputGradientOp>(inputGradient);
  table.add<ir::Conv2dFilterGradientOp>(filterGradient);
  table.add<ir::MaxPool2dOp>(maxPool);
  table.add<ir::MaxPool2dGradientOp>(maxPoolGradient);
  table.add<ir::MaxPool2dGatherOp>(maxPoolGather);
  table.add<ir::AvgPool2dOp>(avgPool);
  table.add<ir::AvgPool2dGradientOp>(avgPoolGradient);
}

} // namespace gpuc::reference
