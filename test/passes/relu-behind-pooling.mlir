// RUN: gpuc-opt %s -split-input-file --gpuc-relu-behind-pooling | FileCheck %s
// RUN: gpuc-opt %s -split-input-file --gpuc-relu-behind-pooling --gpuc-autodiff | FileCheck %s --check-prefix=KEPT

// The relu's derivative reads what is pooled, and nothing of the size that was.
// CHECK-LABEL: func.func private @loss(
// CHECK:         %[[LARGEST:.*]], %{{.*}} = gpuc.max_pool2d %{{.*}} window [2, 2]
// CHECK-NEXT:    %[[RELU:.*]] = gpuc.relu %[[LARGEST]] : tensor<2x3x3x4xf32>
// CHECK-NEXT:    gpuc.sum %[[RELU]]
// KEPT-LABEL:  func.func @gradient(
// KEPT:          %[[MASKED:.*]] = gpuc.select {{.*}} : {{.*}}tensor<2x3x3x4xf32>
// KEPT:          gpuc.max_pool2d_gradient %[[MASKED]]
// KEPT-NEXT:     return
func.func private @loss(%x: tensor<2x3x6x8xf32>) -> tensor<f32> {
  %0 = gpuc.relu %x : tensor<2x3x6x8xf32>
  %v, %i = gpuc.max_pool2d %0 window [2, 2] strides [2, 2] : (tensor<2x3x6x8xf32>) -> (tensor<2x3x3x4xf32>, tensor<2x3x3x4xi64>)
  %s = gpuc.sum %v dims [0, 1, 2, 3] : (tensor<2x3x3x4xf32>) -> tensor<f32>
  return %s : tensor<f32>
}
func.func @gradient(%x: tensor<2x3x6x8xf32>) -> tensor<2x3x6x8xf32> {
  %l, %g = gpuc.gradient @loss(%x) wrt arguments [0] : (tensor<2x3x6x8xf32>) -> (tensor<f32>, tensor<2x3x6x8xf32>)
  return %g : tensor<2x3x6x8xf32>
}

// -----

// Somebody else reads the relu.
// CHECK-LABEL: func.func @shared(
// CHECK:         %[[RELU:.*]] = gpuc.relu
// CHECK:         gpuc.max_pool2d %[[RELU]]
func.func @shared(%x: tensor<2x3x6x8xf32>) -> (tensor<2x3x3x4xf32>, tensor<2x3x6x8xf32>) {
  %0 = gpuc.relu %x : tensor<2x3x6x8xf32>
  %v, %i = gpuc.max_pool2d %0 window [2, 2] strides [2, 2] : (tensor<2x3x6x8xf32>) -> (tensor<2x3x3x4xf32>, tensor<2x3x3x4xi64>)
  return %v, %0 : tensor<2x3x3x4xf32>, tensor<2x3x6x8xf32>
}

// -----

// Of a window without a positive element the indices name the first, which before relu may not be the largest.
// CHECK-LABEL: func.func @indices(
// CHECK:         %[[RELU:.*]] = gpuc.relu
// CHECK:         gpuc.max_pool2d %[[RELU]]
func.func @indices(%x: tensor<2x3x6x8xf32>) -> tensor<2x3x3x4xi64> {
  %0 = gpuc.relu %x : tensor<2x3x6x8xf32>
  %v, %i = gpuc.max_pool2d %0 window [2, 2] strides [2, 2] : (tensor<2x3x6x8xf32>) -> (tensor<2x3x3x4xf32>, tensor<2x3x3x4xi64>)
  return %i : tensor<2x3x3x4xi64>
}

// -----

// CHECK-LABEL: func.func @normalised(
// CHECK:         %[[RELU:.*]] = gpuc.relu
// CHECK:         gpuc.max_pool2d %[[RELU]]
func.func @normalised(%x: tensor<2x3x6x8xf32>, %w: tensor<3xf32>) -> tensor<2x3x3x4xf32> {
  %n:5 = gpuc.batch_norm %x running %w, %w weight %w bias %w : (tensor<2x3x6x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x6x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  %0 = gpuc.relu %n#0 : tensor<2x3x6x8xf32>
  %v, %i = gpuc.max_pool2d %0 window [2, 2] strides [2, 2] : (tensor<2x3x6x8xf32>) -> (tensor<2x3x3x4xf32>, tensor<2x3x3x4xi64>)
  return %v : tensor<2x3x3x4xf32>
}
