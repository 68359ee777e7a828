//===- WindowChecks.h - What ops check of their windows ---------------------===//
//
// Internal to the dialect.
//
#pragma once

#include "dialects/gpuc/TypeChecks.h"
#include "dialects/gpuc/Windows.h"

namespace gpuc::ir {

/// Beyond this no size, stride, padding or extent may go, so that sums and products of two stay within 64
/// bits.
constexpr int64_t mostWindowNumber = (int64_t(1) << 31) - 1;

/// Two strides and dilations of at least 1, four paddings of at least 0, none too large. Emits nothing.
inline mlir::LogicalResult checkWindowNumbers(const WindowNumbers &numbers) {
  auto within = [](llvm::ArrayRef<int64_t> values, size_t count, int64_t least) {
    return values.size() == count &&
           llvm::all_of(values, [&](int64_t value) { return value >= least && value <= mostWindowNumber; });
  };
  return mlir::success(within(numbers.strides, 2, 1) && within(numbers.padding, 4, 0) &&
                       within(numbers.dilation, 2, 1));
}

} // namespace gpuc::ir
