// What updates of optimizers refuse: each operand, result and number that updates-errors.mlir has not.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

// A buffer of another shape.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{buffer must be 'tensor<4xf32>', but is 'tensor<5xf32>' [sgd_update_C1]}}
  %0:2 = gpuc.sgd_update %w gradient %w buffer %m step %t lr %lr {momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false} : (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// One step for all.
func.func @case(%w: tensor<4xf32>, %ts: tensor<4xi64>, %lr: tensor<f32>) {
  // expected-error @below {{step must be a scalar tensor, but is 'tensor<4xi64>' [sgd_update_C2]}}
  %0 = gpuc.sgd_update %w gradient %w step %ts lr %lr {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false} : (tensor<4xf32>, tensor<4xf32>, tensor<4xi64>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

// As in PyTorch.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{nesterov needs momentum and no dampening, but momentum is 0.9 and dampening 0.1 [sgd_update_C4]}}
  %0:2 = gpuc.sgd_update %w gradient %w buffer %w step %t lr %lr {momentum = 0.9 : f64, dampening = 0.1 : f64, weight_decay = 0.0 : f64, nesterov = true} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Updates would turn back.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{momentum and weight_decay must not be negative and dampening a number, but they are -0.5, 0 and 0 [sgd_update_C6]}}
  %0:2 = gpuc.sgd_update %w gradient %w buffer %w step %t lr %lr {momentum = -0.5 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// No number at all.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{momentum and weight_decay must not be negative and dampening a number, but they are 0, 0 and nan [sgd_update_C6]}}
  %0 = gpuc.sgd_update %w gradient %w step %t lr %lr {momentum = 0.0 : f64, dampening = 0x7FF8000000000000 : f64, weight_decay = 0.0 : f64, nesterov = false} : (tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

// Operands and results are of the weight's type, each of them.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{gradient must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adam_update_C1]}}
  %0:3 = gpuc.adam_update %w gradient %m moments %w, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{second moment must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adam_update_C1]}}
  %0:3 = gpuc.adam_update %w gradient %w moments %w, %m step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{largest second moment must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adam_update_C1]}}
  %0:4 = gpuc.adam_update %w gradient %w moments %w, %w max %m step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{new weight must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adam_update_C1]}}
  %0:4 = gpuc.adam_update %w gradient %w moments %w, %w max %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{new first moment must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adam_update_C1]}}
  %0:4 = gpuc.adam_update %w gradient %w moments %w, %w max %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{new second moment must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adam_update_C1]}}
  %0:4 = gpuc.adam_update %w gradient %w moments %w, %w max %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<4xf32>)
  return
}

// -----

func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{new largest second moment must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adam_update_C1]}}
  %0:4 = gpuc.adam_update %w gradient %w moments %w, %w max %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>)
  return
}

// -----

// One learning rate.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lrs: tensor<4xf32>) {
  // expected-error @below {{lr must be a scalar tensor, but is 'tensor<4xf32>' [adam_update_C2]}}
  %0:3 = gpuc.adam_update %w gradient %w moments %w, %w step %t lr %lrs {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// A moment that never moves.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{beta2 must lie in [0, 1), but is 1 [adam_update_C3]}}
  %0:3 = gpuc.adam_update %w gradient %w moments %w, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 1.0 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Weights would grow.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{weight_decay must not be negative, but is -1 [adam_update_C4]}}
  %0:3 = gpuc.adam_update %w gradient %w moments %w, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = -1.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Operands of another shape.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %lr: tensor<f32>) {
  // expected-error @below {{gradient must be 'tensor<4xf32>', but is 'tensor<5xf32>' [rmsprop_update_C1]}}
  %0:2 = gpuc.rmsprop_update %w gradient %m square_avg %w lr %lr {alpha = 0.99 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum = 0.0 : f64} : (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %lr: tensor<f32>) {
  // expected-error @below {{buffer must be 'tensor<4xf32>', but is 'tensor<5xf32>' [rmsprop_update_C1]}}
  %0:3 = gpuc.rmsprop_update %w gradient %w square_avg %w buffer %m lr %lr {alpha = 0.99 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum = 0.9 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %lr: tensor<f32>) {
  // expected-error @below {{grad_avg must be 'tensor<4xf32>', but is 'tensor<5xf32>' [rmsprop_update_C1]}}
  %0:3 = gpuc.rmsprop_update %w gradient %w square_avg %w grad_avg %m lr %lr {alpha = 0.99 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// As in PyTorch.
func.func @case(%w: tensor<4xf32>, %lr: tensor<f32>) {
  // expected-error @below {{eps must not be negative, but is -1 [rmsprop_update_C5]}}
  %0:2 = gpuc.rmsprop_update %w gradient %w square_avg %w lr %lr {alpha = 0.99 : f64, eps = -1.0 : f64, weight_decay = 0.0 : f64, momentum = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// As in PyTorch.
func.func @case(%w: tensor<4xf32>, %lr: tensor<f32>) {
  // expected-error @below {{weight_decay must not be negative, but is -1 [rmsprop_update_C5]}}
  %0:2 = gpuc.rmsprop_update %w gradient %w square_avg %w lr %lr {alpha = 0.99 : f64, eps = 1.0e-8 : f64, weight_decay = -1.0 : f64, momentum = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @case(%w: tensor<4xf32>, %lr: tensor<f32>) {
  // expected-error @below {{momentum must not be negative, but is -1 [rmsprop_update_C5]}}
  %0:3 = gpuc.rmsprop_update %w gradient %w square_avg %w buffer %w lr %lr {alpha = 0.99 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum = -1.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Operands and results of another shape.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{gradient must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adagrad_update_C1]}}
  %0:2 = gpuc.adagrad_update %w gradient %m sum %w step %t lr %lr {lr_decay = 0.0 : f64, eps = 1.0e-10 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{new weight must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adagrad_update_C1]}}
  %0:2 = gpuc.adagrad_update %w gradient %w sum %w step %t lr %lr {lr_decay = 0.0 : f64, eps = 1.0e-10 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<5xf32>, tensor<4xf32>)
  return
}

// -----

func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{new sum must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adagrad_update_C1]}}
  %0:2 = gpuc.adagrad_update %w gradient %w sum %w step %t lr %lr {lr_decay = 0.0 : f64, eps = 1.0e-10 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<5xf32>)
  return
}

// -----

// One learning rate.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lrs: tensor<4xf32>) {
  // expected-error @below {{lr must be a scalar tensor, but is 'tensor<4xf32>' [adagrad_update_C2]}}
  %0:2 = gpuc.adagrad_update %w gradient %w sum %w step %t lr %lrs {lr_decay = 0.0 : f64, eps = 1.0e-10 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// The denominator could be 0.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{eps must not be negative, but is -1 [adagrad_update_C3]}}
  %0:2 = gpuc.adagrad_update %w gradient %w sum %w step %t lr %lr {lr_decay = 0.0 : f64, eps = -1.0 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Weights would grow.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{weight_decay must not be negative, but is -1 [adagrad_update_C3]}}
  %0:2 = gpuc.adagrad_update %w gradient %w sum %w step %t lr %lr {lr_decay = 0.0 : f64, eps = 1.0e-10 : f64, weight_decay = -1.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Operands and results of another shape.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %lr: tensor<f32>) {
  // expected-error @below {{gradient must be 'tensor<4xf32>', but is 'tensor<5xf32>' [lion_update_C1]}}
  %0:2 = gpuc.lion_update %w gradient %m exp_avg %w lr %lr {beta1 = 0.9 : f64, beta2 = 0.99 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @case(%w: tensor<4xf32>, %lr: tensor<f32>) {
  // expected-error @below {{new weight must be 'tensor<4xf32>', but is 'tensor<5xf32>' [lion_update_C1]}}
  %0:2 = gpuc.lion_update %w gradient %w exp_avg %w lr %lr {beta1 = 0.9 : f64, beta2 = 0.99 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<5xf32>, tensor<4xf32>)
  return
}

// -----

func.func @case(%w: tensor<4xf32>, %lr: tensor<f32>) {
  // expected-error @below {{new exp_avg must be 'tensor<4xf32>', but is 'tensor<5xf32>' [lion_update_C1]}}
  %0:2 = gpuc.lion_update %w gradient %w exp_avg %w lr %lr {beta1 = 0.9 : f64, beta2 = 0.99 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<5xf32>)
  return
}

// -----

// An average that never moves.
func.func @case(%w: tensor<4xf32>, %lr: tensor<f32>) {
  // expected-error @below {{beta2 must lie in [0, 1), but is 1 [lion_update_C3]}}
  %0:2 = gpuc.lion_update %w gradient %w exp_avg %w lr %lr {beta1 = 0.9 : f64, beta2 = 1.0 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// One learning rate.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lrs: tensor<4xf32>) {
  // expected-error @below {{lr must be a scalar tensor, but is 'tensor<4xf32>' [adafactor_update_C2]}}
  %0:2 = gpuc.adafactor_update %w gradient %w variances %w step %t lr %lrs {beta2_decay = -0.8 : f64, eps1 = 1.0e-7 : f64, eps2 = 0.001 : f64, d = 1.0 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// How many elements a mean is of must be known.
func.func @case(%d: tensor<?xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{weight 'tensor<?xf32>' must be of static shape and have elements [adafactor_update_C5]}}
  %0:2 = gpuc.adafactor_update %d gradient %d variances %d step %t lr %lr {beta2_decay = -0.8 : f64, eps1 = 1.0e-7 : f64, eps2 = 0.001 : f64, d = 1.0 : f64, weight_decay = 0.0 : f64} : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<i64>, tensor<f32>) -> (tensor<?xf32>, tensor<?xf32>)
  return
}

// -----

// A least size is none below 0.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{eps1 must not be negative, but is -1 [adafactor_update_C6]}}
  %0:2 = gpuc.adafactor_update %w gradient %w variances %w step %t lr %lr {beta2_decay = -0.8 : f64, eps1 = -1.0 : f64, eps2 = 0.001 : f64, d = 1.0 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Weights would grow.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{weight_decay must not be negative, but is -1 [adafactor_update_C6]}}
  %0:2 = gpuc.adafactor_update %w gradient %w variances %w step %t lr %lr {beta2_decay = -0.8 : f64, eps1 = 1.0e-7 : f64, eps2 = 0.001 : f64, d = 1.0 : f64, weight_decay = -1.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Operands and results of another shape.
func.func @case(%a: tensor<4x3xf32>, %b: tensor<4x1xf32>, %lr: tensor<f32>) {
  // expected-error @below {{gradient must be 'tensor<4x3xf32>', but is 'tensor<4x1xf32>' [muon_update_C1]}}
  %0:2 = gpuc.muon_update %a gradient %b buffer %a lr %lr {momentum = 0.95 : f64, nesterov = true, ns_steps = 5 : i64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x1xf32>, tensor<4x3xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return
}

// -----

func.func @case(%a: tensor<4x3xf32>, %lr: tensor<f32>) {
  // expected-error @below {{new weight must be 'tensor<4x3xf32>', but is 'tensor<4x1xf32>' [muon_update_C1]}}
  %0:2 = gpuc.muon_update %a gradient %a buffer %a lr %lr {momentum = 0.95 : f64, nesterov = true, ns_steps = 5 : i64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>) -> (tensor<4x1xf32>, tensor<4x3xf32>)
  return
}

// -----

func.func @case(%a: tensor<4x3xf32>, %lr: tensor<f32>) {
  // expected-error @below {{new buffer must be 'tensor<4x3xf32>', but is 'tensor<4x1xf32>' [muon_update_C1]}}
  %0:2 = gpuc.muon_update %a gradient %a buffer %a lr %lr {momentum = 0.95 : f64, nesterov = true, ns_steps = 5 : i64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x1xf32>)
  return
}

// -----

// A norm is over elements that can be counted.
func.func @case(%da: tensor<?x3xf32>, %lr: tensor<f32>) {
  // expected-error @below {{weight 'tensor<?x3xf32>' must be of static shape and have elements [muon_update_C3]}}
  %0:2 = gpuc.muon_update %da gradient %da buffer %da lr %lr {momentum = 0.95 : f64, nesterov = true, ns_steps = 5 : i64, weight_decay = 0.0 : f64} : (tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x3xf32>, tensor<f32>) -> (tensor<?x3xf32>, tensor<?x3xf32>)
  return
}

// -----

// More iterations than anybody means.
func.func @case(%a: tensor<4x3xf32>, %lr: tensor<f32>) {
  // expected-error @below {{ns_steps must lie in [1, 99], but is 100 [muon_update_C4]}}
  %0:2 = gpuc.muon_update %a gradient %a buffer %a lr %lr {momentum = 0.95 : f64, nesterov = true, ns_steps = 100 : i64, weight_decay = 0.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return
}

// -----

// Weights would grow.
func.func @case(%a: tensor<4x3xf32>, %lr: tensor<f32>) {
  // expected-error @below {{weight_decay must not be negative, but is -1 [muon_update_C5]}}
  %0:2 = gpuc.muon_update %a gradient %a buffer %a lr %lr {momentum = 0.95 : f64, nesterov = true, ns_steps = 5 : i64, weight_decay = -1.0 : f64} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return
}

// -----

// A scalar for each name.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{is given 2 scalars for 1 given_numbers [sgd_update_C7]}}
  %0:2 = gpuc.sgd_update %w gradient %w buffer %w step %t lr %lr given %lr, %lr ["momentum"] {momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// A number that the update has.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{given_numbers name 'beta1', but known are momentum, weight_decay [sgd_update_C7]}}
  %0:2 = gpuc.sgd_update %w gradient %w buffer %w step %t lr %lr given %lr ["beta1"] {momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Each once.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{given_numbers name 'momentum' twice [sgd_update_C7]}}
  %0:2 = gpuc.sgd_update %w gradient %w buffer %w step %t lr %lr given %lr, %lr ["momentum", "momentum"] {momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Scalars.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{momentum must be a scalar tensor, but is 'tensor<4xf32>' [sgd_update_C7]}}
  %0:2 = gpuc.sgd_update %w gradient %w buffer %w step %t lr %lr given %w ["momentum"] {momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// The same of the others.
func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{given_numbers name 'momentum', but known are beta1, beta2, weight_decay [adam_update_C6]}}
  %0:3 = gpuc.adam_update %w gradient %w moments %w, %w step %t lr %lr given %lr ["momentum"] {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @case(%w: tensor<4xf32>, %lr: tensor<f32>) {
  // expected-error @below {{given_numbers name 'beta1', but known are momentum, weight_decay [rmsprop_update_C6]}}
  %0:2 = gpuc.rmsprop_update %w gradient %w square_avg %w lr %lr given %lr ["beta1"] {alpha = 0.99 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @case(%w: tensor<4xf32>, %t: tensor<i64>, %lr: tensor<f32>) {
  // expected-error @below {{given_numbers name 'momentum', but known are weight_decay [adagrad_update_C4]}}
  %0:2 = gpuc.adagrad_update %w gradient %w sum %w step %t lr %lr given %lr ["momentum"] {lr_decay = 0.0 : f64, eps = 1.0e-10 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}
