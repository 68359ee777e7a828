// Losses of a linear layer read back what they write.
// RUN: gpuc-opt %s -o %t.mlir
// RUN: gpuc-opt %t.mlir | diff %t.mlir -
// RUN: gpuc-opt %s --mlir-print-op-generic | gpuc-opt | diff %t.mlir -
// RUN: gpuc-opt %s --emit-bytecode | gpuc-opt | diff %t.mlir -
// RUN: FileCheck %s < %t.mlir
// RUN: gpuc-opt %s --canonicalize | FileCheck %s --check-prefix=CANONICAL

// CHECK-LABEL: @forms
func.func @forms(%h: tensor<?x3x4xf32>, %w: tensor<7x4xf32>, %b: tensor<7xf32>, %labels: tensor<?x3xi32>, %c: tensor<7xf32>, %mask: tensor<?xi1>) {
  // CHECK: gpuc.linear_cross_entropy %{{.*}}, %{{.*}} labels %{{[^ ]*}} : (tensor<?x3x4xf32>, tensor<7x4xf32>, tensor<?x3xi32>) -> (tensor<f32>, tensor<f32>)
  %0:2 = gpuc.linear_cross_entropy %h, %w labels %labels : (tensor<?x3x4xf32>, tensor<7x4xf32>, tensor<?x3xi32>) -> (tensor<f32>, tensor<f32>)
  // CHECK: gpuc.linear_cross_entropy %{{.*}}, %{{.*}} bias %{{.*}} labels %{{.*}} class_weight %{{.*}} mask %{{.*}} chunk 5 {ignore_index = 2 : i64, smoothing = 1.000000e-01 : f64} : (
  %1:2 = gpuc.linear_cross_entropy %h, %w bias %b labels %labels class_weight %c mask %mask chunk 5 {ignore_index = 2 : i64, smoothing = 0.1 : f64} : (tensor<?x3x4xf32>, tensor<7x4xf32>, tensor<7xf32>, tensor<?x3xi32>, tensor<7xf32>, tensor<?xi1>) -> (tensor<f32>, tensor<f32>)
  // CHECK: gpuc.linear_cross_entropy_gradient %{{.*}}, %{{.*}} labels %{{[^ ]*}} chunk 2 : (tensor<?x3x4xf32>, tensor<7x4xf32>, tensor<?x3xi32>) -> (tensor<f32>, tensor<f32>, tensor<?x3x4xf32>, tensor<7x4xf32>)
  %2:4 = gpuc.linear_cross_entropy_gradient %h, %w labels %labels chunk 2 : (tensor<?x3x4xf32>, tensor<7x4xf32>, tensor<?x3xi32>) -> (tensor<f32>, tensor<f32>, tensor<?x3x4xf32>, tensor<7x4xf32>)
  // CHECK: gpuc.linear_cross_entropy_gradient %{{.*}}, %{{.*}} bias %{{.*}} labels %{{.*}} mask %{{[^ ]*}} : (
  %3:5 = gpuc.linear_cross_entropy_gradient %h, %w bias %b labels %labels mask %mask : (tensor<?x3x4xf32>, tensor<7x4xf32>, tensor<7xf32>, tensor<?x3xi32>, tensor<?xi1>) -> (tensor<f32>, tensor<f32>, tensor<?x3x4xf32>, tensor<7x4xf32>, tensor<7xf32>)
  // CHECK: gpuc.linear_accuracy %{{.*}}, %{{.*}} bias %{{.*}} labels %{{.*}} mask %{{.*}} chunk 3 {ignore_index = 0 : i64} : (
  %4:2 = gpuc.linear_accuracy %h, %w bias %b labels %labels mask %mask chunk 3 {ignore_index = 0 : i64} : (tensor<?x3x4xf32>, tensor<7x4xf32>, tensor<7xf32>, tensor<?x3xi32>, tensor<?xi1>) -> (tensor<f32>, tensor<f32>)
  return
}

// Half precision is summed as f32; gradients have the types of what they are of.
// CHECK-LABEL: @half
func.func @half(%h: tensor<2x4xbf16>, %w: tensor<7x4xbf16>, %labels: tensor<2xi64>) {
  // CHECK: -> (tensor<f32>, tensor<f32>, tensor<2x4xbf16>, tensor<7x4xbf16>)
  %0:4 = gpuc.linear_cross_entropy_gradient %h, %w labels %labels : (tensor<2x4xbf16>, tensor<7x4xbf16>, tensor<2xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x4xbf16>, tensor<7x4xbf16>)
  return
}

// Sum and count come with the gradients: the product is not done twice. What uses them may stand between the two.
// CANONICAL-LABEL: @once
// CANONICAL:         %[[SUM:.*]], %[[COUNT:.*]], %[[DH:.*]], %{{.*}} = gpuc.linear_cross_entropy_gradient
// CANONICAL-NOT:     gpuc.linear_cross_entropy %
// CANONICAL:         %[[MEAN:.*]] = gpuc.div %[[SUM]], %[[COUNT]]
// CANONICAL:         return %[[MEAN]], %[[DH]]
func.func @once(%h: tensor<2x4xf32>, %w: tensor<7x4xf32>, %labels: tensor<2xi64>) -> (tensor<f32>, tensor<2x4xf32>) {
  %sum, %count = gpuc.linear_cross_entropy %h, %w labels %labels : (tensor<2x4xf32>, tensor<7x4xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<f32>)
  %mean = gpuc.div %sum, %count : tensor<f32>
  %0, %1, %dh, %dw = gpuc.linear_cross_entropy_gradient %h, %w labels %labels : (tensor<2x4xf32>, tensor<7x4xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>, tensor<7x4xf32>)
  return %mean, %dh : tensor<f32>, tensor<2x4xf32>
}

// With another smoothing, or other labels, the sum is another one.
// CANONICAL-LABEL: @others
// CANONICAL-COUNT-2: gpuc.linear_cross_entropy %
func.func @others(%h: tensor<2x4xf32>, %w: tensor<7x4xf32>, %labels: tensor<2xi64>, %more: tensor<2xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>) {
  %0:2 = gpuc.linear_cross_entropy %h, %w labels %labels {smoothing = 0.5 : f64} : (tensor<2x4xf32>, tensor<7x4xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<f32>)
  %1:2 = gpuc.linear_cross_entropy %h, %w labels %more : (tensor<2x4xf32>, tensor<7x4xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<f32>)
  %2:4 = gpuc.linear_cross_entropy_gradient %h, %w labels %labels : (tensor<2x4xf32>, tensor<7x4xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>, tensor<7x4xf32>)
  return %0#0, %1#0, %2#2 : tensor<f32>, tensor<f32>, tensor<2x4xf32>
}
