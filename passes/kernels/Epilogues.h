//===- Epilogues.h - What follows a product, element by element -------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"
#include "dialects/plan/PlanOps.h"

#include <optional>

namespace gpuc {

/// A product and what is done to each of its elements: max(element + bias, 0), each part where there is one;
/// or 0 where the mask is 0 or less; or nothing, but their squares are added up beside it. Made of the region
/// of a gpuc.fused by gpuc-epilogues; its values are the region's.
struct Epilogue {
  mlir::Operation *product = nullptr; ///< A ProductOpInterface.
  mlir::Value bias;                   ///< An argument, a slice of one, or null; of the result's columns, or
                                      ///< channels.
  mlir::Value mask;                   ///< An argument, or null.
  bool relu = false;
  bool squares = false; ///< The region's second result is the sum of all elements' squares.
};

/// The product in the region; none if that is a kernel's.
std::optional<Epilogue> epilogueOf(ir::FusedOp fused);

/// Whether the target's library adds a bias to the elements of this product; whether it takes relu of them,
/// behind a bias or right behind the product; and whether it masks them.
bool takesBias(plan::TargetKind target, mlir::Operation *product);
bool takesRelu(plan::TargetKind target, mlir::Operation *product, bool behindBias);
bool takesMask(plan::TargetKind target, mlir::Operation *product);

/// Whether it adds up their squares.
bool takesSquares(plan::TargetKind target, mlir::Operation *product);

/// Whether result number `result` may be written over the input number `argument`: each element of that is
/// read no later than it is written. Never over what a product reads.
bool mayUpdateInPlace(ir::FusedOp fused, unsigned argument, unsigned result);

} // namespace gpuc
