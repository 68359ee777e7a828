// Losses that are refused, each with the constraint's label in dialects/gpuc/ops/LossOps.td.
// RUN: gpuc-opt %s --split-input-file --verify-diagnostics

// A row without classes.
func.func @case(%a: tensor<4xf32>, %l: tensor<i32>) {
  // expected-error @below {{logits must be rows by at least one class, but are 'tensor<4xf32>' [cross_entropy_C1]}}
  %0:2 = gpuc.cross_entropy %a, %l : (tensor<4xf32>, tensor<i32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// Five rows, four labels.
func.func @case(%a: tensor<5x4xf32>, %l: tensor<4xi32>) {
  // expected-error @below {{labels must be 'tensor<5xi32>', but is 'tensor<4xi32>' [cross_entropy_C2]}}
  %0:2 = gpuc.cross_entropy %a, %l : (tensor<5x4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// The mask is a row each.
func.func @case(%a: tensor<5x4xf32>, %l: tensor<5xi32>, %m: tensor<4xi1>) {
  // expected-error @below {{mask must be 'tensor<5xi1>', but is 'tensor<4xi1>' [cross_entropy_C3]}}
  %0:2 = gpuc.cross_entropy %a, %l mask %m : (tensor<5x4xf32>, tensor<5xi32>, tensor<4xi1>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// More than all.
func.func @case(%a: tensor<5x4xf32>, %l: tensor<5xi32>) {
  // expected-error @below {{smoothing must lie in [0, 1], but is 1.5 [cross_entropy_C4]}}
  %0:2 = gpuc.cross_entropy %a, %l {smoothing = 1.5 : f64} : (tensor<5x4xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// One number has no rows.
func.func @case(%a: tensor<f32>, %m: tensor<1xi1>) {
  // expected-error @below {{prediction 'tensor<f32>' has no rows to mask [element_loss_C1]}}
  %0:2 = gpuc.mse %a, %a mask %m : (tensor<f32>, tensor<f32>, tensor<1xi1>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// Nothing is broadcast silently.
func.func @case(%a: tensor<4xf32>, %b: tensor<5xf32>) {
  // expected-error @below {{target must be 'tensor<4xf32>', but is 'tensor<5xf32>' [element_loss_C2]}}
  %0:2 = gpuc.mse %a, %b : (tensor<4xf32>, tensor<5xf32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// The mask is a row each.
func.func @case(%a: tensor<4xf32>, %m: tensor<5xi1>) {
  // expected-error @below {{mask must be 'tensor<4xi1>', but is 'tensor<5xi1>' [element_loss_C3]}}
  %0:2 = gpuc.mse %a, %a mask %m : (tensor<4xf32>, tensor<4xf32>, tensor<5xi1>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// A row without classes.
func.func @case(%a: tensor<4xf32>, %l: tensor<i32>) {
  // expected-error @below {{logits must be rows by at least one class, but are 'tensor<4xf32>' [accuracy_C1]}}
  %0:2 = gpuc.accuracy %a, %l : (tensor<4xf32>, tensor<i32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// Five rows, four labels.
func.func @case(%a: tensor<5x4xf32>, %l: tensor<4xi32>) {
  // expected-error @below {{labels must be 'tensor<5xi32>', but is 'tensor<4xi32>' [accuracy_C2]}}
  %0:2 = gpuc.accuracy %a, %l : (tensor<5x4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// The mask is a row each.
func.func @case(%a: tensor<5x4xf32>, %l: tensor<5xi32>, %m: tensor<4xi1>) {
  // expected-error @below {{mask must be 'tensor<5xi1>', but is 'tensor<4xi1>' [accuracy_C3]}}
  %0:2 = gpuc.accuracy %a, %l mask %m : (tensor<5x4xf32>, tensor<5xi32>, tensor<4xi1>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// A weight is for each class.
func.func @f(%a: tensor<5x4xf32>, %l: tensor<5xi32>, %w: tensor<5xf32>) {
  // expected-error @below {{'gpuc.cross_entropy' op weight must be 'tensor<4xf32>', but is 'tensor<5xf32>' [cross_entropy_C5]}}
  %0:2 = gpuc.cross_entropy %a, %l weight %w : (tensor<5x4xf32>, tensor<5xi32>, tensor<5xf32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// The last dimension holds the classes.
func.func @f(%a: tensor<4xf32>, %l: tensor<i32>) {
  // expected-error @below {{'gpuc.nll' op log_probabilities must be rows by at least one class, but are 'tensor<4xf32>' [nll_C1]}}
  %0:2 = gpuc.nll %a, %l : (tensor<4xf32>, tensor<i32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// One label a row.
func.func @f(%a: tensor<5x4xf32>, %l: tensor<4xi32>) {
  // expected-error @below {{labels must be 'tensor<5xi32>', but is 'tensor<4xi32>' [nll_C2]}}
  %0:2 = gpuc.nll %a, %l : (tensor<5x4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// One flag a sample.
func.func @f(%a: tensor<5x4xf32>, %l: tensor<5xi32>, %m: tensor<4xi1>) {
  // expected-error @below {{mask must be 'tensor<5xi1>', but is 'tensor<4xi1>' [nll_C3]}}
  %0:2 = gpuc.nll %a, %l mask %m : (tensor<5x4xf32>, tensor<5xi32>, tensor<4xi1>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// A weight has the type of the logits.
func.func @f(%a: tensor<5x4xf32>, %l: tensor<5xi32>, %w: tensor<4xf64>) {
  // expected-error @below {{weight must be 'tensor<4xf32>', but is 'tensor<4xf64>' [nll_C4]}}
  %0:2 = gpuc.nll %a, %l weight %w : (tensor<5x4xf32>, tensor<5xi32>, tensor<4xf64>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// Nothing is both equal to the target and beyond a distance of 0.
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{'gpuc.huber' op delta must be greater than 0, but is 0 [huber_C1]}}
  %0:2 = gpuc.huber %a, %a {delta = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// All losses of pairs check alike.
func.func @f(%a: tensor<4xf32>, %b: tensor<4x1xf32>) {
  // expected-error @below {{'gpuc.l1' op target must be 'tensor<4xf32>', but is 'tensor<4x1xf32>' [element_loss_C2]}}
  %0:2 = gpuc.l1 %a, %b : (tensor<4xf32>, tensor<4x1xf32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// 3 is neither 1 nor the extent of the prediction.
func.func @f(%a: tensor<4x5xf32>, %w: tensor<3xf32>) {
  // expected-error @below {{positive_weight 'tensor<3xf32>' cannot be broadcast to the prediction 'tensor<4x5xf32>' [bce_with_logits_C1]}}
  %0:2 = gpuc.bce_with_logits %a, %a positive_weight %w : (tensor<4x5xf32>, tensor<4x5xf32>, tensor<3xf32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// Rows of no class have no largest logit.
func.func @case(%a: tensor<5x0xf32>, %l: tensor<5xi32>) {
  // expected-error @below {{logits must be rows by at least one class, but are 'tensor<5x0xf32>' [accuracy_C1]}}
  %0:2 = gpuc.accuracy %a, %l : (tensor<5x0xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<f32>)
  return
}
