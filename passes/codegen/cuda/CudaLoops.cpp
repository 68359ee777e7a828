//===- CudaLoops.cpp - How a kernel is cut into blocks and threads ----------===//

#include "passes/codegen/cuda/CudaLoops.h"

#include "passes/codegen/Ranges.h"
#include "passes/codegen/Segments.h"
#include "passes/codegen/cuda/CudaAttention.h"
#include "passes/codegen/cuda/CudaKernel.h"

#include "dialects/gpuc/GpucOps.h"

using namespace mlir;

namespace gpuc::codegen {

constexpr int64_t threadsPerBlock = 256;
constexpr int64_t scatteringThreads =
    512 * threadsPerBlock; // of all slots together: each warp looks through the indices
constexpr int64_t leastSlotsOfPart = 8;
constexpr int64_t leastFoldToShare = 32; // below, one thread folds alone: cheaper than meeting at barriers
constexpr int64_t mostThreadsPerBlock = 1024;
constexpr int64_t mostSharedBytes = 48 << 10;  // of a block's threads, on any architecture
constexpr int64_t threadsThatFill = 256 << 10; // what an H100's 132 multiprocessors hold at once
constexpr int64_t fewestBlocks = 256;          // about two for each of them: 128 of 1,024 threads took longer
constexpr int64_t blocksThatFill = 264;        // two for each of them
constexpr int64_t leastColumns = 8;            // of 32 bits: what one access to memory brings
constexpr int64_t leastFoldOfThread = 4;
constexpr int64_t mostLanes = 8;

/// So many threads have room for what each of them folds, in all sweeps, in so many lanes.
static int64_t mostThreadsOf(const Kernel &kernel, int64_t lanes) {
  int64_t bytes = 0;
  for (ArrayRef<Operation *> sweep : kernel.sweeps)
    for (Operation *reduction : sweep)
      bytes += std::max<int64_t>(4, ir::elementBytes(getElementTypeOrSelf(reduction->getOperand(0)))) +
               (isa<ir::ArgmaxOp>(reduction) ? 8 : 0);
  const auto room = static_cast<uint64_t>(mostSharedBytes / std::max<int64_t>(bytes * lanes, 1));
  return std::min<int64_t>(mostThreadsPerBlock, llvm::bit_floor(room));
}

/// Whether elements along the innermost loop are read side by side, so that each `lanes` of them begin at a
/// multiple of their bytes, or are one and the same.
static bool adjoinsInLanes(const Affine &address, const Kernel &kernel, int64_t lanes) {
  const size_t innermost = kernel.groups.back().last;
  if (address.coefficients[innermost] == 0)
    return true;
  auto isMultiple = [&](int64_t number) { return number % lanes == 0; };
  for (const Group &group : llvm::ArrayRef(kernel.groups).drop_back())
    if (!isMultiple(address.coefficients[group.last]))
      return false;
  return address.coefficients[innermost] == 1 && isMultiple(address.constant);
}

/// Bytes of the widest element of what is as large as the largest tensor: only that takes time to read.
static int64_t widestOf(const Kernel &kernel) {
  SmallVector<Value> tensors(kernel.body->getArguments());
  llvm::append_range(tensors, kernel.yields());
  int64_t most = 0, widest = 1;
  for (Value tensor : tensors)
    most = std::max(most, ir::elementCount(tensor.getType()));
  for (Value tensor : tensors)
    if (2 * ir::elementCount(tensor.getType()) > most)
      widest = std::max<int64_t>(widest, bytesOf(elementKind(tensor.getType())));
  return widest;
}

/// Whether the op puts things side by side along `dim`, and along no other.
static bool changesAlong(Operation &op, size_t dim) {
  if (auto concat = dyn_cast<ir::ConcatOp>(op))
    return concat.getDim() == dim;
  auto pad = dyn_cast<ir::PadOp>(op);
  if (!pad || llvm::any_of(pad.getInterior(), [](int64_t gap) { return gap != 0; }))
    return false;
  for (auto [at, low, high] : llvm::enumerate(pad.getLow(), pad.getHigh()))
    if (at != dim && (low != 0 || high != 0))
      return false;
  return true;
}

/// The most lanes in which everything is read and written in whole vectors; 1 if there are none.
static int64_t lanesOf(const Kernel &kernel) {
  const int64_t widest = widestOf(kernel);
  for (Operation &op : kernel.body->without_terminator())
    if ((!isInlinable(&op) && !isReduction(&op) && !changesAlong(op, kernel.groups.back().last)) ||
        isa<ir::RandomBitsOp>(op))
      return 1;
  const bool foldsInOneLoop =
      kernel.groups.back().role == Role::Ordered && // whatever is left is folded by itself
      llvm::count_if(kernel.groups, [](const Group &group) { return group.role == Role::Ordered; }) == 1;
  for (int64_t lanes = std::min(kVectorBytes / widest, mostLanes); lanes > 1; lanes /= 2) {
    bool fits = kernel.groups.back().extent % lanes == 0 || foldsInOneLoop;
    forEachRead(kernel, [&](BlockArgument argument, const Index &index) {
      fits &= llvm::none_of(index, [](const Affine &entry) { return entry.isDynamic; }) &&
              adjoinsInLanes(linearAddress(index, shapeOf(argument), kernel.space()), kernel, lanes);
    });
    for (Value yield : kernel.yields())
      fits &=
          adjoinsInLanes(linearAddress(kernel.indexOf(yield), shapeOf(yield), kernel.space()), kernel, lanes);
    if (fits)
      return lanes;
  }
  return 1;
}

CudaLoops::CudaLoops(const Kernel &kernel, bool mayWiden) {
  bool reduction = kernel.form == Form::Reduction;
  for (auto [number, group] : llvm::enumerate(kernel.groups)) {
    if (group.role == Role::Parallel) {
      outputGroups.push_back(number);
      outputs *= group.extent;
    } else if (reduction) {
      foldedGroups.push_back(number);
      folded *= group.extent;
    }
  }
  for (auto [extent, role] : llvm::zip_equal(kernel.extents, kernel.roles)) {
    bool isOfIndices = kernel.form == Form::ScatterAdd && role == Role::Ordered;
    if (extent == 0 && !isOfIndices)
      outputs = reduction ? outputs : 0; // a tensor without elements
  }
  if (kernel.form == Form::ScatterAdd)
    shareSlots(kernel);
  columns = threadsPerBlock;
  if (reduction && folded >= leastFoldToShare) {
    // What is innermost in memory is what neighbouring threads should differ in.
    adjacentColumns = kernel.groups.back().role == Role::Parallel;
    if (adjacentColumns)
      shareColumns(kernel, mayWiden);
    else
      shareRows(kernel, mayWiden);
  }
  alignedLanes = kernel.body->getParentOp()->hasAttr(kAlignedAttr);
  if (mayWiden && kernel.form == Form::Elementwise && alignedLanes)
    shareLanes(kernel);
  grid = std::clamp<int64_t>(tiles(), 1, kMostBlocks);
}

/// Vectors, where there are threads enough without: a tensor of less is read in no time.
void CudaLoops::shareLanes(const Kernel &kernel) {
  if (outputGroups.empty() || outputs == 0)
    return;
  const int64_t most = lanesOf(kernel);
  while (lanes < most && outputs / 2 >= threadsThatFill)
    lanes *= 2, outputs /= 2;
  laneRanges = rangesAlong(kernel, kernel.groups.size() - 1, lanes);
}

/// A warp folds a row, or more threads do where there are few rows; then blocks are smaller, too, so that
/// more multiprocessors have one.
void CudaLoops::shareRows(const Kernel &kernel, bool mayWiden) {
  lanes = lanesOf(kernel);
  const int64_t mostThreads =
      mayWiden ? mostThreadsOf(kernel, /*lanes=*/1) : threadsPerBlock; // merged by then
  const int64_t vectors = std::max<int64_t>(foldedVectors(), 1);
  parts = std::min<int64_t>(kWarp, llvm::bit_floor(static_cast<uint64_t>(vectors)));
  while (2 * parts <= mostThreads && outputs * parts < threadsThatFill &&
         2 * parts * leastFoldOfThread <= vectors)
    parts *= 2;
  columns = std::max<int64_t>(threadsPerBlock / parts, 1);
  while (mayWiden && columns > 1 && columns * parts > kWarp && tiles() < blocksThatFill)
    columns /= 2;
}

/// Columns side by side are one vector, where that leaves blocks enough. Where there are few outputs, more
/// threads fold each: first in larger blocks, then of fewer columns each; of vectors the other way round.
void CudaLoops::shareColumns(const Kernel &kernel, bool mayWiden) {
  int64_t threads = threadsPerBlock, mostLanes = mayWiden ? lanesOf(kernel) : 1;
  while (lanes < mostLanes && outputs / 2 / leastColumns >= fewestBlocks &&
         mostThreadsOf(kernel, 2 * lanes) >= threads)
    lanes *= 2, outputs /= 2;
  const int64_t mostThreads = mayWiden ? mostThreadsOf(kernel, lanes) : threads;
  int64_t wanted = std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(outputs));
  while (lanes > 1 && wanted > leastColumns && llvm::divideCeil(outputs, wanted) < blocksThatFill)
    wanted /= 2;
  const auto mayShareMore = [&](int64_t partsThen) {
    return llvm::divideCeil(outputs, wanted) * threads < threadsThatFill &&
           partsThen * leastFoldOfThread <= folded;
  };
  while (threads < mostThreads && mayShareMore(2 * threads / wanted))
    threads *= 2;
  while (wanted > leastColumns && mayShareMore(2 * threads / wanted))
    wanted /= 2;
  const int64_t mostParts = llvm::bit_floor(static_cast<uint64_t>(folded));
  parts = std::min(mostParts, threads / wanted);
  columns = threads / parts;
}

/// Of a table with 768 columns and one thread for each, most of a GPU would be idle.
void CudaLoops::shareSlots(const Kernel &kernel) {
  int64_t slots = 1;
  for (const Group &group : kernel.groups)
    if (group.role == Role::Slot)
      slots = std::max<int64_t>(group.extent, 1); // of a table without any there are no outputs
  int64_t wanted = llvm::divideCeil(scatteringThreads, std::max<int64_t>(outputs, 1));
  slotsOfPart = std::max<int64_t>(llvm::divideCeil(slots, wanted), std::min(slots, leastSlotsOfPart));
  slotParts = llvm::divideCeil(slots, slotsOfPart);
  outputs *= slotParts;
}

} // namespace gpuc::codegen

namespace gpuc {

CudaSchedule scheduleCudaKernel(Block &body) {
  if (FailureOr<codegen::AttentionKernel> attention = codegen::AttentionKernel::parse(body);
      succeeded(attention))
    return attention->schedule();
  if (codegen::isSegmented(body))
    return codegen::scheduleCudaSegments(body);
  codegen::CudaLoops loops{codegen::Kernel(body)};
  return {static_cast<uint32_t>(loops.grid), static_cast<uint32_t>(loops.block())};
}

} // namespace gpuc
