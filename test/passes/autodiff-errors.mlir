// RUN: gpuc-opt %s --gpuc-differentiate-loss --gpuc-autodiff --split-input-file --verify-diagnostics

// Accuracy counts: between the loss and the weights it has no derivative.
gpuc.variable @w : tensor<4x2xf32> init ones
func.func @loss(%labels: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<4x2xf32>
  // expected-error @below {{'gpuc.accuracy' op stands between the loss and what it is differentiated by, but has no derivative}}
  %sum, %count = gpuc.accuracy %w, %labels : (tensor<4x2xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
gpuc.recipe {
  loss = @loss,
  optimizer = sgd
}

// -----

// Calls in a circle.
// expected-error @below {{is used by itself: recursion has no end known when compiling}}
func.func @even(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @odd(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @odd(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @even(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @g(%x: tensor<f32>) -> tensor<f32> {
  %y, %dx = gpuc.gradient @odd(%x) wrt arguments [0] : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %dx : tensor<f32>
}

// -----

// A function that is the derivative of itself.
// expected-error @below {{is used by itself: recursion has no end known when compiling}}
func.func @exponential(%x: tensor<f32>) -> tensor<f32> {
  %y, %dx = gpuc.gradient @exponential(%x) wrt arguments [0] : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %dx : tensor<f32>
}

// -----

// Nothing to differentiate: the function is only declared.
func.func private @f(%x: tensor<f32>) -> tensor<f32>
func.func @g(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{differentiates @f, which has no body in this module}}
  %y, %dx = gpuc.gradient @f(%x) wrt arguments [0] : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %dx : tensor<f32>
}

// -----

// What was sorted goes back by flat indices, and those need the batch.
gpuc.variable @w : tensor<65xf32> init ones
func.func @loss(%x: tensor<?x65xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<65xf32>
  %0 = gpuc.broadcast %w dims [1] : tensor<65xf32> to tensor<?x65xf32>
  // expected-error @below {{'gpuc.sort' op operand 'tensor<?x65xf32>' has a batch that is not bound yet: run gpuc-specialize-batch first}}
  // expected-error @below {{'gpuc.sort' op has no derivative for these operands}}
  %1, %2 = gpuc.sort %0 dim 1 : (tensor<?x65xf32>) -> (tensor<?x65xf32>, tensor<?x65xi64>)
  %sum, %count = gpuc.mse %1, %x : (tensor<?x65xf32>, tensor<?x65xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
gpuc.recipe {
  loss = @loss,
  optimizer = sgd
}
