// RUN: gpuc-opt %s --gpuc-find-entries --gpuc-evaluate-gradients --split-input-file | FileCheck %s

// What is computed outside of training differentiates functions without dropout; what trains, those that the model has.
// @predict, which @loss calls, becomes a copy, and so does @loss for evaluation.
// CHECK-LABEL: module @shared
// CHECK:       func.func private @energy(
// CHECK-NEXT:    {{.*}}gpuc.dropout
// CHECK:       func.func private @[[ENERGY_EVALUATED:energy[^(]*]](
// CHECK-NOT:     gpuc.dropout
// CHECK:       func.func private @[[ENERGY_OF_PREDICT:energy[^(]*]](
// CHECK-NOT:     gpuc.dropout
// CHECK:       func.func @predict(
// CHECK-NEXT:    {{.*}}gpuc.gradient @[[ENERGY_OF_PREDICT]](
// CHECK:       func.func private @[[PREDICT_TRAINED:predict[^(]*]](
// CHECK-NEXT:    {{.*}}gpuc.gradient @energy(
// CHECK:       func.func private @[[PREDICT_EVALUATED:predict[^(]*]](
// CHECK-NEXT:    {{.*}}gpuc.gradient @[[ENERGY_EVALUATED]](
// CHECK:       func.func @loss(
// CHECK-SAME:    attributes {gpuc.evaluated_as = @[[LOSS_EVALUATED:loss.*]]} {
// CHECK-NEXT:    {{.*}}call @[[PREDICT_TRAINED]](
// CHECK:       func.func private @[[LOSS_EVALUATED]](
// CHECK-NEXT:    {{.*}}call @[[PREDICT_EVALUATED]](
module @shared {
  gpuc.variable @w : tensor<4xf64> init ones
  func.func private @energy(%x: tensor<4xf64>) -> tensor<f64> {
    %0 = gpuc.dropout %x p 0.5 id 1 : tensor<4xf64>
    %w = gpuc.read @w : tensor<4xf64>
    %1 = gpuc.mul %0, %w : tensor<4xf64>
    %2 = gpuc.sum %1 dims [0] : (tensor<4xf64>) -> tensor<f64>
    return %2 : tensor<f64>
  }
  func.func @predict(%x: tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>) {
    %e, %d = gpuc.gradient @energy(%x) wrt arguments [0] : (tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
    return %e, %d : tensor<f64>, tensor<4xf64>
  }
  func.func @loss(%x: tensor<4xf64>) -> (tensor<f64>, tensor<f64>) {
    %e, %d = call @predict(%x) : (tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
    return %e, %e : tensor<f64>, tensor<f64>
  }
  gpuc.recipe { loss = @loss, batch = 4, optimizer = sgd(lr = 0.1) }
}

// -----

// Nothing is copied where no gradient is taken, …
// CHECK-LABEL: module @no_gradient
// CHECK-COUNT-2: func.func
// CHECK-NOT:     func.func
module @no_gradient {
  func.func private @body(%x: tensor<4xf64>) -> tensor<4xf64> {
    %0 = gpuc.dropout %x p 0.5 id 1 : tensor<4xf64>
    return %0 : tensor<4xf64>
  }
  func.func @predict(%x: tensor<4xf64>) -> tensor<4xf64> {
    %0 = call @body(%x) : (tensor<4xf64>) -> tensor<4xf64>
    return %0 : tensor<4xf64>
  }
}

// -----

// … or where no op computes something else in training.
// CHECK-LABEL: module @no_form
// CHECK-COUNT-2: func.func
// CHECK-NOT:     func.func
module @no_form {
  func.func private @energy(%x: tensor<4xf64>) -> tensor<f64> {
    %0 = gpuc.sum %x dims [0] : (tensor<4xf64>) -> tensor<f64>
    return %0 : tensor<f64>
  }
  func.func @slope(%x: tensor<4xf64>) -> tensor<4xf64> {
    %y, %d = gpuc.gradient @energy(%x) wrt arguments [0] : (tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
    return %d : tensor<4xf64>
  }
}
