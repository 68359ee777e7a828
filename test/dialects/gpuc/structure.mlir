// Every op that moves, reduces or contracts reads back what it writes.
// RUN: gpuc-opt %s -o %t.mlir
// RUN: gpuc-opt %t.mlir | diff %t.mlir -
// RUN: gpuc-opt %s --mlir-print-op-generic | gpuc-opt | diff %t.mlir -
// RUN: gpuc-opt %s --emit-bytecode | gpuc-opt | diff %t.mlir -
// RUN: FileCheck %s < %t.mlir

// CHECK-LABEL: @moves
func.func @moves(%x: tensor<?x6x4xf32>, %b: tensor<4xf32>) {
  // CHECK: gpuc.reshape %arg0 : tensor<?x6x4xf32> to tensor<?x24xf32>
  %0 = gpuc.reshape %x : tensor<?x6x4xf32> to tensor<?x24xf32>
  %1 = gpuc.transpose %x permutation [0, 2, 1] : (tensor<?x6x4xf32>) -> tensor<?x4x6xf32>
  // CHECK: gpuc.broadcast %arg1 dims [1] : tensor<4xf32> to tensor<?x4xf32>
  %2 = gpuc.broadcast %b dims [1] : tensor<4xf32> to tensor<?x4xf32>
  // Elements 1 and 4 of 6, all of the others.
  // CHECK: gpuc.slice %arg0 starts [0, 1, 0] limits [-1, 6, -1] strides [1, 3, 1] : (tensor<?x6x4xf32>) -> tensor<?x2x4xf32>
  %3 = gpuc.slice %x starts [0, 1, 0] limits [-1, 6, -1] strides [1, 3, 1] : (tensor<?x6x4xf32>) -> tensor<?x2x4xf32>
  // 1 + 6 + 5 between + 2 = 14.
  %4 = gpuc.pad %x low [0, 1, 0] high [0, 2, 0] interior [0, 1, 0] : (tensor<?x6x4xf32>) -> tensor<?x14x4xf32>
  // CHECK: {value = 5.000000e-01 : f64}
  %5 = gpuc.pad %b low [1] high [1] interior [0] {value = 0.5 : f64} : (tensor<4xf32>) -> tensor<6xf32>
  %6 = gpuc.concat %x, %x dim 1 : (tensor<?x6x4xf32>, tensor<?x6x4xf32>) -> tensor<?x12x4xf32>
  %7 = gpuc.reverse %x dims [1, 2] : tensor<?x6x4xf32>
  return
}

// CHECK-LABEL: @indexed
func.func @indexed(%table: tensor<100x8xf32>, %tokens: tensor<?x5xi32>, %rows: tensor<3xi64>, %new: tensor<3x8xf32>,
                   %start: tensor<2xi32>, %window: tensor<2x8xf32>) {
  %0 = gpuc.gather %table, %tokens dim 0 : (tensor<100x8xf32>, tensor<?x5xi32>) -> tensor<?x5x8xf32>
  %1 = gpuc.scatter_add %table, %rows, %new dim 0 : (tensor<100x8xf32>, tensor<3xi64>, tensor<3x8xf32>) -> tensor<100x8xf32>
  %2 = gpuc.dynamic_slice %table, %start sizes [2, -1] : (tensor<100x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  %3 = gpuc.dynamic_update_slice %table, %window, %start : (tensor<100x8xf32>, tensor<2x8xf32>, tensor<2xi32>) -> tensor<100x8xf32>
  return
}

// CHECK-LABEL: @ordered
func.func @ordered(%x: tensor<?x6x4xf32>, %i: tensor<7xui8>) {
  // CHECK: gpuc.sort %arg0 dim 1 : (tensor<?x6x4xf32>) -> (tensor<?x6x4xf32>, tensor<?x6x4xi64>)
  %v0, %i0 = gpuc.sort %x dim 1 : (tensor<?x6x4xf32>) -> (tensor<?x6x4xf32>, tensor<?x6x4xi64>)
  // CHECK: gpuc.sort %arg1 dim 0 descending : (tensor<7xui8>) -> (tensor<7xui8>, tensor<7xi64>)
  %v1, %i1 = gpuc.sort %i dim 0 descending : (tensor<7xui8>) -> (tensor<7xui8>, tensor<7xi64>)
  // CHECK: gpuc.top_k %arg0 k 3 dim 1 : (tensor<?x6x4xf32>) -> (tensor<?x3x4xf32>, tensor<?x3x4xi64>)
  %v2, %i2 = gpuc.top_k %x k 3 dim 1 : (tensor<?x6x4xf32>) -> (tensor<?x3x4xf32>, tensor<?x3x4xi64>)
  // CHECK: gpuc.top_k %arg1 k 7 dim 0 smallest : (tensor<7xui8>) -> (tensor<7xui8>, tensor<7xi64>)
  %v3, %i3 = gpuc.top_k %i k 7 dim 0 smallest : (tensor<7xui8>) -> (tensor<7xui8>, tensor<7xi64>)
  return
}

// CHECK-LABEL: @reductions
func.func @reductions(%x: tensor<?x6x4xf32>) {
  // CHECK: gpuc.sum %arg0 dims [0, 2] : (tensor<?x6x4xf32>) -> tensor<6xf32>
  %0 = gpuc.sum %x dims [0, 2] : (tensor<?x6x4xf32>) -> tensor<6xf32>
  %1 = gpuc.mean %x dims [1] : (tensor<?x6x4xf32>) -> tensor<?x4xf32>
  %2 = gpuc.reduce_max %x dims [1] : (tensor<?x6x4xf32>) -> tensor<?x4xf32>
  %3 = gpuc.reduce_min %x dims [1] : (tensor<?x6x4xf32>) -> tensor<?x4xf32>
  %4 = gpuc.prod %x dims [1] : (tensor<?x6x4xf32>) -> tensor<?x4xf32>
  %5 = gpuc.argmax %x dim 2 : (tensor<?x6x4xf32>) -> tensor<?x6xi64>
  %6 = gpuc.cumsum %x dim 1 : tensor<?x6x4xf32>
  return
}

// CHECK-LABEL: @contractions
func.func @contractions(%x: tensor<?x784xf32>, %w: tensor<128x784xf32>, %q: tensor<2x3x4xf64>) {
  // CHECK: gpuc.matmul %arg0, transpose %arg1 : (tensor<?x784xf32>, tensor<128x784xf32>) -> tensor<?x128xf32>
  %0 = gpuc.matmul %x, transpose %w : (tensor<?x784xf32>, tensor<128x784xf32>) -> tensor<?x128xf32>
  // The batch is contracted away.
  %1 = gpuc.matmul transpose %x, %x : (tensor<?x784xf32>, tensor<?x784xf32>) -> tensor<784x784xf32>
  %2 = gpuc.matmul transpose %q, %q : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x4x4xf64>
  return
}
