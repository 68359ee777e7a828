#ifndef GPUC_NETWORK_OPS
#define GPUC_NETWORK_OPS

include "dialects/gpuc/GpucOpBase.td"

class Gpuc_AlongDim<string mnemonic> : Gpuc_PureOp<mnemonic, [SameTensorTypes, SameOperandsAndResultType, Differentiable, Composite], ["getFlops"]> {
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
  }];
}

def LogSoftmaxOp : Gpuc_AlongDim<"log_softmax"> {
  let summary = "x - log Σ exp(x) along `dim`";
  let description = [{
    The largest element is taken off first. With y the result, the derivative of y_i by x_j is δ_ij - exp(y_j).

    - (along_dim_C1) dim is a dimension of the operand.
  }];
}

class Gpuc_Loss<string mnemonic, list<Trait> traits> : Gpuc_PureOp<mnemonic, traits # [Composite, Infer,
    DeclareOpInterfaceMethods<LossOpInterface, ["getRows"]>], ["getFlops"]> {
  let results = (outs Gpuc_FloatTensor:$sum, Gpuc_FloatTensor:$count);
}

def CrossEntropyOp : Gpuc_Loss<"cross_entropy", [Differentiable]> {
  let summary = "Sum over rows of -log softmax(logits)[label], and how many rows counted";
  let description = [{
    PyTorch's cross_entropy with reduction="sum", and its label smoothing ε: for a row with C classes
    -(1 - ε) · log p[label] - ε/C · Σ log p with p = softmax(logits) [Szegedy et al. 2016]. The classes are the last
    dimension of the logits; all others are rows. A row does not count if its sample is masked out, its label is
    `ignore_index` or its label is no class; what stands in it, NaN too, then reaches nothing. f16 and bf16 are computed
    and returned as f32. Derivative by the logits: p - target in the rows that count.

    - (cross_entropy_C1) logits have rank 2 or more.
    - (cross_entropy_C2) labels have the shape of the logits without the last dimension.
    - (cross_entropy_C3) mask is an i1 for each sample: the first dimension of the logits.
    - (cross_entropy_C4) 0 ≤ smoothing ≤ 1.
  }];
  let arguments = (ins Gpuc_FloatTensor:$logits, Gpuc_IndexTensor:$labels, Optional<Gpuc_BoolTensor>:$mask,
                       DefaultValuedAttr<F64Attr, "0.0">:$smoothing, DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let assemblyFormat = "$logits `,` $labels (`mask` $mask^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def MseOp : Gpuc_Loss<"mse", [Differentiable]> {
  let summary = "Sum of (prediction - target)², and how many elements counted";
  let description = [{
    PyTorch's mse_loss with reduction="sum". f16 and bf16 are computed and returned as f32. Derivatives:
    ±2 (prediction - target) in the samples that count.

    - (mse_C1) A masked prediction has rank 1 or more.
    - (mse_C2) target has the type of prediction.
    - (mse_C3) mask is an i1 for each sample: the first dimension of the prediction.
  }];
  let arguments = (ins Gpuc_FloatTensor:$prediction, Gpuc_FloatTensor:$target, Optional<Gpuc_BoolTensor>:$mask);
  let assemblyFormat = "$prediction `,` $target (`mask` $mask^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def AccuracyOp : Gpuc_Loss<"accuracy", []> {
  let summary = "How many rows have their largest logit at the label, and how many rows counted";
  let description = [{
    Of equal logits the first counts as the largest, and a NaN before all. Rows count as in `cross_entropy`. No
    derivative.

    - (accuracy_C1) logits have rank 2 or more.
    - (accuracy_C2) labels have the shape of the logits without the last dimension.
    - (accuracy_C3) mask is an i1 for each sample: the first dimension of the logits.
  }];
  let arguments = (ins Gpuc_FloatTensor:$logits, Gpuc_IndexTensor:$labels, Optional<Gpuc_BoolTensor>:$mask,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let assemblyFormat = "$logits `,` $labels (`mask` $mask^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif
