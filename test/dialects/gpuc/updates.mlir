// Updates of optimizers read back what they write.
// RUN: gpuc-opt %s -o %t.mlir
// RUN: gpuc-opt %t.mlir | diff %t.mlir -
// RUN: gpuc-opt %s --mlir-print-op-generic | gpuc-opt | diff %t.mlir -
// RUN: gpuc-opt %s --emit-bytecode | gpuc-opt | diff %t.mlir -
// RUN: FileCheck %s < %t.mlir

// CHECK-LABEL: @updates
func.func @updates(%w: tensor<4x3xf32>, %g: tensor<4x3xf32>, %step: tensor<i64>, %lr: tensor<f32>, %row: tensor<4x1xf32>, %column: tensor<1x3xf32>) {
  %0 = gpuc.sgd_update %w gradient %g step %step lr %lr {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<i64>, tensor<f32>) -> tensor<4x3xf32>
  %1:2 = gpuc.sgd_update %w gradient %g buffer %g step %step lr %lr {momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = true} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<i64>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  // CHECK: gpuc.adam_update %{{.*}} gradient %{{.*}} moments %{{.*}}, %{{.*}} step %{{.*}} lr %{{.*}} decoupled {
  %2:3 = gpuc.adam_update %w gradient %g moments %g, %g step %step lr %lr decoupled {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.01 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<i64>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>)
  // CHECK: gpuc.adam_update %{{.*}} gradient %{{.*}} moments %{{.*}}, %{{.*}} max %{{.*}} step %{{.*}} lr %{{.*}} {
  %3:4 = gpuc.adam_update %w gradient %g moments %g, %g max %g step %step lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<i64>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>)
  // CHECK: gpuc.rmsprop_update %{{.*}} gradient %{{.*}} square_avg %{{.*}} lr %{{.*}} {
  %4:2 = gpuc.rmsprop_update %w gradient %g square_avg %g lr %lr {alpha = 0.99 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  // CHECK: gpuc.rmsprop_update %{{.*}} gradient %{{.*}} square_avg %{{.*}} buffer %{{.*}} grad_avg %{{.*}} lr %{{.*}} {
  %5:4 = gpuc.rmsprop_update %w gradient %g square_avg %g buffer %g grad_avg %g lr %lr {alpha = 0.99 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum = 0.9 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>)
  // CHECK: gpuc.adagrad_update %{{.*}} gradient %{{.*}} sum %{{.*}} step %{{.*}} lr %{{.*}} {
  %6:2 = gpuc.adagrad_update %w gradient %g sum %g step %step lr %lr {lr_decay = 0.0 : f64, eps = 1.0e-10 : f64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<i64>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  // CHECK: gpuc.lion_update %{{.*}} gradient %{{.*}} exp_avg %{{.*}} lr %{{.*}} {
  %7:2 = gpuc.lion_update %w gradient %g exp_avg %g lr %lr {beta1 = 0.9 : f64, beta2 = 0.99 : f64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  // CHECK: gpuc.adafactor_update %{{.*}} gradient %{{.*}} variances %{{.*}}, %{{.*}} step %{{.*}} lr %{{.*}} {
  %8:3 = gpuc.adafactor_update %w gradient %g variances %row, %column step %step lr %lr {beta2_decay = -0.8 : f64, eps1 = 1.0e-7 : f64, eps2 = 0.001 : f64, d = 1.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x1xf32>, tensor<1x3xf32>, tensor<i64>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x1xf32>, tensor<1x3xf32>)
  // CHECK: gpuc.muon_update %{{.*}} gradient %{{.*}} buffer %{{.*}} lr %{{.*}} {
  %9:2 = gpuc.muon_update %w gradient %g buffer %g lr %lr {momentum = 0.95 : f64, nesterov = true, ns_steps = 5 : i64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  // CHECK: gpuc.sgd_update %{{.*}} gradient %{{.*}} buffer %{{.*}} step %{{.*}} lr %{{.*}} given %{{.*}}, %{{.*}} ["momentum", "weight_decay"] {
  %10:2 = gpuc.sgd_update %w gradient %g buffer %g step %step lr %lr given %lr, %lr ["momentum", "weight_decay"] {momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.1 : f64, nesterov = true} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<i64>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  // CHECK: gpuc.adam_update %{{.*}} lr %{{.*}} given %{{.*}} ["beta1"] decoupled {
  %11:3 = gpuc.adam_update %w gradient %g moments %g, %g step %step lr %lr given %lr ["beta1"] decoupled {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.01 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>)
  // CHECK: gpuc.rmsprop_update %{{.*}} lr %{{.*}} given %{{.*}} ["weight_decay"] {
  %12:2 = gpuc.rmsprop_update %w gradient %g square_avg %g lr %lr given %lr ["weight_decay"] {alpha = 0.99 : f64, eps = 1.0e-8 : f64, weight_decay = 0.5 : f64, momentum = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  // CHECK: gpuc.adagrad_update %{{.*}} lr %{{.*}} given %{{.*}} ["weight_decay"] {
  %13:2 = gpuc.adagrad_update %w gradient %g sum %g step %step lr %lr given %lr ["weight_decay"] {lr_decay = 0.0 : f64, eps = 1.0e-10 : f64, weight_decay = 0.1 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  // CHECK: gpuc.adadelta_update %{{.*}} gradient %{{.*}} square_avg %{{.*}} acc_delta %{{.*}} lr %{{.*}} {
  %14:3 = gpuc.adadelta_update %w gradient %g square_avg %g acc_delta %g lr %lr {rho = 0.9 : f64, eps = 1.0e-6 : f64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>)
  // CHECK: gpuc.adamax_update %{{.*}} gradient %{{.*}} moments %{{.*}}, %{{.*}} step %{{.*}} lr %{{.*}} {
  %15:3 = gpuc.adamax_update %w gradient %g moments %g, %g step %step lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<i64>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>)
  // CHECK: gpuc.nadam_update %{{.*}} gradient %{{.*}} moments %{{.*}}, %{{.*}} mu_product %{{.*}} step %{{.*}} lr %{{.*}} decoupled {
  %16:4 = gpuc.nadam_update %w gradient %g moments %g, %g mu_product %lr step %step lr %lr decoupled {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum_decay = 4.0e-3 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>)
  // CHECK: gpuc.radam_update %{{.*}} gradient %{{.*}} moments %{{.*}}, %{{.*}} step %{{.*}} lr %{{.*}} {
  %17:3 = gpuc.radam_update %w gradient %g moments %g, %g step %step lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<i64>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>)
  // CHECK: gpuc.rprop_update %{{.*}} gradient %{{.*}} prev %{{.*}} step_size %{{.*}} step %{{.*}} lr %{{.*}} {
  %18:3 = gpuc.rprop_update %w gradient %g prev %g step_size %g step %step lr %lr {eta_minus = 0.5 : f64, eta_plus = 1.2 : f64, step_size_min = 1.0e-6 : f64, step_size_max = 5.0e1 : f64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<i64>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>)
  // CHECK: gpuc.asgd_update %{{.*}} gradient %{{.*}} ax %{{.*}} eta %{{.*}} mu %{{.*}} step %{{.*}} lr %{{.*}} {
  %19:4 = gpuc.asgd_update %w gradient %g ax %g eta %lr mu %lr step %step lr %lr {lambd = 1.0e-4 : f64, alpha = 0.75 : f64, t0 = 1.0e6 : f64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>, tensor<f32>)
  return
}
