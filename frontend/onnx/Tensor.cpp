//===- Tensor.cpp - What the lowering of ONNX ops is written in -------------===//

#include "frontend/onnx/Tensor.h"

#include "frontend/ElementType.h"
#include "frontend/onnx/reader/HostTensor.h"

#include <functional>
#include <numeric>

using namespace mlir;

namespace gpuc::onnx {

static RankedTensorType typeOf(const Tensor &x) { return cast<RankedTensorType>(x.value().getType()); }

Shape Tensor::shape() const { return value_ ? Shape(typeOf(*this).getShape()) : Shape(); }

int64_t Tensor::extent(int64_t dim) const {
  Shape all = shape();
  return dim >= 0 && dim < static_cast<int64_t>(all.size()) ? all[dim] : 1;
}

DataType Tensor::type() const { return value_ ? dataTypeOf(value_) : DataType::f32; }

bool Tensor::hasBatch() const { return rank() > 0 && extent(0) == kBatch; }

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

Tensor unary(StringRef name, const Tensor &x) { return x ? x.emitter()->op(name, {x}) : Tensor(); }

std::optional<Shape> broadcastShapes(Emitter &emitter, const Shape &lhs, const Shape &rhs) {
  std::optional<Shape> shape = gpuc::broadcastShapes(lhs, rhs);
  if (!shape)
    emitter.fail("shapes " + toString(lhs) + " and " + toString(rhs) + " do not broadcast");
  return shape;
}

/// Broadcasts both to one shape; false after an error.
static bool align(Tensor &lhs, Tensor &rhs) {
  if (!lhs || !rhs)
    return false;
  std::optional<Shape> shape = broadcastShapes(*lhs.emitter(), lhs.shape(), rhs.shape());
  if (!shape)
    return false;
  lhs = broadcastTo(lhs, *shape);
  rhs = broadcastTo(rhs, *shape);
  return lhs && rhs;
}

/// Both of one shape, which they are broadcast to, and one element type; false after an error.
static bool alignTyped(Tensor &lhs, Tensor &rhs) {
  if (!align(lhs, rhs))
    return false;
  if (lhs.type() != rhs.type())
    lhs.emitter()->fail("takes one element type, but is given " + std::string(nameOf(lhs.type())) + " and " +
                        std::string(nameOf(rhs.type())) + ": cast one of them where the model is exported");
  return lhs.type() == rhs.type();
}

Tensor binary(StringRef name, const Tensor &lhs, const Tensor &rhs) {
  Tensor a = lhs, b = rhs;
  return alignTyped(a, b) ? a.emitter()->op(name, {a, b}) : Tensor();
}

Tensor like(const Tensor &x, double value) {
  return x ? x.emitter()->constant(x.shape(), x.type(), value) : Tensor();
}

Tensor operator+(const Tensor &lhs, const Tensor &rhs) { return binary("add", lhs, rhs); }
Tensor operator-(const Tensor &lhs, const Tensor &rhs) { return binary("sub", lhs, rhs); }
Tensor operator*(const Tensor &lhs, const Tensor &rhs) { return binary("mul", lhs, rhs); }
Tensor operator/(const Tensor &lhs, const Tensor &rhs) { return binary("div", lhs, rhs); }
Tensor operator+(const Tensor &lhs, double rhs) { return lhs + like(lhs, rhs); }
Tensor operator-(const Tensor &lhs, double rhs) { return lhs - like(lhs, rhs); }
Tensor operator*(const Tensor &lhs, double rhs) { return lhs * like(lhs, rhs); }
Tensor operator/(const Tensor &lhs, double rhs) { return lhs / like(lhs, rhs); }
Tensor operator-(double lhs, const Tensor &rhs) { return like(rhs, lhs) - rhs; }
Tensor operator/(double lhs, const Tensor &rhs) { return like(rhs, lhs) / rhs; }

Tensor compare(StringRef predicate, const Tensor &lhs, const Tensor &rhs) {
  Tensor a = lhs, b = rhs;
  if (!alignTyped(a, b))
    return {};
  Emitter &emitter = *a.emitter();
  auto kind = ir::ComparisonAttr::get(emitter.builder.getContext(), *ir::symbolizeComparison(predicate));
  return emitter.op("compare", {a, b}, emitter.builder.getNamedAttr("predicate", kind));
}

Tensor compare(StringRef predicate, const Tensor &lhs, double rhs) {
  return compare(predicate, lhs, like(lhs, rhs));
}

Tensor select(const Tensor &condition, const Tensor &onTrue, const Tensor &onFalse) {
  Tensor c = condition, a = onTrue, b = onFalse;
  if (!align(a, b) || !align(c, a) || !align(a, b))
    return {};
  return a.emitter()->op("select", {c, a, b});
}

Tensor cast(const Tensor &x, DataType type) {
  if (!x || x.type() == type)
    return x;
  return x.emitter()->op("cast", {x}, {}, x.emitter()->tensorType(x.shape(), type));
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

int64_t countOf(const Shape &shape, size_t from, size_t to) {
  to = std::min(to, shape.size());
  return from < to
             ? std::accumulate(shape.begin() + from, shape.begin() + to, int64_t{1}, std::multiplies<>())
             : 1;
}

Shape dimsFrom(int64_t first, int64_t rank) {
  Shape dims(std::max<int64_t>(rank - first, 0));
  std::iota(dims.begin(), dims.end(), first);
  return dims;
}

int64_t dimension(const Tensor &x, int64_t dim) {
  if (!x)
    return -1;
  if (dim >= -x.rank() && dim < x.rank())
    return dim < 0 ? dim + x.rank() : dim;
  x.emitter()->fail("axis " + std::to_string(dim) + " of a tensor of shape " + toString(x.shape()));
  return -1;
}

Tensor reshape(const Tensor &x, const Shape &shape) {
  if (!x || x.shape() == shape)
    return x;
  return x.emitter()->op("reshape", {x}, {}, x.emitter()->tensorType(shape, x.type()));
}

Tensor broadcastTo(const Tensor &x, const Shape &shape) {
  const Shape from = x.shape();
  if (!x || from == shape)
    return x;
  std::optional<Repetition> repetition = repetitionOf(from, shape);
  if (!repetition)
    return x.emitter()->fail("shape " + toString(from) + " does not broadcast to " + toString(shape));
  // What only gains dimensions of extent 1 is another view of the same elements.
  ArrayRef<int64_t> extents = shape;
  if (llvm::all_of(extents.drop_back(from.size()), [](int64_t extent) { return extent == 1; }) &&
      extents.take_back(from.size()) == ArrayRef(from)) {
    Tensor view = reshape(x, shape);
    if (view && x.emitter()->marksRepetitions)
      view.value().getDefiningOp()->setAttr(kRepeatsAttr, x.emitter()->builder.getUnitAttr());
    return view;
  }
  Tensor dense = reshape(x, repetition->kept);
  Emitter &emitter = *x.emitter();
  return emitter.op("broadcast", {dense}, emitter.attribute("dims", repetition->dims),
                    emitter.tensorType(shape, x.type()));
}

Tensor transpose(const Tensor &x, ArrayRef<int64_t> permutation) {
  if (!x || llvm::equal(permutation, llvm::seq<int64_t>(0, x.rank())))
    return x;
  return x.emitter()->op("transpose", {x}, x.emitter()->attribute("permutation", permutation));
}

Tensor slice(const Tensor &x, int64_t dim, int64_t start, int64_t limit, int64_t stride) {
  if (!x || (start == 0 && limit == x.extent(dim) && stride == 1))
    return x;
  Shape starts(x.rank(), 0), limits = x.shape(), strides(x.rank(), 1);
  if (x.hasBatch())
    limits[0] = -1;
  starts[dim] = start, limits[dim] = limit, strides[dim] = stride;
  Emitter &e = *x.emitter();
  return e.op(
      "slice", {x},
      {e.attribute("starts", starts), e.attribute("limits", limits), e.attribute("strides", strides)});
}

/// Whether a part has nothing to add to the others along `dim`, with which it agrees in all else.
static bool addsNothing(const Tensor &part, const Tensor &to, int64_t dim) {
  Shape shape = part.shape(), expected = to.shape();
  if (!part || shape.size() != expected.size() || shape[dim] != 0 || part.type() != to.type())
    return false;
  shape[dim] = expected[dim];
  return shape == expected;
}

Tensor concat(ArrayRef<Tensor> parts, int64_t dim) {
  if (parts.empty() || !parts.front())
    return {};
  const Tensor *filled = llvm::find_if(parts, [&](const Tensor &part) { return part.extent(dim) != 0; });
  if (filled != parts.end() && *filled && parts.size() > 1) {
    SmallVector<Tensor> others;
    llvm::copy_if(parts, std::back_inserter(others),
                  [&](const Tensor &part) { return !addsNothing(part, *filled, dim); });
    if (others.size() < parts.size())
      return others.size() == 1 ? others.front() : concat(others, dim);
  }
  return parts.front().emitter()->op("concat", parts, parts.front().emitter()->attribute("dim", dim));
}

Tensor pad(const Tensor &x, const Shape &low, const Shape &high, double value) {
  if (!x || (llvm::all_of(low, [](int64_t n) { return n == 0; }) &&
             llvm::all_of(high, [](int64_t n) { return n == 0; })))
    return x;
  Emitter &e = *x.emitter();
  if (Shape shape = x.shape(); llvm::is_contained(shape, 0)) {
    for (size_t i = 0; i < shape.size(); ++i)
      shape[i] += shape[i] == kBatch ? 0 : low[i] + high[i];
    return e.constant(shape, x.type(), value); // There is nothing but padding.
  }
  return e.op("pad", {x},
              {e.attribute("low", low), e.attribute("high", high),
               e.attribute("interior", Shape(x.rank(), 0)), e.attribute("value", value)});
}

Tensor reverse(const Tensor &x, ArrayRef<int64_t> dims) {
  return x && !dims.empty() ? x.emitter()->op("reverse", {x}, x.emitter()->attribute("dims", dims)) : x;
}

Tensor iota(Emitter &emitter, const Shape &shape, DataType type, int64_t dim) {
  return emitter.op("iota", {}, emitter.attribute("dim", dim), emitter.tensorType(shape, type));
}

std::optional<Shape> unsqueeze(Emitter &emitter, const Shape &shape, Shape dims) {
  const int64_t rank = static_cast<int64_t>(shape.size() + dims.size());
  for (int64_t &dim : dims)
    dim = dim < 0 ? dim + rank : dim;
  llvm::sort(dims);
  Shape made = shape;
  for (int64_t dim : dims) {
    if (dim < 0 || dim > static_cast<int64_t>(made.size()))
      return emitter.fail("no axis " + std::to_string(dim) + " can be put into shape " + toString(shape));
    made.insert(made.begin() + dim, 1);
  }
  return made;
}

Tensor unsqueeze(const Tensor &x, Shape dims) {
  std::optional<Shape> shape = x ? unsqueeze(*x.emitter(), x.shape(), std::move(dims)) : std::nullopt;
  return shape ? reshape(x, *shape) : Tensor();
}

Tensor beside(const Tensor &vector, int64_t dim, int64_t rank) {
  Shape shape(std::max<int64_t>(rank - dim, 1), 1);
  shape.front() = vector.extent(0);
  return reshape(vector, shape);
}

//===----------------------------------------------------------------------===//
// Reductions and contractions
//===----------------------------------------------------------------------===//

Tensor reduce(StringRef name, const Tensor &x, Shape dims, bool keep) {
  if (!x)
    return {};
  for (int64_t &dim : dims)
    if ((dim = dimension(x, dim)) < 0)
      return {};
  llvm::sort(dims);
  Shape kept = x.shape();
  for (int64_t dim : dims)
    kept[dim] = 1;
  Tensor reduced = dims.empty() ? x : x.emitter()->op(name, {x}, x.emitter()->attribute("dims", dims));
  return keep ? reshape(reduced, kept) : reduced;
}

Tensor along(StringRef name, const Tensor &x, int64_t dim) {
  dim = dimension(x, dim);
  return dim < 0 ? Tensor() : x.emitter()->op(name, {x}, x.emitter()->attribute("dim", dim));
}

Tensor matmul(const Tensor &lhs, const Tensor &rhs, bool transposeLhs, bool transposeRhs) {
  if (!lhs || !rhs)
    return {};
  SmallVector<NamedAttribute> flags;
  if (transposeLhs)
    flags.push_back(lhs.emitter()->flag("transpose_lhs"));
  if (transposeRhs)
    flags.push_back(lhs.emitter()->flag("transpose_rhs"));
  return lhs.emitter()->op("matmul", {lhs, rhs}, flags);
}

Tensor multiplyAlong(const Tensor &x, int64_t dim, int64_t extent, const std::vector<double> &matrix) {
  if (!x)
    return {};
  // The dimension goes last, the others, but for the batch, become rows.
  Shape forth, shape = x.shape(), back(shape.size());
  for (int64_t d = 0; d < x.rank(); ++d)
    if (d != dim)
      forth.push_back(d);
  forth.push_back(dim);
  for (size_t i = 0; i < forth.size(); ++i)
    back[forth[i]] = static_cast<int64_t>(i);
  int64_t rows = 1;
  for (int64_t d = x.hasBatch() ? 1 : 0; d < x.rank(); ++d)
    rows *= d == dim ? 1 : shape[d];
  Shape flat = {rows, shape[dim]}, result;
  if (x.hasBatch())
    flat.insert(flat.begin(), kBatch);
  for (int64_t d : forth)
    result.push_back(d == dim ? extent : shape[d]);
  Tensor weights = x.emitter()->constant(*fromNumbers(x.type(), {shape[dim], extent}, matrix));
  return transpose(reshape(matmul(reshape(transpose(x, forth), flat), weights), result), back);
}

} // namespace gpuc::onnx
