//===- Parts.h - The batch, a number for it, and its parts ---------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/StringSet.h"

namespace gpuc {

/// Whether a tensor type has a `?`.
bool isDynamic(mlir::Type type);

/// Makes every leading `?` under `root`, in types and in attributes, `batch`.
void bindBatch(mlir::Operation *root, int64_t batch);

/// Gives the function's arguments and random ops that have rows the attribute `gpuc.partition`, as long as a
/// `?` shows which these are, or a frontend has said it (kHasRowsAttr).
void markRows(mlir::func::FuncOp function, ir::PartitionAttr partition);

/// What a frontend has said of rows is of no use any more.
void forgetRows(mlir::func::FuncOp function);

/// Whether all that the function returns are sums over the rows of the batch (the leading `?`), and each row
/// goes its way without the others. The results over all rows are then the sums of those over parts of them.
/// Calls are inlined. False for ops of which this is not known.
bool addsUpIndependentRows(mlir::func::FuncOp function);

/// Gives a function over one part of the batch (`gpuc.partition`) a last argument, the part's number, a
/// tensor<i64>, by which it masks those of the part's rows that hold no sample, and draws the random numbers
/// that the whole batch has there.
llvm::LogicalResult addPartNumber(mlir::func::FuncOp function);

/// Puts in the place of `part`, a function over one part of the batch (`gpuc.partition`) that returns sums
/// over its rows, one over the whole batch that returns the sums over all rows. A function without that
/// attribute is one over the whole batch.
llvm::LogicalResult sumOverParts(mlir::func::FuncOp &part);

/// Of a result of a function over a part of the batch, a sum: so many ranks share it out.
inline constexpr llvm::StringLiteral kScatterAttr = "gpuc.scatter";

/// Of a result of such a function, a sum: numbers {first, ranks}. Each of so many ranks owns one of the
/// results that have the same `first`, which is the number of the first of them, and of the others they have
/// nothing.
inline constexpr llvm::StringLiteral kOwnersAttr = "gpuc.owners";

/// Of such a function: ranks share out the sums of each microbatch, and add up their shares.
inline constexpr llvm::StringLiteral kScatterEachAttr = "gpuc.scatter_each";

/// Of a result: it has been shared out among ranks, and is what one of them has of their sum.
inline constexpr llvm::StringLiteral kSharedOutAttr = "gpuc.shared_out";

/// Puts what one rank has of the sums over ranks in the place of the results that ranks share out; of those
/// that ranks own, in the place of the first one.
llvm::LogicalResult shareOutSums(mlir::func::FuncOp part);

/// The variables to which a function over one part, which knows its number, assigns the same on all ranks.
llvm::StringSet<> assignedAlike(mlir::func::FuncOp part);

/// Makes the sums over the rows of one rank's share, which `share` returns, those over the rows of all ranks,
/// and what it assigns, but to what is assigned alike, the mean over ranks; its last argument, the number of
/// its part, becomes the variable `rank`.
llvm::LogicalResult reduceOverRanks(mlir::func::FuncOp share, const llvm::StringSet<> &alike);

} // namespace gpuc
