#ifndef PLAN_MATMUL_COMMAND
#define PLAN_MATMUL_COMMAND

include "dialects/plan/PlanOpBase.td"

def MatmulOp
    : Plan_LibraryCommand<"matmul", "::gpuc::plan::usesOf(*this)", "cublasLt",
                          [ProductCommand, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "result[batch, m, n] = lhs[batch, m, k] · rhs[batch, k, n], and what follows each element";
  let description = [{
    `transpose` before an operand: stored as [k, m], or [n, k]. With `accumulate` the product is added to what the result
    holds, once, when its own sums are made: on the host to the bit what a product by itself and an addition behind it give. Nothing
    follows then. Otherwise `bias`, of n elements, is added to each row, and `relu` makes max(…, 0) of
    that. Or an element becomes 0 where that of `mask`, which lies as the result does, is 0 or less: relu's gradient, of
    which the mask is the result; on the host alone. With `tf32` the device rounds f32 operands to TF32's 10 bits of mantissa
    before it multiplies them, and sums in f32; the host has no such products. The workspace's size is the cap within which the
    device chooses its algorithm.

    With `update` the result is a weight's gradient, which is not stored: its tiles are handed to the kernel, whose first
    argument it is, as soon as they are computed; what the kernel reads besides, and what it writes, stands behind. On the
    host alone; nothing else follows then.

    `squares` has an element for each of the host's tiles of one matrix, which nothing but an update follows: the sum of the
    squares in it. On the host alone.

    - (matmul_C1) The update's kernel computes element by element; its first argument is the product, and the others and its
      results are the buffers that stand behind.
    - (matmul_C2) A product has a result or an update.

    ```mlir
    plan.matmul transpose %0, %1 update @fc1.weight.sgd_update(%2, %3) -> (%2) : f32 batch 1 m 128 n 784 k 32
    ```
  }];
  let arguments = (ins Plan_AnyBuffer:$lhs, Plan_AnyBuffer:$rhs, Optional<Plan_AnyBuffer>:$result,
                       Optional<Plan_AnyBuffer>:$bias, Optional<Plan_AnyBuffer>:$workspace,
                       Optional<Plan_AnyBuffer>:$mask, Optional<Plan_AnyBuffer>:$squares, Variadic<Plan_AnyBuffer>:$update_inputs,
                       Variadic<Plan_AnyBuffer>:$update_outputs, OptionalAttr<FlatSymbolRefAttr>:$update, UnitAttr:$accumulate,
                       UnitAttr:$relu, UnitAttr:$tf32,
                       UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs, TypeAttr:$element, I64Attr:$batch, I64Attr:$m,
                       I64Attr:$n, I64Attr:$k);
  let assemblyFormat = [{
    (`transpose` $transpose_lhs^)? $lhs `,` (`transpose` $transpose_rhs^)? $rhs (`->` $result^)? (`accumulate` $accumulate^)?
    (`bias` $bias^)? (`relu` $relu^)? (`mask` $mask^)? (`tf32` $tf32^)? (`workspace` $workspace^)? (`squares` $squares^)?
    (`update` $update^ `(` $update_inputs `)` `->` `(` $update_outputs `)`)? `:` $element `batch` $batch
    `m` $m `n` $n `k` $k attr-dict
  }];
}

#endif
