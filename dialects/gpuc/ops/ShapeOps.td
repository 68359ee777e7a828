#ifndef GPUC_SHAPE_OPS
#define GPUC_SHAPE_OPS

include "dialects/gpuc/GpucOpBase.td"

def ReshapeOp : Gpuc_ShapeOp<"reshape", [Differentiable], ["getBytes"]> {
  let summary = "The same elements in row-major order under another shape";
  let description = [{
    Another name for the operand's buffer. Derivative: reshaped back.

    - (reshape_C1) Operand and result have one element type.
    - (reshape_C2) They have equally many elements, the batch counted as one.
    - (reshape_C3) Both have the batch in front, or neither.
  }];
  let arguments = (ins Gpuc_Tensor:$operand);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TransposeOp : Gpuc_ShapeOp<"transpose", [Differentiable, Infer]> {
  let summary = "result dimension i is operand dimension permutation[i]";
  let description = [{
    Derivative: transposed back.

    - (transpose_C1) permutation names each dimension of the operand once.
    - (transpose_C2) The batch stays in front.
  }];
  let arguments = (ins Gpuc_Tensor:$operand, DenseI64ArrayAttr:$permutation);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operand `permutation` $permutation attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def BroadcastOp : Gpuc_ShapeOp<"broadcast", [Differentiable]> {
  let summary = "Operand dimension i becomes result dimension dims[i]; along the others it repeats";
  let description = [{
    What repeats is a dimension that the operand does not have. A leading `?` of the result is the batch. Derivative:
    the sum over what repeats.

    ```mlir
    %1 = gpuc.broadcast %bias dims [1] : tensor<10xf32> to tensor<64x10xf32>
    ```

    - (broadcast_C1) Operand and result have one element type.
    - (broadcast_C2) dims has one entry for each dimension of the operand.
    - (broadcast_C3) dims increase strictly and are dimensions of the result.
    - (broadcast_C4) The extents that dims pairs are equal.
  }];
  let arguments = (ins Gpuc_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operand `dims` $dims attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def SliceOp : Gpuc_ShapeOp<"slice", [Differentiable, Infer], ["getBytes"]> {
  let summary = "operand[starts : limits : strides]";
  let description = [{
    Elements start, start + stride, … below limit. A limit of -1 is the operand's extent. Derivative: padded back with
    zeros.

    - (slice_C1) starts, limits and strides have one entry for each dimension of the operand.
    - (slice_C2) The batch is taken whole: start 0, limit -1, stride 1.
    - (slice_C3) 0 ≤ start ≤ limit ≤ extent.
    - (slice_C4) Strides are at least 1.
  }];
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
  let description = [{
    The extent becomes low + extent + (extent - 1) · interior + high. Derivative: the operand's elements cut out again.

    - (pad_C1) low, high and interior have one entry for each dimension of the operand.
    - (pad_C2) None of them is negative.
    - (pad_C3) The batch is not padded.
    - (pad_C4) Integers are padded with an integer of their type, i1 with 0 or 1.
  }];
  let arguments = (ins Gpuc_Tensor:$operand, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DenseI64ArrayAttr:$interior, DefaultValuedAttr<F64Attr, "0.0">:$value);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = [{
    $operand `low` $low `high` $high `interior` $interior attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// From one of the operand's elements to the next along `dim`; 1 where there is no next.
    int64_t getStep(size_t dim);
  }];
  let hasFolder = 1;
}

def ConcatOp : Gpuc_ShapeOp<"concat", [Differentiable, Infer]> {
  let summary = "The operands one after another along a dimension";
  let description = [{
    Derivative: cut apart again.

    - (concat_C1) There is at least one operand.
    - (concat_C2) dim is a dimension of the first.
    - (concat_C3) It is not the batch.
    - (concat_C4) The operands agree in element type and in all other dimensions.
  }];
  let arguments = (ins Variadic<Gpuc_Tensor>:$operands, I64Attr:$dim);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operands `dim` $dim attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def ReverseOp : Gpuc_ShapeOp<"reverse", [Differentiable, SameTensorTypes, SameOperandsAndResultType]> {
  let summary = "Backwards along `dims`";
  let description = [{
    Derivative: reversed back.

    - (reverse_C1) dims increase strictly and are dimensions of the operand.
    - (reverse_C2) The batch is not among them.
  }];
  let arguments = (ins Gpuc_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operand `dims` $dims attr-dict `:` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def GatherOp : Gpuc_ShapeOp<"gather", [Differentiable, Infer], ["getBytes"]> {
  let summary = "Slices of the operand along `dim`, chosen by index";
  let description = [{
    The result's shape is the operand's with extent `dim` replaced by the shape of `indices`. An index out of range,
    negative ones included, gives zeros, and no gradient flows to it. Derivative: `scatter_add` into zeros.

    - (gather_C1) dim is a dimension of the operand.
    - (gather_C2) The batch is not indexed and leads the result.
  }];
  let arguments = (ins Gpuc_Tensor:$operand, Gpuc_IndexTensor:$indices, I64Attr:$dim);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operand `,` $indices `dim` $dim attr-dict `:` functional-type(operands, results)";
}

def ScatterAddOp : Gpuc_PureOp<"scatter_add", [Differentiable, AllTypesMatch<["init", "result"]>], ["getFlops"]> {
  let summary = "init plus each slice of `updates` at its index along `dim`";
  let description = [{
    The transpose of `gather`: `updates` has the shape of gather(init, indices). Where indices repeat, updates are added
    in row-major order of `indices`. An index out of range, negative ones included, drops its slice. Derivative: the
    cotangent by `init`, `gather` of it by `updates`.

    - (scatter_add_C1) dim is a dimension of init.
    - (scatter_add_C2) The batch is not indexed and leads gather(init, indices).
    - (scatter_add_C3) updates has the type of gather(init, indices).
  }];
  let arguments = (ins Gpuc_NumberTensor:$init, Gpuc_IndexTensor:$indices, Gpuc_NumberTensor:$updates, I64Attr:$dim);
  let results = (outs Gpuc_NumberTensor:$result);
  let assemblyFormat = "$init `,` $indices `,` $updates `dim` $dim attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def DynamicSliceOp : Gpuc_ShapeOp<"dynamic_slice", [Differentiable, Infer], ["getBytes"]> {
  let summary = "A window of extents `sizes` that begins at `start`";
  let description = [{
    `start` has one index a dimension; each is clamped so that the window lies inside the operand. A size of -1 is the
    operand's extent. Derivative: zeros with the cotangent at the window.

    - (dynamic_slice_C1) start has the shape [rank of the operand].
    - (dynamic_slice_C2) sizes has one entry for each dimension of the operand.
    - (dynamic_slice_C3) A size is -1, or between 0 and the extent; of the batch it is -1.
  }];
  let arguments = (ins Gpuc_Tensor:$operand, Gpuc_IndexTensor:$start, DenseI64ArrayAttr:$sizes);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operand `,` $start `sizes` $sizes attr-dict `:` functional-type(operands, results)";
}

def DynamicUpdateSliceOp : Gpuc_ShapeOp<"dynamic_update_slice", [Differentiable, AllTypesMatch<["operand", "result"]>], ["getBytes"]> {
  let summary = "The operand with the window that begins at `start` replaced by `update`";
  let description = [{
    `start` is clamped as in `dynamic_slice`. Derivative: zero in the window by the operand, the window by `update`.

    - (dynamic_update_slice_C1) start has the shape [rank of the operand].
    - (dynamic_update_slice_C2) update has the operand's element type and rank and is nowhere larger.
  }];
  let arguments = (ins Gpuc_Tensor:$operand, Gpuc_Tensor:$update, Gpuc_IndexTensor:$start);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operand `,` $update `,` $start attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

def SortOp : Gpuc_PureOp<"sort", [Differentiable, Infer], ["getFlops"]> {
  let summary = "The elements along `dim` in ascending order, and the indices at which they stood";
  let description = [{
    As `torch.sort(stable=True)`: the order is ascending, or `descending`, and elements that are equal keep their order
    in both. NaN is larger than all else and equal to NaN; -0 equals +0. `values` has the operand's type, `indices` its
    shape in i64. The order of (element, index) is total, so that there is one right result and no bits depend on how
    it is found: by Batcher's merge exchange [Knuth, The Art of Computer Programming 3, Algorithm 5.2.2M], in place.
    FLOPs: n · ⌈log₂ n⌉ comparisons for n elements.

    Derivative: each cotangent of `values` goes to the element that stood there.

    ```mlir
    %values, %indices = gpuc.sort %x dim 1 descending : (tensor<8x50xf32>) -> (tensor<8x50xf32>, tensor<8x50xi64>)
    ```

    - (sort_C1) dim is a dimension of the operand.
    - (sort_C2) It is not the batch.
  }];
  let arguments = (ins Gpuc_NumberTensor:$operand, I64Attr:$dim, UnitAttr:$descending);
  let results = (outs Gpuc_NumberTensor:$values, Gpuc_IndexTensor:$indices);
  let assemblyFormat = [{
    $operand `dim` $dim (`descending` $descending^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def TopKOp : Gpuc_PureOp<"top_k", [Differentiable, Infer], ["getFlops"]> {
  let summary = "The `k` largest elements along `dim`, largest first, and the indices at which they stood";
  let description = [{
    As `torch.topk`: the k largest in descending order or, with `smallest`, the k smallest in ascending order. They are
    the first k that `sort` gives: of equal elements those with lower indices come first, NaN is larger than all else,
    -0 equals +0. (PyTorch leaves the order of equal elements open.) Found with a heap of k elements [Knuth, The Art of
    Computer Programming 3, 5.2.3], in place. FLOPs: n · ⌈log₂ (k + 1)⌉ comparisons for n elements.

    Derivative: each cotangent of `values` goes to the element that was chosen; zero for the others.

    - (top_k_C1) dim is a dimension of the operand.
    - (top_k_C2) It is not the batch.
    - (top_k_C3) 1 ≤ k ≤ the operand's extent there.
  }];
  let arguments = (ins Gpuc_NumberTensor:$operand, I64Attr:$k, I64Attr:$dim, UnitAttr:$smallest);
  let results = (outs Gpuc_NumberTensor:$values, Gpuc_IndexTensor:$indices);
  let assemblyFormat = [{
    $operand `k` $k `dim` $dim (`smallest` $smallest^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

#endif
