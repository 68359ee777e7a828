// RUN: gpuc-opt %s --gpuc-fuse --split-input-file | FileCheck %s

// The factor by which gradients are divided is known before the forward pass. Their norm, which reads it too, waits for the last product:
// it is a kernel of its own, or each update would wait for it, and all gradients would be kept.
// CHECK-LABEL: func.func @factor(
// CHECK:         %[[FACTOR:.*]] = gpuc.fused "{{[^"]*}}"(%{{.*}}) : (tensor<8xf32>) -> tensor<f32>
// CHECK:         gpuc.fused "{{[^"]*}}"(%{{.*}}, %[[FACTOR]]) : {{.*}} -> tensor<64x64xf32>
// CHECK:         gpuc.fused "{{[^"]*}}"(%{{.*}}, %[[FACTOR]]) : {{.*}} -> tensor<64x64xf32>
// CHECK:         gpuc.fused "{{[^"]*}}"(%{{.*}}, %[[FACTOR]]) : {{.*}} -> tensor<f32>
func.func @factor(%mask: tensor<8xf32>, %x: tensor<8x64xf32>, %w: tensor<64x64xf32>, %v: tensor<64x64xf32>)
    -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<f32>) {
  %one = gpuc.constant 1.0 : tensor<f32>
  %count = gpuc.sum %mask dims [0] : (tensor<8xf32>) -> tensor<f32>
  %factor = gpuc.div %one, %count : tensor<f32>
  %all = gpuc.broadcast %factor dims [] : tensor<f32> to tensor<64x64xf32>
  %g, %s = gpuc.fused "g"(%x) : (tensor<8x64xf32>) -> (tensor<64x64xf32>, tensor<f32>) {
  ^bb0(%a: tensor<8x64xf32>):
    %0 = gpuc.matmul transpose %a, %a : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64x64xf32>
    %1 = gpuc.mul %0, %0 : tensor<64x64xf32>
    %2 = gpuc.sum %1 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
    gpuc.yield %0, %2 : tensor<64x64xf32>, tensor<f32>
  }
  %new = gpuc.mul %g, %all : tensor<64x64xf32>
  %y = gpuc.matmul %x, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %h, %t = gpuc.fused "h"(%y) : (tensor<8x64xf32>) -> (tensor<64x64xf32>, tensor<f32>) {
  ^bb0(%a: tensor<8x64xf32>):
    %0 = gpuc.matmul transpose %a, %a : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64x64xf32>
    %1 = gpuc.mul %0, %0 : tensor<64x64xf32>
    %2 = gpuc.sum %1 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
    gpuc.yield %0, %2 : tensor<64x64xf32>, tensor<f32>
  }
  %other = gpuc.mul %h, %all : tensor<64x64xf32>
  %squares = gpuc.add %s, %t : tensor<f32>
  %norm = gpuc.mul %squares, %factor : tensor<f32>
  return %new, %other, %norm : tensor<64x64xf32>, tensor<64x64xf32>, tensor<f32>
}
