#ifndef GPUC_NORM_OPS
#define GPUC_NORM_OPS

include "dialects/gpuc/GpucOpBase.td"

class Gpuc_Norm<string mnemonic, list<Trait> traits = []>
    : Gpuc_PureOp<mnemonic, traits # [Differentiable, Composite, Infer], ["getFlops"]> {
  let hasVerifier = 1;
}

def LayerNormOp : Gpuc_Norm<"layer_norm", [AttrSizedOperandSegments]> {
  let summary = "Normalised to mean 0 and variance 1 over `dim` and all dimensions after it";
  let description = [{
    PyTorch's layer_norm [Ba, Kiros and Hinton 2016]: with μ the mean and σ² the variance (divided by n) of the n
    elements of a row, y = (x - μ) · r · weight + bias with r = 1 / sqrt(σ² + eps). The variance is that of x - μ, in a
    second pass. A row that holds NaN or ∞ becomes NaN. Group normalisation is this op over a reshaped operand.

    `mean` is μ and `inverse_deviation` r, one for each row; a derivative reads them. f16 and bf16 are computed as f32,
    and these two returned so. With x̂ = (x - μ) · r and g = dy · weight, dx = r · (g - mean(g) - x̂ · mean(g · x̂)),
    dweight = Σ dy · x̂ and dbias = Σ dy over the rows.

    ```mlir
    %y, %mean, %inverse = gpuc.layer_norm %x dim 2 weight %w bias %b
        : (tensor<8x16x64xf32>, tensor<64xf32>, tensor<64xf32>)
        -> (tensor<8x16x64xf32>, tensor<8x16xf32>, tensor<8x16xf32>)
    ```

    - (layer_norm_C1) dim is a dimension of the operand.
    - (layer_norm_C2) None of the dimensions from dim on is the batch or has extent 0.
    - (layer_norm_C3) weight and bias have the shape of these dimensions and the element type of the operand.
    - (layer_norm_C4) eps is not negative.
  }];
  let arguments = (ins Gpuc_FloatTensor:$operand, Optional<Gpuc_FloatTensor>:$weight, Optional<Gpuc_FloatTensor>:$bias,
                       I64Attr:$dim, DefaultValuedAttr<F64Attr, "1.0e-5">:$eps);
  let results = (outs Gpuc_FloatTensor:$result, Gpuc_FloatTensor:$mean, Gpuc_FloatTensor:$inverse_deviation);
  let assemblyFormat = [{
    $operand `dim` $dim (`weight` $weight^)? (`bias` $bias^)? attr-dict `:` functional-type(operands, results)
  }];
}

def RmsNormOp : Gpuc_Norm<"rms_norm"> {
  let summary = "Divided by the root of the mean square over `dim` and all dimensions after it";
  let description = [{
    [Zhang and Sennrich 2019], as PyTorch's rms_norm: y = x · r · weight with r = 1 / sqrt(mean(x²) + eps). A row that
    holds NaN becomes NaN; one that holds ∞ becomes NaN there and 0 elsewhere.

    `inverse_rms` is r, one for each row; a derivative reads it. f16 and bf16 are computed as f32, and r returned so.
    With x̂ = x · r and g = dy · weight, dx = r · (g - x̂ · mean(g · x̂)) and dweight = Σ dy · x̂ over the rows.

    - (rms_norm_C1) dim is a dimension of the operand.
    - (rms_norm_C2) None of the dimensions from dim on is the batch or has extent 0.
    - (rms_norm_C3) weight has the shape of these dimensions and the element type of the operand.
    - (rms_norm_C4) eps is not negative.
  }];
  let arguments = (ins Gpuc_FloatTensor:$operand, Optional<Gpuc_FloatTensor>:$weight, I64Attr:$dim,
                       DefaultValuedAttr<F64Attr, "1.0e-5">:$eps);
  let results = (outs Gpuc_FloatTensor:$result, Gpuc_FloatTensor:$inverse_rms);
  let assemblyFormat = [{
    $operand `dim` $dim (`weight` $weight^)? attr-dict `:` functional-type(operands, results)
  }];
}

def BatchNormOp : Gpuc_Norm<"batch_norm", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<TrainingOpInterface>]> {
  let summary = "Each channel normalised to mean 0 and variance 1 over the batch, or by running statistics";
  let description = [{
    PyTorch's batch_norm [Ioffe and Szegedy 2015]; channels are dimension 1. With μ the mean and σ² the variance
    (divided by n) of the n elements of a channel, y = (x - μ) · (r · weight) + bias with r = 1 / sqrt(σ² + eps). NaN or ∞ make
    all of their channel NaN.

    The running statistics are results, so that computing the op twice changes nothing: `new_running_mean` is
    (1 - momentum) · running_mean + momentum · μ, `new_running_variance` likewise with the unbiased variance
    σ² · n / (n - 1) (n = 1: σ² = 0). Whoever owns the variables assigns them; `gpuc-expand-recipe` keeps assigns in
    `@train_step` alone. Outside of training μ and σ² are the running ones, and the running ones stay as they are.
    Rows that pad a batch are rows of it and count in μ and σ², unless `rows` says that only the first so many are counted; of
    fewer than 1 μ and σ² are 0, and the running statistics stay as they are.

    With `sync` n, μ and σ² are those of the rows of all ranks, as in PyTorch's SyncBatchNorm: the count and the sums of x, of
    (x - μ)², and in the derivative those that are the cotangents of bias and weight, are each a `gpuc.all_reduce`.
    `gpuc-sync-batch-norm` asks for it.

    `mean` is μ and `inverse_deviation` r; a derivative reads them. f16 and bf16 are computed as f32; the statistics are
    f32 then. The cotangents are those of `layer_norm`, with means and sums over the channel; derivatives by the running
    statistics pass too.

    - (batch_norm_C1) The operand has rank 2 or more.
    - (batch_norm_C2) running_mean and running_variance are [channels] in the type of statistics.
    - (batch_norm_C3) weight and bias are [channels] in the element type of the operand.
    - (batch_norm_C4) eps is not negative, and 0 ≤ momentum ≤ 1.
    - (batch_norm_C5) There is at least one element in a channel.
    - (batch_norm_C6) rows is one number of i32.
  }];
  let arguments = (ins Gpuc_FloatTensor:$operand, Gpuc_FloatTensor:$running_mean, Gpuc_FloatTensor:$running_variance,
                       Optional<Gpuc_FloatTensor>:$weight, Optional<Gpuc_FloatTensor>:$bias, Optional<Gpuc_Tensor>:$rows,
                       DefaultValuedAttr<F64Attr, "0.1">:$momentum, DefaultValuedAttr<F64Attr, "1.0e-5">:$eps,
                       UnitAttr:$sync);
  let results = (outs Gpuc_FloatTensor:$result, Gpuc_FloatTensor:$new_running_mean,
                      Gpuc_FloatTensor:$new_running_variance, Gpuc_FloatTensor:$mean,
                      Gpuc_FloatTensor:$inverse_deviation);
  let assemblyFormat = [{
    $operand `running` $running_mean `,` $running_variance (`weight` $weight^)? (`bias` $bias^)? (`rows` $rows^)?
    (`sync` $sync^)? attr-dict `:` functional-type(operands, results)
  }];
}

#endif
