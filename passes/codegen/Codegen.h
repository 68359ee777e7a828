//===- Codegen.h - What a kernel is, on any target --------------------------===//
//
// A kernel is a block of gpuc ops: its arguments are the operand tensors, its `gpuc.yield` names the results.
// What becomes of it on a CPU and on a GPU say host/HostCode.h and cuda/CudaCode.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"

#include <optional>
#include <string>

namespace gpuc {

class KernelCache;

/// True of ops that a kernel computes element by element at whatever index is asked for: pointwise ops,
/// constants, iota, random bits, and broadcast, transpose, slice and reverse, which only say where to read.
bool isInlinable(mlir::Operation *op);

/// True of ops that shape the loops of the kernel they stand in: reductions, argmax, cumsum, sort, top_k,
/// gather, scatter_add, concat, pad, dynamic_slice, dynamic_update_slice and poolings.
bool isRoot(mlir::Operation *op);

/// Whether a kernel computes the op.
inline bool isKernelOp(mlir::Operation *op) { return isInlinable(op) || isRoot(op); }

/// True of sum, prod, reduce_max, reduce_min and argmax: the roots of which a kernel may hold several.
bool isReduction(mlir::Operation *op);

/// So many reductions a kernel may hold. A GPU keeps what each thread folded in shared memory, and a CPU in
/// registers.
inline constexpr size_t kMostReductions = 8;

/// The dimensions that a reduction folds, in increasing order.
llvm::SmallVector<int64_t> foldedDims(mlir::Operation *reduction);

/// True of roots whose kernel yields all of their results, be they read or not, and nothing else: sort and
/// top_k, which work in the buffers of both.
bool yieldsAllResults(mlir::Operation *op);

/// The ops of a kernel and what it yields, be it in a block of their own or where they stand among others:
/// each op behind those that it reads. What they read beside one another are the kernel's operands.
struct KernelOps {
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::SmallVector<mlir::Value> results;

  static KernelOps of(mlir::Block &body);
};

/// What the emitter takes, on any target:
/// - Pointwise kernels: every result is an inlinable expression of one common shape.
/// - Row kernels: up to eight reductions that fold the same dimensions of one shape, all of them elements of
///   up to four bytes or all of eight, among inlinable ops. Rows are what is folded to one element. Whatever
///   reads a reduction reads it of its own row, be it through a broadcast along that row. Every result has
///   the shape that is folded, or the one that is left.
/// - Others: one root, whose operands are inlinable expressions. Every result is the root's or a pointwise
///   expression of it and of inlinable others, in the root's shape. scatter_add, sort and top_k take nothing
///   after them.
/// - Segmented kernels: several of these as one launch (Segments.h).
///
/// Fails without a diagnostic: fusion asks this to learn how far it may go.
mlir::LogicalResult checkKernel(mlir::Block &body);
mlir::LogicalResult checkKernel(const KernelOps &kernel); ///< Of one that is not segmented.

/// Whether a kernel would compute many elements of one value for one element of a result: each op that reads
/// at two places has all that it stands on computed at both, and a few dozen such ops make more code than
/// there is room for. Takes time in proportion to the kernel's ops.
bool repeatsElements(const KernelOps &kernel);

/// True if argument number `argument` is read only at the index at which result number `result` is written,
/// in the same tile and not after, so that one buffer may hold both. Element sizes and shapes must agree.
bool canUpdateInPlace(mlir::Block &body, unsigned argument, unsigned result);

/// The tiles of a product, row-major, whose elements a kernel is handed as they are computed: `tileRows` x
/// `tileColumns` of a matrix, numbered along columns first. The tile's own rows lie `stride` elements apart.
struct ProductTiles {
  int64_t rows, columns;
  int64_t tileRows, tileColumns, stride;
};

struct KernelSource {
  std::string symbol; ///< Its name in errors; in code it gets another (HostCode, CudaCode).
  mlir::Block *body;
  mlir::Location location;
  /// On the host, of a kernel that takesProductTiles(): its first operand is such a tile, and so its tiles
  /// are these.
  std::optional<ProductTiles> tiles = std::nullopt;
};

struct CodegenOptions {
  int optLevel = 2;             ///< LLVM's -O level, 0 to 3. Bits do not depend on it.
  unsigned threads = 0;         ///< That compile; 0: one for each core. The code does not depend on it.
  bool cubin = true;            ///< On CUDA: machine code beside PTX, where there is a ptxas.
  KernelCache *cache = nullptr; ///< Of what was compiled before, if there is one. Nor does the code on this.
};

} // namespace gpuc
