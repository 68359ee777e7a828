#ifndef PLAN_CONV_COMMAND
#define PLAN_CONV_COMMAND

include "dialects/plan/PlanOpBase.td"

def Plan_ConvKind : Plan_Enum<"ConvKind", "Which of the three convolutions", [
  Plan_EnumCase<"forward", 0>, Plan_EnumCase<"input_gradient", 1>, Plan_EnumCase<"filter_gradient", 2>]>;
def Plan_ConvKindAttr : EnumAttr<Plan_Dialect, Plan_ConvKind, "conv_kind">;

def ConvOp
    : Plan_LibraryCommand<"conv", "::gpuc::plan::usesOf(*this)", "cudnn",
                          [ProductCommand, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A convolution of images, or the gradient of its input or its filter";
  let description = [{
    `forward`: lhs is the input (batch, C, H, W), rhs the filter (O, C / groups, kh, kw), result the output (batch, O, OH, OW).
    `input_gradient`: of the output's cotangent and the filter. `filter_gradient`: of the output's cotangent and the
    input. The numbers mean the same for all three; see `gpuc.conv2d`. `bias`, of O elements, and `relu` follow a forward
    convolution as they do a `plan.matmul`, and a `mask` an input's gradient. The workspace is what the target's convolution of
    this shape needs. `tf32` is as in `plan.matmul`. With `channels_last` images lie as (batch, H, W, C) and filters as
    (O, kh, kw, C / groups), on CUDA alone; the numbers stay in the order above.

    Of a `filter_gradient` on the host `squares` and `update` are as in `plan.matmul`: with an update, of as many elements as the
    filter, nothing is stored.

    ```mlir
    plan.conv forward %x, %w -> %y : f32 batch 32 input [3, 224, 224] filter [64, 3, 7, 7] output [64, 112, 112]
      strides [2, 2] padding [3, 3, 3, 3] dilation [1, 1] groups 1
    ```
  }];
  let arguments = (ins Plan_ConvKindAttr:$kind, Plan_AnyBuffer:$lhs, Plan_AnyBuffer:$rhs,
                       Optional<Plan_AnyBuffer>:$result,
                       Optional<Plan_AnyBuffer>:$bias, Optional<Plan_AnyBuffer>:$workspace,
                       Optional<Plan_AnyBuffer>:$mask, Optional<Plan_AnyBuffer>:$squares,
                       Variadic<Plan_AnyBuffer>:$update_inputs, Variadic<Plan_AnyBuffer>:$update_outputs,
                       OptionalAttr<FlatSymbolRefAttr>:$update, TypeAttr:$element, I64Attr:$batch,
                       DenseI64ArrayAttr:$input,
                       DenseI64ArrayAttr:$filter, DenseI64ArrayAttr:$output, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilation, I64Attr:$groups, UnitAttr:$relu,
                       UnitAttr:$tf32, UnitAttr:$channels_last);
  let assemblyFormat = [{
    $kind $lhs `,` $rhs (`->` $result^)? (`bias` $bias^)? (`relu` $relu^)? (`mask` $mask^)? (`tf32` $tf32^)?
    (`channels_last` $channels_last^)? (`workspace` $workspace^)? (`squares` $squares^)?
    (`update` $update^ `(` $update_inputs `)` `->` `(` $update_outputs `)`)? `:` $element `batch` $batch `input` $input `filter` $filter
    `output` $output `strides` $strides `padding` $padding `dilation` $dilation `groups` $groups attr-dict
  }];
}

#endif
