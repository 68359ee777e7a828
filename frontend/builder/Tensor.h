//===- Tensor.h - Tensors of a model that is being built --------------------===//
//
// A Tensor is a handle: a value that the model computes, not its numbers. Functions on tensors add an op to
// the model.
//
// What is wrong (shapes that do not fit, say) is kept in the model as its first error and reported by
// ModelBuilder::finish(); the function returns a tensor that is not valid(), and all that is computed from it
// is not valid either. So a model is written without a check after each line.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Shapes.h"
#include "runtime/base/data_type.h"

namespace gpuc::nn {

namespace detail {
class Graph;
}

using gpuc::kBatch;
using gpuc::Shape;
using gpuc::toString;

class Tensor {
public:
  Tensor() = default;
  /// For the builder's own use: `value` is an mlir::Value's opaque pointer.
  Tensor(detail::Graph *graph, const void *value) : graph_(graph), value_(value) {}

  /// False if the tensor could not be computed; the model then holds the reason.
  bool valid() const { return value_ != nullptr; }

  /// Empty if the tensor is not valid.
  Shape shape() const;
  DataType dtype() const;
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }

  /// The same numbers in another element type.
  Tensor to(DataType type) const;

  detail::Graph *graph() const { return graph_; }
  const void *value() const { return value_; }

private:
  detail::Graph *graph_ = nullptr;
  const void *value_ = nullptr;
};

//===----------------------------------------------------------------------===//
// Arithmetic. Operands have one element type; shapes are broadcast as in PyTorch: aligned at the last
// dimension, and an extent of 1, or a dimension that is not there, repeats.
//===----------------------------------------------------------------------===//

Tensor operator+(const Tensor &lhs, const Tensor &rhs);
Tensor operator-(const Tensor &lhs, const Tensor &rhs);
Tensor operator*(const Tensor &lhs, const Tensor &rhs);
Tensor operator/(const Tensor &lhs, const Tensor &rhs);
Tensor operator-(const Tensor &x);

Tensor operator+(const Tensor &lhs, double rhs);
Tensor operator-(const Tensor &lhs, double rhs);
Tensor operator*(const Tensor &lhs, double rhs);
Tensor operator/(const Tensor &lhs, double rhs);
Tensor operator+(double lhs, const Tensor &rhs);
Tensor operator-(double lhs, const Tensor &rhs);
Tensor operator*(double lhs, const Tensor &rhs);
Tensor operator/(double lhs, const Tensor &rhs);

Tensor maximum(const Tensor &lhs, const Tensor &rhs);
Tensor minimum(const Tensor &lhs, const Tensor &rhs);
Tensor pow(const Tensor &base, double exponent);
/// Where x is another number: i1.
Tensor notEqual(const Tensor &x, double number);

//===----------------------------------------------------------------------===//
// Functions of each element. Floating point only.
//===----------------------------------------------------------------------===//

Tensor abs(const Tensor &x);
Tensor exp(const Tensor &x);
Tensor log(const Tensor &x);
Tensor sqrt(const Tensor &x);
Tensor sin(const Tensor &x);
Tensor cos(const Tensor &x);
Tensor erf(const Tensor &x);
Tensor tanh(const Tensor &x);
Tensor sigmoid(const Tensor &x);
Tensor relu(const Tensor &x);
Tensor leakyRelu(const Tensor &x, double slope = 0.01);
/// x · Φ(x), by the error function or, approximately, by tanh.
Tensor gelu(const Tensor &x, bool approximate = false);
Tensor silu(const Tensor &x);
Tensor clamp(const Tensor &x, double low, double high);
/// While training, zeroes elements with probability p in [0, 1) and scales the others by 1 / (1 - p).
Tensor dropout(const Tensor &x, double p);

//===----------------------------------------------------------------------===//
// Shape. A dimension below 0 counts from the last.
//===----------------------------------------------------------------------===//

/// The same elements in row-major order; one extent may be -1 and is then what is left. The batch stays
/// first.
Tensor reshape(const Tensor &x, Shape shape);
/// Dimensions from `first` to the last become one.
Tensor flatten(const Tensor &x, int64_t first = 1);
/// Two dimensions change places; the batch stays first.
Tensor transpose(const Tensor &x, int64_t first, int64_t second);
/// Repeats x to `shape` by the rule for arithmetic.
Tensor broadcastTo(const Tensor &x, const Shape &shape);

/// Elements start, start + step, … below `end` of one dimension, which is not the batch. Negative ones count
/// from the end.
Tensor slice(const Tensor &x, int64_t dim, int64_t start, int64_t end, int64_t step = 1);
/// One element of a dimension, which then is gone; an index of -1 is the last.
Tensor select(const Tensor &x, int64_t dim, int64_t index);
/// One after another along a dimension, which is not the batch.
Tensor concat(const std::vector<Tensor> &parts, int64_t dim);
/// Slices of x along `dim`, one for each of the indices (i32 or i64), whose shape takes that dimension's
/// place. An index out of range gives zeros.
Tensor gather(const Tensor &x, const Tensor &indices, int64_t dim = 0);
/// Numbers of the model's floating-point type in row-major order; `user` says in which function.
Tensor constant(const Tensor &user, const Shape &shape, const std::vector<double> &numbers);

//===----------------------------------------------------------------------===//
// Contractions and reductions
//===----------------------------------------------------------------------===//

/// Matrix product of the last two dimensions; the leading ones are equal, or rhs has none and is the same for
/// all. `transposeRhs`: rhs is stored [.., n, k].
Tensor matmul(const Tensor &lhs, const Tensor &rhs, bool transposeRhs = false);
Tensor sum(const Tensor &x, Shape dims);
Tensor mean(const Tensor &x, Shape dims);
Tensor softmax(const Tensor &x, int64_t dim = -1);
Tensor logSoftmax(const Tensor &x, int64_t dim = -1);

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

struct Sorted {
  Tensor values;
  Tensor indices; ///< i64: where along the dimension each value stood.
};
/// All elements along a dimension, which is not the batch. Equal ones keep their order, NaN is the largest.
Sorted sort(const Tensor &x, int64_t dim = -1, bool descending = false);
/// The first k of them: the largest, largest first, or the smallest, smallest first.
Sorted topK(const Tensor &x, int64_t k, int64_t dim = -1, bool largest = true);

} // namespace gpuc::nn
