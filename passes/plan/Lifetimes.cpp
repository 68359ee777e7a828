//===- Lifetimes.cpp - When each buffer of a program is needed --------------===//

#include "passes/plan/Lifetimes.h"

#include "passes/plan/HappensBefore.h"

using namespace mlir;

namespace gpuc {
namespace {

/// For each execution the positions of the main stream between which it happens: behind the last main command
/// that precedes it, before the first that it precedes.
class Positions {
public:
  Positions(plan::ProgramOp program, const HappensBefore &order) : order(order) {
    auto streams = program.getBody().getOps<plan::StreamOp>();
    Operation *main = streams.empty() ? program.getOperation() : *streams.begin();
    for (unsigned index = 0; index < order.executions().size(); ++index) {
      plan::CommandOpInterface command = order.executions()[index].command;
      if (!main->isProperAncestor(command))
        continue;
      mainExecutions.push_back(index);
      begins.push_back(begins.back() + positionsOf(command));
    }
    mainStream = mainExecutions.empty() ? 0 : order.executions()[mainExecutions.front()].stream;
  }

  int64_t count() const { return begins.back(); }

  bool isMain(unsigned index) const {
    return !mainExecutions.empty() && order.executions()[index].stream == mainStream;
  }

  Lifetime of(unsigned index) const {
    if (isMain(index)) {
      size_t place = llvm::lower_bound(mainExecutions, index) - mainExecutions.begin();
      return {begins[place], begins[place + 1]};
    }
    auto first =
        llvm::partition_point(mainExecutions, [&](unsigned main) { return order.precedes(main, index); });
    auto behind =
        std::find_if(first, mainExecutions.end(), [&](unsigned main) { return order.precedes(index, main); });
    size_t before = std::max<int64_t>(0, first - mainExecutions.begin() - 1);
    bool atEnd = behind == mainExecutions.end();
    return {begins[before], atEnd ? count() + 1 : begins[behind - mainExecutions.begin() + 1]};
  }

private:
  const HappensBefore &order;
  std::vector<unsigned> mainExecutions; // in order
  std::vector<int64_t> begins = {0};    // position of each, and the end
  unsigned mainStream;
};

//===----------------------------------------------------------------------===//
// Within a repeat
//===----------------------------------------------------------------------===//

SetVector<Operation *> buffersOf(plan::CommandOpInterface command) {
  SetVector<Operation *> buffers;
  for (Value value : llvm::concat<Value>(command.getReads(), command.getWrites()))
    if (auto buffer = dyn_cast<plan::AllocOp>(*plan::bufferOf(value)))
      buffers.insert(buffer);
  return buffers;
}

/// Whether a command writes the whole buffer, and reads nothing of it.
bool overwrites(plan::CommandOpInterface command, Operation *buffer) {
  auto isWhole = [&](Value value) {
    plan::Range range = plan::rangeOf(value);
    return range.buffer == buffer && range.size == plan::sizeInBytes(range.buffer) &&
           llvm::all_of(range.strides, [](int64_t stride) { return stride == 0; });
  };
  return !isa<plan::LoopOpInterface>(*command) && llvm::any_of(command.getWrites(), isWhole) &&
         llvm::none_of(command.getReads(), [&](Value value) { return plan::bufferOf(value) == buffer; });
}

/// Which commands of a repeat use each buffer, and where: found once for all buffers.
class RepeatUsers {
public:
  struct User {
    plan::CommandOpInterface command;
    int64_t position, positions; ///< From the beginning of an iteration, and how many it takes.
  };
  struct Users {
    DenseMap<Operation *, SmallVector<User, 2>> ofBuffer;
    int64_t positions = 0;
  };

  const Users &of(plan::LoopOpInterface repeat) {
    std::unique_ptr<Users> &users = users_[repeat];
    if (users)
      return *users;
    users = std::make_unique<Users>();
    for (auto command : repeat.getCommands().getOps<plan::CommandOpInterface>()) {
      const int64_t positions = positionsOf(command);
      for (Operation *buffer : buffersOf(command))
        users->ofBuffer[buffer].push_back({command, users->positions, positions});
      users->positions += positions;
    }
    users->positions = std::max<int64_t>(1, users->positions);
    return *users;
  }

private:
  DenseMap<Operation *, std::unique_ptr<Users>> users_;
};

/// When a buffer that nothing outside of the repeat uses is needed, if the repeat begins at `begin`.
Lifetime lifetimeIn(plan::LoopOpInterface repeat, int64_t begin, Operation *buffer,
                    RepeatUsers &repeatUsers) {
  const RepeatUsers::Users &all = repeatUsers.of(repeat);
  ArrayRef<RepeatUsers::User> users = all.ofBuffer.find(buffer)->second;
  Lifetime whole = {begin, begin + all.positions};
  Lifetime found = {begin + users.front().position, begin + users.back().position + users.back().positions,
                    nullptr};
  plan::CommandOpInterface first = users.front().command;
  if (overwrites(first, buffer)) {
    found.scope = &repeat.getCommands();
    return found;
  }
  auto inner = dyn_cast<plan::LoopOpInterface>(*first);
  if (inner && users.size() == 1) {
    Lifetime deeper = lifetimeIn(inner, begin + users.front().position, buffer, repeatUsers);
    if (deeper.scope)
      return deeper;
  }
  return whole;
}

/// The repeat that holds all uses of a buffer, itself not in a repeat; null if there is none.
plan::LoopOpInterface repeatAround(plan::AllocOp buffer) {
  Operation *around = nullptr;
  SmallVector<Operation *> users(buffer->getUsers());
  while (!users.empty()) {
    Operation *user = users.pop_back_val();
    if (isa<plan::ViewOp>(user)) {
      llvm::append_range(users, user->getUsers());
      continue;
    }
    Operation *outermost = nullptr;
    for (Operation *op = user; op; op = op->getParentOp())
      if (isa<plan::LoopOpInterface>(op))
        outermost = op;
    if (!outermost || (around && around != outermost))
      return {};
    around = outermost;
  }
  return cast_or_null<plan::LoopOpInterface>(around);
}

} // namespace

DenseMap<Operation *, Block *> iterationScopes(plan::ProgramOp program) {
  RepeatUsers users;
  DenseMap<Operation *, Block *> scopes;
  for (auto buffer : program.getBody().getOps<plan::AllocOp>())
    if (plan::LoopOpInterface repeat = repeatAround(buffer))
      if (Block *scope = lifetimeIn(repeat, 0, buffer, users).scope)
        scopes[buffer] = scope;
  return scopes;
}

int64_t positionsOf(plan::CommandOpInterface command) {
  auto repeat = dyn_cast<plan::LoopOpInterface>(*command);
  if (!repeat)
    return 1;
  int64_t positions = 0;
  for (auto inner : repeat.getCommands().getOps<plan::CommandOpInterface>())
    positions += positionsOf(inner);
  return std::max<int64_t>(1, positions);
}

int64_t positionsOf(plan::ProgramOp program) {
  HappensBefore order;
  return succeeded(order.addStep(program)) && succeeded(order.finish()) ? Positions(program, order).count()
                                                                        : 0;
}

FailureOr<Lifetimes> computeLifetimes(plan::ProgramOp program) {
  HappensBefore order;
  if (failed(order.addStep(program)) || failed(order.finish()))
    return failure();
  Positions positions(program, order);

  RepeatUsers repeatUsers;
  Lifetimes lifetimes;
  for (auto buffer : program.getBody().getOps<plan::AllocOp>())
    lifetimes.insert({buffer, {std::numeric_limits<int64_t>::max(), 0}});
  auto extend = [&](plan::AllocOp buffer, Lifetime at) {
    Lifetime &lifetime = lifetimes[buffer];
    lifetime = {std::min(lifetime.lower, at.lower), std::max(lifetime.upper, at.upper), at.scope};
  };
  for (unsigned index = 0; index < order.executions().size(); ++index) {
    plan::CommandOpInterface command = order.executions()[index].command;
    auto repeat = dyn_cast<plan::LoopOpInterface>(*command);
    Lifetime at = positions.of(index);
    for (Operation *buffer : buffersOf(command)) {
      bool isInside =
          repeat && positions.isMain(index) && repeatAround(cast<plan::AllocOp>(buffer)) == repeat;
      extend(cast<plan::AllocOp>(buffer), isInside ? lifetimeIn(repeat, at.lower, buffer, repeatUsers) : at);
    }
  }
  for (auto output : program.getBody().getOps<plan::OutputOp>())
    if (auto buffer = dyn_cast<plan::AllocOp>(*plan::bufferOf(output.getBuffer())))
      extend(buffer, {positions.count(), positions.count() + 1});
  lifetimes.remove_if([](auto &entry) { return entry.second.upper == 0; });
  return lifetimes;
}

} // namespace gpuc
