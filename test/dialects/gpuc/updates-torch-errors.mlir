// What adadelta_update, adamax_update, nadam_update, radam_update, rprop_update and asgd_update refuse: each operand, result and number.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

// adadelta_update: gradient.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{gradient must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adadelta_update_C1]}}
  %0:3 = gpuc.adadelta_update %w gradient %m square_avg %w acc_delta %w lr %lr {rho = 0.9 : f64, eps = 1.0e-6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adadelta_update: square_avg.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{square_avg must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adadelta_update_C1]}}
  %0:3 = gpuc.adadelta_update %w gradient %w square_avg %m acc_delta %w lr %lr {rho = 0.9 : f64, eps = 1.0e-6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adadelta_update: acc_delta.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{acc_delta must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adadelta_update_C1]}}
  %0:3 = gpuc.adadelta_update %w gradient %w square_avg %w acc_delta %m lr %lr {rho = 0.9 : f64, eps = 1.0e-6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adadelta_update: new weight.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new weight must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adadelta_update_C1]}}
  %0:3 = gpuc.adadelta_update %w gradient %w square_avg %w acc_delta %w lr %lr {rho = 0.9 : f64, eps = 1.0e-6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<5xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adadelta_update: new square_avg.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new square_avg must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adadelta_update_C1]}}
  %0:3 = gpuc.adadelta_update %w gradient %w square_avg %w acc_delta %w lr %lr {rho = 0.9 : f64, eps = 1.0e-6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>)
  return
}

// -----

// adadelta_update: new acc_delta.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new acc_delta must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adadelta_update_C1]}}
  %0:3 = gpuc.adadelta_update %w gradient %w square_avg %w acc_delta %w lr %lr {rho = 0.9 : f64, eps = 1.0e-6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>)
  return
}

// -----

// adadelta_update: lr.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{lr must be a scalar tensor, but is 'tensor<4xf32>' [adadelta_update_C2]}}
  %0:3 = gpuc.adadelta_update %w gradient %w square_avg %w acc_delta %w lr %lrs {rho = 0.9 : f64, eps = 1.0e-6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adadelta_update: rho.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{rho must lie in [0, 1], but is 1.5 [adadelta_update_C3]}}
  %0:3 = gpuc.adadelta_update %w gradient %w square_avg %w acc_delta %w lr %lr {rho = 1.5 : f64, eps = 1.0e-6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adadelta_update: eps.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{eps must not be negative, but is -1 [adadelta_update_C4]}}
  %0:3 = gpuc.adadelta_update %w gradient %w square_avg %w acc_delta %w lr %lr {rho = 0.9 : f64, eps = -1.0 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adadelta_update: weight_decay.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{weight_decay must not be negative, but is -1 [adadelta_update_C4]}}
  %0:3 = gpuc.adadelta_update %w gradient %w square_avg %w acc_delta %w lr %lr {rho = 0.9 : f64, eps = 1.0e-6 : f64, weight_decay = -1.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adadelta_update: numbers that are given.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{given_numbers name 'momentum', but known are weight_decay [adadelta_update_C5]}}
  %0:3 = gpuc.adadelta_update %w gradient %w square_avg %w acc_delta %w lr %lr given %lr ["momentum"] {rho = 0.9 : f64, eps = 1.0e-6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adamax_update: gradient.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{gradient must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adamax_update_C1]}}
  %0:3 = gpuc.adamax_update %w gradient %m moments %w, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adamax_update: exp_avg.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{exp_avg must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adamax_update_C1]}}
  %0:3 = gpuc.adamax_update %w gradient %w moments %m, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adamax_update: exp_inf.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{exp_inf must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adamax_update_C1]}}
  %0:3 = gpuc.adamax_update %w gradient %w moments %w, %m step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adamax_update: new weight.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new weight must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adamax_update_C1]}}
  %0:3 = gpuc.adamax_update %w gradient %w moments %w, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<5xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adamax_update: new exp_avg.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new exp_avg must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adamax_update_C1]}}
  %0:3 = gpuc.adamax_update %w gradient %w moments %w, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>)
  return
}

// -----

// adamax_update: new exp_inf.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new exp_inf must be 'tensor<4xf32>', but is 'tensor<5xf32>' [adamax_update_C1]}}
  %0:3 = gpuc.adamax_update %w gradient %w moments %w, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>)
  return
}

// -----

// adamax_update: step.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{step must be a scalar tensor, but is 'tensor<4xi64>' [adamax_update_C2]}}
  %0:3 = gpuc.adamax_update %w gradient %w moments %w, %w step %ts lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adamax_update: lr.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{lr must be a scalar tensor, but is 'tensor<4xf32>' [adamax_update_C2]}}
  %0:3 = gpuc.adamax_update %w gradient %w moments %w, %w step %t lr %lrs {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adamax_update: beta1.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{beta1 must lie in [0, 1), but is 1 [adamax_update_C3]}}
  %0:3 = gpuc.adamax_update %w gradient %w moments %w, %w step %t lr %lr {beta1 = 1.0 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adamax_update: beta2.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{beta2 must lie in [0, 1), but is -1 [adamax_update_C3]}}
  %0:3 = gpuc.adamax_update %w gradient %w moments %w, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = -1.0 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adamax_update: eps.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{eps must not be negative, but is -1 [adamax_update_C4]}}
  %0:3 = gpuc.adamax_update %w gradient %w moments %w, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = -1.0 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adamax_update: weight_decay.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{weight_decay must not be negative, but is -1 [adamax_update_C4]}}
  %0:3 = gpuc.adamax_update %w gradient %w moments %w, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = -1.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// adamax_update: numbers that are given.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{given_numbers name 'momentum', but known are beta1, beta2, weight_decay [adamax_update_C5]}}
  %0:3 = gpuc.adamax_update %w gradient %w moments %w, %w step %t lr %lr given %lr ["momentum"] {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// nadam_update: gradient.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{gradient must be 'tensor<4xf32>', but is 'tensor<5xf32>' [nadam_update_C1]}}
  %0:4 = gpuc.nadam_update %w gradient %m moments %w, %w mu_product %lr step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum_decay = 4.0e-3 : f64} : (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

// nadam_update: first moment.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{first moment must be 'tensor<4xf32>', but is 'tensor<5xf32>' [nadam_update_C1]}}
  %0:4 = gpuc.nadam_update %w gradient %w moments %m, %w mu_product %lr step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum_decay = 4.0e-3 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

// nadam_update: second moment.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{second moment must be 'tensor<4xf32>', but is 'tensor<5xf32>' [nadam_update_C1]}}
  %0:4 = gpuc.nadam_update %w gradient %w moments %w, %m mu_product %lr step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum_decay = 4.0e-3 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

// nadam_update: new weight.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new weight must be 'tensor<4xf32>', but is 'tensor<5xf32>' [nadam_update_C1]}}
  %0:4 = gpuc.nadam_update %w gradient %w moments %w, %w mu_product %lr step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum_decay = 4.0e-3 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

// nadam_update: new first moment.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new first moment must be 'tensor<4xf32>', but is 'tensor<5xf32>' [nadam_update_C1]}}
  %0:4 = gpuc.nadam_update %w gradient %w moments %w, %w mu_product %lr step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum_decay = 4.0e-3 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

// nadam_update: new second moment.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new second moment must be 'tensor<4xf32>', but is 'tensor<5xf32>' [nadam_update_C1]}}
  %0:4 = gpuc.nadam_update %w gradient %w moments %w, %w mu_product %lr step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum_decay = 4.0e-3 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<f32>)
  return
}

// -----

// nadam_update: mu_product.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{mu_product must be a scalar tensor, but is 'tensor<4xf32>' [nadam_update_C2]}}
  %0:4 = gpuc.nadam_update %w gradient %w moments %w, %w mu_product %lrs step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum_decay = 4.0e-3 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

// nadam_update: step.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{step must be a scalar tensor, but is 'tensor<4xi64>' [nadam_update_C2]}}
  %0:4 = gpuc.nadam_update %w gradient %w moments %w, %w mu_product %lr step %ts lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum_decay = 4.0e-3 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<4xi64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

// nadam_update: lr.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{lr must be a scalar tensor, but is 'tensor<4xf32>' [nadam_update_C2]}}
  %0:4 = gpuc.nadam_update %w gradient %w moments %w, %w mu_product %lr step %t lr %lrs {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum_decay = 4.0e-3 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

// nadam_update: beta1.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{beta1 must lie in [0, 1), but is 1 [nadam_update_C3]}}
  %0:4 = gpuc.nadam_update %w gradient %w moments %w, %w mu_product %lr step %t lr %lr {beta1 = 1.0 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum_decay = 4.0e-3 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

// nadam_update: beta2.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{beta2 must lie in [0, 1), but is -1 [nadam_update_C3]}}
  %0:4 = gpuc.nadam_update %w gradient %w moments %w, %w mu_product %lr step %t lr %lr {beta1 = 0.9 : f64, beta2 = -1.0 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum_decay = 4.0e-3 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

// nadam_update: eps.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{eps must not be negative, but is -1 [nadam_update_C4]}}
  %0:4 = gpuc.nadam_update %w gradient %w moments %w, %w mu_product %lr step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = -1.0 : f64, weight_decay = 0.0 : f64, momentum_decay = 4.0e-3 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

// nadam_update: weight_decay.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{weight_decay must not be negative, but is -1 [nadam_update_C4]}}
  %0:4 = gpuc.nadam_update %w gradient %w moments %w, %w mu_product %lr step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = -1.0 : f64, momentum_decay = 4.0e-3 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

// nadam_update: momentum_decay.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{momentum_decay must not be negative, but is -1 [nadam_update_C4]}}
  %0:4 = gpuc.nadam_update %w gradient %w moments %w, %w mu_product %lr step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum_decay = -1.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

// nadam_update: numbers that are given.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{given_numbers name 'momentum', but known are beta1, beta2, weight_decay [nadam_update_C5]}}
  %0:4 = gpuc.nadam_update %w gradient %w moments %w, %w mu_product %lr step %t lr %lr given %lr ["momentum"] {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum_decay = 4.0e-3 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

// radam_update: gradient.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{gradient must be 'tensor<4xf32>', but is 'tensor<5xf32>' [radam_update_C1]}}
  %0:3 = gpuc.radam_update %w gradient %m moments %w, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// radam_update: first moment.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{first moment must be 'tensor<4xf32>', but is 'tensor<5xf32>' [radam_update_C1]}}
  %0:3 = gpuc.radam_update %w gradient %w moments %m, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// radam_update: second moment.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{second moment must be 'tensor<4xf32>', but is 'tensor<5xf32>' [radam_update_C1]}}
  %0:3 = gpuc.radam_update %w gradient %w moments %w, %m step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// radam_update: new weight.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new weight must be 'tensor<4xf32>', but is 'tensor<5xf32>' [radam_update_C1]}}
  %0:3 = gpuc.radam_update %w gradient %w moments %w, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<5xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// radam_update: new first moment.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new first moment must be 'tensor<4xf32>', but is 'tensor<5xf32>' [radam_update_C1]}}
  %0:3 = gpuc.radam_update %w gradient %w moments %w, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>)
  return
}

// -----

// radam_update: new second moment.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new second moment must be 'tensor<4xf32>', but is 'tensor<5xf32>' [radam_update_C1]}}
  %0:3 = gpuc.radam_update %w gradient %w moments %w, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>)
  return
}

// -----

// radam_update: step.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{step must be a scalar tensor, but is 'tensor<4xi64>' [radam_update_C2]}}
  %0:3 = gpuc.radam_update %w gradient %w moments %w, %w step %ts lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// radam_update: lr.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{lr must be a scalar tensor, but is 'tensor<4xf32>' [radam_update_C2]}}
  %0:3 = gpuc.radam_update %w gradient %w moments %w, %w step %t lr %lrs {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// radam_update: beta1.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{beta1 must lie in [0, 1), but is 1 [radam_update_C3]}}
  %0:3 = gpuc.radam_update %w gradient %w moments %w, %w step %t lr %lr {beta1 = 1.0 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// radam_update: beta2.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{beta2 must lie in [0, 1), but is -1 [radam_update_C3]}}
  %0:3 = gpuc.radam_update %w gradient %w moments %w, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = -1.0 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// radam_update: eps.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{eps must not be negative, but is -1 [radam_update_C4]}}
  %0:3 = gpuc.radam_update %w gradient %w moments %w, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = -1.0 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// radam_update: weight_decay.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{weight_decay must not be negative, but is -1 [radam_update_C4]}}
  %0:3 = gpuc.radam_update %w gradient %w moments %w, %w step %t lr %lr {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = -1.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// radam_update: numbers that are given.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{given_numbers name 'momentum', but known are beta1, beta2, weight_decay [radam_update_C5]}}
  %0:3 = gpuc.radam_update %w gradient %w moments %w, %w step %t lr %lr given %lr ["momentum"] {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// rprop_update: gradient.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{gradient must be 'tensor<4xf32>', but is 'tensor<5xf32>' [rprop_update_C1]}}
  %0:3 = gpuc.rprop_update %w gradient %m prev %w step_size %w step %t lr %lr {eta_minus = 0.5 : f64, eta_plus = 1.2 : f64, step_size_min = 1.0e-6 : f64, step_size_max = 5.0e1 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// rprop_update: prev.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{prev must be 'tensor<4xf32>', but is 'tensor<5xf32>' [rprop_update_C1]}}
  %0:3 = gpuc.rprop_update %w gradient %w prev %m step_size %w step %t lr %lr {eta_minus = 0.5 : f64, eta_plus = 1.2 : f64, step_size_min = 1.0e-6 : f64, step_size_max = 5.0e1 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// rprop_update: step_size.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{step_size must be 'tensor<4xf32>', but is 'tensor<5xf32>' [rprop_update_C1]}}
  %0:3 = gpuc.rprop_update %w gradient %w prev %w step_size %m step %t lr %lr {eta_minus = 0.5 : f64, eta_plus = 1.2 : f64, step_size_min = 1.0e-6 : f64, step_size_max = 5.0e1 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// rprop_update: new weight.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new weight must be 'tensor<4xf32>', but is 'tensor<5xf32>' [rprop_update_C1]}}
  %0:3 = gpuc.rprop_update %w gradient %w prev %w step_size %w step %t lr %lr {eta_minus = 0.5 : f64, eta_plus = 1.2 : f64, step_size_min = 1.0e-6 : f64, step_size_max = 5.0e1 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<5xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// rprop_update: new prev.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new prev must be 'tensor<4xf32>', but is 'tensor<5xf32>' [rprop_update_C1]}}
  %0:3 = gpuc.rprop_update %w gradient %w prev %w step_size %w step %t lr %lr {eta_minus = 0.5 : f64, eta_plus = 1.2 : f64, step_size_min = 1.0e-6 : f64, step_size_max = 5.0e1 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>)
  return
}

// -----

// rprop_update: new step_size.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new step_size must be 'tensor<4xf32>', but is 'tensor<5xf32>' [rprop_update_C1]}}
  %0:3 = gpuc.rprop_update %w gradient %w prev %w step_size %w step %t lr %lr {eta_minus = 0.5 : f64, eta_plus = 1.2 : f64, step_size_min = 1.0e-6 : f64, step_size_max = 5.0e1 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>)
  return
}

// -----

// rprop_update: step.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{step must be a scalar tensor, but is 'tensor<4xi64>' [rprop_update_C2]}}
  %0:3 = gpuc.rprop_update %w gradient %w prev %w step_size %w step %ts lr %lr {eta_minus = 0.5 : f64, eta_plus = 1.2 : f64, step_size_min = 1.0e-6 : f64, step_size_max = 5.0e1 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// rprop_update: lr.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{lr must be a scalar tensor, but is 'tensor<4xf32>' [rprop_update_C2]}}
  %0:3 = gpuc.rprop_update %w gradient %w prev %w step_size %w step %t lr %lrs {eta_minus = 0.5 : f64, eta_plus = 1.2 : f64, step_size_min = 1.0e-6 : f64, step_size_max = 5.0e1 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// rprop_update: eta_minus.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{eta_minus must lie in (0, 1) and eta_plus above 1, but they are 1 and 1.2 [rprop_update_C3]}}
  %0:3 = gpuc.rprop_update %w gradient %w prev %w step_size %w step %t lr %lr {eta_minus = 1.0 : f64, eta_plus = 1.2 : f64, step_size_min = 1.0e-6 : f64, step_size_max = 5.0e1 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// rprop_update: eta_plus.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{eta_minus must lie in (0, 1) and eta_plus above 1, but they are 0.5 and 1 [rprop_update_C3]}}
  %0:3 = gpuc.rprop_update %w gradient %w prev %w step_size %w step %t lr %lr {eta_minus = 0.5 : f64, eta_plus = 1.0 : f64, step_size_min = 1.0e-6 : f64, step_size_max = 5.0e1 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// rprop_update: step_size_min.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{step_size_min must not be negative, but is -1 [rprop_update_C4]}}
  %0:3 = gpuc.rprop_update %w gradient %w prev %w step_size %w step %t lr %lr {eta_minus = 0.5 : f64, eta_plus = 1.2 : f64, step_size_min = -1.0 : f64, step_size_max = 5.0e1 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// rprop_update: weight_decay.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{weight_decay must not be negative, but is -1 [rprop_update_C4]}}
  %0:3 = gpuc.rprop_update %w gradient %w prev %w step_size %w step %t lr %lr {eta_minus = 0.5 : f64, eta_plus = 1.2 : f64, step_size_min = 1.0e-6 : f64, step_size_max = 5.0e1 : f64, weight_decay = -1.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// rprop_update: step_size_max.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{step_size_min must not be above step_size_max, but they are 1e-06 and 0 [rprop_update_C4]}}
  %0:3 = gpuc.rprop_update %w gradient %w prev %w step_size %w step %t lr %lr {eta_minus = 0.5 : f64, eta_plus = 1.2 : f64, step_size_min = 1.0e-6 : f64, step_size_max = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// rprop_update: numbers that are given.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{given_numbers name 'momentum', but known are weight_decay [rprop_update_C5]}}
  %0:3 = gpuc.rprop_update %w gradient %w prev %w step_size %w step %t lr %lr given %lr ["momentum"] {eta_minus = 0.5 : f64, eta_plus = 1.2 : f64, step_size_min = 1.0e-6 : f64, step_size_max = 5.0e1 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// asgd_update: gradient.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{gradient must be 'tensor<4xf32>', but is 'tensor<5xf32>' [asgd_update_C1]}}
  %0:4 = gpuc.asgd_update %w gradient %m ax %w eta %lr mu %lr step %t lr %lr {lambd = 1.0e-4 : f64, alpha = 0.75 : f64, t0 = 1.0e6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>)
  return
}

// -----

// asgd_update: ax.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{ax must be 'tensor<4xf32>', but is 'tensor<5xf32>' [asgd_update_C1]}}
  %0:4 = gpuc.asgd_update %w gradient %w ax %m eta %lr mu %lr step %t lr %lr {lambd = 1.0e-4 : f64, alpha = 0.75 : f64, t0 = 1.0e6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>)
  return
}

// -----

// asgd_update: new weight.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new weight must be 'tensor<4xf32>', but is 'tensor<5xf32>' [asgd_update_C1]}}
  %0:4 = gpuc.asgd_update %w gradient %w ax %w eta %lr mu %lr step %t lr %lr {lambd = 1.0e-4 : f64, alpha = 0.75 : f64, t0 = 1.0e6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<5xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>)
  return
}

// -----

// asgd_update: new ax.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new ax must be 'tensor<4xf32>', but is 'tensor<5xf32>' [asgd_update_C1]}}
  %0:4 = gpuc.asgd_update %w gradient %w ax %w eta %lr mu %lr step %t lr %lr {lambd = 1.0e-4 : f64, alpha = 0.75 : f64, t0 = 1.0e6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<5xf32>, tensor<f32>, tensor<f32>)
  return
}

// -----

// asgd_update: eta.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{eta must be a scalar tensor, but is 'tensor<4xf32>' [asgd_update_C2]}}
  %0:4 = gpuc.asgd_update %w gradient %w ax %w eta %lrs mu %lr step %t lr %lr {lambd = 1.0e-4 : f64, alpha = 0.75 : f64, t0 = 1.0e6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>)
  return
}

// -----

// asgd_update: mu.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{mu must be a scalar tensor, but is 'tensor<4xf32>' [asgd_update_C2]}}
  %0:4 = gpuc.asgd_update %w gradient %w ax %w eta %lr mu %lrs step %t lr %lr {lambd = 1.0e-4 : f64, alpha = 0.75 : f64, t0 = 1.0e6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<4xf32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>)
  return
}

// -----

// asgd_update: lr.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{lr must be a scalar tensor, but is 'tensor<4xf32>' [asgd_update_C2]}}
  %0:4 = gpuc.asgd_update %w gradient %w ax %w eta %lr mu %lr step %t lr %lrs {lambd = 1.0e-4 : f64, alpha = 0.75 : f64, t0 = 1.0e6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>)
  return
}

// -----

// asgd_update: new eta.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new eta must be 'tensor<f32>', but is 'tensor<f64>' [asgd_update_C2]}}
  %0:4 = gpuc.asgd_update %w gradient %w ax %w eta %lr mu %lr step %t lr %lr {lambd = 1.0e-4 : f64, alpha = 0.75 : f64, t0 = 1.0e6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f64>, tensor<f32>)
  return
}

// -----

// asgd_update: new mu.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{new mu must be 'tensor<f32>', but is 'tensor<f64>' [asgd_update_C2]}}
  %0:4 = gpuc.asgd_update %w gradient %w ax %w eta %lr mu %lr step %t lr %lr {lambd = 1.0e-4 : f64, alpha = 0.75 : f64, t0 = 1.0e6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f64>)
  return
}

// -----

// asgd_update: step.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{step must be a scalar tensor, but is 'tensor<4xi64>' [asgd_update_C2]}}
  %0:4 = gpuc.asgd_update %w gradient %w ax %w eta %lr mu %lr step %ts lr %lr {lambd = 1.0e-4 : f64, alpha = 0.75 : f64, t0 = 1.0e6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<4xi64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>)
  return
}

// -----

// asgd_update: lambd.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{lambd must not be negative, but is -1 [asgd_update_C3]}}
  %0:4 = gpuc.asgd_update %w gradient %w ax %w eta %lr mu %lr step %t lr %lr {lambd = -1.0 : f64, alpha = 0.75 : f64, t0 = 1.0e6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>)
  return
}

// -----

// asgd_update: weight_decay.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{weight_decay must not be negative, but is -1 [asgd_update_C3]}}
  %0:4 = gpuc.asgd_update %w gradient %w ax %w eta %lr mu %lr step %t lr %lr {lambd = 1.0e-4 : f64, alpha = 0.75 : f64, t0 = 1.0e6 : f64, weight_decay = -1.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>)
  return
}

// -----

// asgd_update: alpha.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{alpha and t0 must be numbers, but are nan and 1e+06 [asgd_update_C3]}}
  %0:4 = gpuc.asgd_update %w gradient %w ax %w eta %lr mu %lr step %t lr %lr {lambd = 1.0e-4 : f64, alpha = 0x7FF8000000000000 : f64, t0 = 1.0e6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>)
  return
}

// -----

// asgd_update: t0.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{alpha and t0 must be numbers, but are 0.75 and nan [asgd_update_C3]}}
  %0:4 = gpuc.asgd_update %w gradient %w ax %w eta %lr mu %lr step %t lr %lr {lambd = 1.0e-4 : f64, alpha = 0.75 : f64, t0 = 0x7FF8000000000000 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>)
  return
}

// -----

// asgd_update: numbers that are given.
func.func @case(%w: tensor<4xf32>, %m: tensor<5xf32>, %t: tensor<i64>, %ts: tensor<4xi64>, %lr: tensor<f32>, %lrs: tensor<4xf32>) {
  // expected-error @below {{given_numbers name 'momentum', but known are weight_decay [asgd_update_C4]}}
  %0:4 = gpuc.asgd_update %w gradient %w ax %w eta %lr mu %lr step %t lr %lr given %lr ["momentum"] {lambd = 1.0e-4 : f64, alpha = 0.75 : f64, t0 = 1.0e6 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>)
  return
}
