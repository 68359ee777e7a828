// RUN: gpuc-opt %s --gpuc-differentiate-loss --split-input-file | FileCheck %s

// A recipe with an optimizer gets @gradients: the loss, the count, then each variable that is trained. Frozen variables
// and statistics are not. What flows back from the loss comes last; a scale is no business of the gradients.
// CHECK-LABEL: func.func private @gradients(
// CHECK-SAME:    %[[X:.*]]: tensor<4x2xf32> {gpuc.name = "x"}, %[[SEED:.*]]: tensor<f32> {gpuc.role = "seed"})
// CHECK-SAME:    -> (tensor<f32> {gpuc.name = "loss_sum"}, tensor<f32>, tensor<2xf32> {gpuc.variable = @w}) {
// CHECK-NEXT:    %[[ALL:.*]]:3 = gpuc.gradient @loss(%[[X]]) seed %[[SEED]] : tensor<f32> wrt [@w]
// CHECK-NEXT:    return %[[ALL]]#0, %[[ALL]]#1, %[[ALL]]#2
gpuc.variable @w : tensor<2xf32> init ones
gpuc.variable @cold frozen : tensor<2xf32> init ones
gpuc.variable @mean kind statistic : tensor<2xf32> init ones
func.func @loss(%x: tensor<4x2xf32> {gpuc.name = "x"}) -> (tensor<f32> {gpuc.name = "loss_sum"}, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %cold = gpuc.read @cold : tensor<2xf32>
  %mean = gpuc.read @mean : tensor<2xf32>
  %0 = gpuc.mul %w, %cold : tensor<2xf32>
  %1 = gpuc.sub %0, %mean : tensor<2xf32>
  %2 = gpuc.broadcast %1 dims [1] : tensor<2xf32> to tensor<4x2xf32>
  %sum, %count = gpuc.mse %2, %x : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
gpuc.recipe {
  loss = @loss,
  optimizer = sgd,
  loss_scale = static(scale = 8.0)
}

// -----

// A slice's loss goes before the recipe's, and a part of the batch is what its gradients are over.
// CHECK-LABEL: module @slices
// CHECK-LABEL: func.func private @gradients(
// CHECK-SAME:    %{{.*}}: tensor<8x2xf32> {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>}, %{{.*}}: tensor<f32> {gpuc.role = "seed"})
// CHECK-SAME:    attributes {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>} {
// CHECK-NEXT:    gpuc.gradient @loss_of_slice(
module @slices {
  gpuc.variable @w : tensor<2xf32> init ones
  func.func private @loss(tensor<16x2xf32>) -> (tensor<f32>, tensor<f32>)
  func.func private @loss_of_slice(%x: tensor<8x2xf32> {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>}) -> (tensor<f32>, tensor<f32>)
      attributes {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>} {
    %w = gpuc.read @w : tensor<2xf32>
    %0 = gpuc.broadcast %w dims [1] : tensor<2xf32> to tensor<8x2xf32>
    %sum, %count = gpuc.mse %0, %x : (tensor<8x2xf32>, tensor<8x2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = sgd }
}

// -----

// Without an optimizer nothing is trained.
// CHECK-LABEL: @evaluated
// CHECK-NOT:   @gradients
gpuc.variable @w : tensor<2xf32> init ones
func.func @evaluated(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
gpuc.recipe {
  loss = @evaluated
}
