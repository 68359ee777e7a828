//===- Decisions.h - What passes decide, in attributes of the module ---------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace gpuc {

/// The module's attribute in which decisions of gpuc-mixed-precision wait for the report. Each says of an op
/// of the loss its `type`, and `why`.
inline constexpr llvm::StringLiteral kPrecisionAttr = "gpuc.precision";

/// Those of gpuc-layout, each over a product: `layout`, which is channels_last or channels_first, of images,
/// else empty; extents `from` before and `to` after padding, as 64x768x50257, equal if there is none; `why`.
inline constexpr llvm::StringLiteral kLayoutAttr = "gpuc.layout";

/// What of the recipe makes the updates wait for all gradients: names of its entries, as clip_norm.
inline constexpr llvm::StringLiteral kWholeGradientsAttr = "gpuc.whole_gradients";

/// What gpuc-override-recipe finds to be trained, and how: a number that is the same where that is
/// (passes/recipe/TrainingDigest.h). Left out where nothing is.
inline constexpr llvm::StringLiteral kTrainingAttr = "gpuc.training";

/// A row of the first two: the op, its layer, FILE:LINE:COLUMN or an empty text where the model has none,
/// and what was decided.
mlir::Attribute decisionOver(mlir::Operation *op, llvm::ArrayRef<llvm::StringRef> texts);

/// The rows of the module's attribute `name` as objects of `op`, `layer`, `loc` and these fields. Empty
/// without the attribute; rows of another length, as only a hand-written module has, are left out.
llvm::json::Array decisionsIn(mlir::ModuleOp module, llvm::StringRef name,
                              llvm::ArrayRef<llvm::StringRef> fields);

} // namespace gpuc
