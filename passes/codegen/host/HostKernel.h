//===- HostKernel.h - A kernel as a function over tiles ---------------------===//
#pragma once

#include "passes/codegen/KernelEmitter.h"
#include "passes/codegen/host/HostLoops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>

namespace gpuc::codegen {

/// Emits `symbol(ptr operands, i64 begin, i64 end)` into `module`, which may be of another context than the
/// block. Numbers in which kernels differ that may well share their code (the length of a kernel whose
/// elements lie in one row, the ids of random numbers and the f32 constants beside them) are parameters: they
/// are returned, and where there are any, the function takes a pointer to them, an i64 each, after the
/// others.
std::vector<int64_t> emitHostKernel(mlir::ModuleOp module, llvm::StringRef symbol, mlir::Block &body,
                                    const HostTarget &target,
                                    const std::optional<ProductTiles> &productTiles = std::nullopt);

/// The function of one segment (Segments.h), over its own operands and tiles.
struct HostSegment {
  std::string symbol;
  int64_t tiles;
  llvm::ArrayRef<int64_t> operands; ///< As in Segment.
};

/// Emits `symbol(ptr operands, i64 begin, i64 end)` into `module`: the tiles of all segments are numbered one
/// segment after another, and those from `begin` to `end` are handed to the segments that have them.
void emitHostSegments(mlir::ModuleOp module, llvm::StringRef symbol, llvm::ArrayRef<HostSegment> segments);

/// One bit a lane: true of those below `count`, an i64.
Expr maskBelow(mlir::ImplicitLocOpBuilder &builder, mlir::Value count, int64_t lanes);

/// What a number says of a kernel's rows.
enum class RowNumber { Rows, RowsPerTile, Extent, Reciprocal, Stride, Lanes, Chunk };

/// The loops over tiles, rows and lanes.
class HostKernelEmitter : public KernelEmitter {
public:
  /// Emits into `function`, from where the builder stands; `pointers`: see KernelEmitter.
  HostKernelEmitter(mlir::func::FuncOp function, mlir::ImplicitLocOpBuilder &builder, const Kernel &kernel,
                    const HostLoops &loops, llvm::ArrayRef<mlir::Value> pointers,
                    const std::optional<ProductTiles> &productTiles);
  const std::vector<int64_t> &parameters() const { return parameters_; }

private:
  // Loops (HostKernel.cpp). Each calls `body` with the builder and the emitter standing inside.
  void forOutputs(Body body) override;
  void forTiles(Body body);
  void forProductTiles(Body body);
  void prefetchRow(mlir::Value row, mlir::Value left, mlir::Value right);
  /// Row by row, or the first of each `by` rows.
  void forRows(Body body, int64_t by = 1);
  /// The part of the kernel for the range of rows that the present one is in.
  void inRowRange(Body body);
  /// The tile's part of the lane group, range by range.
  void forLanes(Body body);
  /// From `low` to `high`, which are a multiple of the lanes apart or the end is the range's: by whole
  /// vectors, then what is left under a mask.
  void forLanes(mlir::Value low, mlir::Value high, Range range, Body body);
  // Squares of what is read across (Squares.cpp).
  void forSquares(Body body);
  /// Of a reduction whose rows lie along the lanes: as many at a time as there are lanes.
  void emitRowsOfSquares();
  void reserveSquares();
  /// Of what is kept of a square: what is read there at once.
  int64_t lengthOfRow() const;
  /// The rows from `row` on, of which the squares hold what begins at the lane `first`.
  void forRowsOfSquare(mlir::Value row, mlir::Value first, Body body);
  void transposeSquare(mlir::Value value, mlir::Value place, mlir::Value row, mlir::Value lane);
  Range wholeLanes() const { return {0, kernel_.groups[loops_.laneGroup].extent}; }
  void emitScatterAdd() override;

  // Reductions (HostReduction.cpp).
  void emitReduction() override;
  /// The row, or with parallel lanes the rows, that the loops are in.
  void emitRow();
  /// The same where each lane folds a column, in one sweep: four vectors of columns at a time, then one.
  void emitColumns();
  State foldRow(Folds &folds);
  State foldAlongLanes(Folds &folds);
  /// The present position's elements; the results that are written in this sweep are written there.
  State sweepOver(Folds &folds, Expr mask);
  State foldGroups(Folds &folds, llvm::ArrayRef<size_t> groups, unsigned copies,
                   llvm::function_ref<State()> innermost);
  State blocked(Folds &folds, mlir::Value low, mlir::Value high, int64_t step, int levels, int64_t lanes,
                unsigned copies, llvm::function_ref<State(mlir::Value, const State &)> body);
  /// Whether a row lies along the lanes.
  bool foldsLanes() const;
  /// Where the row's kept values lie: on the stack.
  void reserveKept();

  /// A number that is no part of the code.
  mlir::Value parameter(int64_t number);
  void setNumbers();
  /// A number by which rows are found: a parameter, or a constant where the code hangs on it.
  mlir::Value rowNumber(RowNumber what, int64_t number);
  /// The same of a row's length.
  mlir::Value laneNumber(RowNumber what, int64_t number) {
    return lanesAreBeside_ ? rowNumber(what, number) : index(number);
  }
  /// Position and row: of `row`, the coordinate of a group that is `extent` long and how often it was passed.
  std::pair<mlir::Value, mlir::Value> divideRow(mlir::Value row, int64_t extent);

  const HostLoops &loops_;
  mlir::Value begin_, end_, parameterPointer_;
  mlir::Operation *afterParameters_; ///< Where the function begins: behind the loads that are there already.
  std::vector<int64_t> parameters_;
  /// Parameters of rows, each once. Of which kind they are counts, too: else kernels of which two numbers
  /// happen to be equal would have code of their own.
  std::map<std::pair<RowNumber, int64_t>, mlir::Value> rowNumbers_;
  bool rowsAreBeside_ = false,
       lanesAreBeside_ = false;    ///< Whether the numbers of rows, and their lengths, are.
  mlir::Value laneExtent_, chunk_; ///< HostLoops' as parameters, of a kernel that is one row; else null.
  /// ProductTiles as parameters; null of a kernel that has none.
  struct {
    mlir::Value rows, columns, tileRows, tileColumns, tilesAcross;
    mlir::Value gap; ///< Elements of the first operand from where a row of the product would end to its next.
  } product_;
  mlir::Value rowTile_;
  mlir::Value low_, high_; ///< The tile's part of the lane group, when that is parallel.
  using Place = std::pair<mlir::Value, mlir::Value>;    ///< A value, and the pointer to what is kept of it.
  llvm::SmallVector<llvm::SmallVector<Place, 1>> kept_; ///< By the sweep that stores them.
  llvm::SmallVector<mlir::Value> squares_;              ///< Where HostLoops' are kept: on the stack.
  llvm::ArrayRef<Place> keeping_;                       ///< Of the present sweep.
  llvm::ArrayRef<unsigned> writing_;                    ///< Results of whole rows, of the present sweep.
};

} // namespace gpuc::codegen
