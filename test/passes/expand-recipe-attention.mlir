// RUN: gpuc-opt %s --gpuc-differentiate-loss --gpuc-autodiff --gpuc-expand-recipe | FileCheck %s

// Attention outside of training has no dropout; in the train step forward and backward pass drop the same.
// CHECK-LABEL: func.func @predict(
// CHECK:         gpuc.attention %{{.*}}, %{{.*}}, %{{.*}} causal :
// CHECK-LABEL: func.func @train_step(
// CHECK:         %[[RESULT:.*]], %[[LOG:.*]] = gpuc.attention %{{.*}}, %{{.*}}, %{{.*}} causal dropout 1.000000e-01 id 7 :
// CHECK:         gpuc.attention_gradient %{{.*}} of %[[RESULT]], %[[LOG]] query %{{.*}} key %{{.*}} value %{{.*}} causal dropout 1.000000e-01 id 7 :
// CHECK-LABEL: func.func @eval_step(
// CHECK-NOT:     dropout
// CHECK:         gpuc.attention %{{.*}}, %{{.*}}, %{{.*}} causal :
// CHECK-NOT:     gpuc.attention_gradient
// CHECK:         return

gpuc.variable @w : tensor<4xf32> init ones

func.func @predict(%x: tensor<8x2x6x4xf32> {gpuc.name = "x"}) -> (tensor<8x2x6x4xf32> {gpuc.name = "y"}) {
  %w = gpuc.read @w : tensor<4xf32>
  %wide = gpuc.broadcast %w dims [3] : tensor<4xf32> to tensor<8x2x6x4xf32>
  %q = gpuc.mul %x, %wide : tensor<8x2x6x4xf32>
  %y, %log = gpuc.attention %q, %x, %x causal dropout 0.1 id 7 : (tensor<8x2x6x4xf32>, tensor<8x2x6x4xf32>, tensor<8x2x6x4xf32>) -> (tensor<8x2x6x4xf32>, tensor<8x2x6xf32>)
  return %y : tensor<8x2x6x4xf32>
}

func.func @loss(%x: tensor<8x2x6x4xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %y = call @predict(%x) : (tensor<8x2x6x4xf32>) -> tensor<8x2x6x4xf32>
  %sum, %count = gpuc.mse %y, %x : (tensor<8x2x6x4xf32>, tensor<8x2x6x4xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}

gpuc.recipe {
  loss = @loss,
  optimizer = sgd(lr = 0.1)
}
