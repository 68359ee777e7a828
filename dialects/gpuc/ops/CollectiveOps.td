#ifndef GPUC_COLLECTIVE_OPS
#define GPUC_COLLECTIVE_OPS

include "dialects/gpuc/GpucOpBase.td"

def AllReduceOp
    : Gpuc_PureOp<"all_reduce", [Differentiable, SameTensorTypes, SameOperandsAndResultType]> {
  let summary = "The sum of what all ranks have, on each of them";
  let description = [{
    result[i] = 0 + operand of rank 0 [i] + operand of rank 1 [i] + …, in this order, 16-bit floats in f32 and rounded once: the
    same bits on each rank. A rank waits here for the others; all have the same commands, in the same order. With one rank it
    adds 0. All ranks depend on an operand, so that its cotangent is the sum of theirs: a `gpuc.all_reduce`, too.

    ```mlir
    %sum = gpuc.all_reduce %part : tensor<10x784xf32>
    ```
  }];
  let arguments = (ins Gpuc_NumberTensor:$operand);
  let results = (outs Gpuc_NumberTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

/// What world_size ranks share out: n elements in row-major order, c = n / world_size of them, rounded up, to each.
class Gpuc_ShareOp<string mnemonic, list<Trait> traits = []> : Gpuc_PureOp<mnemonic, traits> {
  let arguments = (ins Gpuc_NumberTensor:$operand, I64Attr:$world_size);
  let results = (outs Gpuc_NumberTensor:$result);
  let assemblyFormat = "$operand `ranks` $world_size attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def ReduceScatterOp : Gpuc_ShareOp<"reduce_scatter"> {
  let summary = "A rank's own share of the sum of what all ranks have";
  let description = [{
    Of the n elements of the sum, which is that of `all_reduce`, in row-major order, rank r has the c = ⌈n / world_size⌉ from
    the (r · c)-th on; where there are no more, zeros.

    ```mlir
    %share = gpuc.reduce_scatter %part ranks 4 : (tensor<10x785xf32>) -> tensor<1963xf32>
    ```

    - (reduce_scatter_C1) world_size is at least 1.
    - (reduce_scatter_C2) The result is of rank 1, of c elements of the operand's type.
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$part, "int64_t":$worldSize)>];
}

def AllGatherOp : Gpuc_ShareOp<"all_gather"> {
  let summary = "What ranks have shares of, whole, on each of them";
  let description = [{
    The other way of `reduce_scatter`: the n elements of the result are, in row-major order, those of rank 0, then those of
    rank 1, and so on; what is more than n is left out.

    ```mlir
    %weight = gpuc.all_gather %share ranks 4 : (tensor<1963xf32>) -> tensor<10x785xf32>
    ```

    - (all_gather_C1) world_size is at least 1.
    - (all_gather_C2) The operand is of rank 1, of c elements of the result's type.
  }];
}

/// Tensors of one type, of which each of world_size ranks owns one, or none.
class Gpuc_OwnersOp<string mnemonic> : Gpuc_PureOp<mnemonic> {
  let hasVerifier = 1;
}

def ReduceToOwnersOp : Gpuc_OwnersOp<"reduce_to_owners"> {
  let summary = "Of several tensors' sums over ranks the one that a rank owns";
  let description = [{
    On rank r the sum, which is that of `all_reduce`, of the r-th operand; zeros on those behind the last.

    ```mlir
    %own = gpuc.reduce_to_owners %first, %second ranks 3 : (tensor<10x785xf32>, tensor<10x785xf32>) -> tensor<10x785xf32>
    ```

    - (reduce_to_owners_C1) There is an operand, and there are no more than ranks.
    - (reduce_to_owners_C2) All are of the result's type.
  }];
  let arguments = (ins Variadic<Gpuc_NumberTensor>:$wholes, I64Attr:$world_size);
  let results = (outs Gpuc_NumberTensor:$own);
  let assemblyFormat = "$wholes `ranks` $world_size attr-dict `:` functional-type(operands, results)";
}

def GatherFromOwnersOp : Gpuc_OwnersOp<"gather_from_owners"> {
  let summary = "What each rank owns a tensor of, on each of them";
  let description = [{
    The other way of `reduce_to_owners`: the r-th result is the operand of rank r.

    ```mlir
    %weights:2 = gpuc.gather_from_owners %own ranks 3 : (tensor<10x785xf32>) -> (tensor<10x785xf32>, tensor<10x785xf32>)
    ```

    - (gather_from_owners_C1) There is a result, and there are no more than ranks.
    - (gather_from_owners_C2) All are of the operand's type.
  }];
  let arguments = (ins Gpuc_NumberTensor:$own, I64Attr:$world_size);
  let results = (outs Variadic<Gpuc_NumberTensor>:$wholes);
  let assemblyFormat = "$own `ranks` $world_size attr-dict `:` functional-type(operands, results)";
}

#endif
