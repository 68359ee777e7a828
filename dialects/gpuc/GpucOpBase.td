#ifndef GPUC_OP_BASE
#define GPUC_OP_BASE

include "dialects/gpuc/GpucDialect.td"
include "dialects/gpuc/GpucInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"

class Gpuc_Op<string mnemonic, list<Trait> traits = []> : Op<Gpuc_Dialect, mnemonic, traits>;

/// An op without effects that knows its cost.
class Gpuc_PureOp<string mnemonic, list<Trait> traits = []>
    : Gpuc_Op<mnemonic, traits # [Pure, DeclareOpInterfaceMethods<CostOpInterface>]>;

def Differentiable : DeclareOpInterfaceMethods<DifferentiableOpInterface>;
def Composite : DeclareOpInterfaceMethods<CompositeOpInterface>;
def Infer : DeclareOpInterfaceMethods<InferTypeOpInterface>;

/// Each element of the result is a function of the elements at the same index in the operands.
def Pointwise : NativeOpTrait<"Pointwise"> {
  let cppNamespace = "::gpuc::ir";
}

class Gpuc_Unary<string mnemonic, Type tensor, list<Trait> traits = []>
    : Gpuc_PureOp<mnemonic, traits # [Pointwise, SameOperandsAndResultType]> {
  let arguments = (ins tensor:$operand);
  let results = (outs tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

class Gpuc_Binary<string mnemonic, Type tensor, list<Trait> traits = []>
    : Gpuc_PureOp<mnemonic, traits # [Pointwise, SameOperandsAndResultType]> {
  let arguments = (ins tensor:$lhs, tensor:$rhs);
  let results = (outs tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

/// Folds the dimensions `dims` of the operand away.
class Gpuc_Reduction<string mnemonic, Type tensor, list<Trait> traits = []>
    : Gpuc_PureOp<mnemonic, traits # [Infer]> {
  let arguments = (ins tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operand `dims` $dims attr-dict `:` functional-type(operands, results)";
}

#endif
