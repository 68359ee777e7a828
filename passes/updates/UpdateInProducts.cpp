//===- UpdateInProducts.cpp - The update where the gradient appears ---------===//
//
// A weight's gradient that only its update reads need not be stored: the host hands each tile of the product,
// or of the convolution's filter gradient, to the update's kernel, while it is in the cache (plan.matmul …
// update, plan.conv filter_gradient … update). Bits are those of a product and an update one after the other.
//
// The weight may be read until then, by the product that makes its layer's other gradient above all. So
// either the update moves up to the product, where all that it stands behind allows that, or the product down
// to the update, and with it what else waits for it, as the sum of its squares. That keeps the product's
// operands for longer, and is done only if the sum of live bytes does not grow beyond what it was at its
// peak, the gradient's own left out.
//
// Whoever reads the gradient as a whole forbids it by being there: a norm, a check, a sum over ranks or over
// parts of the batch.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/codegen/host/HostCode.h"
#include "passes/plan/CommandGraph.h"
#include "passes/plan/LiveBuffers.h"
#include "passes/updates/Updates.h"

#include "runtime/workspace/matmul_workspace.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace gpuc {

#define GEN_PASS_DEF_UPDATEINPRODUCTSPASS
#include "passes/Passes.h.inc"

namespace {

/// A product, and the launch that is the only one to read what it makes.
struct Pair {
  plan::ProductOpInterface product;
  plan::LaunchOp update;
  unsigned argument; ///< Of the update's kernel: the gradient.
};

/// What makes the buffer that a launch reads, if it is made for that launch alone.
plan::ProductOpInterface makerOf(Value gradient, plan::LaunchOp reader) {
  if (!gradient.getDefiningOp<plan::AllocOp>())
    return {};
  plan::ProductOpInterface maker;
  for (OpOperand &use : gradient.getUses()) {
    if (use.getOwner() == reader)
      continue;
    auto product = dyn_cast<plan::ProductOpInterface>(use.getOwner());
    if (!product || maker || product.getResult() != gradient)
      return {};
    maker = product;
  }
  return maker;
}

/// Whether the product multiplies by a variable that the update writes, and so would have to be through
/// first.
bool multipliesByUpdated(plan::ProductOpInterface product, plan::LaunchOp update) {
  return llvm::any_of(update.getOutputs(), [&](Value output) {
    const void *written = plan::identityOf(plan::bufferOf(output));
    return llvm::any_of(cast<plan::CommandOpInterface>(*product).getReads(),
                        [&](Value factor) { return plan::identityOf(plan::bufferOf(factor)) == written; });
  });
}

class Joining {
public:
  Joining(SymbolTable &kernels, plan::ProgramOp program, LiveBuffers &live)
      : kernels_(kernels), graph_(commandsOf(program.getBody().front())), live_(live) {
    for (auto [index, command] : llvm::enumerate(graph_.commands)) {
      positions_.push_back(positions_.back() + positionsOf(command));
      places_.push_back(index);
      numbers_[command] = index;
    }
    program->getParentOfType<ModuleOp>().walk([&](plan::LaunchOp launch) { ++launches_[kernelOf(launch)]; });
  }

  void run() {
    for (size_t number = 0; number < graph_.commands.size(); ++number)
      if (auto launch = dyn_cast<plan::LaunchOp>(*graph_.commands[number]))
        if (std::optional<Pair> pair = pairOf(launch))
          join(*pair);
  }

private:
  plan::KernelOp kernelOf(plan::LaunchOp launch) const {
    return kernels_.lookup<plan::KernelOp>(launch.getKernel());
  }

  std::optional<Pair> pairOf(plan::LaunchOp launch) const {
    Block &body = kernelOf(launch).getBody().front();
    if (!isUpdate(launch, body) || launch->getNumOperands() > kMostUpdateOperands)
      return std::nullopt;
    for (auto [index, input] : llvm::enumerate(launch.getInputs()))
      if (plan::ProductOpInterface product = makerOf(input, launch);
          product && llvm::count(launch.getInputs(), input) == 1 &&
          product->getBlock() == launch->getBlock() &&
          product.getElement() == getElementTypeOrSelf(body.getArgument(index).getType()) &&
          canUpdateInProduct(product) && takesProductTiles(body, index) &&
          !multipliesByUpdated(product, launch))
        return Pair{product, launch, static_cast<unsigned>(index)};
    return std::nullopt;
  }

  /// What has to move down with the product, which is the first, so that it comes behind all others that
  /// stand before the update; none if the update waits for some of that.
  std::optional<SmallVector<unsigned>> movedWith(unsigned product, unsigned update) const {
    SmallVector<unsigned> moved{product};
    for (size_t next = 0; next < moved.size(); ++next)
      for (unsigned after : graph_.successors[moved[next]]) {
        if (after == update ? next > 0 : isa<plan::LoopOpInterface>(*graph_.commands[after]))
          return std::nullopt;
        if (after != update && places_[after] <= places_[update] && !llvm::is_contained(moved, after))
          moved.push_back(after);
      }
    llvm::sort(MutableArrayRef(moved).drop_front());
    return moved;
  }

  /// Joins the two where either of them stands, if that may be.
  void join(Pair pair) {
    const unsigned product = numbers_.lookup(pair.product), update = numbers_.lookup(pair.update);
    const unsigned from = places_[product], to = places_[update];
    auto gradient = pair.product.getResult().getDefiningOp<plan::AllocOp>();
    if (llvm::all_of(graph_.predecessors[update],
                     [&](unsigned before) { return before == product || places_[before] < from; })) {
      live_.remove(gradient);
      places_[update] = from;
      build(pair, pair.product);
      return;
    }
    std::optional<SmallVector<unsigned>> moved = movedWith(product, update);
    if (!moved)
      return;
    live_.remove(gradient);
    auto commands = llvm::map_to_vector(*moved, [&](unsigned number) { return graph_.commands[number]; });
    if (!live_.extend(commands, positions_[from], positions_[to]))
      return live_.restore(gradient);
    Operation *last = build(pair, pair.update);
    for (unsigned number : *moved) {
      places_[number] = to;
      if (number == product)
        continue;
      graph_.commands[number]->moveAfter(last);
      last = graph_.commands[number];
    }
  }

  /// Puts the product with its update in front of `place`, and takes out what it replaces.
  Operation *build(Pair pair, Operation *place) {
    auto [product, update, argument] = pair;
    OpBuilder builder(place);
    plan::KernelOp kernel = kernelFor(pair);
    SmallVector<Value> inputs(update.getInputs());
    inputs.erase(inputs.begin() + argument);
    auto joined = cast<plan::CommandOpInterface>(builder.clone(*product));
    llvm::TypeSwitch<Operation *>(joined.getOperation()).Case<plan::MatmulOp, plan::ConvOp>([&](auto op) {
      op.getResultMutable().clear();
      op.getUpdateInputsMutable().assign(inputs);
      op.getUpdateOutputsMutable().assign(update.getOutputs());
      op.setUpdate(kernel.getSymName());
    });
    graph_.commands[numbers_.lookup(product)] = graph_.commands[numbers_.lookup(update)] = joined;
    Operation *gradient = product.getResult().getDefiningOp();
    update.erase();
    product.erase();
    gradient->erase();
    return joined;
  }

  /// The update's own kernel, with the gradient in front of its other arguments.
  plan::KernelOp kernelFor(Pair pair) {
    plan::KernelOp kernel = kernelOf(pair.update);
    if (--launches_[kernel] > 0) { // others launch it as it is
      kernel = kernel.clone();
      kernels_.insert(kernel, Block::iterator(pair.update->getParentOfType<plan::ProgramOp>()));
    }
    Block &body = kernel.getBody().front();
    BlockArgument former = body.getArgument(pair.argument);
    BlockArgument first = body.insertArgument(0u, former.getType(), former.getLoc());
    former.replaceAllUsesWith(first);
    body.eraseArgument(pair.argument + 1);
    return kernel;
  }

  SymbolTable &kernels_;
  CommandGraph graph_;
  LiveBuffers &live_;
  SmallVector<unsigned> places_;                       ///< Where each command stands by now.
  std::vector<int64_t> positions_ = {0};               ///< Of each command, and the end.
  DenseMap<Operation *, unsigned> numbers_, launches_; ///< Of commands; of each kernel.
};

struct UpdateInProducts : impl::UpdateInProductsPassBase<UpdateInProducts> {
  using UpdateInProductsPassBase::UpdateInProductsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable kernels(module);
    for (auto program : module.getOps<plan::ProgramOp>()) {
      FailureOr<Lifetimes> lifetimes = computeLifetimes(program);
      if (failed(lifetimes))
        return signalPassFailure();
      LiveBuffers live(module, program, *lifetimes);
      Joining(kernels, program, live).run();
    }
  }
};

} // namespace
} // namespace gpuc
