//===- Embedding.cpp - Tokens and places as vectors -------------------------===//

#include "frontend/builder/Embedding.h"
#include "frontend/builder/Graph.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace gpuc::nn {

std::string Embedding::describe() const { return llvm::formatv("Embedding({0}, {1})", count_, width_); }

Tensor Embedding::table(const Tensor &user) {
  return parameter(user, "weight", {count_, width_}, initializer_);
}

Tensor Embedding::forward(const Tensor &ids) {
  if (count_ < 1 || width_ < 1)
    return ids.graph()->fail(describe() + " needs at least one row and one column");
  if (ids.dtype() != DataType::i32 && ids.dtype() != DataType::i64)
    return ids.graph()->fail(
        llvm::formatv("{0} takes i32 or i64 tokens, got {1}", describe(), nameOf(ids.dtype())));
  return gather(table(ids), ids);
}

std::string PositionalEncoding::describe() const {
  return "PositionalEncoding(" + detail::numberText(p_) + ")";
}

Tensor PositionalEncoding::forward(const Tensor &x) {
  if (x.rank() != 3 || x.shape()[1] == kBatch || x.shape()[2] % 2 != 0)
    return x.graph()->fail(describe() + " takes [batch, length, width] with an even width, got " +
                           toString(x.shape()));
  const int64_t length = x.shape()[1], width = x.shape()[2];
  std::vector<double> waves; // (length, width)
  for (int64_t place = 0; place < length; ++place)
    for (int64_t i = 0; i < width; ++i) {
      const double angle = place * std::exp(-std::log(10000.0) * (i / 2 * 2) / width);
      waves.push_back(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  Tensor y = x + constant(x, {length, width}, waves);
  return p_ > 0 ? dropout(y, p_) : y;
}

} // namespace gpuc::nn
