#ifndef GPUC_RANDOM_OPS
#define GPUC_RANDOM_OPS

include "dialects/gpuc/GpucOpBase.td"

def Random : DeclareOpInterfaceMethods<RandomOpInterface>;

def Gpuc_BitsTensor : Gpuc_TensorOf<I32, "i32 tensor of static shape (a leading ? is the batch)">;

def RandomBitsOp : Gpuc_PureOp<"random_bits", [Random]> {
  let summary = "32 random bits an element, by Philox4x32-10";
  let description = [{
    Element i (row-major, in the global batch) is word i mod 4 of Philox4x32-10 with counter (i div 4 as 64 bits,
    step as 64 bits) and key (seed, folded to 32 bits by xor of its halves, id). [Salmon et al., "Parallel random
    numbers: as easy as 1, 2, 3", SC'11] `from` says where in the global batch the tensor begins: its element i is
    element from + i of that.

    An op that needs several draws for an element, and is decomposed into this one, takes draw k (0 to 3) from id
    `id + k · 2^28`.

    - (random_C1) seed, step and from are scalars.
    - (random_C2) 0 ≤ id < 2^30; of all other random ops 0 ≤ id < 2^28.
  }];
  let arguments = (ins Gpuc_IndexTensor:$seed, Gpuc_IndexTensor:$step, I64Attr:$id, Optional<Gpuc_IndexTensor>:$from);
  let results = (outs Gpuc_BitsTensor:$result);
  let assemblyFormat = "`seed` $seed `step` $step `id` $id (`from` $from^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def RandomUniformOp : Gpuc_PureOp<"random_uniform", [Random, Composite]> {
  let summary = "Uniform in [low, high)";
  let description = [{
    u is as many of the highest bits of draw 0 as the element type has digits (f32 24, f16 11, bf16 8), as a fraction;
    f64 takes 27 bits of draw 0, then 26 of draw 1. The result is low + u · (high - low), or the number below high where
    that rounds to high.

    - (random_C1) seed and step are scalars.
    - (random_C2) 0 ≤ id < 2^28.
    - (random_uniform_C1) low < high, and high - low is finite.
  }];
  let arguments = (ins Gpuc_IndexTensor:$seed, Gpuc_IndexTensor:$step, I64Attr:$id, F64Attr:$low, F64Attr:$high);
  let results = (outs Gpuc_FloatTensor:$result);
  let assemblyFormat = "`seed` $seed `step` $step `id` $id `low` $low `high` $high attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def RandomNormalOp : Gpuc_PureOp<"random_normal", [Random, Composite]> {
  let summary = "Normal with the given mean and standard deviation, by Box and Muller";
  let description = [{
    sqrt(-2 log u) · cos(2πv) · deviation + mean with u uniform in (0, 1], so that the logarithm is finite, and v in
    [0, 1) [Box and Muller 1958]. f32 takes u from draw 0 and v from draw 1; f64 two draws for each; f16 and bf16 are
    computed as f32.

    - (random_C1) seed and step are scalars.
    - (random_C2) 0 ≤ id < 2^28.
    - (random_normal_C1) deviation ≥ 0; it and mean are finite.
  }];
  let arguments = (ins Gpuc_IndexTensor:$seed, Gpuc_IndexTensor:$step, I64Attr:$id, F64Attr:$mean, F64Attr:$deviation);
  let results = (outs Gpuc_FloatTensor:$result);
  let assemblyFormat = [{
    `seed` $seed `step` $step `id` $id `mean` $mean `deviation` $deviation attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def DropoutOp : Gpuc_PureOp<"dropout", [Random, SameTensorTypes, SameOperandsAndResultType, Differentiable, Composite,
    DeclareOpInterfaceMethods<TrainingOpInterface>]> {
  let summary = "Zeroes elements with probability p and scales the others by 1 / (1 - p); outside of training the identity";
  let description = [{
    The mask is a function of (seed, step, id, index) and is drawn again in the backward pass; it is never stored. Seed
    and step are the variables @seed and @step of the module. An element is kept where `random_uniform` in [0, 1) of
    type f32 with this id, whatever the operand's type, is at least p. p = 0 is the identity, p = 1 gives zeros.
    A NaN that is dropped becomes 0. Derivative: the same dropout of the cotangent. [Srivastava et al. 2014]

    - (random_C2) 0 ≤ id < 2^28.
    - (dropout_C1) 0 ≤ p ≤ 1.
  }];
  let arguments = (ins Gpuc_FloatTensor:$operand, F64Attr:$p, I64Attr:$id);
  let results = (outs Gpuc_FloatTensor:$result);
  let assemblyFormat = "$operand `p` $p `id` $id attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif
