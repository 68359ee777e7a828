// RUN: gpuc-opt %s | gpuc-opt | FileCheck %s
// RUN: gpuc-opt %s -emit-bytecode | gpuc-opt | FileCheck %s

// CHECK-LABEL: func.func @rnn(
// CHECK: %[[R:.*]]:2 = gpuc.scan over(%{{.*}}) carry(%{{.*}}) captures(%{{.*}}) : (tensor<5x2x3xf32>, tensor<2x4xf32>, tensor<3x4xf32>) -> (tensor<2x4xf32>, tensor<5x2x4xf32>) {
// CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<2x3xf32>, %[[H:.*]]: tensor<2x4xf32>, %[[W:.*]]: tensor<3x4xf32>):
// CHECK-NEXT: gpuc.matmul %[[X]], %[[W]]
// CHECK: gpuc.yield %[[N:.*]], %[[N]] : tensor<2x4xf32>, tensor<2x4xf32>
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @rnn(%xs: tensor<5x2x3xf32>, %h0: tensor<2x4xf32>, %w: tensor<3x4xf32>)
    -> (tensor<2x4xf32>, tensor<5x2x4xf32>) {
  %hn, %hs = gpuc.scan over(%xs) carry(%h0) captures(%w)
      : (tensor<5x2x3xf32>, tensor<2x4xf32>, tensor<3x4xf32>) -> (tensor<2x4xf32>, tensor<5x2x4xf32>) {
  ^bb0(%x: tensor<2x3xf32>, %h: tensor<2x4xf32>, %v: tensor<3x4xf32>):
    %0 = gpuc.matmul %x, %v : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %1 = gpuc.add %0, %h : tensor<2x4xf32>
    gpuc.yield %1, %1 : tensor<2x4xf32>, tensor<2x4xf32>
  }
  return %hn, %hs : tensor<2x4xf32>, tensor<5x2x4xf32>
}

// CHECK-LABEL: func.func @counted_in_reverse(
// CHECK: gpuc.scan count 7 carry(%{{.*}}) reverse recompute : (tensor<4xf32>) -> tensor<4xf32> {
func.func @counted_in_reverse(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = gpuc.scan count 7 carry(%x) reverse recompute : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %0 = gpuc.sin %a : tensor<4xf32>
    gpuc.yield %0 : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @map(
// CHECK: gpuc.scan over(%{{.*}}) : (tensor<3x4xf32>) -> tensor<3xf32> {
func.func @map(%x: tensor<3x4xf32>) -> tensor<3xf32> {
  %y = gpuc.scan over(%x) : (tensor<3x4xf32>) -> tensor<3xf32> {
  ^bb0(%a: tensor<4xf32>):
    %0 = gpuc.sum %a dims [0] : (tensor<4xf32>) -> tensor<f32>
    gpuc.yield %0 : tensor<f32>
  }
  return %y : tensor<3xf32>
}

// The batch leads, time follows.
// CHECK-LABEL: func.func @batch_first(
// CHECK: gpuc.scan over(%{{.*}}) batch_first : (tensor<?x3x4xf32>) -> tensor<?x3x4xf32> {
func.func @batch_first(%x: tensor<?x3x4xf32>) -> tensor<?x3x4xf32> {
  %y = gpuc.scan over(%x) batch_first : (tensor<?x3x4xf32>) -> tensor<?x3x4xf32> {
  ^bb0(%a: tensor<?x4xf32>):
    %0 = gpuc.sin %a : tensor<?x4xf32>
    gpuc.yield %0 : tensor<?x4xf32>
  }
  return %y : tensor<?x3x4xf32>
}
