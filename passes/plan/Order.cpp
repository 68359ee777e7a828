//===- Order.cpp - Order commands so that little memory is live at once -----===//
//
// List scheduling: of the commands whose predecessors have run, the one goes next that leaves the fewest
// bytes live; among equals the one that came first. Greedy choices can end worse than they began, so the
// program's own order stays unless the new one has the lower peak. The order is a function of the program
// alone.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/plan/CommandGraph.h"

using namespace mlir;

namespace gpuc {

#define GEN_PASS_DEF_ORDERPASS
#include "passes/Passes.h.inc"

namespace {

/// Bytes of the program's own buffers that are live while commands run in some order.
class LiveBytes {
public:
  LiveBytes(const CommandGraph &graph, plan::ProgramOp program) {
    for (const plan::CommandOpInterface &command : graph.commands) {
      touched.push_back(ownBuffers(command));
      for (Operation *buffer : touched.back())
        ++initialUses[buffer];
    }
    for (auto output : program.getBody().getOps<plan::OutputOp>())
      ++initialUses[plan::bufferOf(output.getBuffer())]; // never freed
    reset();
  }

  void reset() {
    remainingUses = initialUses;
    live.clear();
    current = peak = 0;
  }

  /// How many bytes more will be live once the command has run.
  int64_t growth(unsigned command) const {
    int64_t bytes = 0;
    for (Operation *buffer : touched[command]) {
      if (!live.contains(buffer))
        bytes += size(buffer);
      if (remainingUses.lookup(buffer) == 1)
        bytes -= size(buffer);
    }
    return bytes;
  }

  void run(unsigned command) {
    for (Operation *buffer : touched[command])
      if (live.insert(buffer).second)
        current += size(buffer);
    peak = std::max(peak, current);
    for (Operation *buffer : touched[command])
      if (--remainingUses[buffer] == 0)
        current -= size(buffer);
  }

  int64_t peak = 0;

private:
  static int64_t size(Operation *buffer) { return plan::sizeInBytes(cast<plan::BufferOpInterface>(buffer)); }

  static SetVector<Operation *> ownBuffers(plan::CommandOpInterface command) {
    SetVector<Operation *> buffers;
    for (Value value : llvm::concat<Value>(command.getReads(), command.getWrites()))
      if (Operation *buffer = plan::bufferOf(value); isa<plan::AllocOp>(buffer))
        buffers.insert(buffer);
    return buffers;
  }

  std::vector<SetVector<Operation *>> touched;
  DenseMap<Operation *, unsigned> initialUses, remainingUses;
  DenseSet<Operation *> live;
  int64_t current = 0;
};

std::vector<unsigned> scheduleGreedily(const CommandGraph &graph, LiveBytes &bytes) {
  std::vector<unsigned> waiting, order;
  for (const std::vector<unsigned> &predecessors : graph.predecessors)
    waiting.push_back(predecessors.size());

  SmallVector<unsigned> ready; // sorted
  for (unsigned command = 0; command < waiting.size(); ++command)
    if (waiting[command] == 0)
      ready.push_back(command);
  while (!ready.empty()) {
    auto best = std::min_element(ready.begin(), ready.end(),
                                 [&](unsigned a, unsigned b) { return bytes.growth(a) < bytes.growth(b); });
    unsigned command = *best;
    ready.erase(best);
    bytes.run(command);
    order.push_back(command);
    for (unsigned successor : graph.successors[command])
      if (--waiting[successor] == 0)
        ready.insert(llvm::lower_bound(ready, successor), successor);
  }
  return order;
}

struct Order : impl::OrderPassBase<Order> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<plan::ProgramOp>())
      order(program);
  }

  void order(plan::ProgramOp program) {
    Block &body = program.getBody().front();
    CommandGraph graph(commandsOf(body));
    LiveBytes bytes(graph, program);
    for (unsigned command = 0; command < graph.commands.size(); ++command)
      bytes.run(command);
    int64_t before = bytes.peak;

    bytes.reset();
    std::vector<unsigned> better = scheduleGreedily(graph, bytes);
    if (bytes.peak >= before)
      return;
    // Views that commands use and outputs may stand among the commands: all that is no command goes first.
    for (unsigned command : better)
      graph.commands[command]->moveBefore(&body, body.end());
    for (plan::OutputOp output : llvm::to_vector(body.getOps<plan::OutputOp>()))
      output->moveBefore(&body, body.end());
  }
};

} // namespace
} // namespace gpuc
