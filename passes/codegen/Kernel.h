//===- Kernel.h - What a kernel's loops look like ---------------------------===//
//
// The iteration space of a kernel: that of its results or, for a reduction and top_k, of the operand. From it
// and from every address in the kernel follow the fewest loops that visit it (dimensions that are contiguous
// everywhere merge).
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

enum class Form { Elementwise, Reduction, Argmax, Cumsum, ScatterAdd, Sort, TopK };

/// Adjacent dimensions of the iteration space that one loop visits.
struct Group {
  Role role;
  int64_t extent;
  size_t last; ///< The innermost of its dimensions: the one whose coefficient is the loop's.
};

struct Kernel {
  mlir::Block *body;
  Form form = Form::Elementwise;
  mlir::Operation *root =
      nullptr; ///< Null for Elementwise, also where it stands on gather, concat, pad and the like.
  llvm::SmallVector<int64_t> extents;
  llvm::SmallVector<Role> roles;
  Index resultIndex;               ///< Where a result is written.
  llvm::SmallVector<Group> groups; ///< Outermost first; no extents of 1.

  explicit Kernel(mlir::Block &body);
  size_t space() const { return extents.size(); }
  mlir::ValueRange yields() const { return body->getTerminator()->getOperands(); }
};

/// An address, or a coordinate that is used as a number.
struct Access {
  mlir::Value leaf; ///< A block argument, or null for a coordinate.
  Affine address;   ///< In elements.
};

/// Every address of the kernel's operands, before and after its root, and of its results.
llvm::SmallVector<Access> allAccesses(const Kernel &kernel);

/// The operands of a root with the positions at which its loops read them; see each form's emitter.
llvm::SmallVector<std::pair<mlir::Value, Index>, 1> rootOperands(const Kernel &kernel);

} // namespace gpuc::codegen
