// A log-softmax and its negative log-likelihood are a cross entropy of the logits.
//
// RUN: gpuc-opt %s --gpuc-fuse-linear-losses --split-input-file | FileCheck %s

// Labels, class weights, mask and the label to ignore stay.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<64x10xf32>, %[[L:[a-z0-9]+]]: tensor<64xi64>, %[[C:[a-z0-9]+]]: tensor<10xf32>, %[[M:[a-z0-9]+]]: tensor<64xi1>)
// CHECK-NEXT:    gpuc.cross_entropy %[[X]], %[[L]] weight %[[C]] mask %[[M]] {ignore_index = 3 : i64}
// CHECK-NEXT:    return
func.func @rows(%x: tensor<64x10xf32>, %l: tensor<64xi64>, %c: tensor<10xf32>, %m: tensor<64xi1>) -> (tensor<f32>, tensor<f32>) {
  %p = gpuc.log_softmax %x dim 1 : tensor<64x10xf32>
  %sum, %count = gpuc.nll %p, %l weight %c mask %m {ignore_index = 3 : i64} : (tensor<64x10xf32>, tensor<64xi64>, tensor<10xf32>, tensor<64xi1>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}

// -----

// Pictures' classes, and rows put together behind the log-softmax.
// CHECK-LABEL: func.func @moved(
// CHECK-NOT:     gpuc.log_softmax
// CHECK:         %[[T:.*]] = gpuc.transpose %arg0 permutation [0, 2, 3, 1]
// CHECK-NEXT:    %[[R:.*]] = gpuc.reshape %[[T]] : tensor<2x5x6x10xf32> to tensor<60x10xf32>
// CHECK-NEXT:    gpuc.cross_entropy %[[R]], %arg1
func.func @moved(%x: tensor<2x10x5x6xf32>, %l: tensor<60xi64>) -> tensor<f32> {
  %p = gpuc.log_softmax %x dim 1 : tensor<2x10x5x6xf32>
  %t = gpuc.transpose %p permutation [0, 2, 3, 1] : (tensor<2x10x5x6xf32>) -> tensor<2x5x6x10xf32>
  %r = gpuc.reshape %t : tensor<2x5x6x10xf32> to tensor<60x10xf32>
  %sum, %count = gpuc.nll %r, %l : (tensor<60x10xf32>, tensor<60xi64>) -> (tensor<f32>, tensor<f32>)
  return %sum : tensor<f32>
}

// -----

// A language model that ends in a log-softmax: logits of a linear layer need not be stored, either.
// CHECK-LABEL: func.func @language(
// CHECK-NEXT:    gpuc.linear_cross_entropy %arg0, %arg1 labels %arg2
// CHECK-NEXT:    return
func.func @language(%h: tensor<1024x8xf32>, %w: tensor<1000x8xf32>, %l: tensor<1024xi32>) -> tensor<f32> {
  %logits = gpuc.matmul %h, transpose %w : (tensor<1024x8xf32>, tensor<1000x8xf32>) -> tensor<1024x1000xf32>
  %p = gpuc.log_softmax %logits dim 1 : tensor<1024x1000xf32>
  %sum, %count = gpuc.nll %p, %l : (tensor<1024x1000xf32>, tensor<1024xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum : tensor<f32>
}

// -----

// Not over the classes, by itself or once they are moved, or cut; read elsewhere, too.
// CHECK-LABEL: func.func @left(
// CHECK-COUNT-5: gpuc.nll
func.func @left(%x: tensor<10x10xf32>, %y: tensor<2x3x4xf32>, %z: tensor<3x8xf32>, %l: tensor<10xi64>, %k: tensor<2x4xi64>)
    -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<f32>) {
  %p0 = gpuc.log_softmax %x dim 0 : tensor<10x10xf32>
  %s0, %c0 = gpuc.nll %p0, %l : (tensor<10x10xf32>, tensor<10xi64>) -> (tensor<f32>, tensor<f32>)
  %p1 = gpuc.log_softmax %y dim 2 : tensor<2x3x4xf32>
  %t1 = gpuc.transpose %p1 permutation [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %s1, %c1 = gpuc.nll %t1, %k : (tensor<2x4x3xf32>, tensor<2x4xi64>) -> (tensor<f32>, tensor<f32>)
  %p2 = gpuc.log_softmax %z dim 0 : tensor<3x8xf32>
  %r2 = gpuc.reshape %p2 : tensor<3x8xf32> to tensor<2x4x3xf32>
  %s2, %c2 = gpuc.nll %r2, %k : (tensor<2x4x3xf32>, tensor<2x4xi64>) -> (tensor<f32>, tensor<f32>)
  %p3 = gpuc.log_softmax %x dim 1 : tensor<10x10xf32>
  %s3, %c3 = gpuc.nll %p3, %l : (tensor<10x10xf32>, tensor<10xi64>) -> (tensor<f32>, tensor<f32>)
  %p4 = gpuc.log_softmax %x dim 1 : tensor<10x10xf32>
  %t4 = gpuc.transpose %p4 permutation [0, 1] : (tensor<10x10xf32>) -> tensor<10x10xf32>
  %s4, %c4 = gpuc.nll %t4, %l : (tensor<10x10xf32>, tensor<10xi64>) -> (tensor<f32>, tensor<f32>)
  return %s0, %s1, %s2, %s3, %p3, %t4, %s4 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<f32>
}
