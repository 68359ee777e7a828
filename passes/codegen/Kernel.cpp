//===- Kernel.cpp - What a kernel's loops look like -------------------------===//

#include "passes/codegen/Kernel.h"

#include "dialects/gpuc/Windows.h"
#include "passes/codegen/Codegen.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {

//===----------------------------------------------------------------------===//
// The iteration space
//===----------------------------------------------------------------------===//

static Form formOf(Operation *op) {
  if (isReduction(op))
    return Form::Reduction;
  if (isa<CumsumOp>(op))
    return Form::Cumsum;
  if (isa<SortOp>(op))
    return Form::Sort;
  if (isa<TopKOp>(op))
    return Form::TopK;
  return isa<ScatterAddOp>(op) ? Form::ScatterAdd : Form::Elementwise;
}

/// The space of a reduction is its operand's; what is kept, in order, is the result's position.
static void reduceOver(Kernel &kernel, Value operand, ArrayRef<int64_t> dims) {
  kernel.extents.assign(shapeOf(operand).begin(), shapeOf(operand).end());
  kernel.roles.assign(kernel.space(), Role::Parallel);
  for (int64_t dim : dims)
    kernel.roles[dim] = Role::Ordered;
  for (size_t dim = 0; dim < kernel.space(); ++dim)
    if (kernel.roles[dim] == Role::Parallel)
      kernel.resultIndex.push_back(coordinate(dim, kernel.space()));
}

/// The space of a scatter is (outer…, slot, indices…, inner…): the result's, with the indices' after the
/// slot.
static void scatterOver(Kernel &kernel, ScatterAddOp scatter) {
  ArrayRef<int64_t> result = shapeOf(scatter.getResult()), indices = shapeOf(scatter.getIndices());
  size_t dim = scatter.getDim();
  kernel.extents.assign(result.begin(), result.end());
  kernel.extents.insert(kernel.extents.begin() + dim + 1, indices.begin(), indices.end());
  kernel.roles.assign(kernel.space(), Role::Parallel);
  kernel.roles[dim] = Role::Slot;
  std::fill_n(kernel.roles.begin() + dim + 1, indices.size(), Role::Ordered);
  for (size_t i = 0; i < kernel.space(); ++i)
    if (kernel.roles[i] != Role::Ordered)
      kernel.resultIndex.push_back(coordinate(i, kernel.space()));
}

/// One position for each element; `ordered`, if it is a dimension, is visited as the root says.
static void iterateOver(Kernel &kernel, ArrayRef<int64_t> shape, int64_t ordered = -1) {
  kernel.extents.assign(shape.begin(), shape.end());
  kernel.roles.assign(kernel.space(), Role::Parallel);
  for (size_t dim = 0; dim < kernel.space(); ++dim)
    kernel.resultIndex.push_back(coordinate(dim, kernel.space()));
  if (ordered >= 0)
    kernel.roles[ordered] = Role::Ordered;
}

/// A reduction's sweep is the first in which all that it reads is known.
static void orderSweeps(Kernel &kernel) {
  llvm::DenseMap<Value, size_t> knownFrom; // in which sweep
  for (Operation &op : kernel.body->without_terminator()) {
    size_t sweep = 0;
    for (Value operand : op.getOperands())
      sweep = std::max(sweep, knownFrom.lookup(operand));
    if (isReduction(&op)) {
      kernel.sweeps.resize(std::max(kernel.sweeps.size(), sweep + 1));
      kernel.sweeps[sweep++].push_back(&op);
    }
    for (Value result : op.getResults())
      knownFrom[result] = sweep;
  }
  auto isKnown = [&](unsigned number) {
    return knownFrom.lookup(kernel.yields()[number]) < kernel.sweeps.size();
  };
  SmallVector<unsigned> rows = kernel.resultNumbers(/*wholeRows=*/true);
  if (llvm::all_of(rows, isKnown))
    kernel.rowsInLastSweep = std::move(rows);
}

/// True if walking dimension `outer` is walking `inner` on from its end, at every address.
static bool contiguous(ArrayRef<Access> accesses, const Group &outer, const Group &inner) {
  return llvm::all_of(accesses, [&](const Access &access) {
    return access.address.coefficients[outer.last] == inner.extent * access.address.coefficients[inner.last];
  });
}

static void mergeDimensions(Kernel &kernel) {
  SmallVector<Access> accesses = allAccesses(kernel);
  for (size_t dim = 0; dim < kernel.space(); ++dim) {
    if (kernel.extents[dim] == 1)
      continue;
    Group group{kernel.roles[dim], kernel.extents[dim], dim};
    if (!kernel.groups.empty() && kernel.groups.back().role == group.role &&
        contiguous(accesses, kernel.groups.back(), group)) {
      group.extent *= kernel.groups.back().extent;
      kernel.groups.back() = group;
    } else {
      kernel.groups.push_back(group);
    }
  }
}

Kernel::Kernel(Block &body) : body(&body) {
  for (Operation &op : body)
    if (formOf(&op) != Form::Elementwise) {
      root = &op;
      form = formOf(&op);
    }
  if (form == Form::Reduction) {
    reduceOver(*this, root->getOperand(0), foldedDims(root));
    orderSweeps(*this);
    root = nullptr;
  } else if (form == Form::ScatterAdd) {
    scatterOver(*this, cast<ScatterAddOp>(root));
  } else if (form == Form::Cumsum || form == Form::Sort || form == Form::TopK) {
    iterateOver(*this, shapeOf(root->getOperand(0)), root->getAttrOfType<IntegerAttr>("dim").getInt());
  } else {
    iterateOver(*this, shapeOf(yields().front()));
  }
  for (size_t dim = 0; dim < space(); ++dim)
    everywhere.push_back(coordinate(dim, space()));
  mergeDimensions(*this);
}

bool Kernel::isBound(Operation *op) const {
  return op && (op == root || (form == Form::Reduction && isReduction(op)));
}

bool Kernel::isWholeRow(Value result) const {
  return form == Form::Reduction && shapeOf(result).size() == space();
}

int64_t Kernel::rowLength() const {
  int64_t length = 1;
  for (const Group &group : groups)
    if (group.role == Role::Ordered)
      length *= group.extent;
  return length;
}

Affine Kernel::placeInRow() const {
  Affine place = constantAffine(0, space());
  int64_t stride = 1;
  for (const Group &group : llvm::reverse(groups)) {
    if (group.role != Role::Ordered)
      continue;
    place = sum(place, coordinate(group.last, space()), stride);
    stride *= group.extent;
  }
  return place;
}

std::optional<size_t> Kernel::orderedGroup() const {
  for (size_t group = groups.size(); group-- > 0;)
    if (groups[group].role == Role::Ordered)
      return group;
  return std::nullopt;
}

SmallVector<unsigned> Kernel::resultNumbers(bool wholeRows) const {
  SmallVector<unsigned> numbers;
  for (auto [number, yield] : llvm::enumerate(yields()))
    if (isWholeRow(yield) == wholeRows)
      numbers.push_back(number);
  return numbers;
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

static size_t rowDimOf(Operation *pooling) {
  return TypeSwitch<Operation *, size_t>(pooling)
      .Case<MaxPool2dOp, MaxPool2dGradientOp, MaxPool2dGatherOp, AvgPool2dOp, AvgPool2dGradientOp>(
          [](auto op) { return windowsOf(op).rowDim; });
}

namespace {
/// Walks from a value to its leaves, each value once for each position at which it is wanted. ElementEmitter
/// follows the same access paths.
class AccessCollector {
public:
  using OnRead = llvm::function_ref<void(BlockArgument, const Index &)>;

  /// Of all operands and results.
  explicit AccessCollector(const Kernel &kernel, OnRead onRead = {})
      : kernel_(kernel), space_(kernel.space()), onRead_(onRead) {
    for (auto &[operand, index] : rootOperands(kernel))
      collect(operand, index);
    for (Value yield : kernel.yields()) {
      const Index &index = kernel.indexOf(yield);
      collect(yield, index);
      coordinateAsNumber(linearAddress(index, shapeOf(yield), space_));
    }
  }

  SmallVector<Access> take() { return std::move(accesses_); }

private:
  void coordinateAsNumber(const Affine &affine) { accesses_.push_back({Value(), affine}); }

  Affine unknown() const {
    Affine result = constantAffine(0, space_);
    result.isDynamic = true;
    return result;
  }
  static Index shifted(Index index) {
    for (Affine &entry : index)
      entry.isDynamic = true;
    return index;
  }

  void collectLeaf(Value leaf, const Index &index) {
    Affine address = linearAddress(index, shapeOf(leaf), space_);
    address.isDynamic = llvm::any_of(index, [](const Affine &entry) { return entry.isDynamic; });
    accesses_.push_back({leaf, address});
    if (onRead_)
      onRead_(cast<BlockArgument>(leaf), index);
  }

  void collectConcat(ConcatOp op, Index at) {
    coordinateAsNumber(at[op.getDim()]);
    for (Value operand : op.getOperands()) {
      collect(operand, at);
      at[op.getDim()] = scaled(at[op.getDim()], 1, -shapeOf(operand)[op.getDim()]);
    }
  }

  void collectPad(PadOp op, Index at) {
    for (auto [entry, low, high, interior] :
         llvm::zip_equal(at, op.getLow(), op.getHigh(), op.getInterior())) {
      if (low || high || interior)
        coordinateAsNumber(entry);
      entry = interior ? unknown() : scaled(entry, 1, -low);
    }
    collect(op.getOperand(), at);
  }

  void collectUpdate(DynamicUpdateSliceOp op, const Index &index) {
    for (const Affine &entry : index)
      coordinateAsNumber(entry);
    collect(op.getOperand(), index);
    collect(op.getUpdate(), shifted(index));
    collect(op.getStart(), {unknown()});
  }

  void collectGather(GatherOp op, const Index &index) {
    size_t dim = op.getDim(), count = shapeOf(op.getIndices()).size();
    collect(op.getIndices(), Index(index.begin() + dim, index.begin() + dim + count));
    Index at(index.begin(), index.begin() + dim);
    at.push_back(unknown());
    at.append(index.begin() + dim + count, index.end());
    collect(op.getOperand(), at);
  }

  /// Windows lie along rows and columns, and a gradient or a gather compares where it stands.
  void collectPool(Operation *op, const Index &index) {
    Index at = index;
    const size_t rows = rowDimOf(op);
    for (size_t dim : {rows, rows + 1}) {
      coordinateAsNumber(index[dim]);
      at[dim] = unknown();
    }
    for (Value operand : op->getOperands())
      collect(operand, at);
    if (auto gather = dyn_cast<MaxPool2dGatherOp>(op))
      collect(gather.getIndices(), index);
  }

  void collect(Value value, const Index &index) {
    Operation *op = value.getDefiningOp();
    if (kernel_.isBound(op)) // its own reads are collected from its operands
      return;
    SmallVector<Index, 0> &seen = seen_[value];
    if (llvm::is_contained(seen, index))
      return;
    seen.push_back(index);
    if (!op)
      return collectLeaf(value, index);
    if (isMovement(op))
      return collect(op->getOperand(0), movedIndex(op, index));
    if (auto iota = dyn_cast<IotaOp>(op))
      return coordinateAsNumber(index[iota.getDim()]);
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      if (!constant.getSplat())
        coordinateAsNumber(linearAddress(index, shapeOf(value), space_));
      return;
    }
    if (auto concat = dyn_cast<ConcatOp>(op))
      return collectConcat(concat, index);
    if (auto pad = dyn_cast<PadOp>(op))
      return collectPad(pad, index);
    if (auto update = dyn_cast<DynamicUpdateSliceOp>(op))
      return collectUpdate(update, index);
    if (auto gather = dyn_cast<GatherOp>(op))
      return collectGather(gather, index);
    if (isPooling(op))
      return collectPool(op, index);
    if (auto slice = dyn_cast<DynamicSliceOp>(op)) {
      collect(slice.getOperand(), shifted(index));
      return collect(slice.getStart(), {unknown()});
    }
    if (isa<RandomBitsOp>(op))
      coordinateAsNumber(linearAddress(index, shapeOf(value), space_));
    for (Value operand : op->getOperands())
      collect(operand, isa<RandomBitsOp>(op) ? Index() : index);
  }

  const Kernel &kernel_;
  size_t space_;
  SmallVector<Access> accesses_;
  OnRead onRead_;
  llvm::DenseMap<Value, SmallVector<Index, 0>> seen_;
};
} // namespace

SmallVector<std::pair<Value, Index>, 1> rootOperands(const Kernel &kernel) {
  SmallVector<std::pair<Value, Index>, 1> operands;
  for (const auto &sweep : kernel.sweeps)
    for (Operation *reduction : sweep)
      operands.push_back({reduction->getOperand(0), kernel.everywhere});
  if (!kernel.root)
    return operands;
  auto scatter = dyn_cast<ScatterAddOp>(kernel.root);
  if (!scatter)
    return {std::make_pair(kernel.root->getOperand(0), kernel.everywhere)};
  Index indices, updates;
  for (auto [entry, role] : llvm::zip_equal(kernel.everywhere, kernel.roles)) {
    if (role == Role::Ordered)
      indices.push_back(entry);
    if (role != Role::Slot)
      updates.push_back(entry);
  }
  return {std::make_pair(Value(scatter.getInit()), kernel.resultIndex),
          std::make_pair(Value(scatter.getIndices()), indices),
          std::make_pair(Value(scatter.getUpdates()), updates)};
}

SmallVector<Access> allAccesses(const Kernel &kernel) { return AccessCollector(kernel).take(); }

void forEachRead(const Kernel &kernel, llvm::function_ref<void(BlockArgument, const Index &)> onRead) {
  (void)AccessCollector(kernel, onRead);
}

} // namespace gpuc::codegen
