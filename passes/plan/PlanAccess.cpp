//===- PlanAccess.cpp - Which bytes of the arena a command touches -----------===//

#include "passes/plan/PlanAccess.h"

#include "passes/plan/CommandGraph.h"
#include "runtime/plan/header.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gpuc {

//===----------------------------------------------------------------------===//
// Access
//===----------------------------------------------------------------------===//

bool Access::isDense() const {
  int64_t extent = size; // of the loops inside
  for (Loop loop : llvm::reverse(loops)) {
    if (loop.count > 1 && std::abs(loop.stride) > extent)
      return false;
    extent += std::abs(reachOf(loop));
  }
  return true;
}

Access Access::inIteration(int64_t iteration) const {
  Access access = *this;
  access.first += loops.front().stride * iteration;
  access.loops.erase(access.loops.begin());
  return access;
}

bool Access::meets(const Access &other, Effort &effort) const {
  if (!bytes().meets(other.bytes()))
    return false;
  if (isDense() && other.isDense())
    return true;
  // Rare: one leaves gaps, in which the other may lie.
  if (loops.empty())
    return other.meets(*this, effort);
  for (int64_t iteration = 0; iteration < loops.front().count; ++iteration)
    if (!effort.spend() || inIteration(iteration).meets(other, effort))
      return true;
  return false;
}

std::string Access::text() const {
  return llvm::formatv("{0} [{1:X}, {2:X})", plan::bufferOf(value).getBufferName(), lower(), upper());
}

//===----------------------------------------------------------------------===//
// AddressSpace
//===----------------------------------------------------------------------===//

LogicalResult AddressSpace::append(plan::CommandOpInterface command, uint64_t run,
                                   ArrayRef<int64_t> iterations, SmallVectorImpl<Access> &accesses) const {
  if (auto loop = dyn_cast<plan::LoopOpInterface>(*command)) {
    for (auto inner : loop.getCommands().getOps<plan::CommandOpInterface>())
      if (failed(append(inner, run, iterations, accesses)))
        return failure();
    return success();
  }
  const SmallVector<int64_t> counts = tripCountsAround(command);
  const SmallVector<plan::CommandOperand> operands = command.getCommandOperands();
  for (bool write : {false, true})
    for (const auto &[value, use] : operands) {
      if (!(write ? isWritten(use.role) : isRead(use.role)))
        continue;
      plan::Range range = plan::rangeOf(value);
      FailureOr<int64_t> base = address(range.buffer, run, command);
      if (failed(base))
        return failure();
      Access access{
          command,    value, write, use.role, ownerOf(range.buffer), *base + range.offsetAt(iterations),
          range.size, {}};
      for (size_t depth = iterations.size(); depth < counts.size(); ++depth)
        access.loops.push_back({depth < range.strides.size() ? range.strides[depth] : 0, counts[depth]});
      if (failed(check(access, range.buffer, *base)))
        return failure();
      accesses.push_back(std::move(access));
    }
  return success();
}

LogicalResult AddressSpace::check(const Access &access, plan::BufferOpInterface buffer, int64_t base) const {
  const auto [lower, upper] = access.bytes();
  Operation *command = access.command;
  if (lower < 0 || upper > bytes_)
    return command->emitOpError("touches ") << buffer.getBufferName() << " at bytes [" << lower << ", "
                                            << upper << ") of an arena of " << bytes_;
  if (lower < base || upper > base + plan::sizeInBytes(buffer))
    return command->emitOpError("touches bytes [")
           << lower - base << ", " << upper - base << ") of " << buffer.getBufferName() << ", which has "
           << plan::sizeInBytes(buffer);
  return success();
}

FailureOr<int64_t> AddressSpace::address(plan::BufferOpInterface buffer, uint64_t run,
                                         Operation *user) const {
  auto attribute = ownerOf(buffer)->getAttrOfType<IntegerAttr>("place");
  if (!attribute)
    return user->emitOpError("uses ")
               << buffer.getBufferName() << ", which has no place: plan-place-buffers comes first",
           failure();
  const int64_t place = attribute.getInt();
  const auto alignment = static_cast<int64_t>(leastAlignment(plan::sizeInBytes(buffer)));
  if (place % alignment != 0)
    return user->emitOpError("uses ")
               << buffer.getBufferName() << " at " << llvm::formatv("{0:X}", place).str()
               << ", which is no multiple of " << alignment,
           failure();
  if (auto input = dyn_cast<plan::InputOp>(*buffer))
    return place + (run % slots_) * input.getSlotStride().value_or(0);
  return place;
}

Operation *AddressSpace::ownerOf(plan::BufferOpInterface buffer) const {
  if (auto use = dyn_cast<plan::UseOp>(*buffer))
    return symbols_.lookup(use.getSymbolAttr().getAttr());
  return buffer;
}

} // namespace gpuc
