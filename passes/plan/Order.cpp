//===- Order.cpp - Order commands so that little memory is live at once -----===//
//
// The commands of a loop are ordered by themselves, innermost first, by the buffers that live in one
// iteration; what else they touch is live in all of it, whatever their order. What iterations hand on stays
// in order, for within each of them nothing overtakes what it depends on. ordering/ finds the order, of which
// this is the part that knows of plans.
//
// The given order stays unless the new one has the lower peak, as placement would see it. The order is a
// function of the program alone.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/ordering/Solver.h"
#include "passes/plan/LiveBuffers.h"
#include "passes/plan/OrderProblem.h"

using namespace mlir;

namespace gpuc {

#define GEN_PASS_DEF_ORDERPASS
#include "passes/Passes.h.inc"

namespace {

class ProgramOrder {
public:
  ProgramOrder(ModuleOp module, plan::ProgramOp program)
      : module_(module), program_(program), problems_(module, program) {}

  LogicalResult run() { return order(program_.getBody().front()); }

private:
  /// Orders the commands of the loops in a block, then its own.
  LogicalResult order(Block &block) {
    for (auto loop : block.getOps<plan::LoopOpInterface>())
      if (failed(order(loop.getCommands())))
        return failure();
    const CommandGraph graph(commandsOf(block));
    const ordering::Solution solution = ordering::solve(problems_.of(graph, block));
    return llvm::is_sorted(solution.order) ? success() : tryOrder(block, graph.commands, solution.order);
  }

  /// Leaves the block in that order if it has the lower peak.
  LogicalResult tryOrder(Block &block, ArrayRef<plan::CommandOpInterface> given,
                         const ordering::Order &order) {
    if (!live_ && !(live_ = findLive()))
      return failure();
    put(block, llvm::map_to_vector(order, [&](size_t command) { return given[command]; }));
    std::unique_ptr<LiveBuffers> after = findLive();
    if (!after)
      return failure();
    const auto [begin, end] = positionsIn(block);
    if (after->most(begin, end) < live_->most(begin, end))
      live_ = std::move(after);
    else
      put(block, given);
    return success();
  }

  /// As the program stands; null if there is an error.
  std::unique_ptr<LiveBuffers> findLive() {
    FailureOr<Lifetimes> lifetimes = computeLifetimes(program_);
    return succeeded(lifetimes) ? std::make_unique<LiveBuffers>(module_, program_, *lifetimes) : nullptr;
  }

  /// The positions that the block's commands take, whatever their order.
  std::pair<int64_t, int64_t> positionsIn(Block &block) {
    int64_t begin = 0;
    for (Operation *op = block.getParentOp(); op != program_; op = op->getParentOp())
      for (auto command : op->getBlock()->getOps<plan::CommandOpInterface>()) {
        if (command.getOperation() == op)
          break;
        begin += positionsOf(command);
      }
    int64_t end = begin;
    for (auto command : block.getOps<plan::CommandOpInterface>())
      end += positionsOf(command);
    return {begin, std::max(end, begin + 1)};
  }

  /// Views that commands use and outputs may stand among the commands: all that is no command goes first.
  static void put(Block &block, ArrayRef<plan::CommandOpInterface> commands) {
    for (Operation *command : commands)
      command->moveBefore(&block, block.end());
    for (plan::OutputOp output : llvm::to_vector(block.getOps<plan::OutputOp>()))
      output->moveBefore(&block, block.end());
  }

  ModuleOp module_;
  plan::ProgramOp program_;
  OrderProblems problems_;
  std::unique_ptr<LiveBuffers> live_; ///< In the order that there is, once somebody asks.
};

struct Order : impl::OrderPassBase<Order> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<plan::ProgramOp>())
      if (failed(ProgramOrder(getOperation(), program).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace gpuc
