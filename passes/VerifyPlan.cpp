//===- VerifyPlan.cpp - Prove that no two commands conflict -----------------===//
//
// The plan is unrolled: every program (input slots + 1) times in a row, then all of them once more, so that a
// program is also seen after each other one. Two things are proven of that:
//
//   1. Of two accesses to the same bytes from different streams, one of them a write, one happens before the
//   other.
//   2. Walking through the executions in any one order that the first proof allows (they all give the same
//   memory), each
//      read finds bytes that the buffer which it names has written, in this step, and nobody after it. A
//      variable's and a constant's bytes are their own from the start.
//
// Within one command, a range that is written may be one that is read only if it is the whole of it and the
// kernel reads each element no later than it writes it.
//
//===----------------------------------------------------------------------===//

#include "passes/HappensBefore.h"
#include "passes/Passes.h"

#include "passes/codegen/Codegen.h"
#include "runtime/plan/header.h"

#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace mlir;

namespace gpuc {

#define GEN_PASS_DEF_VERIFYPLANPASS
#include "passes/Passes.h.inc"

namespace {

struct Access {
  unsigned execution;
  bool write;
  int64_t lower, upper; // bytes of the arena
  Value value;          // the command's operand
  Operation *owner;     // what the bytes belong to: a variable, a constant, or a buffer of the program
};

std::string describe(const Access &access) {
  return llvm::formatv("{0} [{1:X}, {2:X})", plan::bufferOf(access.value).getBufferName(), access.lower,
                       access.upper);
}

class Verifier {
public:
  explicit Verifier(ModuleOp module) : module(module), arena(*module.getOps<plan::ArenaOp>().begin()) {}

  LogicalResult run() {
    unroll();
    if (failed(order.finish()) || failed(collectAccesses()))
      return failure();
    return success(succeeded(checkRaces()) && succeeded(checkContents()));
  }

private:
  void unroll() {
    for (auto program : module.getOps<plan::ProgramOp>())
      for (uint64_t step = 0; step <= arena.getSlots(); ++step)
        addStep(program);
    for (auto program : module.getOps<plan::ProgramOp>())
      addStep(program);
  }

  void addStep(plan::ProgramOp program) {
    stepOfProgram.push_back(runs[program]++);
    programOfStep.push_back(program);
    order.addStep(program);
  }

  //===--------------------------------------------------------------------===//
  // Accesses
  //===--------------------------------------------------------------------===//

  LogicalResult collectAccesses() {
    accessesOf.resize(order.executions().size());
    for (unsigned index = 0; index < order.executions().size(); ++index) {
      plan::CommandOpInterface command = order.executions()[index].command;
      for (Value value : command.getReads())
        if (failed(addAccess(index, value, false)))
          return failure();
      for (Value value : command.getWrites())
        if (failed(addAccess(index, value, true)))
          return failure();
      if (failed(checkWithinCommand(index)))
        return failure();
    }
    return success();
  }

  LogicalResult addAccess(unsigned index, Value value, bool write) {
    const Execution &execution = order.executions()[index];
    plan::Range range = plan::rangeOf(value);
    FailureOr<int64_t> base = address(range.buffer, stepOfProgram[execution.step], execution.command);
    if (failed(base))
      return failure();
    int64_t lower = *base + range.offset;
    for (auto [stride, iteration] : llvm::zip(range.strides, execution.iterations))
      lower += stride * iteration;
    int64_t upper = lower + range.size;
    if (lower < 0 || upper > static_cast<int64_t>(arena.getBytes()))
      return execution.command->emitOpError("touches ")
             << range.buffer.getBufferName() << " at bytes [" << lower << ", " << upper << ") of an arena of "
             << arena.getBytes();
    accessesOf[index].push_back({index, write, lower, upper, value, ownerOf(range.buffer)});
    return success();
  }

  /// Where a buffer begins in the given run of its program.
  FailureOr<int64_t> address(plan::BufferOpInterface buffer, uint64_t run, Operation *user) {
    std::optional<uint64_t> place = buffer.getPlace();
    if (!place)
      return user->emitOpError("uses ")
                 << buffer.getBufferName() << ", which has no place: plan-place-buffers comes first",
             failure();
    if (*place % kBufferAlignment != 0)
      return user->emitOpError("uses ")
                 << buffer.getBufferName() << " at " << llvm::formatv("{0:X}", *place).str()
                 << ", which is no multiple of " << kBufferAlignment,
             failure();
    if (auto input = dyn_cast<plan::InputOp>(*buffer))
      return *place + (run % arena.getSlots()) * input.getSlotStride().value_or(0);
    return *place;
  }

  Operation *ownerOf(plan::BufferOpInterface buffer) {
    if (auto use = dyn_cast<plan::UseOp>(*buffer))
      return plan::symbolOf(use);
    return buffer;
  }

  /// A command may update a buffer in place, but not read or write it askew of what it writes.
  LogicalResult checkWithinCommand(unsigned index) {
    ArrayRef<Access> accesses = accessesOf[index];
    Operation *command = order.executions()[index].command;
    for (size_t i = 0; i < accesses.size(); ++i)
      for (size_t j = i + 1; j < accesses.size(); ++j) {
        const Access &a = accesses[i], &b = accesses[j];
        if (!(a.write || b.write) || a.upper <= b.lower || b.upper <= a.lower)
          continue;
        bool inPlace =
            a.write != b.write && a.lower == b.lower && a.upper == b.upper && updatesInPlace(command, i, j);
        if (!inPlace)
          return command->emitOpError("accesses overlapping bytes at once: ")
                 << describe(a) << " and " << describe(b);
      }
    return success();
  }

  /// Reads come first in the list of accesses, then writes.
  bool updatesInPlace(Operation *command, size_t read, size_t write) {
    auto launch = dyn_cast<plan::LaunchOp>(command);
    if (!launch)
      return false;
    auto kernel = SymbolTable::lookupNearestSymbolFrom<plan::KernelOp>(module, launch.getKernelAttr());
    return canUpdateInPlace(kernel.getBody().front(), read, write - launch.getInputs().size());
  }

  //===--------------------------------------------------------------------===//
  // 1. No race
  //===--------------------------------------------------------------------===//

  LogicalResult checkRaces() {
    std::vector<Access> sorted;
    for (const auto &accesses : accessesOf)
      llvm::append_range(sorted, accesses);
    llvm::sort(sorted, [](const Access &a, const Access &b) {
      return std::tie(a.lower, a.execution, a.write) < std::tie(b.lower, b.execution, b.write);
    });
    std::vector<const Access *> open; // those that begin before the one at hand and end behind its beginning
    for (const Access &access : sorted) {
      llvm::erase_if(open, [&](const Access *earlier) { return earlier->upper <= access.lower; });
      for (const Access *earlier : open)
        if (failed(checkPair(*earlier, access)))
          return failure();
      open.push_back(&access);
    }
    return success();
  }

  LogicalResult checkPair(const Access &a, const Access &b) {
    const std::vector<Execution> &executions = order.executions();
    if (!(a.write || b.write) || executions[a.execution].stream == executions[b.execution].stream ||
        order.precedes(a.execution, b.execution) || order.precedes(b.execution, a.execution))
      return success();
    const Access &write = a.write ? a : b, &other = a.write ? b : a;
    InFlightDiagnostic diagnostic = executions[write.execution].command->emitOpError("writes ")
                                    << describe(write) << " while another stream "
                                    << (other.write ? "writes " : "reads ") << describe(other)
                                    << ": no event orders them";
    diagnostic.attachNote(executions[other.execution].command->getLoc()) << "the other command";
    return diagnostic;
  }

  //===--------------------------------------------------------------------===//
  // 2. Each read finds what was meant
  //===--------------------------------------------------------------------===//

  /// Whose bytes these are, and since which step.
  struct Content {
    Operation *owner;
    unsigned step;
  };

  LogicalResult checkContents() {
    contents[0] = {nullptr, 0};
    for (Operation &op : *module.getBody())
      if (isa<plan::VariableOp, plan::ConstantOp>(op))
        if (auto place = op.getAttrOfType<IntegerAttr>("place"))
          write(place.getInt(), place.getInt() + sizeOf(&op), {&op, 0});

    std::optional<unsigned> step;
    for (unsigned index : order.order()) {
      const Execution &execution = order.executions()[index];
      // The order may interleave the steps of one program, but a program's end is everyone's end.
      if (step && programOfStep[*step] != programOfStep[execution.step] && failed(checkOutputs(*step)))
        return failure();
      step = execution.step;
      for (const Access &access : accessesOf[index])
        if (!access.write && failed(checkRead(access, execution)))
          return failure();
      for (const Access &access : accessesOf[index])
        if (access.write)
          write(access.lower, access.upper, {access.owner, execution.step});
    }
    return step ? checkOutputs(*step) : success();
  }

  LogicalResult checkRead(const Access &access, const Execution &execution) {
    return checkOwned(access.lower, access.upper, access.owner, execution.step, execution.command,
                      plan::bufferOf(access.value).getBufferName());
  }

  LogicalResult checkOwned(int64_t lower, int64_t upper, Operation *owner, unsigned step, Operation *reader,
                           StringRef name) {
    bool lasting = isa<plan::VariableOp, plan::ConstantOp>(owner);
    for (auto entry = std::prev(contents.upper_bound(lower)); entry != contents.end() && entry->first < upper;
         ++entry) {
      Content content = entry->second;
      if (content.owner == owner && (lasting || content.step == step))
        continue;
      InFlightDiagnostic diagnostic = reader->emitOpError("reads ")
                                      << name << llvm::formatv(" [{0:X}, {1:X})", lower, upper).str();
      if (content.owner && content.owner != owner) {
        diagnostic << ", which " << nameOf(content.owner) << " has overwritten";
        diagnostic.attachNote(content.owner->getLoc()) << "the buffer that lies there";
      } else {
        diagnostic << " before anything in this step has written it";
      }
      return diagnostic;
    }
    return success();
  }

  /// Results must outlast the program that computes them.
  LogicalResult checkOutputs(unsigned step) {
    plan::ProgramOp program = programOfStep[step];
    for (auto output : program.getBody().getOps<plan::OutputOp>()) {
      plan::Range range = plan::rangeOf(output.getBuffer());
      FailureOr<int64_t> base = address(range.buffer, stepOfProgram[step], output);
      if (failed(base) ||
          failed(checkOwned(*base + range.offset, *base + range.offset + range.size, ownerOf(range.buffer),
                            step, output, range.buffer.getBufferName())))
        return failure();
    }
    return success();
  }

  void write(int64_t lower, int64_t upper, Content content) {
    if (lower == upper)
      return;
    Content behind = std::prev(contents.upper_bound(upper))->second;
    contents.erase(contents.lower_bound(lower), contents.upper_bound(upper));
    contents[lower] = content;
    contents[upper] = behind;
  }

  static StringRef nameOf(Operation *owner) {
    if (auto buffer = dyn_cast<plan::BufferOpInterface>(owner))
      return buffer.getBufferName();
    return SymbolTable::getSymbolName(owner).getValue();
  }

  static int64_t sizeOf(Operation *symbol) {
    if (auto variable = dyn_cast<plan::VariableOp>(symbol))
      return ir::sizeInBytes(variable.getType());
    return ir::sizeInBytes(cast<plan::ConstantOp>(symbol).getValue().getType());
  }

  ModuleOp module;
  plan::ArenaOp arena;
  HappensBefore order;
  DenseMap<Operation *, unsigned> runs;
  std::vector<unsigned> stepOfProgram; // for each step: how many runs of its program came before
  std::vector<plan::ProgramOp> programOfStep;
  std::vector<SmallVector<Access, 4>> accessesOf; // for each execution
  std::map<int64_t, Content> contents;            // from this byte on, up to the next entry
};

struct VerifyPlan : impl::VerifyPlanPassBase<VerifyPlan> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (module.getOps<plan::ArenaOp>().empty()) {
      module.emitError("has no plan.arena: plan-place-buffers comes before plan-verify");
      return signalPassFailure();
    }
    if (failed(Verifier(module).run()))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace gpuc
