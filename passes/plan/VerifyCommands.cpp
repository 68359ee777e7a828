//===- VerifyCommands.cpp - What holds of commands whose buffers have no place ===//
//
// Commands are walked through in their order, those of a repeat once: what its first iteration reads must be
// written by then, and what later ones read by then or in the repeat. Bytes between the places of a moving
// view count as written: it is plan-verify that proves contents byte by byte, once there are addresses.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/base/Blame.h"
#include "passes/base/Entries.h"
#include "passes/plan/CommandGraph.h"
#include "runtime/plan/footprint.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

#include <map>

using namespace mlir;

namespace gpuc {
namespace {

/// Bytes of one buffer.
class ByteSet {
public:
  void add(ByteRange range) {
    auto next = ranges_.upper_bound(range.begin);
    if (next != ranges_.begin() && std::prev(next)->second >= range.begin)
      --next;
    for (; next != ranges_.end() && next->first <= range.end; next = ranges_.erase(next))
      range = {std::min(range.begin, next->first), std::max(range.end, next->second)};
    ranges_[range.begin] = range.end;
  }

  bool holds(ByteRange range) const {
    auto next = ranges_.upper_bound(range.begin);
    return range.begin == range.end || (next != ranges_.begin() && std::prev(next)->second >= range.end);
  }

private:
  std::map<int64_t, int64_t> ranges_; // from begin to end; apart, with gaps between them
};

class ProgramVerifier {
public:
  ProgramVerifier(plan::ProgramOp program, const Blame &blame) : program_(program), blame_(blame) {}

  LogicalResult run() {
    if (failed(walk(program_.getBody().front())))
      return failure();
    for (auto output : program_.getBody().getOps<plan::OutputOp>()) {
      plan::Range range = plan::rangeOf(output.getBuffer());
      if (!isWritten(range.buffer, {range.offset, range.offset + range.size}))
        return blame_.report(output.getLoc(), "the output '" + output.getName() + "' of " + name() +
                                                  ", which nothing has written");
    }
    return verifyState();
  }

private:
  std::string name() { return "@" + program_.getSymName().str(); }

  std::string textOf(Operation *command) {
    auto launch = dyn_cast<plan::LaunchOp>(command);
    return (command->getName().getStringRef() + (launch ? " @" + launch.getKernel() : "") + " in ").str() +
           name();
  }

  /// Variables and constants hold something from the start.
  bool isWritten(plan::BufferOpInterface buffer, ByteRange bytes) {
    return isa<plan::UseOp>(*buffer) || written_[plan::identityOf(buffer)].holds(bytes);
  }

  LogicalResult walk(Block &block) {
    for (auto command : block.getOps<plan::CommandOpInterface>()) {
      auto repeat = dyn_cast<plan::LoopOpInterface>(*command);
      if (failed(repeat ? walk(repeat.getCommands()) : visit(command)) || (repeat && failed(finish(repeat))))
        return failure();
    }
    return success();
  }

  /// Calls `visit` for each range that the command writes, or reads.
  static LogicalResult forEachRange(plan::CommandOpInterface command, bool write,
                                    function_ref<LogicalResult(const plan::Range &)> visit) {
    for (const auto &[value, use] : command.getCommandOperands())
      if ((write ? gpuc::isWritten(use.role) : isRead(use.role)) && failed(visit(plan::rangeOf(value))))
        return failure();
    return success();
  }

  /// A command in the first iteration of the repeats around it.
  LogicalResult visit(plan::CommandOpInterface command) {
    if (auto upload = dyn_cast<plan::UploadOp>(*command);
        upload && !uploaded_.insert(plan::bufferOf(upload.getTo())).second)
      return blame_.report(command->getLoc(), "a second upload of '" +
                                                  plan::bufferOf(upload.getTo()).getBufferName() + "' in " +
                                                  name());
    for (bool write : {false, true})
      if (failed(forEachRange(command, write,
                              [&](const plan::Range &range) { return visit(command, range, write); })))
        return failure();
    return success();
  }

  LogicalResult visit(plan::CommandOpInterface command, const plan::Range &range, bool write) {
    const ByteRange bytes = {range.offset, range.offset + range.size},
                    whole = inAllIterations(command, range);
    const int64_t size = plan::sizeInBytes(range.buffer);
    plan::BufferOpInterface touched = range.buffer;
    const StringRef buffer = touched.getBufferName();
    if (range.strides.size() > tripCountsAround(command).size() || whole.begin < 0 || whole.end > size)
      return blame_.report(command->getLoc(), textOf(command) + " to touch bytes [" + Twine(whole.begin) +
                                                  ", " + Twine(whole.end) + ") of '" + buffer +
                                                  "', which has " + Twine(size));
    if (!write)
      return isWritten(range.buffer, bytes) ? success() : reportUnwritten(command, bytes, buffer);
    const bool isInput = isa<plan::InputOp>(*touched) && !isa<plan::UploadOp>(*command);
    if (isInput || touched.getBufferCategory() == plan::Category::constant)
      return blame_.report(command->getLoc(), textOf(command) + " to write '" + buffer + "', which is " +
                                                  (isInput ? "an input" : "a constant"));
    written_[plan::identityOf(range.buffer)].add(bytes);
    return success();
  }

  LogicalResult reportUnwritten(Operation *command, ByteRange bytes, StringRef buffer) {
    return blame_.report(command->getLoc(), textOf(command) + " to read bytes [" + Twine(bytes.begin) + ", " +
                                                Twine(bytes.end) + ") of '" + buffer +
                                                "' before anything has written them");
  }

  /// What a command touches in all iterations of the repeats around it, but for the `outermost` ones: in the
  /// first of those.
  static ByteRange inAllIterations(Operation *command, const plan::Range &range, size_t outermost = 0) {
    const SmallVector<int64_t> counts = tripCountsAround(command);
    SmallVector<Loop> loops;
    for (size_t depth = outermost; depth < std::min(range.strides.size(), counts.size()); ++depth)
      loops.push_back({range.strides[depth], counts[depth]});
    return overLoops({range.offset, range.offset + range.size}, loops);
  }

  /// The later iterations of a repeat: all writes, then all reads.
  LogicalResult finish(plan::LoopOpInterface repeat) {
    const size_t outer = tripCountsAround(repeat).size();
    auto finishCommand = [&](plan::CommandOpInterface command, bool write) {
      return forEachRange(command, write, [&](plan::Range range) -> LogicalResult {
        const ByteRange bytes = inAllIterations(command, range, outer);
        if (write)
          written_[plan::identityOf(range.buffer)].add(bytes);
        else if (!isWritten(range.buffer, bytes))
          return reportUnwritten(command, bytes, range.buffer.getBufferName());
        return success();
      });
    };
    for (bool write : {true, false}) {
      WalkResult walked = repeat.getCommands().walk([&](plan::CommandOpInterface command) -> WalkResult {
        return isa<plan::LoopOpInterface>(*command) ? success() : finishCommand(command, write);
      });
      if (walked.wasInterrupted())
        return failure();
    }
    return success();
  }

  /// Whether variables have got what they must.
  LogicalResult verifyState() {
    const bool isInit = program_.getSymName() == "init", isStep = program_.getSymName() == "train_step";
    llvm::StringSet<> used;
    for (auto use : program_.getBody().getOps<plan::UseOp>())
      used.insert(use.getSymbol());
    for (auto variable : program_->getParentOfType<ModuleOp>().getOps<plan::VariableOp>()) {
      const StringRef symbol = variable.getSymName();
      const bool isDue =
          isInit ? !isSetBySession(symbol, variable.getKind())
                 : isStep && variable.getCategory() == plan::Category::optimizer && used.contains(symbol);
      const ByteRange whole = {0, ir::sizeInBytes(variable.getType())};
      if (isDue && !written_[variable.getSymNameAttr().getAsOpaquePointer()].holds(whole))
        return blame_.report(variable.getLoc(), "@" + symbol + " without a value in " + name());
    }
    return success();
  }

  plan::ProgramOp program_;
  const Blame &blame_;
  DenseMap<const void *, ByteSet> written_; // by identityOf()
  DenseSet<Operation *> uploaded_;
};

} // namespace

LogicalResult verifyCommands(ModuleOp module, const Blame &blame) {
  llvm::StringSet<> launched;
  module.walk([&](plan::LaunchOp launch) { launched.insert(launch.getKernel()); });
  module.walk([&](plan::ProductOpInterface product) {
    if (FlatSymbolRefAttr update = product.getUpdateAttr())
      launched.insert(update.getValue());
  });
  for (Operation &op : *module.getBody()) {
    if (isa<func::FuncOp, ir::VariableOp>(op))
      return blame.report(op.getLoc(), "@" + SymbolTable::getSymbolName(&op).getValue() +
                                           ", which should be a program or a variable of the plan by now");
    if (auto kernel = dyn_cast<plan::KernelOp>(op); kernel && !launched.contains(kernel.getSymName()))
      return blame.report(op.getLoc(), "@" + kernel.getSymName() + ", a kernel that nothing launches");
    if (auto program = dyn_cast<plan::ProgramOp>(op);
        program && failed(ProgramVerifier(program, blame).run()))
      return failure();
  }
  return success();
}

} // namespace gpuc
