#ifndef GPUC_REDUCE_OPS
#define GPUC_REDUCE_OPS

include "dialects/gpuc/GpucOpBase.td"

def SumOp : Gpuc_Reduction<"sum", Gpuc_NumberTensor, [Differentiable]> { let summary = "Sum over `dims`"; let hasFolder = 1; }
def MeanOp : Gpuc_Reduction<"mean", Gpuc_FloatTensor, [Differentiable, Composite]> { let summary = "Sum over `dims` divided by the number of elements"; }
def ReduceMaxOp : Gpuc_Reduction<"reduce_max", Gpuc_NumberTensor, [Differentiable]> { let summary = "Largest over `dims`; NaN if any is"; }
def ReduceMinOp : Gpuc_Reduction<"reduce_min", Gpuc_NumberTensor, [Differentiable]> { let summary = "Smallest over `dims`; NaN if any is"; }
def ProdOp : Gpuc_Reduction<"prod", Gpuc_NumberTensor, [Differentiable]> { let summary = "Product over `dims`"; }

def ArgmaxOp : Gpuc_PureOp<"argmax", [Infer], ["getFlops"]> {
  let summary = "Index of the first largest element along `dim`; the first NaN's if there is one";
  let arguments = (ins Gpuc_NumberTensor:$operand, I64Attr:$dim);
  let results = (outs Gpuc_IndexTensor:$result);
  let assemblyFormat = "$operand `dim` $dim attr-dict `:` functional-type(operands, results)";
}

def CumsumOp : Gpuc_PureOp<"cumsum", [Differentiable, SameTensorTypes, SameOperandsAndResultType]> {
  let summary = "Running sum along `dim`, each element included";
  let arguments = (ins Gpuc_NumberTensor:$operand, I64Attr:$dim);
  let results = (outs Gpuc_NumberTensor:$result);
  let assemblyFormat = "$operand `dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif
