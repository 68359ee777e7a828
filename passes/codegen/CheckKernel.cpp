//===- CheckKernel.cpp - What may become one kernel -------------------------===//

#include "passes/codegen/Codegen.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/codegen/Kernel.h"
#include "passes/codegen/Pointwise.h"
#include "passes/codegen/Segments.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc {

bool isInlinable(Operation *op) {
  return codegen::isPointwise(op) || codegen::isMovement(op) || isa<ConstantOp, IotaOp, RandomBitsOp>(op);
}

bool isRoot(Operation *op) {
  return isa<SumOp, ProdOp, ReduceMaxOp, ReduceMinOp, ArgmaxOp, CumsumOp, SortOp, TopKOp, GatherOp,
             ScatterAddOp, ConcatOp, PadOp, DynamicSliceOp, DynamicUpdateSliceOp>(op) ||
         codegen::isPooling(op);
}

bool isReduction(Operation *op) { return isa<SumOp, ProdOp, ReduceMaxOp, ReduceMinOp, ArgmaxOp>(op); }

SmallVector<int64_t> foldedDims(Operation *reduction) {
  if (auto argmax = dyn_cast<ArgmaxOp>(reduction))
    return {static_cast<int64_t>(argmax.getDim())};
  return llvm::to_vector(reduction->getAttrOfType<DenseI64ArrayAttr>("dims").asArrayRef());
}

bool yieldsAllResults(Operation *op) { return isa<SortOp, TopKOp>(op); }

/// scatter_add, sort and top_k read what they have written: their results are final at the kernel's end only.
static bool takesNothingAfter(Operation *root) { return isa<ScatterAddOp>(root) || yieldsAllResults(root); }

/// What decides in how many lanes a reduction folds, and so in which order.
static int64_t laneBytes(Operation *reduction) {
  return std::max<int64_t>(4, elementBytes(getElementTypeOrSelf(reduction->getOperand(0))));
}

namespace {
/// Of a kernel of inlinable ops and reductions, the positions at which values are wanted: found from results
/// and what is folded down, along what leads to these values alone.
class Wanted {
public:
  using Visit = llvm::function_ref<bool(const codegen::Index &)>;

  explicit Wanted(const KernelOps &kernel) : kernel_(kernel) {
    auto reduction = llvm::find_if(kernel.ops, isReduction);
    const bool folds = reduction != kernel.ops.end();
    ArrayRef<int64_t> shape = codegen::shapeOf(folds ? (*reduction)->getOperand(0) : kernel.results.front());
    const SmallVector<int64_t> folded = folds ? foldedDims(*reduction) : SmallVector<int64_t>();
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      everywhere_.push_back(codegen::coordinate(dim, shape.size()));
      if (!llvm::is_contained(folded, static_cast<int64_t>(dim)))
        row_.push_back(everywhere_.back());
    }
  }

  size_t space() const { return everywhere_.size(); }
  /// Where a row is in the kernel's loops.
  const codegen::Index &row() const { return row_; }
  /// Where the result is written.
  const codegen::Index &indexOf(Value result) const {
    return codegen::shapeOf(result).size() == space() ? everywhere_ : row_;
  }

  /// Whether `holds` is true of each position at which one of `values` is wanted.
  bool areAll(ValueRange values, Visit holds) {
    ends_.insert_range(values);
    leading_ = ends_;
    for (Operation *op : kernel_.ops)
      if (!isReduction(op) &&
          llvm::any_of(op->getOperands(), [&](Value operand) { return leading_.contains(operand); }))
        leading_.insert_range(op->getResults());
    return llvm::all_of(kernel_.ops,
                        [&](Operation *op) {
                          return !isReduction(op) || follow(op->getOperand(0), everywhere_, holds);
                        }) &&
           llvm::all_of(kernel_.results,
                        [&](Value result) { return follow(result, indexOf(result), holds); });
  }

private:
  bool follow(Value value, const codegen::Index &index, Visit holds) {
    if (!leading_.contains(value))
      return true;
    if (ends_.contains(value))
      return holds(index);
    SmallVector<codegen::Index, 0> &seen = seen_[value];
    if (llvm::is_contained(seen, index))
      return true;
    seen.push_back(index);
    Operation *op = value.getDefiningOp();
    if (codegen::isMovement(op))
      return follow(op->getOperand(0), codegen::movedIndex(op, index), holds);
    const codegen::Index from = isa<RandomBitsOp>(op) ? codegen::Index() : index;
    return llvm::all_of(op->getOperands(), [&](Value operand) { return follow(operand, from, holds); });
  }

  const KernelOps &kernel_;
  codegen::Index everywhere_, row_;
  llvm::SmallDenseSet<Value, 16> ends_, leading_; ///< The values, and what leads to them.
  llvm::DenseMap<Value, SmallVector<codegen::Index, 0>> seen_;
};
} // namespace

/// Whether a reduction's value is only ever wanted for the row that the loops are in.
static bool stayInTheirRow(const KernelOps &kernel, ArrayRef<Operation *> reductions) {
  Wanted wanted(kernel);
  const SmallVector<Value> results =
      llvm::map_to_vector(reductions, [](Operation *op) -> Value { return op->getResult(0); });
  return wanted.areAll(results, [&](const codegen::Index &index) { return index == wanted.row(); });
}

/// Reductions fold the same dimensions of one shape, and nothing reads one of another row's; results have
/// that shape or one element a row.
static LogicalResult checkRows(const KernelOps &kernel, ArrayRef<Operation *> reductions) {
  Operation *first = reductions.front();
  for (Operation *op : kernel.ops)
    if (!isReduction(op) && !isInlinable(op))
      return failure();
  if (reductions.size() > kMostReductions)
    return failure();
  for (Operation *reduction : reductions)
    if (codegen::shapeOf(reduction->getOperand(0)) != codegen::shapeOf(first->getOperand(0)) ||
        foldedDims(reduction) != foldedDims(first) || laneBytes(reduction) != laneBytes(first))
      return failure();
  for (Value result : kernel.results)
    if (codegen::shapeOf(result) != codegen::shapeOf(first->getResult(0)) &&
        codegen::shapeOf(result) != codegen::shapeOf(first->getOperand(0)))
      return failure();
  return success(stayInTheirRow(kernel, reductions));
}

KernelOps KernelOps::of(Block &body) {
  KernelOps kernel;
  for (Operation &op : body.without_terminator())
    kernel.ops.push_back(&op);
  llvm::append_range(kernel.results, body.getTerminator()->getOperands());
  return kernel;
}

LogicalResult checkKernel(Block &body) {
  if (body.empty() || !isa<YieldOp>(body.back()) || body.back().getNumOperands() == 0)
    return failure();
  if (codegen::isSegmented(body)) {
    auto isKernel = [](const codegen::Segment &segment) { return succeeded(checkKernel(*segment.body)); };
    return success(succeeded(codegen::checkSegments(body)) &&
                   llvm::all_of(codegen::segmentsOf(body), isKernel));
  }
  return checkKernel(KernelOps::of(body));
}

LogicalResult checkKernel(const KernelOps &kernel) {
  if (kernel.results.empty())
    return failure();
  SmallVector<Operation *> reductions;
  llvm::copy_if(kernel.ops, std::back_inserter(reductions), isReduction);
  if (!reductions.empty())
    return checkRows(kernel, reductions);
  Operation *root = nullptr;
  llvm::DenseSet<Value> afterRoot;
  for (Operation *op : kernel.ops) {
    bool meetsRoot =
        root && llvm::any_of(op->getOperands(), [&](Value operand) { return afterRoot.contains(operand); });
    if (isRoot(op)) {
      if (root)
        return failure();
      root = op;
      afterRoot.insert_range(op->getResults());
    } else if (!isInlinable(op) || (meetsRoot && (!codegen::isPointwise(op) || takesNothingAfter(root)))) {
      return failure();
    } else if (meetsRoot) {
      afterRoot.insert(op->getResult(0));
    }
  }
  if (root && yieldsAllResults(root))
    return success(llvm::equal(kernel.results, root->getResults()));
  ArrayRef<int64_t> shape = codegen::shapeOf(root ? root->getResult(0) : kernel.results.front());
  for (Value result : kernel.results)
    if (codegen::shapeOf(result) != shape || (root && !afterRoot.contains(result)))
      return failure();
  return success();
}

/// Of other roots, too, an element is computed wherever it is wanted.
static bool isBoundByLoops(Operation *op) {
  return isReduction(op) || isa<CumsumOp, SortOp, TopKOp, ScatterAddOp>(op);
}

namespace {
/// At how many places each value of a kernel is wanted, if no two access paths lead to one place.
class Places {
public:
  explicit Places(size_t most) : left_(most) {}

  /// Adds the place `at` of `value`; false if there are too many.
  bool add(Value value, unsigned at) {
    if (places_[value].insert(at))
      return left_-- > 0;
    return true;
  }

  /// The same for what `op` reads; ops come in the order from the last to the first.
  bool addOperands(Operation &op) {
    if (isBoundByLoops(&op))
      return llvm::all_of(op.getOperands(), [&](Value operand) { return add(operand, 0); });
    for (Value result : op.getResults())
      for (unsigned at : places_.lookup(result))
        for (auto [number, operand] : llvm::enumerate(op.getOperands()))
          if (!add(operand, codegen::isPointwise(&op) ? at : placeThrough(op, number, at)))
            return false;
    return true;
  }

private:
  /// Where an op that moves elements reads its operand for what is wanted `at`.
  unsigned placeThrough(Operation &op, size_t operand, unsigned at) {
    return through_.try_emplace({&op, {operand, at}}, through_.size() + 1).first->second;
  }

  size_t left_;
  llvm::DenseMap<Value, llvm::SetVector<unsigned>> places_;
  llvm::DenseMap<std::pair<Operation *, std::pair<size_t, unsigned>>, unsigned> through_;
};
} // namespace

/// Whether whatever reads something is wanted at one place: then there are no more places than reads.
static bool readsInPlace(const KernelOps &kernel) {
  llvm::SmallPtrSet<Operation *, 32> readers;
  for (Operation *op : kernel.ops) {
    auto reads = [&](Value operand) { return readers.contains(operand.getDefiningOp()); };
    if (!codegen::isPointwise(op) && !isBoundByLoops(op) && llvm::any_of(op->getOperands(), reads))
      return false;
    if (op->getNumOperands() > 0)
      readers.insert(op);
  }
  return true;
}

bool repeatsElements(const KernelOps &kernel) {
  const size_t most = 4 * (kernel.ops.size() + 1) + 128;
  size_t reads = kernel.results.size();
  for (Operation *op : kernel.ops)
    reads += op->getNumOperands();
  if (reads <= most && readsInPlace(kernel))
    return false;
  Places places(most);
  for (Value result : kernel.results)
    places.add(result, 0);
  return !llvm::all_of(llvm::reverse(kernel.ops), [&](Operation *op) { return places.addOperands(*op); });
}

/// Both positions are the same at every coordinate.
static bool sameAddress(const codegen::Affine &a, const codegen::Affine &b) {
  return !a.isDynamic && a.constant == b.constant && a.coefficients == b.coefficients;
}

/// The segment that has the result must allow it, and no other may read the argument.
static bool canSegmentUpdateInPlace(Block &body, unsigned argument, unsigned result) {
  auto written = cast<OpResult>(body.getTerminator()->getOperand(result));
  return llvm::all_of(body.getArgument(argument).getUses(), [&](OpOperand &read) {
    return read.getOwner() == written.getOwner() &&
           canUpdateInPlace(cast<FusedOp>(read.getOwner()).getBody().front(), read.getOperandNumber(),
                            written.getResultNumber());
  });
}

bool canUpdateInPlace(Block &body, unsigned argument, unsigned result) {
  if (codegen::isSegmented(body))
    return canSegmentUpdateInPlace(body, argument, result);
  Value operand = body.getArgument(argument), written = body.getTerminator()->getOperand(result);
  if (codegen::shapeOf(operand) != codegen::shapeOf(written) ||
      elementBytes(getElementTypeOrSelf(operand)) != elementBytes(getElementTypeOrSelf(written)))
    return false;
  if (llvm::any_of(body, [](Operation &op) { return isa<AttentionOp, AttentionGradientOp>(op); }))
    return false; // a block of queries is written while others read
  const KernelOps ops = KernelOps::of(body);
  if (llvm::all_of(ops.ops, [](Operation *op) { return isInlinable(op) || isReduction(op); })) {
    Wanted wanted(ops);
    auto addressAt = [&](const codegen::Index &index) {
      return codegen::linearAddress(index, codegen::shapeOf(operand), wanted.space());
    };
    const codegen::Affine target = addressAt(wanted.indexOf(written));
    return wanted.areAll(operand,
                         [&](const codegen::Index &index) { return sameAddress(addressAt(index), target); });
  }
  codegen::Kernel kernel(body);
  codegen::Affine target =
      codegen::linearAddress(kernel.indexOf(written), codegen::shapeOf(written), kernel.space());
  return llvm::all_of(codegen::allAccesses(kernel), [&](const codegen::Access &access) {
    return access.leaf != operand || sameAddress(access.address, target);
  });
}

} // namespace gpuc
