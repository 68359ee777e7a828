//===- PlanOps.h - The ops, types and interfaces of the plan dialect --------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "runtime/base/data_type.h"
#include "runtime/plan/roles.h"

#include <optional>

#include "dialects/plan/PlanEnums.h.inc"

#include "dialects/plan/PlanDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/plan/PlanTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/plan/PlanAttributes.h.inc"

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

/// A buffer, or a view of one, that a command touches, and what it is there for.
struct CommandOperand {
  mlir::Value buffer;
  OperandUse use;
};

/// Those whose role is wanted.
llvm::SmallVector<mlir::Value> buffersOf(llvm::ArrayRef<CommandOperand> operands, bool (*isWanted)(Role));

} // namespace gpuc::plan

#include "dialects/plan/PlanInterfaces.h.inc"

namespace gpuc::plan {

/// The bytes of a sum over ranks that takes as long as the exchange: what is shared out or gathered is one of
/// its two messages.
int64_t summedBytes(CollectiveOpInterface collective);

/// Each of `shares` is one rank's of the whole of the same number, or of so many as there are `owners`: see
/// plan.reduce_scatter.
mlir::LogicalResult verifyShares(mlir::Operation *op, mlir::ValueRange wholes, mlir::ValueRange shares,
                                 mlir::Type element, int64_t worldSize, int64_t owners);

} // namespace gpuc::plan

#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.h.inc"

namespace gpuc::plan {

/// Module attributes that say what the whole plan is for.
inline constexpr llvm::StringLiteral kTargetAttr = "plan.target";
inline constexpr llvm::StringLiteral kSlotsAttr = "plan.slots";
inline constexpr llvm::StringLiteral kBatchAttr = "gpuc.batch";
inline constexpr llvm::StringLiteral kSeedAttr = "gpuc.seed";
inline constexpr llvm::StringLiteral kNoGraphsAttr = "gpuc.no_graphs"; // on CUDA: no CUDA graphs

/// How many batches may be on their way at once.
inline constexpr int64_t kMostSlots = 64;

/// The kernel that is launched, and the one to which a product's tiles are handed; null if to none.
KernelOp kernelOf(LaunchOp launch);
KernelOp updateOf(ProductOpInterface product);

/// The buffer op behind a value, seen through views.
BufferOpInterface bufferOf(mlir::Value value);

/// A byte range of a buffer.
struct Range {
  BufferOpInterface buffer;
  int64_t offset;
  int64_t size;
  llvm::SmallVector<int64_t, 2> strides; // of the enclosing repeats, outermost first

  /// Where it begins in the given iterations, from the start of the buffer.
  int64_t offsetAt(llvm::ArrayRef<int64_t> iterations) const;
};

/// The bytes that a value names, seen through views.
Range rangeOf(mlir::Value value);

/// How plans number the elements of a storable type.
DataType dataTypeOf(mlir::Type element);

/// Bytes of the tensor in a buffer.
int64_t sizeInBytes(BufferOpInterface buffer);

/// The same for buffers that are one: every `plan.use` of a variable.
const void *identityOf(BufferOpInterface buffer);

} // namespace gpuc::plan
