//===- CheckNumerics.cpp - Which op made NaN or infinities ------------------===//
//
// Contract: beside @train_step there is a copy of it, @train_step_checks, with `nonfinite` as its only
// result, whose element i counts what op i made that is NaN or infinite while its operands were finite
// everywhere; the result's attribute `gpuc.checks` names the ops. gpuc-join-checks puts the copy into the
// step.
//
// @train_step itself is left alone. What counts a value is one more reader of it, and who reads a value
// decides what it is computed with, in one kernel or two, and so how a sum is cut up: with readers in the
// step other bits would be trained. No pass looks from one function into another.
//
// Each value that matters is counted once, a scalar. What does not make such values (a reshape, a relu) is as
// finite as what it came of, and is traced back to that: its sources. At the end of a block the counts are
// put in one list, and for all ops at once:
//
//   made = sources' counts = 0 ? own counts : 0
//
// The region of a scan is a block of its own, whose list is added up over the iterations. A sum that it
// carries only to add to it is judged behind the loop, where it is done: in the loop a matmul may add to it
// in place.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/Expr.h"
#include "dialects/gpuc/ScanParts.h"
#include "passes/Passes.h"
#include "passes/base/Entries.h"
#include "passes/train/CheckSites.h"

#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SetVector.h"

namespace gpuc {
#define GEN_PASS_DEF_CHECKNUMERICSPASS
#include "passes/Passes.h.inc"

using namespace mlir;
using ir::Expr;

namespace {

/// More sources than this are one, the largest of their counts: so much is read for each op.
constexpr size_t kMostSources = 8;

/// A CUDA kernel of sm_90 takes 544 pointers.
constexpr size_t kMostCounts = 256;

/// Positions in a block's list of counts.
using Sources = llvm::SmallSetVector<unsigned, 8>;

/// A value that is only carried to be added to: the op that makes what is added, if that is a product, and
/// what stands between it and the yield.
struct CarriedSum {
  Operation *maker;
  SmallVector<Operation *> ops;
};

/// What a block counts: a list of i32, and who each element is of.
struct Counted {
  Value list; // null if there is nothing
  SmallVector<Attribute> checks;
};

//===----------------------------------------------------------------------===//
// Sums that loops carry
//===----------------------------------------------------------------------===//

std::optional<CarriedSum> carriedSum(Value carry, Value next) {
  auto add = next.getDefiningOp<ir::AddOp>();
  if (!isFloat(carry) || !add || !carry.hasOneUse() || !next.hasOneUse() || *carry.getUsers().begin() != add)
    return std::nullopt;
  CarriedSum sum{add, {add}};
  Value term = add.getLhs() == carry ? add.getRhs() : add.getLhs();
  SmallVector<Operation *> reshapes;
  for (; term.hasOneUse() && term.getDefiningOp<ir::ReshapeOp>(); term = term.getDefiningOp()->getOperand(0))
    reshapes.push_back(term.getDefiningOp());
  auto product = term.getDefiningOp<ir::MatmulOp>();
  if (!product || !term.hasOneUse())
    return sum;
  sum.maker = product;
  sum.ops.push_back(product);
  sum.ops.append(reshapes);
  return sum;
}

//===----------------------------------------------------------------------===//
// A block
//===----------------------------------------------------------------------===//

class BlockCounter {
  /// An op that may have made what its results hold.
  struct Check {
    ir::CheckAttr check;
    Sources own, before;
  };

public:
  BlockCounter(Block &block, Masked &masked, IRRewriter &rewriter)
      : block_(block), masked_(masked), guarded_(block), rewriter_(rewriter) {}

  /// The argument is as finite as what these counts, scalars of this block, are of.
  void setSources(Value argument, ValueRange counts) {
    Sources &sources = sources_[argument];
    for (Value count : counts)
      sources.insert(addCount(count));
  }

  /// What comes into the program with the argument: NaN there is somebody's mistake.
  void checkArgument(BlockArgument argument, ir::CheckAttr check) {
    if (isFloat(argument) && !argument.use_empty())
      checkSource(argument, check);
  }

  /// What is judged elsewhere.
  void leaveOut(ArrayRef<Operation *> ops) { leftOut_.insert(ops.begin(), ops.end()); }

  Counted run() {
    for (Operation &op : llvm::make_early_inc_range(llvm::make_range(block_.begin(), block_.end()))) {
      if (auto scan = dyn_cast<ir::ScanOp>(op))
        countScan(scan);
      else if (auto read = dyn_cast<ir::ReadOp>(op))
        countRead(read);
      else if (!leftOut_.contains(&op))
        visit(&op);
    }
    rewriter_.setInsertionPoint(block_.getTerminator());
    return finish();
  }

  /// The counts behind a value, scalars.
  SmallVector<Value> countsOf(Value value) {
    return llvm::map_to_vector(sourcesOf(value), [&](unsigned source) { return counts_[source]; });
  }

private:
  Location location() { return block_.getParentOp()->getLoc(); }

  //===--------------------------------------------------------------------===//
  // Counts
  //===--------------------------------------------------------------------===//

  unsigned addCount(Value scalar) {
    counts_.push_back(scalar);
    return counts_.size() - 1;
  }

  /// How many elements are NaN or, unless they may be, infinite: tensor<i32>.
  Value buildCount(Value value) {
    OpBuilder::InsertionGuard guard(rewriter_);
    rewriter_.setInsertionPointAfterValue(value);
    Expr number(rewriter_, value.getLoc(), value);
    Expr wrong = masked_.contains(value) ? number != number : !isFinite(number);
    return sumAll(cast(wrong, rewriter_.getI32Type()));
  }

  /// By which counts the value is known to be finite.
  const Sources &sourcesOf(Value value) {
    auto known = sources_.find(value);
    if (known != sources_.end())
      return known->second;
    Sources own;
    if (isFloat(value))
      own.insert(addCount(buildCount(value)));
    return sources_[value] = own;
  }

  /// Those of all operands.
  Sources sourcesBefore(Operation *op) {
    Sources all;
    for (Value value : op->getOperands()) {
      const Sources &some = sourcesOf(value);
      all.insert(some.begin(), some.end());
    }
    return all.size() > kMostSources ? unite(all, op) : all;
  }

  /// One count instead of many, for `op`: the largest.
  Sources unite(const Sources &sources, Operation *op) {
    OpBuilder::InsertionGuard guard(rewriter_);
    rewriter_.setInsertionPoint(op);
    Value largest = counts_[sources.front()];
    for (unsigned source : llvm::drop_begin(sources))
      largest = ir::MaxOp::create(rewriter_, location(), largest.getType(), largest, counts_[source]);
    Sources one;
    one.insert(addCount(largest));
    return one;
  }

  //===--------------------------------------------------------------------===//
  // Ops
  //===--------------------------------------------------------------------===//

  void checkSource(Value value, ir::CheckAttr check) {
    Sources own = sourcesOf(value);
    checks_.push_back({check, own, {}});
  }

  void countRead(ir::ReadOp read) {
    if (isFloat(read) && !read->use_empty())
      checkSource(read, checkOfSource(read.getContext(), "variable", read.getVariable()));
  }

  void visit(Operation *op) {
    if (llvm::none_of(op->getResults(), isFloat))
      return;
    Sources before = sourcesBefore(op);
    Operation *maker = makerBefore(op);
    if (!maker && canMakeNonfinite(op))
      maker = op;
    Check check{ir::CheckAttr(), {}, before};
    for (Value result : op->getResults()) {
      if (!maker || guarded_.contains(result) || !isFloat(result)) {
        sources_[result] = before;
        if (maker && guarded_.contains(result))
          makers_[result] = maker;
        continue;
      }
      const Sources &own = sourcesOf(result);
      check.own.insert(own.begin(), own.end());
    }
    if (check.own.empty())
      return;
    check.check = checkOf(maker);
    checks_.push_back(check);
  }

  /// The first of the ops that made what this one takes and that are not judged themselves.
  Operation *makerBefore(Operation *op) {
    Operation *first = nullptr;
    for (Value operand : op->getOperands())
      if (Operation *maker = makers_.lookup(operand))
        if (!first || maker->isBeforeInBlock(first))
          first = maker;
    return first;
  }

  //===--------------------------------------------------------------------===//
  // Loops
  //===--------------------------------------------------------------------===//

  void countScan(ir::ScanOp scan) {
    Sources before = sourcesBefore(scan);
    ir::ScanParts parts(scan);
    BlockCounter inner(scan.getBlock(), masked_, rewriter_);
    SmallVector<std::pair<size_t, ir::CheckAttr>> sums;
    for (auto [index, carry] : llvm::enumerate(parts.carries))
      if (std::optional<CarriedSum> sum = carriedSum(carry.inner, carry.next)) {
        sums.push_back({index, checkOf(sum->maker)});
        inner.leaveOut(sum->ops);
      }
    for (ir::ScanParts::Argument &capture : llvm::to_vector(parts.captures))
      if (isFloat(capture.inner))
        inner.setSources(capture.inner, llvm::map_to_vector(countsOf(capture.outer), [&](Value count) {
                           return parts.addCapture(count);
                         }));

    Counted counted = inner.run();
    parts.readYield(); // loops in the region have been rebuilt
    if (counted.list && scan.getParallel())
      parts.addOutput(counted.list);
    else if (counted.list)
      addUp(parts, counted);
    scan = rebuild(parts);
    if (counted.list)
      before.insert(addList(listOf(scan), counted));
    for (auto [index, check] : sums)
      if (!scan.getFinals()[index].use_empty())
        checks_.push_back({check, sourcesOf(scan.getFinals()[index]), before});
  }

  /// The sum of the lists of all iterations: what the loop carries last, or, where it carries nothing, puts
  /// out last.
  Value listOf(ir::ScanOp scan) {
    if (!scan.getParallel())
      return scan.getFinals().back();
    rewriter_.setInsertionPointAfter(scan);
    return ir::SumOp::create(rewriter_, scan.getLoc(), scan.getOutputs().back(), ArrayRef<int64_t>{0});
  }

  /// Carries the sum of the lists of all iterations.
  void addUp(ir::ScanParts &parts, const Counted &counted) {
    rewriter_.setInsertionPoint(parts.scan);
    Value zeros = ir::ConstantOp::create(rewriter_, parts.scan.getLoc(), counted.list.getType(), 0.0);
    Value sum = parts.addCarry(zeros);
    rewriter_.setInsertionPoint(parts.block().getTerminator());
    parts.carries.back().next =
        ir::AddOp::create(rewriter_, parts.scan.getLoc(), sum.getType(), sum, counted.list);
  }

  ir::ScanOp rebuild(ir::ScanParts &parts) {
    ir::ScanOp scan = parts.scan;
    size_t finals = scan.getFinals().size();
    SmallVector<unsigned> masked;
    for (OpResult result : scan->getResults())
      if (masked_.contains(result))
        masked.push_back(result.getResultNumber());
    scan = parts.rebuild(rewriter_);
    size_t added = scan.getFinals().size() - finals;
    for (unsigned number : masked)
      masked_.add(scan->getResult(number < finals ? number : number + added));
    return scan;
  }

  /// A loop's list, after what was checked so far. Returns the position of its sum among the counts.
  unsigned addList(Value list, const Counted &counted) {
    lists_.push_back({checks_.size(), {list, counted.checks}});
    rewriter_.setInsertionPointAfterValue(list);
    return addCount(sumAll(Expr(rewriter_, list.getLoc(), list)));
  }

  //===--------------------------------------------------------------------===//
  // All ops of the block at once
  //===--------------------------------------------------------------------===//

  Value concat(ArrayRef<Value> lists) {
    return lists.size() == 1 ? lists[0]
                             : ir::ConcatOp::create(rewriter_, location(), lists, /*dim=*/0).getResult();
  }

  /// The counts, in lists of which one kernel can put each together.
  SmallVector<Value> listCounts() {
    auto one = RankedTensorType::get({1}, rewriter_.getI32Type());
    auto scalars = llvm::map_to_vector(counts_, [&](Value count) -> Value {
      return ir::ReshapeOp::create(rewriter_, location(), one, count);
    });
    SmallVector<Value> lists;
    for (ArrayRef<Value> rest = scalars; !rest.empty();
         rest = rest.drop_front(std::min(rest.size(), kMostCounts)))
      lists.push_back(concat(rest.take_front(kMostCounts)));
    return lists;
  }

  /// For each check the sum of its sources' counts.
  Value sumsOf(ArrayRef<Value> lists, Sources Check::*sources) {
    size_t width = 1;
    for (const Check &check : checks_)
      width = std::max(width, (check.*sources).size());
    Value sum;
    for (auto [number, list] : llvm::enumerate(lists)) {
      Value part = sumsIn(list, number * kMostCounts, sources, width);
      sum = sum ? ir::AddOp::create(rewriter_, location(), part.getType(), sum, part) : part;
    }
    return sum;
  }

  /// The part of these sums that is in a list, whose first count is number `first`.
  Value sumsIn(Value list, size_t first, Sources Check::*sources, size_t width) {
    SmallVector<int64_t> table(checks_.size() * width, -1); // (checks, width): gather gives 0 for -1
    for (auto [row, check] : llvm::enumerate(checks_))
      for (auto [column, source] : llvm::enumerate(check.*sources))
        if (source >= first && source < first + kMostCounts)
          table[row * width + column] = source - first;
    auto type = RankedTensorType::get({static_cast<int64_t>(checks_.size()), static_cast<int64_t>(width)},
                                      rewriter_.getI64Type());
    Value indices = ir::ConstantOp::create(rewriter_, location(), type,
                                           DenseElementsAttr::get(type, ArrayRef<int64_t>(table)));
    Value gathered = ir::GatherOp::create(rewriter_, location(), list, indices, /*dim=*/0);
    return ir::SumOp::create(rewriter_, location(), gathered, ArrayRef<int64_t>{1});
  }

  /// What each op has made: tensor<checks x i32>.
  Value buildMade() {
    SmallVector<Value> lists = listCounts();
    Expr made(rewriter_, location(), sumsOf(lists, &Check::own));
    Expr dirt = made.at(sumsOf(lists, &Check::before)), none = made.constant(0);
    return select(dirt == none, made, none);
  }

  /// Checks and the lists of loops, in the order of the program.
  Counted finish() {
    Counted counted;
    Value made = checks_.empty() ? Value() : buildMade();
    SmallVector<Value> pieces;
    size_t done = 0;
    auto takeUntil = [&](size_t end) {
      if (end == done)
        return;
      bool all = done == 0 && end == checks_.size();
      pieces.push_back(all ? made : cut(made, done, end));
      for (; done < end; ++done)
        counted.checks.push_back(checks_[done].check);
    };
    for (auto &[place, list] : lists_) {
      takeUntil(place);
      pieces.push_back(list.list);
      llvm::append_range(counted.checks, list.checks);
    }
    takeUntil(checks_.size());
    if (!pieces.empty())
      counted.list = concat(pieces);
    return counted;
  }

  Value cut(Value list, int64_t begin, int64_t end) {
    auto type = RankedTensorType::get({end - begin}, rewriter_.getI32Type());
    auto numbers = [&](int64_t number) { return rewriter_.getDenseI64ArrayAttr({number}); };
    return ir::SliceOp::create(rewriter_, location(), type, list, numbers(begin), numbers(end), numbers(1));
  }

  Block &block_;
  Masked &masked_;
  Guarded guarded_;
  IRRewriter &rewriter_;
  SmallVector<Value> counts_;
  DenseMap<Value, Sources> sources_;
  DenseMap<Value, Operation *> makers_; // of guarded values
  DenseSet<Operation *> leftOut_;
  SmallVector<Check> checks_;
  SmallVector<std::pair<size_t, Counted>> lists_; // of loops, each behind so many checks
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

class CheckNumericsPass : public impl::CheckNumericsPassBase<CheckNumericsPass> {
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>("train_step");
    if (!step || step.isExternal())
      return; // nothing is trained
    func::FuncOp checks = copyOf(step);
    Masked masked(checks);
    IRRewriter rewriter(&getContext());
    BlockCounter counter(checks.getBody().front(), masked, rewriter);
    for (BlockArgument argument : checks.getArguments()) {
      auto name = checks.getArgAttrOfType<StringAttr>(argument.getArgNumber(), kNameAttr);
      counter.checkArgument(argument, checkOfSource(&getContext(), "input", name ? name.getValue() : ""));
    }
    Counted counted = counter.run();
    if (counted.list)
      returnOnly(checks, counted);
    else
      checks.erase();
  }

  func::FuncOp copyOf(func::FuncOp step) {
    func::FuncOp copy = step.clone();
    copy.setName((step.getName() + "_checks").str());
    copy.setPrivate();
    copy->setAttr(kChecksOfAttr, FlatSymbolRefAttr::get(step.getNameAttr()));
    SymbolTable(getOperation()).insert(copy, std::next(Block::iterator(step)));
    return copy;
  }

  /// What the step gives and assigns was needed to tell who reads what; from here on the counts are all.
  static void returnOnly(func::FuncOp checks, const Counted &counted) {
    for (auto assign : llvm::make_early_inc_range(checks.getOps<ir::AssignOp>()))
      assign.erase();
    Builder builder(checks.getContext());
    checks.getBody().front().getTerminator()->setOperands(counted.list);
    checks.setType(builder.getFunctionType(checks.getArgumentTypes(), counted.list.getType()));
    checks.setResAttrsAttr(builder.getArrayAttr(
        builder.getDictionaryAttr({builder.getNamedAttr("gpuc.checks", builder.getArrayAttr(counted.checks)),
                                   builder.getNamedAttr(kNameAttr, builder.getStringAttr("nonfinite"))})));
  }
};

} // namespace
} // namespace gpuc
