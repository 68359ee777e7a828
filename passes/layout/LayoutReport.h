//===- LayoutReport.h - Which layout and extents products run in, and why ---===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

#include "llvm/Support/JSON.h"

#include <string>

namespace gpuc {

/// One decision of gpuc-layout, over one product.
struct LayoutEntry {
  std::string op, layer, loc;
  std::string layout;   ///< channels_last or channels_first, of images; else empty.
  std::string from, to; ///< Extents before and after padding, as 64x768x50257; equal if there is none.
  std::string why;

  /// `loc` is FILE:LINE:COLUMN, or empty where the model has none.
  static LayoutEntry of(mlir::Operation *op);
};

/// The module's attribute in which the decisions wait for the report.
inline constexpr llvm::StringLiteral kLayoutAttr = "gpuc.layout";

mlir::Attribute toAttribute(llvm::ArrayRef<LayoutEntry> entries, mlir::MLIRContext *context);

/// The decisions in the module's attribute; none if it has none.
llvm::json::Array layoutsOf(mlir::ModuleOp module);

} // namespace gpuc
