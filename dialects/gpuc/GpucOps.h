//===- GpucOps.h - The ops, attributes and interfaces of the gpuc dialect ---===//
#pragma once

#include "dialects/gpuc/GpucDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/gpuc/GpucEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/gpuc/GpucAttributes.h.inc"

#include "dialects/gpuc/GpucInterfaces.h.inc"

namespace gpuc::ir {

/// Each element of the result is a function of the elements at the same index in the operands.
template <typename ConcreteType>
class Pointwise : public mlir::OpTrait::TraitBase<ConcreteType, Pointwise> {};

} // namespace gpuc::ir

#define GET_OP_CLASSES
#include "dialects/gpuc/GpucOps.h.inc"
