// RUN: gpuc-opt %s --gpuc-decompose | FileCheck %s
// RUN: gpuc-opt %s --gpuc-decompose --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=LOC
// RUN: gpuc-opt %s --gpuc-decompose=keep=silu,gpuc.mean | FileCheck %s --check-prefix=KEEP

// x · sigmoid(x). What comes of an op carries its name, in forward and backward passes.
// CHECK-LABEL: func.func @definition(
// CHECK-SAME:    %[[X:.*]]: tensor<4xf32>
// CHECK:         %[[SIGMOID:.*]] = gpuc.sigmoid %[[X]]
// CHECK:         gpuc.mul %[[X]], %[[SIGMOID]]
// CHECK-NOT:     gpuc.silu
// LOC-LABEL:   func.func @definition(
// LOC:           gpuc.sigmoid {{.*}} loc(fused<"silu">["act"])
// LOC:           gpuc.mul {{.*}} loc(fused<"silu">["act"])
// KEEP-LABEL:  func.func @definition(
// KEEP:          gpuc.silu
func.func @definition(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = gpuc.silu %x : tensor<4xf32> loc("act")
  return %0 : tensor<4xf32>
}

// cross_entropy stands on log_softmax, which is a composite itself: what remains are simple ops, named after the whole.
// CHECK-LABEL: func.func @nested(
// CHECK-NOT:     gpuc.cross_entropy
// CHECK-NOT:     gpuc.log_softmax
// CHECK:         gpuc.reduce_max
// CHECK:         gpuc.exp
// CHECK:         gpuc.log
// CHECK:         return
// LOC-LABEL:   func.func @nested(
// LOC:           gpuc.exp {{.*}} loc(fused<"cross_entropy">["loss"])
func.func @nested(%x: tensor<4x3xf32>, %labels: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum, %count = gpuc.cross_entropy %x, %labels : (tensor<4x3xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<f32>) loc("loss")
  return %sum, %count : tensor<f32>, tensor<f32>
}

// The mean of 3 elements is their sum divided by 3; kept if the target has a kernel for it.
// CHECK-LABEL: func.func @kept(
// CHECK:         gpuc.sum
// CHECK-NOT:     gpuc.mean
// KEEP-LABEL:  func.func @kept(
// KEEP:          gpuc.mean
// KEEP-NOT:      gpuc.sum
func.func @kept(%x: tensor<4x3xf32>) -> tensor<4xf32> {
  %0 = gpuc.mean %x dims [1] : (tensor<4x3xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
