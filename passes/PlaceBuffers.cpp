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
//===----------------------------------------------------------------------===//

#include "passes/Lifetimes.h"
#include "passes/Passes.h"

#include "passes/codegen/Codegen.h"
#include "passes/placement/Solver.h"
#include "passes/placement/Validator.h"
#include "runtime/plan/header.h"

#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;

namespace gpuc {

#define GEN_PASS_DEF_PLACEBUFFERSPASS
#include "passes/Passes.h.inc"

namespace {

int64_t aligned(int64_t bytes) { return llvm::alignTo(bytes, kBufferAlignment); }

/// Buffers that share one place because each is written over the one before it.
class InPlaceChains {
public:
  InPlaceChains(ModuleOp module, plan::ProgramOp program, Lifetimes &lifetimes)
      : module(module), lifetimes(lifetimes) {
    for (auto &[buffer, lifetime] : lifetimes)
      chains.insert(buffer);
    program.walk([&](plan::LaunchOp launch) { join(launch); });
  }

  plan::AllocOp leader(plan::AllocOp buffer) const {
    return cast<plan::AllocOp>(chains.getLeaderValue(buffer));
  }

private:
  void join(plan::LaunchOp launch) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<plan::KernelOp>(module, launch.getKernelAttr());
    for (auto [result, output] : llvm::enumerate(launch.getOutputs()))
      for (Value input : launch.getInputs())
        if (mayOverwrite(launch, kernel, input, result) && canShare(launch, input, output)) {
          chains.unionSets(output.getDefiningOp(), input.getDefiningOp());
          break;
        }
  }

  /// Whether the kernel allows it, through whichever of its arguments it reads the buffer.
  static bool mayOverwrite(plan::LaunchOp launch, plan::KernelOp kernel, Value input, unsigned result) {
    for (auto [argument, operand] : llvm::enumerate(launch.getInputs()))
      if (plan::bufferOf(operand) == plan::bufferOf(input) &&
          !canUpdateInPlace(kernel.getBody().front(), argument, result))
        return false;
    return true;
  }

  /// Whole buffers of one size; the launch is the input's last command and the output's first, in each
  /// iteration if it is repeated.
  bool canShare(plan::LaunchOp launch, Value input, Value output) {
    auto from = input.getDefiningOp<plan::AllocOp>(), to = output.getDefiningOp<plan::AllocOp>();
    if (!from || !to || from == to || plan::rangeOf(input).size != plan::rangeOf(output).size)
      return false;
    if (!lifetimes.contains(from) || !lifetimes.contains(to) || isOutput(from))
      return false;
    if (lifetimes[from].upper != lifetimes[to].lower + 1)
      return false;
    if (isa<plan::RepeatOp>(launch->getParentOp()) &&
        (lifetimes[from].scope != launch->getBlock() || lifetimes[to].scope != launch->getBlock()))
      return false;
    // Two outputs cannot lie over one input.
    return !overwritten.contains(from) && overwritten.insert(from).second;
  }

  static bool isOutput(plan::AllocOp buffer) {
    return llvm::any_of(buffer->getUsers(), [](Operation *user) { return isa<plan::OutputOp>(user); });
  }

  ModuleOp module;
  Lifetimes &lifetimes;
  llvm::EquivalenceClasses<Operation *> chains;
  DenseSet<Operation *> overwritten;
};

/// Offsets of a program's buffers within the workspace.
struct Workspace {
  llvm::MapVector<plan::AllocOp, int64_t> offsets;
  int64_t bytes = 0;
  int64_t lowerBound = 0;
};

FailureOr<Workspace> placeWorkspace(ModuleOp module, plan::ProgramOp program) {
  FailureOr<Lifetimes> lifetimes = computeLifetimes(program);
  if (failed(lifetimes))
    return failure();
  InPlaceChains chains(module, program, *lifetimes);

  placement::Problem problem;
  llvm::MapVector<Operation *, size_t> indices; // of each chain's leader
  for (auto &[buffer, lifetime] : *lifetimes) {
    auto [entry, inserted] = indices.insert({chains.leader(buffer), problem.buffers.size()});
    if (inserted)
      problem.buffers.push_back({buffer.getName().str(), lifetime.lower, lifetime.upper,
                                 ir::sizeInBytes(buffer.getType()), static_cast<int64_t>(kBufferAlignment)});
    placement::Buffer &chain = problem.buffers[entry->second];
    chain.lower = std::min(chain.lower, lifetime.lower);
    chain.upper = std::max(chain.upper, lifetime.upper);
  }

  Result<placement::Solution> solution = placement::solve(problem);
  if (!solution.ok())
    return program.emitError(solution.message()), failure();
  if (Status valid = placement::validate(problem, *solution); !valid.ok())
    return program.emitError("placement is wrong: ") << valid.message(), failure();

  Workspace workspace;
  workspace.bytes = aligned(solution->height);
  workspace.lowerBound = placement::lowerBound(problem);
  for (auto &[buffer, lifetime] : *lifetimes)
    workspace.offsets[buffer] = solution->offsets[indices[chains.leader(buffer)]];
  return workspace;
}

struct PlaceBuffers : impl::PlaceBuffersPassBase<PlaceBuffers> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto slotsAttr = module->getAttrOfType<IntegerAttr>(plan::kSlotsAttr);
    if (!slotsAttr) {
      module.emitError("has no streams: plan-assign-streams comes before plan-place-buffers");
      return signalPassFailure();
    }
    slots = slotsAttr.getInt();
    int64_t workspaceBegin = placeVariables(module);
    int64_t workspaceBytes = 0, lowerBound = 0, inputBytes = 0;
    std::vector<Workspace> workspaces;
    for (auto program : module.getOps<plan::ProgramOp>()) {
      FailureOr<Workspace> workspace = placeWorkspace(module, program);
      if (failed(workspace))
        return signalPassFailure();
      workspaceBytes = std::max(workspaceBytes, workspace->bytes);
      lowerBound = std::max(lowerBound, workspace->lowerBound);
      inputBytes = std::max(inputBytes, inputBytesOf(program));
      workspaces.push_back(std::move(*workspace));
    }

    int64_t inputsBegin = workspaceBegin + workspaceBytes;
    for (auto [program, workspace] : llvm::zip(module.getOps<plan::ProgramOp>(), workspaces)) {
      for (auto &[buffer, offset] : workspace.offsets)
        setPlace(buffer, workspaceBegin + offset);
      placeInputs(program, inputsBegin);
      program.setPeakBytes(workspaceBegin + workspace.bytes + inputBytesOf(program));
    }
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    plan::ArenaOp::create(builder, module.getLoc(), inputsBegin + inputBytes, 0, workspaceBegin, inputsBegin,
                          slots, workspaceBegin + lowerBound + inputBytes);
    module->removeAttr(plan::kSlotsAttr);
  }

  /// Returns where the workspace begins.
  int64_t placeVariables(ModuleOp module) {
    int64_t next = 0;
    for (auto variable : module.getOps<plan::VariableOp>()) {
      setPlace(variable, next);
      next += aligned(ir::sizeInBytes(variable.getType()));
    }
    for (auto constant : module.getOps<plan::ConstantOp>()) {
      setPlace(constant, next);
      next += aligned(ir::sizeInBytes(constant.getValue().getType()));
    }
    return next;
  }

  int64_t inputBytesOf(plan::ProgramOp program) {
    int64_t bytes = 0;
    for (auto input : program.getBody().getOps<plan::InputOp>())
      bytes += slots * aligned(ir::sizeInBytes(input.getType()));
    return bytes;
  }

  /// Inputs that do not fill their last line of memory come first: the padding lies between inputs, and the
  /// arena ends with a byte that is used.
  void placeInputs(plan::ProgramOp program, int64_t next) {
    SmallVector<plan::InputOp> inputs(program.getBody().getOps<plan::InputOp>());
    std::stable_partition(inputs.begin(), inputs.end(), [](plan::InputOp input) {
      int64_t bytes = ir::sizeInBytes(input.getType());
      return bytes != aligned(bytes);
    });
    for (plan::InputOp input : inputs) {
      int64_t stride = aligned(ir::sizeInBytes(input.getType()));
      setPlace(input, next);
      input.setSlotStride(stride);
      next += slots * stride;
    }
  }

  static void setPlace(Operation *op, int64_t place) {
    op->setAttr("place", OpBuilder(op).getI64IntegerAttr(place));
  }

  int64_t slots = 1;
};

} // namespace
} // namespace gpuc
