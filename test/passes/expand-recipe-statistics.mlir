// RUN: gpuc-opt %s --gpuc-differentiate-loss --gpuc-autodiff --gpuc-expand-recipe | FileCheck %s
// RUN: gpuc-opt %s --gpuc-differentiate-loss --gpuc-autodiff --gpuc-expand-recipe --gpuc-decompose --canonicalize --cse | FileCheck %s --check-prefix=SIMPLE
// RUN: gpuc-opt %s --gpuc-expand-recipe=training=false --canonicalize --cse | FileCheck %s --check-prefix=EVAL

// Running statistics are read and assigned by the train step alone: it normalises by the batch, the others by what the
// statistics are. Predict is called by loss and accuracy, and each call would assign.

// Outside of training the op is gone, and so are the assigns.
// CHECK-LABEL: func.func @predict(
// CHECK-NOT:     gpuc.batch_norm
// CHECK-NOT:     gpuc.assign
// CHECK:         %[[MEAN:.*]] = gpuc.read @bn.running_mean
// CHECK:         %[[VARIANCE:.*]] = gpuc.read @bn.running_var
// CHECK:         %[[SHIFTED:.*]] = gpuc.add %[[VARIANCE]], %{{.*}} : tensor<3xf32>
// CHECK:         %[[INVERSE:.*]] = gpuc.rsqrt %[[SHIFTED]] : tensor<3xf32>
// CHECK:         %[[WIDE_MEAN:.*]] = gpuc.broadcast %[[MEAN]] dims [1]
// CHECK:         %[[CENTRED:.*]] = gpuc.sub %{{.*}}, %[[WIDE_MEAN]]
// CHECK:         %[[SCALE:.*]] = gpuc.mul %[[INVERSE]], %{{.*}} : tensor<3xf32>
// CHECK:         %[[WIDE_SCALE:.*]] = gpuc.broadcast %[[SCALE]] dims [1]
// CHECK:         gpuc.mul %[[CENTRED]], %[[WIDE_SCALE]]
// CHECK-NOT:     gpuc.assign
// CHECK:         return

// CHECK-LABEL: func.func @train_step(
// CHECK:         %{{.*}}, %[[NEW_MEAN:.*]], %[[NEW_VARIANCE:.*]], %{{.*}}, %{{.*}} = gpuc.batch_norm
// CHECK:         gpuc.assign @bn.running_mean, %[[NEW_MEAN]]
// CHECK:         gpuc.assign @bn.running_var, %[[NEW_VARIANCE]]
// CHECK:         gpuc.assign @bn.num_batches_tracked,
// CHECK-NOT:     gpuc.assign @bn.
// CHECK:         gpuc.assign @bn.weight,
// CHECK:         return

// CHECK-LABEL: func.func @eval_step(
// CHECK-NOT:     gpuc.batch_norm
// CHECK-NOT:     gpuc.assign
// CHECK:         return

// Of the backward pass of a batch norm no cotangent of the statistics is left, and no eval work of training.
// SIMPLE-LABEL: func.func @predict(
// SIMPLE-NOT:     gpuc.sum
// SIMPLE-NOT:     @bn.num_batches_tracked
// SIMPLE:         return
// SIMPLE-LABEL: func.func @train_step(
// SIMPLE:         gpuc.read @bn.num_batches_tracked
// SIMPLE:         gpuc.assign @bn.num_batches_tracked
// SIMPLE-LABEL: func.func @eval_step(
// SIMPLE-NOT:     gpuc.assign
// SIMPLE-NOT:     @bn.num_batches_tracked
// SIMPLE:         return

// A model that is not trained: the same, and its own @init gives the statistics their first values.
// EVAL-LABEL:   func.func @predict(
// EVAL-NOT:       gpuc.assign
// EVAL:           return
// EVAL-LABEL:   func.func @eval_step(
// EVAL-NOT:       gpuc.assign
// EVAL:           return
// EVAL-LABEL:   func.func @init(
// EVAL:           gpuc.assign @bn.running_var

gpuc.variable @bn.weight : tensor<3xf32> init ones
gpuc.variable @bn.running_mean kind statistic : tensor<3xf32> init zeros
gpuc.variable @bn.running_var kind statistic : tensor<3xf32> init ones
gpuc.variable @bn.num_batches_tracked kind statistic : tensor<i64> init zeros

func.func @predict(%x: tensor<8x3xf32> {gpuc.name = "x"}) -> (tensor<8x3xf32> {gpuc.name = "y"}) {
  %weight = gpuc.read @bn.weight : tensor<3xf32>
  %mean = gpuc.read @bn.running_mean : tensor<3xf32>
  %variance = gpuc.read @bn.running_var : tensor<3xf32>
  %batches = gpuc.read @bn.num_batches_tracked : tensor<i64>
  %y, %new_mean, %new_variance, %m, %r = gpuc.batch_norm %x running %mean, %variance weight %weight : (tensor<8x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<8x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  %one = gpuc.constant 1 : tensor<i64>
  %next = gpuc.add %batches, %one : tensor<i64>
  gpuc.assign @bn.running_mean, %new_mean : tensor<3xf32>
  gpuc.assign @bn.running_var, %new_variance : tensor<3xf32>
  gpuc.assign @bn.num_batches_tracked, %next : tensor<i64>
  return %y : tensor<8x3xf32>
}

func.func @loss(%x: tensor<8x3xf32> {gpuc.name = "x"}, %labels: tensor<8xi32> {gpuc.name = "labels"}) -> (tensor<f32>, tensor<f32>) {
  %y = call @predict(%x) : (tensor<8x3xf32>) -> tensor<8x3xf32>
  %sum, %count = gpuc.cross_entropy %y, %labels : (tensor<8x3xf32>, tensor<8xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}

func.func @accuracy(%x: tensor<8x3xf32> {gpuc.name = "x"}, %labels: tensor<8xi32> {gpuc.name = "labels"}) -> (tensor<f32>, tensor<f32>) {
  %y = call @predict(%x) : (tensor<8x3xf32>) -> tensor<8x3xf32>
  %sum, %count = gpuc.accuracy %y, %labels : (tensor<8x3xf32>, tensor<8xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}

gpuc.recipe {
  loss = @loss,
  accuracy = @accuracy,
  optimizer = sgd(lr = 0.1)
}
