// RUN: gpuc-opt %s --gpuc-fuse-linear-losses --split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-fuse-linear-losses=target=cuda:sm_90 --split-input-file | FileCheck %s --check-prefix=CUDA

// 1,024 rows of 1,000 classes do not fit into one chunk. The weight is as the op wants it; class weights, mask and
// attributes stay.
// CHECK-LABEL: func.func @large(
// CHECK-SAME:    %[[H:[a-z0-9]+]]: tensor<1024x8xf32>, %[[W:[a-z0-9]+]]: tensor<1000x8xf32>, %[[L:[a-z0-9]+]]: tensor<1024xi32>, %[[C:[a-z0-9]+]]: tensor<1000xf32>, %[[M:[a-z0-9]+]]: tensor<1024xi1>
// CHECK-NEXT:    gpuc.linear_cross_entropy %[[H]], %[[W]] labels %[[L]] class_weight %[[C]] mask %[[M]] {ignore_index = 3 : i64, smoothing = 1.000000e-01 : f64}
// CHECK-NEXT:    return
//
// A GPU has more to do at a time; 1,024 are all of these.
// CUDA-LABEL: func.func @large(
// CUDA:         gpuc.linear_cross_entropy {{.*}} chunk 1024 {
func.func @large(%h: tensor<1024x8xf32>, %w: tensor<1000x8xf32>, %l: tensor<1024xi32>, %c: tensor<1000xf32>, %m: tensor<1024xi1>) -> tensor<f32> {
  %logits = gpuc.matmul %h, transpose %w : (tensor<1024x8xf32>, tensor<1000x8xf32>) -> tensor<1024x1000xf32>
  %sum, %count = gpuc.cross_entropy %logits, %l weight %c mask %m {ignore_index = 3 : i64, smoothing = 0.1 : f64} : (tensor<1024x1000xf32>, tensor<1024xi32>, tensor<1000xf32>, tensor<1024xi1>) -> (tensor<f32>, tensor<f32>)
  return %sum : tensor<f32>
}

// -----

// A bias, on either side; one weight for all sentences, stored the other way; rows put one after another for the loss.
// CHECK-LABEL: func.func @bias(
// CHECK-SAME:    %[[H:[a-z0-9]+]]: tensor<8x128x8xf32>, %[[W:[a-z0-9]+]]: tensor<8x1000xf32>, %[[B:[a-z0-9]+]]: tensor<1000xf32>, %[[L:[a-z0-9]+]]: tensor<1024xi32>
// CHECK-DAG:     %[[ROWS:.*]] = gpuc.reshape %[[H]] : tensor<8x128x8xf32> to tensor<1024x8xf32>
// CHECK-DAG:     %[[WT:.*]] = gpuc.transpose %[[W]] permutation [1, 0]
// CHECK:         gpuc.linear_accuracy %[[ROWS]], %[[WT]] bias %[[B]] labels %[[L]]
// CHECK-NEXT:    return
func.func @bias(%h: tensor<8x128x8xf32>, %w: tensor<8x1000xf32>, %b: tensor<1000xf32>, %l: tensor<1024xi32>) -> tensor<f32> {
  %product = gpuc.matmul %h, %w : (tensor<8x128x8xf32>, tensor<8x1000xf32>) -> tensor<8x128x1000xf32>
  %bias = gpuc.broadcast %b dims [2] : tensor<1000xf32> to tensor<8x128x1000xf32>
  %logits = gpuc.add %bias, %product : tensor<8x128x1000xf32>
  %flat = gpuc.reshape %logits : tensor<8x128x1000xf32> to tensor<1024x1000xf32>
  %sum, %count = gpuc.accuracy %flat, %l : (tensor<1024x1000xf32>, tensor<1024xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum : tensor<f32>
}

// -----

// The logits are needed besides.
// CHECK-LABEL: func.func @read(
// CHECK:         gpuc.cross_entropy
func.func @read(%h: tensor<1024x8xf32>, %w: tensor<1000x8xf32>, %l: tensor<1024xi32>) -> (tensor<f32>, tensor<1024x1000xf32>) {
  %logits = gpuc.matmul %h, transpose %w : (tensor<1024x8xf32>, tensor<1000x8xf32>) -> tensor<1024x1000xf32>
  %sum, %count = gpuc.cross_entropy %logits, %l : (tensor<1024x1000xf32>, tensor<1024xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %logits : tensor<f32>, tensor<1024x1000xf32>
}

// -----

// 256 rows are one chunk, however many classes there are; the logits would be stored anyway.
// CHECK-LABEL: func.func @small(
// CHECK:         gpuc.cross_entropy
func.func @small(%h: tensor<256x8xf32>, %w: tensor<1000x8xf32>, %l: tensor<256xi32>) -> tensor<f32> {
  %logits = gpuc.matmul %h, transpose %w : (tensor<256x8xf32>, tensor<1000x8xf32>) -> tensor<256x1000xf32>
  %sum, %count = gpuc.cross_entropy %logits, %l : (tensor<256x1000xf32>, tensor<256xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum : tensor<f32>
}

// -----

// What is added is no bias: a number for each logit, or for each row.
// CHECK-LABEL: func.func @added(
// CHECK-COUNT-2: gpuc.cross_entropy
func.func @added(%h: tensor<1000x8xf32>, %w: tensor<1000x8xf32>, %l: tensor<1000xi32>, %a: tensor<1000x1000xf32>, %r: tensor<1000xf32>) -> (tensor<f32>, tensor<f32>) {
  %0 = gpuc.matmul %h, transpose %w : (tensor<1000x8xf32>, tensor<1000x8xf32>) -> tensor<1000x1000xf32>
  %1 = gpuc.add %0, %a : tensor<1000x1000xf32>
  %2:2 = gpuc.cross_entropy %1, %l : (tensor<1000x1000xf32>, tensor<1000xi32>) -> (tensor<f32>, tensor<f32>)
  %3 = gpuc.matmul %h, transpose %w : (tensor<1000x8xf32>, tensor<1000x8xf32>) -> tensor<1000x1000xf32>
  %4 = gpuc.broadcast %r dims [0] : tensor<1000xf32> to tensor<1000x1000xf32>
  %5 = gpuc.add %3, %4 : tensor<1000x1000xf32>
  %6:2 = gpuc.cross_entropy %5, %l : (tensor<1000x1000xf32>, tensor<1000xi32>) -> (tensor<f32>, tensor<f32>)
  return %2#0, %6#0 : tensor<f32>, tensor<f32>
}

// -----

// A weight of its own for each sentence is no layer.
// CHECK-LABEL: func.func @batched(
// CHECK:         gpuc.cross_entropy
func.func @batched(%h: tensor<8x128x8xf32>, %w: tensor<8x1000x8xf32>, %l: tensor<8x128xi32>) -> tensor<f32> {
  %logits = gpuc.matmul %h, transpose %w : (tensor<8x128x8xf32>, tensor<8x1000x8xf32>) -> tensor<8x128x1000xf32>
  %sum, %count = gpuc.cross_entropy %logits, %l : (tensor<8x128x1000xf32>, tensor<8x128xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum : tensor<f32>
}

// -----

// The recipe's loss calls @predict, whose logits are its own there, whatever else @predict computes of them.
// CHECK-LABEL: module @called
// CHECK:       func.func @predict
// CHECK:         gpuc.matmul
// CHECK:       func.func @loss
// CHECK-NOT:     gpuc.matmul
// CHECK:         gpuc.linear_cross_entropy
module @called {
  func.func @predict(%h: tensor<1024x8xf32>, %w: tensor<1000x8xf32>) -> (tensor<1024x1000xf32>, tensor<1024x1000xf32>) {
    %logits = gpuc.matmul %h, transpose %w : (tensor<1024x8xf32>, tensor<1000x8xf32>) -> tensor<1024x1000xf32>
    %p = gpuc.softmax %logits dim 1 : tensor<1024x1000xf32>
    return %logits, %p : tensor<1024x1000xf32>, tensor<1024x1000xf32>
  }
  func.func @loss(%h: tensor<1024x8xf32>, %w: tensor<1000x8xf32>, %l: tensor<1024xi32>) -> (tensor<f32>, tensor<f32>) {
    %0:2 = call @predict(%h, %w) : (tensor<1024x8xf32>, tensor<1000x8xf32>) -> (tensor<1024x1000xf32>, tensor<1024x1000xf32>)
    %sum, %count = gpuc.cross_entropy %0#0, %l : (tensor<1024x1000xf32>, tensor<1024xi32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss
  }
}
