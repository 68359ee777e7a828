// Attention and its gradient read back what they write.
// RUN: gpuc-opt %s -o %t.mlir
// RUN: gpuc-opt %t.mlir | diff %t.mlir -
// RUN: gpuc-opt %s --mlir-print-op-generic | gpuc-opt | diff %t.mlir -
// RUN: gpuc-opt %s --emit-bytecode | gpuc-opt | diff %t.mlir -
// RUN: FileCheck %s < %t.mlir

// CHECK-LABEL: @attention
func.func @attention(%q: tensor<?x4x6x8xf32>, %k: tensor<?x2x5x8xf32>, %v: tensor<?x2x5x3xf32>, %flags: tensor<?x1x1x5xi1>, %bias: tensor<6x5xf32>) {
  // CHECK: gpuc.attention %{{.*}}, %{{.*}}, %{{[^ ]*}} : (
  %0:2 = gpuc.attention %q, %k, %v : (tensor<?x4x6x8xf32>, tensor<?x2x5x8xf32>, tensor<?x2x5x3xf32>) -> (tensor<?x4x6x3xf32>, tensor<?x4x6xf32>)
  // CHECK: gpuc.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} scale 2.500000e-01 causal dropout 1.000000e-01 id 0 : (
  %1:2 = gpuc.attention %q, %k, %v mask %flags scale 0.25 causal dropout 0.1 id 0 : (tensor<?x4x6x8xf32>, tensor<?x2x5x8xf32>, tensor<?x2x5x3xf32>, tensor<?x1x1x5xi1>) -> (tensor<?x4x6x3xf32>, tensor<?x4x6xf32>)
  // CHECK: gpuc.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} causal : (
  %2:2 = gpuc.attention %q, %k, %v mask %bias causal : (tensor<?x4x6x8xf32>, tensor<?x2x5x8xf32>, tensor<?x2x5x3xf32>, tensor<6x5xf32>) -> (tensor<?x4x6x3xf32>, tensor<?x4x6xf32>)
  // CHECK: gpuc.attention_gradient %{{.*}} of %{{.*}}, %{{.*}} query %{{.*}} key %{{.*}} value %{{.*}} mask %{{.*}} scale 2.500000e-01 causal dropout 1.000000e-01 id 7 : (
  %3:3 = gpuc.attention_gradient %1#0 of %1#0, %1#1 query %q key %k value %v mask %flags scale 0.25 causal dropout 0.1 id 7 : (tensor<?x4x6x3xf32>, tensor<?x4x6x3xf32>, tensor<?x4x6xf32>, tensor<?x4x6x8xf32>, tensor<?x2x5x8xf32>, tensor<?x2x5x3xf32>, tensor<?x1x1x5xi1>) -> (tensor<?x4x6x8xf32>, tensor<?x2x5x8xf32>, tensor<?x2x5x3xf32>)
  // A mask of numbers has a cotangent too.
  // CHECK: gpuc.attention_gradient %{{.*}} of %{{.*}}, %{{.*}} query %{{.*}} key %{{.*}} value %{{.*}} mask %{{.*}} : ({{.*}}) -> (tensor<?x4x6x8xf32>, tensor<?x2x5x8xf32>, tensor<?x2x5x3xf32>, tensor<6x5xf32>)
  %4:4 = gpuc.attention_gradient %2#0 of %2#0, %2#1 query %q key %k value %v mask %bias : (tensor<?x4x6x3xf32>, tensor<?x4x6x3xf32>, tensor<?x4x6xf32>, tensor<?x4x6x8xf32>, tensor<?x2x5x8xf32>, tensor<?x2x5x3xf32>, tensor<6x5xf32>) -> (tensor<?x4x6x8xf32>, tensor<?x2x5x8xf32>, tensor<?x2x5x3xf32>, tensor<6x5xf32>)
  return
}

// The logarithms of half precision are f32.
// CHECK-LABEL: @half
func.func @half(%q: tensor<?x4x6x8xf16>) {
  // CHECK: -> (tensor<?x4x6x8xf16>, tensor<?x4x6xf32>)
  %0:2 = gpuc.attention %q, %q, %q : (tensor<?x4x6x8xf16>, tensor<?x4x6x8xf16>, tensor<?x4x6x8xf16>) -> (tensor<?x4x6x8xf16>, tensor<?x4x6xf32>)
  return
}
