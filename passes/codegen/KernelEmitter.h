//===- KernelEmitter.h - What kernels of every target share ------------------===//
#pragma once

#include "passes/codegen/Loops.h"

namespace gpuc::codegen {

/// Emits a kernel's forms, but for those whose order is the target's own. What is derived from it says which
/// positions a call of the function visits.
class KernelEmitter {
public:
  virtual ~KernelEmitter() = default;
  void run();

protected:
  using Body = llvm::function_ref<void()>;
  static constexpr size_t none = ~size_t(0);

  /// Emits from where the builder stands. `pointers`: a buffer for each argument of the kernel, then for each
  /// of its results. Dense constants become read-only data beside the code: globals at the head of `globals`,
  /// named after `symbol`. `laneGroup`: the group along the lanes, if there are any.
  KernelEmitter(mlir::ImplicitLocOpBuilder &builder, const Kernel &kernel,
                llvm::ArrayRef<mlir::Value> pointers, mlir::Block &globals, llvm::StringRef symbol,
                size_t laneGroup = none);

  /// Calls `body` at each position of what is parallel, with builder and emitter standing inside.
  virtual void forOutputs(Body body) = 0;
  virtual void emitReduction() = 0;
  virtual void emitScatterAdd() = 0;

  void forGroups(llvm::ArrayRef<size_t> groups, Body body);
  void ifHolds(mlir::Value condition, Body body) { codegen::ifHolds(emitter_, condition, body); }
  /// These of the kernel's results at the present position.
  void emitResults(llvm::ArrayRef<unsigned> numbers);

  // Of scatters.
  /// The index at the present position, as i64.
  mlir::Value chosenSlot();
  void setSlot(mlir::Value slot);
  /// The present slot as it is at the beginning.
  void copySlot();
  /// The present update to the present slot.
  void addUpdate();

  /// But for the group along the lanes.
  llvm::SmallVector<size_t> groupsOf(Role role) const;
  mlir::Value index(int64_t number) { return constantInt(builder_, builder_.getI64Type(), number).value(); }
  mlir::Value add(mlir::Value a, mlir::Value b) { return mlir::arith::AddIOp::create(builder_, a, b); }
  mlir::Value below(mlir::Value a, mlir::Value limit) {
    return codegen::below(Expr(builder_, a), Expr(builder_, limit)).value();
  }
  mlir::Value resultPointer(unsigned result) { return pointers_[kernel_.body->getNumArguments() + result]; }

  const Kernel &kernel_;
  mlir::ImplicitLocOpBuilder &builder_;
  llvm::SmallVector<mlir::Value> pointers_;
  ElementEmitter emitter_;

private:
  void emitTables(mlir::Block &globals, llvm::StringRef symbol);
  void emitCumsum();
  void emitSort();

  size_t laneGroup_;
};

} // namespace gpuc::codegen
