//===- ElementTypes.h - ONNX's element types by their numbers ---------------===//
#pragma once

#include "runtime/base/data_type.h"

#include <cstdint>
#include <optional>

namespace gpuc::onnx {

struct ElementType {
  int64_t number;
  const char *name;             ///< FLOAT, STRING, …
  std::optional<DataType> type; ///< None if gpuc has not.
};

ElementType elementType(int64_t number);

} // namespace gpuc::onnx
