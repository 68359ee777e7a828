// RUN: gpuc-opt %s --gpuc-fuse=target=cuda:sm_90 -split-input-file | FileCheck %s
// RUN: gpuc-opt %s "--gpuc-fuse=target=cuda:sm_90 enable=false" -split-input-file | FileCheck %s --check-prefix=ALONE

// Attention is a kernel, in which what cuts heads out of a projection stands: it reads the projection itself, and writes
// in the order that its one other reader asks for. The gradient reads the result back out of that order; it is two
// kernels, for the query's cotangent and for those of key and value.
// CHECK-LABEL: func.func @heads(
// CHECK-SAME:    %[[QKV:.*]]: tensor<2x3x8xf32>, %[[CT:.*]]: tensor<2x3x2x4xf32>)
// CHECK-NOT:     gpuc.transpose
// CHECK:         %[[Y:.*]]:2 = gpuc.fused "h.attn.attention"(%[[QKV]]) : (tensor<2x3x8xf32>) -> (tensor<2x3x2x4xf32>, tensor<2x2x3xf32>) {
// CHECK:           gpuc.reshape
// CHECK:           gpuc.transpose
// CHECK:           %[[INNER:.*]], %[[LOG:.*]] = gpuc.attention
// CHECK:           %[[ORDERED:.*]] = gpuc.transpose %[[INNER]]
// CHECK:           gpuc.yield %[[ORDERED]], %[[LOG]]
// CHECK:         %[[DQ:.*]] = gpuc.fused "h.attn.attention_gradient"(%[[CT]], %[[Y]]#0, %[[Y]]#1, %[[QKV]]) : ({{.*}}) -> tensor<2x3x2x4xf32> {
// CHECK:           %[[INNER_DQ:.*]], %{{.*}}, %{{.*}} = gpuc.attention_gradient
// CHECK:           %[[ORDERED_DQ:.*]] = gpuc.transpose %[[INNER_DQ]]
// CHECK:           gpuc.yield %[[ORDERED_DQ]] :
// CHECK:         %[[DKV:.*]]:2 = gpuc.fused "h.attn.attention_gradient_2"(%[[CT]], %[[Y]]#0, %[[Y]]#1, %[[QKV]]) : ({{.*}}) -> (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) {
// CHECK:           %{{.*}}, %[[DK:.*]], %[[DV:.*]] = gpuc.attention_gradient
// CHECK:           gpuc.yield %[[DK]], %[[DV]] :
// CHECK:         return %[[Y]]#0, %[[DQ]], %[[DKV]]#0, %[[DKV]]#1
// ALONE-LABEL: func.func @heads(
// ALONE:         gpuc.fused "{{.*}}transpose"
// ALONE:         gpuc.fused "h.attn.attention"
// ALONE-NEXT:    ^bb0
// ALONE-NEXT:      gpuc.attention
func.func @heads(%qkv: tensor<2x3x8xf32>, %ct: tensor<2x3x2x4xf32>)
    -> (tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) {
  %0 = gpuc.reshape %qkv : tensor<2x3x8xf32> to tensor<2x3x2x4xf32>
  %q = gpuc.transpose %0 permutation [0, 2, 1, 3] : (tensor<2x3x2x4xf32>) -> tensor<2x2x3x4xf32>
  %y, %log = gpuc.attention %q, %q, %q : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> (tensor<2x2x3x4xf32>, tensor<2x2x3xf32>) loc("h.attn")
  %out = gpuc.transpose %y permutation [0, 2, 1, 3] : (tensor<2x2x3x4xf32>) -> tensor<2x3x2x4xf32>
  %dy = gpuc.transpose %ct permutation [0, 2, 1, 3] : (tensor<2x3x2x4xf32>) -> tensor<2x2x3x4xf32>
  %dq, %dk, %dv = gpuc.attention_gradient %dy of %y, %log query %q key %q value %q
      : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
      -> (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) loc("h.attn")
  %dout = gpuc.transpose %dq permutation [0, 2, 1, 3] : (tensor<2x2x3x4xf32>) -> tensor<2x3x2x4xf32>
  return %out, %dout, %dk, %dv : tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>
}

// -----

// The cotangents of one projection come from two kernels: a third puts them together.
// CHECK-LABEL: func.func @side_by_side(
// CHECK:         %[[DQ:.*]] = gpuc.fused "attention_gradient"
// CHECK:         %[[DKV:.*]]:2 = gpuc.fused "attention_gradient_2"
// CHECK:         %[[ALL:.*]] = gpuc.fused "{{.*}}concat"(%[[DQ]], %[[DKV]]#0, %[[DKV]]#1)
// CHECK:         return %[[ALL]]
func.func @side_by_side(%ct: tensor<2x2x3x4xf32>, %y: tensor<2x2x3x4xf32>, %log: tensor<2x2x3xf32>, %q: tensor<2x2x3x4xf32>) -> tensor<2x3x6x4xf32> {
  %dq, %dk, %dv = gpuc.attention_gradient %ct of %y, %log query %q key %q value %q
      : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
      -> (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
  %0 = gpuc.transpose %dq permutation [0, 2, 1, 3] : (tensor<2x2x3x4xf32>) -> tensor<2x3x2x4xf32>
  %1 = gpuc.transpose %dk permutation [0, 2, 1, 3] : (tensor<2x2x3x4xf32>) -> tensor<2x3x2x4xf32>
  %2 = gpuc.transpose %dv permutation [0, 2, 1, 3] : (tensor<2x2x3x4xf32>) -> tensor<2x3x2x4xf32>
  %3 = gpuc.concat %0, %1, %2 dim 2 : (tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>) -> tensor<2x3x6x4xf32>
  return %3 : tensor<2x3x6x4xf32>
}

// -----

// Dropout's counters are the last two operands. Of a gradient that nobody reads no kernel is made.
// CHECK-LABEL: func.func @dropped(
// CHECK:         %[[SEED:.*]] = gpuc.read @seed
// CHECK:         %[[STEP:.*]] = gpuc.read @step
// CHECK:         gpuc.fused "attention_gradient"({{.*}}, %[[SEED]], %[[STEP]]) : ({{.*}}, tensor<i64>, tensor<i64>) -> tensor<1x1x3x4xf32>
// CHECK-NOT:     gpuc.fused
// CHECK:         return
gpuc.variable @seed kind counter : tensor<i64> init zeros
gpuc.variable @step kind counter : tensor<i64> init zeros
func.func @dropped(%q: tensor<1x1x3x4xf32>, %log: tensor<1x1x3xf32>) -> tensor<1x1x3x4xf32> {
  %dq, %dk, %dv = gpuc.attention_gradient %q of %q, %log query %q key %q value %q dropout 0.5 id 3
      : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>)
      -> (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>)
  return %dv : tensor<1x1x3x4xf32>
}

// -----

// What CUDA has no kernel for is left to gpuc-decompose.
// CHECK-LABEL: func.func @f64(
// CHECK-NOT:     gpuc.fused
// CHECK:         gpuc.attention
func.func @f64(%q: tensor<1x1x3x4xf64>) -> tensor<1x1x3x4xf64> {
  %y, %log = gpuc.attention %q, %q, %q : (tensor<1x1x3x4xf64>, tensor<1x1x3x4xf64>, tensor<1x1x3x4xf64>) -> (tensor<1x1x3x4xf64>, tensor<1x1x3xf64>)
  return %y : tensor<1x1x3x4xf64>
}
