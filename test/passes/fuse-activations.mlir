// RUN: gpuc-opt %s --split-input-file --gpuc-autodiff --symbol-dce --canonicalize --cse --gpuc-decompose --canonicalize --cse \
// RUN:   --gpuc-fuse | FileCheck %s

// gelu, dropout and residual connections, forward and backward.

// A bias and what is computed of the sum: one kernel, the bias read along the rows.
// CHECK-LABEL: func.func @gelu(
// CHECK-NEXT:    %[[Y:.*]] = gpuc.fused "add_gelu"(%arg0, %arg1) : (tensor<256x64xf32>, tensor<64xf32>) -> tensor<256x64xf32> {
// CHECK:           gpuc.erf
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[Y]]
func.func @gelu(%x: tensor<256x64xf32>, %b: tensor<64xf32>) -> tensor<256x64xf32> {
  %0 = gpuc.broadcast %b dims [1] : tensor<64xf32> to tensor<256x64xf32>
  %1 = gpuc.add %x, %0 : tensor<256x64xf32>
  %2 = gpuc.gelu %1 : tensor<256x64xf32>
  return %2 : tensor<256x64xf32>
}

// -----

// What every row reads is computed once, not for each row.
// CHECK-LABEL: func.func @gelu_of_a_row(
// CHECK:         %[[G:.*]] = gpuc.fused "gelu"(%arg0) : (tensor<64xf32>) -> tensor<64xf32> {
// CHECK:         gpuc.fused "mul"(%arg1, %[[G]])
func.func @gelu_of_a_row(%x: tensor<64xf32>, %y: tensor<256x64xf32>) -> tensor<256x64xf32> {
  %0 = gpuc.gelu %x : tensor<64xf32>
  %1 = gpuc.broadcast %0 dims [1] : tensor<64xf32> to tensor<256x64xf32>
  %2 = gpuc.mul %y, %1 : tensor<256x64xf32>
  return %2 : tensor<256x64xf32>
}

// -----

// But what is cheap vanishes into its reader.
// CHECK-LABEL: func.func @sum_of_a_row(
// CHECK:         gpuc.fused "add_mul"(%arg0, %arg1)
// CHECK-NOT:     = gpuc.fused
// CHECK:         return
func.func @sum_of_a_row(%x: tensor<64xf32>, %y: tensor<256x64xf32>) -> tensor<256x64xf32> {
  %0 = gpuc.add %x, %x : tensor<64xf32>
  %1 = gpuc.broadcast %0 dims [1] : tensor<64xf32> to tensor<256x64xf32>
  %2 = gpuc.mul %y, %1 : tensor<256x64xf32>
  return %2 : tensor<256x64xf32>
}

// -----

// Nothing is kept of the forward pass but its input.
// CHECK-LABEL: func.func @gelu_backward(
// CHECK-NEXT:    %[[DX:.*]] = gpuc.fused "{{.*}}"(%arg0, %arg1) : (tensor<256x64xf32>, tensor<256x64xf32>) -> tensor<256x64xf32> {
// CHECK-DAG:       gpuc.erf
// CHECK-DAG:       gpuc.exp
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[DX]]
func.func private @objective(%x: tensor<256x64xf32>, %ct: tensor<256x64xf32>) -> tensor<f32> {
  %y = gpuc.gelu %x : tensor<256x64xf32>
  %p = gpuc.mul %y, %ct : tensor<256x64xf32>
  %s = gpuc.sum %p dims [0, 1] : (tensor<256x64xf32>) -> tensor<f32>
  return %s : tensor<f32>
}
func.func @gelu_backward(%x: tensor<256x64xf32>, %ct: tensor<256x64xf32>) -> tensor<256x64xf32> {
  %s, %dx = gpuc.gradient @objective(%x, %ct) wrt arguments [0] : (tensor<256x64xf32>, tensor<256x64xf32>) -> (tensor<f32>, tensor<256x64xf32>)
  return %dx : tensor<256x64xf32>
}

// -----

// A product stands between two kernels, and its operand is what the second result is anyway.
// CHECK-LABEL: func.func @around_a_product(
// CHECK:         %[[G:.*]] = gpuc.fused "gelu"(%arg0)
// CHECK:         %[[P:.*]] = gpuc.matmul %[[G]], %arg1
// CHECK:         %[[H:.*]] = gpuc.fused "gelu_2"(%[[P]])
// CHECK:         return %[[G]], %[[H]]
func.func @around_a_product(%x: tensor<256x64xf32>, %w: tensor<64x64xf32>) -> (tensor<256x64xf32>, tensor<256x64xf32>) {
  %0 = gpuc.gelu %x : tensor<256x64xf32>
  %1 = gpuc.matmul %0, %w : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
  %2 = gpuc.gelu %1 : tensor<256x64xf32>
  return %0, %2 : tensor<256x64xf32>, tensor<256x64xf32>
}

// -----

// Random bits, mask and residual: one kernel, and no mask in memory.
// CHECK-LABEL: func.func @dropout_residual(
// CHECK-DAG:     %[[SEED:.*]] = gpuc.read @seed
// CHECK-DAG:     %[[STEP:.*]] = gpuc.read @step
// CHECK:         %[[Y:.*]] = gpuc.fused "dropout_add"(%[[SEED]], %[[STEP]], %arg0, %arg1) : {{.*}} -> tensor<256x64xf32> {
// CHECK:           gpuc.random_bits {{.*}} id 3
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[Y]]
gpuc.variable @seed kind counter : tensor<i64> init zeros
gpuc.variable @step kind counter : tensor<i64> init zeros
func.func @dropout_residual(%x: tensor<256x64xf32>, %r: tensor<256x64xf32>) -> tensor<256x64xf32> {
  %0 = gpuc.dropout %x p 0.25 id 3 : tensor<256x64xf32>
  %1 = gpuc.add %r, %0 : tensor<256x64xf32>
  return %1 : tensor<256x64xf32>
}

// -----

// Backward through dropout and relu. The bits are drawn once for what the weight's gradient reads and for the cotangent;
// neither the mask nor relu's result is stored.
// CHECK-LABEL: func.func @dropout_backward(
// CHECK:         %[[CT:.*]] = gpuc.matmul %arg2, transpose %arg1
// CHECK-NEXT:    %[[Y:.*]]:2 = gpuc.fused "{{.*}}"(%arg0, %{{.*}}, %{{.*}}, %[[CT]]) : {{.*}} -> (tensor<256x64xf32>, tensor<256x64xf32>) {
// CHECK:           gpuc.random_bits {{.*}} id 3
// CHECK-NOT:       gpuc.random_bits
// CHECK-NOT:     = gpuc.fused
// CHECK:         gpuc.matmul transpose %[[Y]]#0, %arg2
// CHECK:         return %[[Y]]#1
gpuc.variable @seed kind counter : tensor<i64> init zeros
gpuc.variable @step kind counter : tensor<i64> init zeros
func.func private @objective(%x: tensor<256x64xf32>, %w: tensor<64x64xf32>, %ct: tensor<256x64xf32>) -> tensor<f32> {
  %0 = gpuc.relu %x : tensor<256x64xf32>
  %1 = gpuc.dropout %0 p 0.25 id 3 : tensor<256x64xf32>
  %2 = gpuc.matmul %1, %w : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
  %p = gpuc.mul %2, %ct : tensor<256x64xf32>
  %s = gpuc.sum %p dims [0, 1] : (tensor<256x64xf32>) -> tensor<f32>
  return %s : tensor<f32>
}
func.func @dropout_backward(%x: tensor<256x64xf32>, %w: tensor<64x64xf32>, %ct: tensor<256x64xf32>) -> (tensor<256x64xf32>, tensor<64x64xf32>) {
  %s, %dx, %dw = gpuc.gradient @objective(%x, %w, %ct) wrt arguments [0, 1] : (tensor<256x64xf32>, tensor<64x64xf32>, tensor<256x64xf32>) -> (tensor<f32>, tensor<256x64xf32>, tensor<64x64xf32>)
  return %dx, %dw : tensor<256x64xf32>, tensor<64x64xf32>
}

// -----

// What dropout leaves is stored where it is needed anyway: who reads it at another place than its own draws no bits again.
// CHECK-LABEL: func.func @dropout_read_elsewhere(
// CHECK:         %[[Y:.*]] = gpuc.fused "dropout"(
// CHECK:         gpuc.fused "tanh"(%[[Y]])
gpuc.variable @seed kind counter : tensor<i64> init zeros
gpuc.variable @step kind counter : tensor<i64> init zeros
func.func @dropout_read_elsewhere(%x: tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<32x64xf32>) {
  %0 = gpuc.dropout %x p 0.25 id 3 : tensor<64x32xf32>
  %1 = gpuc.transpose %0 permutation [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32>
  %2 = gpuc.tanh %1 : tensor<32x64xf32>
  return %0, %2 : tensor<64x32xf32>, tensor<32x64xf32>
}

// -----

// A residual stream that a norm and the next sum read: the sum is a result of the norm's kernel, and read by the next.
// CHECK-LABEL: func.func @residuals(
// CHECK:         %[[N:.*]]:2 = gpuc.fused "add_rms_norm"(%arg0, %arg1, %arg2) : {{.*}} -> (tensor<256x64xf32>, tensor<256x64xf32>) {
// CHECK:         %[[P:.*]] = gpuc.matmul %[[N]]#1, %arg3
// CHECK:         gpuc.fused "add"(%[[N]]#0, %[[P]])
// CHECK-NOT:     = gpuc.fused
// CHECK:         return
func.func @residuals(%x: tensor<256x64xf32>, %y: tensor<256x64xf32>, %g: tensor<64xf32>, %w: tensor<64x64xf32>) -> tensor<256x64xf32> {
  %0 = gpuc.add %x, %y : tensor<256x64xf32>
  %1, %r = gpuc.rms_norm %0 dim 1 weight %g : (tensor<256x64xf32>, tensor<64xf32>) -> (tensor<256x64xf32>, tensor<256xf32>)
  %2 = gpuc.matmul %1, %w : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
  %3 = gpuc.add %0, %2 : tensor<256x64xf32>
  return %3 : tensor<256x64xf32>
}
