#ifndef GPUC_CONTRACT_OPS
#define GPUC_CONTRACT_OPS

include "dialects/gpuc/GpucOpBase.td"

def MatmulOp : Gpuc_PureOp<"matmul", [Differentiable, Infer], ["getFlops"]> {
  let summary = "Matrix product of the last two dimensions, batched over the leading ones";
  let description = [{
    `transpose` before an operand says that its last two dimensions are stored the other way round. The leading
    dimensions of both are equal.

    ```mlir
    %h = gpuc.matmul %x, transpose %w : (tensor<64x784xf32>, tensor<128x784xf32>) -> tensor<64x128xf32>
    ```
  }];
  let arguments = (ins Gpuc_FloatTensor:$lhs, Gpuc_FloatTensor:$rhs, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs Gpuc_FloatTensor:$result);
  let assemblyFormat = [{
    (`transpose` $transpose_lhs^)? $lhs `,` (`transpose` $transpose_rhs^)? $rhs attr-dict `:`
    functional-type(operands, results)
  }];
  let hasFolder = 1;
}

#endif
