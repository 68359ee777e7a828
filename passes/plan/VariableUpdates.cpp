//===- VariableUpdates.cpp - Let updates write their variables in place -----===//
//
// An optimizer's kernel may write a weight where it lies only if nobody needs the old weight afterwards. Ops
// are pure, so their order is ours to choose: "reads the old value" becomes an edge of the dependence graph
// beside "uses the result", and a stable topological sort of both gives the order. An edge that would close a
// cycle means that old and new value are needed at once; then the new value is computed elsewhere and copied
// at the end. So is that of a counter which gradients read, as those of dropout do: else the optimizer, which
// computes its corrections beside it, would wait for the last of them, and with it all gradients.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/VariableUpdates.h"

#include "passes/Passes.h"
#include "passes/base/AttentionViews.h"
#include "passes/base/Locations.h"
#include "passes/plan/ProgramWriter.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/ADT/StringSet.h"

#include <map>
#include <set>

#define DEBUG_TYPE "gpuc-to-plan"

using namespace mlir;

namespace gpuc {

ALWAYS_ENABLED_STATISTIC(looks, "Looks from an op to one that has to follow it");

uint64_t updateLooks() { return looks; }

namespace {

/// Ops that touch the bytes behind `value`: its users, and those of its reshapes and other views of it.
void collectUsers(Value value, SetVector<Operation *> &users) {
  for (Operation *user : value.getUsers()) {
    if (isa<ir::ReshapeOp, ir::TransposeOp, ir::SliceOp>(user))
      collectUsers(user->getResult(0), users);
    users.insert(user);
  }
}

/// Where edges lead back in a block: between which positions, those that overlap as one. Whoever leaves what
/// is before the end of such a stretch does not come back to it.
class WaysBack {
public:
  /// An edge from one position to another, which may as well lie behind it.
  void add(unsigned to, unsigned from) {
    if (to >= from)
      return;
    auto next = ends.upper_bound(from);
    while (next != ends.begin() && std::prev(next)->second >= to) {
      --next;
      to = std::min(to, next->first);
      from = std::max(from, next->second);
      next = ends.erase(next);
    }
    ends[to] = from;
  }

  /// Behind which nothing leads to the position, or to one before it.
  unsigned endOfWaysTo(unsigned position) const {
    auto next = ends.upper_bound(position);
    return next == ends.begin() ? position : std::max(position, std::prev(next)->second);
  }

private:
  std::map<unsigned, unsigned> ends; // by where they begin
};

class Updates {
public:
  explicit Updates(func::FuncOp function) : function(function), block(function.getBody().front()) {}

  void run() {
    collect();
    for (ir::AssignOp assign : assigns)
      place(assign);
    sort();
  }

private:
  void collect() {
    llvm::StringSet<> assigned; // once each: the dialect's verifier sees to that
    for (auto assign : block.getOps<ir::AssignOp>()) {
      assigns.push_back(assign);
      assigned.insert(assign.getVariable());
    }
    copyReturnedReshapes();
    copyReturnedReads(assigned);
    for (auto [position, op] : llvm::enumerate(block))
      positions[&op] = position;
    for (auto read : block.getOps<ir::ReadOp>())
      collectUsers(read.getResult(), readers[read.getVariable()]);
    for (Operation &op : block)
      if (dropsByCounters(&op))
        for (StringRef counter : {"seed", "step"})
          readers[counter].insert(&op);
  }

  /// A result has the shape of the buffer that it is: under another shape it takes a buffer of its own.
  void copyReturnedReshapes() {
    for (OpOperand &operand : block.getTerminator()->getOpOperands())
      if (throughReshapes(operand.get()).getType() != operand.get().getType())
        insertCopy(operand, "reshape");
  }

  /// The caller reads a result after the step, when an assigned variable has lost the value that it had.
  void copyReturnedReads(const llvm::StringSet<> &assigned) {
    for (OpOperand &operand : block.getTerminator()->getOpOperands()) {
      auto read = throughReshapes(operand.get()).getDefiningOp<ir::ReadOp>();
      if (read && assigned.contains(read.getVariable()))
        operand.set(insertCopy(operand, read.getVariable())->getResult(0));
    }
  }

  /// Makes the assign's value one that is written in place, with a copy if it must be.
  void place(ir::AssignOp assign) {
    Operation *producer = assign.getValue().getDefiningOp();
    if (!canWrite(producer, assign) || isReadAgainBehind(producer, assign.getVariable()) ||
        keepsOthersWaiting(producer, assign) || !orderBehindReaders(producer, assign.getVariable())) {
      producer = insertCopy(assign.getValueMutable(), assign.getVariable());
      positions[producer] = positions.lookup(assign);
      orderBehindReaders(producer, assign.getVariable());
    }
    taken.insert(assign.getValue());
  }

  /// Whether the op may write the variable's bytes while it reads them, and no other variable takes the same
  /// value.
  bool canWrite(Operation *producer, ir::AssignOp assign) {
    if (!producer || !isa<ir::FusedOp, ir::ProductOpInterface>(producer) || taken.contains(assign.getValue()))
      return false;
    unsigned result = cast<OpResult>(assign.getValue()).getResultNumber();
    for (OpOperand &operand : producer->getOpOperands()) {
      auto read = throughReshapes(operand.get()).getDefiningOp<ir::ReadOp>();
      if (!read || read.getVariable() != assign.getVariable())
        continue;
      auto fused = dyn_cast<ir::FusedOp>(producer);
      if (!fused || !mayUpdateInPlace(fused, operand.getOperandNumber(), result))
        return false;
    }
    return true;
  }

  /// Whether an op behind the producer reads the old value to compute something again: before the producer
  /// that would free nothing.
  bool isReadAgainBehind(Operation *producer, StringRef variable) {
    return llvm::any_of(readers[variable], [&](Operation *reader) {
      return reader->hasAttr(kRecomputedAttr) && producer->isBeforeInBlock(reader);
    });
  }

  /// Whether gradients read the old value of a counter, and others than the assign what the producer
  /// computes.
  bool keepsOthersWaiting(Operation *producer, ir::AssignOp assign) {
    const bool isCounter =
        ir::sizeInBytes(assign.getValue().getType()) <= static_cast<int64_t>(sizeof(int64_t));
    return isCounter && llvm::any_of(producer->getUsers(), [&](Operation *user) { return user != assign; }) &&
           llvm::any_of(readers[assign.getVariable()], [&](Operation *reader) {
             return reader != producer && isBackward(reader->getLoc());
           });
  }

  /// Adds an edge from each other reader of the variable to `producer`; false, and no edge, if that closes a
  /// cycle.
  bool orderBehindReaders(Operation *producer, StringRef variable) {
    const SmallVector<Operation *> others = llvm::to_vector(
        llvm::make_filter_range(readers[variable], [&](Operation *reader) { return reader != producer; }));
    if (others.empty())
      return true;
    const DenseSet<Operation *> reachable = reachableFrom(producer, waysBack.endOfWaysTo(lastOf(others)));
    if (llvm::any_of(others, [&](Operation *reader) { return reachable.contains(reader); }))
      return false;
    for (Operation *reader : others) {
      later[reader].push_back(producer);
      waysBack.add(positions.lookup(producer), positions.lookup(reader));
    }
    return true;
  }

  unsigned lastOf(ArrayRef<Operation *> ops) const {
    unsigned last = 0;
    for (Operation *op : ops)
      last = std::max(last, positions.lookup(op));
    return last;
  }

  /// Of the ops that stood no further back than at `end`.
  DenseSet<Operation *> reachableFrom(Operation *start, unsigned end) {
    DenseSet<Operation *> reached;
    SmallVector<Operation *> open;
    auto reach = [&](Operation *op) {
      if (positions.lookup(op) <= end && reached.insert(op).second)
        open.push_back(op);
    };
    reach(start);
    while (!open.empty())
      forEachSuccessor(open.pop_back_val(), reach);
    return reached;
  }

  template <typename Callback> void forEachSuccessor(Operation *op, Callback callback) {
    auto look = [&](Operation *successor) {
      ++looks;
      callback(successor);
    };
    llvm::for_each(op->getUsers(), look);
    if (auto found = later.find(op); found != later.end())
      llvm::for_each(found->second, look);
  }

  /// Puts a kernel that copies between a value and its user.
  Operation *insertCopy(OpOperand &operand, StringRef name) {
    Value value = operand.get();
    Location location = operand.getOwner()->getLoc();
    OpBuilder builder(operand.getOwner());
    auto copy = ir::FusedOp::create(builder, location, value.getType(), (name + ".copy").str(), value);
    Block *body = builder.createBlock(&copy.getBody(), {}, value.getType(), location);
    ir::YieldOp::create(builder, location, body->getArguments());
    operand.set(copy->getResult(0));
    if (auto read = throughReshapes(value).getDefiningOp<ir::ReadOp>())
      readers[read.getVariable()].insert(copy);
    return copy;
  }

  /// Kahn's algorithm; among the ops that are ready the first one of the former order goes first.
  void sort() {
    DenseMap<Operation *, unsigned> position, waiting;
    SmallVector<Operation *> ops;
    for (Operation &op : block.without_terminator()) {
      position[&op] = ops.size();
      ops.push_back(&op);
    }
    for (Operation *op : ops)
      forEachSuccessor(op, [&](Operation *successor) { ++waiting[successor]; });

    std::set<unsigned> ready;
    for (Operation *op : ops)
      if (waiting.lookup(op) == 0)
        ready.insert(position[op]);
    while (!ready.empty()) {
      Operation *op = ops[*ready.begin()];
      ready.erase(ready.begin());
      op->moveBefore(block.getTerminator());
      forEachSuccessor(op, [&](Operation *successor) {
        if (--waiting[successor] == 0 && successor != block.getTerminator())
          ready.insert(position[successor]);
      });
    }
  }

  func::FuncOp function;
  Block &block;
  SmallVector<ir::AssignOp> assigns;
  llvm::StringMap<SetVector<Operation *>> readers;       // of the old value, for each variable
  DenseMap<Operation *, SmallVector<Operation *>> later; // reader → the op that overwrites what it reads
  DenseMap<Operation *, unsigned> positions;             // as they stood; of a copy, its assign's
  WaysBack waysBack;
  DenseSet<Value> taken; // values that are some variable's already
};

} // namespace

void makeUpdatesInPlace(func::FuncOp function) { Updates(function).run(); }

/// What reshapes and other views of it lead back to.
static Value throughViews(Value value) {
  while (isa_and_nonnull<ir::ReshapeOp, ir::TransposeOp, ir::SliceOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

LogicalResult verifyUpdates(func::FuncOp function, const Blame &blame) {
  Block &block = function.getBody().front();
  DenseMap<Operation *, SmallVector<StringRef, 1>> writes;
  for (auto assign : block.getOps<ir::AssignOp>())
    writes[assign.getValue().getDefiningOp()].push_back(assign.getVariable());
  llvm::StringSet<> written;
  for (Operation &op : block) {
    SmallVector<StringRef> wanted; // as they were when the step began
    if (dropsByCounters(&op))
      wanted = {"seed", "step"};
    if (!isa<ir::AssignOp, ir::ReshapeOp, ir::TransposeOp, ir::SliceOp>(op))
      for (Value operand : op.getOperands())
        if (auto read = throughViews(operand).getDefiningOp<ir::ReadOp>())
          wanted.push_back(read.getVariable());
    for (StringRef variable : wanted)
      if (written.contains(variable))
        return blame.report(op.getLoc(), "'" + op.getName().getStringRef() + "' in @" + function.getName() +
                                             " to read the old value of @" + variable +
                                             " behind what writes the new one over it");
    for (StringRef variable : writes.lookup(&op))
      written.insert(variable);
  }
  return success();
}

} // namespace gpuc
