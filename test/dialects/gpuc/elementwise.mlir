// Every elementwise op reads back what it writes: as text, as generic text and as bytecode.
// RUN: gpuc-opt %s -o %t.mlir
// RUN: gpuc-opt %t.mlir | diff %t.mlir -
// RUN: gpuc-opt %s --mlir-print-op-generic | gpuc-opt | diff %t.mlir -
// RUN: gpuc-opt %s --emit-bytecode | gpuc-opt | diff %t.mlir -
// RUN: FileCheck %s < %t.mlir

// CHECK-LABEL: @arithmetic
func.func @arithmetic(%a: tensor<?x3xf32>, %b: tensor<?x3xf32>, %c: tensor<?x3xf32>) {
  // CHECK: gpuc.add %arg0, %arg1 : tensor<?x3xf32>
  %0 = gpuc.add %a, %b : tensor<?x3xf32>
  %1 = gpuc.sub %a, %b : tensor<?x3xf32>
  %2 = gpuc.mul %a, %b : tensor<?x3xf32>
  %3 = gpuc.div %a, %b : tensor<?x3xf32>
  %4 = gpuc.rem %a, %b : tensor<?x3xf32>
  %5 = gpuc.max %a, %b : tensor<?x3xf32>
  %6 = gpuc.min %a, %b : tensor<?x3xf32>
  %7 = gpuc.pow %a, %b : tensor<?x3xf32>
  // CHECK: gpuc.fma %arg0, %arg1, %arg2 : tensor<?x3xf32>
  %8 = gpuc.fma %a, %b, %c : tensor<?x3xf32>
  %9 = gpuc.neg %a : tensor<?x3xf32>
  %10 = gpuc.abs %a : tensor<?x3xf32>
  %11 = gpuc.sign %a : tensor<?x3xf32>
  %12 = gpuc.floor %a : tensor<?x3xf32>
  %13 = gpuc.ceil %a : tensor<?x3xf32>
  %14 = gpuc.round %a : tensor<?x3xf32>
  return
}

// CHECK-LABEL: @transcendental
func.func @transcendental(%a: tensor<4xf64>) {
  %0 = gpuc.exp %a : tensor<4xf64>
  %1 = gpuc.expm1 %a : tensor<4xf64>
  %2 = gpuc.log %a : tensor<4xf64>
  %3 = gpuc.log1p %a : tensor<4xf64>
  %4 = gpuc.sqrt %a : tensor<4xf64>
  %5 = gpuc.rsqrt %a : tensor<4xf64>
  %6 = gpuc.sin %a : tensor<4xf64>
  %7 = gpuc.cos %a : tensor<4xf64>
  %8 = gpuc.tan %a : tensor<4xf64>
  %9 = gpuc.atan %a : tensor<4xf64>
  %10 = gpuc.tanh %a : tensor<4xf64>
  %11 = gpuc.sigmoid %a : tensor<4xf64>
  %12 = gpuc.erf %a : tensor<4xf64>
  return
}

// CHECK-LABEL: @activations
func.func @activations(%a: tensor<4xbf16>) {
  %0 = gpuc.relu %a : tensor<4xbf16>
  // CHECK: gpuc.leaky_relu %arg0 : tensor<4xbf16>
  %1 = gpuc.leaky_relu %a : tensor<4xbf16>
  // CHECK: gpuc.leaky_relu %arg0 {slope = 2.000000e-01 : f64} : tensor<4xbf16>
  %2 = gpuc.leaky_relu %a {slope = 0.2 : f64} : tensor<4xbf16>
  %3 = gpuc.gelu %a : tensor<4xbf16>
  // CHECK: gpuc.gelu %arg0 approximate : tensor<4xbf16>
  %4 = gpuc.gelu %a approximate : tensor<4xbf16>
  %5 = gpuc.silu %a : tensor<4xbf16>
  // CHECK: gpuc.clamp %arg0 low -1.000000e+00 high 1.000000e-01 : tensor<4xbf16>
  %6 = gpuc.clamp %a low -1.0 high 0.1 : tensor<4xbf16>
  return
}

// CHECK-LABEL: @selection
func.func @selection(%a: tensor<4xi32>, %b: tensor<4xi32>, %c: tensor<4xi1>, %x: tensor<4xf32>) {
  %0 = gpuc.and %a, %b : tensor<4xi32>
  %1 = gpuc.or %a, %b : tensor<4xi32>
  %2 = gpuc.xor %c, %c : tensor<4xi1>
  %3 = gpuc.not %c : tensor<4xi1>
  // CHECK: gpuc.compare eq %arg0, %arg1 : tensor<4xi32>
  %4 = gpuc.compare eq %a, %b : tensor<4xi32>
  %5 = gpuc.compare ne %a, %b : tensor<4xi32>
  %6 = gpuc.compare lt %a, %b : tensor<4xi32>
  %7 = gpuc.compare le %a, %b : tensor<4xi32>
  %8 = gpuc.compare gt %a, %b : tensor<4xi32>
  %9 = gpuc.compare ge %a, %b : tensor<4xi32>
  // CHECK: gpuc.select %arg2, %arg0, %arg1 : tensor<4xi1>, tensor<4xi32>
  %10 = gpuc.select %c, %a, %b : tensor<4xi1>, tensor<4xi32>
  // CHECK: gpuc.cast %arg0 : tensor<4xi32> to tensor<4xui8>
  %11 = gpuc.cast %a : tensor<4xi32> to tensor<4xui8>
  %12 = gpuc.is_finite %x : tensor<4xf32>
  %13 = gpuc.stop_gradient %x : tensor<4xf32>
  // CHECK: gpuc.iota dim 0 : tensor<?xi64>
  %14 = gpuc.iota dim 0 : tensor<?xi64>
  return
}
