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

/// The op, or its definition, multiplies matrices.
template <typename ConcreteType>
class MultipliesMatrices : public mlir::OpTrait::TraitBase<ConcreteType, MultipliesMatrices> {};

/// Of an op's results.
using Types = llvm::SmallVector<mlir::Type>;

/// `batch` products of m x k and k x n elements.
struct ProductExtents {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool operator==(const ProductExtents &) const = default;
};

/// `value` as a number of the element type.
mlir::TypedAttr splatNumber(mlir::Type element, double value);

/// Dense elements that are all one number become that number, so that a constant has one form only.
mlir::Attribute canonicalConstant(mlir::Attribute value);

/// What one of so many ranks has of a tensor: see gpuc.reduce_scatter.
mlir::RankedTensorType shareOf(mlir::RankedTensorType whole, int64_t ranks);

/// A spec without its mnemonic, in assembly formats: custom<Spec>.
mlir::ParseResult parseSpec(mlir::OpAsmParser &parser, SpecAttr &spec);
void printSpec(mlir::OpAsmPrinter &printer, mlir::Operation *op, SpecAttr spec);

/// An op that needs several 32-bit draws for an element takes draw k from id `id + k * randomDrawStride`.
constexpr int64_t randomDraws = 4;
constexpr int64_t randomDrawStride = int64_t(1) << 28;

mlir::LogicalResult verifyInferredTypes(mlir::Operation *op, mlir::TypeRange inferred);
mlir::LogicalResult verifySameTensorTypes(mlir::Operation *op);
mlir::LogicalResult verifySameTensorShapes(mlir::Operation *op);

/// The types of the results can be inferred from operands and attributes.
template <typename ConcreteType>
class InferredTypes : public mlir::OpTrait::TraitBase<ConcreteType, InferredTypes> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) {
    llvm::SmallVector<mlir::Type> types;
    if (mlir::failed(ConcreteType::inferReturnTypes(op->getContext(), op->getLoc(), op->getOperands(),
                                                    op->getDiscardableAttrDictionary(),
                                                    op->getPropertiesStorage(), op->getRegions(), types)))
      return mlir::failure();
    if (ConcreteType::isCompatibleReturnTypes(types, op->getResultTypes()))
      return mlir::success();
    return verifyInferredTypes(op, types);
  }
};

/// Operands and results are of one type.
template <typename ConcreteType>
class SameTensorTypes : public mlir::OpTrait::TraitBase<ConcreteType, SameTensorTypes> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) { return verifySameTensorTypes(op); }
};

/// Operands and results are of one shape.
template <typename ConcreteType>
class SameTensorShapes : public mlir::OpTrait::TraitBase<ConcreteType, SameTensorShapes> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) { return verifySameTensorShapes(op); }
};

} // namespace gpuc::ir

#define GET_OP_CLASSES
#include "dialects/gpuc/GpucOps.h.inc"
