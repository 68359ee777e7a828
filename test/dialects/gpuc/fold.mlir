// What is known is folded, and no result changes by a bit.
// RUN: gpuc-opt %s --canonicalize --split-input-file | FileCheck %s

// x - 0, x · 1 and x / 1 are x, and so is x + (-0).
// CHECK-LABEL: @neutral
// CHECK-NEXT: return %arg0, %arg0, %arg0, %arg0
func.func @neutral(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %zero = gpuc.constant 0.0 : tensor<4xf32>
  %minus_zero = gpuc.constant -0.0 : tensor<4xf32>
  %one = gpuc.constant 1.0 : tensor<4xf32>
  %0 = gpuc.sub %x, %zero : tensor<4xf32>
  %1 = gpuc.mul %one, %x : tensor<4xf32>
  %2 = gpuc.div %x, %one : tensor<4xf32>
  %3 = gpuc.add %x, %minus_zero : tensor<4xf32>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -0 + 0 is 0, -0 - (-0) is 0, and NaN · 0 is NaN: these stay.
// CHECK-LABEL: @not_neutral
// CHECK: gpuc.add
// CHECK: gpuc.sub
// CHECK: gpuc.mul
func.func @not_neutral(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %zero = gpuc.constant 0.0 : tensor<4xf32>
  %minus_zero = gpuc.constant -0.0 : tensor<4xf32>
  %0 = gpuc.add %x, %zero : tensor<4xf32>
  %1 = gpuc.sub %x, %minus_zero : tensor<4xf32>
  %2 = gpuc.mul %x, %zero : tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Integers have neither.
// CHECK-LABEL: @integers
// CHECK-NEXT: %[[ZERO:.*]] = gpuc.constant 0 : tensor<4xi32>
// CHECK-NEXT: return %arg0, %[[ZERO]]
func.func @integers(%x: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>) {
  %zero = gpuc.constant 0 : tensor<4xi32>
  %0 = gpuc.add %x, %zero : tensor<4xi32>
  %1 = gpuc.mul %x, %zero : tensor<4xi32>
  return %0, %1 : tensor<4xi32>, tensor<4xi32>
}

// f32: 0.1 + 0.2 rounds to 0.3 as written (0.30000001192…), f64 to 0.30000000000000004. 3 / 2 = 1.5. 0 / 0 is left.
// CHECK-LABEL: @arithmetic
// CHECK-DAG: gpuc.constant 0.3 : tensor<4xf32>
// CHECK-DAG: gpuc.constant 0.30000000000000004 : tensor<f64>
// CHECK-DAG: gpuc.constant 1.5 : tensor<f64>
// CHECK: gpuc.div
func.func @arithmetic() -> (tensor<4xf32>, tensor<f64>, tensor<f64>, tensor<f64>) {
  %a = gpuc.constant 0.1 : tensor<4xf32>
  %b = gpuc.constant 0.2 : tensor<4xf32>
  %c = gpuc.constant 0.1 : tensor<f64>
  %d = gpuc.constant 0.2 : tensor<f64>
  %e = gpuc.constant 3.0 : tensor<f64>
  %f = gpuc.constant 2.0 : tensor<f64>
  %g = gpuc.constant 0.0 : tensor<f64>
  %0 = gpuc.add %a, %b : tensor<4xf32>
  %1 = gpuc.add %c, %d : tensor<f64>
  %2 = gpuc.div %e, %f : tensor<f64>
  %3 = gpuc.div %g, %g : tensor<f64>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<f64>, tensor<f64>, tensor<f64>
}

// 1e10 is saturated, -1.7 goes toward zero, 255 as ui8 is 255.0, and 0.1 as f16 is 0.099975586.
// CHECK-LABEL: @casts
// CHECK-DAG: gpuc.constant 2147483647 : tensor<i32>
// CHECK-DAG: gpuc.constant -1 : tensor<i32>
// CHECK-DAG: gpuc.constant 255.0 : tensor<f32>
// CHECK-DAG: gpuc.constant 0.099975586 : tensor<f16>
// CHECK-DAG: gpuc.constant 1.0 : tensor<?xf32>
func.func @casts() -> (tensor<i32>, tensor<i32>, tensor<f32>, tensor<f16>, tensor<?xf32>) {
  %a = gpuc.constant 1.0e10 : tensor<f32>
  %b = gpuc.constant -1.7 : tensor<f32>
  %c = gpuc.constant 255 : tensor<ui8>
  %d = gpuc.constant 0.1 : tensor<f32>
  %e = gpuc.constant true : tensor<?xi1>
  %0 = gpuc.cast %a : tensor<f32> to tensor<i32>
  %1 = gpuc.cast %b : tensor<f32> to tensor<i32>
  %2 = gpuc.cast %c : tensor<ui8> to tensor<f32>
  %3 = gpuc.cast %d : tensor<f32> to tensor<f16>
  %4 = gpuc.cast %e : tensor<?xi1> to tensor<?xf32>
  return %0, %1, %2, %3, %4 : tensor<i32>, tensor<i32>, tensor<f32>, tensor<f16>, tensor<?xf32>
}

// CHECK-LABEL: @logic
// CHECK-DAG: %[[FALSE:.*]] = gpuc.constant false : tensor<4xi1>
// CHECK: return %arg0, %[[FALSE]], %arg0, %arg1, %arg1
func.func @logic(%c: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf32>)
    -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) {
  %true = gpuc.constant true : tensor<4xi1>
  %false = gpuc.constant false : tensor<4xi1>
  %0 = gpuc.and %true, %c : tensor<4xi1>
  %1 = gpuc.and %c, %false : tensor<4xi1>
  %n = gpuc.not %c : tensor<4xi1>
  %2 = gpuc.not %n : tensor<4xi1>
  %3 = gpuc.select %true, %x, %y : tensor<4xi1>, tensor<4xf32>
  %4 = gpuc.select %c, %x, %x : tensor<4xi1>, tensor<4xf32>
  return %0, %1, %2, %3, %4 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xf32>, tensor<4xf32>
}

// A move of a move is one move; a move there and back is none.
// CHECK-LABEL: @moves
// CHECK-NEXT: %[[B:.*]] = gpuc.broadcast %arg1 dims [2] : tensor<4xf32> to tensor<5x3x4xf32>
// CHECK-NEXT: %[[T:.*]] = gpuc.transpose %arg2 permutation [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
// CHECK-NEXT: return %arg0, %arg0, %[[B]], %arg0, %[[T]]
func.func @moves(%x: tensor<3x4xf32>, %v: tensor<4xf32>, %y: tensor<2x3x4xf32>)
    -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<5x3x4xf32>, tensor<3x4xf32>, tensor<4x2x3xf32>) {
  %0 = gpuc.reshape %x : tensor<3x4xf32> to tensor<12xf32>
  %1 = gpuc.reshape %0 : tensor<12xf32> to tensor<3x4xf32>
  %2 = gpuc.transpose %x permutation [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %3 = gpuc.transpose %2 permutation [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %4 = gpuc.broadcast %v dims [1] : tensor<4xf32> to tensor<3x4xf32>
  %5 = gpuc.broadcast %4 dims [1, 2] : tensor<3x4xf32> to tensor<5x3x4xf32>
  %6 = gpuc.slice %x starts [0, 0] limits [3, -1] strides [1, 1] : (tensor<3x4xf32>) -> tensor<3x4xf32>
  // (2, 3, 4) to (2, 4, 3) to (4, 2, 3).
  %7 = gpuc.transpose %y permutation [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %8 = gpuc.transpose %7 permutation [1, 0, 2] : (tensor<2x4x3xf32>) -> tensor<4x2x3xf32>
  return %1, %3, %5, %6, %8 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<5x3x4xf32>, tensor<3x4xf32>, tensor<4x2x3xf32>
}

// 3 · 4 ones are 12 in every order of adding; twelve tenths are not the same in every order.
// CHECK-LABEL: @sums
// CHECK-DAG: gpuc.constant 12.0 : tensor<f32>
// CHECK: gpuc.sum
func.func @sums() -> (tensor<f32>, tensor<f32>) {
  %ones = gpuc.constant 1.0 : tensor<3x4xf32>
  %tenths = gpuc.constant 0.1 : tensor<3x4xf32>
  %0 = gpuc.sum %ones dims [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  %1 = gpuc.sum %tenths dims [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %0, %1 : tensor<f32>, tensor<f32>
}

// A transpose that a matmul can read by itself is a flag; one that moves the batch dimensions stays, and so does one
// before an rhs that is the same for all.
// CHECK-LABEL: @matmul
// CHECK-NEXT: gpuc.matmul transpose %arg0, %arg1 : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
// CHECK-NEXT: gpuc.transpose
// CHECK-NEXT: gpuc.matmul
func.func @matmul(%a: tensor<4x3xf32>, %b: tensor<4x5xf32>, %c: tensor<3x2x4xf32>, %d: tensor<2x4x3xf32>)
    -> (tensor<3x5xf32>, tensor<2x3x3xf32>) {
  %0 = gpuc.transpose %a permutation [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %1 = gpuc.matmul %0, %b : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %2 = gpuc.transpose %c permutation [1, 0, 2] : (tensor<3x2x4xf32>) -> tensor<2x3x4xf32>
  %3 = gpuc.matmul %2, %d : (tensor<2x3x4xf32>, tensor<2x4x3xf32>) -> tensor<2x3x3xf32>
  return %1, %3 : tensor<3x5xf32>, tensor<2x3x3xf32>
}

// CHECK-LABEL: @matmul_with_shared_rhs
// CHECK-NEXT: gpuc.transpose
// CHECK-NEXT: gpuc.matmul %{{.*}}, transpose %arg1 : (tensor<2x3x4xf32>, tensor<5x4xf32>)
func.func @matmul_with_shared_rhs(%a: tensor<2x4x3xf32>, %b: tensor<5x4xf32>) -> tensor<2x3x5xf32> {
  %0 = gpuc.transpose %a permutation [0, 2, 1] : (tensor<2x4x3xf32>) -> tensor<2x3x4xf32>
  %1 = gpuc.transpose %b permutation [1, 0] : (tensor<5x4xf32>) -> tensor<4x5xf32>
  %2 = gpuc.matmul %0, %1 : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>
  return %2 : tensor<2x3x5xf32>
}

// One element is in order already.
// CHECK-LABEL: @single
// CHECK-NEXT: %[[FIRST:.*]] = gpuc.constant 0 : tensor<?x1xi64>
// CHECK-NEXT: return %arg0, %[[FIRST]], %arg0, %[[FIRST]]
func.func @single(%x: tensor<?x1xf32>) -> (tensor<?x1xf32>, tensor<?x1xi64>, tensor<?x1xf32>, tensor<?x1xi64>) {
  %0, %1 = gpuc.sort %x dim 1 : (tensor<?x1xf32>) -> (tensor<?x1xf32>, tensor<?x1xi64>)
  %2, %3 = gpuc.top_k %x k 1 dim 1 : (tensor<?x1xf32>) -> (tensor<?x1xf32>, tensor<?x1xi64>)
  return %0, %1, %2, %3 : tensor<?x1xf32>, tensor<?x1xi64>, tensor<?x1xf32>, tensor<?x1xi64>
}

// To choose all is to sort; to choose all but one is not.
// CHECK-LABEL: @choose_all
// CHECK-NEXT: gpuc.sort %arg0 dim 1 descending :
// CHECK-NEXT: gpuc.sort %arg0 dim 1 :
// CHECK-NEXT: gpuc.top_k %arg0 k 3 dim 1 :
func.func @choose_all(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xi64>, tensor<2x3xf32>) {
  %0, %1 = gpuc.top_k %x k 4 dim 1 : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xi64>)
  %2, %3 = gpuc.top_k %x k 4 dim 1 smallest : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xi64>)
  %4, %5 = gpuc.top_k %x k 3 dim 1 : (tensor<2x4xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
  return %0, %3, %4 : tensor<2x4xf32>, tensor<2x4xi64>, tensor<2x3xf32>
}

// Extents of 1 that a reshape adds need not be there before they repeat; others are.
// CHECK-LABEL: @repeated_ones
// CHECK-NEXT: %[[BIAS:.*]] = gpuc.broadcast %arg0 dims [1] : tensor<8xf32> to tensor<?x8x1x5xf32>
// CHECK-NEXT: %[[BOTH:.*]] = gpuc.broadcast %arg1 dims [0, 3] : tensor<?x8xf32> to tensor<?x1x3x8xf32>
// CHECK-NEXT: %[[CUT:.*]] = gpuc.reshape %arg0 : tensor<8xf32> to tensor<2x4xf32>
// CHECK-NEXT: %[[OTHER:.*]] = gpuc.broadcast %[[CUT]] dims [1, 2] : tensor<2x4xf32> to tensor<3x2x4xf32>
// CHECK-NEXT: return %[[BIAS]], %[[BOTH]], %[[OTHER]]
func.func @repeated_ones(%b: tensor<8xf32>, %x: tensor<?x8xf32>) -> (tensor<?x8x1x5xf32>, tensor<?x1x3x8xf32>, tensor<3x2x4xf32>) {
  %0 = gpuc.reshape %b : tensor<8xf32> to tensor<8x1xf32>
  %1 = gpuc.broadcast %0 dims [1, 2] : tensor<8x1xf32> to tensor<?x8x1x5xf32>
  %2 = gpuc.reshape %x : tensor<?x8xf32> to tensor<?x1x8xf32>
  %3 = gpuc.broadcast %2 dims [0, 1, 3] : tensor<?x1x8xf32> to tensor<?x1x3x8xf32>
  %4 = gpuc.reshape %b : tensor<8xf32> to tensor<2x4xf32>
  %5 = gpuc.broadcast %4 dims [1, 2] : tensor<2x4xf32> to tensor<3x2x4xf32>
  return %1, %3, %5 : tensor<?x8x1x5xf32>, tensor<?x1x3x8xf32>, tensor<3x2x4xf32>
}
