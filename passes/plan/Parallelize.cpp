//===- Parallelize.cpp - Loops that threads may take by parts -----------------===//
//
// Each row of a recurrent network's batch goes through all time steps without the others:
//
//   plan.repeat 100 {                            plan.parallel rows 32 {
//     plan.matmul %h, %w -> %g …           =>      plan.repeat 100 {
//     plan.launch @tanh(%g, %x) -> (%h)              …
//   }                                              }
//                                                }
//
// Behind placement: what is another row's at another time may lie in the same bytes.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/codegen/host/HostCode.h"
#include "passes/plan/PlanParts.h"

using namespace mlir;

namespace gpuc {

#define GEN_PASS_DEF_PARALLELIZEPASS
#include "passes/Passes.h.inc"

namespace {

/// Each is walked with a list of its own on the host.
constexpr int64_t kMostIterations = 64;

class Parallelizer {
public:
  Parallelizer(ModuleOp module, const HostTarget &target)
      : module_(module), target_(target), kernels_(module),
        addresses_(*module.getOps<plan::ArenaOp>().begin()) {}

  /// Threads share the commands of a program's main stream alone.
  LogicalResult run() {
    for (auto program : module_.getOps<plan::ProgramOp>()) {
      auto streams = program.getBody().getOps<plan::StreamOp>();
      if (!streams.empty() && failed(visit((*streams.begin()).getBody().front())))
        return failure();
    }
    forgetRows();
    return success();
  }

private:
  /// The outermost loops first: what is cut there is cut in all that it holds.
  LogicalResult visit(Block &commands) {
    for (auto repeat : llvm::make_early_inc_range(commands.getOps<plan::RepeatOp>())) {
      FailureOr<bool> made = makeParallel(repeat);
      if (failed(made) || (!*made && failed(visit(repeat.getBody().front()))))
        return failure();
    }
    return success();
  }

  FailureOr<bool> makeParallel(plan::RepeatOp repeat) {
    if (!mayFork(repeat) || hasMovingViewsOutside(repeat))
      return false;
    if (mayHaveRows(repeat))
      noteRows(repeat);
    PlanParts parts(addresses_, kernels_, repeat);
    if (failed(parts.add(repeat.getBody().front())))
      return failure();
    if (parts.rows() > 1 && !parts.meeting({parts.rows(), /*by_rows=*/true})) {
      cutByRows(repeat, parts.rows());
      return true;
    }
    const auto count = static_cast<int64_t>(repeat.getCount());
    const bool isOutermost = isa<plan::StreamOp>(repeat->getParentOp());
    if (!isOutermost || count < 2 || count > kMostIterations || parts.meeting({count, /*by_rows=*/false}))
      return false;
    cutByIterations(repeat);
    return true;
  }

  /// Whether nothing in it waits, records, or moves bytes between host and arena.
  static bool mayFork(plan::RepeatOp repeat) {
    return !repeat.getBody()
                .walk([](Operation *op) {
                  return WalkResult(failure(
                      isa<plan::RecordOp, plan::WaitOp, plan::UploadOp, plan::DownloadOp, plan::ParallelOp>(
                          op)));
                })
                .wasInterrupted();
  }

  /// Whether a view that moves with it, or with a loop in it, stands outside, where nobody looks for it.
  static bool hasMovingViewsOutside(plan::RepeatOp repeat) {
    auto isOutside = [&](Value value) {
      for (auto view = value.getDefiningOp<plan::ViewOp>(); view;
           view = view.getSource().getDefiningOp<plan::ViewOp>())
        if (!repeat->isAncestor(view) && view.getStrides().size() > depthOf(repeat))
          return true;
      return false;
    };
    return repeat
        .walk([&](plan::CommandOpInterface command) {
          return WalkResult(failure(llvm::any_of(command->getOperands(), isOutside)));
        })
        .wasInterrupted();
  }

  static size_t depthOf(plan::RepeatOp repeat) {
    size_t depth = 0;
    for (Operation *op = repeat->getParentOp(); isa<plan::LoopOpInterface>(op); op = op->getParentOp())
      ++depth;
    return depth;
  }

  /// Whether all other commands have some: only then are kernels asked, which takes time.
  bool mayHaveRows(plan::RepeatOp repeat) const {
    return !repeat
                .walk([&](plan::CommandOpInterface command) {
                  const bool isOther = !isa<plan::LoopOpInterface, plan::LaunchOp>(*command);
                  return WalkResult(failure(isOther && rowsOf(command, kernels_) == 0));
                })
                .wasInterrupted();
  }

  /// Kernels say the rows that they have on the target.
  void noteRows(plan::RepeatOp repeat) {
    repeat.walk([&](plan::LaunchOp launch) {
      auto kernel = kernels_.lookup<plan::KernelOp>(launch.getKernel());
      if (noted_.insert(kernel).second)
        setRows(kernel, scheduleHostKernel(kernel.getBody().front(), target_));
    });
  }

  static void setRows(plan::KernelOp kernel, const KernelSchedule &schedule) {
    kernel.removeRowsAttr();
    kernel.removeByRowsAttr();
    if (schedule.rows == 0)
      return;
    SmallVector<int64_t> operands;
    for (auto [operand, goesByRows] : llvm::enumerate(schedule.byRows))
      if (goesByRows)
        operands.push_back(operand);
    kernel.setRows(schedule.rows);
    kernel.setByRows(operands);
  }

  /// Of kernels that no parallel cuts.
  void forgetRows() {
    DenseSet<Operation *> cut;
    module_.walk([&](plan::ParallelOp parallel) {
      if (parallel.getByRows())
        parallel.walk([&](plan::LaunchOp launch) { cut.insert(kernels_.lookup(launch.getKernel())); });
    });
    for (auto kernel : module_.getOps<plan::KernelOp>())
      if (!cut.contains(kernel))
        setRows(kernel, {});
  }

  void cutByRows(plan::RepeatOp repeat, int64_t rows) {
    const size_t depth = depthOf(repeat);
    OpBuilder builder(repeat);
    auto parallel = plan::ParallelOp::create(builder, repeat.getLoc(), rows, /*by_rows=*/true);
    repeat->moveBefore(&parallel.getBody().emplaceBlock(), parallel.getBody().front().end());
    repeat.walk([&](plan::ViewOp view) {
      SmallVector<int64_t> strides(view.getStrides());
      if (strides.size() > depth)
        strides.insert(strides.begin() + depth, 0); // of the parallel, in which nothing moves
      view.setStrides(strides);
    });
  }

  static void cutByIterations(plan::RepeatOp repeat) {
    OpBuilder builder(repeat);
    auto parallel = plan::ParallelOp::create(builder, repeat.getLoc(), repeat.getCount(), /*by_rows=*/false);
    parallel.getBody().takeBody(repeat.getBody());
    repeat.erase();
  }

  ModuleOp module_;
  const HostTarget &target_;
  SymbolTable kernels_;
  AddressSpace addresses_;
  DenseSet<Operation *> noted_; // kernels that have been asked for their rows
};

struct Parallelize : impl::ParallelizePassBase<Parallelize> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto target = module->getAttrOfType<plan::TargetAttr>(plan::kTargetAttr);
    if (!target || target.getKind() != plan::TargetKind::host)
      return;
    if (module.getOps<plan::ArenaOp>().empty()) {
      module.emitError("has no arena: plan-place-buffers comes before plan-parallelize");
      return signalPassFailure();
    }
    if (isIdle(module))
      return markAllAnalysesPreserved(); // nor is the module verified again
    std::string error;
    FailureOr<HostTarget> host =
        target.getName().empty() ? HostTarget::native(&error) : HostTarget::parse(target.getName(), &error);
    if (failed(host)) {
      module.emitError(error);
      return signalPassFailure();
    }
    if (failed(Parallelizer(module, *host).run()))
      signalPassFailure();
  }

  /// Whether there are neither loops nor what an earlier run said of kernels.
  static bool isIdle(ModuleOp module) {
    auto isLoop = [](plan::RepeatOp) { return WalkResult::interrupt(); };
    return !module.walk(isLoop).wasInterrupted() &&
           llvm::none_of(module.getOps<plan::KernelOp>(), [](auto kernel) { return kernel.getRows(); });
  }
};

} // namespace
} // namespace gpuc
