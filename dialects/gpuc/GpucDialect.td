#ifndef GPUC_DIALECT
#define GPUC_DIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"

def Gpuc_Dialect : Dialect {
  let name = "gpuc";
  let cppNamespace = "::gpuc::ir";
  let summary = "Training graphs: tensors and values, no memory, no time";
  let description = [{
    A model in this dialect is a module of `gpuc.variable`s, functions over ranked tensors, and a `gpuc.recipe` that
    says how it is trained. Passes turn it, step by step and always as text that a person can read, into one function
    for the whole training step; after that the `plan` dialect takes over, with memory and time.

    **Tensors** have static shapes. The one exception: a leading `?` is the batch; wherever it stands in a module it is
    the same number, bound by `gpuc-specialize-batch`. Element types are f64 f32 f16 bf16 i64 i32 i8 ui8 i1 (a byte).

    **Ops are pure**, except that `gpuc.assign` gives a variable its value for the next step. `gpuc.read` sees the value
    that the variable had when the step began, wherever in the step it stands.

    **Nothing is broadcast silently**: `gpuc.broadcast` says where. Elementwise ops take operands of one type:

    - (same_type_C1) Operands and result have one type.
    - (same_shape_C1) Operands and result of compare, select, cast and is_finite have one shape.

    - (inferred_C1) Where operands and attributes determine the result's type, it is that.

    - (tf32_C1) The mark `gpuc.tf32` of an op has no value.
    - (tf32_C2) It stands at products, convolutions, attention and linear losses of f32. Their operands are rounded to
      TF32 before they are multiplied, where the target has units for that (`gpuc-mixed-precision`).

    Each constraint has such a label, which stands in the error message too.

    **A loss is a pair** `(sum, count)`, both `tensor<f32>` or `tensor<f64>`: the recipe divides once, by the count over all microbatches and
    ranks.
  }];
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::func::FuncDialect"];
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def Gpuc_Float : AnyTypeOf<[F64, F32, F16, BF16]>;
def Gpuc_Int : AnyTypeOf<[I64, I32, I8, UI8]>;
def Gpuc_Index : AnyTypeOf<[I64, I32]>;
def Gpuc_Number : AnyTypeOf<[Gpuc_Float, Gpuc_Int]>;
def Gpuc_Element : AnyTypeOf<[Gpuc_Number, I1]>;

def HasStaticOrBatchShape : CPred<"::gpuc::ir::hasStaticOrBatchShape($_self)">;

class Gpuc_TensorOf<Type element, string text>
    : Type<And<[HasStaticOrBatchShape, SubstLeaves<"$_self", "::llvm::cast<::mlir::ShapedType>($_self).getElementType()",
                                                   element.predicate>]>,
           text, "::mlir::RankedTensorType">;
def Gpuc_Tensor : Gpuc_TensorOf<Gpuc_Element, "tensor of static shape (a leading ? is the batch)">;
def Gpuc_FloatTensor : Gpuc_TensorOf<Gpuc_Float, "floating-point tensor of static shape (a leading ? is the batch)">;
def Gpuc_NumberTensor : Gpuc_TensorOf<Gpuc_Number, "numeric tensor of static shape (a leading ? is the batch)">;
def Gpuc_IndexTensor : Gpuc_TensorOf<Gpuc_Index, "i32 or i64 tensor of static shape (a leading ? is the batch)">;
def Gpuc_BoolTensor : Gpuc_TensorOf<I1, "i1 tensor of static shape (a leading ? is the batch)">;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

def Gpuc_SpecAttr : AttrDef<Gpuc_Dialect, "Spec"> {
  let mnemonic = "spec";
  let summary = "A name with arguments: adam(lr = 1.0e-3), kaiming_uniform(fan_in = 784)";
  let description = [{
    How initializers, optimizers and schedules are written, in the IR as `NAME(key = value, …)` and on the command line
    as `NAME:key=value,…`. Which names and keys there are is the business of whoever reads the spec. Values are integers
    (i64), decimals (f64, read back to the same bits), true, false, "text", and tuples of these: (0.9, 0.999).

    - (spec_C1) The name is a word: letters, digits and `_`, no digit first.
    - (spec_C2) Keys are words, values of the kinds above.
  }];
  let parameters = (ins StringRefParameter<>:$name, "::mlir::DictionaryAttr":$arguments);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The number under `key`, or `otherwise` if the spec does not give it.
    double getNumber(::llvm::StringRef key, double otherwise) const;
    bool getFlag(::llvm::StringRef key, bool otherwise) const;

    /// `NAME(key = value, …)`, without the attribute's own mnemonic.
    static ::mlir::FailureOr<SpecAttr> parseBare(::mlir::AsmParser &parser);
    void printBare(::mlir::AsmPrinter &printer) const;

    /// From the command line's `NAME:key=value,…`; a pair is written (0.9,0.999).
    static ::mlir::FailureOr<SpecAttr> fromText(::mlir::MLIRContext *context, ::llvm::StringRef text,
                                                std::string &error);
  }];
}
def Gpuc_SpecArrayAttr : TypedArrayAttrBase<Gpuc_SpecAttr, "specs">;

def Gpuc_CheckAttr : AttrDef<Gpuc_Dialect, "Check"> {
  let mnemonic = "check";
  let summary = "Where values that are NaN or infinite are counted: #gpuc.check<op = \"log\", layer = \"head\", …>";
  let description = [{
    The op that may make them of finite ones, its layer, its place in the model's file, and whether it stands in the
    backward pass of what is there. `op` is `input` or `variable` for what comes in with one; `layer` is its name then.
    `gpuc-check-numerics` puts one for each element of the result `nonfinite` into that result's attribute `gpuc.checks`.

    ```mlir
    #gpuc.check<op = "log", layer = "head", location = "model.mlir:12:5", backward = false>
    ```
  }];
  let parameters = (ins StringRefParameter<>:$op, StringRefParameter<>:$layer, StringRefParameter<>:$location,
                        "bool":$backward);
  let assemblyFormat = "`<` struct(params) `>`";
}
def Gpuc_CheckArrayAttr : TypedArrayAttrBase<Gpuc_CheckAttr, "checks">;

#endif
