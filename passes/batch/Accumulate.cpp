//===- Accumulate.cpp - A batch in microbatches, or shards -------------------===//
//
// Contract: `@gradients` over b rows becomes `@gradients` over K · b rows: a loop over K microbatches that
// adds up loss, count and gradients. All of these are sums, so that what the recipe divides by is the count
// of the whole batch, however ragged the microbatches are.
//
// Where gpuc-shard-batch has made them, the K parts are shards that threads take side by side: the loop is
// parallel, carries nothing, and puts out what each has computed, which is added up behind it.
//
//   - Variables are read once, before the loop. One that is assigned (running statistics) is carried:
//     microbatch i + 1 reads what i assigned.
//   - Random ops become random bits that say where in the whole batch they begin, so that dropout does not
//     depend on how the batch is cut. What does not depend on the batch is the same in each microbatch.
//   - Of `rows`, the rows that hold a sample, microbatch i has `rows - i · b`.
//
// gpuc-specialize-batch, or gpuc-shard-batch, has marked for this the arguments and random ops that have
// rows.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/base/AttentionViews.h"
#include "passes/base/CompositeOps.h"
#include "passes/base/TensorSizes.h"
#include "passes/recipe/StepBuilder.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace gpuc {
#define GEN_PASS_DEF_ACCUMULATEPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

bool isRows(func::FuncOp function, unsigned index) {
  auto role = function.getArgAttrOfType<StringAttr>(index, "gpuc.role");
  return role && role.getValue() == "rows";
}

/// Builds the function over all microbatches from the one over each.
class Accumulation {
  /// A variable that the function assigns, and its value before the step.
  struct Carried {
    ir::AssignOp assign;
    Value before;
  };

public:
  Accumulation(func::FuncOp each, int64_t microbatches, int64_t batch, bool parallel)
      : each_(each), body_(each.getBody().front()), microbatches_(microbatches), batch_(batch),
        parallel_(parallel), builder_(each) {}

  LogicalResult run() {
    if (failed(spellOutRandom()))
      return failure();
    whole_ = declareWhole();
    builder_.setInsertionPointToStart(whole_.addEntryBlock());
    cutArguments();
    readVariables();
    if (!parallel_)
      startSums();
    buildLoop();
    each_.erase();
    return success();
  }

private:
  Location location() { return each_.getLoc(); }

  //===--------------------------------------------------------------------===//
  // Random numbers
  //===--------------------------------------------------------------------===//

  /// Leaves random bits alone of all that draws, and remembers which of them have rows.
  LogicalResult spellOutRandom() {
    DenseSet<int64_t> withRows;
    each_.walk([&](Operation *op) {
      if (op->hasAttr(kPerRowAttr))
        withRows.insert(op->getAttrOfType<IntegerAttr>("id").getInt());
    });
    auto module = each_->getParentOfType<ModuleOp>();
    if (!findCounter(module, "seed") || !findCounter(module, "step"))
      return failure();
    if (failed(decomposeWhere(each_, [](ir::CompositeOpInterface op) {
          return isa<ir::RandomOpInterface>(op.getOperation()) || dropsByCounters(op);
        })))
      return failure();
    each_.walk([&](ir::RandomBitsOp bits) {
      // The draws of one op have ids that differ by multiples of the stride.
      if (withRows.contains(static_cast<int64_t>(bits.getId()) % ir::randomDrawStride))
        bitsWithRows_.insert(bits);
    });
    return success();
  }

  /// The same bits, from where microbatch `number` begins.
  Value cloneBits(OpBuilder &builder, ir::RandomBitsOp bits, Value number, IRMapping &values) {
    int64_t elements = bitsWithRows_.contains(bits) ? typeOf(bits.getResult()).getNumElements() : 0;
    Value size = ir::ConstantOp::create(builder, bits.getLoc(), number.getType(), double(elements));
    Value from = ir::MulOp::create(builder, bits.getLoc(), number.getType(), number, size);
    return ir::RandomBitsOp::create(builder, bits.getLoc(), bits.getType(), values.lookup(bits.getSeed()),
                                    values.lookup(bits.getStep()), bits.getId(), from);
  }

  //===--------------------------------------------------------------------===//
  // Before the loop
  //===--------------------------------------------------------------------===//

  RankedTensorType wholeType(RankedTensorType each) {
    SmallVector<int64_t> shape(each.getShape());
    shape.front() *= microbatches_;
    return each.clone(shape);
  }

  func::FuncOp declareWhole() {
    SmallVector<Type> arguments(each_.getArgumentTypes());
    for (unsigned index = 0; index < arguments.size(); ++index)
      if (each_.getArgAttr(index, kPerRowAttr))
        arguments[index] = wholeType(cast<RankedTensorType>(arguments[index]));
    auto whole = cast<func::FuncOp>(each_->cloneWithoutRegions());
    whole.setFunctionType(builder_.getFunctionType(arguments, each_.getResultTypes()));
    builder_.insert(whole);
    return whole;
  }

  /// Arguments with rows are cut along them; the others are the same for each microbatch. The number of the
  /// microbatch is an input too.
  void cutArguments() {
    for (auto [index, argument] : llvm::enumerate(whole_.getArguments())) {
      BlockArgument inner = body_.getArgument(index);
      if (!whole_.removeArgAttr(index, kPerRowAttr)) {
        captures_.push_back({inner, argument});
        continue;
      }
      SmallVector<int64_t> shape(typeOf(inner).getShape());
      shape.insert(shape.begin(), microbatches_);
      inputs_.push_back({inner, ir::ReshapeOp::create(builder_, argument.getLoc(),
                                                      typeOf(argument).clone(shape), argument)});
    }
    auto numbers = RankedTensorType::get({microbatches_}, builder_.getI64Type());
    numbers_ = ir::IotaOp::create(builder_, location(), numbers, builder_.getI64IntegerAttr(0));
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
      if (!assigns.contains(read.getVariable()))
        captures_.push_back({read.getResult(), value});
    }
    for (auto assign : body_.getOps<ir::AssignOp>()) {
      Value value = readOnce(assign.getLoc(), assign.getVariable(), assign.getValue().getType());
      carried_.push_back({assign, value});
    }
  }

  void startSums() {
    for (Type type : each_.getResultTypes())
      sums_.push_back(ir::ConstantOp::create(builder_, location(), type, 0.0));
  }

  //===--------------------------------------------------------------------===//
  // The loop
  //===--------------------------------------------------------------------===//

  void buildLoop() {
    SmallVector<Value> inputs, inits(sums_), captures;
    for (auto &[inner, outer] : inputs_)
      inputs.push_back(outer);
    inputs.push_back(numbers_);
    for (Carried &carry : carried_)
      inits.push_back(carry.before);
    for (auto &[inner, outer] : captures_)
      captures.push_back(outer);
    auto scan = ir::ScanOp::create(
        builder_, location(), inputs, inits, captures, microbatches_, /*batchFirst=*/false, /*reverse=*/false,
        [&](OpBuilder &builder, Location, ValueRange slices, ValueRange carries, ValueRange captured) {
          return cloneMicrobatch(builder, slices, carries, captured);
        });
    // Products of all microbatches at once would need the memory that cutting saves.
    scan.setChunked(true);
    scan.setParallel(parallel_);
    builder_.setInsertionPointAfter(scan);
    for (auto [carry, value] : llvm::zip_equal(carried_, scan.getFinals().drop_front(sums_.size())))
      ir::AssignOp::create(builder_, carry.assign.getLoc(), carry.assign.getVariableAttr(), value);
    SmallVector<Value> results(scan.getFinals().take_front(sums_.size()));
    for (Value parts : scan.getOutputs())
      results.push_back(ir::SumOp::create(builder_, parts.getLoc(), parts, ArrayRef<int64_t>{0}));
    func::ReturnOp::create(builder_, location(), results);
  }

  /// One microbatch: what it computes, added to the sums, and what it assigns.
  SmallVector<Value> cloneMicrobatch(OpBuilder &builder, ValueRange slices, ValueRange carries,
                                     ValueRange captured) {
    IRMapping values;
    Value number = slices.back();
    for (auto [input, slice] : llvm::zip_equal(inputs_, slices.drop_back()))
      values.map(input.first, slice);
    for (auto [capture, inner] : llvm::zip_equal(captures_, captured))
      values.map(capture.first, inner);
    for (auto [index, argument] : llvm::enumerate(body_.getArguments()))
      if (isRows(each_, index))
        values.map(argument, rowsOf(builder, values.lookup(argument), number));
    ValueRange state = carries.drop_front(sums_.size());
    for (auto [carry, inner] : llvm::zip_equal(carried_, state))
      for (auto read : body_.getOps<ir::ReadOp>())
        if (carry.assign.getVariable() == read.getVariable())
          values.map(read.getResult(), inner);

    for (Operation &op : body_.without_terminator()) {
      if (auto bits = dyn_cast<ir::RandomBitsOp>(op))
        values.map(bits.getResult(), cloneBits(builder, bits, number, values));
      else if (!isa<ir::ReadOp, ir::AssignOp>(op))
        builder.clone(op, values)->walk([](ir::ScanOp inner) { inner.setParallel(false); });
    }
    SmallVector<Value> next;
    for (auto [index, term] : llvm::enumerate(body_.getTerminator()->getOperands())) {
      if (parallel_) {
        next.push_back(values.lookup(term));
        continue;
      }
      Value sum = carries[index];
      Value part = values.lookup(term);
      next.push_back(ir::AddOp::create(builder, part.getLoc(), sum.getType(), sum, part));
    }
    for (Carried &carry : carried_)
      next.push_back(values.lookup(carry.assign.getValue()));
    return next;
  }

  /// How many of the microbatch's rows hold a sample: less than 0 is none, more than there are is all.
  Value rowsOf(OpBuilder &builder, Value rows, Value number) {
    Value index = ir::CastOp::create(builder, location(), rows.getType(), number);
    Value batch = ir::ConstantOp::create(builder, location(), rows.getType(), double(batch_));
    Value before = ir::MulOp::create(builder, location(), rows.getType(), index, batch);
    return ir::SubOp::create(builder, location(), rows.getType(), rows, before);
  }

  func::FuncOp each_, whole_;
  Block &body_;
  int64_t microbatches_, batch_;
  bool parallel_;
  OpBuilder builder_;
  DenseSet<Operation *> bitsWithRows_;
  SmallVector<std::pair<Value, Value>> inputs_, captures_; // of a microbatch, of the batch
  SmallVector<Carried> carried_;
  SmallVector<Value> sums_;
  Value numbers_;
};

class AccumulatePass : public impl::AccumulatePassBase<AccumulatePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(addShards(module)))
      return signalPassFailure();
    for (auto recipe : module.getOps<ir::RecipeOp>()) {
      int64_t microbatches = recipe.getAccumulate().value_or(1);
      if (microbatches == 1)
        continue;
      if (failed(accumulate(module, recipe, microbatches)))
        return signalPassFailure();
    }
  }

  /// The gradients of a shard become those of the batch.
  static LogicalResult addShards(ModuleOp module) {
    auto gradients = module.lookupSymbol<func::FuncOp>("gradients");
    auto shards = gradients ? gradients->getAttrOfType<IntegerAttr>(kShardsAttr) : IntegerAttr();
    auto batch = module->getAttrOfType<IntegerAttr>("gpuc.batch");
    if (!shards || !batch)
      return success();
    gradients->removeAttr(kShardsAttr);
    int64_t count = shards.getInt();
    return Accumulation(gradients, count, batch.getInt() / count, /*parallel=*/true).run();
  }

  static LogicalResult accumulate(ModuleOp module, ir::RecipeOp recipe, int64_t microbatches) {
    auto gradients = module.lookupSymbol<func::FuncOp>("gradients");
    if (!gradients)
      return success(); // nothing is trained
    bool hasRows = llvm::any_of(llvm::seq(gradients.getNumArguments()), [&](unsigned index) {
      return gradients.getArgAttr(index, kPerRowAttr) != nullptr;
    });
    auto batch = module->getAttrOfType<IntegerAttr>("gpuc.batch");
    if (!hasRows || !batch)
      return recipe.emitOpError("accumulates over ")
             << microbatches << " microbatches, but no input of @" << recipe.getLoss()
             << " has rows to cut: give it a leading `?`";
    // The runtime counts rows in i32.
    if (microbatches > INT32_MAX / batch.getInt())
      return recipe.emitOpError("accumulates over ") << microbatches << " microbatches of " << batch.getInt()
                                                     << " rows, which are 2^31 or more: take fewer";
    module->setAttr("gpuc.accumulate", Builder(module).getI64IntegerAttr(microbatches));
    recipe.removeAccumulateAttr();
    if (failed(Accumulation(gradients, microbatches, batch.getInt(), /*parallel=*/false).run()))
      return failure();
    return checkTensorSizes(module);
  }
};

} // namespace
} // namespace gpuc
