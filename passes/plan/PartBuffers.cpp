//===- PartBuffers.cpp - Parts that do not meet -----------------------------===//
//
//   %h = plan.buffer "h" : tensor<8x64xf32>      %h = plan.buffer "h" : tensor<2x8x64xf32>
//   plan.parallel 2 {                            plan.parallel 2 {
//                                           =>     %mine = plan.view %h[0] strides [2048]
//     plan.launch @tanh(%x) -> (%h)                plan.launch @tanh(%x) -> (%mine)
//     …                                            …
//
// A part's place is a multiple of kBufferAlignment long: threads that execute the parts side by side share no
// line of their caches.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/PartBuffers.h"

#include "runtime/plan/header.h"

#include "llvm/Support/MathExtras.h"

#include <functional>
#include <limits>
#include <map>

using namespace mlir;

namespace gpuc {
namespace {

/// Whether all commands that use a buffer, or a view of it, stand in the parallel.
bool isUsedOnlyIn(plan::ParallelOp parallel, Value buffer) {
  return llvm::all_of(buffer.getUsers(), [&](Operation *user) {
    auto view = dyn_cast<plan::ViewOp>(user);
    return view ? isUsedOnlyIn(parallel, view.getBuffer()) : parallel->isAncestor(user);
  });
}

/// Views that are declared for the whole program move into the parallel, behind what they are of.
void moveViews(plan::ParallelOp parallel, Operation *behind) {
  for (Operation *user : llvm::make_early_inc_range(behind->getUsers()))
    if (isa<plan::ViewOp>(user) && !parallel->isAncestor(user)) {
      user->moveAfter(behind);
      moveViews(parallel, user);
    }
}

/// As many as there are parts, each `stride` bytes long.
RankedTensorType stackOf(RankedTensorType part, int64_t parts, int64_t stride) {
  if (ir::sizeInBytes(part) == stride)
    return ir::ScanOp::stackType(part, parts);
  return RankedTensorType::get({parts, stride / ir::elementBytes(part.getElementType())},
                               part.getElementType());
}

/// What each part has of a buffer; null if it is not one for which separateParts() made places.
plan::ViewOp partIn(plan::ParallelOp parallel, plan::AllocOp buffer) {
  auto part = buffer->hasOneUse() ? dyn_cast<plan::ViewOp>(*buffer->user_begin()) : plan::ViewOp();
  int64_t count = parallel.getParts();
  bool isPart = part && part->getParentOp() == parallel && part.getOffset() == 0 &&
                part.getStrides().size() == 1 &&
                part.getStrides().front() * count == ir::sizeInBytes(buffer.getType());
  return isPart ? part : plan::ViewOp();
}

/// From the first command of a part that uses a value, or a view of it, to the last.
struct Turn {
  int64_t first = std::numeric_limits<int64_t>::max(), last = -1;
};

class Turns {
public:
  explicit Turns(plan::ParallelOp parallel) : body_(&parallel.getBody().front()) {
    for (auto command : body_->getOps<plan::CommandOpInterface>())
      positions_[command] = positions_.size();
  }

  Turn of(Value value) const {
    Turn turn;
    extend(turn, value);
    return turn;
  }

private:
  void extend(Turn &turn, Value value) const {
    for (Operation *user : value.getUsers()) {
      if (auto view = dyn_cast<plan::ViewOp>(user)) {
        extend(turn, view.getBuffer());
        continue;
      }
      int64_t position = positions_.lookup(body_->findAncestorOpInBlock(*user));
      turn.first = std::min(turn.first, position);
      turn.last = std::max(turn.last, position);
    }
  }

  Block *body_;
  DenseMap<Operation *, int64_t> positions_;
};

} // namespace

void separateParts(plan::ParallelOp parallel) {
  OpBuilder builder = OpBuilder::atBlockBegin(&parallel.getBody().front());
  auto program = parallel->getParentOfType<plan::ProgramOp>();
  for (auto buffer : program.getBody().getOps<plan::AllocOp>()) {
    if (buffer->use_empty() || !isUsedOnlyIn(parallel, buffer.getBuffer()))
      continue;
    auto part = cast<RankedTensorType>(buffer.getType());
    int64_t stride = llvm::alignTo(ir::sizeInBytes(part), kBufferAlignment);
    buffer.setType(stackOf(part, parallel.getParts(), stride));
    auto mine = plan::ViewOp::create(builder, buffer.getLoc(), buffer.getBuffer().getType(),
                                     buffer.getBuffer(), /*offset=*/0, part, ArrayRef<int64_t>{stride});
    buffer.getBuffer().replaceAllUsesExcept(mine.getBuffer(), mine);
    moveViews(parallel, mine);
  }
}

SmallVector<SmallVector<plan::AllocOp>> buffersInTurn(plan::ParallelOp parallel) {
  Turns turns(parallel);
  std::multimap<int64_t, std::pair<plan::AllocOp, Turn>, std::greater<>> buffers; // by bytes of a part
  for (auto view : parallel.getBody().getOps<plan::ViewOp>())
    if (auto buffer = view.getSource().getDefiningOp<plan::AllocOp>();
        buffer && partIn(parallel, buffer) == view)
      buffers.insert({ir::sizeInBytes(view.getType()), {buffer, turns.of(view.getBuffer())}});

  struct Group {
    SmallVector<plan::AllocOp> buffers;
    SmallVector<Turn> turns;
    bool isFree(const Turn &turn) const {
      return llvm::all_of(
          turns, [&](const Turn &other) { return other.last < turn.first || turn.last < other.first; });
    }
  };
  SmallVector<Group> groups;
  for (auto &[bytes, entry] : buffers) {
    auto &[buffer, turn] = entry;
    auto free = llvm::find_if(groups, [&turn = turn](const Group &group) { return group.isFree(turn); });
    Group &group = free == groups.end() ? groups.emplace_back() : *free;
    group.buffers.push_back(buffer);
    group.turns.push_back(turn);
  }
  return llvm::map_to_vector(groups, [](Group &group) { return std::move(group.buffers); });
}

void alignInTurn(plan::ParallelOp parallel) {
  for (ArrayRef<plan::AllocOp> group : buffersInTurn(parallel)) {
    int64_t stride = partIn(parallel, group.front()).getStrides().front(); // of the largest
    for (plan::AllocOp buffer : group.drop_front()) {
      plan::ViewOp part = partIn(parallel, buffer);
      buffer.setType(stackOf(cast<RankedTensorType>(part.getType()), parallel.getParts(), stride));
      part.setStrides({stride});
    }
  }
}

} // namespace gpuc
