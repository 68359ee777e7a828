// RUN: gpuc-opt %s --split-input-file --gpuc-autodiff --symbol-dce --canonicalize --cse --gpuc-decompose --canonicalize --cse \
// RUN:   --gpuc-fuse | FileCheck %s

// What a norm's forward and backward pass become, derived and decomposed as in a train step.

// Each row is read once: the mean of its squares, and by it the row.
// CHECK-LABEL: func.func @rms_norm(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<256x64xf32>, %[[W:[a-z0-9]+]]: tensor<64xf32>
// CHECK-NEXT:    %[[Y:.*]] = gpuc.fused "rms_norm"(%[[X]], %[[W]]) : (tensor<256x64xf32>, tensor<64xf32>) -> tensor<256x64xf32> {
// CHECK:           gpuc.sum {{.*}} dims [1]
// CHECK:           gpuc.rsqrt
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[Y]]
func.func @rms_norm(%x: tensor<256x64xf32>, %w: tensor<64xf32>) -> tensor<256x64xf32> {
  %y, %r = gpuc.rms_norm %x dim 1 weight %w : (tensor<256x64xf32>, tensor<64xf32>) -> (tensor<256x64xf32>, tensor<256xf32>)
  return %y : tensor<256x64xf32>
}

// -----

// One row alone would be one core's: its statistic is a kernel of its own, whose work is cut up.
// CHECK-LABEL: func.func @one_row(
// CHECK:         %[[R:.*]] = gpuc.fused "rms_norm"(%arg0) : (tensor<1x1000000xf32>) -> tensor<1xf32> {
// CHECK:         gpuc.fused "rms_norm_2"(%arg0, %[[R]], %arg1)
func.func @one_row(%x: tensor<1x1000000xf32>, %w: tensor<1000000xf32>) -> tensor<1x1000000xf32> {
  %y, %r = gpuc.rms_norm %x dim 1 weight %w : (tensor<1x1000000xf32>, tensor<1000000xf32>) -> (tensor<1x1000000xf32>, tensor<1xf32>)
  return %y : tensor<1x1000000xf32>
}

// -----

// Backward: the statistic again and two sums of a row in one kernel; the weight's gradient, a sum of columns, in another,
// which reads the statistic and not the normalised rows.
// CHECK-LABEL: func.func @rms_norm_backward(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<256x64xf32>, %[[W:[a-z0-9]+]]: tensor<64xf32>, %[[CT:[a-z0-9]+]]: tensor<256x64xf32>
// CHECK-NEXT:    %[[Y:.*]]:2 = gpuc.fused "{{.*}}"(%[[X]], %[[CT]], %[[W]]) : {{.*}} -> (tensor<256xf32>, tensor<256x64xf32>) {
// CHECK-COUNT-2:   gpuc.sum {{.*}} dims [1]
// CHECK:         %[[DW:.*]] = gpuc.fused "{{.*}}"(%[[X]], %[[Y]]#0, %[[CT]]) : {{.*}} -> tensor<64xf32> {
// CHECK:           gpuc.sum {{.*}} dims [0]
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[Y]]#1, %[[DW]]
func.func private @objective(%x: tensor<256x64xf32>, %w: tensor<64xf32>, %ct: tensor<256x64xf32>) -> tensor<f32> {
  %y, %r = gpuc.rms_norm %x dim 1 weight %w : (tensor<256x64xf32>, tensor<64xf32>) -> (tensor<256x64xf32>, tensor<256xf32>)
  %p = gpuc.mul %y, %ct : tensor<256x64xf32>
  %s = gpuc.sum %p dims [0, 1] : (tensor<256x64xf32>) -> tensor<f32>
  return %s : tensor<f32>
}
func.func @rms_norm_backward(%x: tensor<256x64xf32>, %w: tensor<64xf32>, %ct: tensor<256x64xf32>) -> (tensor<256x64xf32>, tensor<64xf32>) {
  %s, %dx, %dw = gpuc.gradient @objective(%x, %w, %ct) wrt arguments [0, 1] : (tensor<256x64xf32>, tensor<64xf32>, tensor<256x64xf32>) -> (tensor<f32>, tensor<256x64xf32>, tensor<64xf32>)
  return %dx, %dw : tensor<256x64xf32>, tensor<64xf32>
}

// -----

// A channel is a row of many pieces: mean, variance, the pictures and both running statistics in one kernel.
// CHECK-LABEL: func.func @batch_norm(
// CHECK-NEXT:    %[[Y:.*]]:3 = gpuc.fused "batch_norm"(%arg0, %arg3, %arg4, %arg1, %arg2) : {{.*}} -> (tensor<32x8x4x4xf32>, tensor<8xf32>, tensor<8xf32>) {
// CHECK-COUNT-2:   gpuc.sum {{.*}} dims [0, 2, 3]
// CHECK-NOT:       gpuc.sum
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[Y]]#0, %[[Y]]#1, %[[Y]]#2
func.func @batch_norm(%x: tensor<32x8x4x4xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<32x8x4x4xf32>, tensor<8xf32>, tensor<8xf32>) {
  %y:5 = gpuc.batch_norm %x running %m, %v weight %w bias %b : (tensor<32x8x4x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<32x8x4x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return %y#0, %y#1, %y#2 : tensor<32x8x4x4xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// Of few channels and many pictures the statistics are taken by themselves, and the pictures by all cores.
// CHECK-LABEL: func.func @few_channels(
// CHECK:         gpuc.fused "batch_norm"(%arg0) : (tensor<100000x8xf32>) -> tensor<8xf32>
// CHECK:         %[[R:.*]] = gpuc.fused {{.*}} -> tensor<8xf32>
// CHECK:         gpuc.fused {{.*}} -> tensor<100000x8xf32>
func.func @few_channels(%x: tensor<100000x8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<100000x8xf32> {
  %y:5 = gpuc.batch_norm %x running %m, %v weight %w bias %b : (tensor<100000x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<100000x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return %y#0 : tensor<100000x8xf32>
}

// -----

// Backward: all sums are of the same channels, and one kernel has them with all three gradients: mean and variance, and those
// that are the gradients of bias and weight, of which that of x is made, too.
// CHECK-LABEL: func.func @batch_norm_backward(
// CHECK-NEXT:    %[[Y:.*]]:3 = gpuc.fused "{{.*}}"(%arg0, %arg3, %arg5) : {{.*}} -> (tensor<8xf32>, tensor<8xf32>, tensor<32x8x4x4xf32>) {
// CHECK-COUNT-4:   gpuc.sum {{.*}} dims [0, 2, 3]
// CHECK-NOT:     gpuc.sum
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[Y]]#2, %[[Y]]#1, %[[Y]]#0
func.func private @objective(%x: tensor<32x8x4x4xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>, %ct: tensor<32x8x4x4xf32>) -> tensor<f32> {
  %y:5 = gpuc.batch_norm %x running %m, %v weight %w bias %b : (tensor<32x8x4x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<32x8x4x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  %p = gpuc.mul %y#0, %ct : tensor<32x8x4x4xf32>
  %s = gpuc.sum %p dims [0, 1, 2, 3] : (tensor<32x8x4x4xf32>) -> tensor<f32>
  return %s : tensor<f32>
}
func.func @batch_norm_backward(%x: tensor<32x8x4x4xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>, %ct: tensor<32x8x4x4xf32>) -> (tensor<32x8x4x4xf32>, tensor<8xf32>, tensor<8xf32>) {
  %s, %dx, %dw, %db = gpuc.gradient @objective(%x, %m, %v, %w, %b, %ct) wrt arguments [0, 3, 4] : (tensor<32x8x4x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<32x8x4x4xf32>) -> (tensor<f32>, tensor<32x8x4x4xf32>, tensor<8xf32>, tensor<8xf32>)
  return %dx, %dw, %db : tensor<32x8x4x4xf32>, tensor<8xf32>, tensor<8xf32>
}
