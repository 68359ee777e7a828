// RUN: gpuc-opt %s | gpuc-opt | FileCheck %s
// RUN: gpuc-opt %s --mlir-print-op-generic | gpuc-opt | FileCheck %s

// CHECK: gpuc.all_reduce %{{.*}} : tensor<10x784xf32>
// CHECK: gpuc.all_reduce %{{.*}} : tensor<i64>
func.func @all_reduce(%x: tensor<10x784xf32>, %n: tensor<i64>) -> (tensor<10x784xf32>, tensor<i64>) {
  %0 = gpuc.all_reduce %x : tensor<10x784xf32>
  %1 = gpuc.all_reduce %n : tensor<i64>
  return %0, %1 : tensor<10x784xf32>, tensor<i64>
}

// CHECK: gpuc.variable @w : tensor<3xf32> init zeros {shard_of = array<i64: 2, 5>, shards = 4 : i64}
gpuc.variable @w : tensor<3xf32> init zeros {shard_of = array<i64: 2, 5>, shards = 4 : i64}

// CHECK: gpuc.reduce_scatter %{{.*}} ranks 4 : (tensor<10x785xf32>) -> tensor<1963xf32>
// CHECK: gpuc.all_gather %{{.*}} ranks 4 : (tensor<1963xf32>) -> tensor<10x785xf32>
func.func @shares(%x: tensor<10x785xf32>) -> tensor<10x785xf32> {
  %0 = gpuc.reduce_scatter %x ranks 4 : (tensor<10x785xf32>) -> tensor<1963xf32>
  %1 = gpuc.all_gather %0 ranks 4 : (tensor<1963xf32>) -> tensor<10x785xf32>
  return %1 : tensor<10x785xf32>
}

// Each of three ranks owns a matrix; the fourth has none.
// CHECK: gpuc.variable @m : tensor<4x5xf32> init zeros {owners = ["a", "b", "c"], shards = 4 : i64}
gpuc.variable @m : tensor<4x5xf32> init zeros {owners = ["a", "b", "c"], shards = 4 : i64}

// CHECK: gpuc.reduce_to_owners %{{.*}}, %{{.*}} ranks 4 : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
// CHECK: gpuc.gather_from_owners %{{.*}} ranks 4 : (tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>)
func.func @owners(%x: tensor<4x5xf32>, %y: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = gpuc.reduce_to_owners %x, %y ranks 4 : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
  %1:2 = gpuc.gather_from_owners %0 ranks 4 : (tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>)
  return %1#1 : tensor<4x5xf32>
}
