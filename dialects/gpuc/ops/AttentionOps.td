#ifndef GPUC_ATTENTION_OPS
#define GPUC_ATTENTION_OPS

include "dialects/gpuc/GpucOpBase.td"

class Gpuc_Attention<string mnemonic, list<Trait> traits>
    : Gpuc_PureOp<mnemonic, traits # [Composite, MultipliesMatrices], ["getFlops"]> {
  let hasVerifier = 1;
  code shared = [{
    /// What each score is multiplied by: `scale`, or 1 / sqrt of the length of a key.
    double getScaleOrDefault();
  }];
}

def AttentionOp : Gpuc_Attention<"attention", [Differentiable, Infer, DeclareOpInterfaceMethods<TrainingOpInterface>]> {
  let summary = "softmax(scale · query · keyᵀ + mask) · value";
  let description = [{
    PyTorch's scaled_dot_product_attention [Vaswani et al. 2017] of query [B, H, T, D], key [B, G, S, D] and value
    [B, G, S, E], with H a multiple of G: head h attends to key and value head h / (H / G) (grouped queries [Ainslie et
    al. 2023]; G = H without). Scores are scale · query · key, scale being 1 / sqrt(D) if it is not given. `mask` is broadcast
    to [B, H, T, S], aligned at the last dimension, where its extent is 1 or it has no dimension. A mask of i1 says what
    takes part; one of floating point is added to the scores. With `causal` query t sees keys 0 to t alone (counted from
    the first, as PyTorch's is_causal). A query that sees no key, all its scores being -∞, gives 0; PyTorch gives NaN.
    What a NaN or ∞ in a key that is masked out does to the scores is masked out with them; in a value it reaches the
    result (0 · NaN).

    `dropout p id i` zeroes probabilities as the op `dropout` with this p and id does on [B, H, T, S]; outside of
    training it is left out. p and id are 0 without it.

    `log_sum_exp` [B, H, T] is log Σ exp(score) of a row, -∞ for one that sees nothing; f16 and bf16 are computed as
    f32, and it is returned so. Derivatives read it instead of the probabilities P = exp(score - log_sum_exp) [Dao et
    al. 2022, algorithm 4]: with O the result, dS = P ∘ (dP - Σ_E dO ∘ O), by way of `attention_gradient`.

    ```mlir
    %out, %lse = gpuc.attention %q, %k, %v causal dropout 0.1 id 7
        : (tensor<?x8x128x64xf32>, tensor<?x8x128x64xf32>, tensor<?x8x128x64xf32>)
        -> (tensor<?x8x128x64xf32>, tensor<?x8x128xf32>)
    ```

    - (attention_C1) query, key and value have rank 4 and one element type.
    - (attention_C2) They agree in the batch, query and key in D, key and value in G and S; H is a multiple of G.
    - (attention_C3) mask is broadcast to [B, H, T, S], and is i1 or of the element type of query.
    - (attention_C4) 0 ≤ dropout ≤ 1 and 0 ≤ id < 2^28.
    - (attention_C5) D and S are at least 1.
    - (attention_C6) scale is finite.
  }];
  let arguments = (ins Gpuc_FloatTensor:$query, Gpuc_FloatTensor:$key, Gpuc_FloatTensor:$value,
                       Optional<Gpuc_Tensor>:$mask, OptionalAttr<F64Attr>:$scale, UnitAttr:$causal,
                       DefaultValuedAttr<F64Attr, "0.0">:$dropout, DefaultValuedAttr<I64Attr, "0">:$id);
  let results = (outs Gpuc_FloatTensor:$result, Gpuc_FloatTensor:$log_sum_exp);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? (`scale` $scale^)? (`causal` $causal^)? (`dropout` $dropout^ `id` $id)?
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = shared;
}

def AttentionGradientOp : Gpuc_Attention<"attention_gradient", [DifferentiableByOperands]> {
  let summary = "The cotangents of query, key and value from that of attention's result";
  let description = [{
    Flash attention's backward pass [Dao et al. 2022, algorithm 4], made by the VJP of `attention`; one op, so that a
    kernel can compute it without holding [B, H, T, S]. With S the scores, P = exp(S - log_sum_exp), M the factors of
    dropout (0 or 1 / (1 - p)), dP = M ∘ (dO · valueᵀ) and δ = Σ_E dO ∘ result:

    dvalue = (M ∘ P)ᵀ · dO, dS = P ∘ (dP - δ), dquery = scale · dS · key, dkey = scale · dSᵀ · query; the fourth result,
    there if mask is of floating point, is dS summed over what the mask repeats. Key and value heads that several query
    heads share add up their cotangents. Derivatives go through the definition.

    - (attention_gradient_C1) query, key, value, mask and the attributes are those of an `attention`.
    - (attention_gradient_C2) cotangent, result and log_sum_exp have the types of its results.
    - (attention_gradient_C3) The results have the types of query, key, value and of a mask of floating point.
  }];
  let arguments = (ins Gpuc_FloatTensor:$cotangent, Gpuc_FloatTensor:$result, Gpuc_FloatTensor:$log_sum_exp,
                       Gpuc_FloatTensor:$query, Gpuc_FloatTensor:$key, Gpuc_FloatTensor:$value,
                       Optional<Gpuc_Tensor>:$mask, OptionalAttr<F64Attr>:$scale, UnitAttr:$causal,
                       DefaultValuedAttr<F64Attr, "0.0">:$dropout, DefaultValuedAttr<I64Attr, "0">:$id);
  let results = (outs Gpuc_FloatTensor:$query_cotangent, Gpuc_FloatTensor:$key_cotangent,
                      Gpuc_FloatTensor:$value_cotangent, Optional<Gpuc_FloatTensor>:$mask_cotangent);
  let assemblyFormat = [{
    $cotangent `of` $result `,` $log_sum_exp `query` $query `key` $key `value` $value (`mask` $mask^)?
    (`scale` $scale^)? (`causal` $causal^)? (`dropout` $dropout^ `id` $id)? attr-dict `:`
    functional-type(operands, results)
  }];
  let extraClassDeclaration = shared;
}

#endif
