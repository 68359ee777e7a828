#ifndef GPUC_REDUCE_OPS
#define GPUC_REDUCE_OPS

include "dialects/gpuc/GpucOpBase.td"

def SumOp : Gpuc_Reduction<"sum", Gpuc_NumberTensor, [Differentiable]> {
  let summary = "Sum over `dims`";
  let description = [{
    The order of the additions depends on shape and target alone. Over no elements: 0. Integers wrap around.
    Derivative: 1 for each element.

    - (reduction_C1) dims increase strictly and are dimensions of the operand.
  }];
  let hasFolder = 1;
}

def MeanOp : Gpuc_Reduction<"mean", Gpuc_FloatTensor, [Differentiable, Composite]> {
  let summary = "Sum over `dims` divided by the number of elements";
  let description = [{
    If the batch is among dims it must be bound before the op is decomposed or differentiated.

    - (reduction_C1) dims increase strictly and are dimensions of the operand.
    - (reduction_C2) None of dims has extent 0.
  }];
}

def ReduceMaxOp : Gpuc_Reduction<"reduce_max", Gpuc_NumberTensor, [Differentiable]> {
  let summary = "Largest over `dims`; NaN if any is";
  let description = [{
    Derivative: shared evenly among all elements that equal the result, as PyTorch's amax.

    - (reduction_C1) dims increase strictly and are dimensions of the operand.
    - (reduction_C2) None of dims has extent 0.
  }];
}

def ReduceMinOp : Gpuc_Reduction<"reduce_min", Gpuc_NumberTensor, [Differentiable]> {
  let summary = "Smallest over `dims`; NaN if any is";
  let description = [{
    Derivative: shared evenly among all elements that equal the result, as PyTorch's amin.

    - (reduction_C1) dims increase strictly and are dimensions of the operand.
    - (reduction_C2) None of dims has extent 0.
  }];
}

def ProdOp : Gpuc_Reduction<"prod", Gpuc_NumberTensor, [Differentiable]> {
  let summary = "Product over `dims`";
  let description = [{
    Over no elements: 1. Derivative by an element: the product of the others, right at zeros too, in every order.

    - (reduction_C1) dims increase strictly and are dimensions of the operand.
  }];
}

def ArgmaxOp : Gpuc_PureOp<"argmax", [Infer], ["getFlops"]> {
  let summary = "Index of the first largest element along `dim`; the first NaN's if there is one";
  let description = [{
    The index is an i64. No derivative.

    - (argmax_C1) dim is a dimension of the operand.
    - (argmax_C2) It has at least one element.
  }];
  let arguments = (ins Gpuc_NumberTensor:$operand, I64Attr:$dim);
  let results = (outs Gpuc_IndexTensor:$result);
  let assemblyFormat = "$operand `dim` $dim attr-dict `:` functional-type(operands, results)";
}

def CumsumOp : Gpuc_PureOp<"cumsum", [Differentiable, SameTensorTypes, SameOperandsAndResultType]> {
  let summary = "Running sum along `dim`, each element included";
  let description = [{
    Derivative by an element: the sum of the cotangents from it to the end.

    - (cumsum_C1) dim is a dimension of the operand.
  }];
  let arguments = (ins Gpuc_NumberTensor:$operand, I64Attr:$dim);
  let results = (outs Gpuc_NumberTensor:$result);
  let assemblyFormat = "$operand `dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif
