//===- HostLoops.cpp - How a kernel is cut into tiles and vectors -----------===//

#include "passes/codegen/host/HostLoops.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/codegen/Element.h"
#include "passes/codegen/Ranges.h"
#include "passes/codegen/Segments.h"
#include "passes/target/TargetDescription.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {

int64_t picosecondsPerElement(Operation &op) {
  if (isPooling(&op)) // the more windows an element has, or elements a window
    return 300 + 100 * cast<CostOpInterface>(op).getFlops() /
                     std::max<int64_t>(1, elementCount(op.getResult(0).getType()));
  if (isa<PowOp, SinOp, CosOp, TanOp, ErfOp, RandomBitsOp, RemOp>(op))
    return 1200;
  if (isa<ExpOp, Expm1Op, LogOp, Log1pOp, TanhOp, SigmoidOp, AtanOp>(op))
    return 600;
  if (isa<DivOp, SqrtOp, RsqrtOp>(op))
    return 200;
  if (isa<GatherOp, ArgmaxOp, ScatterAddOp>(op))
    return 500;
  // For each of their two results; top_k has fewer of them than elements to look at.
  if (auto sort = dyn_cast<SortOp>(op)) {
    int64_t levels = llvm::Log2_64_Ceil(std::max<int64_t>(1, shapeOf(sort.getOperand())[sort.getDim()]));
    return 500 + 250 * levels * levels;
  }
  if (auto topK = dyn_cast<TopKOp>(op))
    return 1000 * shapeOf(topK.getOperand())[topK.getDim()] / static_cast<int64_t>(topK.getK());
  return 15;
}

/// Estimated work for one position of the iteration space: arithmetic, or reading and writing the
/// second-level cache, whichever takes longer.
static int64_t picosecondsPerPosition(const Kernel &kernel) {
  int64_t arithmetic = 0, memory = 0, positions = 1;
  for (int64_t extent : kernel.extents)
    positions *= extent;
  for (Operation &op : kernel.body->without_terminator())
    for (Value result : op.getResults()) // what is smaller than the space is computed less often
      arithmetic += picosecondsPerElement(op) * std::min(elementCount(result.getType()), positions) /
                    std::max<int64_t>(1, positions);
  for (BlockArgument argument : kernel.body->getArguments())
    memory += 9 * sizeInBytes(argument.getType()) / std::max<int64_t>(1, positions);
  return std::max<int64_t>({arithmetic, memory, 20});
}

/// Bytes of the widest element that varies along the lanes decide how many lanes fill a register; of
/// reductions, that of what they fold alone: in which order they do it must not hang on what they are fused
/// with.
static int64_t lanesFor(const Kernel &kernel, const HostTarget &target, int64_t laneExtent) {
  int64_t widest = 1;
  auto consider = [&](Value value) {
    if (elementCount(value.getType()) > 1)
      widest = std::max(widest, bytesOf(elementKind(value.getType())));
  };
  if (kernel.form == Form::Reduction) {
    widest = bytesOf(elementKind(kernel.sweeps.front().front()->getOperand(0).getType()));
  } else {
    for (BlockArgument argument : kernel.body->getArguments())
      consider(argument);
    for (Operation &op : kernel.body->without_terminator())
      llvm::for_each(op.getResults(), consider);
  }
  int64_t lanes = target.vectorBytes / std::max<int64_t>(widest, 4);
  return std::min<int64_t>(lanes, llvm::PowerOf2Ceil(std::max<int64_t>(1, laneExtent)));
}

constexpr int64_t tilePicoseconds = 1000 * static_cast<int64_t>(kHostDescription.tileNanoseconds),
                  grainPicoseconds = 1000 * static_cast<int64_t>(kHostDescription.spreadNanoseconds);

/// At least, of what gathers an operand's elements: 3.6 us for 16,384.
constexpr int64_t picosecondsPerElementAcross = 220;

/// `extent` cut into parts of about `most` each, at most so many: into a multiple of 16 where there are that
/// many. Halves, quarters and eighths of all kernels on the same rows then begin at the same ones, and
/// threads that take a loop over time by rows can share the shortest of them.
static int64_t partOf(int64_t extent, int64_t most) {
  int64_t parts = llvm::alignTo(llvm::divideCeil(extent, most), 16);
  return llvm::divideCeil(extent, parts);
}

static int64_t grainOf(int64_t picosecondsPerTile) {
  return std::max<int64_t>(1, grainPicoseconds / std::max<int64_t>(1, picosecondsPerTile));
}

/// Whether elements that lie side by side in an operand are those of several rows: as what is transposed.
static bool readsAcross(const Kernel &kernel, size_t laneGroup, ArrayRef<size_t> rowGroups) {
  if (laneGroup == HostLoops::none)
    return false;
  return llvm::any_of(allAccesses(kernel), [&](const Access &access) {
    auto along = [&](size_t group) { return access.address.coefficients[kernel.groups[group].last]; };
    return access.leaf && along(laneGroup) > 1 &&
           llvm::any_of(rowGroups, [&](size_t row) { return along(row) == 1; });
  });
}

/// The transposed operands of which elements that lie side by side are those of rows.
static SmallVector<Value, 1> transposedAcross(const Kernel &kernel, const Group &lanes, const Group &rows) {
  SmallVector<Value, 1> found;
  for (auto transpose : kernel.body->getOps<TransposeOp>()) {
    const ElementKind kind = elementKind(transpose.getType());
    if (!isa<BlockArgument>(transpose.getOperand()) ||
        shapeOf(transpose.getResult()) != ArrayRef(kernel.extents) ||
        (kind != ElementKind::F32 && kind != ElementKind::F64))
      continue;
    const Affine address = linearAddress(movedIndex(transpose, kernel.everywhere),
                                         shapeOf(transpose.getOperand()), kernel.space());
    if (address.coefficients[rows.last] == 1 && address.coefficients[lanes.last] > 1)
      found.push_back(transpose);
  }
  return found;
}

bool HostLoops::fallsIntoSquares(const Kernel &kernel) const {
  constexpr int64_t mostOfRow = 1024; // elements, of which a reduction keeps as many rows as there are lanes
  const Group &along = kernel.groups[laneGroup];
  const bool isFolded =
      kernel.form == Form::Reduction && along.role == Role::Ordered && along.extent <= mostOfRow &&
      llvm::count_if(kernel.groups, [](const Group &group) { return group.role == Role::Ordered; }) == 1;
  return (kernel.form == Form::Elementwise || isFolded) && along.extent % lanes == 0 &&
         laneRanges.size() == 1 && cutGroup == none && kernel.groups[rowGroups.back()].extent % lanes == 0 &&
         rowsPerTile % lanes == 0;
}

void HostLoops::cutRows(const Kernel &kernel) {
  for (size_t group : rowGroups)
    if (auto ranges = rangesAlong(kernel, group, /*lanes=*/1); ranges.size() > 1) {
      cutGroup = group;
      rowRanges = ranges;
      return;
    }
}

HostLoops::HostLoops(const Kernel &kernel, const HostTarget &target) {
  int64_t ordered = 1; // positions visited for each element of the tile
  for (auto [number, group] : llvm::enumerate(kernel.groups)) {
    bool innermost = number + 1 == kernel.groups.size();
    bool inOrder = kernel.form == Form::Cumsum || kernel.form == Form::Sort;
    bool scanned = inOrder && group.role == Role::Ordered;
    if (group.role != Role::Parallel)
      ordered *= group.extent;
    if (innermost && !scanned && kernel.form != Form::TopK && group.role != Role::Slot &&
        !(kernel.form == Form::ScatterAdd && group.role == Role::Ordered))
      laneGroup = number;
    else if (group.role == Role::Parallel)
      rowGroups.push_back(number);
  }
  bool laneIsParallel = laneGroup != none && kernel.groups[laneGroup].role == Role::Parallel;
  for (size_t group : rowGroups)
    rows *= kernel.groups[group].extent;
  if (laneGroup != none) {
    lanes = lanesFor(kernel, target, kernel.groups[laneGroup].extent);
    laneRanges = rangesAlong(kernel, laneGroup, lanes);
  }
  if (kernel.form == Form::Elementwise && laneRanges.size() <= 1)
    cutRows(kernel);
  laneExtent = chunk = laneIsParallel ? kernel.groups[laneGroup].extent : 1;

  bool across = readsAcross(kernel, laneGroup, rowGroups);
  int64_t perElement =
      std::max(picosecondsPerPosition(kernel), across ? picosecondsPerElementAcross : 0) * ordered;
  int64_t wanted = std::max<int64_t>(1, tilePicoseconds / std::max<int64_t>(1, perElement));
  if (laneExtent > wanted || (rows == 1 && laneExtent > 1))
    chunk = std::min<int64_t>(laneExtent, llvm::alignTo(partOf(laneExtent, wanted), 4 * lanes));
  // Blocks of a line's length along the rows and few lanes: what lies across is read a line at a time, and
  // the lines stay in the first-level cache until all of their rows have passed. Whole rows of 256x64,
  // transposed, took 10.1 us, blocks 3.6.
  if (across)
    chunk = std::min<int64_t>(chunk, 4 * lanes);
  chunk = std::max<int64_t>(1, chunk); // an empty tensor has no tiles
  rowsPerTile = partOf(std::max<int64_t>(1, rows), std::max<int64_t>(1, wanted / chunk));
  if (across)
    rowsPerTile = std::clamp<int64_t>(rows, 1, llvm::alignTo(rowsPerTile, lanes));
  if (kernel.form == Form::ScatterAdd)
    rowsPerTile = 1;
  if (across && fallsIntoSquares(kernel))
    squares = transposedAcross(kernel, kernel.groups[laneGroup], kernel.groups[rowGroups.back()]);
  tiles = llvm::divideCeil(rows, rowsPerTile) * chunks();
  picosecondsPerTile = perElement * chunk * rowsPerTile;
  grain = grainOf(picosecondsPerTile);
}

/// The tiles of all segments, one segment's after another's.
static KernelSchedule scheduleSegments(Block &body, const HostTarget &target) {
  int64_t tiles = 0, picoseconds = 0;
  for (const Segment &segment : segmentsOf(body)) {
    HostLoops loops(Kernel(*segment.body), target);
    tiles += loops.tiles;
    picoseconds += loops.tiles * loops.picosecondsPerTile;
  }
  return {tiles, grainOf(picoseconds / std::max<int64_t>(1, tiles)), 0, {}};
}

} // namespace gpuc::codegen

namespace gpuc {

bool takesProductTiles(Block &body, unsigned argument) {
  if (codegen::isSegmented(body) || argument >= body.getNumArguments())
    return false;
  const codegen::Kernel kernel(body);
  auto isWide = [](Value result) {
    Type element = getElementTypeOrSelf(result.getType());
    return element.isF32() || element.isF64();
  };
  bool isSame =
      true; // in one row, the only coordinate is an element's place in every tensor of more than one
  codegen::forEachRead(kernel, [&](BlockArgument read, const codegen::Index &index) {
    isSame &= read.getArgNumber() != argument || index == kernel.everywhere;
  });
  return isSame && kernel.form == codegen::Form::Elementwise && kernel.groups.size() == 1 &&
         elementCount(body.getArgument(argument).getType()) == kernel.groups.front().extent &&
         llvm::all_of(kernel.yields(), isWide);
}

KernelSchedule scheduleHostKernel(Block &body, const HostTarget &target) {
  if (codegen::isSegmented(body))
    return codegen::scheduleSegments(body, target);
  codegen::Kernel kernel(body);
  codegen::HostLoops loops(kernel, target);
  KernelSchedule schedule{loops.tiles, loops.grain, 0, {}};
  codegen::findRows(schedule, kernel, loops);
  return schedule;
}

} // namespace gpuc
