// Losses read back what they write.
// RUN: gpuc-opt %s -o %t.mlir
// RUN: gpuc-opt %t.mlir | diff %t.mlir -
// RUN: gpuc-opt %s --mlir-print-op-generic | gpuc-opt | diff %t.mlir -
// RUN: gpuc-opt %s --emit-bytecode | gpuc-opt | diff %t.mlir -
// RUN: FileCheck %s < %t.mlir

// CHECK-LABEL: @classes
func.func @classes(%x: tensor<?x7x4xf32>, %labels: tensor<?x7xi64>, %weight: tensor<4xf32>, %mask: tensor<?xi1>) {
  // CHECK: gpuc.cross_entropy %{{.*}}, %{{.*}} weight %{{.*}} mask %{{.*}} {smoothing = 1.000000e-01 : f64} : (
  %0:2 = gpuc.cross_entropy %x, %labels weight %weight mask %mask {smoothing = 0.1 : f64} : (tensor<?x7x4xf32>, tensor<?x7xi64>, tensor<4xf32>, tensor<?xi1>) -> (tensor<f32>, tensor<f32>)
  // CHECK: gpuc.cross_entropy %{{.*}}, %{{.*}} weight %{{[^ ]*}} : (
  %1:2 = gpuc.cross_entropy %x, %labels weight %weight : (tensor<?x7x4xf32>, tensor<?x7xi64>, tensor<4xf32>) -> (tensor<f32>, tensor<f32>)
  // CHECK: gpuc.nll %{{.*}}, %{{.*}} mask %{{.*}} {ignore_index = 2 : i64} : (
  %2:2 = gpuc.nll %x, %labels mask %mask {ignore_index = 2 : i64} : (tensor<?x7x4xf32>, tensor<?x7xi64>, tensor<?xi1>) -> (tensor<f32>, tensor<f32>)
  // CHECK: gpuc.nll %{{.*}}, %{{.*}} weight %{{[^ ]*}} : (
  %3:2 = gpuc.nll %x, %labels weight %weight : (tensor<?x7x4xf32>, tensor<?x7xi64>, tensor<4xf32>) -> (tensor<f32>, tensor<f32>)
  return
}

// CHECK-LABEL: @pairs
func.func @pairs(%x: tensor<?x4xf32>, %half: tensor<?x4xbf16>, %weight: tensor<4xf32>, %mask: tensor<?xi1>) {
  // CHECK: gpuc.l1 %{{.*}}, %{{[^ ]*}} : (
  %0:2 = gpuc.l1 %x, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> (tensor<f32>, tensor<f32>)
  // Half precision is summed as f32.
  // CHECK: gpuc.huber %{{.*}}, %{{.*}} mask %{{.*}} {delta = 5.000000e-01 : f64} : (
  %1:2 = gpuc.huber %half, %half mask %mask {delta = 0.5 : f64} : (tensor<?x4xbf16>, tensor<?x4xbf16>, tensor<?xi1>) -> (tensor<f32>, tensor<f32>)
  // CHECK: gpuc.bce_with_logits %{{.*}}, %{{.*}} positive_weight %{{.*}} mask %{{.*}} : (
  %2:2 = gpuc.bce_with_logits %x, %x positive_weight %weight mask %mask : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<4xf32>, tensor<?xi1>) -> (tensor<f32>, tensor<f32>)
  // CHECK: gpuc.bce_with_logits %{{.*}}, %{{[^ ]*}} : (
  %3:2 = gpuc.bce_with_logits %x, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> (tensor<f32>, tensor<f32>)
  return
}
