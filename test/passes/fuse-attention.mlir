// RUN: gpuc-opt %s --gpuc-fuse -split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-fuse=enable=false -split-input-file | FileCheck %s --check-prefix=ALONE

// What cuts heads out of a projection stays outside of kernels: attention sees it through strides. A kernel that reads
// the same part has a slice of its own; without fusion each op is a kernel.
// CHECK-LABEL: func.func @heads(
// CHECK:         %[[PART:.*]] = gpuc.slice
// CHECK:         %[[ROWS:.*]] = gpuc.reshape %[[PART]]
// CHECK:         %[[Q:.*]] = gpuc.transpose %[[ROWS]]
// CHECK:         %[[Y:.*]], %{{.*}} = gpuc.attention %[[Q]], %{{.*}}, %{{.*}} :
// CHECK:         %[[ORDERED:.*]] = gpuc.transpose %[[Y]]
// CHECK:         %[[FLAT:.*]] = gpuc.reshape %[[ORDERED]]
// CHECK:         gpuc.fused "{{.*}}"(%arg0, %[[FLAT]])
// CHECK:           gpuc.slice
// ALONE-LABEL: func.func @heads(
// ALONE:         gpuc.fused "slice"
// ALONE:         gpuc.fused "transpose"
// ALONE:         gpuc.attention
func.func @heads(%qkv: tensor<2x3x16xf32>) -> tensor<2x3x2x4xf32> {
  %0 = gpuc.slice %qkv starts [0, 0, 8] limits [-1, -1, 16] strides [1, 1, 1] : (tensor<2x3x16xf32>) -> tensor<2x3x8xf32>
  %1 = gpuc.reshape %0 : tensor<2x3x8xf32> to tensor<2x3x2x4xf32>
  %q = gpuc.transpose %1 permutation [0, 2, 1, 3] : (tensor<2x3x2x4xf32>) -> tensor<2x2x3x4xf32>
  %y, %log = gpuc.attention %q, %q, %q : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> (tensor<2x2x3x4xf32>, tensor<2x2x3xf32>)
  %out = gpuc.transpose %y permutation [0, 2, 1, 3] : (tensor<2x2x3x4xf32>) -> tensor<2x3x2x4xf32>
  %flat = gpuc.reshape %out : tensor<2x3x2x4xf32> to tensor<2x3x8xf32>
  %2 = gpuc.neg %0 : tensor<2x3x8xf32>
  %3 = gpuc.add %flat, %2 : tensor<2x3x8xf32>
  %4 = gpuc.reshape %3 : tensor<2x3x8xf32> to tensor<2x3x2x4xf32>
  return %4 : tensor<2x3x2x4xf32>
}

// -----

// Keys that lie in columns cannot be read by rows: they are transposed by a kernel. A result that somebody reads as it
// is, is written so.
// CHECK-LABEL: func.func @columns(
// CHECK:         %[[K:.*]] = gpuc.fused "transpose"(%arg1)
// CHECK:         %[[Y:.*]], %{{.*}} = gpuc.attention %arg0, %[[K]], %arg0 :
// CHECK:         gpuc.fused "{{.*}}"(%[[Y]])
// CHECK:           gpuc.transpose
// CHECK:         return %[[Y]]
func.func @columns(%q: tensor<2x2x3x4xf32>, %columns: tensor<2x2x4x3xf32>) -> (tensor<2x2x3x4xf32>, tensor<2x3x2x4xf32>) {
  %k = gpuc.transpose %columns permutation [0, 1, 3, 2] : (tensor<2x2x4x3xf32>) -> tensor<2x2x3x4xf32>
  %y, %log = gpuc.attention %q, %k, %q : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> (tensor<2x2x3x4xf32>, tensor<2x2x3xf32>)
  %out = gpuc.transpose %y permutation [0, 2, 1, 3] : (tensor<2x2x3x4xf32>) -> tensor<2x3x2x4xf32>
  return %y, %out : tensor<2x2x3x4xf32>, tensor<2x3x2x4xf32>
}

// -----

// The cotangents of one projection's queries, keys and values: the gradient writes them side by side, and no kernel moves
// them. With another operand between them, or one that is read elsewhere too, a kernel does.
// CHECK-LABEL: func.func @side_by_side(
// CHECK:         %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = gpuc.attention_gradient
// CHECK-NOT:     gpuc.fused
// CHECK:         gpuc.concat
// CHECK-NOT:     gpuc.fused
// CHECK:         return
func.func @side_by_side(%ct: tensor<2x2x3x4xf32>, %y: tensor<2x2x3x4xf32>, %log: tensor<2x2x3xf32>, %q: tensor<2x2x3x4xf32>) -> tensor<2x3x24xf32> {
  %dq, %dk, %dv = gpuc.attention_gradient %ct of %y, %log query %q key %q value %q
      : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
      -> (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
  %0 = gpuc.transpose %dq permutation [0, 2, 1, 3] : (tensor<2x2x3x4xf32>) -> tensor<2x3x2x4xf32>
  %1 = gpuc.reshape %0 : tensor<2x3x2x4xf32> to tensor<2x3x8xf32>
  %2 = gpuc.transpose %dk permutation [0, 2, 1, 3] : (tensor<2x2x3x4xf32>) -> tensor<2x3x2x4xf32>
  %3 = gpuc.reshape %2 : tensor<2x3x2x4xf32> to tensor<2x3x8xf32>
  %4 = gpuc.transpose %dv permutation [0, 2, 1, 3] : (tensor<2x2x3x4xf32>) -> tensor<2x3x2x4xf32>
  %5 = gpuc.reshape %4 : tensor<2x3x2x4xf32> to tensor<2x3x8xf32>
  %6 = gpuc.concat %1, %3, %5 dim 2 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x24xf32>
  return %6 : tensor<2x3x24xf32>
}

// -----

// CHECK-LABEL: func.func @with_another(
// CHECK:         gpuc.attention_gradient
// CHECK:         gpuc.fused "{{.*}}concat"
func.func @with_another(%ct: tensor<2x2x3x4xf32>, %y: tensor<2x2x3x4xf32>, %log: tensor<2x2x3xf32>, %q: tensor<2x2x3x4xf32>, %other: tensor<2x3x2x4xf32>) -> tensor<2x3x4x4xf32> {
  %dq, %dk, %dv = gpuc.attention_gradient %ct of %y, %log query %q key %q value %q
      : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
      -> (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
  %0 = gpuc.transpose %dq permutation [0, 2, 1, 3] : (tensor<2x2x3x4xf32>) -> tensor<2x3x2x4xf32>
  %1 = gpuc.concat %0, %other dim 2 : (tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>) -> tensor<2x3x4x4xf32>
  return %1 : tensor<2x3x4x4xf32>
}

// -----

// CHECK-LABEL: func.func @read_twice(
// CHECK:         gpuc.attention_gradient
// CHECK:         gpuc.fused "{{.*}}concat{{.*}}"
func.func @read_twice(%ct: tensor<2x2x3x4xf32>, %y: tensor<2x2x3x4xf32>, %log: tensor<2x2x3xf32>, %q: tensor<2x2x3x4xf32>) -> (tensor<2x2x6x4xf32>, tensor<2x2x3x4xf32>) {
  %dq, %dk, %dv = gpuc.attention_gradient %ct of %y, %log query %q key %q value %q
      : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
      -> (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
  %0 = gpuc.concat %dq, %dk dim 2 : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x6x4xf32>
  return %0, %dk : tensor<2x2x6x4xf32>, tensor<2x2x3x4xf32>
}

// -----

// One behind the other in each head: no rows of which each is a piece.
// CHECK-LABEL: func.func @behind(
// CHECK:         gpuc.attention_gradient
// CHECK:         gpuc.fused "{{.*}}concat{{.*}}"
func.func @behind(%ct: tensor<2x2x3x4xf32>, %y: tensor<2x2x3x4xf32>, %log: tensor<2x2x3xf32>, %q: tensor<2x2x3x4xf32>) -> tensor<2x2x6x4xf32> {
  %dq, %dk, %dv = gpuc.attention_gradient %ct of %y, %log query %q key %q value %q
      : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
      -> (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
  %0 = gpuc.concat %dq, %dk dim 2 : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x6x4xf32>
  return %0 : tensor<2x2x6x4xf32>
}
