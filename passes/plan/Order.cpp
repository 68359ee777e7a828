//===- Order.cpp - Order commands so that little memory is live at once -----===//
//
// List scheduling, in two ways: of the commands whose predecessors have run, the one goes next that leaves
// the fewest bytes live, among equals the one that came first; or the one that came first, unless another
// leaves fewer bytes live than there are. Greedy choices can end worse than they began, so the given order
// stays unless a new one has the lower peak, as placement would see it. The order is a function of the
// program alone.
//
// The commands of a loop are ordered by themselves, innermost first, by the buffers that live in one
// iteration; what else they touch is live in all of it, whatever their order. What iterations hand on stays
// in order, for within each of them nothing overtakes what it depends on.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/plan/CommandGraph.h"
#include "passes/plan/LiveBuffers.h"
#include "passes/plan/PartBuffers.h"

using namespace mlir;

namespace gpuc {

#define GEN_PASS_DEF_ORDERPASS
#include "passes/Passes.h.inc"

namespace {

/// The block in whose order a buffer has its place: that of the loop in one iteration of which it lives, or
/// the program's.
class Homes {
public:
  explicit Homes(plan::ProgramOp program) {
    homes_ = iterationScopes(program);
    for (auto buffer : program.getBody().getOps<plan::AllocOp>())
      homes_.try_emplace(buffer, &program.getBody().front());
    program.walk([&](plan::ParallelOp parallel) { // each part has a place in these
      for (ArrayRef<plan::AllocOp> group : buffersInTurn(parallel))
        for (plan::AllocOp buffer : group)
          homes_[buffer] = &parallel.getBody().front();
    });
  }

  Block *of(Operation *buffer) const { return homes_.lookup(buffer); }

private:
  DenseMap<Operation *, Block *> homes_;
};

/// The buffers that live and die by the order of a block's commands.
class BlockBuffers {
public:
  BlockBuffers(const CommandGraph &graph, Block &block, const Homes &homes)
      : touched_(graph.commands.size()) {
    for (auto [index, known] : llvm::enumerate(graph.commands)) {
      plan::CommandOpInterface command = known;
      for (Value value : llvm::concat<Value>(command.getReads(), command.getWrites()))
        if (Operation *buffer = plan::bufferOf(value); homes.of(buffer) == &block)
          if (touched_[index].insert(buffer))
            ++uses_[buffer];
    }
    for (auto output : block.getOps<plan::OutputOp>())
      ++uses_[plan::bufferOf(output.getBuffer())]; // after all commands
    left_ = uses_;
  }

  /// How many bytes more would be live behind the command, if it came next.
  int64_t growth(unsigned command) const {
    int64_t bytes = 0;
    for (Operation *buffer : touched_[command]) {
      const unsigned left = left_.lookup(buffer);
      const int64_t size = plan::sizeInBytes(cast<plan::BufferOpInterface>(buffer));
      bytes += (left == uses_.lookup(buffer) ? size : 0) - (left == 1 ? size : 0);
    }
    return bytes;
  }

  /// The command comes next.
  void take(unsigned command) {
    for (Operation *buffer : touched_[command])
      --left_[buffer];
  }

private:
  std::vector<SetVector<Operation *>> touched_; ///< By each command.
  DenseMap<Operation *, unsigned> uses_, left_; ///< Commands that touch a buffer; of which are to come.
};

/// With `onlyWhatFrees` what leaves as many bytes live, or more, comes in the given order.
std::vector<unsigned> scheduleGreedily(const CommandGraph &graph, BlockBuffers buffers, bool onlyWhatFrees) {
  std::vector<unsigned> waiting, order;
  for (const std::vector<unsigned> &predecessors : graph.predecessors)
    waiting.push_back(predecessors.size());

  SmallVector<unsigned> ready; // sorted
  for (unsigned command = 0; command < waiting.size(); ++command)
    if (waiting[command] == 0)
      ready.push_back(command);
  while (!ready.empty()) {
    auto growth = [&](unsigned command) {
      const int64_t bytes = buffers.growth(command);
      return onlyWhatFrees ? std::min<int64_t>(bytes, 0) : bytes;
    };
    auto best = std::min_element(ready.begin(), ready.end(),
                                 [&](unsigned a, unsigned b) { return growth(a) < growth(b); });
    unsigned command = *best;
    ready.erase(best);
    buffers.take(command);
    order.push_back(command);
    for (unsigned successor : graph.successors[command])
      if (--waiting[successor] == 0)
        ready.insert(llvm::lower_bound(ready, successor), successor);
  }
  return order;
}

class ProgramOrder {
public:
  ProgramOrder(ModuleOp module, plan::ProgramOp program)
      : module_(module), program_(program), homes_(program) {}

  LogicalResult run() { return order(program_.getBody().front()); }

private:
  /// Orders the commands of the loops in a block, then its own.
  LogicalResult order(Block &block) {
    for (auto loop : block.getOps<plan::LoopOpInterface>())
      if (failed(order(loop.getCommands())))
        return failure();
    CommandGraph graph(commandsOf(block));
    std::vector<plan::CommandOpInterface> best = graph.commands;
    const BlockBuffers buffers(graph, block, homes_);
    for (bool onlyWhatFrees : {false, true}) {
      std::vector<unsigned> better = scheduleGreedily(graph, buffers, onlyWhatFrees);
      if (llvm::is_sorted(better))
        continue;
      if (!live_ && !(live_ = findLive()))
        return failure();
      std::vector<plan::CommandOpInterface> commands;
      for (unsigned command : better)
        commands.push_back(graph.commands[command]);
      put(block, commands);
      std::unique_ptr<LiveBuffers> after = findLive();
      if (!after)
        return failure();
      const auto [begin, end] = positionsIn(block);
      if (after->most(begin, end) < live_->most(begin, end)) {
        live_ = std::move(after);
        best = std::move(commands);
      } else {
        put(block, best);
      }
    }
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
  Homes homes_;
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
