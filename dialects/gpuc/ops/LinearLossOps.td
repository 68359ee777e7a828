#ifndef GPUC_LINEAR_LOSS_OPS
#define GPUC_LINEAR_LOSS_OPS

include "dialects/gpuc/GpucOpBase.td"

/// What is counted of logits that a linear layer makes, a chunk of rows at a time: the logits are never stored whole.
class Gpuc_LinearLoss<string mnemonic, list<Trait> traits = []>
    : Gpuc_PureOp<mnemonic, traits # [Composite, Infer, AttrSizedOperandSegments, MultipliesMatrices], ["getFlops"]> {
  dag layer = (ins Gpuc_FloatTensor:$hidden, Gpuc_FloatTensor:$weight, Optional<Gpuc_FloatTensor>:$bias,
                   Gpuc_IndexTensor:$labels);
  dag mask = (ins Optional<Gpuc_BoolTensor>:$mask);
  dag ignored = (ins DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  dag chunked = (ins OptionalAttr<I64Attr>:$chunk);
  let hasVerifier = 1;
}

class Gpuc_LinearCrossEntropy<string mnemonic, list<Trait> traits>
    : Gpuc_LinearLoss<mnemonic, traits # [DifferentiableByOperands]> {
  let arguments = !con(layer, (ins Optional<Gpuc_FloatTensor>:$class_weight), mask,
                       (ins DefaultValuedAttr<F64Attr, "0.0">:$smoothing), ignored, chunked);
  let assemblyFormat = [{
    $hidden `,` $weight (`bias` $bias^)? `labels` $labels (`class_weight` $class_weight^)? (`mask` $mask^)?
    (`chunk` $chunk^)? attr-dict `:` functional-type(operands, results)
  }];
}

def LinearCrossEntropyOp : Gpuc_LinearCrossEntropy<"linear_cross_entropy", [LossOpInterface]> {
  let summary = "cross_entropy of hidden · weightᵀ + bias, without ever holding all the logits";
  let description = [{
    `cross_entropy` with logits [rows, classes] that a linear layer makes of hidden [rows, features], weight [classes,
    features] and bias [classes] (0 if there is none); smoothing, ignore_index, class_weight and mask are those of
    `cross_entropy`, and so are sum and count. All dimensions of hidden but the last are rows. What stands in a row that
    does not count reaches neither sum nor count, and no other row's gradient; the gradient of weight it reaches as in a
    linear layer (0 · NaN).

    The definition is a `scan` over chunks of rows, so that the logits of one chunk are all that is there at a time [Hsu
    et al. 2024, "Liger Kernel", arXiv:2410.10989]. `chunk` says how many rows that are at most. If it is not given: as
    many as have 512 KiB of logits, which a cache holds, but 256 at least, below which a product spends its time on
    reading and writing the gradient of weight. Rows are cut into as few chunks as that allows, of equal size; if no
    such number of up to twice as many chunks, or 1,024 more, divides them, the last is padded with rows that do not
    count. Rows that fit into one chunk are computed without a scan. 8,192 rows of 50,257 classes in f32 take 32 chunks,
    each 3% of the logits.

    The VJP is `linear_cross_entropy_gradient`, which computes sum and count once more from the same logits: where both
    stand in one block with the same operands, this op is replaced by the other's results, so that a training step takes
    three products, as many as with stored logits.

    ```mlir
    %sum, %count = gpuc.linear_cross_entropy %h, %w labels %labels
        : (tensor<?x64x128xf32>, tensor<256x128xf32>, tensor<?x64xi32>) -> (tensor<f32>, tensor<f32>)
    ```

    - (linear_cross_entropy_C1) hidden has rank 2 or more, weight rank 2; they have one element type, and in their last
      dimension the same number of features; features and classes are at least 1.
    - (linear_cross_entropy_C2) bias is one number of that type for each class.
    - (linear_cross_entropy_C3) labels have the shape of hidden without the last dimension.
    - (linear_cross_entropy_C4) mask is an i1 for each sample: the first dimension of hidden.
    - (linear_cross_entropy_C5) class_weight is one number of that type for each class.
    - (linear_cross_entropy_C6) 0 ≤ smoothing ≤ 1.
    - (linear_cross_entropy_C7) chunk is at least 1.
  }];
  let results = (outs Gpuc_FloatTensor:$sum, Gpuc_FloatTensor:$count);
  let hasCanonicalizer = 1;
}

def LinearCrossEntropyGradientOp : Gpuc_LinearCrossEntropy<"linear_cross_entropy_gradient", []> {
  let summary = "linear_cross_entropy, and the gradients of its sum";
  let description = [{
    Made by the VJP of `linear_cross_entropy`: sum and count, and the derivatives of sum by hidden, weight and, if there
    is one, bias, in their types. With D [rows, classes] the derivative by the logits (see `cross_entropy`) those are
    D · weight, Dᵀ · hidden and Σ D over the rows; the last two are added up over the chunks, f16 and bf16 as f32.
    Derivatives of these go through the definition in one chunk: who takes them holds the logits.

    - (linear_cross_entropy_gradient_C1) operands and attributes are those of a `linear_cross_entropy`.
  }];
  let results = (outs Gpuc_FloatTensor:$sum, Gpuc_FloatTensor:$count, Gpuc_FloatTensor:$hidden_gradient,
                      Gpuc_FloatTensor:$weight_gradient, Optional<Gpuc_FloatTensor>:$bias_gradient);
}

def LinearAccuracyOp : Gpuc_LinearLoss<"linear_accuracy", [LossOpInterface]> {
  let summary = "accuracy of hidden · weightᵀ + bias, without ever holding all the logits";
  let description = [{
    `accuracy` of the logits of a linear layer, in chunks as `linear_cross_entropy`. No derivative.

    - (linear_accuracy_C1) hidden has rank 2 or more, weight rank 2; they have one element type, and in their last
      dimension the same number of features; features and classes are at least 1.
    - (linear_accuracy_C2) bias is one number of that type for each class.
    - (linear_accuracy_C3) labels have the shape of hidden without the last dimension.
    - (linear_accuracy_C4) mask is an i1 for each sample: the first dimension of hidden.
    - (linear_accuracy_C5) chunk is at least 1.
  }];
  let arguments = !con(layer, mask, ignored, chunked);
  let results = (outs Gpuc_FloatTensor:$sum, Gpuc_FloatTensor:$count);
  let assemblyFormat = [{
    $hidden `,` $weight (`bias` $bias^)? `labels` $labels (`mask` $mask^)? (`chunk` $chunk^)? attr-dict `:`
    functional-type(operands, results)
  }];
}

#endif
