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
    - (tf32_C2) It stands at ops of f32 that multiply matrices, or whose definition does. Their operands are rounded to
      TF32 before they are multiplied, where the target has units for that (`gpuc-mixed-precision`).

    - (partition_C1) The attribute `gpuc.partition` is a `#gpuc.partition`.
    - (partition_C2) It stands at a module, at a function over one part, at such a function's arguments, and at ops that
      draw random numbers. Of an argument the first dimension is the rows of a part. What is drawn is drawn for a part's
      rows, wherever they stand: of each part other numbers.

    - (partition_C5) The marks that stood in its place, `gpuc.accumulate`, `gpuc.shards` and `gpuc.per_row`, are refused.

    Each constraint has such a label, which stands in the error message too.

    **A loss is a pair** `(sum, count)`, both `tensor<f32>` or `tensor<f64>`: the recipe divides once, by the count over all
    microbatches and ranks.
  }];
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::func::FuncDialect"];
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
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
def Gpuc_PlaceTensor : Gpuc_TensorOf<AnyTypeOf<[I64, I32, UI8]>,
                                     "i64, i32 or ui8 tensor of static shape (a leading ? is the batch)">;
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

def Gpuc_PartitionAttr : AttrDef<Gpuc_Dialect, "Partition"> {
  let mnemonic = "partition";
  let summary = "How the rows of a batch are cut into parts: #gpuc.partition<microbatches = 4, rows = 8>";
  let description = [{
    The batch is cut into the shares of ranks, each of these into microbatches, one after the other, and these into
    slices, which threads take side by side; `rows` is how many rows are left in a part. Parts are numbered in the order
    of their rows, so that part i begins at row i · rows of the batch. What a part must know of the whole follows from its
    number: which of its rows hold samples, and where its random numbers begin.

    `distributed` ranks are processes of their own, as many as the plan is run with: the function is over the share of one
    of them, whose number is the variable `rank`.

    As `gpuc.partition` it stands at each function that is computed over one part, at those arguments of it that hold the
    part's rows, and at the ops that draw for each of these; and at the module whose train step goes through the parts.

    ```mlir
    #gpuc.partition<microbatches = 4, rows = 8>
    #gpuc.partition<ranks = 2, microbatches = 4, slices = 2, rows = 8>
    ```

    - (partition_C3) ranks, microbatches, slices and rows are at least 1.
    - (partition_C6) Where it is distributed, ranks is 1: how many there are is not known.
    - (partition_C4) There are fewer than 2^31 rows in all: the runtime counts them in i32.
  }];
  let parameters = (ins DefaultValuedParameter<"int64_t", "1">:$ranks, DefaultValuedParameter<"int64_t", "1">:$microbatches,
                        DefaultValuedParameter<"int64_t", "1">:$slices, "int64_t":$rows,
                        DefaultValuedParameter<"bool", "false">:$distributed);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Rows in all; of a distributed one, in the share of a rank.
    int64_t getBatchRows() const { return getRanks() * getMicrobatches() * getSlices() * getRows(); }

    /// The innermost cut, by which one loop goes: into so many parts, side by side or one after the other.
    bool isSideBySide() const { return getSlices() != 1; }
    bool isOverRanks() const { return !isSideBySide() && getMicrobatches() == 1; }
    int64_t getInnermostParts() const {
      return isSideBySide() ? getSlices() : isOverRanks() ? getRanks() : getMicrobatches();
    }

    /// The cut without the innermost one; null where the batch is whole then.
    PartitionAttr withoutInnermost() const;
  }];
}

#endif
