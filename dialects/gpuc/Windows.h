//===- Windows.h - Where windows lie in images ------------------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

#include <array>

namespace gpuc::ir {

/// The windows along one dimension of an image: window p holds the elements p·stride - low + i·dilation, for
/// i in [0, size), that lie in the image.
struct Windows {
  int64_t size, stride, low, high, dilation;

  /// From a window's first element to its last, both included.
  int64_t span() const { return (size - 1) * dilation + 1; }

  /// How many windows fit into so many elements and their padding.
  int64_t count(int64_t extent) const {
    int64_t room = extent + low + high - span();
    return room < 0 ? 0 : room / stride + 1;
  }

  /// The most windows that hold one element.
  int64_t sharing() const { return (span() + stride - 1) / stride; }

  bool operator==(const Windows &) const = default;
};

/// Down and across the image.
struct Windows2d {
  Windows rows, columns;
  size_t rowDim = 2; ///< Of images (N, C, H, W); 1 of (N, H, W, C). Columns are the dimension behind it.

  size_t columnDim() const { return rowDim + 1; }

  std::array<Windows, 2> both() const { return {rows, columns}; }
  bool operator==(const Windows2d &) const = default;
};

/// Sizes, strides, padding [top, bottom, left, right] and dilation as attributes have them, perhaps
/// malformed.
struct WindowNumbers {
  llvm::ArrayRef<int64_t> window, strides, padding, dilation;
  bool channelsLast = false;

  /// Of well-formed ones.
  Windows2d windows() const {
    return {{window[0], strides[0], padding[0], padding[1], dilation[0]},
            {window[1], strides[1], padding[2], padding[3], dilation[1]},
            channelsLast ? size_t(1) : size_t(2)};
  }
};

/// Of an op of pooling, or of its adaptor. Means are over windows without gaps.
template <typename Op> WindowNumbers windowNumbersOf(Op op) {
  static constexpr int64_t undilated[] = {1, 1};
  llvm::ArrayRef<int64_t> dilation = undilated;
  if constexpr (requires { op.getDilation(); })
    dilation = op.getDilation();
  return {op.getWindow(), op.getStrides(), op.getPadding(), dilation, op.getChannelsLast()};
}
template <typename Op> Windows2d windowsOf(Op op) { return windowNumbersOf(op).windows(); }

/// The narrowest element type of max pooling's indices, of places in such windows: ui8 or i32. i64 of windows
/// for which i32 has no room: then indices are counted in the image.
mlir::IntegerType narrowestIndex(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> window);

/// Whether indices of that type are places in the window, i · kw + j, and not h · W + v.
inline bool arePlaces(mlir::Value indices) {
  return !mlir::getElementTypeOrSelf(indices.getType()).isInteger(64);
}

/// The order of an image's or a filter's dimensions, batch or outputs, channels, height, width, in memory;
/// and the way back.
inline constexpr int64_t kToChannelsLast[] = {0, 2, 3, 1}, kToChannelsFirst[] = {0, 3, 1, 2};

/// The type with its dimensions in that order; of rank 4.
mlir::RankedTensorType permuted(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> permutation);

/// The type of what a pooling of `image` gives, or an error that speaks of `op`.
mlir::FailureOr<mlir::RankedTensorType> inferPooling(std::optional<mlir::Location> location,
                                                     llvm::StringRef op, mlir::RankedTensorType image,
                                                     const WindowNumbers &numbers);

} // namespace gpuc::ir
