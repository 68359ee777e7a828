//===- SumOverParts.cpp - From a part of the batch to all of it ---------------===//
//
// Contract: a function over b rows becomes one over n · b rows: a loop over the n parts that adds up what
// each returns. All of that are sums, so that what the recipe divides by is the count of the whole batch,
// however ragged the parts are. Microbatches follow one another, and the loop carries the sums. Slices are
// taken by threads side by side: the loop is parallel, carries nothing, and puts out what each has computed,
// which is added up behind it. Ranks are emulated, one after the other. A batch that is cut in several ways
// has loops within loops, ranks around microbatches around slices. Ranks that are processes of their own are
// no loop: ShareOfRank.cpp makes the sums.
//
//   - What ranks share out they do of the sum over microbatches, or (kScatterEachAttr) of each microbatch:
//     then the loop carries a rank's own share of the sum.
//   - Variables are read once, before the loop. One that is assigned (running statistics) is carried: part
//     i + 1 reads what i assigned. Ranks know nothing of one another: all read what was there before the
//     step, and the mean of what they assign is assigned.
//   - What a part must know of the whole follows from its number i. Random bits begin i · elements further
//   on,
//     so that dropout does not depend on how the batch is cut; what does not depend on the batch is the same
//     in each part. Of `rows`, the rows that hold a sample, part i has `rows - i · b`.
//
// Which arguments and random ops have rows was marked when their `?` was bound.
//
//===----------------------------------------------------------------------===//

#include "passes/batch/Parts.h"

#include "dialects/gpuc/Expr.h"

#include "mlir/IR/IRMapping.h"

namespace gpuc {

using namespace mlir;
using ir::Expr;

namespace {

/// One loop over parts: from the function over each, whose last argument is the part's number, to the one
/// over all of the innermost cut's. Where these are parts again, it has such an argument too.
class PartLoop {
  /// A variable that the function assigns, and its value before the step.
  struct Carried {
    ir::AssignOp assign;
    Value before;
  };

public:
  explicit PartLoop(func::FuncOp each)
      : each_(each), body_(each.getBody().front()),
        partition_(each->getAttrOfType<ir::PartitionAttr>(ir::kPartitionAttr)),
        outer_(partition_.withoutInnermost()), parts_(partition_.getInnermostParts()),
        parallel_(partition_.isSideBySide()), overRanks_(partition_.isOverRanks()), builder_(each) {}

  FailureOr<func::FuncOp> build() {
    if (failed(checkAssigned()))
      return failure();
    whole_ = declareWhole();
    builder_.setInsertionPointToStart(whole_.addEntryBlock());
    cutArguments();
    readVariables();
    if (!parallel_)
      startSums();
    buildLoop();
    each_.erase();
    return whole_;
  }

private:
  Location location() { return each_.getLoc(); }

  //===--------------------------------------------------------------------===//
  // Before the loop
  //===--------------------------------------------------------------------===//

  LogicalResult checkAssigned() {
    for (auto assign : body_.getOps<ir::AssignOp>())
      if (overRanks_ && getElementTypeOrSelf(assign.getValue()).isInteger(1))
        return assign.emitOpError("assigns ")
               << assign.getValue().getType()
               << " in each rank, of which the mean is taken: have it assign numbers";
    return success();
  }

  RankedTensorType wholeType(Type each) {
    auto type = cast<RankedTensorType>(each);
    SmallVector<int64_t> shape(type.getShape());
    shape.front() *= parts_;
    return type.clone(shape);
  }

  func::FuncOp declareWhole() {
    auto whole = cast<func::FuncOp>(each_->cloneWithoutRegions());
    SmallVector<Type> arguments(each_.getArgumentTypes());
    for (unsigned index = 0; index < arguments.size(); ++index)
      if (whole.removeArgAttr(index, ir::kPartitionAttr)) {
        arguments[index] = wholeType(arguments[index]);
        if (outer_)
          whole.setArgAttr(index, ir::kPartitionAttr, outer_);
      }
    whole->removeAttr(ir::kPartitionAttr);
    if (outer_)
      whole->setAttr(ir::kPartitionAttr, outer_);
    whole.setFunctionType(builder_.getFunctionType(arguments, whole.getResultTypes()));
    builder_.insert(whole);
    return whole;
  }

  /// Arguments with rows are cut along them; the others are the same for each part. The place of the part
  /// among the parts of this loop is an input too.
  void cutArguments() {
    for (auto [inner, argument] :
         llvm::zip_equal(body_.getArguments().drop_back(), whole_.getArguments().drop_back())) {
      if (inner.getType() == argument.getType()) {
        captures_.push_back({inner, argument});
        continue;
      }
      SmallVector<int64_t> shape(cast<RankedTensorType>(inner.getType()).getShape());
      shape.insert(shape.begin(), parts_);
      auto type = cast<RankedTensorType>(inner.getType()).clone(shape);
      inputs_.push_back({inner, ir::ReshapeOp::create(builder_, argument.getLoc(), type, argument)});
    }
    auto places = RankedTensorType::get({parts_}, builder_.getI64Type());
    places_ = ir::IotaOp::create(builder_, location(), places, builder_.getI64IntegerAttr(0));
  }

  void readVariables() {
    llvm::StringMap<ir::AssignOp> assigns;
    for (auto assign : body_.getOps<ir::AssignOp>())
      assigns[assign.getVariable()] = assign;
    llvm::StringMap<Value> reads;
    auto readOnce = [&](Location at, StringRef variable, Type type) {
      Value &value = reads[variable];
      if (!value)
        value = ir::ReadOp::create(builder_, at, type, variable);
      return value;
    };
    for (auto read : body_.getOps<ir::ReadOp>()) {
      Value value = readOnce(read.getLoc(), read.getVariable(), read.getType());
      if (overRanks_ || !assigns.contains(read.getVariable()))
        captures_.push_back({read.getResult(), value});
    }
    for (auto assign : body_.getOps<ir::AssignOp>()) {
      Value value = readOnce(assign.getLoc(), assign.getVariable(), assign.getValue().getType());
      carried_.push_back({assign, value});
    }
  }

  void startSums() {
    for (Type type : each_.getResultTypes())
      sums_.push_back(zero(type));
  }

  Value zero(Type type) { return ir::ConstantOp::create(builder_, location(), type, 0.0); }

  //===--------------------------------------------------------------------===//
  // The loop
  //===--------------------------------------------------------------------===//

  void buildLoop() {
    SmallVector<Value> inputs, inits(sums_), captures;
    for (auto &[inner, outer] : inputs_)
      inputs.push_back(outer);
    inputs.push_back(places_);
    for (Carried &carry : carried_)
      inits.push_back(overRanks_ ? zero(carry.before.getType()) : carry.before);
    for (auto &[inner, outer] : captures_)
      captures.push_back(outer);
    if (outer_)
      captures.push_back(whole_.getArguments().back());
    auto scan = ir::ScanOp::create(
        builder_, location(), inputs, inits, captures, parts_, /*batchFirst=*/false, /*reverse=*/false,
        [&](OpBuilder &builder, Location, ValueRange slices, ValueRange carries, ValueRange captured) {
          return clonePart(builder, slices, carries, captured);
        });
    // Products of all parts at once would need the memory that cutting saves.
    scan.setChunked(true);
    scan.setParallel(parallel_);
    builder_.setInsertionPointAfter(scan);
    for (auto [carry, value] : llvm::zip_equal(carried_, scan.getFinals().drop_front(sums_.size())))
      assign(carry.assign, value);
    SmallVector<Value> results(scan.getFinals().take_front(sums_.size()));
    for (Value parts : scan.getOutputs())
      results.push_back(ir::SumOp::create(builder_, parts.getLoc(), parts, ArrayRef<int64_t>{0}));
    func::ReturnOp::create(builder_, location(), results);
  }

  /// Behind the loop, of what it carried.
  void assign(ir::AssignOp each, Value value) {
    Expr last(builder_, each.getLoc(), value);
    if (overRanks_)
      last = last / static_cast<double>(parts_);
    ir::AssignOp::create(builder_, each.getLoc(), each.getVariableAttr(), last);
  }

  /// One part: what it computes, added to the sums, and what it assigns.
  SmallVector<Value> clonePart(OpBuilder &builder, ValueRange slices, ValueRange carries,
                               ValueRange captured) {
    IRMapping values;
    for (auto [input, slice] : llvm::zip_equal(inputs_, slices.drop_back()))
      values.map(input.first, slice);
    for (auto [capture, inner] : llvm::zip_first(captures_, captured))
      values.map(capture.first, inner);
    values.map(body_.getArguments().back(), numberOf(builder, slices.back(), captured));
    ValueRange state = carries.drop_front(sums_.size());
    for (auto [carry, inner] : llvm::zip_equal(carried_, state))
      for (auto read : body_.getOps<ir::ReadOp>())
        if (!overRanks_ && carry.assign.getVariable() == read.getVariable())
          values.map(read.getResult(), inner);

    for (Operation &op : body_.without_terminator())
      if (!isa<ir::ReadOp, ir::AssignOp>(op))
        builder.clone(op, values)->walk([](ir::ScanOp inner) { inner.setParallel(false); });
    SmallVector<Value> next;
    auto add = [&](Value sum, Value part) -> Value {
      return ir::AddOp::create(builder, part.getLoc(), part.getType(), sum, part);
    };
    for (auto [index, term] : llvm::enumerate(body_.getTerminator()->getOperands())) {
      Value part = values.lookup(term);
      next.push_back(parallel_ ? part : add(carries[index], part));
    }
    for (auto [carry, inner] : llvm::zip_equal(carried_, state)) {
      Value value = values.lookup(carry.assign.getValue());
      next.push_back(overRanks_ ? add(inner, value) : value);
    }
    return next;
  }

  /// The part's number in the batch, by its place in this loop.
  Value numberOf(OpBuilder &builder, Value place, ValueRange captured) {
    if (!outer_)
      return place;
    Expr here(builder, location(), place);
    return here.at(captured.back()) * static_cast<double>(parts_) + here;
  }

  func::FuncOp each_, whole_;
  Block &body_;
  ir::PartitionAttr partition_, outer_; // outer_: null where no other loop is around this one
  int64_t parts_;
  bool parallel_, overRanks_;
  OpBuilder builder_;
  SmallVector<std::pair<Value, Value>> inputs_, captures_; // of a part, of the batch
  SmallVector<Carried> carried_;
  SmallVector<Value> sums_;
  Value places_;
};

/// Whether `part` is a rank's microbatch, of which the sums are shared out.
bool sharesOutEach(func::FuncOp part, ir::PartitionAttr partition) {
  auto outer = partition.withoutInnermost();
  return part->hasAttr(kScatterEachAttr) && !partition.isSideBySide() && outer && outer.isOverRanks();
}

} // namespace

LogicalResult sumOverParts(func::FuncOp &part) {
  if (!part->hasAttr(ir::kPartitionAttr))
    return success();
  if (failed(addPartNumber(part)))
    return failure();
  const llvm::StringSet<> alike = assignedAlike(part);
  while (auto partition = part->getAttrOfType<ir::PartitionAttr>(ir::kPartitionAttr)) {
    if (partition.getDistributed() && partition.isOverRanks())
      return reduceOverRanks(part, alike);
    if (sharesOutEach(part, partition) && failed(shareOutSums(part)))
      return failure();
    FailureOr<func::FuncOp> whole = PartLoop(part).build();
    if (failed(whole))
      return failure();
    part = *whole;
  }
  return part.eraseArgument(part.getNumArguments() - 1);
}

} // namespace gpuc
