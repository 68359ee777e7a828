//===- PrecisionReport.h - What was computed in which precision, and why ----===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

#include "llvm/Support/JSON.h"

#include <string>

namespace gpuc {

/// One decision of gpuc-mixed-precision, over one op of the loss.
struct PrecisionEntry {
  std::string op, layer, loc, type, why;

  /// `loc` is FILE:LINE:COLUMN, or empty where the model has none.
  static PrecisionEntry of(mlir::Operation *op, mlir::Type type, llvm::StringRef why);
};

/// The module's attribute in which the decisions wait for the report.
inline constexpr llvm::StringLiteral kPrecisionAttr = "gpuc.precision";

mlir::Attribute toAttribute(llvm::ArrayRef<PrecisionEntry> entries, mlir::MLIRContext *context);

/// The decisions in the module's attribute; none if it has none.
llvm::json::Array precisionOf(mlir::ModuleOp module);

} // namespace gpuc
