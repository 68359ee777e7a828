// RUN: gpuc-opt %s --gpuc-layout --canonicalize | FileCheck %s
// RUN: gpuc-opt %s --gpuc-layout=target=cuda:sm_90 --canonicalize | FileCheck %s --check-prefix=CUDA

// What a loop multiplies few rows by, transposed, is pre-transposed: once, before it.
// CHECK-LABEL: func.func @recurrent(
// CHECK-SAME:      %[[XS:.*]]: tensor<16x8x32xf32>, %[[H:.*]]: tensor<8x32xf32>, %[[W:.*]]: tensor<32x32xf32>)
// CHECK:         %[[TRANSPOSED:.*]] = gpuc.transpose %[[W]] permutation [1, 0]
// CHECK:         gpuc.scan over(%[[XS]]) carry(%[[H]]) captures(%[[TRANSPOSED]])
// CHECK-NEXT:    ^bb0(%{{.*}}, %[[CARRIED:.*]]: tensor<8x32xf32>, %[[INNER:.*]]: tensor<32x32xf32>):
// CHECK-NEXT:      gpuc.matmul %[[CARRIED]], %[[INNER]]
// CUDA-LABEL:  func.func @recurrent(
// CUDA-NOT:      gpuc.transpose
// CUDA:          gpuc.matmul %{{.*}}, transpose
func.func @recurrent(%xs: tensor<16x8x32xf32>, %h0: tensor<8x32xf32>, %w: tensor<32x32xf32>) -> tensor<8x32xf32> {
  %h = gpuc.scan over(%xs) carry(%h0) captures(%w) : (tensor<16x8x32xf32>, tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32> {
  ^bb0(%x: tensor<8x32xf32>, %c: tensor<8x32xf32>, %v: tensor<32x32xf32>):
    %p = gpuc.matmul %c, transpose %v : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
    %s = gpuc.add %x, %p : tensor<8x32xf32>
    gpuc.yield %s : tensor<8x32xf32>
  }
  return %h : tensor<8x32xf32>
}

// Who else reads it reads it as it is, and so do products that have it straight.
// CHECK-LABEL: func.func @both_ways(
// CHECK-SAME:      %[[W:[^:]*]]: tensor<32x32xf32>)
// CHECK:         %[[TRANSPOSED:.*]] = gpuc.transpose %[[W]] permutation [1, 0]
// CHECK:         captures(%[[W]], %[[TRANSPOSED]])
// CHECK:         ^bb0(%[[X:.*]]: tensor<8x32xf32>, %[[C:.*]]: tensor<8x32xf32>, %[[V:.*]]: tensor<32x32xf32>, %[[VT:.*]]: tensor<32x32xf32>):
// CHECK-DAG:       gpuc.matmul %[[C]], %[[VT]] :
// CHECK-DAG:       gpuc.matmul %[[X]], %[[V]] :
func.func @both_ways(%xs: tensor<16x8x32xf32>, %h0: tensor<8x32xf32>, %w: tensor<32x32xf32>) -> tensor<8x32xf32> {
  %h = gpuc.scan over(%xs) carry(%h0) captures(%w) : (tensor<16x8x32xf32>, tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32> {
  ^bb0(%x: tensor<8x32xf32>, %c: tensor<8x32xf32>, %v: tensor<32x32xf32>):
    %p = gpuc.matmul %c, transpose %v : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
    %q = gpuc.matmul %x, %v : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
    %s = gpuc.add %q, %p : tensor<8x32xf32>
    gpuc.yield %s : tensor<8x32xf32>
  }
  return %h : tensor<8x32xf32>
}

// Not: in a loop of few iterations, for many rows, for what changes in the loop, in a chunked one.
// CHECK-LABEL: func.func @not_worth_it(
// CHECK-NOT:     gpuc.transpose
// CHECK:         return
func.func @not_worth_it(%few: tensor<15x8x32xf32>, %h0: tensor<8x32xf32>, %many: tensor<16x65x32xf32>, %g0: tensor<65x32xf32>, %ws: tensor<16x32x32xf32>, %w: tensor<32x32xf32>) -> (tensor<8x32xf32>, tensor<65x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>) {
  %0 = gpuc.scan over(%few) carry(%h0) captures(%w) : (tensor<15x8x32xf32>, tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32> {
  ^bb0(%x: tensor<8x32xf32>, %c: tensor<8x32xf32>, %v: tensor<32x32xf32>):
    %p = gpuc.matmul %c, transpose %v : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
    %s = gpuc.add %x, %p : tensor<8x32xf32>
    gpuc.yield %s : tensor<8x32xf32>
  }
  %1 = gpuc.scan over(%many) carry(%g0) captures(%w) : (tensor<16x65x32xf32>, tensor<65x32xf32>, tensor<32x32xf32>) -> tensor<65x32xf32> {
  ^bb0(%x: tensor<65x32xf32>, %c: tensor<65x32xf32>, %v: tensor<32x32xf32>):
    %p = gpuc.matmul %c, transpose %v : (tensor<65x32xf32>, tensor<32x32xf32>) -> tensor<65x32xf32>
    %s = gpuc.add %x, %p : tensor<65x32xf32>
    gpuc.yield %s : tensor<65x32xf32>
  }
  %2 = gpuc.scan over(%ws) carry(%h0) : (tensor<16x32x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32> {
  ^bb0(%v: tensor<32x32xf32>, %c: tensor<8x32xf32>):
    %p = gpuc.matmul %c, transpose %v : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
    gpuc.yield %p : tensor<8x32xf32>
  }
  %3 = gpuc.scan over(%ws) carry(%h0) captures(%w) chunked : (tensor<16x32x32xf32>, tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32> {
  ^bb0(%x: tensor<32x32xf32>, %c: tensor<8x32xf32>, %v: tensor<32x32xf32>):
    %p = gpuc.matmul %c, transpose %v : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
    %q = gpuc.matmul %p, %x : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
    gpuc.yield %q : tensor<8x32xf32>
  }
  return %0, %1, %2, %3 : tensor<8x32xf32>, tensor<65x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>
}
