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

// What an update keeps does not sink below the least normal number, where a CPU would spend its time; f16, which is computed
// as f32, does not need that. Lion's direction is of the mean as it is.
// CHECK-LABEL: func.func @kept_means(
// KEEP-LABEL:  func.func @kept_means(
// CHECK:         gpuc.sign
// CHECK:         %[[MEAN:.*]] = gpuc.add
// CHECK-NEXT:    %[[SIZE:.*]] = gpuc.abs %[[MEAN]]
// CHECK-NEXT:    %[[LEAST:.*]] = gpuc.constant 1.1754944e-38 : tensor<4xf32>
// CHECK-NEXT:    %[[TINY:.*]] = gpuc.compare lt %[[SIZE]], %[[LEAST]]
// CHECK-NEXT:    %[[ZERO:.*]] = gpuc.constant 0.0 : tensor<4xf32>
// CHECK-NEXT:    %[[KEPT:.*]] = gpuc.select %[[TINY]], %[[ZERO]], %[[MEAN]]
// CHECK-NEXT:    return %{{.*}}, %[[KEPT]]
func.func @kept_means(%g: tensor<4xf32>, %m: tensor<4xf32>, %lr: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0:2 = gpuc.lion_update %m gradient %g exp_avg %m lr %lr {beta1 = 0.9 : f64, beta2 = 0.99 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}

// Momentum of sgd; both means of adam; mean, mean square and momentum of rmsprop.
// CHECK-LABEL: func.func @all_kept_means(
// CHECK-COUNT-6: gpuc.compare lt
// CHECK-NOT:     gpuc.compare lt
// CHECK:         return
func.func @all_kept_means(%w: tensor<4xf32>, %g: tensor<4xf32>, %step: tensor<i64>, %lr: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0:2 = gpuc.sgd_update %w gradient %g buffer %g step %step lr %lr {momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %1:3 = gpuc.adam_update %w gradient %g moments %g, %g step %step lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %2:4 = gpuc.rmsprop_update %w gradient %g square_avg %g buffer %g grad_avg %g lr %lr {alpha = 0.99 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum = 0.9 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#1, %1#1, %1#2, %2#1, %2#2, %2#3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Both of adafactor's, and muon's momentum.
// CHECK-LABEL: func.func @kept_means_of_matrices(
// CHECK-COUNT-3: gpuc.compare lt
// CHECK-NOT:     gpuc.compare lt
// CHECK:         return
func.func @kept_means_of_matrices(%w: tensor<4x3xf32>, %row: tensor<4x1xf32>, %column: tensor<1x3xf32>, %step: tensor<i64>, %lr: tensor<f32>) -> (tensor<4x1xf32>, tensor<1x3xf32>, tensor<4x3xf32>) {
  %0:3 = gpuc.adafactor_update %w gradient %w variances %row, %column step %step lr %lr {beta2_decay = -0.8 : f64, eps1 = 1.0e-7 : f64, eps2 = 0.001 : f64, d = 1.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x1xf32>, tensor<1x3xf32>, tensor<i64>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x1xf32>, tensor<1x3xf32>)
  %1:2 = gpuc.muon_update %w gradient %w buffer %w lr %lr {momentum = 0.95 : f64, nesterov = true, ns_steps = 1 : i64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return %0#1, %0#2, %1#1 : tensor<4x1xf32>, tensor<1x3xf32>, tensor<4x3xf32>
}

// CHECK-LABEL: func.func @kept_in_f16(
// CHECK-NOT:     gpuc.compare lt
// CHECK:         return
func.func @kept_in_f16(%g: tensor<4xf16>, %m: tensor<4xf16>, %lr: tensor<f32>) -> tensor<4xf16> {
  %0:2 = gpuc.lion_update %m gradient %g exp_avg %m lr %lr {beta1 = 0.9 : f64, beta2 = 0.99 : f64, weight_decay = 0.0 : f64} : (tensor<4xf16>, tensor<4xf16>, tensor<4xf16>, tensor<f32>) -> (tensor<4xf16>, tensor<4xf16>)
  return %0#1 : tensor<4xf16>
}
