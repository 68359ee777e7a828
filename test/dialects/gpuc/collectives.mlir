// RUN: gpuc-opt %s | gpuc-opt | FileCheck %s
// RUN: gpuc-opt %s --mlir-print-op-generic | gpuc-opt | FileCheck %s

// CHECK: gpuc.all_reduce %{{.*}} : tensor<10x784xf32>
// CHECK: gpuc.all_reduce %{{.*}} : tensor<i64>
func.func @all_reduce(%x: tensor<10x784xf32>, %n: tensor<i64>) -> (tensor<10x784xf32>, tensor<i64>) {
  %0 = gpuc.all_reduce %x : tensor<10x784xf32>
  %1 = gpuc.all_reduce %n : tensor<i64>
  return %0, %1 : tensor<10x784xf32>, tensor<i64>
}
