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

/// The exchanges of a program, or of a loop's iteration.
class ProgramBuckets {
public:
  ProgramBuckets(Block &block, const CostModel &cost, const Link &link, std::optional<int64_t> bucketBytes)
      : block_(block), cost_(cost), link_(link), bucketBytes_(bucketBytes), commands_(commandsOf(block)) {}

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
    const ExchangeProblem problem = describeProgram();
    return scheduleExchanges(problem, link_,
                             {.beside = beside,
                              .bucketBytes = bucketBytes_,
                              .mostBytes = mostBytes(problem),
                              .worthFewer = cost_.device().worthFewerExchanges,
                              .handoffNanoseconds = cost_.device().handoffNanoseconds});
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
  /// Who shares out does so for memory, of which a bucket may take an eighth of what is exchanged.
  int64_t mostBytes(const ExchangeProblem &problem) const {
    constexpr int64_t kLeastBuckets = 8;
    int64_t bytes = 0;
    for (const ExchangeProblem::Command &command : problem.commands)
      if (command.exchange && command.exchange->isGather)
        bytes += command.exchange->bytes;
    return bytes == 0 ? std::numeric_limits<int64_t>::max()
                      : std::max(bytes / kLeastBuckets, bytesBeyondLatency(link_));
  }

  //===--------------------------------------------------------------------===//
  // What there is to be done
  //===--------------------------------------------------------------------===//

  ExchangeProblem describeProgram() {
    ExchangeProblem problem;
    CommandGraph graph(commands_);
    DenseMap<Operation *, SmallVector<size_t>> readers; // of each buffer, so far
    for (auto [number, command] : llvm::enumerate(commands_)) {
      ExchangeProblem::Command &entry = problem.commands.emplace_back();
      entry.predecessors.assign(graph.predecessors[number].begin(), graph.predecessors[number].end());
      if (auto collective = dyn_cast<plan::CollectiveOpInterface>(*command))
        entry.exchange = exchangeOf(collective, static_cast<int64_t>(number));
      else
        entry.nanoseconds = nanosecondsOf(command);
      // Who reads the part of a sum that is to lie in its place comes before.
      if (isa<plan::AllReduceOp>(*command) && entry.exchange->kind >= 0)
        addPredecessors(entry, readers.lookup(plan::bufferOf(command.getReads().front())));
      for (Value read : command.getReads())
        readers[plan::bufferOf(read)].push_back(number);
    }
    return problem;
  }

  static void addPredecessors(ExchangeProblem::Command &entry, ArrayRef<size_t> more) {
    std::vector<size_t> &all = entry.predecessors;
    llvm::append_range(all, more);
    llvm::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
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

  /// Those of one command, element type and number of owners travel together; a sum that cannot be a view of
  /// a bucket, alone.
  Exchange exchangeOf(plan::CollectiveOpInterface collective, int64_t number) {
    const int64_t alone = -1 - number, bytes = plan::summedBytes(collective);
    const int64_t type = static_cast<int64_t>(plan::dataTypeOf(collective.getElement()));
    Exchange exchange = {.bytes = placeBytes(bytes), .ready = 0, .kind = alone};
    if (auto reduce = dyn_cast<plan::AllReduceOp>(*collective)) {
      exchange.isNumber = bytes == ir::elementBytes(reduce.getElement());
      if (!isInLoop() && mayBeView(reduce))
        exchange.kind = type;
      return exchange;
    }
    exchange.isGather = isa<plan::AllGatherOp>(*collective);
    exchange.kind = (2 * ownersOf(collective) + (exchange.isGather ? 2 : 1)) * kDataTypeCount + type;
    return exchange;
  }

  /// 0 where each tensor is shared out.
  static int64_t ownersOf(plan::CollectiveOpInterface collective) {
    if (auto gather = dyn_cast<plan::AllGatherOp>(*collective))
      return gather.getOwners().value_or(0);
    return cast<plan::ReduceScatterOp>(*collective).getOwners().value_or(0);
  }

  bool isInLoop() const { return !isa<plan::ProgramOp>(block_.getParentOp()); }

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

  /// An exchange that reads it may wait for others that are like it, until behind the sum.
  bool isLastUse(Operation *buffer, plan::AllReduceOp reduce) {
    return llvm::all_of(buffer->getUsers(), [&](Operation *user) {
      if (isa<plan::ViewOp>(user))
        return isLastUse(user, reduce);
      if (user == reduce)
        return true;
      Operation *inProgram = block_.findAncestorOpInBlock(*user);
      return !isa<plan::OutputOp, plan::CollectiveOpInterface>(user) && inProgram->isBeforeInBlock(reduce);
    });
  }

  //===--------------------------------------------------------------------===//
  // What is made of it
  //===--------------------------------------------------------------------===//

  void formBucket(const ExchangeSchedule::Turn &members, OpBuilder &atEnd) {
    plan::CommandOpInterface first = commands_[members.front()];
    if (isa<plan::ReduceScatterOp>(*first))
      join<plan::ReduceScatterOp>(members, atEnd);
    else if (isa<plan::AllGatherOp>(*first))
      join<plan::AllGatherOp>(members, atEnd);
    else
      sumInBucket(members, atEnd);
  }

  /// One command of all that they have, which stays where it is.
  template <typename Command> void join(const ExchangeSchedule::Turn &members, OpBuilder &atEnd) {
    SmallVector<Value> read, written;
    auto largest = cast<Command>(*commands_[members.front()]);
    for (size_t member : members) {
      auto command = cast<Command>(*commands_[member]);
      llvm::append_range(read, commands_[member].getReads());
      llvm::append_range(written, commands_[member].getWrites());
      if (plan::summedBytes(command) > plan::summedBytes(largest))
        largest = command;
    }
    Command::create(atEnd, largest.getLoc(), read, written, largest.getElement(), largest.getWorldSize(),
                    largest.getOwnersAttr());
    for (size_t member : members)
      commands_[member]->erase();
  }

  void sumInBucket(const ExchangeSchedule::Turn &members, OpBuilder &atEnd) {
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
    if (isIdle(module))
      return markAllAnalysesPreserved(); // nor is the module verified again
    const CostModel cost(describe(target));
    for (auto program : llvm::make_early_inc_range(module.getOps<plan::ProgramOp>())) {
      program.walk([&](plan::RepeatOp repeat) { shareInLoop(repeat, cost, *known); });
      if (!ProgramBuckets(program.getBody().front(), cost, *known, size()).isIdle())
        choose(program, cost, *known);
    }
  }

  /// What ranks share out in each iteration travels together, too.
  void shareInLoop(plan::RepeatOp repeat, const CostModel &cost, const Link &between) {
    Block &body = repeat.getBody().front();
    if (body.getOps<plan::ReduceScatterOp>().empty() && body.getOps<plan::AllGatherOp>().empty())
      return;
    ProgramBuckets buckets(body, cost, between, size());
    const ExchangeSchedule schedule = buckets.schedule(/*beside=*/false);
    if (llvm::any_of(schedule.turns, [](const ExchangeSchedule::Turn &turn) { return turn.size() > 1; }))
      buckets.apply(schedule, /*beside=*/false);
  }

  std::optional<int64_t> size() const {
    return bucketBytes > 0 ? std::optional<int64_t>(bucketBytes) : std::nullopt;
  }

  /// The fastest by prediction: in turn, beside, or beside what the last microbatch computes, too.
  void choose(plan::ProgramOp program, const CostModel &cost, const Link &between) {
    ProgramBuckets asItIs(program.getBody().front(), cost, between, size());
    const ExchangeSchedule inTurn = asItIs.schedule(/*beside=*/false);
    if ((between.takesCores && !alwaysBeside) || asItIs.exchangesInLoops())
      return asItIs.apply(inTurn, /*beside=*/false);
    const ExchangeSchedule beside = asItIs.schedule(/*beside=*/true);
    auto peeled = cast<plan::ProgramOp>(OpBuilder(program).clone(*program));
    if (peelLastIterations(peeled)) {
      ProgramBuckets buckets(peeled.getBody().front(), cost, between, size());
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
  /// Whether ranks exchange nothing; a warning where options say how they should.
  bool isIdle(ModuleOp module) {
    auto exchanges = [](plan::CollectiveOpInterface) { return WalkResult::interrupt(); };
    if (module.walk(exchanges).wasInterrupted())
      return false;
    if (!link.empty() || bucketBytes > 0)
      module.emitWarning("nothing is summed over ranks, so that ")
          << (link.empty() ? "--bucket-size" : "--link")
          << " has nothing to do: give --data-parallel where the model is compiled";
    return true;
  }

  StringRef linkOr(StringRef otherwise) const {
    return link.empty() ? otherwise : StringRef(link.getValue());
  }
};

} // namespace
} // namespace gpuc
