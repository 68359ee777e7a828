//===- Sound.h - What every op of the plan dialect is checked for -----------===//
#pragma once

#include "mlir/IR/OpDefinition.h"

namespace gpuc::plan {

/// Places, sizes and counts end here, at 256 TiB: sums of them stay within 64 bits.
inline constexpr int64_t kMostNumber = int64_t{1} << 48;

/// Whether a buffer may hold tensors of this type: static, of elements that plans know, not above kMostNumber
/// bytes.
bool isStorable(mlir::Type type);

/// Before an op's own verifier looks at anything: its buffers are named by ops that stand before it, its
/// types are storable, and its numbers are such that one can count with them.
llvm::LogicalResult verifySound(mlir::Operation *op);

template <typename ConcreteOp> class Sound : public mlir::OpTrait::TraitBase<ConcreteOp, Sound> {
public:
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) { return verifySound(op); }
};

/// a · b · …, or the nearest number that there is to it.
int64_t saturatingProduct(llvm::ArrayRef<int64_t> factors);

} // namespace gpuc::plan
