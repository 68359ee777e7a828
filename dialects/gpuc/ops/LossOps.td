#ifndef GPUC_LOSS_OPS
#define GPUC_LOSS_OPS

include "dialects/gpuc/GpucOpBase.td"

class Gpuc_Loss<string mnemonic, list<Trait> traits = []> : Gpuc_PureOp<mnemonic, traits # [Composite, Infer,
    LossOpInterface], ["getFlops"]> {
  let results = (outs Gpuc_FloatTensor:$sum, Gpuc_FloatTensor:$count);
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// By class
//===----------------------------------------------------------------------===//

def CrossEntropyOp : Gpuc_Loss<"cross_entropy", [DifferentiableByOperands, AttrSizedOperandSegments]> {
  let summary = "Sum over rows of -log softmax(logits)[label], and how many rows counted";
  let description = [{
    PyTorch's cross_entropy with reduction="sum", its label smoothing ε [Szegedy et al. 2016] and its weight w of each
    class (1 if there is none): for a row with C classes and p = softmax(logits),
    -(1 - ε) · w[label] · log p[label] - ε/C · Σ_c w[c] · log p[c]. A row counts w[label]. The classes are the last
    dimension of the logits; all others are rows. A row does not count if its sample is masked out, its label is
    `ignore_index` or its label is no class; what stands in it, NaN too, then reaches nothing. f16 and bf16 are computed
    and returned as f32. Derivative by the logits in the rows that count: Σ a · p - a with a the factors of -log p.
    weight is constant: no derivative passes to it.

    - (cross_entropy_C1) logits have rank 2 or more, and there is at least one class.
    - (cross_entropy_C2) labels have the shape of the logits without the last dimension.
    - (cross_entropy_C3) mask is an i1 for each sample: the first dimension of the logits.
    - (cross_entropy_C4) 0 ≤ smoothing ≤ 1.
    - (cross_entropy_C5) weight is one number of the type of the logits for each class.
  }];
  let arguments = (ins Gpuc_FloatTensor:$logits, Gpuc_IndexTensor:$labels, Optional<Gpuc_FloatTensor>:$weight,
                       Optional<Gpuc_BoolTensor>:$mask, DefaultValuedAttr<F64Attr, "0.0">:$smoothing,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let assemblyFormat = [{
    $logits `,` $labels (`weight` $weight^)? (`mask` $mask^)? attr-dict `:` functional-type(operands, results)
  }];
}

def NllOp : Gpuc_Loss<"nll", [Differentiable, AttrSizedOperandSegments]> {
  let summary = "Sum over rows of -log_probabilities[label], and how many rows counted";
  let description = [{
    PyTorch's nll_loss with reduction="sum": `cross_entropy` without smoothing of what is a logarithm of probabilities
    already. With a weight w for each class a row gives -w[label] · log_probabilities[label] and counts w[label]. Rows
    count as in `cross_entropy`. Derivative: -w[label] at the label in the rows that count. weight is constant: no
    derivative passes to it.

    - (nll_C1) log_probabilities have rank 2 or more, and there is at least one class.
    - (nll_C2) labels have their shape without the last dimension.
    - (nll_C3) mask is an i1 for each sample: their first dimension.
    - (nll_C4) weight is one number of their type for each class.
  }];
  let arguments = (ins Gpuc_FloatTensor:$log_probabilities, Gpuc_IndexTensor:$labels,
                       Optional<Gpuc_FloatTensor>:$weight, Optional<Gpuc_BoolTensor>:$mask,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let assemblyFormat = [{
    $log_probabilities `,` $labels (`weight` $weight^)? (`mask` $mask^)? attr-dict `:`
    functional-type(operands, results)
  }];
}

def AccuracyOp : Gpuc_Loss<"accuracy"> {
  let summary = "How many rows have their largest logit at the label, and how many rows counted";
  let description = [{
    Of equal logits the first counts as the largest, and a NaN before all. Rows count as in `cross_entropy`. No
    derivative.

    - (accuracy_C1) logits have rank 2 or more, and there is at least one class.
    - (accuracy_C2) labels have the shape of the logits without the last dimension.
    - (accuracy_C3) mask is an i1 for each sample: the first dimension of the logits.
  }];
  let arguments = (ins Gpuc_FloatTensor:$logits, Gpuc_IndexTensor:$labels, Optional<Gpuc_BoolTensor>:$mask,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let assemblyFormat = "$logits `,` $labels (`mask` $mask^)? attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// By element
//===----------------------------------------------------------------------===//

/// A loss of each pair of elements of a prediction and a target. Every such loss has the constraints
/// - (element_loss_C1) A masked prediction has rank 1 or more.
/// - (element_loss_C2) target has the type of prediction.
/// - (element_loss_C3) mask is an i1 for each sample: the first dimension of the prediction.
class Gpuc_ElementLoss<string mnemonic> : Gpuc_Loss<mnemonic, [DifferentiableByOperands]> {
  dag inputs = (ins Gpuc_FloatTensor:$prediction, Gpuc_FloatTensor:$target, Optional<Gpuc_BoolTensor>:$mask);
  let arguments = inputs;
  let assemblyFormat = "$prediction `,` $target (`mask` $mask^)? attr-dict `:` functional-type(operands, results)";
}

def MseOp : Gpuc_ElementLoss<"mse"> {
  let summary = "Sum of (prediction - target)², and how many elements counted";
  let description = [{
    PyTorch's mse_loss with reduction="sum". f16 and bf16 are computed and returned as f32. Derivatives:
    ±2 (prediction - target) in the samples that count.

    - (element_loss_C1) A masked prediction has rank 1 or more.
    - (element_loss_C2) target has the type of prediction.
    - (element_loss_C3) mask is an i1 for each sample: the first dimension of the prediction.
  }];
}

def L1Op : Gpuc_ElementLoss<"l1"> {
  let summary = "Sum of |prediction - target|, and how many elements counted";
  let description = [{
    PyTorch's l1_loss with reduction="sum". f16 and bf16 are computed and returned as f32. Derivatives:
    ±sign(prediction - target) in the samples that count, 0 where the two are equal.

    - (element_loss_C1) A masked prediction has rank 1 or more.
    - (element_loss_C2) target has the type of prediction.
    - (element_loss_C3) mask is an i1 for each sample: the first dimension of the prediction.
  }];
}

def HuberOp : Gpuc_ElementLoss<"huber"> {
  let summary = "Sum of d²/2 where |d| ≤ delta, else delta · (|d| - delta/2), of d = prediction - target, and how many";
  let description = [{
    PyTorch's huber_loss with reduction="sum" [Huber 1964]; its smooth_l1_loss is this divided by beta = delta. f16 and
    bf16 are computed and returned as f32. Derivatives: ± d limited to [-delta, delta] in the samples that count.

    - (element_loss_C1) A masked prediction has rank 1 or more.
    - (element_loss_C2) target has the type of prediction.
    - (element_loss_C3) mask is an i1 for each sample: the first dimension of the prediction.
    - (huber_C1) delta is greater than 0.
  }];
  let arguments = !con(inputs, (ins DefaultValuedAttr<F64Attr, "1.0">:$delta));
}

def BceWithLogitsOp : Gpuc_Loss<"bce_with_logits", [DifferentiableByOperands, AttrSizedOperandSegments]> {
  let summary = "Sum of the binary cross entropy of sigmoid(prediction), and how many elements counted";
  let description = [{
    PyTorch's binary_cross_entropy_with_logits with reduction="sum": with x the prediction (a logit), t the target and p
    the weight of what is positive (1 if there is none), (1 - t) · x + (1 + (p - 1) · t) · softplus(-x), where
    softplus(-x) = log(1 + exp(-|x|)) + max(-x, 0) does not overflow. `positive_weight` is broadcast to the prediction,
    aligned at the last dimension, where its extent is 1 or it has no dimension. f16 and bf16 are computed and returned
    as f32. Where an infinite x meets a factor of 0 or its own negative the result is NaN, as in PyTorch.

    Derivatives in the samples that count: by x (1 - t) - (1 + (p - 1) · t) · sigmoid(-x), by t
    (p - 1) · softplus(-x) - x; p is constant: no derivative passes to it.

    - (element_loss_C1) A masked prediction has rank 1 or more.
    - (element_loss_C2) target has the type of prediction.
    - (element_loss_C3) mask is an i1 for each sample: the first dimension of the prediction.
    - (bce_with_logits_C1) positive_weight is broadcast to the prediction and has its element type.
  }];
  let arguments = (ins Gpuc_FloatTensor:$prediction, Gpuc_FloatTensor:$target,
                       Optional<Gpuc_FloatTensor>:$positive_weight, Optional<Gpuc_BoolTensor>:$mask);
  let assemblyFormat = [{
    $prediction `,` $target (`positive_weight` $positive_weight^)? (`mask` $mask^)? attr-dict `:`
    functional-type(operands, results)
  }];
}

#endif
