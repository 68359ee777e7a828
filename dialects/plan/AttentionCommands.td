#ifndef PLAN_ATTENTION_COMMANDS
#define PLAN_ATTENTION_COMMANDS

include "dialects/plan/PlanOpBase.td"

class Plan_Attention<string mnemonic, string table> : Plan_LibraryCommand<mnemonic, table, ""> {
  /// What both commands say of their shape.
  dag shape = (ins TypeAttr:$element, I64Attr:$batch, I64Attr:$heads, I64Attr:$groups, I64Attr:$queries, I64Attr:$keys,
                   I64Attr:$width, I64Attr:$value_width, F64Attr:$scale, UnitAttr:$causal, DenseI64ArrayAttr:$strides,
                   OptionalAttr<DenseI64ArrayAttr>:$mask_strides, OptionalAttr<F64Attr>:$dropout,
                   OptionalAttr<I64Attr>:$id);
}

def AttentionOp
    : Plan_Attention<"attention", "::llvm::ArrayRef(kAttentionOperands).take_front(kForwardAttentionOperands)"> {
  let summary = "softmax(scale · query · keyᵀ + mask) · value, and the logarithms of the sums of exponentials";
  let description = [{
    As `gpuc.attention` says, of query (batch, heads, queries, width), key (batch, groups, keys, width) and value (batch,
    groups, keys, value_width). `strides` holds three numbers for each of query, key, value and result: elements from one
    batch item, head and row to the next, so that heads are read where a projection left them. A buffer reaches from an
    operand's first element to its last. The mask has a stride for each dimension of the scores, 0 where it repeats.
    Dropout reads seed and step.

    ```mlir
    plan.attention %q, %k, %v mask %m strides [64, 0, 0, 1] -> %y, %lse : f32 batch 12 heads 4 groups 4 queries 64
      keys 64 width 32 value_width 32 scale 1.767767e-01 strides [24576, 32, 384, 24576, 32, 384, 24576, 32, 384, 8192, 32, 128] causal
    ```
  }];
  let arguments = !con((ins Plan_AnyBuffer:$query, Plan_AnyBuffer:$key, Plan_AnyBuffer:$value, Plan_AnyBuffer:$result,
                            Plan_AnyBuffer:$log_sum_exp, Optional<Plan_AnyBuffer>:$mask,
                            Optional<Plan_AnyBuffer>:$seed, Optional<Plan_AnyBuffer>:$step), shape);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^ `strides` $mask_strides)? (`dropout` $dropout^ `id` $id `of` $seed `,` $step)?
    `->` $result `,` $log_sum_exp `:` $element `batch` $batch `heads` $heads `groups` $groups `queries` $queries `keys` $keys
    `width` $width `value_width` $value_width `scale` $scale `strides` $strides (`causal` $causal^)? attr-dict
  }];
}

def AttentionGradientOp : Plan_Attention<"attention_gradient", "kAttentionGradientOperands"> {
  let summary = "The cotangents of attention's query, key, value and, where it is asked for, of its mask";
  let description = [{
    As `gpuc.attention_gradient` says. `strides` goes on with cotangent and the cotangents of query, key and value; the
    mask's cotangent lies as the mask does. The workspace is what the target's gradient of this shape needs.
  }];
  let arguments = !con((ins Plan_AnyBuffer:$query, Plan_AnyBuffer:$key, Plan_AnyBuffer:$value, Plan_AnyBuffer:$result,
                            Plan_AnyBuffer:$log_sum_exp, Optional<Plan_AnyBuffer>:$mask,
                            Optional<Plan_AnyBuffer>:$seed, Optional<Plan_AnyBuffer>:$step,
                            Plan_AnyBuffer:$cotangent, Plan_AnyBuffer:$query_cotangent,
                            Plan_AnyBuffer:$key_cotangent, Plan_AnyBuffer:$value_cotangent,
                            Optional<Plan_AnyBuffer>:$mask_cotangent, Optional<Plan_AnyBuffer>:$workspace), shape);
  let assemblyFormat = [{
    $cotangent `of` $result `,` $log_sum_exp `query` $query `key` $key `value` $value
    (`mask` $mask^ `strides` $mask_strides)? (`dropout` $dropout^ `id` $id `of` $seed `,` $step)?
    `->` $query_cotangent `,` $key_cotangent `,` $value_cotangent (`,` $mask_cotangent^)? (`workspace` $workspace^)?
    `:` $element `batch` $batch `heads` $heads `groups` $groups `queries` $queries `keys` $keys `width` $width `value_width`
    $value_width `scale` $scale `strides` $strides (`causal` $causal^)? attr-dict
  }];
}

#endif
