//===- ElementEmitter.h - The value of a tensor expression at an index ------===//
//
// Pulls elements out of a kernel's block: asked for a value at an index, it emits what computes it, down to
// the loads. It knows loops only as coordinates that are known from some level on, so host loops and GPU
// threads use it alike. What depends on outer coordinates alone is emitted in the outer loop; what does not
// vary along the lanes stays scalar.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/gpuc/Windows.h"
#include "passes/codegen/Element.h"
#include "passes/codegen/Kernel.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

#include <functional>

namespace gpuc::codegen {

/// A register, and the loop level at which it is known.
struct Known {
  Expr expr;
  int level = 0;
  bool isVector() const { return expr.lanes() > 1; }
};

/// What a loop carries: of a reduction one register, or for argmax the value and its index.
using State = llvm::SmallVector<Expr, 2>;

/// A position that is only known when the kernel runs.
Affine dynamicAffine(const Known &known, size_t space);

class ElementEmitter {
public:
  /// `pointers`: one for each block argument of the kernel, known at level 0, which is where the builder
  /// stands.
  ElementEmitter(mlir::ImplicitLocOpBuilder &builder, const Kernel &kernel,
                 llvm::ArrayRef<mlir::Value> pointers);

  // Loops. The emitter starts at level 0.

  /// Continues one level further in: inside `region`'s block, before its terminator. What is known at outer
  /// levels is emitted before the op that holds the region.
  void enter(mlir::Region &region);
  /// Back to the level outside, after the op that was entered.
  void leave();
  int level() const { return levels_.size(); }
  /// From this level on until it is left, `group`'s coordinate is `first`, for a vector that of lane 0.
  void setCoordinate(size_t group, mlir::Value first) {
    setCoordinate(group, first, {0, kernel_.groups[group].extent});
  }
  /// The same where it is known to be in `range`, in all lanes that exist.
  void setCoordinate(size_t group, mlir::Value first, Range range);
  /// That of the first lane.
  mlir::Value coordinateOf(size_t group) const { return coordinates_[group].first.expr.value(); }
  /// `group`'s coordinate counts up along the lanes; 1 for scalar code. Each vector lies at a multiple of
  /// `alignment` bytes, or of its own where these are fewer; 0: of an element's.
  void setLanes(size_t group, int64_t lanes, int64_t alignment = 0);
  /// Only the first `count` lanes exist, those in which the mask holds (null: all). Until the current level
  /// is left.
  void setTail(Expr mask, int64_t count) {
    tailMask_ = mask;
    tailCount_ = count;
  }
  /// Where the elements of a dense `gpuc.constant` lie.
  void setTable(mlir::Operation *constant, mlir::Value pointer) { tables_[constant] = pointer; }
  /// The element of a root at the kernel's result position, until the level is left.
  void bind(mlir::Operation *root, Expr value) { bound_[root] = {value, level()}; }
  /// From now on what `value` is at a position is read from `place` behind `pointer`, where it was kept.
  void readKept(mlir::Value value, mlir::Value pointer, const Affine &place) {
    kept_[value] = {pointer, place};
  }
  /// From now on block argument number `argument` is read from `pointer`, which is known at this level, at
  /// positions that are known no further out.
  void setPointer(unsigned argument, mlir::Value pointer) { pointers_[argument] = pointer; }
  /// The id of a `gpuc.random_bits`, an i64 known at level 0, where it is not to stand in the code.
  void setRandomId(mlir::Operation *random, mlir::Value id) { randomIds_[random] = id; }
  /// By `strideOf`, called where a stride of these groups is needed, it is an i64 that is known at level 0:
  /// where it is not to stand in the code.
  void setStrides(llvm::ArrayRef<size_t> groups, std::function<mlir::Value(int64_t)> strideOf) {
    stridesBeside_.assign(groups.begin(), groups.end());
    strideOf_ = std::move(strideOf);
  }
  /// From now on vectors lie at their lanes' place behind a pointer, which has left the loop over the lanes
  /// before LLVM emits code. On a host nobody else splits an address so (CompileObject.cpp).
  void splitAddresses() { splitsAddresses_ = true; }
  /// The number of a splat `gpuc.constant`, in register form and known at level 0, where it is not to stand
  /// in the code.
  void setNumber(mlir::Operation *constant, mlir::Value number) { numbers_[constant] = number; }

  // Elements, in register form (Element.h).

  /// `value` at `index`: a scalar if it does not vary along the lanes.
  Known emit(mlir::Value value, const Index &index) { return emit(value, index, {}); }
  /// As `emit`, in as many lanes as the code has now.
  Expr emitLanes(mlir::Value value, const Index &index);
  /// The coordinate of `group` as an i64, one for each lane.
  Expr laneCoordinate(size_t group);
  void store(Expr value, mlir::Value pointer, ElementKind kind, const Affine &address);
  Expr load(mlir::Value pointer, ElementKind kind, const Affine &address);

  mlir::ImplicitLocOpBuilder &builder() { return builder_; }
  int64_t lanes() const { return lanes_; }

private:
  /// Where loads are allowed; null: everywhere.
  using Guard = Known;
  struct Coordinate {
    Known first;
    Range range;
  };
  struct Level {
    mlir::Operation *holder;                   ///< The op whose region this is.
    llvm::SmallVector<Coordinate> coordinates; ///< As they were outside, and so the others.
    Expr tailMask;
    int64_t tailCount;
    size_t laneGroup;
    int64_t lanes;
  };
  struct Kept {
    mlir::Value pointer;
    Affine place;
  };
  struct Memo {
    Index index;
    mlir::Value guard;
    Known known;
  };

  Known emit(mlir::Value value, const Index &index, const Guard &guard);
  Known compute(mlir::Operation *op, const Index &index, const Guard &guard);
  Known emitPointwiseOp(mlir::Operation *op, const Index &index, const Guard &guard);
  Known emitOp(ir::ConstantOp op, const Index &index, const Guard &guard);
  Known emitOp(ir::IotaOp op, const Index &index, const Guard &guard);
  Known emitOp(ir::RandomBitsOp op, const Index &index, const Guard &guard);
  bool startsAtGroups(const Affine &linear) const;
  Known emitOp(ir::GatherOp op, const Index &index, const Guard &guard);
  Known emitOp(ir::ConcatOp op, const Index &index, const Guard &guard);
  Known emitOp(ir::PadOp op, const Index &index, const Guard &guard);
  Known emitOp(ir::DynamicSliceOp op, const Index &index, const Guard &guard);
  Known emitOp(ir::DynamicUpdateSliceOp op, const Index &index, const Guard &guard);

  // Pooling (Window.cpp).
  Known emitMaxPool(ir::MaxPool2dOp op, unsigned result, const Index &index, const Guard &guard);
  Known emitOp(ir::MaxPool2dGradientOp op, const Index &index, const Guard &guard);
  Known emitOp(ir::MaxPool2dGatherOp op, const Index &index, const Guard &guard);
  Known emitOp(ir::AvgPool2dOp op, const Index &index, const Guard &guard);
  Known emitOp(ir::AvgPool2dGradientOp op, const Index &index, const Guard &guard);
  /// Steps from a window's first element down and across, in its own count.
  struct Steps {
    Known row, column;
  };
  /// What wide indices of max pooling count: h · W + v of a position in the image.
  Known indexInImage(const ir::Windows2d &windows, llvm::ArrayRef<int64_t> image, const Index &at);
  /// What narrow ones do, i · kw + j, as an i32.
  Known placeInWindow(const ir::Windows2d &windows, const Steps &steps);
  /// The element of the image that a window's index names, and whether it lies in the window.
  struct Chosen {
    Known row, column;
    Guard inside;
  };
  Chosen chosenInImage(const ir::Windows2d &windows, llvm::ArrayRef<int64_t> image, const Known &chosen,
                       const Index &window);
  Chosen chosenInWindow(const ir::Windows2d &windows, llvm::ArrayRef<int64_t> image, const Known &chosen,
                        const Index &window);
  /// Folds body(position, steps to it, whether it is in the image, state) over the elements of the window at
  /// `window`.
  State overWindow(const ir::Windows2d &windows, llvm::ArrayRef<int64_t> image, const Index &window,
                   const State &start,
                   llvm::function_ref<State(const Index &, const Steps &, const Guard &, State)> body);
  /// How lanes share windows: lane i has window number (i + remainder) / stride of those that are read.
  struct SharedWindows {
    int64_t stride, remainder;
  };
  /// How the lanes share the windows along one dimension, if they stand side by side in one row of elements
  /// whose first begins at a place in a window's stride that is known here.
  std::optional<SharedWindows> sharedBy(const ir::Windows &windows, const Affine &padded) const;
  /// A window that may hold an element.
  struct HoldingWindow {
    Index position; ///< Where it is read: of shared windows each once, in the first lanes.
    Guard readable; ///< Whether there is a window, in the same lanes.
    Steps steps;    ///< From its first element to the one that it may hold, in its own count.
    std::optional<SharedWindows> shared;
  };
  /// What was read at a window's position, in the lanes of its elements.
  Expr spread(const Known &read, const HoldingWindow &window);
  /// Along one dimension: whether a window holds the element, and whether it can be read; both null: always.
  struct Holds {
    Guard element, readable;
  };
  /// Goes on by inner(whether it holds, state) for each window along `dim` that may hold the element.
  State alongHolding(const ir::Windows &windows, size_t dim, int64_t pooled, const Index &element,
                     bool mayShare, Known &steps, HoldingWindow &window, const State &state,
                     llvm::function_ref<State(const Holds &, State)> inner);
  /// The sum of term(window) over the windows that hold the element; what is read is read under `guard` too.
  Expr overHoldingWindows(const ir::Windows2d &windows, llvm::ArrayRef<int64_t> pooled, const Index &element,
                          Expr zero, const Guard &guard,
                          llvm::function_ref<Expr(const HoldingWindow &)> term);
  /// body(step, state) for each step below `count`.
  State forSteps(int64_t count, State state, llvm::function_ref<State(const Affine &, State)> body);
  /// From the window's first element to that at `padded`, counted from the start of the padding.
  Known offsetIn(const ir::Windows &windows, const Known &padded, const Known &window);
  /// Whether the window holds what lies so far from its first element.
  Guard holdsElement(const ir::Windows &windows, const Known &offset);
  /// How many of the window's elements are no padding.
  Known elementsInside(const ir::Windows &windows, int64_t extent, const Known &window);
  /// By how much the sum over the window is divided, in `compute`.
  Expr divisor(const ir::Windows2d &windows, llvm::ArrayRef<int64_t> image, bool excludePadding,
               const Index &window, mlir::Type compute);
  Known quotient(const Known &dividend, int64_t divisor);
  /// a - b · factor.
  Known minusProduct(const Known &a, const Known &b, int64_t factor);
  /// number == factor · other.
  Known isProduct(const Known &number, const Known &factor, int64_t other);
  /// In as many lanes as the code has now.
  Expr widened(const Known &known);

  /// The window's first position along `dim`, clamped so that it fits.
  Known windowStart(mlir::Value start, int64_t dim, int64_t last, const Guard &guard);
  Known within(Known position, int64_t extent);
  /// What the coordinates' ranges tell of 0 <= position < extent.
  enum class Where { Inside, Outside, Either };
  Where whereIs(const Affine &position, int64_t extent) const;
  /// Whether all lanes that exist lie in the tensor, as its ranges tell.
  bool isInside(const Index &index, llvm::ArrayRef<int64_t> shape) const;
  /// Whether the position is a multiple of `step`; then it becomes that multiple.
  Known toGrid(Affine &position, int64_t step);
  Known choose(const Guard &condition, const Known &onTrue, const Known &onFalse);
  Known number(ElementKind kind, double value);
  Known loadAt(mlir::Value pointer, ElementKind kind, llvm::ArrayRef<int64_t> shape, const Index &index,
               const Guard &guard);
  Known loadScalar(mlir::Value pointer, ElementKind kind, Expr offset, const Guard &guard, int where);
  Known loadVector(mlir::Value pointer, ElementKind kind, Expr offset, int64_t laneStride, const Guard &guard,
                   int where);
  Expr loadApart(mlir::Value pointer, ElementKind kind, Expr offset, int64_t stride, Expr mask);
  /// From which level on the coordinates in `affine`, and their ranges, are known.
  int levelOf(const Affine &affine) const;
  /// A position as a number.
  Known materialize(const Affine &affine);
  /// What is static of it, in lane 0, and by how much it grows from lane to lane.
  Known staticPart(const Affine &affine, int64_t &laneStride);
  /// So much for each step along `group`.
  Expr strideAlong(size_t group, int64_t stride);
  mlir::Value elementPointer(mlir::Value pointer, ElementKind kind, Expr offset);
  int64_t vectorAlignment(ElementKind kind) const;
  Expr laneNumbers();

  /// Emits by `make` at `level`, whatever level the builder is at.
  Known at(int level, llvm::function_ref<Expr()> make);
  /// Emits at the innermost level of `operands`, widened to vectors if any is one.
  Known combine(llvm::ArrayRef<Known> operands, llvm::function_ref<Expr(llvm::ArrayRef<Expr>)> make);
  /// Of two that may be null.
  Guard both(const Guard &a, const Guard &b);

  mlir::ImplicitLocOpBuilder &builder_;
  const Kernel &kernel_;
  llvm::SmallVector<mlir::Value> pointers_;
  llvm::SmallVector<Coordinate> coordinates_; ///< By group.
  size_t laneGroup_ = ~size_t(0);
  int64_t lanes_ = 1;
  int64_t alignment_ = 0; ///< Of vectors.
  bool splitsAddresses_ = false;
  Expr tailMask_;
  int64_t tailCount_ = 0;
  llvm::SmallVector<Level> levels_;
  llvm::DenseMap<mlir::Operation *, mlir::Value> tables_; ///< Addresses of dense constants.
  llvm::MapVector<mlir::Operation *, Known> bound_;
  llvm::DenseMap<mlir::Value, Kept> kept_;
  llvm::DenseMap<mlir::Operation *, mlir::Value> randomIds_;
  llvm::DenseMap<mlir::Operation *, mlir::Value> numbers_;
  llvm::SmallVector<size_t> stridesBeside_; ///< Groups whose strides do not stand in the code.
  std::function<mlir::Value(int64_t)> strideOf_;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Memo, 1>> memo_;
};

} // namespace gpuc::codegen
