#ifndef GPUC_NETWORK_OPS
#define GPUC_NETWORK_OPS

include "dialects/gpuc/GpucOpBase.td"

class Gpuc_AlongDim<string mnemonic> : Gpuc_PureOp<mnemonic, [SameTensorTypes, SameOperandsAndResultType, Differentiable, Composite], ["getFlops"]> {
  let arguments = (ins Gpuc_FloatTensor:$operand, I64Attr:$dim);
  let results = (outs Gpuc_FloatTensor:$result);
  let assemblyFormat = "$operand `dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def SoftmaxOp : Gpuc_AlongDim<"softmax"> { let summary = "exp(x) / Σ exp(x) along `dim`"; }
def LogSoftmaxOp : Gpuc_AlongDim<"log_softmax"> { let summary = "x - log Σ exp(x) along `dim`"; }

class Gpuc_Loss<string mnemonic, list<Trait> traits> : Gpuc_PureOp<mnemonic, traits # [Composite, Infer,
    DeclareOpInterfaceMethods<LossOpInterface, ["getRows"]>], ["getFlops"]> {
  let results = (outs Gpuc_FloatTensor:$sum, Gpuc_FloatTensor:$count);
}

def CrossEntropyOp : Gpuc_Loss<"cross_entropy", [Differentiable]> {
  let summary = "Sum over rows of -log softmax(logits)[label], and how many rows counted";
  let arguments = (ins Gpuc_FloatTensor:$logits, Gpuc_IndexTensor:$labels, Optional<Gpuc_BoolTensor>:$mask,
                       DefaultValuedAttr<F64Attr, "0.0">:$smoothing, DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let assemblyFormat = "$logits `,` $labels (`mask` $mask^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def MseOp : Gpuc_Loss<"mse", [Differentiable]> {
  let summary = "Sum of (prediction - target)², and how many elements counted";
  let arguments = (ins Gpuc_FloatTensor:$prediction, Gpuc_FloatTensor:$target, Optional<Gpuc_BoolTensor>:$mask);
  let assemblyFormat = "$prediction `,` $target (`mask` $mask^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def AccuracyOp : Gpuc_Loss<"accuracy", []> {
  let summary = "How many rows have their largest logit at the label, and how many rows counted";
  let arguments = (ins Gpuc_FloatTensor:$logits, Gpuc_IndexTensor:$labels, Optional<Gpuc_BoolTensor>:$mask,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let assemblyFormat = "$logits `,` $labels (`mask` $mask^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif
