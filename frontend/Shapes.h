//===- Shapes.h - Shapes of tensors, and how they are broadcast -------------===//
//
// As in PyTorch and ONNX: aligned at the last dimension; an extent of 1, or a dimension that is not there,
// repeats.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace gpuc {

/// The extent of the first dimension of whatever has one row a sample; `?` in the IR.
inline constexpr int64_t kBatch = std::numeric_limits<int64_t>::min();

using Shape = std::vector<int64_t>;

/// "[?, 1, 28, 28]".
inline std::string toString(const Shape &shape) {
  std::string text = "[";
  for (int64_t extent : shape)
    text += (text.size() > 1 ? ", " : "") + (extent == kBatch ? "?" : std::to_string(extent));
  return text + "]";
}

/// The shape that both broadcast to, if there is one.
inline std::optional<Shape> broadcastShapes(const Shape &lhs, const Shape &rhs) {
  Shape shape = lhs.size() >= rhs.size() ? lhs : rhs;
  const Shape &shorter = lhs.size() >= rhs.size() ? rhs : lhs;
  for (size_t i = 1; i <= shorter.size(); ++i) {
    int64_t &extent = shape[shape.size() - i], other = shorter[shorter.size() - i];
    if (extent == 1)
      extent = other;
    else if (other != 1 && other != extent)
      return std::nullopt;
  }
  return shape;
}

/// What gpuc.broadcast takes, which repeats along dimensions that its operand does not have.
struct Repetition {
  Shape kept; ///< The operand without the extents of 1 that repeat.
  Shape dims; ///< Where these stand in the result.
};

/// How `from` repeats to `to`; none if an extent is neither 1 nor equal.
inline std::optional<Repetition> repetitionOf(const Shape &from, const Shape &to) {
  if (from.size() > to.size())
    return std::nullopt;
  Repetition made;
  const size_t lead = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == to[lead + i]) {
      made.kept.push_back(from[i]);
      made.dims.push_back(lead + i);
    } else if (from[i] != 1) {
      return std::nullopt;
    }
  }
  return made;
}

} // namespace gpuc
