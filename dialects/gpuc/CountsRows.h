//===- CountsRows.h - What a frontend says of the rows of a batch -------------===//
#pragma once

#include "llvm/ADT/StringRef.h"

namespace gpuc {

/// Of a function whose losses gpuc-mask-padding is to mask though the recipe does not name it: a loss in
/// inference form that a frontend has made.
inline constexpr llvm::StringLiteral kCountsRowsAttr = "gpuc.counts_rows";

/// Of an argument of the loss, and of an op in it that draws at random or is a batch norm: its leading
/// dimension is the batch, or what it draws or normalises is of rows of the batch, though no leading `?`
/// shows it, as the frontend has known the batch.
inline constexpr llvm::StringLiteral kHasRowsAttr = "gpuc.has_rows";

/// Of the count that a loss returns, 1: it is that of the whole batch, of which the loss is a sum, and not of
/// each part that the batch is cut into.
inline constexpr llvm::StringLiteral kCountsOnceAttr = "gpuc.counts_once";

} // namespace gpuc
