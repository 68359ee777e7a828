//===- Kernel.h - What a kernel's loops look like ---------------------------===//
//
// The iteration space of a kernel: that of its results or, for reductions and top_k, of the operand. From it
// and from every address in the kernel follow the fewest loops that visit it (dimensions that are contiguous
// everywhere merge).
//
// A kernel with reductions works row by row: a row is what each of them folds to one element. Reductions that
// need nothing of one another are folded in one sweep over the row; what needs their values follows in a
// later sweep. Results with an element for each of the row's are written in the last sweep, after everything
// that reads the row, and those with one element for the whole row at the end.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/codegen/Index.h"

#include "mlir/IR/Block.h"

namespace gpuc::codegen {

/// What a dimension of the iteration space is to the loops.
enum class Role {
  Parallel, ///< Iterations are independent.
  Ordered,  ///< Folded in a fixed order: what a reduction folds, a running sum's dimension, scatter_add's
            ///< indices. Of sort and top_k: what is put in order.
  Slot,     ///< The dimension of scatter_add's result that its indices address.
};

enum class Form { Elementwise, Reduction, Cumsum, ScatterAdd, Sort, TopK };

/// Adjacent dimensions of the iteration space that one loop visits.
struct Group {
  Role role;
  int64_t extent;
  size_t last; ///< The innermost of its dimensions: the one whose coefficient is the loop's.
};

struct Kernel {
  mlir::Block *body;
  Form form = Form::Elementwise;
  mlir::Operation *root = nullptr;                                      ///< Of the forms from Cumsum on.
  llvm::SmallVector<llvm::SmallVector<mlir::Operation *, 2>, 2> sweeps; ///< The reductions, sweep by sweep.
  /// The numbers of the results with an element for each of the row's, if none needs anything of the last
  /// sweep: they may be written there. Else what is swept once more for one may be where another one lies.
  llvm::SmallVector<unsigned> rowsInLastSweep;
  llvm::SmallVector<int64_t> extents;
  llvm::SmallVector<Role> roles;
  Index resultIndex; ///< Where a result is written; of reductions, one that has an element a row.
  Index everywhere;  ///< The position in the space itself.
  llvm::SmallVector<Group> groups; ///< Outermost first; no extents of 1.

  explicit Kernel(mlir::Block &body);
  size_t space() const { return extents.size(); }
  mlir::ValueRange yields() const { return body->getTerminator()->getOperands(); }
  /// Whether the op's values are bound by the loops, rather than computed where they are asked for.
  bool isBound(mlir::Operation *op) const;
  /// Whether a result has an element for each of the row's, rather than one for the row.
  bool isWholeRow(mlir::Value result) const;
  const Index &indexOf(mlir::Value result) const { return isWholeRow(result) ? everywhere : resultIndex; }
  /// Elements of the row that is visited in order, and where in it, counted row-major, a position lies.
  int64_t rowLength() const;
  Affine placeInRow() const;
  /// The innermost group that is visited in order, if there is one.
  std::optional<size_t> orderedGroup() const;
  /// The numbers of the results that are, or are not, whole rows.
  llvm::SmallVector<unsigned> resultNumbers(bool wholeRows) const;
};

/// An address, or a coordinate that is used as a number.
struct Access {
  mlir::Value leaf; ///< A block argument, or null for a coordinate.
  Affine address;   ///< In elements.
};

/// Every address of the kernel's operands, before and after its root, and of its results.
llvm::SmallVector<Access> allAccesses(const Kernel &kernel);

/// Every position at which the kernel reads its operands; entries of which only the kernel knows are dynamic.
void forEachRead(const Kernel &kernel, llvm::function_ref<void(mlir::BlockArgument, const Index &)> onRead);

/// The operands of a root with the positions at which its loops read them; see each form's emitter.
llvm::SmallVector<std::pair<mlir::Value, Index>, 1> rootOperands(const Kernel &kernel);

} // namespace gpuc::codegen
