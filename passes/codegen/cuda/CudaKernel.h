//===- CudaKernel.h - A kernel as a function over threads -------------------===//
#pragma once

#include "passes/codegen/KernelEmitter.h"
#include "passes/codegen/cuda/CudaLoops.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace gpuc::codegen {

/// Emits `symbol(ptr, ptr, …)` into `module`, which may be of another context than the block. Where the
/// kernel is segmented it has one parameter, an array of the pointers: CUDA sees no difference
/// (CudaSegments.cpp).
void emitCudaKernel(mlir::gpu::GPUModuleOp module, llvm::StringRef symbol, mlir::Block &body);

/// The same for a segmented kernel (Segments.h) alone, and how that is launched.
void emitCudaSegments(mlir::gpu::GPUModuleOp module, llvm::StringRef symbol, mlir::Block &body);
CudaSchedule scheduleCudaSegments(mlir::Block &body);

/// Of a kernel whose one parameter is an array: how many pointers it has. lowerToNvvm makes it so.
inline constexpr llvm::StringLiteral kOperandArrayAttr = "gpuc.operand_array";

/// An empty kernel of so many pointers, to be launched with so many threads a block.
mlir::gpu::GPUFuncOp createCudaFunction(mlir::gpu::GPUModuleOp module, llvm::StringRef symbol,
                                        size_t parameters, int64_t threads);

/// One element for each of so many threads, in the memory that a block's threads share.
mlir::Value sharedArray(mlir::gpu::GPUFuncOp function, mlir::ImplicitLocOpBuilder &builder,
                        mlir::Type element, int64_t count);

/// The arrays of a function in that memory. Bodies of which a block runs one alone have the same ones, as
/// long as the longest needs.
class SharedArrays {
public:
  explicit SharedArrays(mlir::gpu::GPUFuncOp function) : function_(function) {}

  mlir::Value take(mlir::ImplicitLocOpBuilder &builder, mlir::Type element, int64_t count);
  /// For the next body.
  void beginAnew() { next_ = 0; }

private:
  mlir::gpu::GPUFuncOp function_;
  llvm::SmallVector<mlir::LLVM::GlobalOp> arrays_;
  size_t next_ = 0; ///< In arrays_.
};

/// A number of 32 bits as the thread has it that is `distance` away, by exclusive or, in the same warp. All
/// threads of the warp come here.
Expr fromThreadAt(Expr x, int64_t distance);

/// For which threads of the warp `condition` holds: a bit for each, as i32. All of them come here.
Expr votesOfWarp(mlir::ImplicitLocOpBuilder &builder, mlir::Value condition);

mlir::Value asI64(mlir::ImplicitLocOpBuilder &builder, mlir::Value index);

/// Which of a kernel's tiles a block of threads computes: first, first + step, … below end.
struct CudaTiles {
  mlir::Value first, end; ///< i64
  int64_t step;
  /// i64: what all tiles together have, which may be less than the kernel's own shape says.
  mlir::Value outputs;
  bool several; ///< There may be more than one.
};

class CudaKernelEmitter : public KernelEmitter {
public:
  /// Emits into `function`, from where the builder stands.
  CudaKernelEmitter(mlir::gpu::GPUFuncOp function, SharedArrays &shared, mlir::ImplicitLocOpBuilder &builder,
                    const Kernel &kernel, const CudaLoops &loops, llvm::ArrayRef<mlir::Value> pointers,
                    const CudaTiles &tiles);

private:
  // Loops (CudaKernel.cpp).
  /// The block's tiles; `body` is called once in the loop, with `output_` and `exists_` of this thread set.
  void forTiles(Body body);
  /// The coordinates of `groups` at position `linear` of their row-major product.
  void setCoordinates(llvm::ArrayRef<size_t> groups, mlir::Value linear, int64_t count);
  /// From here on, until the level is left.
  void setLanes();
  /// `body` once for each range of the innermost loop, where this thread's position is in it.
  void forLaneRanges(Body body);
  /// One thread for each output, alone.
  void forOutputs(Body body) override;

  // Scatters (CudaScatter.cpp).
  void emitScatterAdd() override;
  struct Slots {
    mlir::Value first, end;
  };
  /// These as they are at the beginning.
  void copySlots(Slots slots);
  /// What the indices add to the thread's own slots, in their order; `ofWarp`: those of all threads of a
  /// warp, in which this one is `lane`.
  void addUpdates(Slots own, Slots ofWarp, mlir::Value lane);
  mlir::Value isIn(mlir::Value slot, Slots slots);

  // Reductions (CudaReduction.cpp).
  void emitReduction() override;
  /// The row that this thread has a part in.
  void emitRow();
  /// What this thread folds of its row; `rows`, results with an element for each of the row's, are written
  /// beside that.
  State foldPart(Folds &folds, llvm::ArrayRef<unsigned> rows);
  /// Calls `body` at each position of the row that is this thread's: vectors, then what is left of the row.
  void forPart(Body body);
  State foldVectors(const State &start, llvm::function_ref<State(const State &)> body);
  State foldRest(const State &start, llvm::function_ref<State(const State &)> body);
  /// The parts of each row merged in a fixed tree; valid in the threads of part 0 or, `forAll`, in every one.
  State mergeParts(Folds &folds, const State &part, bool forAll);
  State mergeShared(Folds &folds, const State &part, bool forAll);
  /// The parts of `count` neighbouring threads of a warp, in each of them.
  State mergeNeighbours(Folds &folds, State part, int64_t count);
  State mergeWarps(Folds &folds, const State &part);
  mlir::Value sharedElement(mlir::Value array, mlir::Type element, mlir::Value position);

  mlir::Value multiply(mlir::Value a, int64_t b) {
    return mlir::arith::MulIOp::create(builder_, a, index(b));
  }

  SharedArrays &shared_;
  const CudaLoops &loops_;
  CudaTiles tiles_;
  mlir::Value column_, part_; ///< Of this thread, as i64.
  mlir::Value mine_;          ///< The output that this thread would have.
  mlir::Value output_;        ///< The last one, if this thread has none.
  mlir::Value exists_;        ///< i1: this thread has one.
  mlir::Value innermost_;     ///< The coordinate of the innermost loop.
};

} // namespace gpuc::codegen
