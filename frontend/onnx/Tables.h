//===- Tables.h - Tensors that give away that nobody trains them ------------===//
#pragma once

#include "frontend/onnx/reader/Model.h"

namespace gpuc::onnx {

enum class Table {
  none,
  mask,        ///< Added to scores before a softmax: 0, and numbers that end all weight. Or a triangle.
  sines,       ///< Each column a sine or cosine of the position, as positional and rotary tables are.
  progression, ///< Each column an arithmetic or geometric progression, as frequencies and grids are.
};

/// What the values of a tensor of floating point follow, if they follow a rule that no training gives.
Table tableOf(const HostTensor &tensor);
/// "a mask", "a table of sines", …
const char *describe(Table table);

} // namespace gpuc::onnx
