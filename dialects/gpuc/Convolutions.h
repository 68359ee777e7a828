//===- Convolutions.h - conv2d and its two gradients ------------------------===//
#pragma once

#include "dialects/gpuc/Windows.h"

namespace gpuc::ir {

/// The type of conv2d's result, or an error that speaks of `op`. The window is the filter's: `numbers.window`
/// is not read.
mlir::FailureOr<mlir::RankedTensorType> inferConv2d(std::optional<mlir::Location> location,
                                                    llvm::StringRef op, mlir::RankedTensorType input,
                                                    mlir::RankedTensorType filter, WindowNumbers numbers,
                                                    int64_t groups);

/// One of the three convolutions, by what each operand and result is to conv2d itself. The types are those of
/// (N, C, H, W), even if the channels lie last.
struct Convolution {
  mlir::RankedTensorType input, filter, result;
  Windows2d windows;
  int64_t groups;
  bool channelsLast;
};
/// conv2d and its two gradients.
inline bool isConvolution(mlir::Operation *op) {
  return llvm::isa<Conv2dOp, Conv2dInputGradientOp, Conv2dFilterGradientOp>(op);
}

Convolution convolutionOf(Conv2dOp op);
Convolution convolutionOf(Conv2dInputGradientOp op);
Convolution convolutionOf(Conv2dFilterGradientOp op);

} // namespace gpuc::ir
