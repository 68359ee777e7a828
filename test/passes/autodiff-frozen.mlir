// RUN: gpuc-opt %s --gpuc-differentiate-loss --gpuc-autodiff --split-input-file | FileCheck %s

// A frozen layer costs no gradient: of y = (x · Aᵀ) · Bᵀ with A frozen the backward pass is one product, that of B. Were
// B frozen and A not, it would be two.
// CHECK-LABEL: func.func private @gradients(
// CHECK-SAME:    -> (tensor<f32>, tensor<f32>, tensor<3x4xf32> {gpuc.variable = @b})
// CHECK-COUNT-3: gpuc.matmul
// CHECK-NOT:     gpuc.matmul
// CHECK:         return
gpuc.variable @a frozen : tensor<4x5xf32> init ones
gpuc.variable @b : tensor<3x4xf32> init ones
func.func @loss(%x: tensor<8x5xf32>, %t: tensor<8x3xf32>) -> (tensor<f32>, tensor<f32>) {
  %a = gpuc.read @a : tensor<4x5xf32>
  %b = gpuc.read @b : tensor<3x4xf32>
  %h = gpuc.matmul %x, transpose %a : (tensor<8x5xf32>, tensor<4x5xf32>) -> tensor<8x4xf32>
  %y = gpuc.matmul %h, transpose %b : (tensor<8x4xf32>, tensor<3x4xf32>) -> tensor<8x3xf32>
  %sum, %count = gpuc.mse %y, %t : (tensor<8x3xf32>, tensor<8x3xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
gpuc.recipe {
  loss = @loss,
  optimizer = sgd
}

// -----

// What is frozen inside of a composite is not derived by either: of attention's gradient and of the norm's, only what
// leads to the trained variable is left. An unused cotangent of the norm's weight is gone.
// CHECK-LABEL: func.func private @gradients(
// CHECK-SAME:    -> (tensor<f32>, tensor<f32>, tensor<4xf32> {gpuc.variable = @bias})
// CHECK:         gpuc.layer_norm
// CHECK:         gpuc.mse
// CHECK:         %[[DBIAS:.*]] = gpuc.sum %{{.*}} dims [0] : (tensor<8x4xf32>) -> tensor<4xf32>
// CHECK-NOT:     gpuc.sum
// CHECK:         return %{{.*}}, %{{.*}}, %[[DBIAS]]
gpuc.variable @weight frozen : tensor<4xf32> init ones
gpuc.variable @bias : tensor<4xf32> init zeros
func.func @loss(%x: tensor<8x4xf32>) -> (tensor<f32>, tensor<f32>) {
  %weight = gpuc.read @weight : tensor<4xf32>
  %bias = gpuc.read @bias : tensor<4xf32>
  %y, %mean, %inverse = gpuc.layer_norm %x dim 1 weight %weight bias %bias : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>)
  %sum, %count = gpuc.mse %y, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
gpuc.recipe {
  loss = @loss,
  optimizer = sgd
}

// -----

// stop_gradient leaves no work behind it: exp, whose derivative would be a product more, has none.
// CHECK-LABEL: func.func private @gradients(
// CHECK:         gpuc.exp
// CHECK:         %[[STOPPED:.*]] = gpuc.stop_gradient
// CHECK:         %[[SUM:.*]], %{{.*}} = gpuc.mse
// CHECK-NOT:     gpuc.exp
// CHECK:         gpuc.mul %{{.*}}, %[[STOPPED]]
// CHECK-NOT:     gpuc.mul
// CHECK:         return %[[SUM]]
gpuc.variable @w : tensor<2xf32> init ones
func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %e = gpuc.exp %w : tensor<2xf32>
  %stopped = gpuc.stop_gradient %e : tensor<2xf32>
  %y = gpuc.mul %w, %stopped : tensor<2xf32>
  %sum, %count = gpuc.mse %y, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
gpuc.recipe {
  loss = @loss,
  optimizer = sgd
}
