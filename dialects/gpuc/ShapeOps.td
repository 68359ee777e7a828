#ifndef GPUC_SHAPE_OPS
#define GPUC_SHAPE_OPS

include "dialects/gpuc/GpucOpBase.td"

def ReshapeOp : Gpuc_ShapeOp<"reshape", [Differentiable], ["getBytes"]> {
  let summary = "The same elements in row-major order under another shape";
  let arguments = (ins Gpuc_Tensor:$operand);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TransposeOp : Gpuc_ShapeOp<"transpose", [Differentiable, Infer]> {
  let summary = "result dimension i is operand dimension permutation[i]";
  let arguments = (ins Gpuc_Tensor:$operand, DenseI64ArrayAttr:$permutation);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operand `permutation` $permutation attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def BroadcastOp : Gpuc_ShapeOp<"broadcast", [Differentiable]> {
  let summary = "Operand dimension i becomes result dimension dims[i]; along the others it repeats";
  let description = [{
    `dims` is strictly increasing, and the extents it pairs are equal: what repeats is a dimension that the operand
    does not have. A leading `?` of the result is the batch.

    ```mlir
    %1 = gpuc.broadcast %bias dims [1] : tensor<10xf32> to tensor<64x10xf32>
    ```
  }];
  let arguments = (ins Gpuc_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operand `dims` $dims attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def SliceOp : Gpuc_ShapeOp<"slice", [Differentiable, Infer], ["getBytes"]> {
  let summary = "operand[starts : limits : strides]";
  let arguments = (ins Gpuc_Tensor:$operand, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$limits,
                       DenseI64ArrayAttr:$strides);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = [{
    $operand `starts` $starts `limits` $limits `strides` $strides attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def PadOp : Gpuc_ShapeOp<"pad", [Differentiable, Infer]> {
  let summary = "`low` and `high` elements of `value` around the operand, and `interior` ones between its elements";
  let arguments = (ins Gpuc_Tensor:$operand, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DenseI64ArrayAttr:$interior, DefaultValuedAttr<F64Attr, "0.0">:$value);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = [{
    $operand `low` $low `high` $high `interior` $interior attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def ConcatOp : Gpuc_ShapeOp<"concat", [Differentiable, Infer]> {
  let summary = "The operands one after another along a dimension";
  let arguments = (ins Variadic<Gpuc_Tensor>:$operands, I64Attr:$dim);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operands `dim` $dim attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def ReverseOp : Gpuc_ShapeOp<"reverse", [Differentiable, SameOperandsAndResultType]> {
  let summary = "Backwards along `dims`";
  let arguments = (ins Gpuc_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operand `dims` $dims attr-dict `:` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def GatherOp : Gpuc_ShapeOp<"gather", [Differentiable, Infer], ["getBytes"]> {
  let summary = "Slices of the operand along `dim`, chosen by index";
  let description = [{
    The result's shape is the operand's with extent `dim` replaced by the shape of `indices`. An index out of range
    gives zeros, and no gradient flows to it.
  }];
  let arguments = (ins Gpuc_Tensor:$operand, Gpuc_IndexTensor:$indices, I64Attr:$dim);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operand `,` $indices `dim` $dim attr-dict `:` functional-type(operands, results)";
}

def ScatterAddOp : Gpuc_PureOp<"scatter_add", [Differentiable, AllTypesMatch<["init", "result"]>], ["getFlops"]> {
  let summary = "init plus each slice of `updates` at its index along `dim`";
  let description = [{
    The transpose of `gather`: `updates` has the shape of gather(init, indices). Where indices repeat, updates are added
    in row-major order of `indices`. An index out of range drops its slice.
  }];
  let arguments = (ins Gpuc_NumberTensor:$init, Gpuc_IndexTensor:$indices, Gpuc_NumberTensor:$updates, I64Attr:$dim);
  let results = (outs Gpuc_NumberTensor:$result);
  let assemblyFormat = "$init `,` $indices `,` $updates `dim` $dim attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def DynamicSliceOp : Gpuc_ShapeOp<"dynamic_slice", [Differentiable, Infer], ["getBytes"]> {
  let summary = "A window of extents `sizes` that begins at `start`";
  let description = "`start` has one index a dimension; each is clamped so that the window lies inside the operand.";
  let arguments = (ins Gpuc_Tensor:$operand, Gpuc_IndexTensor:$start, DenseI64ArrayAttr:$sizes);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operand `,` $start `sizes` $sizes attr-dict `:` functional-type(operands, results)";
}

def DynamicUpdateSliceOp : Gpuc_ShapeOp<"dynamic_update_slice", [Differentiable, AllTypesMatch<["operand", "result"]>], ["getBytes"]> {
  let summary = "The operand with the window that begins at `start` replaced by `update`";
  let description = "`start` is clamped as in `dynamic_slice`.";
  let arguments = (ins Gpuc_Tensor:$operand, Gpuc_Tensor:$update, Gpuc_IndexTensor:$start);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operand `,` $update `,` $start attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif
