// RUN: gpuc-opt %s --gpuc-differentiate-loss --split-input-file --verify-diagnostics

// A variable that the loss does not reach is not trained, and that may be a slip.
gpuc.variable @w : tensor<2xf32> init ones
// expected-warning @below {{variable @forgotten is not trained: @loss does not depend on it}}
gpuc.variable @forgotten : tensor<2xf32> init ones
func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %f = gpuc.read @forgotten : tensor<2xf32>
  %stopped = gpuc.stop_gradient %f : tensor<2xf32>
  %0 = gpuc.mul %w, %stopped : tensor<2xf32>
  %sum, %count = gpuc.mse %0, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
gpuc.recipe {
  loss = @loss,
  optimizer = sgd
}

// -----

// Every variable is frozen.
gpuc.variable @w frozen : tensor<2xf32> init ones
func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{has nothing to train: @loss depends on no variable that is not frozen}}
gpuc.recipe {
  loss = @loss,
  optimizer = sgd
}

// -----

// The loss is only declared.
gpuc.variable @w : tensor<2xf32> init ones
func.func private @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
// expected-error @below {{trains by @loss, which has no body in this module}}
gpuc.recipe { loss = @loss, optimizer = sgd }

// -----

// Whether the loss depends on @w is not seen before the gradient is expanded.
gpuc.variable @w : tensor<2xf32> init ones
func.func private @energy() -> tensor<f32> {
  %w = gpuc.read @w : tensor<2xf32>
  %0 = gpuc.sum %w dims [0] : (tensor<2xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @loss() -> (tensor<f32>, tensor<f32>) {
  // expected-error @below {{does not say yet which variables matter to it: gpuc-autodiff comes before gpuc-differentiate-loss}}
  %e, %g = gpuc.gradient @energy() wrt [@w] : () -> (tensor<f32>, tensor<2xf32>)
  return %e, %e : tensor<f32>, tensor<f32>
}
gpuc.recipe {
  loss = @loss,
  optimizer = sgd
}

// -----

// A function of the model's own.
gpuc.variable @w : tensor<2xf32> init ones
// expected-error @below {{is named @gradients, as gpuc-differentiate-loss names what it makes: rename it}}
func.func @gradients(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
gpuc.recipe {
  loss = @loss,
  optimizer = sgd
}
