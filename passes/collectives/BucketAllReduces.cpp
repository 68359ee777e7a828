//===- BucketAllReduces.cpp - Sums over ranks that travel together ---------------===//
//
// The sums of a program become those of buckets, in the order in which their parts are computed. A bucket is
// one buffer, of which the parts are views: whoever computes a gradient writes it where it travels from, and
// finds its sum there, so that nothing is packed. What consumes sums is put off until they are there.
//
// Whether they travel beside the commands that compute is decided by prediction, and so are the buckets. No
// bit hangs on either: a sum is taken element by element, in the order of ranks.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/base/Target.h"
#include "passes/collectives/ExchangeSchedule.h"
#include "passes/collectives/PeelLast.h"
#include "passes/cost/CostModel.h"
#include "passes/plan/CommandGraph.h"

#include "runtime/plan/header.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace gpuc {

#define GEN_PASS_DEF_BUCKETALLREDUCESPASS
#include "passes/Passes.h.inc"

namespace {

/// A part's place in its bucket is a multiple of what buffers are aligned to.
int64_t placeBytes(int64_t bytes) { return static_cast<int64_t>(llvm::alignTo(bytes, kBufferAlignment)); }

/// A whole buffer; null for a view, a variable or an input.
plan::AllocOp wholeBuffer(Value value) { return value.getDefiningOp<plan::AllocOp>(); }

class ProgramBuckets {
public:
  ProgramBuckets(plan::ProgramOp program, const CostModel &cost, const Link &link,
                 std::optional<int64_t> bucketBytes)
      : block_(program.getBody().front()), cost_(cost), link_(link), bucketBytes_(bucketBytes),
        commands_(commandsOf(block_)) {}

  bool isIdle() const {
    return llvm::none_of(commands_,
                         [](Operation *command) { return isa<plan::CollectiveOpInterface>(command); });
  }

  /// Ranks exchange in one order, and so on one stream: that of the loop.
  bool exchangesInLoops() const {
    return llvm::any_of(commands_, [](plan::CommandOpInterface command) {
      return isa<plan::LoopOpInterface>(*command) &&
             command->walk([](plan::CollectiveOpInterface) { return WalkResult::interrupt(); })
                 .wasInterrupted();
    });
  }

  ExchangeSchedule schedule(bool beside) {
    taken_.clear();
    return scheduleExchanges(describeProgram(), link_,
                             {beside, bucketBytes_, cost_.device().handoffNanoseconds});
  }

  void apply(const ExchangeSchedule &schedule, bool beside) {
    OpBuilder atEnd = OpBuilder::atBlockEnd(&block_);
    auto firstOutput = llvm::find_if(block_, [](Operation &op) { return isa<plan::OutputOp>(op); });
    if (firstOutput != block_.end())
      atEnd.setInsertionPoint(&*firstOutput);
    for (const ExchangeSchedule::Turn &turn : schedule.turns) {
      for (size_t command : turn)
        commands_[command]->moveBefore(&block_, atEnd.getInsertionPoint());
      if (turn.size() > 1)
        formBucket(turn, atEnd);
    }
    if (beside)
      for (auto collective : block_.getOps<plan::CollectiveOpInterface>())
        collective->setAttr(kStreamAttr, StringAttr::get(collective->getContext(), kCollectiveStream));
  }

private:
  //===--------------------------------------------------------------------===//
  // What there is to be done
  //===--------------------------------------------------------------------===//

  ExchangeProblem describeProgram() {
    ExchangeProblem problem;
    CommandGraph graph(commands_);
    for (auto [number, command] : llvm::enumerate(commands_)) {
      ExchangeProblem::Command &entry = problem.commands.emplace_back();
      entry.predecessors.assign(graph.predecessors[number].begin(), graph.predecessors[number].end());
      if (auto collective = dyn_cast<plan::CollectiveOpInterface>(*command))
        entry.exchange = exchangeOf(collective, static_cast<int64_t>(number));
      else
        entry.nanoseconds = nanosecondsOf(command);
    }
    return problem;
  }

  /// Of one execution in the program; of a loop with all that it repeats.
  double nanosecondsOf(plan::CommandOpInterface command) const {
    if (auto loop = dyn_cast<plan::LoopOpInterface>(*command)) {
      double nanoseconds = 0;
      for (auto inner : loop.getCommands().getOps<plan::CommandOpInterface>())
        nanoseconds += nanosecondsOf(inner);
      return nanoseconds * static_cast<double>(loop.getTripCount());
    }
    return cost_.nanosecondsOf(workOf(command));
  }

  /// Sums of one element type travel together; one that cannot be a view of a bucket, alone, and so what is
  /// shared out or gathered.
  Exchange exchangeOf(plan::CollectiveOpInterface collective, int64_t number) {
    const int64_t alone = -1 - number;
    auto reduce = dyn_cast<plan::AllReduceOp>(*collective);
    const int64_t bytes = plan::summedBytes(collective);
    return {.bytes = placeBytes(bytes),
            .ready = 0,
            .kind = reduce && mayBeView(reduce) ? static_cast<int64_t>(plan::dataTypeOf(reduce.getElement()))
                                                : alone,
            .isNumber = reduce && bytes == ir::elementBytes(reduce.getElement())};
  }

  /// Whether part and sum may become one view of a bucket: buffers of the program's own, of which nobody
  /// needs the part once it is summed. An output is a buffer.
  bool mayBeView(plan::AllReduceOp reduce) {
    plan::AllocOp part = wholeBuffer(reduce.getPart()), sum = wholeBuffer(reduce.getResult());
    if (!part || !sum || part == sum || !taken_.insert(part).second || !taken_.insert(sum).second)
      return false;
    return !isOutput(sum) && isLastUse(part, reduce) && !isCopied(part) && !isCopied(sum);
  }

  static bool isOutput(Operation *buffer) {
    return llvm::any_of(buffer->getUsers(), [](Operation *user) {
      return isa<plan::OutputOp>(user) || (isa<plan::ViewOp>(user) && isOutput(user));
    });
  }

  /// A copy would pack it.
  static bool isCopied(Operation *buffer) {
    return llvm::any_of(buffer->getUsers(), [](Operation *user) {
      return isa<plan::CopyOp>(user) || (isa<plan::ViewOp>(user) && isCopied(user));
    });
  }

  bool isLastUse(Operation *buffer, plan::AllReduceOp reduce) {
    return llvm::all_of(buffer->getUsers(), [&](Operation *user) {
      if (isa<plan::ViewOp>(user))
        return isLastUse(user, reduce);
      Operation *inProgram = block_.findAncestorOpInBlock(*user);
      return !isa<plan::OutputOp>(user) && (user == reduce || inProgram->isBeforeInBlock(reduce));
    });
  }

  //===--------------------------------------------------------------------===//
  // What is made of it
  //===--------------------------------------------------------------------===//

  void formBucket(const ExchangeSchedule::Turn &members, OpBuilder &atEnd) {
    auto first = cast<plan::AllReduceOp>(*commands_[members.front()]);
    const Type element = first.getElement();
    OpBuilder atStart = OpBuilder::atBlockBegin(&block_);
    plan::AllocOp bucket = makeBucket(members, element, atStart);
    int64_t offset = 0;
    for (size_t member : members) {
      auto reduce = cast<plan::AllReduceOp>(*commands_[member]);
      const int64_t end = offset + plan::rangeOf(reduce.getPart()).size;
      becomeView(reduce, bucket, offset, atStart);
      offset = placeBytes(end);
      if (member != members.back())
        fillGap(bucket, element, end, offset, atStart, atEnd);
    }
    plan::AllReduceOp::create(atEnd, bucket.getLoc(), bucket, bucket, element);
  }

  /// Of the category, and at the location, of the largest of its parts.
  plan::AllocOp makeBucket(const ExchangeSchedule::Turn &members, Type element, OpBuilder &atStart) {
    int64_t bytes = 0, most = -1;
    plan::AllocOp largest;
    for (size_t member : members) {
      auto reduce = cast<plan::AllReduceOp>(*commands_[member]);
      const int64_t size = plan::rangeOf(reduce.getPart()).size;
      bytes = placeBytes(bytes) + size;
      if (size > most)
        largest = wholeBuffer(reduce.getResult());
      most = std::max(most, size);
    }
    auto type = RankedTensorType::get({bytes / ir::elementBytes(element)}, element);
    return plan::AllocOp::create(atStart, largest.getLoc(), largest.getBuffer().getType(),
                                 "bucket" + std::to_string(buckets_++), type, largest.getCategory(),
                                 /*place=*/IntegerAttr());
  }

  static plan::ViewOp viewOf(plan::AllocOp bucket, int64_t offset, RankedTensorType type, OpBuilder &at) {
    Value source = bucket.getBuffer();
    return plan::ViewOp::create(at, bucket.getLoc(), source.getType(), source, offset, type);
  }

  /// The sum lies where the part was.
  static void becomeView(plan::AllReduceOp member, plan::AllocOp bucket, int64_t offset, OpBuilder &atStart) {
    plan::AllocOp part = wholeBuffer(member.getPart()), sum = wholeBuffer(member.getResult());
    plan::ViewOp view = viewOf(bucket, offset, sum.getType(), atStart);
    view->setLoc(sum.getLoc());
    member->erase();
    for (plan::AllocOp buffer : {part, sum}) {
      buffer.getBuffer().replaceAllUsesWith(view.getBuffer());
      buffer->erase();
    }
  }

  /// What lies between two parts is summed with them.
  static void fillGap(plan::AllocOp bucket, Type element, int64_t begin, int64_t end, OpBuilder &atStart,
                      OpBuilder &atEnd) {
    if (begin == end)
      return;
    auto type = RankedTensorType::get({(end - begin) / ir::elementBytes(element)}, element);
    auto gap = viewOf(bucket, begin, type, atStart);
    plan::FillOp::create(atEnd, bucket.getLoc(), gap, cast<TypedAttr>(atEnd.getZeroAttr(element)));
  }

  Block &block_;
  const CostModel &cost_;
  const Link &link_;
  std::optional<int64_t> bucketBytes_;
  std::vector<plan::CommandOpInterface> commands_;
  DenseSet<Operation *> taken_; ///< Buffers that a sum has a claim on.
  int64_t buckets_ = 0;
};

struct BucketAllReduces : impl::BucketAllReducesPassBase<BucketAllReduces> {
  using BucketAllReducesPassBase::BucketAllReducesPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto target = module->getAttrOfType<plan::TargetAttr>(plan::kTargetAttr);
    if (!target) {
      module.emitError("has no plan.target: gpuc-to-plan comes before plan-bucket-all-reduces");
      return signalPassFailure();
    }
    const bool isHost = target.getKind() == plan::TargetKind::host;
    Result<Link> known = parseLink(linkOr(isHost ? kHostLink : kDeviceLink));
    if (!known.ok()) {
      module.emitError(known.message());
      return signalPassFailure();
    }
    warnIfIdle(module);
    const CostModel cost(describe(target));
    for (auto program : llvm::make_early_inc_range(module.getOps<plan::ProgramOp>()))
      if (!ProgramBuckets(program, cost, *known, size()).isIdle())
        choose(program, cost, *known);
  }

  std::optional<int64_t> size() const {
    return bucketBytes > 0 ? std::optional<int64_t>(bucketBytes) : std::nullopt;
  }

  /// The fastest by prediction: in turn, beside, or beside what the last microbatch computes, too.
  void choose(plan::ProgramOp program, const CostModel &cost, const Link &between) {
    ProgramBuckets asItIs(program, cost, between, size());
    const ExchangeSchedule inTurn = asItIs.schedule(/*beside=*/false);
    if ((between.takesCores && !alwaysBeside) || asItIs.exchangesInLoops())
      return asItIs.apply(inTurn, /*beside=*/false);
    const ExchangeSchedule beside = asItIs.schedule(/*beside=*/true);
    auto peeled = cast<plan::ProgramOp>(OpBuilder(program).clone(*program));
    if (peelLastIterations(peeled)) {
      ProgramBuckets buckets(peeled, cost, between, size());
      const ExchangeSchedule ofPeeled = buckets.schedule(/*beside=*/true);
      if (alwaysBeside || ofPeeled.nanoseconds < std::min(inTurn.nanoseconds, beside.nanoseconds)) {
        buckets.apply(ofPeeled, /*beside=*/true);
        program.erase();
        return;
      }
    }
    peeled.erase();
    if (alwaysBeside || beside.nanoseconds < inTurn.nanoseconds)
      asItIs.apply(beside, /*beside=*/true);
    else
      asItIs.apply(inTurn, /*beside=*/false);
  }

  /// Whoever asks for buckets means to train on several ranks.
  void warnIfIdle(ModuleOp module) {
    auto exchanges = [](plan::CollectiveOpInterface) { return WalkResult::interrupt(); };
    if ((!link.empty() || bucketBytes > 0) && !module.walk(exchanges).wasInterrupted())
      module.emitWarning("nothing is summed over ranks, so that ")
          << (link.empty() ? "--bucket-size" : "--link")
          << " has nothing to do: give --data-parallel where the model is compiled";
  }

  StringRef linkOr(StringRef otherwise) const {
    return link.empty() ? otherwise : StringRef(link.getValue());
  }
};

} // namespace
} // namespace gpuc
