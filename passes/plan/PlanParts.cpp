//===- PlanParts.cpp - What the parts of a parallel touch ---------------------===//

#include "passes/plan/PlanParts.h"

#include "passes/plan/CommandGraph.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using namespace mlir;

namespace gpuc {

int64_t rowsOf(plan::CommandOpInterface command, const SymbolTable &kernels) {
  return TypeSwitch<Operation *, int64_t>(command)
      .Case([&](plan::LaunchOp launch) -> int64_t {
        return kernels.lookup<plan::KernelOp>(launch.getKernel()).getRows().value_or(0);
      })
      .Case([&](plan::MatmulOp matmul) -> int64_t {
        return rowsOfMatmul(matmul.getBatch(), matmul.getM(), matmul.getTransposeLhs(),
                            matmul.getWorkspace() || matmul.getUpdate() || matmul.getSquares());
      })
      .Case([&](plan::CopyOp copy) -> int64_t { return plan::rangeOf(copy.getTo()).size; })
      .Case([&](plan::FillOp fill) -> int64_t {
        return plan::rangeOf(fill.getTo()).size /
               ir::elementBytes(cast<TypedAttr>(fill.getValue()).getType());
      })
      .Default(int64_t{0});
}

PlanParts::PlanParts(const AddressSpace &addresses, const SymbolTable &kernels, plan::LoopOpInterface loop)
    : addresses_(addresses), kernels_(kernels), tripCount_(loop.getTripCount()),
      depth_(tripCountsAround(loop).size()) {}

LogicalResult PlanParts::add(Block &commands) {
  for (auto command : commands.getOps<plan::CommandOpInterface>())
    if (failed(add(command)))
      return failure();
  return success();
}

LogicalResult PlanParts::add(plan::CommandOpInterface command) {
  if (auto loop = dyn_cast<plan::LoopOpInterface>(*command))
    return add(loop.getCommands());
  SmallVector<int64_t> counts = tripCountsAround(command);
  counts[depth_] = 1;
  const int64_t rows = rowsOf(command, kernels_);
  rows_ = rows == 0 || rows_ == 1 ? 1 : std::gcd(rows_, rows);
  for (const auto &[index, operand] : llvm::enumerate(command.getCommandOperands())) {
    const plan::Range range = plan::rangeOf(operand.buffer);
    FailureOr<int64_t> base = addresses_.address(range.buffer, /*run=*/0, command);
    if (failed(base))
      return failure();
    Touch touch = {
        operand.buffer, operand.use, {*base + range.offset, *base + range.offset + range.size}, {}, 0};
    touch.use.by_rows = goesByRows(command, index, operand.use);
    auto strideAt = [&](size_t depth) { return depth < range.strides.size() ? range.strides[depth] : 0; };
    for (auto [depth, count] : llvm::enumerate(counts))
      touch.loops.push_back({strideAt(depth), count});
    touch.stride = strideAt(depth_);
    if (auto input = dyn_cast<plan::InputOp>(*range.buffer))
      touch.loops.push_back({static_cast<int64_t>(input.getSlotStride().value_or(0)), addresses_.slots()});
    touches_.push_back(std::move(touch));
  }
  return success();
}

bool PlanParts::goesByRows(plan::CommandOpInterface command, size_t operand, const OperandUse &use) const {
  auto launch = dyn_cast<plan::LaunchOp>(*command);
  if (!launch)
    return use.by_rows;
  auto byRows = kernels_.lookup<plan::KernelOp>(launch.getKernel()).getByRows();
  return byRows && llvm::is_contained(*byRows, static_cast<int64_t>(operand));
}

std::optional<std::string> PlanParts::meeting(Parts parts) const {
  if (touches_.size() > kMostPartOperands)
    return "more operands than " + std::to_string(kMostPartOperands);
  std::vector<PartTouch> touches;
  for (const Touch &touch : touches_) {
    SmallVector<Loop, 4> loops = llvm::to_vector<4>(touch.loops);
    if (parts.by_rows) // which go through all iterations of the loop
      loops.push_back({touch.stride, tripCount_});
    touches.push_back(
        touchOfParts(parts, touch.first, loops, touch.stride, touch.use.by_rows, isWritten(touch.use.role)));
  }
  auto meeting = findMeetingParts(touches);
  if (!meeting)
    return std::nullopt;
  return textOf(touches_[meeting->first]) + " and " + textOf(touches_[meeting->second]);
}

std::string PlanParts::textOf(const Touch &touch) const {
  return llvm::formatv("the {0} {1} [{2:X}, {3:X})", touch.use.name,
                       plan::bufferOf(touch.value).getBufferName(), touch.first.begin, touch.first.end);
}

} // namespace gpuc
