//===- RunningError.cpp - Rules of what is computed of whole tensors ---------===//

#include "test/reference/RunningError.h"

#include "dialects/gpuc/GpucOps.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace gpuc::reference {

using Compute = llvm::function_ref<std::vector<Tensor>(ArrayRef<Tensor>)>;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

double errorUnit(Type element) {
  int digits = llvm::cast<FloatType>(element).getFPMantissaWidth();
  return std::ldexp(64, -digits);
}

//===----------------------------------------------------------------------===//
// Sums and products: the op itself, on magnitudes
//===----------------------------------------------------------------------===//

/// A tensor of magnitudes, or of terms; a sum of what is exact is rounded as well.
static Tensor magnitudes(const Tensor &x, bool ofTerms) {
  Tensor result = x;
  if (x.isFloat())
    for (Element &element : result.elements)
      element.real = std::max(std::abs(element.real), ofTerms ? element.terms : 0);
  return result;
}

/// An infinite bound times a zero that stands for nothing is no number; it counts as infinite.
static double bounded(double terms) { return std::isnan(terms) ? kInfinity : terms; }

static void addMagnitude(Tensor &result) {
  for (Element &element : result.elements)
    element.terms = std::isfinite(element.real) ? element.terms + std::abs(element.real) : 0;
}

/// Of what is linear in its floating-point operands together, with coefficients that are not negative.
static void countLinear(ArrayRef<Tensor> operands, Tensor &result, Compute compute) {
  std::vector<Tensor> terms;
  for (const Tensor &operand : operands)
    terms.push_back(magnitudes(operand, /*ofTerms=*/true));
  std::vector<Tensor> sums = compute(terms);
  for (auto [element, sum] : llvm::zip_equal(result.elements, sums.front().elements))
    element.terms = bounded(sum.real);
  addMagnitude(result);
}

/// Of a product of two operands: |a| A(b) + A(a) |b| + U A(a) A(b).
static void countBilinear(ArrayRef<Tensor> operands, Tensor &result, Compute compute) {
  const double unit = errorUnit(result.type.getElementType());
  for (Element &element : result.elements)
    element.terms = 0;
  for (auto [lhsTerms, rhsTerms, factor] :
       {std::tuple(false, true, 1.0), std::tuple(true, false, 1.0), std::tuple(true, true, unit)}) {
    std::vector<Tensor> sums =
        compute({magnitudes(operands[0], lhsTerms), magnitudes(operands[1], rhsTerms)});
    for (auto [element, sum] : llvm::zip_equal(result.elements, sums.front().elements))
      element.terms += factor * bounded(sum.real);
  }
  addMagnitude(result);
}

/// Of a product along dimensions: Σ |y / x| A(x), or nothing known if a factor may be 0.
static void countProd(ArrayRef<Tensor> operands, Tensor &result) {
  for (Element &element : result.elements)
    element.terms = operands[0].size() == 0 ? 1 : kInfinity;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Position in the result of what an element of x is folded into along `dims`.
static int64_t foldedPosition(ArrayRef<int64_t> index, ArrayRef<int64_t> dims, ArrayRef<int64_t> shape) {
  Shape kept;
  for (auto [dim, coordinate] : llvm::enumerate(index))
    if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
      kept.push_back(coordinate);
  return positionOf(kept, shape);
}

/// The largest bound among those elements that may be the extreme one.
static void countExtreme(const Tensor &x, ArrayRef<int64_t> dims, Tensor &result) {
  if (!result.isFloat())
    return;
  const double unit = errorUnit(x.type.getElementType());
  auto forEach = [&](llvm::function_ref<void(const Element &, Element &)> body) {
    forEachIndex(x.shape(), [&](ArrayRef<int64_t> index) {
      body(x.elements[positionOf(index, x.shape())],
           result.elements[foldedPosition(index, dims, result.shape())]);
    });
  };
  forEach([](const Element &x, Element &y) {
    if (x.real == y.real)
      y.terms = std::max(y.terms, x.terms);
  });
  std::vector<double> winners;
  for (const Element &element : result.elements)
    winners.push_back(element.terms);
  forEach([&](const Element &x, Element &y) {
    Element winner{y.real, 0, winners[&y - result.elements.data()]};
    if (maySwap(x, winner, unit))
      y.terms = std::max(y.terms, x.terms);
  });
}

/// Whether elements of each line of x along `dims` keep their order: for each line, at its position folded.
static std::vector<bool> linesWithTies(const Tensor &x, ArrayRef<int64_t> dims, ArrayRef<int64_t> lines) {
  std::vector<std::vector<Element>> members(1);
  for (int64_t extent : lines)
    members.resize(members.size() * extent);
  forEachIndex(x.shape(), [&](ArrayRef<int64_t> index) {
    members[foldedPosition(index, dims, lines)].push_back(x.elements[positionOf(index, x.shape())]);
  });
  const double unit = x.isFloat() ? errorUnit(x.type.getElementType()) : 0;
  std::vector<bool> ties;
  for (std::vector<Element> &line : members) {
    llvm::sort(line, [](const Element &a, const Element &b) { return a.real < b.real; });
    bool isTied = false;
    for (size_t i = 1; i < line.size(); ++i)
      isTied |= x.isFloat() ? maySwap(line[i - 1], line[i], unit) : line[i].terms != 0;
    ties.push_back(isTied);
  }
  return ties;
}

static Shape without(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  Shape kept;
  for (auto [dim, extent] : llvm::enumerate(shape))
    if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
      kept.push_back(extent);
  return kept;
}

/// Indices are sure where no two of their line, of `x` along `dims`, may change places.
static void countIndices(const Tensor &x, ArrayRef<int64_t> dims, Tensor &indices,
                         ArrayRef<int64_t> dimsOfIndices) {
  Shape lines = without(x.shape(), dims);
  std::vector<bool> ties = linesWithTies(x, dims, lines);
  forEachIndex(indices.shape(), [&](ArrayRef<int64_t> index) {
    if (ties[foldedPosition(index, dimsOfIndices, lines)])
      indices.elements[positionOf(index, indices.shape())].terms = kInfinity;
  });
}

/// Sorted values move by no more than the largest error in their line.
static void countSorted(const Tensor &x, int64_t dim, std::vector<Tensor> &results) {
  Shape lines = without(x.shape(), dim);
  std::vector<double> largest(std::max<size_t>(1, ShapedType::getNumElements(lines)), 0);
  forEachIndex(x.shape(), [&](ArrayRef<int64_t> index) {
    double &most = largest[foldedPosition(index, dim, lines)];
    most = std::max(most, x.elements[positionOf(index, x.shape())].terms);
  });
  forEachIndex(results[0].shape(), [&](ArrayRef<int64_t> index) {
    results[0].elements[positionOf(index, results[0].shape())].terms =
        largest[foldedPosition(index, dim, lines)];
  });
  countIndices(x, dim, results[1], dim);
}

/// Values as bounds of the whole picture, which hold for each window; which element a window takes is sure if
/// none of the picture may change places.
static void countMaxPool(const Tensor &x, bool channelsLast, std::vector<Tensor> &results) {
  double largest = 0;
  for (const Element &element : x.elements)
    largest = std::max(largest, element.terms);
  for (Element &element : results[0].elements)
    element.terms = largest;
  const SmallVector<int64_t> rowsAndColumns =
      channelsLast ? SmallVector<int64_t>{1, 2} : SmallVector<int64_t>{2, 3};
  countIndices(x, rowsAndColumns, results[1], rowsAndColumns);
}

//===----------------------------------------------------------------------===//
// By op
//===----------------------------------------------------------------------===//

/// Where an op reads indices or flags that are not sure, nothing is known of what it gives.
static bool readsUnsure(ArrayRef<Tensor> operands) {
  return llvm::any_of(operands, [](const Tensor &operand) {
    return !operand.isFloat() &&
           llvm::any_of(operand.elements, [](const Element &element) { return element.terms != 0; });
  });
}

/// Constants are exact if they are small and whole, as 0 and 1 are; others may be rounded to their type.
static void countSource(Tensor &result) {
  for (Element &element : result.elements) {
    const double magnitude = std::abs(element.real);
    const bool isExact = !result.isFloat() || magnitude == std::min(std::round(magnitude), 2048.0);
    element.terms = isExact || std::isinf(magnitude) ? 0 : magnitude;
  }
}

static bool movesElements(Operation *op) {
  return isa<ir::ReshapeOp, ir::TransposeOp, ir::BroadcastOp, ir::SliceOp, ir::ReverseOp, ir::PadOp,
             ir::ConcatOp, ir::GatherOp, ir::DynamicSliceOp, ir::DynamicUpdateSliceOp>(op);
}

/// Whether the op has a rule.
static bool countWhole(Operation *op, ArrayRef<Tensor> x, std::vector<Tensor> &y, Compute compute) {
  return TypeSwitch<Operation *, bool>(op)
      .Case<ir::ConstantOp, ir::IotaOp, ir::RandomBitsOp>([&](auto) { return countSource(y[0]), true; })
      .Case<ir::SumOp, ir::CumsumOp, ir::ScatterAddOp, ir::AvgPool2dOp, ir::AvgPool2dGradientOp,
            ir::MaxPool2dGradientOp, ir::MaxPool2dGatherOp>([&](auto) {
        if (y[0].isFloat())
          countLinear(x, y[0], compute);
        return true;
      })
      .Case<ir::MatmulOp, ir::Conv2dOp, ir::Conv2dInputGradientOp, ir::Conv2dFilterGradientOp>(
          [&](auto) { return countBilinear(x, y[0], compute), true; })
      .Case<ir::ProdOp>([&](auto) { return countProd(x, y[0]), true; })
      .Case<ir::ReduceMaxOp, ir::ReduceMinOp>(
          [&](auto reduce) { return countExtreme(x[0], reduce.getDims(), y[0]), true; })
      .Case<ir::ArgmaxOp>([&](ir::ArgmaxOp argmax) {
        return countIndices(x[0], static_cast<int64_t>(argmax.getDim()), y[0], {}), true;
      })
      .Case<ir::SortOp, ir::TopKOp>([&](auto sort) { return countSorted(x[0], sort.getDim(), y), true; })
      .Case<ir::MaxPool2dOp>(
          [&](ir::MaxPool2dOp pool) { return countMaxPool(x[0], pool.getChannelsLast(), y), true; })
      .Default([](Operation *op) { return movesElements(op); });
}

static bool hasNan(const Tensor &tensor) {
  return llvm::any_of(tensor.elements, [](const Element &element) { return std::isnan(element.terms); });
}

Status countTerms(Operation *op, ArrayRef<Tensor> operands, std::vector<Tensor> &results, Compute compute) {
  const bool isByElement = results.size() == 1 && countElementTerms(op, operands, results[0]);
  const bool isKnown = isByElement ? !hasNan(results[0]) : countWhole(op, operands, results, compute);
  if (!isKnown)
    return Status::error("'" + op->getName().getStringRef().str() +
                         "' has no rule for its rounding error: decompose composite ops first");
  if (!isByElement && readsUnsure(operands))
    for (Tensor &result : results)
      for (Element &element : result.elements)
        element.terms = kInfinity;
  return okStatus();
}

} // namespace gpuc::reference
