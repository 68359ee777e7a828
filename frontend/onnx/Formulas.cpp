//===- Formulas.cpp - What importers write in ops of gpuc --------------------===//

#include "frontend/onnx/Formulas.h"

namespace gpuc::onnx {

//===----------------------------------------------------------------------===//
// Functions of one number
//===----------------------------------------------------------------------===//

Tensor asin(const Tensor &x) { return unary("atan", x / unary("sqrt", (1.0 - x) * (x + 1.0))); }
Tensor acos(const Tensor &x) { return unary("atan", unary("sqrt", (1.0 - x) / (x + 1.0))) * 2.0; }

Tensor sinh(const Tensor &x) {
  Tensor t = unary("expm1", x);
  return (t + t / (t + 1.0)) * 0.5;
}

Tensor cosh(const Tensor &x) { return (unary("exp", x) + unary("exp", unary("neg", x))) * 0.5; }

Tensor asinh(const Tensor &x) {
  Tensor a = unary("abs", x), square = x * x;
  return unary("sign", x) * unary("log1p", a + square / (unary("sqrt", square + 1.0) + 1.0));
}

Tensor acosh(const Tensor &x) {
  Tensor over = x - 1.0;
  return unary("log1p", over + unary("sqrt", over * (x + 1.0)));
}

Tensor atanh(const Tensor &x) { return (unary("log1p", x) - unary("log1p", unary("neg", x))) * 0.5; }

//===----------------------------------------------------------------------===//
// Orders and running products
//===----------------------------------------------------------------------===//

Tensor indexOfExtreme(const Tensor &x, int64_t dim, bool largest) {
  // With its order reversed.
  return along("argmax", largest ? x : unary(x.isFloat() ? "neg" : "not", x), dim);
}

std::vector<Tensor> topK(const Tensor &x, int64_t dim, int64_t k, bool largest) {
  if (!x)
    return {};
  Emitter &e = *x.emitter();
  std::vector<mlir::NamedAttribute> attributes = {e.attribute("k", k), e.attribute("dim", dim)};
  if (!largest)
    attributes.push_back(e.flag("smallest"));
  return e.emit("top_k", {x}, attributes);
}

/// Each product is that of a row of x, with ones in the place of what does not count.
Tensor runningProduct(const Tensor &x, int64_t dim, bool exclusive, bool backwards) {
  if (!x)
    return {};
  const int64_t extent = x.extent(dim);
  if (extent == kBatch || extent > 1024)
    return x.emitter()->fail("running products of " + std::to_string(extent) + " elements: at most 1024");
  Shape spread = x.shape(), unit = spread;
  spread.insert(spread.begin() + dim, extent);
  unit.insert(unit.begin() + dim, 1);
  Tensor to = iota(*x.emitter(), spread, DataType::i64, dim),
         from = iota(*x.emitter(), spread, DataType::i64, dim + 1);
  Tensor counts = compare(backwards ? (exclusive ? "gt" : "ge") : (exclusive ? "lt" : "le"), from, to);
  Tensor rows = broadcastTo(reshape(x, unit), spread);
  return reduce("prod", select(counts, rows, like(rows, 1)), {dim + 1}, /*keep=*/false);
}

//===----------------------------------------------------------------------===//
// By index
//===----------------------------------------------------------------------===//

Tensor gather(const Tensor &x, const Tensor &indices, int64_t dim) {
  return x && indices ? x.emitter()->op("gather", {x, indices}, x.emitter()->attribute("dim", dim))
                      : Tensor();
}

Tensor wrap(const Tensor &indices, int64_t extent) {
  return select(compare("lt", indices, 0), indices + static_cast<double>(extent), indices);
}

Tensor linearize(const Tensor &x, const Tensor &indices, int64_t dim) {
  Tensor linear;
  Shape shape = x.shape();
  for (int64_t d = 0; d < x.rank(); ++d) {
    Tensor at = d == dim ? wrap(cast(indices, DataType::i64), x.extent(d))
                         : iota(*x.emitter(), indices.shape(), DataType::i64, d);
    Tensor part = at * static_cast<double>(countOf(shape, d + 1, shape.size()));
    linear = d == 0 ? part : linear + part;
  }
  return linear;
}

Tensor scatterAdd(const Tensor &x, const Tensor &indices, const Tensor &updates) {
  return x && indices && updates ? x.emitter()->op("scatter_add", {x, indices, updates},
                                                   x.emitter()->attribute("dim", int64_t{0}))
                                 : Tensor();
}

} // namespace gpuc::onnx
