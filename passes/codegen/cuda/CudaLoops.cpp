//===- CudaLoops.cpp - How a kernel is cut into blocks and threads ----------===//

#include "passes/codegen/cuda/CudaLoops.h"

#include "passes/codegen/Segments.h"
#include "passes/codegen/cuda/CudaAttention.h"
#include "passes/codegen/cuda/CudaKernel.h"

using namespace mlir;

namespace gpuc::codegen {

constexpr int64_t threadsPerBlock = 256;
constexpr int64_t warp = 32;
constexpr int64_t scatteringThreads = 512 * threadsPerBlock; // more only look through the indices once more
constexpr int64_t leastSlotsOfPart = 8;
constexpr int64_t leastFoldToShare = 32; // below, one thread folds alone: cheaper than meeting at barriers
constexpr int64_t mostThreadsPerBlock = 1024;
constexpr int64_t threadsThatFill = 256 << 10; // what an H100's 132 multiprocessors hold at once
constexpr int64_t leastColumns = 8;            // of 32 bits: what one access to memory brings
constexpr int64_t leastFoldOfThread = 4;

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
    shareFolds(mayWiden ? mostThreadsPerBlock : threadsPerBlock);
  }
  grid = std::clamp<int64_t>(tiles(), 1, kMostBlocks);
}

/// Where there are few outputs, more threads fold each: first in larger blocks, then of fewer columns each.
void CudaLoops::shareFolds(int64_t mostThreads) {
  int64_t threads = threadsPerBlock;
  int64_t wanted = adjacentColumns ? std::min<int64_t>(warp, llvm::PowerOf2Ceil(outputs)) : 1;
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
