// RUN: gpuc-opt %s --split-input-file --gpuc-autodiff --symbol-dce --canonicalize --cse --gpuc-decompose --canonicalize --cse \
// RUN:   --gpuc-fuse | FileCheck %s

// softmax, log_softmax and cross entropy, forward and backward.

// CHECK-LABEL: func.func @log_softmax(
// CHECK-NEXT:    %[[Y:.*]] = gpuc.fused "log_softmax"(%arg0) : (tensor<64x100xf32>) -> tensor<64x100xf32> {
// CHECK:           gpuc.reduce_max
// CHECK:           gpuc.sum
// CHECK:           gpuc.log
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[Y]]
func.func @log_softmax(%x: tensor<64x100xf32>) -> tensor<64x100xf32> {
  %0 = gpuc.log_softmax %x dim 1 : tensor<64x100xf32>
  return %0 : tensor<64x100xf32>
}

// -----

// Loss and gradient sweep over the logits together: no probabilities in memory. What is left to the second kernel is the
// sum of the rows' losses.
// CHECK-LABEL: func.func @cross_entropy(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<64x100xf32>, %[[L:[a-z0-9]+]]: tensor<64xi32>
// CHECK-NEXT:    %[[Y:.*]]:2 = gpuc.fused "{{.*}}"(%[[L]], %[[X]]) : (tensor<64xi32>, tensor<64x100xf32>) -> (tensor<64xf32>, tensor<64x100xf32>) {
// CHECK:           gpuc.exp
// CHECK-NOT:       gpuc.exp
// CHECK:         %[[S:.*]] = gpuc.fused "cross_entropy"(%[[Y]]#0) : (tensor<64xf32>) -> tensor<f32> {
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[S]], %[[Y]]#1
func.func private @objective(%x: tensor<64x100xf32>, %l: tensor<64xi32>) -> tensor<f32> {
  %s, %c = gpuc.cross_entropy %x, %l : (tensor<64x100xf32>, tensor<64xi32>) -> (tensor<f32>, tensor<f32>)
  return %s : tensor<f32>
}
func.func @cross_entropy(%x: tensor<64x100xf32>, %l: tensor<64xi32>) -> (tensor<f32>, tensor<64x100xf32>) {
  %s, %dx = gpuc.gradient @objective(%x, %l) wrt arguments [0] : (tensor<64x100xf32>, tensor<64xi32>) -> (tensor<f32>, tensor<64x100xf32>)
  return %s, %dx : tensor<f32>, tensor<64x100xf32>
}

// -----

// Rows that are too long to be kept would have their exponentials computed again in each sweep: they are stored.
// CHECK-LABEL: func.func @long_rows(
// CHECK:         %[[MAX:.*]] = gpuc.fused "softmax"(%arg0)
// CHECK:         %[[EXP:.*]] = gpuc.fused "softmax_2"(%arg0, %[[MAX]]) : {{.*}} -> tensor<64x50000xf32>
// CHECK:         %[[SUM:.*]] = gpuc.fused "softmax_3"(%[[EXP]])
// CHECK:         gpuc.fused "softmax_4"(%[[EXP]], %[[SUM]])
func.func @long_rows(%x: tensor<64x50000xf32>) -> tensor<64x50000xf32> {
  %0 = gpuc.softmax %x dim 1 : tensor<64x50000xf32>
  return %0 : tensor<64x50000xf32>
}

// -----

// Three reductions of a row, the probabilities in between.
// CHECK-LABEL: func.func @softmax_backward(
// CHECK-NEXT:    %[[DX:.*]] = gpuc.fused "{{.*}}"(%arg0, %arg1) : (tensor<64x100xf32>, tensor<64x100xf32>) -> tensor<64x100xf32> {
// CHECK:           gpuc.reduce_max
// CHECK-COUNT-2:   gpuc.sum
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[DX]]
func.func private @objective(%x: tensor<64x100xf32>, %ct: tensor<64x100xf32>) -> tensor<f32> {
  %y = gpuc.softmax %x dim 1 : tensor<64x100xf32>
  %p = gpuc.mul %y, %ct : tensor<64x100xf32>
  %s = gpuc.sum %p dims [0, 1] : (tensor<64x100xf32>) -> tensor<f32>
  return %s : tensor<f32>
}
func.func @softmax_backward(%x: tensor<64x100xf32>, %ct: tensor<64x100xf32>) -> tensor<64x100xf32> {
  %s, %dx = gpuc.gradient @objective(%x, %ct) wrt arguments [0] : (tensor<64x100xf32>, tensor<64x100xf32>) -> (tensor<f32>, tensor<64x100xf32>)
  return %dx : tensor<64x100xf32>
}

// -----

// Columns side by side go into the lanes of vectors.
// CHECK-LABEL: func.func @columns(
// CHECK-NEXT:    %[[Y:.*]] = gpuc.fused "softmax"(%arg0)
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[Y]]
func.func @columns(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %0 = gpuc.softmax %x dim 0 : tensor<64x128xf32>
  return %0 : tensor<64x128xf32>
}

// -----

// Rows, then columns of the result: what one has to know of the whole the other's kernel does not have.
// CHECK-LABEL: func.func @rows_then_columns(
// CHECK-NEXT:    %[[Y:.*]] = gpuc.fused "softmax"(%arg0) : (tensor<64x128xf32>) -> tensor<64x128xf32>
// CHECK:         %[[Z:.*]] = gpuc.fused "softmax_2"(%[[Y]]) : (tensor<64x128xf32>) -> tensor<64x128xf32>
// CHECK:         return %[[Z]]
func.func @rows_then_columns(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %0 = gpuc.softmax %x dim 1 : tensor<64x128xf32>
  %1 = gpuc.softmax %0 dim 0 : tensor<64x128xf32>
  return %1 : tensor<64x128xf32>
}
