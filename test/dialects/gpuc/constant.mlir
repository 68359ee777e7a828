// Numbers read back to the same bits, however they are written.
// RUN: gpuc-opt %s | FileCheck %s
// RUN: gpuc-opt %s | gpuc-opt | FileCheck %s
// RUN: gpuc-opt %s -emit-bytecode -o - | gpuc-opt | FileCheck %s

// CHECK-LABEL: @decimals
func.func @decimals() {
  // CHECK-NEXT: constant 0.003921569 : tensor<?x784xf32>
  %0 = gpuc.constant 3.92156886E-3 : tensor<?x784xf32>
  // The shortest decimal of an f64, which is longer than that of the f32 nearest to it.
  // CHECK-NEXT: constant 0.1 : tensor<f64>
  %1 = gpuc.constant 0.1 : tensor<f64>
  // CHECK-NEXT: constant 0.10000000149011612 : tensor<f64>
  %2 = gpuc.constant 0.10000000149011612 : tensor<f64>
  // The smallest f32 that is not 0.
  // CHECK-NEXT: constant 1.0e-45 : tensor<f32>
  %3 = gpuc.constant 1.0e-45 : tensor<f32>
  // CHECK-NEXT: constant -0.0 : tensor<bf16>
  %4 = gpuc.constant -0.0 : tensor<bf16>
  // CHECK-NEXT: constant 3.0 : tensor<f16>
  %5 = gpuc.constant 3 : tensor<f16>
  // CHECK-NEXT: constant 1.0e+300 : tensor<f64>
  %6 = gpuc.constant 1.0e300 : tensor<f64>
  return
}

// CHECK-LABEL: @not_finite
func.func @not_finite() {
  // CHECK-NEXT: constant inf : tensor<4xf16>
  %0 = gpuc.constant inf : tensor<4xf16>
  // CHECK-NEXT: constant -inf : tensor<4xf64>
  %1 = gpuc.constant -inf : tensor<4xf64>
  // CHECK-NEXT: constant nan : tensor<4xf32>
  %2 = gpuc.constant nan : tensor<4xf32>
  // CHECK-NEXT: constant nan : tensor<4xf32>
  %3 = gpuc.constant nan(0x7fc00000) : tensor<4xf32>
  // CHECK-NEXT: constant nan(0xffc00001) : tensor<4xf32>
  %4 = gpuc.constant nan(0xffc00001) : tensor<4xf32>
  return
}

// CHECK-LABEL: @integers
func.func @integers() {
  // CHECK-NEXT: constant 255 : tensor<ui8>
  %0 = gpuc.constant 255 : tensor<ui8>
  // CHECK-NEXT: constant -128 : tensor<i8>
  %1 = gpuc.constant -128 : tensor<i8>
  // CHECK-NEXT: constant -9223372036854775808 : tensor<i64>
  %2 = gpuc.constant -9223372036854775808 : tensor<i64>
  // CHECK-NEXT: constant true : tensor<?xi1>
  %3 = gpuc.constant true : tensor<?xi1>
  return
}

// CHECK-LABEL: @dense
func.func @dense() {
  // CHECK-NEXT: constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
  %0 = gpuc.constant dense<[1.0, 2.0]> : tensor<2xf32>
  // Elements that are all one number are written as that number.
  // CHECK-NEXT: constant 1.0 : tensor<2xf32>
  %1 = gpuc.constant dense<1.0> : tensor<2xf32>
  return
}
