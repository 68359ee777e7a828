//===- PlanContents.cpp - Whose bytes lie where as a plan runs ---------------===//
//
// A repeat of many iterations is not executed as often. Call an access moving if its address depends on the
// iteration, and standing if not. If
//
//   (a) no access of another buffer, one of both a write, has a byte in the range that a moving access covers
//       in the course of the repeat,
//   (b) every moving read finds its bytes: they are its buffer's before the repeat begins; or a write of the
//       same buffer and stride covers them, earlier in the same iteration or in the one before,
//   (c) moving writes leave no gaps,
//
// then it is enough to execute two iterations and to write what moving writes cover. For by (a) the bytes
// under moving accesses change hands at most once in the repeat, to the buffer that alone touches them: once
// found, they are found in all later iterations; and moving reads find theirs by (b), where addresses differ
// by the same amount in each iteration, so that what holds of iterations 0 and 1 holds of any two that follow
// one another. (What (b) asks of iteration 0 is executed.) All other bytes are touched by standing accesses
// alone. An iteration either gives such a byte to the last one who writes it or leaves it, whatever it held:
// doing that twice is doing it once. So from iteration 1 on all find what iteration 1 finds.
//
// A repeat in the region is seen, in (a) to (c), as what it covers in all of its own iterations; inside of
// each executed iteration it is treated in the same way. Where (a), (b) or (c) cannot be shown, all
// iterations are executed: the answer is exact in any case.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/PlanContents.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gpuc {
namespace {

int64_t sizeOf(Operation *symbol) {
  if (auto variable = dyn_cast<plan::VariableOp>(symbol))
    return ir::sizeInBytes(variable.getType());
  return ir::sizeInBytes(cast<plan::ConstantOp>(symbol).getValue().getType());
}

bool isLasting(Operation *owner) { return isa<plan::VariableOp, plan::ConstantOp>(owner); }

StringRef nameOf(Operation *owner) {
  if (auto buffer = dyn_cast<plan::BufferOpInterface>(owner))
    return buffer.getBufferName();
  return SymbolTable::getSymbolName(owner).getValue();
}

bool isMoving(const Access &access) { return access.loops.front().stride != 0; }

bool covers(const Access &write, const Access &read) {
  return write.isDense() && write.lower() <= read.lower() && read.upper() <= write.upper();
}

} // namespace

PlanContents::PlanContents(ModuleOp module, const AddressSpace &addresses, Effort &effort)
    : addresses_(addresses), effort_(effort) {
  contents_[0] = {nullptr, 0};
  for (Operation &op : *module.getBody())
    if (isLasting(&op))
      if (auto place = op.getAttrOfType<IntegerAttr>("place"))
        write(place.getInt(), place.getInt() + sizeOf(&op), {&op, 0});
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

LogicalResult PlanContents::execute(plan::CommandOpInterface command, const Moment &moment) {
  if (auto repeat = dyn_cast<plan::LoopOpInterface>(*command))
    return executeRepeat(repeat, moment);
  SmallVector<Access> accesses;
  if (failed(addresses_.append(command, moment.run, moment.iterations, accesses)))
    return failure();
  for (const Access &access : accesses) // reads come first
    if (access.write)
      write(access.first, access.first + access.size, {access.owner, moment.step});
    else if (failed(check(access.first, access.first + access.size, access.owner, moment.step, command,
                          plan::bufferOf(access.value).getBufferName())))
      return failure();
  return success();
}

LogicalResult PlanContents::executeRepeat(plan::LoopOpInterface repeat, Moment moment) {
  SmallVector<Access> accesses;
  SmallVector<size_t> positions; // of each access's command in the region
  int64_t count = repeat.getTripCount();
  bool regular = count > 2;
  if (regular) {
    size_t position = 0;
    if (failed(addresses_.append(cast<plan::CommandOpInterface>(*repeat), moment.run, moment.iterations,
                                 accesses)))
      return failure();
    for (auto command : repeat.getCommands().getOps<plan::CommandOpInterface>()) {
      while (positions.size() < accesses.size() && command->isAncestor(accesses[positions.size()].command))
        positions.push_back(position);
      ++position;
    }
    regular = isRegular(accesses, positions, moment.step);
  }
  for (int64_t iteration = 0; iteration < (regular ? 2 : count); ++iteration) {
    moment.iterations.push_back(iteration);
    if (!effort_.spend())
      return repeat->emitOpError("of ") << count
                                        << " iterations cannot be walked through, with those inside it, one "
                                           "by one: nest fewer, or let its views "
                                        << "move by whole strides, without gaps";
    for (auto command : repeat.getCommands().getOps<plan::CommandOpInterface>())
      if (failed(execute(command, moment)))
        return failure();
    moment.iterations.pop_back();
  }
  if (regular)
    for (const Access &access : accesses)
      if (access.write && isMoving(access))
        write(access.lower(), access.upper(), {access.owner, moment.step});
  return success();
}

/// Whether (a), (b) and (c) hold of what a repeat does.
bool PlanContents::isRegular(ArrayRef<Access> accesses, ArrayRef<size_t> positions, unsigned step) const {
  for (auto [index, access] : llvm::enumerate(accesses)) {
    if (!isMoving(access))
      continue;
    for (const Access &other : accesses)
      if (other.owner != access.owner && (access.write || other.write) && access.lower() < other.upper() &&
          other.lower() < access.upper())
        return false;
    if (access.write ? !access.isDense() : !staysFound(access, positions[index], accesses, positions, step))
      return false;
  }
  return true;
}

/// Whether (b) holds of a moving read.
bool PlanContents::staysFound(const Access &read, size_t position, ArrayRef<Access> accesses,
                              ArrayRef<size_t> positions, unsigned step) const {
  if (!findOther(read.lower(), read.upper(), read.owner, step))
    return true;
  for (auto [index, write] : llvm::enumerate(accesses)) {
    if (!write.write || write.owner != read.owner || write.loops.front().stride != read.loops.front().stride)
      continue;
    Access now = write.inIteration(0);
    if ((positions[index] < position && covers(now, read.inIteration(0))) || covers(now, read.inIteration(1)))
      return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

/// What lies in the range that is not `owner`'s of this step, if there is something.
std::optional<PlanContents::Content> PlanContents::findOther(int64_t lower, int64_t upper, Operation *owner,
                                                             unsigned step) const {
  for (auto entry = std::prev(contents_.upper_bound(lower)); entry != contents_.end() && entry->first < upper;
       ++entry)
    if (entry->second.owner != owner || (!isLasting(owner) && entry->second.step != step))
      return entry->second;
  return std::nullopt;
}

LogicalResult PlanContents::check(int64_t lower, int64_t upper, Operation *owner, unsigned step,
                                  Operation *reader, StringRef name) const {
  std::optional<Content> other = findOther(lower, upper, owner, step);
  if (!other)
    return success();
  InFlightDiagnostic diagnostic = reader->emitOpError("reads ")
                                  << name << llvm::formatv(" [{0:X}, {1:X})", lower, upper).str();
  if (other->owner && other->owner != owner) {
    diagnostic << ", which " << nameOf(other->owner) << " has overwritten";
    diagnostic.attachNote(other->owner->getLoc()) << "the buffer that lies there";
  } else {
    diagnostic << " before anything in this step has written it";
  }
  return diagnostic;
}

void PlanContents::write(int64_t lower, int64_t upper, Content content) {
  if (lower == upper)
    return;
  Content behind = std::prev(contents_.upper_bound(upper))->second;
  contents_.erase(contents_.lower_bound(lower), contents_.upper_bound(upper));
  contents_[lower] = content;
  contents_[upper] = behind;
}

} // namespace gpuc
