// RUN: gpuc-opt %s --gpuc-differentiate-loss --gpuc-autodiff --gpuc-expand-recipe --canonicalize --cse | FileCheck %s

// Scores are those of the loss alone; there is no window for the norm. Windows are counters: initialised and kept, but no
// state that an optimizer needs to go on.
// CHECK:       gpuc.variable @"step/recorded" kind counter : tensor<i64> init zeros
// CHECK-NEXT:  gpuc.variable @"step/losses" kind counter : tensor<16xf64> init zeros
// CHECK-NEXT:  gpuc.variable @updates kind counter : tensor<i64> init zeros
// CHECK-NOT:   step/grad_norms
// CHECK-LABEL: func.func @train_step
// CHECK-SAME:    tensor<i1> {gpuc.name = "skipped"}
// CHECK-DAG:     %[[SIXTEEN:.*]] = gpuc.constant 16 : tensor<i64>
// CHECK-DAG:     %[[BOUND:.*]] = gpuc.constant 3.0 : tensor<f64>

// The mean loss in f64 takes the place of the oldest of 16.
// CHECK:         %[[SUM:.*]], %[[COUNT:.*]] = gpuc.mse
// CHECK:         %[[MEAN:.*]] = gpuc.div %[[SUM]], %{{.*}} : tensor<f32>
// CHECK:         %[[RECORDED:.*]] = gpuc.read @"step/recorded"
// CHECK:         %[[LOSS:.*]] = gpuc.cast %[[MEAN]] : tensor<f32> to tensor<f64>
// CHECK:         %[[FINITE_LOSS:.*]] = gpuc.is_finite %[[LOSS]]
// CHECK:         %[[FINITE_NORM:.*]] = gpuc.is_finite
// CHECK:         %[[FINITE:.*]] = gpuc.and %[[FINITE_LOSS]], %[[FINITE_NORM]]
// CHECK:         %[[FULL:.*]] = gpuc.compare ge %[[RECORDED]], %[[SIXTEEN]]
// CHECK:         %[[PLACE:.*]] = gpuc.rem %[[RECORDED]], %[[SIXTEEN]]
// CHECK:         %[[WINDOW:.*]] = gpuc.read @"step/losses"
// CHECK:         %[[INDEX:.*]] = gpuc.iota dim 0 : tensor<16xi64>
// CHECK:         %[[PLACES:.*]] = gpuc.broadcast %[[PLACE]]
// CHECK:         %[[IS_PLACE:.*]] = gpuc.compare eq %[[INDEX]], %[[PLACES]]
// CHECK:         %[[VALUES:.*]] = gpuc.select %[[IS_PLACE]], %{{.*}}, %[[WINDOW]]
// CHECK:         %[[KEPT:.*]] = gpuc.select %{{.*}}, %[[VALUES]], %[[WINDOW]]
// CHECK:         gpuc.assign @"step/losses", %[[KEPT]]

// More than 3 deviations above the mean, once the window is full.
// CHECK:         gpuc.sum %[[VALUES]] dims [0]
// CHECK:         gpuc.sqrt
// CHECK:         %[[SCORE:.*]] = gpuc.div
// CHECK:         %[[HIGH:.*]] = gpuc.compare gt %[[SCORE]], %[[BOUND]]
// CHECK:         %[[OUTLIER:.*]] = gpuc.and %[[FULL]], %[[HIGH]]
// CHECK:         %[[USUAL:.*]] = gpuc.not %[[OUTLIER]]
// CHECK:         %[[KEEP:.*]] = gpuc.and %[[FINITE]], %[[USUAL]]

// The optimizer counts the updates that are made; @step counts every step.
// CHECK:         %[[UPDATES:.*]] = gpuc.read @updates
// CHECK:         %[[T:.*]] = gpuc.add %[[UPDATES]], %{{.*}} : tensor<i64>
// CHECK:         %[[MADE:.*]] = gpuc.select %[[KEEP]], %[[T]], %[[UPDATES]]
// CHECK:         gpuc.assign @updates, %[[MADE]]
// CHECK:         %[[STEP:.*]] = gpuc.read @step
// CHECK:         %[[NEXT:.*]] = gpuc.add %[[STEP]], %{{.*}} : tensor<i64>
// CHECK:         gpuc.assign @step, %[[NEXT]]
// CHECK:         %[[NEW:.*]]:2 = gpuc.sgd_update %[[W:.*]] gradient %{{.*}} buffer %[[BUFFER:.*]] step %[[T]]

// Neither what the model assigns, nor the weight, nor its slot changes without the update.
// CHECK:         %[[SEEN:.*]] = gpuc.select %[[KEEP]], %{{.*}}, %{{.*}} : tensor<i1>, tensor<f32>
// CHECK:         gpuc.assign @seen, %[[SEEN]]
// CHECK:         %[[NEW_W:.*]] = gpuc.select %{{.*}}, %[[NEW]]#0, %[[W]]
// CHECK:         gpuc.assign @w, %[[NEW_W]]
// CHECK:         %[[NEW_BUFFER:.*]] = gpuc.select %{{.*}}, %[[NEW]]#1, %[[BUFFER]]
// CHECK:         gpuc.assign @"w/momentum_buffer", %[[NEW_BUFFER]]
// CHECK:         %[[SKIPPED:.*]] = gpuc.not %[[KEEP]]
// CHECK:         return {{.*}}, %[[SKIPPED]] :
gpuc.variable @w : tensor<2xf32> init ones
gpuc.variable @seen kind statistic : tensor<f32> init zeros
func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  gpuc.assign @seen, %sum : tensor<f32>
  return %sum, %count : tensor<f32>, tensor<f32>
}
gpuc.recipe {
  loss = @loss,
  skip = outliers(loss = 3.0, window = 16),
  optimizer = sgd(momentum = 0.9)
}
