#ifndef GPUC_OP_BASE
#define GPUC_OP_BASE

include "dialects/gpuc/GpucDialect.td"
include "dialects/gpuc/GpucInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"

class Gpuc_Op<string mnemonic, list<Trait> traits = []> : Op<Gpuc_Dialect, mnemonic, traits>;

/// An op without effects that knows its cost; `costs` are the methods of CostOpInterface that it defines itself.
class Gpuc_PureOp<string mnemonic, list<Trait> traits = [], list<string> costs = []>
    : Gpuc_Op<mnemonic, traits # [Pure, DeclareOpInterfaceMethods<CostOpInterface, costs>]>;

/// An op that moves elements and computes nothing.
class Gpuc_ShapeOp<string mnemonic, list<Trait> traits = [], list<string> costs = []>
    : Gpuc_PureOp<mnemonic, traits, costs # ["getFlops"]> {
  let extraClassDefinition = "int64_t $cppClass::getFlops() { return 0; }";
}

def Differentiable : DeclareOpInterfaceMethods<DifferentiableOpInterface, ["getResiduals"]>;
/// The VJP reads the operands, all of them.
def DifferentiableByOperands : DeclareOpInterfaceMethods<DifferentiableOpInterface>;
def Composite : DeclareOpInterfaceMethods<CompositeOpInterface>;

/// The op, or its definition, multiplies matrices.
def MultipliesMatrices : NativeOpTrait<"MultipliesMatrices"> {
  let cppNamespace = "::gpuc::ir";
}

/// A product; `methods` are those of ProductOpInterface that it defines itself.
class Product<list<string> methods = []>
    : TraitList<[MultipliesMatrices, DeclareOpInterfaceMethods<ProductOpInterface, methods>]>;

/// Result types follow from the operands: `inferTypes` gives them, or says why there are none. Verified before MLIR's own
/// check, which would add a second, empty message.
def InferredTypes : NativeOpTrait<"InferredTypes", [], [{
  static ::mlir::FailureOr<::gpuc::ir::Types> inferTypes(::std::optional<::mlir::Location> location, Adaptor adaptor);
}], [{
  ::llvm::LogicalResult $cppClass::inferReturnTypes(
      ::mlir::MLIRContext *, ::std::optional<::mlir::Location> location, ::mlir::ValueRange operands,
      ::mlir::DictionaryAttr attributes, ::mlir::OpaqueProperties properties, ::mlir::RegionRange regions,
      ::llvm::SmallVectorImpl<::mlir::Type> &types) {
    auto inferred = inferTypes(location, Adaptor(operands, attributes, properties, regions));
    if (::mlir::succeeded(inferred))
      types.assign(*inferred);
    return inferred;
  }
}]> {
  let cppNamespace = "::gpuc::ir";
}
def Infer : TraitList<[InferredTypes, DeclareOpInterfaceMethods<InferTypeOpInterface>]>;

/// Each element of the result is a function of the elements at the same index in the operands.
def Pointwise : NativeOpTrait<"Pointwise"> {
  let cppNamespace = "::gpuc::ir";
}

/// Verifiers that name the operand and both types; MLIR's own traits of like names stand beside them for inference.
def SameTensorTypes : NativeOpTrait<"SameTensorTypes"> {
  let cppNamespace = "::gpuc::ir";
}
def SameTensorShapes : NativeOpTrait<"SameTensorShapes"> {
  let cppNamespace = "::gpuc::ir";
}

class Gpuc_Unary<string mnemonic, Type tensor, list<Trait> traits = []>
    : Gpuc_PureOp<mnemonic, traits # [Pointwise, SameTensorTypes, SameOperandsAndResultType]> {
  let arguments = (ins tensor:$operand);
  let results = (outs tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

class Gpuc_Binary<string mnemonic, Type tensor, list<Trait> traits = []>
    : Gpuc_PureOp<mnemonic, traits # [Pointwise, SameTensorTypes, SameOperandsAndResultType]> {
  let arguments = (ins tensor:$lhs, tensor:$rhs);
  let results = (outs tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

/// Folds the dimensions `dims` of the operand away. Every reduction has the constraints
/// - (reduction_C1) dims increase strictly and are dimensions of the operand.
/// - (reduction_C2) mean, reduce_max, reduce_min: there is at least one element to reduce along each of dims.
class Gpuc_Reduction<string mnemonic, Type tensor, list<Trait> traits = []>
    : Gpuc_PureOp<mnemonic, traits # [Infer], ["getFlops"]> {
  let arguments = (ins tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operand `dims` $dims attr-dict `:` functional-type(operands, results)";
}

#endif
