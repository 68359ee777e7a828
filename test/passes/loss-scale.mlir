// RUN: gpuc-opt %s --gpuc-differentiate-loss --gpuc-autodiff | FileCheck %s --check-prefix=GRADIENTS
// RUN: gpuc-opt %s --gpuc-differentiate-loss --gpuc-autodiff --gpuc-expand-recipe | FileCheck %s

// The gradients know of no scale.
// GRADIENTS-NOT:   loss_scale
// GRADIENTS-LABEL: func.func private @gradients(
// GRADIENTS-NOT:     gpuc.div
// GRADIENTS:         return
// GRADIENTS:       gpuc.recipe

// What flows back from the loss is @loss_scale / count (1 where nothing counts): gradients are those of the scaled mean.
// CHECK:       gpuc.variable @loss_scale kind counter : tensor<f32> init constant(value = 1024
// CHECK-NEXT:  gpuc.variable @growth_tracker kind counter : tensor<i32> init zeros
// They are multiplied by 1 / scale, tested, and all that is assigned chosen by that test, but for @step. The
// optimizer counts by @updates. The last two results are the scale that the step used and whether it was skipped.
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME:    tensor<f32> {gpuc.name = "loss_scale"}, tensor<i1> {gpuc.name = "skipped"})
// CHECK:         %{{.*}}, %[[COUNT:.*]] = gpuc.mse
// CHECK:         %[[FIRST:.*]] = gpuc.read @loss_scale
// CHECK:         %[[DIVISOR:.*]] = gpuc.select %{{.*}}, %[[COUNT]],
// CHECK:         %[[FACTOR:.*]] = gpuc.div %[[FIRST]], %[[DIVISOR]] : tensor<f32>
// CHECK:         gpuc.broadcast %[[FACTOR]]
// CHECK:         %[[SCALE:.*]] = gpuc.read @loss_scale
// CHECK:         %[[INVERSE:.*]] = gpuc.div %{{.*}}, %[[SCALE]] : tensor<f32>
// CHECK:         %[[INVERSES:.*]] = gpuc.broadcast %[[INVERSE]] dims [] : tensor<f32> to tensor<2xf32>
// CHECK:         %[[GRADIENT:.*]] = gpuc.mul %{{.*}}, %[[INVERSES]] : tensor<2xf32>
// CHECK:         %[[FINITE:.*]] = gpuc.is_finite %[[GRADIENT]]
// CHECK:         %[[BROKEN:.*]] = gpuc.sum
// CHECK:         %[[OK:.*]] = gpuc.compare eq %[[BROKEN]], %{{.*}} : tensor<f32>
// CHECK:         %[[UPDATES:.*]] = gpuc.read @updates
// CHECK:         %[[T:.*]] = gpuc.add %[[UPDATES]], %{{.*}} : tensor<i64>
// CHECK:         %[[KEPT_UPDATES:.*]] = gpuc.select %[[OK]], %[[T]], %[[UPDATES]]
// CHECK:         gpuc.assign @updates, %[[KEPT_UPDATES]]
// CHECK:         %[[STEP:.*]] = gpuc.read @step
// CHECK:         %[[NEXT:.*]] = gpuc.add %[[STEP]], %{{.*}} : tensor<i64>
// CHECK:         gpuc.assign @step, %[[NEXT]]
// CHECK:         %[[NEW:.*]]:2 = gpuc.sgd_update %{{.*}} gradient %[[GRADIENT]] buffer %{{.*}} step %[[T]]
// CHECK:         %[[OLD:.*]] = gpuc.read @w
// CHECK:         %[[OKS:.*]] = gpuc.broadcast %[[OK]] dims [] : tensor<i1> to tensor<2xi1>
// CHECK:         %[[KEPT:.*]] = gpuc.select %[[OKS]], %[[NEW]]#0, %[[OLD]]
// CHECK:         gpuc.assign @w, %[[KEPT]]
// CHECK:         gpuc.assign @"w/momentum_buffer", %{{.*}}
// CHECK:         gpuc.assign @loss_scale,
// CHECK:         gpuc.assign @growth_tracker,
// CHECK:         %[[SKIPPED:.*]] = gpuc.not %[[OK]]
// CHECK:         return {{.*}}, %[[SCALE]], %[[SKIPPED]]

// Evaluation scales nothing.
// CHECK-LABEL: func.func @eval_step(
// CHECK-NOT:     loss_scale
// CHECK-LABEL: func.func @init(
// CHECK:         %[[FIRST:.*]] = gpuc.constant 1024.0 : tensor<f32>
// CHECK:         gpuc.assign @loss_scale, %[[FIRST]]
module {
  gpuc.variable @w : tensor<2xf32> init ones
  func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<2xf32>
    %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = sgd(lr = 0.1, momentum = 0.9), loss_scale = dynamic(init_scale = 1024) }
}
