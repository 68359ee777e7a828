//===- Sort.h - One row in order, in place ----------------------------------===//
#pragma once

#include "passes/codegen/Loops.h"

namespace gpuc::codegen {

/// Emits gpuc.sort and gpuc.top_k of the row at the present coordinates, on every target alike. The buffers
/// of the two results are all the memory that it takes. Elements are compared together with their indices,
/// which is a total order: every way of sorting gives the same bits, and no equal elements change places.
class RowSorter {
public:
  /// `values` and `indices` are the buffers of the results.
  RowSorter(const Kernel &kernel, ElementEmitter &emitter, mlir::Value values, mlir::Value indices);

  void emitSort();
  /// Scalar code only: where it writes depends on what it reads.
  void emitTopK();

private:
  /// An element in register form and where it stood in the operand, an i64.
  struct Entry {
    Expr value, index;
  };
  enum class Order { BestFirst, WorstFirst };

  // Entries at a position along the dimension, an i64.
  Entry operandAt(mlir::Value position);
  Entry load(mlir::Value position);
  void store(mlir::Value position, const Entry &entry);
  void moveTo(mlir::Value position);

  /// One bit a lane: `a` comes before `b` in the result.
  Expr precedes(const Entry &a, const Entry &b);
  /// a < b, where NaN is above all else.
  Expr isLess(Expr a, Expr b);

  void copyOperand();
  void sortResults(Order order);
  void mergePass(mlir::Value pass, mlir::Value level, int64_t levels, Order order);
  void exchange(mlir::Value low, mlir::Value high, Order order);
  void replaceWorst(const Entry &entry);
  State descend(const Entry &entry, Expr hole);

  mlir::Value number(int64_t value) { return constantInt(builder_, builder_.getI64Type(), value).value(); }
  void loop(mlir::Value count, llvm::function_ref<void(mlir::Value)> body) {
    emitLoop(emitter_, number(0), count, 1, body);
  }

  ElementEmitter &emitter_;
  mlir::ImplicitLocOpBuilder &builder_;
  mlir::Value operand_, values_, indices_;
  Index operandIndex_;
  Affine address_; ///< Of a result's element.
  ElementKind kind_;
  bool largestFirst_;
  int64_t extent_, kept_;       ///< Of the operand and of the results along the dimension.
  std::optional<size_t> group_; ///< The dimension's; none if the extent is 1.
};

} // namespace gpuc::codegen
