// Normalisations read back what they write.
// RUN: gpuc-opt %s -o %t.mlir
// RUN: gpuc-opt %t.mlir | diff %t.mlir -
// RUN: gpuc-opt %s --mlir-print-op-generic | gpuc-opt | diff %t.mlir -
// RUN: gpuc-opt %s --emit-bytecode | gpuc-opt | diff %t.mlir -
// RUN: FileCheck %s < %t.mlir

// CHECK-LABEL: @rows
func.func @rows(%x: tensor<?x6x4xf32>, %half: tensor<?x6x4xf16>, %w: tensor<4xf32>, %wide: tensor<6x4xf16>) {
  // CHECK: gpuc.layer_norm %{{.*}} dim 2 weight %{{.*}} bias %{{[^ ]*}} : (
  %0:3 = gpuc.layer_norm %x dim 2 weight %w bias %w : (tensor<?x6x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<?x6x4xf32>, tensor<?x6xf32>, tensor<?x6xf32>)
  // CHECK: gpuc.layer_norm %{{.*}} dim 2 bias %{{.*}} {eps = 1.000000e-03 : f64} : (
  %1:3 = gpuc.layer_norm %x dim 2 bias %w {eps = 0.001 : f64} : (tensor<?x6x4xf32>, tensor<4xf32>) -> (tensor<?x6x4xf32>, tensor<?x6xf32>, tensor<?x6xf32>)
  // Statistics of half precision are f32.
  // CHECK: gpuc.layer_norm %{{.*}} dim 1 weight %{{[^ ]*}} : (tensor<?x6x4xf16>, tensor<6x4xf16>) -> (tensor<?x6x4xf16>, tensor<?xf32>, tensor<?xf32>)
  %2:3 = gpuc.layer_norm %half dim 1 weight %wide : (tensor<?x6x4xf16>, tensor<6x4xf16>) -> (tensor<?x6x4xf16>, tensor<?xf32>, tensor<?xf32>)
  // CHECK: gpuc.rms_norm %{{.*}} dim 2 weight %{{[^ ]*}} : (
  %3:2 = gpuc.rms_norm %x dim 2 weight %w : (tensor<?x6x4xf32>, tensor<4xf32>) -> (tensor<?x6x4xf32>, tensor<?x6xf32>)
  // CHECK: gpuc.rms_norm %{{.*}} dim 1 : (
  %4:2 = gpuc.rms_norm %half dim 1 : (tensor<?x6x4xf16>) -> (tensor<?x6x4xf16>, tensor<?xf32>)
  return
}

// CHECK-LABEL: @channels
func.func @channels(%x: tensor<?x3x8x8xf32>, %half: tensor<5x3xbf16>, %c: tensor<3xf32>, %s: tensor<3xbf16>, %rows: tensor<i32>) {
  // CHECK: gpuc.batch_norm %{{.*}} running %{{.*}}, %{{.*}} weight %{{.*}} bias %{{[^ ]*}} : (
  %0:5 = gpuc.batch_norm %x running %c, %c weight %c bias %c : (tensor<?x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<?x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  // CHECK: gpuc.batch_norm %{{.*}} running %{{.*}}, %{{.*}} weight %{{.*}} {momentum = 2.500000e-01 : f64} : (
  %1:5 = gpuc.batch_norm %half running %c, %c weight %s {momentum = 0.25 : f64} : (tensor<5x3xbf16>, tensor<3xf32>, tensor<3xf32>, tensor<3xbf16>) -> (tensor<5x3xbf16>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  // CHECK: gpuc.batch_norm %{{.*}} running %{{.*}}, %{{.*}} weight %{{.*}} bias %{{.*}} rows %{{.*}} sync : (
  %2:5 = gpuc.batch_norm %x running %c, %c weight %c bias %c rows %rows sync : (tensor<?x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<i32>) -> (tensor<?x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}
