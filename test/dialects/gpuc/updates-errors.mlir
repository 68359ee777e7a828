// What updates of optimizers refuse.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

// A gradient of another shape.
func.func @case(%w: tensor<4xf32>, %g: tensor<5xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{gradient must be 'tensor<4xf32>', but is 'tensor<5xf32>' [sgd_update_C1]}}
  %0 = gpuc.sgd_update %w gradient %g step %t lr %lr {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false} : (tensor<4xf32>, tensor<5xf32>, tensor<i64>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

// One learning rate.
func.func @case(%w: tensor<4xf32>, %g: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<4xf32>) {
  // expected-error @below {{lr must be a scalar tensor, but is 'tensor<4xf32>' [sgd_update_C2]}}
  %0 = gpuc.sgd_update %w gradient %g step %t lr %lr {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false} : (tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// Momentum needs a buffer.
func.func @case(%w: tensor<4xf32>, %g: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{takes a buffer just when momentum is not 0, but momentum is 0.9 [sgd_update_C3]}}
  %0 = gpuc.sgd_update %w gradient %g step %t lr %lr {momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false} : (tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

// As in PyTorch.
func.func @case(%w: tensor<4xf32>, %g: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{nesterov needs momentum and no dampening, but momentum is 0 and dampening 0 [sgd_update_C4]}}
  %0 = gpuc.sgd_update %w gradient %g step %t lr %lr {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = true} : (tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

// The buffer is a result.
func.func @case(%w: tensor<4xf32>, %g: tensor<4xf32>, %b: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{must return ('tensor<4xf32>', 'tensor<4xf32>'), but returns ('tensor<4xf32>') [sgd_update_C5]}}
  %0 = gpuc.sgd_update %w gradient %g buffer %b step %t lr %lr {momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

// A moment of another shape.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{first moment must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adam_update_C1]}}
  %0:3 = gpuc.adam_update %w gradient %w moments %m, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Weights would grow.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{momentum and weight_decay must not be negative and dampening a number, but they are 0, -1 and 0 [sgd_update_C6]}}
  %0 = gpuc.sgd_update %w gradient %w step %t lr %lr {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = -1.0 : f64, nesterov = false} : (tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

// The denominator could be 0.
func.func @case(%w: tensor<4xf32>, %m: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{eps must not be negative, but is -1 [adam_update_C4]}}
  %0:3 = gpuc.adam_update %w gradient %w moments %m, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = -1.0 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// One step for all.
func.func @case(%w: tensor<4xf32>, %m: tensor<4xf32>, %t: tensor<4xi64>, %lr: tensor<f32>) {
  // expected-error @below {{step must be a scalar tensor, but is 'tensor<4xi64>' [adam_update_C2]}}
  %0:3 = gpuc.adam_update %w gradient %w moments %m, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// A moment that never moves.
func.func @case(%w: tensor<4xf32>, %m: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{beta1 must lie in [0, 1), but is 1 [adam_update_C3]}}
  %0:3 = gpuc.adam_update %w gradient %w moments %m, %w step %t lr %lr {beta1 = 1.0 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// The largest moment is part of the state.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{returns a new largest second moment just when it is given the old one, but does not return it [adam_update_C5]}}
  %0:3 = gpuc.adam_update %w gradient %w moments %w, %w max %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// State of another shape.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %lr: tensor<f32>) {
  // expected-error @below {{square_avg must be 'tensor<4xf32>', but is 'tensor<5xf32>' [rmsprop_update_C1]}}
  %0:2 = gpuc.rmsprop_update %w gradient %w square_avg %m lr %lr {alpha = 0.99 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// One learning rate.
func.func @case(%w: tensor<4xf32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{lr must be a scalar tensor, but is 'tensor<4xf32>' [rmsprop_update_C2]}}
  %0:2 = gpuc.rmsprop_update %w gradient %w square_avg %w lr %lrs {alpha = 0.99 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Momentum needs a buffer.
func.func @case(%w: tensor<4xf32>, %lr: tensor<f32>) {
  // expected-error @below {{takes a buffer just when momentum is not 0, but momentum is 0.9 [rmsprop_update_C3]}}
  %0:2 = gpuc.rmsprop_update %w gradient %w square_avg %w lr %lr {alpha = 0.99 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum = 0.9 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// All of the state is a result.
func.func @case(%w: tensor<4xf32>, %lr: tensor<f32>) {
  // expected-error @below {{must return ('tensor<4xf32>', 'tensor<4xf32>', 'tensor<4xf32>'), but returns ('tensor<4xf32>', 'tensor<4xf32>') [rmsprop_update_C4]}}
  %0:2 = gpuc.rmsprop_update %w gradient %w square_avg %w grad_avg %w lr %lr {alpha = 0.99 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// As in PyTorch.
func.func @case(%w: tensor<4xf32>, %lr: tensor<f32>) {
  // expected-error @below {{alpha must not be negative, but is -1 [rmsprop_update_C5]}}
  %0:2 = gpuc.rmsprop_update %w gradient %w square_avg %w lr %lr {alpha = -1.0 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// A sum of another shape.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{sum must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adagrad_update_C1]}}
  %0:2 = gpuc.adagrad_update %w gradient %w sum %m step %t lr %lr {lr_decay = 0.0 : f64, eps = 1.0e-10 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// One step for all.
func.func @case(%w: tensor<4xf32>, %ts: tensor<4xi64>, %lr: tensor<f32>) {
  // expected-error @below {{step must be a scalar tensor, but is 'tensor<4xi64>' [adagrad_update_C2]}}
  %0:2 = gpuc.adagrad_update %w gradient %w sum %w step %ts lr %lr {lr_decay = 0.0 : f64, eps = 1.0e-10 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// A rate that grows without bound.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{lr_decay must not be negative, but is -1 [adagrad_update_C3]}}
  %0:2 = gpuc.adagrad_update %w gradient %w sum %w step %t lr %lr {lr_decay = -1.0 : f64, eps = 1.0e-10 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// An average of another shape.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %lr: tensor<f32>) {
  // expected-error @below {{exp_avg must be 'tensor<4xf32>', but is 'tensor<5xf32>' [lion_update_C1]}}
  %0:2 = gpuc.lion_update %w gradient %w exp_avg %m lr %lr {beta1 = 0.9 : f64, beta2 = 0.99 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// One learning rate.
func.func @case(%w: tensor<4xf32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{lr must be a scalar tensor, but is 'tensor<4xf32>' [lion_update_C2]}}
  %0:2 = gpuc.lion_update %w gradient %w exp_avg %w lr %lrs {beta1 = 0.9 : f64, beta2 = 0.99 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// A gradient without a part in the step.
func.func @case(%w: tensor<4xf32>, %lr: tensor<f32>) {
  // expected-error @below {{beta1 must lie in [0, 1), but is 1 [lion_update_C3]}}
  %0:2 = gpuc.lion_update %w gradient %w exp_avg %w lr %lr {beta1 = 1.0 : f64, beta2 = 0.99 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Decay does not grow weights.
func.func @case(%w: tensor<4xf32>, %lr: tensor<f32>) {
  // expected-error @below {{weight_decay must not be negative, but is -1 [lion_update_C4]}}
  %0:2 = gpuc.lion_update %w gradient %w exp_avg %w lr %lr {beta1 = 0.9 : f64, beta2 = 0.99 : f64, weight_decay = -1.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// A gradient of another shape.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{gradient must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adafactor_update_C1]}}
  %0:2 = gpuc.adafactor_update %w gradient %m variances %w step %t lr %lr {beta2_decay = -0.8 : f64, eps1 = 1.0e-7 : f64, eps2 = 0.001 : f64, d = 1.0 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// One step for all.
func.func @case(%w: tensor<4xf32>, %ts: tensor<4xi64>, %lr: tensor<f32>) {
  // expected-error @below {{step must be a scalar tensor, but is 'tensor<4xi64>' [adafactor_update_C2]}}
  %0:2 = gpuc.adafactor_update %w gradient %w variances %w step %ts lr %lr {beta2_decay = -0.8 : f64, eps1 = 1.0e-7 : f64, eps2 = 0.001 : f64, d = 1.0 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// A matrix has its moments factored.
func.func @case(%a: tensor<4x3xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{the variances of a weight 'tensor<4x3xf32>' are ('tensor<4x1xf32>', 'tensor<1x3xf32>'), but given are ('tensor<4x3xf32>') [adafactor_update_C3]}}
  %0:2 = gpuc.adafactor_update %a gradient %a variances %a step %t lr %lr {beta2_decay = -0.8 : f64, eps1 = 1.0e-7 : f64, eps2 = 0.001 : f64, d = 1.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<i64>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return
}

// -----

// A vector has not.
func.func @case(%w: tensor<4xf32>, %r: tensor<4x1xf32>, %c: tensor<1x3xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{the variances of a weight 'tensor<4xf32>' are ('tensor<4xf32>'), but given are ('tensor<4x1xf32>', 'tensor<1x3xf32>') [adafactor_update_C3]}}
  %0:2 = gpuc.adafactor_update %w gradient %w variances %r, %c step %t lr %lr {beta2_decay = -0.8 : f64, eps1 = 1.0e-7 : f64, eps2 = 0.001 : f64, d = 1.0 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4x1xf32>, tensor<1x3xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// All of the state is a result.
func.func @case(%a: tensor<4x3xf32>, %r: tensor<4x1xf32>, %c: tensor<1x3xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{must return ('tensor<4x3xf32>', 'tensor<4x1xf32>', 'tensor<1x3xf32>'), but returns ('tensor<4x3xf32>', 'tensor<4x1xf32>') [adafactor_update_C4]}}
  %0:2 = gpuc.adafactor_update %a gradient %a variances %r, %c step %t lr %lr {beta2_decay = -0.8 : f64, eps1 = 1.0e-7 : f64, eps2 = 0.001 : f64, d = 1.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x1xf32>, tensor<1x3xf32>, tensor<i64>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x1xf32>)
  return
}

// -----

// No element has a mean.
func.func @case(%e: tensor<0x3xf32>, %r: tensor<4x1xf32>, %c: tensor<1x3xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{weight 'tensor<0x3xf32>' must be of static shape and have elements [adafactor_update_C5]}}
  %0:2 = gpuc.adafactor_update %e gradient %e variances %r, %c step %t lr %lr {beta2_decay = -0.8 : f64, eps1 = 1.0e-7 : f64, eps2 = 0.001 : f64, d = 1.0 : f64, weight_decay = 0.0 : f64} : (tensor<0x3xf32>, tensor<0x3xf32>, tensor<4x1xf32>, tensor<1x3xf32>, tensor<i64>, tensor<f32>) -> (tensor<0x3xf32>, tensor<0x3xf32>)
  return
}

// -----

// Means that would become less exact.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{beta2_decay must not be positive and d at least 1, but they are 0.5 and 1 [adafactor_update_C6]}}
  %0:2 = gpuc.adafactor_update %w gradient %w variances %w step %t lr %lr {beta2_decay = 0.5 : f64, eps1 = 1.0e-7 : f64, eps2 = 0.001 : f64, d = 1.0 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// A bound below the size of every step.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{beta2_decay must not be positive and d at least 1, but they are -0.8 and 0.5 [adafactor_update_C6]}}
  %0:2 = gpuc.adafactor_update %w gradient %w variances %w step %t lr %lr {beta2_decay = -0.8 : f64, eps1 = 1.0e-7 : f64, eps2 = 0.001 : f64, d = 0.5 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// A least size is one.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{eps2 must not be negative, but is -1 [adafactor_update_C6]}}
  %0:2 = gpuc.adafactor_update %w gradient %w variances %w step %t lr %lr {beta2_decay = -0.8 : f64, eps1 = 1.0e-7 : f64, eps2 = -1.0 : f64, d = 1.0 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// A buffer of another shape.
func.func @case(%a: tensor<4x3xf32>, %r: tensor<4x1xf32>, %lr: tensor<f32>) {
  // expected-error @below {{buffer must be 'tensor<4x3xf32>', but is 'tensor<4x1xf32>' [muon_update_C1]}}
  %0:2 = gpuc.muon_update %a gradient %a buffer %r lr %lr {momentum = 0.95 : f64, nesterov = true, ns_steps = 5 : i64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x1xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return
}

// -----

// One learning rate.
func.func @case(%a: tensor<4x3xf32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{lr must be a scalar tensor, but is 'tensor<4xf32>' [muon_update_C2]}}
  %0:2 = gpuc.muon_update %a gradient %a buffer %a lr %lrs {momentum = 0.95 : f64, nesterov = true, ns_steps = 5 : i64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return
}

// -----

// A vector has no rows.
func.func @case(%w: tensor<4xf32>, %lr: tensor<f32>) {
  // expected-error @below {{weight must be of rank 2 at least, but is 'tensor<4xf32>' [muon_update_C3]}}
  %0:2 = gpuc.muon_update %w gradient %w buffer %w lr %lr {momentum = 0.95 : f64, nesterov = true, ns_steps = 5 : i64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Nothing to make orthogonal.
func.func @case(%e: tensor<0x3xf32>, %lr: tensor<f32>) {
  // expected-error @below {{weight 'tensor<0x3xf32>' must be of static shape and have elements [muon_update_C3]}}
  %0:2 = gpuc.muon_update %e gradient %e buffer %e lr %lr {momentum = 0.95 : f64, nesterov = true, ns_steps = 5 : i64, weight_decay = 0.0 : f64} : (tensor<0x3xf32>, tensor<0x3xf32>, tensor<0x3xf32>, tensor<f32>) -> (tensor<0x3xf32>, tensor<0x3xf32>)
  return
}

// -----

// Without an iteration nothing is orthogonal.
func.func @case(%a: tensor<4x3xf32>, %lr: tensor<f32>) {
  // expected-error @below {{ns_steps must lie in [1, 99], but is 0 [muon_update_C4]}}
  %0:2 = gpuc.muon_update %a gradient %a buffer %a lr %lr {momentum = 0.95 : f64, nesterov = true, ns_steps = 0 : i64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return
}

// -----

// A momentum that never moves.
func.func @case(%a: tensor<4x3xf32>, %lr: tensor<f32>) {
  // expected-error @below {{momentum must lie in [0, 1), but is 1 [muon_update_C5]}}
  %0:2 = gpuc.muon_update %a gradient %a buffer %a lr %lr {momentum = 1.0 : f64, nesterov = true, ns_steps = 5 : i64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return
}
