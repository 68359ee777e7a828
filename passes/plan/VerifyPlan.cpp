//===- VerifyPlan.cpp - Prove that no two commands conflict -----------------===//
//
// The plan is unrolled: every program (input slots + 1) times in a row, then all of them once more, so that a
// program is also seen after each other one. Two things are proven of that:
//
//   1. Of two accesses to the same bytes from different streams, one of them a write, one happens before the
//      other.
//   2. Walking through the executions in any one order that the first proof allows (they all give the same
//      memory), each read finds bytes that the buffer which it names has written, in this step, and nobody
//      after it. A variable's and a constant's bytes are their own from the start.
//
// Within one command, a range that is written may be one that is read only if it is the whole of it and the
// kernel reads each element no later than it writes it. Two may be written into each other's gaps, as
// attention does, if together they leave none.
//
// The number of a repeat's iterations costs nothing as long as their addresses are regular, which is how the
// compiler makes them; PlanContents.cpp says why two of them then stand for all. The parts of a parallel are
// held apart by the rule of runtime/plan/parts.h.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/plan/AttentionShapes.h"
#include "passes/plan/HappensBefore.h"
#include "passes/plan/PlanContents.h"
#include "passes/plan/PlanParts.h"

#include "passes/codegen/Codegen.h"

#include <limits>
#include <map>

using namespace mlir;

namespace gpuc {

#define GEN_PASS_DEF_VERIFYPLANPASS
#include "passes/Passes.h.inc"

namespace {

class Verifier {
public:
  explicit Verifier(ModuleOp module)
      : module(module), kernels(module), arena(*module.getOps<plan::ArenaOp>().begin()), addresses(arena) {}

  LogicalResult run() {
    if (failed(checkBuckets()) || failed(unroll()) || failed(order.finish()) || failed(collectAccesses()) ||
        failed(checkParallels()))
      return failure();
    return success(succeeded(checkRaces()) && succeeded(checkContents()));
  }

private:
  LogicalResult unroll() {
    for (auto program : module.getOps<plan::ProgramOp>())
      for (uint64_t step = 0; step <= arena.getSlots(); ++step)
        if (failed(addStep(program)))
          return failure();
    for (auto program : module.getOps<plan::ProgramOp>())
      if (failed(addStep(program)))
        return failure();
    return success();
  }

  LogicalResult addStep(plan::ProgramOp program) {
    stepOfProgram.push_back(runs[program]++);
    programOfStep.push_back(program);
    return order.addStep(program);
  }

  //===--------------------------------------------------------------------===//
  // Accesses
  //===--------------------------------------------------------------------===//

  LogicalResult collectAccesses() {
    accessesOf.resize(order.executions().size());
    for (unsigned index = 0; index < order.executions().size(); ++index) {
      const Execution &execution = order.executions()[index];
      SmallVectorImpl<Access> &accesses = accessesOf[index];
      if (failed(addresses.append(execution.command, stepOfProgram[execution.step], execution.iterations,
                                  accesses)))
        return failure();
      // Those of a command stand together.
      for (ArrayRef<Access> rest = accesses; !rest.empty();) {
        auto isOther = [&](const Access &access) { return access.command != rest.front().command; };
        size_t count = llvm::find_if(rest, isOther) - rest.begin();
        if (failed(checkWithinCommand(rest.take_front(count), rowPiecesOf(rest.front().command))))
          return failure();
        rest = rest.drop_front(count);
      }
    }
    return success();
  }

  /// There are plans that no one makes, in which the addresses of more iterations than can be walked are
  /// unlike.
  static LogicalResult giveUp(Operation *command) {
    return command->emitOpError(
        "stands in repeats of so many iterations, and at addresses so unlike, that nothing "
        "can be proven of it: let its views move by whole strides, without gaps");
  }

  /// The pairs of accesses of which both have bytes in a range, in the order of their addresses.
  static SmallVector<std::pair<size_t, size_t>> overlapping(ArrayRef<Access> accesses) {
    auto byAddress = llvm::to_vector(llvm::seq<size_t>(0, accesses.size()));
    llvm::sort(byAddress, [&](size_t a, size_t b) {
      return std::pair(accesses[a].lower(), a) < std::pair(accesses[b].lower(), b);
    });
    SmallVector<std::pair<size_t, size_t>> pairs;
    SmallVector<size_t> open;
    for (size_t at : byAddress) {
      llvm::erase_if(open, [&](size_t other) { return accesses[other].upper() <= accesses[at].lower(); });
      for (size_t other : open)
        pairs.push_back(std::minmax(at, other));
      open.push_back(at);
    }
    return pairs;
  }

  /// A command may update a buffer in place, but not read or write it askew of what it writes.
  LogicalResult checkWithinCommand(ArrayRef<Access> accesses, ArrayRef<RowPieces> pieces) {
    for (const RowPieces &piece : pieces)
      if (failed(checkFilled(accesses, pieces, piece)))
        return failure();
    for (auto [i, j] : overlapping(accesses)) {
      const Access &a = accesses[i], &b = accesses[j];
      if (!(a.write || b.write) || isHarmless(a, i, b, j) || adjoin(a, b, pieces))
        continue;
      Operation *command = a.command;
      if (effort.isSpent())
        return giveUp(command);
      return command->emitOpError("accesses overlapping bytes at once: ") << a.text() << " and " << b.text();
    }
    return success();
  }

  static const Access &writeTo(Value value, ArrayRef<Access> accesses) {
    return *llvm::find_if(accesses, [&](const Access &it) { return it.write && it.value == value; });
  }

  /// Whether the two are written into the same rows.
  static bool shareRows(const RowPieces &a, const Access &writeA, const RowPieces &b, const Access &writeB) {
    return a.rows == b.rows && a.rowBytes == b.rowBytes && writeA.owner == writeB.owner &&
           movesAlike(writeA, writeB);
  }

  /// Whether the piece and others fill their rows, each byte once.
  static LogicalResult checkFilled(ArrayRef<Access> accesses, ArrayRef<RowPieces> pieces,
                                   const RowPieces &piece) {
    const Access &write = writeTo(piece.value, accesses);
    SmallVector<std::pair<int64_t, int64_t>> parts; // from and to, in the first row
    for (const RowPieces &other : pieces)
      if (const Access &its = writeTo(other.value, accesses); shareRows(piece, write, other, its))
        parts.emplace_back(its.first, its.first + other.pieceBytes);
    llvm::sort(parts);
    int64_t end = parts.front().first + piece.rowBytes;
    for (auto [part, next] : llvm::zip(parts, ArrayRef(parts).drop_front()))
      if (part.second != next.first)
        end = -1;
    if (parts.back().second == end)
      return success();
    Operation *command = write.command;
    return command->emitOpError("writes ") << write.text() << " with gaps that its other results do not fill";
  }

  /// Whether both are pieces of the same rows, which checkFilled() has seen to be apart.
  static bool adjoin(const Access &a, const Access &b, ArrayRef<RowPieces> pieces) {
    auto pieceOf = [&](const Access &access) {
      return llvm::find_if(pieces,
                           [&](const RowPieces &it) { return access.write && it.value == access.value; });
    };
    const RowPieces *first = pieceOf(a), *second = pieceOf(b);
    return first != pieces.end() && second != pieces.end() && shareRows(*first, a, *second, b);
  }

  /// Whether two accesses of a command, one a write, are apart in each iteration, or update in place.
  bool isHarmless(const Access &a, size_t i, const Access &b, size_t j) {
    if (!movesAlike(a, b)) {
      if (a.upper() <= b.lower() || b.upper() <= a.lower())
        return true;
      for (int64_t iteration = 0; iteration < a.loops.front().count; ++iteration)
        if (!effort.spend() || !isHarmless(a.inIteration(iteration), i, b.inIteration(iteration), j))
          return false;
      return true;
    }
    bool apart = a.first + a.size <= b.first || b.first + b.size <= a.first;
    return apart ||
           (a.write != b.write && a.first == b.first && a.size == b.size && updatesInPlace(a, i, b, j));
  }

  /// Whether the distance of the two is the same in all iterations.
  static bool movesAlike(const Access &a, const Access &b) {
    return llvm::all_of(llvm::zip_equal(a.loops, b.loops),
                        [](auto pair) { return std::get<0>(pair).stride == std::get<1>(pair).stride; });
  }

  /// Whether a command may read and write the same bytes by these two. Reads come first in the list of
  /// accesses, then writes.
  bool updatesInPlace(const Access &a, size_t read, const Access &b, size_t write) {
    if (a.value == b.value && a.role == Role::accumulate && b.role == Role::accumulate)
      return true; // each element by itself
    auto mayLieOver = [&](StringRef kernel, size_t argument, size_t result) {
      return canUpdateInPlace(kernels.lookup<plan::KernelOp>(kernel).getBody().front(), argument, result);
    };
    if (auto launch = dyn_cast<plan::LaunchOp>(*a.command))
      return mayLieOver(launch.getKernel(), read, write - launch.getInputs().size());
    auto product = dyn_cast<plan::ProductOpInterface>(*a.command);
    if (!product || !product.getUpdateAttr())
      return isa<plan::AllReduceOp>(*a.command); // ranks may write the sum over their parts
    constexpr size_t factors = 2; // in front; they outlast the update, whose first argument is the product
    const size_t firstWrite = factors + product.getUpdateInputs().size() + (product.getWorkspace() ? 1 : 0) +
                              (product.getSquares() ? 1 : 0);
    return read >= factors && write >= firstWrite &&
           mayLieOver(product.getUpdateAttr().getValue(), read - factors + 1, write - firstWrite);
  }

  /// What is summed over ranks where it lies is written there by who computes it, and read there: nothing is
  /// packed or unpacked.
  LogicalResult checkBuckets() {
    DenseSet<Operation *> buckets;
    module.walk([&](plan::AllReduceOp reduce) {
      if (plan::bufferOf(reduce.getPart()) == plan::bufferOf(reduce.getResult()))
        buckets.insert(plan::bufferOf(reduce.getPart()));
    });
    WalkResult walk = module.walk([&](plan::CopyOp copy) {
      for (Value value : {copy.getFrom(), copy.getTo()})
        if (plan::BufferOpInterface buffer = plan::bufferOf(value); buckets.contains(buffer)) {
          copy.emitOpError(value == copy.getTo() ? "packs" : "unpacks")
              << " what is summed over ranks in '" << buffer.getBufferName() << "': let it be a view of that";
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    return failure(walk.wasInterrupted());
  }

  /// By the rule that the file's reader has.
  LogicalResult checkParallels() {
    WalkResult walk = module.walk([&](plan::ParallelOp parallel) {
      PlanParts parts(addresses, kernels, parallel);
      if (failed(parts.add(parallel.getBody().front())))
        return WalkResult::interrupt();
      if (parallel.getByRows() && parts.rows() % parallel.getParts() != 0) {
        parallel.emitOpError("of ") << parallel.getParts() << " parts by the rows of commands that have "
                                    << parts.rows() << " in common";
        return WalkResult::interrupt();
      }
      std::optional<std::string> meeting =
          parts.meeting({static_cast<int64_t>(parallel.getParts()), parallel.getByRows()});
      if (!meeting)
        return WalkResult::advance();
      parallel.emitOpError("has parts that may meet: ") << *meeting;
      return WalkResult::interrupt();
    });
    return failure(walk.wasInterrupted());
  }

  //===--------------------------------------------------------------------===//
  // 1. No race
  //===--------------------------------------------------------------------===//

  struct Span {
    int64_t lower, upper;
    unsigned execution;
    const Access *access;
  };

  LogicalResult checkRaces() {
    std::vector<Span> sorted;
    for (unsigned index = 0; index < accessesOf.size(); ++index)
      for (const Access &access : accessesOf[index])
        sorted.push_back({access.lower(), access.upper(), index, &access});
    // Those of one execution lie one behind the other: by their addresses they keep their order.
    llvm::sort(sorted, [](const Span &a, const Span &b) {
      return std::tie(a.lower, a.execution, a.access) < std::tie(b.lower, b.execution, b.access);
    });
    // Those that begin before the one at hand and end behind its beginning, by what may be in conflict with
    // it: a variable may be read by all commands of a stream.
    std::map<std::pair<unsigned, bool>, std::vector<const Span *>> open; // by stream, and whether it writes
    int64_t begin = std::numeric_limits<int64_t>::min();
    for (const Span &span : sorted) {
      const unsigned stream = order.executions()[span.execution].stream;
      const bool moved = span.lower > begin;
      begin = span.lower;
      for (auto &[kind, spans] : open) {
        if (moved)
          llvm::erase_if(spans, [&](const Span *earlier) { return earlier->upper <= span.lower; });
        if (kind.first == stream || !(kind.second || span.access->write))
          continue;
        for (const Span *earlier : spans)
          if (failed(checkPair(*earlier, span)))
            return failure();
      }
      open[{stream, span.access->write}].push_back(&span);
    }
    return success();
  }

  LogicalResult checkPair(const Span &a, const Span &b) {
    const std::vector<Execution> &executions = order.executions();
    if (!(a.access->write || b.access->write) ||
        executions[a.execution].stream == executions[b.execution].stream ||
        order.precedes(a.execution, b.execution) || order.precedes(b.execution, a.execution) ||
        !a.access->meets(*b.access, effort))
      return success();
    if (effort.isSpent())
      return giveUp(a.access->command);
    const Access &write = a.access->write ? *a.access : *b.access;
    const Access &other = a.access->write ? *b.access : *a.access;
    Operation *writer = write.command, *second = other.command;
    InFlightDiagnostic diagnostic = writer->emitOpError("writes ")
                                    << write.text() << " while another stream "
                                    << (other.write ? "writes " : "reads ") << other.text()
                                    << ": no event orders them";
    diagnostic.attachNote(second->getLoc()) << "the other command";
    return diagnostic;
  }

  //===--------------------------------------------------------------------===//
  // 2. Each read finds what was meant
  //===--------------------------------------------------------------------===//

  LogicalResult checkContents() {
    PlanContents contents(module, addresses, effort);
    std::optional<unsigned> step;
    for (unsigned index : order.order()) {
      const Execution &execution = order.executions()[index];
      // The order may interleave the steps of one program, but a program's end is everyone's end.
      if (step && programOfStep[*step] != programOfStep[execution.step] &&
          failed(checkOutputs(contents, *step)))
        return failure();
      step = execution.step;
      if (failed(contents.execute(execution.command,
                                  {execution.step, stepOfProgram[execution.step], execution.iterations})))
        return failure();
    }
    return step ? checkOutputs(contents, *step) : success();
  }

  /// Results must outlast the program that computes them.
  LogicalResult checkOutputs(const PlanContents &contents, unsigned step) {
    plan::ProgramOp program = programOfStep[step];
    for (auto output : program.getBody().getOps<plan::OutputOp>()) {
      plan::Range range = plan::rangeOf(output.getBuffer());
      FailureOr<int64_t> base = addresses.address(range.buffer, stepOfProgram[step], output);
      if (failed(base))
        return failure();
      int64_t lower = *base + range.offset;
      if (failed(contents.check(lower, lower + range.size, addresses.ownerOf(range.buffer), step, output,
                                range.buffer.getBufferName())))
        return failure();
    }
    return success();
  }

  ModuleOp module;
  SymbolTable kernels;
  plan::ArenaOp arena;
  AddressSpace addresses;
  Effort effort;
  HappensBefore order;
  DenseMap<Operation *, unsigned> runs;
  std::vector<unsigned> stepOfProgram; // for each step: how many runs of its program came before
  std::vector<plan::ProgramOp> programOfStep;
  std::vector<SmallVector<Access, 4>> accessesOf; // for each execution
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
