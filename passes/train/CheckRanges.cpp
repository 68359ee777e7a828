//===- CheckRanges.cpp - Whether what is indexed is as large as the index ----===//
//
// Contract: changes nothing. An argument's `gpuc.range` says below which number its integers lie. It is an
// error if such an argument, or a tensor of its elements, names classes, rows of a table or places of which
// there are fewer: a label beyond the classes would count nothing and an index beyond the table read zeros,
// without a word. So they would of an argument without a range, which an entry is given: that is a warning.
//
// Ranges flow along moves, into functions and loops and out of them. Behind arithmetic nothing is known: who
// clamps or selects knows what is out of range. A class that `gpuc.ignored` names is to be ignored: a warning
// says where it is not.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/ScanParts.h"
#include "passes/Passes.h"
#include "passes/base/Entries.h"

#include "llvm/ADT/TypeSwitch.h"

namespace gpuc {
#define GEN_PASS_DEF_CHECKRANGESPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

/// An index of `limit` things, which the op calls `role` and `things`.
struct Indexed {
  Value index;
  StringRef role;
  int64_t limit;
  std::string things;
  std::optional<int64_t> ignored = {}; ///< An index that names nothing, and is meant to.
};

int64_t extentOf(Value value, int64_t dim) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  return shape[dim < 0 ? shape.size() + dim : dim];
}

template <typename Op> std::optional<Indexed> labelsOf(Op op, Value logits, int64_t dim) {
  return Indexed{op.getLabels(), "labels", extentOf(logits, dim), "classes", op.getIgnoreIndex()};
}

/// The labels of a comparison with the number of each place along a dimension: a one-hot vector.
std::optional<Indexed> oneHotOf(ir::CompareOp op) {
  if (op.getPredicate() != ir::Comparison::eq)
    return std::nullopt;
  for (auto [places, index] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
    auto repeated = places.getDefiningOp<ir::BroadcastOp>();
    auto iota = (repeated ? repeated.getOperand() : places).getDefiningOp<ir::IotaOp>();
    if (!iota)
      continue;
    int64_t dim = iota.getDim();
    if (repeated)
      dim = repeated.getDims()[dim];
    // Else it asks something of the places themselves.
    auto spread = index.getDefiningOp<ir::BroadcastOp>();
    if (spread && !llvm::is_contained(spread.getDims(), dim))
      return Indexed{index, "an index", extentOf(places, dim), "places"};
  }
  return std::nullopt;
}

std::optional<Indexed> indexedBy(Operation *op) {
  using Found = std::optional<Indexed>;
  return TypeSwitch<Operation *, Found>(op)
      .Case<ir::CrossEntropyOp, ir::AccuracyOp>([](auto op) { return labelsOf(op, op.getLogits(), -1); })
      .Case<ir::NllOp>([](auto op) { return labelsOf(op, op.getLogProbabilities(), -1); })
      .Case<ir::LinearCrossEntropyOp, ir::LinearAccuracyOp>(
          [](auto op) { return labelsOf(op, op.getWeight(), 0); })
      .Case<ir::GatherOp>([](ir::GatherOp op) {
        return Indexed{op.getIndices(), "indices", extentOf(op.getOperand(), op.getDim()), "slices"};
      })
      .Case<ir::ScatterAddOp>([](ir::ScatterAddOp op) {
        return Indexed{op.getIndices(), "indices", extentOf(op.getInit(), op.getDim()), "slices"};
      })
      .Case<ir::CompareOp>([](ir::CompareOp op) { return oneHotOf(op); })
      .Default([](Operation *) { return Found(); });
}

/// The results whose elements are elements of the operand.
void forEachCopy(OpOperand &use, function_ref<void(Value)> visit) {
  Operation *op = use.getOwner();
  const unsigned number = use.getOperandNumber();
  const bool first = number == 0;
  if (isa<ir::ConcatOp>(op) || (isa<ir::DynamicUpdateSliceOp>(op) && number < 2) ||
      (first && isa<ir::ReshapeOp, ir::TransposeOp, ir::BroadcastOp, ir::SliceOp, ir::PadOp, ir::ReverseOp,
                    ir::GatherOp, ir::DynamicSliceOp, ir::SortOp, ir::TopKOp, ir::ReduceMaxOp,
                    ir::ReduceMinOp, ir::StopGradientOp>(op)))
    visit(op->getResult(0));
  // What narrows may wrap.
  auto cast = dyn_cast<ir::CastOp>(op);
  if (cast && getElementTypeOrSelf(cast.getType()).isSignlessInteger() &&
      getElementTypeOrSelf(cast.getType()).getIntOrFloatBitWidth() >= 32)
    visit(cast.getResult());
}

class Ranges {
public:
  explicit Ranges(ModuleOp module) {
    SymbolTableCollection symbols;
    module.walk([&](Operation *op) {
      if (auto call = dyn_cast<func::CallOp>(op))
        connectCall(call, symbols.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr()));
      else if (auto gradient = dyn_cast<ir::GradientOp>(op))
        connectCall(gradient, symbols.lookupNearestSymbolFrom<func::FuncOp>(op, gradient.getCalleeAttr()));
      else if (auto scan = dyn_cast<ir::ScanOp>(op))
        connectScan(scan);
    });
  }

  /// The integers of the argument lie in [0, range), and so do those of all copies.
  void declare(BlockArgument argument, int64_t range) {
    raise(argument, {argument, range}, /*withCopies=*/true);
  }

  /// Nothing is known of the argument's integers, and so of where it is handed on to.
  void declareUnknown(BlockArgument argument) {
    raise(argument, {argument, std::numeric_limits<int64_t>::max()}, /*withCopies=*/false);
  }

  LogicalResult check(Operation *op) const {
    std::optional<Indexed> indexed = indexedBy(op);
    if (!indexed || ShapedType::isDynamic(indexed->limit))
      return success();
    Declared declared = declared_.lookup(indexed->index);
    if (!declared.argument)
      return success();
    auto function = cast<func::FuncOp>(declared.argument.getOwner()->getParentOp());
    std::string name = argumentName(function, declared.argument.getArgNumber());
    warnOfIgnored(op, *indexed, function, declared.argument.getArgNumber());
    if (declared.range <= indexed->limit)
      return success();
    const bool endsIgnored = indexed->ignored == declared.range - 1;
    if (endsIgnored && declared.range == indexed->limit + 1)
      return success();
    if (endsIgnored) { // those between may well not occur
      op->emitWarning() << "takes " << indexed->role << " from '" << name << "' in [0, " << declared.range
                        << ") and ignores " << *indexed->ignored << ", but there are " << indexed->limit
                        << " " << indexed->things << ": those from " << indexed->limit
                        << " on count nothing either; number what is ignored " << indexed->limit;
      return success();
    }
    return op->emitOpError() << "takes " << indexed->role << " from '" << name << "' of @"
                             << function.getName() << ", whose gpuc.range is " << declared.range
                             << ", but there are " << indexed->limit << " " << indexed->things
                             << ": give the argument gpuc.range = " << indexed->limit << ", or make "
                             << declared.range << " " << indexed->things;
  }

  /// What is no class counts nothing anyway; a class that is said to be ignored would be one like any other.
  static void warnOfIgnored(Operation *op, const Indexed &indexed, func::FuncOp function, unsigned argument) {
    auto said = function.getArgAttrOfType<IntegerAttr>(argument, "gpuc.ignored");
    if (indexed.role == "labels" && said && said.getInt() >= 0 && said.getInt() < indexed.limit &&
        indexed.ignored != said.getInt())
      op->emitWarning() << "takes labels from '" << argumentName(function, argument) << "' of @"
                        << function.getName() << ", whose gpuc.ignored is " << said.getInt() << ", one of "
                        << indexed.limit
                        << " classes, and does not ignore it: give the op ignore_index = " << said.getInt()
                        << ", or leave gpuc.ignored out";
  }

  /// Warns of labels, or of rows of a weight, by an argument of which no range is known. Other indices may
  /// well lie out of range.
  void warn(Operation *op) {
    std::optional<Indexed> indexed = indexedBy(op);
    const bool ofWeight = isa<ir::GatherOp>(op) && op->getOperand(0).getDefiningOp<ir::ReadOp>();
    if (!indexed || (indexed->role != "labels" && !ofWeight))
      return;
    BlockArgument argument = declared_.lookup(indexed->index).argument;
    if (!argument || ShapedType::isDynamic(indexed->limit) || !warned_.insert(argument).second)
      return;
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    op->emitWarning() << "takes " << indexed->role << " from '"
                      << argumentName(function, argument.getArgNumber()) << "' of @" << function.getName()
                      << ", which has no gpuc.range: what is none of " << indexed->limit << " "
                      << indexed->things
                      << " would pass unnoticed; give the argument gpuc.range = " << indexed->limit;
  }

private:
  struct Declared {
    BlockArgument argument;
    int64_t range = 0;
  };

  void connect(ValueRange from, ValueRange to) {
    for (auto [source, target] : llvm::zip(from, to))
      edges_[source].push_back(target);
  }

  /// Of a gradient the callee's results come first, as of a call.
  void connectCall(Operation *call, func::FuncOp callee) {
    if (!callee || callee.isExternal())
      return; // an error of its own
    connect(call->getOperands(), callee.getArguments());
    connect(callee.getBody().front().getTerminator()->getOperands(), call->getResults());
  }

  void connectScan(ir::ScanOp scan) {
    ir::ScanParts parts(scan);
    for (const auto &argument : llvm::concat<const ir::ScanParts::Argument>(parts.inputs, parts.captures))
      connect(argument.outer, argument.inner);
    for (const ir::ScanParts::Carry &carry : parts.carries) {
      connect({carry.init, carry.next}, {carry.inner, carry.inner});
      connect(carry.next, carry.result);
    }
    for (const ir::ScanParts::Output &output : parts.outputs)
      connect(output.slice, output.result);
  }

  /// Only the largest range counts, so that each value is visited once for each range that is declared.
  void raise(Value value, Declared declared, bool withCopies) {
    SmallVector<Value> changed{value};
    while (!changed.empty()) {
      Value next = changed.pop_back_val();
      Declared &known = declared_[next];
      if (known.range >= declared.range)
        continue;
      known = declared;
      if (withCopies)
        for (OpOperand &use : next.getUses())
          forEachCopy(use, [&](Value copy) { changed.push_back(copy); });
      auto edges = edges_.find(next);
      if (edges != edges_.end())
        llvm::append_range(changed, edges->second);
    }
  }

  DenseMap<Value, Declared> declared_;
  llvm::SmallDenseSet<Value> warned_;            ///< Of which arguments.
  DenseMap<Value, SmallVector<Value, 1>> edges_; ///< Into and out of functions and loops.
};

class CheckRangesPass : public impl::CheckRangesPassBase<CheckRangesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (isExpanded(module))
      return; // It was checked when its ops were still the model's.
    Ranges ranges(module);
    for (auto function : module.getOps<func::FuncOp>())
      if (failed(declareArguments(function, ranges)))
        return signalPassFailure();
    WalkResult walked = module.walk([&](Operation *op) { return WalkResult(ranges.check(op)); });
    if (walked.wasInterrupted())
      return signalPassFailure();
    Ranges unknown(module);
    for (func::FuncOp entry : entriesOf(module))
      declareUnknown(entry, unknown);
    module.walk([&](Operation *op) { unknown.warn(op); });
  }

  /// The functions whose arguments are data.
  static llvm::SetVector<func::FuncOp> entriesOf(ModuleOp module) {
    llvm::SetVector<func::FuncOp> entries;
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(kEntryAttr) || function.getName() == "predict")
        entries.insert(function);
    for (auto recipe : module.getOps<ir::RecipeOp>())
      for (FlatSymbolRefAttr symbol : {recipe.getLossAttr(), recipe.getAccuracyAttr()})
        if (auto function = symbol ? module.lookupSymbol<func::FuncOp>(symbol.getAttr()) : func::FuncOp())
          entries.insert(function);
    return entries;
  }

  static void declareUnknown(func::FuncOp entry, Ranges &ranges) {
    for (BlockArgument argument : entry.isExternal() ? ArrayRef<BlockArgument>() : entry.getArguments())
      if (isa<IntegerType>(getElementTypeOrSelf(argument.getType())) &&
          !entry.getArgAttr(argument.getArgNumber(), "gpuc.range"))
        ranges.declareUnknown(argument);
  }

  static LogicalResult declareArguments(func::FuncOp function, Ranges &ranges) {
    for (unsigned index = 0; index < function.getNumArguments(); ++index) {
      Attribute given = function.getArgAttr(index, "gpuc.range");
      if (!given)
        continue;
      auto range = dyn_cast<IntegerAttr>(given);
      Type type = function.getArgumentTypes()[index];
      if (!range || range.getInt() < 1 || !isa<IntegerType>(getElementTypeOrSelf(type)))
        return function.emitOpError()
               << "gives '" << argumentName(function, index) << "', a " << type << ", gpuc.range = " << given
               << ": it is the number, at least 1, below which integers lie";
      if (!function.isExternal())
        ranges.declare(function.getArgument(index), range.getInt());
    }
    return success();
  }
};

} // namespace
} // namespace gpuc
