//===- CountsRows.h - Entries whose losses leave padding out ------------------===//
#pragma once

#include "llvm/ADT/StringRef.h"

namespace gpuc {

/// Of a function whose losses gpuc-mask-padding is to mask though the recipe does not name it: a loss in
/// inference form that a frontend has made.
inline constexpr llvm::StringLiteral kCountsRowsAttr = "gpuc.counts_rows";

} // namespace gpuc
