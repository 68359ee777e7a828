//===- ElementType.h - The runtime's element types as MLIR's ----------------===//
#pragma once

#include "runtime/base/data_type.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinTypes.h"

namespace gpuc {

/// The MLIR type that holds elements of `type`: both print alike.
inline mlir::Type elementTypeOf(mlir::MLIRContext *context, DataType type) {
  return mlir::parseType(nameOf(type), context);
}

/// And the other way round, of a tensor.
inline DataType dataTypeOf(mlir::Value tensor) {
  std::string name;
  llvm::raw_string_ostream(name) << mlir::getElementTypeOrSelf(tensor);
  return *parseDataType(name);
}

} // namespace gpuc
