//===- Work.cpp - The names of what is counted ---------------------------------===//

#include "passes/cost/Work.h"

namespace gpuc {

llvm::StringRef nameOf(Family family) {
  static constexpr llvm::StringLiteral kNames[] = {"kernel",
                                                   "matmul",
                                                   "matmul_by_rows",
                                                   "matmul_by_columns",
                                                   "matmul_of_rows",
                                                   "matmul_of_few_rows",
                                                   "conv",
                                                   "conv_input_gradient",
                                                   "conv_filter_gradient",
                                                   "direct_conv",
                                                   "direct_conv_input_gradient",
                                                   "direct_conv_filter_gradient",
                                                   "direct_conv_filter_gradient_by_outputs",
                                                   "winograd_conv",
                                                   "winograd_conv_filter_gradient",
                                                   "attention",
                                                   "attention_gradient",
                                                   "other"};
  static_assert(std::size(kNames) == kFamilyCount);
  return kNames[static_cast<size_t>(family)];
}

llvm::StringRef nameOf(Unit unit) {
  static constexpr llvm::StringLiteral kNames[] = {
      "command", "row",    "chain",   "simple",    "root",   "exponential", "special", "draw",
      "fold",    "gather", "scatter", "transpose", "window", "comparison",  "flop",    "packed",
      "strided", "stored", "near",    "far",       "memory", "writeback"};
  static_assert(std::size(kNames) == kUnitCount);
  return kNames[static_cast<size_t>(unit)];
}

} // namespace gpuc
