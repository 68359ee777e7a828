// RUN: gpuc-opt %s --gpuc-fuse --split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-fuse=enable=false --split-input-file | FileCheck %s --check-prefix=OFF

// The gradient of a weight, of one row: the update computes it from the two vectors, its norm is the product of theirs, and
// no matrix is stored but the new weight.
// CHECK-LABEL: func.func @update(
// CHECK-NOT:     gpuc.matmul
// CHECK:         %[[X:.*]] = gpuc.reshape %arg0 : tensor<1x3xf32> to tensor<3xf32>
// CHECK:         %[[Y:.*]] = gpuc.reshape %arg1 : tensor<1x4xf32> to tensor<4xf32>
// CHECK:         gpuc.fused "fc1.sub"(%arg2, %[[X]], %[[Y]]) : (tensor<3x4xf32>, tensor<3xf32>, tensor<4xf32>) -> tensor<3x4xf32>
// CHECK:         %[[YY:.*]] = gpuc.fused "fc1.mul_sum_2"(%arg1) : (tensor<1x4xf32>) -> tensor<f32>
// CHECK:         gpuc.fused "fc1.mul_sum"(%arg0, %[[YY]]) : (tensor<1x3xf32>, tensor<f32>) -> tensor<f32>
// OFF-LABEL:   func.func @update(
// OFF:           gpuc.matmul transpose %arg0, %arg1
func.func @update(%x: tensor<1x3xf32>, %y: tensor<1x4xf32>, %w: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<f32>) {
  %0 = gpuc.matmul transpose %x, %y : (tensor<1x3xf32>, tensor<1x4xf32>) -> tensor<3x4xf32> loc("fc1")
  %1 = gpuc.sub %w, %0 : tensor<3x4xf32> loc("fc1")
  %2 = gpuc.mul %0, %0 : tensor<3x4xf32> loc("fc1")
  %3 = gpuc.sum %2 dims [0, 1] : (tensor<3x4xf32>) -> tensor<f32> loc("fc1")
  return %1, %3 : tensor<3x4xf32>, tensor<f32>
}

// -----

// Neither the sum of rows nor that of another product is a norm.
// CHECK-LABEL: func.func @no_norm(
// CHECK:         gpuc.fused "mul_sum"(%{{.*}}, %{{.*}}) : (tensor<3xf32>, tensor<4xf32>) -> tensor<3xf32>
// CHECK:         gpuc.fused "mul_sum_2"(%{{.*}}, %{{.*}}, %arg2) : (tensor<3xf32>, tensor<4xf32>, tensor<3x4xf32>) -> tensor<f32>
func.func @no_norm(%x: tensor<1x3xf32>, %y: tensor<1x4xf32>, %w: tensor<3x4xf32>) -> (tensor<3xf32>, tensor<f32>) {
  %0 = gpuc.matmul transpose %x, %y : (tensor<1x3xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
  %1 = gpuc.mul %0, %0 : tensor<3x4xf32>
  %2 = gpuc.sum %1 dims [1] : (tensor<3x4xf32>) -> tensor<3xf32>
  %3 = gpuc.mul %0, %w : tensor<3x4xf32>
  %4 = gpuc.sum %3 dims [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %2, %4 : tensor<3xf32>, tensor<f32>
}

// -----

// A library reads matrices: the product is computed once for it.
// CHECK-LABEL: func.func @library(
// CHECK:         %[[P:.*]] = gpuc.fused "mul"(
// CHECK:         gpuc.matmul %[[P]], %arg2
func.func @library(%x: tensor<3x1xf32>, %y: tensor<1x4xf32>, %w: tensor<4x4xf32>) -> tensor<3x4xf32> {
  %0 = gpuc.matmul %x, %y : (tensor<3x1xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
  %1 = gpuc.matmul %0, %w : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}

// -----

// In batches, and with one rhs for all.
// CHECK-LABEL: func.func @batches(
// CHECK:         %[[L:.*]] = gpuc.reshape %arg0 : tensor<2x3x1xf32> to tensor<2x3xf32>
// CHECK:         %[[R:.*]] = gpuc.reshape %arg1 : tensor<2x4x1xf32> to tensor<2x4xf32>
// CHECK:         %[[S:.*]] = gpuc.reshape %arg2 : tensor<4x1xf32> to tensor<4xf32>
// CHECK:         gpuc.fused "add"(%[[L]], %[[R]], %{{.*}}, %[[S]])
// CHECK-DAG:       gpuc.broadcast %{{.*}} dims [0, 1] : tensor<2x3xf32> to tensor<2x3x4xf32>
// CHECK-DAG:       gpuc.broadcast %{{.*}} dims [0, 2] : tensor<2x4xf32> to tensor<2x3x4xf32>
// CHECK-DAG:       gpuc.broadcast %{{.*}} dims [2] : tensor<4xf32> to tensor<2x3x4xf32>
func.func @batches(%x: tensor<2x3x1xf32>, %y: tensor<2x4x1xf32>, %s: tensor<4x1xf32>) -> tensor<2x3x4xf32> {
  %0 = gpuc.matmul %x, transpose %y : (tensor<2x3x1xf32>, tensor<2x4x1xf32>) -> tensor<2x3x4xf32>
  %1 = gpuc.matmul %x, transpose %s : (tensor<2x3x1xf32>, tensor<4x1xf32>) -> tensor<2x3x4xf32>
  %2 = gpuc.add %0, %1 : tensor<2x3x4xf32>
  return %2 : tensor<2x3x4xf32>
}

// -----

// Of two elements it is a product, which the library computes; and a vector that is as long as the result is no vector
// that is repeated: multiplied once, and read.
// CHECK-LABEL: func.func @not(
// CHECK:         gpuc.matmul
// CHECK:         gpuc.mul %
// CHECK-NOT:     gpuc.mul %
func.func @not(%x: tensor<3x2xf32>, %y: tensor<2x4xf32>, %v: tensor<1x4xf32>) -> (tensor<3x4xf32>, tensor<1x4xf32>, tensor<4xf32>, tensor<f32>) {
  %0 = gpuc.matmul %x, %y : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %1 = gpuc.reshape %v : tensor<1x4xf32> to tensor<4xf32>
  %2 = gpuc.broadcast %1 dims [1] : tensor<4xf32> to tensor<1x4xf32>
  %3 = gpuc.mul %2, %2 : tensor<1x4xf32>
  %4 = gpuc.reshape %3 : tensor<1x4xf32> to tensor<4xf32>
  %5 = gpuc.exp %4 : tensor<4xf32>
  %6 = gpuc.sum %3 dims [0, 1] : (tensor<1x4xf32>) -> tensor<f32>
  return %0, %3, %5, %6 : tensor<3x4xf32>, tensor<1x4xf32>, tensor<4xf32>, tensor<f32>
}
