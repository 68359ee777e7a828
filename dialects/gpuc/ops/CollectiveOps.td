#ifndef GPUC_COLLECTIVE_OPS
#define GPUC_COLLECTIVE_OPS

include "dialects/gpuc/GpucOpBase.td"

def AllReduceOp : Gpuc_PureOp<"all_reduce", [SameTensorTypes, SameOperandsAndResultType]> {
  let summary = "The sum of what all ranks have, on each of them";
  let description = [{
    result[i] = 0 + operand of rank 0 [i] + operand of rank 1 [i] + …, in this order, 16-bit floats in f32 and rounded once: the
    same bits on each rank. A rank waits here for the others; all have the same commands, in the same order. With one rank it
    adds 0.

    ```mlir
    %sum = gpuc.all_reduce %part : tensor<10x784xf32>
    ```
  }];
  let arguments = (ins Gpuc_NumberTensor:$operand);
  let results = (outs Gpuc_NumberTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

#endif
