#ifndef GPUC_NETWORK_OPS
#define GPUC_NETWORK_OPS

include "dialects/gpuc/GpucOpBase.td"

class Gpuc_AlongDim<string mnemonic>
    : Gpuc_PureOp<mnemonic, [SameTensorTypes, SameOperandsAndResultType, Differentiable, Composite], ["getFlops"]> {
  let arguments = (ins Gpuc_FloatTensor:$operand, I64Attr:$dim);
  let results = (outs Gpuc_FloatTensor:$result);
  let assemblyFormat = "$operand `dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def SoftmaxOp : Gpuc_AlongDim<"softmax"> {
  let summary = "exp(x) / Σ exp(x) along `dim`";
  let description = [{
    The largest element is taken off first, so that nothing overflows. NaN, ∞ or -∞ alone along dim make all of it NaN.
    With y the result, the derivative of y_i by x_j is y_i (δ_ij - y_j).

    - (along_dim_C1) dim is a dimension of the operand.
    - (along_dim_C2) It has at least one element.
  }];
}

def LogSoftmaxOp : Gpuc_AlongDim<"log_softmax"> {
  let summary = "x - log Σ exp(x) along `dim`";
  let description = [{
    The largest element is taken off first. With y the result, the derivative of y_i by x_j is δ_ij - exp(y_j).

    - (along_dim_C1) dim is a dimension of the operand.
    - (along_dim_C2) It has at least one element.
  }];
}

#endif
