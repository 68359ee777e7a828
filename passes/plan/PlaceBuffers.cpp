//===- PlaceBuffers.cpp - Give every buffer its place in the one arena ------===//
//
//   | variables and constants | workspace | input slots |
//
// Variables keep their place for good. The workspaces of the programs overlay one another: only one program
// runs at a time. Input slots lie outside of the overlay, so that the next batch can arrive while this one is
// computed.
//
// Within a program, buffers whose lifetimes do not meet may share bytes; placement/ finds the offsets. Where
// a kernel reads a buffer for the last time and may write its result over it, element by element, the two
// become one.
//
// Where they do not come within a hundredth of what the order of commands has live at once, a few other
// orders are tried that have no more: in some of them they do.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/base/StableSort.h"
#include "passes/plan/InPlaceChains.h"
#include "passes/plan/OrderProblem.h"
#include "passes/plan/PartBuffers.h"

#include "passes/ordering/Walk.h"
#include "passes/placement/Halves.h"
#include "passes/placement/Solver.h"
#include "passes/placement/Validator.h"
#include "runtime/plan/header.h"

using namespace mlir;

namespace gpuc {

#define GEN_PASS_DEF_PLACEBUFFERSPASS
#include "passes/Passes.h.inc"

namespace {

/// That are tried at most, each with so small a part of the effort: many short tries find more than a few
/// long ones.
constexpr uint64_t kOtherOrders = 48;
constexpr int64_t kPartOfEffort = 8;

int64_t aligned(int64_t bytes) { return llvm::alignTo(bytes, kBufferAlignment); }

bool isForCuda(ModuleOp module) {
  auto target = module->getAttrOfType<plan::TargetAttr>(plan::kTargetAttr);
  return target && target.getKind() == plan::TargetKind::cuda;
}

/// Where a library's workspace may begin.
int64_t workspaceAlignment(ModuleOp module) {
  return isForCuda(module) ? kGpuWorkspaceAlignment : kBufferAlignment;
}

/// What is there for the whole run lies one behind another. On the host short ones share lines; a GPU's
/// libraries like whole ones better.
class Row {
public:
  explicit Row(ModuleOp module) : sharesLines_(!isForCuda(module)) {}

  /// `slots` of so many bytes each.
  void add(Operation *op, int64_t bytes, int64_t slots = 1) {
    const auto alignment = static_cast<int64_t>(sharesLines_ ? leastAlignment(bytes) : kBufferAlignment);
    entries_.push_back({op, bytes, alignment, slots});
  }

  /// Calls `visit` with each op's place, and the bytes from one slot to the next. Returns how long the row
  /// is, in whole lines. The short ones come first, and then those that do not fill their last line: so the
  /// padding lies between them, and the row ends with a byte that is used.
  int64_t place(function_ref<void(Operation *, int64_t, int64_t)> visit) {
    stableSort(entries_, [](const Entry &a, const Entry &b) { return a.rank() < b.rank(); });
    int64_t next = 0;
    for (const Entry &entry : entries_) {
      next = llvm::alignTo(next, entry.alignment);
      visit(entry.op, next, entry.stride());
      next += entry.slots * entry.stride();
    }
    return aligned(next);
  }

private:
  struct Entry {
    Operation *op;
    int64_t bytes, alignment, slots;

    int64_t stride() const { return llvm::alignTo(bytes, alignment); }
    std::tuple<bool, int64_t, bool> rank() const {
      const bool isShort = alignment < static_cast<int64_t>(kBufferAlignment);
      return {!isShort, -alignment, bytes == stride()};
    }
  };

  SmallVector<Entry> entries_;
  bool sharesLines_;
};

/// Where a program's buffers lie within the workspace.
struct Workspace {
  placement::Problem problem;
  placement::Solution solution;
  llvm::MapVector<plan::AllocOp, size_t> indices; ///< Into the problem's buffers; several have one.
  int64_t bytes = 0;
  int64_t lowerBound = 0;
  bool isClose = false; ///< Within a hundredth of the arena to that.
};

/// `beside`: bytes of the arena that are no workspace.
FailureOr<Workspace> placeWorkspace(ModuleOp module, plan::ProgramOp program, int64_t beside,
                                    placement::SolverOptions options) {
  FailureOr<Lifetimes> lifetimes = computeLifetimes(program);
  if (failed(lifetimes))
    return failure();
  InPlaceChains chains(module, program, *lifetimes);

  placement::Problem problem;
  llvm::MapVector<Operation *, size_t> indices; // of each chain's leader
  for (auto &[buffer, lifetime] : *lifetimes) {
    auto [entry, inserted] = indices.insert({chains.leader(buffer), problem.buffers.size()});
    if (inserted)
      problem.buffers.push_back(
          {buffer.getName().str(), lifetime.lower, lifetime.upper, ir::sizeInBytes(buffer.getType()),
           buffer.getCategory() == plan::Category::workspace ? workspaceAlignment(module)
                                                             : static_cast<int64_t>(kBufferAlignment)});
    placement::Buffer &chain = problem.buffers[entry->second];
    chain.lower = std::min(chain.lower, lifetime.lower);
    chain.upper = std::max(chain.upper, lifetime.upper);
  }

  const int64_t bound = placement::lowerBound(problem);
  // The arena may be a hundredth longer than it has to be before anything lower is looked for: together with
  // what lies unused before the workspace, which is counted as needed here.
  options.enough = bound + std::max<int64_t>(0, (beside + bound) / 100 - workspaceAlignment(module));
  Result<placement::Solution> solution = placement::solve(problem, options);
  if (!solution.ok())
    return program.emitError(solution.message()), failure();
  if (Status valid = placement::validate(problem, *solution); !valid.ok())
    return program.emitError("placement is wrong: ") << valid.message(), failure();

  Workspace workspace;
  workspace.problem = std::move(problem);
  workspace.solution = std::move(*solution);
  workspace.bytes = aligned(workspace.solution.height);
  workspace.lowerBound = bound;
  workspace.isClose = workspace.bytes <= options.enough;
  for (auto &[buffer, lifetime] : *lifetimes)
    workspace.indices[buffer] = indices[chains.leader(buffer)];
  return workspace;
}

/// Where most commands of a program's main stream stand: of one that adds up microbatches, the loop over
/// them.
Block &longestBlock(plan::ProgramOp program) {
  plan::StreamOp main = *program.getBody().getOps<plan::StreamOp>().begin();
  Block *longest = &main.getBody().front();
  size_t most = commandsOf(*longest).size();
  main.walk([&](plan::LoopOpInterface loop) {
    const size_t commands = commandsOf(loop.getCommands()).size();
    if (commands > most)
      longest = &loop.getCommands(), most = commands;
  });
  return *longest;
}

/// The order of most of a program's commands, which may change places as long as no event or wait comes
/// between others.
class MainOrder {
public:
  MainOrder(ModuleOp module, plan::ProgramOp program)
      : block_(longestBlock(program)), commands_(commandsOf(block_)),
        problem_(OrderProblems(module, program).of(CommandGraph(commands_), scopeOf(program))) {
    size_t fence = 0;
    for (size_t command = 0; command < commands_.size(); ++command) {
      const bool isFence = isa<plan::RecordOp, plan::WaitOp>(*commands_[command]);
      std::vector<size_t> &before = problem_.commands[command].predecessors;
      for (size_t earlier = fence; earlier < (isFence ? command : std::min(fence + 1, command)); ++earlier)
        before.push_back(earlier);
      llvm::sort(before);
      before.erase(llvm::unique(before), before.end());
      if (isFence)
        fence = command;
    }
  }

  ordering::Order given() const { return ordering::givenOrder(problem_); }
  ordering::Order another(uint64_t seed) const { return ordering::walk(problem_, given(), seed); }

  void put(const ordering::Order &order) {
    for (size_t command : order)
      commands_[command]->moveBefore(&block_, block_.end());
  }

private:
  /// Where the buffers live whose lifetimes the order decides.
  Block &scopeOf(plan::ProgramOp program) const {
    return isa<plan::StreamOp>(block_.getParentOp()) ? program.getBody().front() : block_;
  }

  Block &block_;
  std::vector<plan::CommandOpInterface> commands_;
  ordering::Problem problem_;
};

struct PlaceBuffers : impl::PlaceBuffersPassBase<PlaceBuffers> {
  using PlaceBuffersPassBase::PlaceBuffersPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto slotsAttr = module->getAttrOfType<IntegerAttr>(plan::kSlotsAttr);
    if (!slotsAttr) {
      module.emitError("has no streams: plan-assign-streams comes before plan-place-buffers");
      return signalPassFailure();
    }
    slots = slotsAttr.getInt();
    module.walk([](plan::ParallelOp parallel) { alignInTurn(parallel); });
    int64_t workspaceBegin = placeVariables(module);
    int64_t workspaceBytes = 0, lowerBound = 0, inputBytes = 0;
    std::vector<Workspace> workspaces;
    for (auto program : module.getOps<plan::ProgramOp>()) {
      FailureOr<Workspace> workspace = place(module, program, workspaceBegin + inputBytesOf(program));
      if (failed(workspace))
        return signalPassFailure();
      workspaceBytes = std::max(workspaceBytes, workspace->bytes);
      lowerBound = std::max(lowerBound, workspace->lowerBound);
      inputBytes = std::max(inputBytes, inputBytesOf(program));
      workspaces.push_back(std::move(*workspace));
    }

    int64_t inputsBegin = workspaceBegin + workspaceBytes;
    for (auto [program, workspace] : llvm::zip(module.getOps<plan::ProgramOp>(), workspaces)) {
      if (failed(settle(program, workspace)))
        return signalPassFailure();
      for (auto &[buffer, index] : workspace.indices)
        setPlace(buffer, workspaceBegin + workspace.solution.offsets[index]);
      placeInputs(program, inputsBegin);
      program.setPeakBytes(workspaceBegin + workspace.bytes + inputBytesOf(program));
    }
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    plan::ArenaOp::create(builder, module.getLoc(), inputsBegin + inputBytes, 0, workspaceBegin, inputsBegin,
                          slots, workspaceBegin + lowerBound + inputBytes);
    module->removeAttr(plan::kSlotsAttr);
  }

  /// A GPU has one cache, whichever of its cores writes.
  LogicalResult settle(plan::ProgramOp program, Workspace &workspace) {
    if (isForCuda(getOperation()))
      return success();
    placement::matchHalves(workspace.problem, workspace.solution);
    Status valid = placement::validate(workspace.problem, workspace.solution);
    return valid.ok() ? success() : program.emitError("placement is wrong: ") << valid.message();
  }

  /// In the order that there is, or in another one.
  FailureOr<Workspace> place(ModuleOp module, plan::ProgramOp program, int64_t beside) {
    FailureOr<Workspace> best =
        placeWorkspace(module, program, beside, {.effort = effort, .greedies_alone = greedies});
    if (failed(best) || best->isClose || greedies || program.getBody().getOps<plan::StreamOp>().empty())
      return best;
    MainOrder order(module, program);
    ordering::Order bestOrder = order.given();
    for (uint64_t seed = 1; seed <= kOtherOrders && !best->isClose; ++seed) {
      const ordering::Order another = order.another(seed);
      order.put(another);
      FailureOr<Workspace> workspace =
          placeWorkspace(module, program, beside, {.effort = effort / kPartOfEffort});
      if (failed(workspace))
        return failure();
      if (workspace->bytes < best->bytes)
        std::tie(best, bestOrder) = std::pair(std::move(workspace), another);
    }
    order.put(bestOrder);
    return best;
  }

  /// Returns where the workspace begins.
  int64_t placeVariables(ModuleOp module) {
    Row row(module);
    for (auto variable : module.getOps<plan::VariableOp>())
      row.add(variable, ir::sizeInBytes(variable.getType()));
    for (auto constant : module.getOps<plan::ConstantOp>())
      row.add(constant, ir::sizeInBytes(constant.getValue().getType()));
    const int64_t bytes = row.place([](Operation *op, int64_t place, int64_t) { setPlace(op, place); });
    return llvm::alignTo(bytes, workspaceAlignment(module));
  }

  Row inputsOf(plan::ProgramOp program) {
    Row row(getOperation());
    for (auto input : program.getBody().getOps<plan::InputOp>())
      row.add(input, ir::sizeInBytes(input.getType()), slots);
    return row;
  }

  int64_t inputBytesOf(plan::ProgramOp program) {
    return inputsOf(program).place([](Operation *, int64_t, int64_t) {});
  }

  void placeInputs(plan::ProgramOp program, int64_t begin) {
    inputsOf(program).place([begin](Operation *op, int64_t place, int64_t stride) {
      setPlace(op, begin + place);
      cast<plan::InputOp>(op).setSlotStride(stride);
    });
  }

  static void setPlace(Operation *op, int64_t place) {
    op->setAttr("place", OpBuilder(op).getI64IntegerAttr(place));
  }

  int64_t slots = 1;
};

} // namespace
} // namespace gpuc
