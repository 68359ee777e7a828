//===- LinearLosses.h - How the rows of fused losses are cut ----------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

namespace gpuc::ir {

/// Chunks of equal size that hold `rows`; the last may be padded.
struct RowChunks {
  int64_t rows;  ///< Of one chunk.
  int64_t count; ///< How many chunks.

  int64_t padded() const { return rows * count; }
};

/// The chunks of gpuc.linear_cross_entropy: `rows` times `classes` logits of type `element`, at most
/// `asked` rows at a time, or by the op's rule. See its description.
RowChunks cutRows(int64_t rows, int64_t classes, mlir::Type element,
                  std::optional<int64_t> asked = std::nullopt);

} // namespace gpuc::ir
