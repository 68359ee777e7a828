//===- Tensor.h - What the lowering of ONNX ops is written in ---------------===//
//
// A Tensor is a handle on a value of the module being built. Functions on tensors add ops at its end,
// broadcast as ONNX does (extents align at the last dimension, 1 repeats), and pass an empty Tensor on: so a
// lowering is written as a formula, and the first error, kept in the Emitter, is that of the node.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Failure.h"
#include "frontend/Shapes.h"
#include "frontend/onnx/reader/Model.h"

#include "dialects/gpuc/GpucOps.h"

namespace gpuc::onnx {

class Emitter;

class Tensor {
public:
  Tensor() = default;
  Tensor(Emitter *emitter, mlir::Value value) : emitter_(emitter), value_(value) {}

  explicit operator bool() const { return value_ != nullptr; }
  mlir::Value value() const { return value_; }
  Emitter *emitter() const { return emitter_; }

  /// Of an empty tensor: [], f32.
  Shape shape() const;
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  int64_t extent(int64_t dim) const;
  DataType type() const;
  bool isFloat() const { return gpuc::isFloat(type()); }
  bool hasBatch() const;

private:
  Emitter *emitter_ = nullptr;
  mlir::Value value_;
};

} // namespace gpuc::onnx

template <> inline constexpr bool gpuc::kEmptyIsFailure<gpuc::onnx::Tensor> = true;
template <> inline constexpr bool gpuc::kEmptyIsFailure<gpuc::onnx::HostTensorPtr> = true;

namespace gpuc::onnx {

/// Whether no machine holds such a tensor: 2^40 elements are 4 TiB of f32.
bool isAbsurd(mlir::Type type);

/// Erases what nothing uses any more in the function's body, the last op first.
void eraseUnused(mlir::Block &body);

/// On a reshape that stands for a repetition, where Emitter::marksRepetitions.
inline constexpr llvm::StringLiteral kRepeatsAttr = "repeats";

/// Adds ops to a module, and keeps the first error since takeError().
class Emitter {
public:
  explicit Emitter(mlir::OpBuilder &builder) : builder(builder) {}

  Failure fail(const std::string &text);
  bool failed() const { return !error_.empty(); }
  std::string takeError() { return std::exchange(error_, {}); }

  mlir::Type elementType(DataType type);
  mlir::RankedTensorType tensorType(llvm::ArrayRef<int64_t> shape, DataType type);

  /// Adds gpuc.`name`; result types are inferred, or `types` where they cannot be. Whatever the dialect says
  /// against it is the error. Empty if an operand is.
  std::vector<Tensor> emit(llvm::StringRef name, llvm::ArrayRef<Tensor> operands,
                           llvm::ArrayRef<mlir::NamedAttribute> attributes = {}, mlir::TypeRange types = {});
  /// As emit, for an op with one result.
  Tensor op(llvm::StringRef name, llvm::ArrayRef<Tensor> operands,
            llvm::ArrayRef<mlir::NamedAttribute> attributes = {}, mlir::TypeRange types = {});

  mlir::NamedAttribute attribute(llvm::StringRef name, int64_t value);
  mlir::NamedAttribute attribute(llvm::StringRef name, double value);
  mlir::NamedAttribute attribute(llvm::StringRef name, llvm::ArrayRef<int64_t> values);
  mlir::NamedAttribute flag(llvm::StringRef name);
  /// How many operands each operand of an op with several optional ones has.
  mlir::NamedAttribute segments(llvm::ArrayRef<int32_t> sizes);

  /// A tensor full of one number.
  Tensor constant(llvm::ArrayRef<int64_t> shape, DataType type, double value);
  /// A known tensor as gpuc.constant.
  Tensor constant(const HostTensor &tensor);
  /// A tensor full of the one element of `number`.
  Tensor constant(llvm::ArrayRef<int64_t> shape, const HostTensor &number);

  mlir::OpBuilder &builder;
  bool marksRepetitions = false; ///< For whoever removes the marks.
  mlir::Location location = builder.getUnknownLoc();

private:
  std::string error_;
};

//===----------------------------------------------------------------------===//
// Elementwise; each takes its name from the dialect
//===----------------------------------------------------------------------===//

Tensor unary(llvm::StringRef name, const Tensor &x);
Tensor binary(llvm::StringRef name, const Tensor &lhs, const Tensor &rhs);
/// A number of the other operand's type and shape.
Tensor like(const Tensor &x, double value);

Tensor operator+(const Tensor &lhs, const Tensor &rhs);
Tensor operator-(const Tensor &lhs, const Tensor &rhs);
Tensor operator*(const Tensor &lhs, const Tensor &rhs);
Tensor operator/(const Tensor &lhs, const Tensor &rhs);
Tensor operator+(const Tensor &lhs, double rhs);
Tensor operator-(const Tensor &lhs, double rhs);
Tensor operator*(const Tensor &lhs, double rhs);
Tensor operator/(const Tensor &lhs, double rhs);
Tensor operator-(double lhs, const Tensor &rhs);
Tensor operator/(double lhs, const Tensor &rhs);

/// `predicate`: eq ne lt le gt ge.
Tensor compare(llvm::StringRef predicate, const Tensor &lhs, const Tensor &rhs);
Tensor compare(llvm::StringRef predicate, const Tensor &lhs, double rhs);
Tensor select(const Tensor &condition, const Tensor &onTrue, const Tensor &onFalse);
Tensor cast(const Tensor &x, DataType type);

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

/// The product of the extents of dimensions `from` to `to` - 1.
int64_t countOf(const Shape &shape, size_t from, size_t to);
/// first, first + 1, … up to the last of `rank` dimensions.
Shape dimsFrom(int64_t first, int64_t rank);

/// `dim` counted from the front; -1 after an error.
int64_t dimension(const Tensor &x, int64_t dim);

Tensor reshape(const Tensor &x, const Shape &shape);
Tensor broadcastTo(const Tensor &x, const Shape &shape);
/// The shape that both broadcast to; it is an error if there is none.
std::optional<Shape> broadcastShapes(Emitter &emitter, const Shape &lhs, const Shape &rhs);
Tensor transpose(const Tensor &x, llvm::ArrayRef<int64_t> permutation);
/// `x[starts : limits : strides]` in one dimension.
Tensor slice(const Tensor &x, int64_t dim, int64_t start, int64_t limit, int64_t stride = 1);
Tensor concat(llvm::ArrayRef<Tensor> parts, int64_t dim);
Tensor pad(const Tensor &x, const Shape &low, const Shape &high, double value);
Tensor reverse(const Tensor &x, llvm::ArrayRef<int64_t> dims);
/// The index along `dim`, in the given shape and type.
Tensor iota(Emitter &emitter, const Shape &shape, DataType type, int64_t dim);
/// x, or a shape, with dimensions of extent 1 put in, so that `dims` are theirs in the result.
Tensor unsqueeze(const Tensor &x, Shape dims);
std::optional<Shape> unsqueeze(Emitter &emitter, const Shape &shape, Shape dims);
/// A tensor [n] as [n, 1, …], to stand beside dimension `dim` of one of this rank.
Tensor beside(const Tensor &vector, int64_t dim, int64_t rank);

//===----------------------------------------------------------------------===//
// Reductions and contractions
//===----------------------------------------------------------------------===//

/// `name`: sum mean reduce_max reduce_min prod. `keep`: the reduced dimensions stay, with extent 1.
Tensor reduce(llvm::StringRef name, const Tensor &x, Shape dims, bool keep);
/// softmax, log_softmax, cumsum …: an op with the attribute `dim`.
Tensor along(llvm::StringRef name, const Tensor &x, int64_t dim);
/// Of equal rank and leading dimensions, or rhs is one matrix for all of lhs.
Tensor matmul(const Tensor &lhs, const Tensor &rhs, bool transposeLhs = false, bool transposeRhs = false);

/// A linear map along one dimension: out[…, o, …] = Σ over i of x[…, i, …] · matrix[i · extent + o].
Tensor multiplyAlong(const Tensor &x, int64_t dim, int64_t extent, const std::vector<double> &matrix);

} // namespace gpuc::onnx
