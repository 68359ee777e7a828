// RUN: gpuc-opt %s --gpuc-fuse --split-input-file | FileCheck %s

// The factor by which gradients are scaled is of the count of rows alone. Their norm, which reads it too, waits for all of their sums: it is
// a kernel of its own, so that the first update need not wait for the second gradient.
// CHECK-LABEL: func.func @factor(
// CHECK:         %[[COUNT:.*]] = gpuc.all_reduce %{{.*}} : tensor<f32>
// CHECK:         %[[SUM0:.*]] = gpuc.all_reduce
// CHECK:         %[[SUM1:.*]] = gpuc.all_reduce
// CHECK:         %[[FACTOR:.*]] = gpuc.fused "{{[^"]*}}"(%[[COUNT]]) : (tensor<f32>) -> tensor<f32>
// CHECK-DAG:     gpuc.fused "{{[^"]*}}"(%[[SUM0]], %[[FACTOR]], %{{.*}}) : {{.*}} -> tensor<4096xf32>
// CHECK-DAG:     gpuc.fused "{{[^"]*}}"(%[[SUM1]], %[[FACTOR]], %{{.*}}) : {{.*}} -> tensor<4096xf32>
func.func @factor(%n: tensor<f32>, %g0: tensor<4096xf32>, %g1: tensor<4096xf32>, %w0: tensor<4096xf32>, %w1: tensor<4096xf32>)
    -> (tensor<4096xf32>, tensor<4096xf32>, tensor<f32>) {
  %count = gpuc.all_reduce %n : tensor<f32>
  %sum0 = gpuc.all_reduce %g0 : tensor<4096xf32>
  %sum1 = gpuc.all_reduce %g1 : tensor<4096xf32>
  %one = gpuc.constant 1.0 : tensor<f32>
  %root = gpuc.sqrt %count : tensor<f32>
  %factor = gpuc.div %one, %root : tensor<f32>
  %all = gpuc.broadcast %factor dims [] : tensor<f32> to tensor<4096xf32>
  %scaled0 = gpuc.mul %sum0, %all : tensor<4096xf32>
  %scaled1 = gpuc.mul %sum1, %all : tensor<4096xf32>
  %new0 = gpuc.sub %w0, %scaled0 : tensor<4096xf32>
  %new1 = gpuc.sub %w1, %scaled1 : tensor<4096xf32>
  %square0 = gpuc.sum %sum0 dims [0] : (tensor<4096xf32>) -> tensor<f32>
  %square1 = gpuc.sum %sum1 dims [0] : (tensor<4096xf32>) -> tensor<f32>
  %squares = gpuc.add %square0, %square1 : tensor<f32>
  %norm = gpuc.mul %squares, %factor : tensor<f32>
  return %new0, %new1, %norm : tensor<4096xf32>, tensor<4096xf32>, tensor<f32>
}

// -----

// What nobody else reads holds nobody up: the difference, which waits for the first sum alone, vanishes in the kernel that waits for both.
// CHECK-LABEL: func.func @vanishes(
// CHECK:         gpuc.all_reduce
// CHECK:         gpuc.all_reduce
// CHECK:         gpuc.fused
// CHECK-NOT:     gpuc.fused
// CHECK:         return
func.func @vanishes(%g0: tensor<4096xf32>, %g1: tensor<4096xf32>, %w: tensor<4096xf32>) -> tensor<4096xf32> {
  %sum0 = gpuc.all_reduce %g0 : tensor<4096xf32>
  %sum1 = gpuc.all_reduce %g1 : tensor<4096xf32>
  %0 = gpuc.sub %w, %sum0 : tensor<4096xf32>
  %1 = gpuc.sub %0, %sum1 : tensor<4096xf32>
  return %1 : tensor<4096xf32>
}

// -----

// Nor is a sum waited for in vain for which another one waits: the deviation is stored by the kernel that goes on with it.
// CHECK-LABEL: func.func @between(
// CHECK:         %[[MEAN:.*]] = gpuc.all_reduce
// CHECK:         gpuc.fused
// CHECK-NOT:     gpuc.fused
// CHECK:         gpuc.all_reduce
// CHECK-NOT:     gpuc.fused
// CHECK:         return
func.func @between(%x: tensor<4096xf32>, %y: tensor<4096xf32>) -> (tensor<4096xf32>, tensor<4096xf32>) {
  %mean = gpuc.all_reduce %x : tensor<4096xf32>
  %0 = gpuc.exp %y : tensor<4096xf32>
  %1 = gpuc.sub %0, %mean : tensor<4096xf32>
  %sum = gpuc.all_reduce %1 : tensor<4096xf32>
  return %0, %sum : tensor<4096xf32>, tensor<4096xf32>
}
