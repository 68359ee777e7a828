//===- Ranges.cpp - Where along a dimension a kernel's formula changes -------===//
//
// Cuts only say where it pays to emit the kernel once more: which of an op's operands is read in a range
// follows from the range itself (ElementEmitter.cpp).
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/Ranges.h"

#include "dialects/gpuc/GpucOps.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {

constexpr size_t mostRanges = 8; // the kernel's code grows with them

/// Where what `op` puts side by side along `dim` of its result ends: a concat's operands, or what lies
/// before, in and behind a pad's.
static SmallVector<int64_t> endsAlong(Operation &op, size_t dim) {
  SmallVector<int64_t> ends;
  if (auto concat = dyn_cast<ConcatOp>(op); concat && concat.getDim() == dim) {
    for (Value operand : concat.getOperands())
      ends.push_back(shapeOf(operand)[dim] + (ends.empty() ? 0 : ends.back()));
  } else if (auto pad = dyn_cast<PadOp>(op); pad && (pad.getLow()[dim] || pad.getHigh()[dim])) {
    int64_t extent = shapeOf(pad.getResult())[dim];
    ends = {pad.getLow()[dim], extent - pad.getHigh()[dim], extent};
  }
  return ends;
}

SmallVector<Range> rangesAlong(const Kernel &kernel, size_t group, int64_t lanes) {
  int64_t extent = kernel.groups[group].extent, begin = 0, done = 0;
  SmallVector<Range> ranges;
  for (Operation &op : *kernel.body) // one of them at most is a concat or a pad, at the results' position
    for (int64_t end : endsAlong(op, kernel.groups[group].last)) {
      assert(end <= extent && "what the results' position is not along");
      int64_t low = llvm::alignTo(begin, lanes), high = end == extent ? end : end / lanes * lanes;
      begin = end;
      if (low >= high)
        continue;
      if (done < low)
        ranges.push_back({done, low});
      ranges.push_back({low, high});
      done = high;
    }
  if (done < extent)
    ranges.push_back({done, extent});
  return ranges.empty() || ranges.size() > mostRanges ? SmallVector<Range>{{0, extent}} : ranges;
}

} // namespace gpuc::codegen
