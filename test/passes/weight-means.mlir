// A running mean of the weights: `<variable>/ema`, which begins as the weight does.
// RUN: gpuc-opt %s --gpuc-differentiate-loss --gpuc-autodiff --gpuc-expand-recipe --canonicalize --cse | FileCheck %s
// RUN: gpuc-opt %s --gpuc-override-recipe="entries=ema=ema:evaluate=false" --gpuc-differentiate-loss --gpuc-autodiff --gpuc-expand-recipe --canonicalize --cse | FileCheck %s --check-prefix=WEIGHTS

// CHECK: gpuc.variable @"w/ema" kind optimizer : tensor<2xf32> init copy(variable = "w")
// e ← 0.75 · e + 0.25 · w with the new w; in step 1 e ← w.
// CHECK-LABEL: func.func @train_step
// CHECK-DAG:     %[[KEEP:.*]] = gpuc.constant 0.75 : tensor<2xf32>
// CHECK-DAG:     %[[TAKE:.*]] = gpuc.constant 0.25 : tensor<2xf32>
// CHECK:         gpuc.read @w
// CHECK:         %[[NEW:.*]] = gpuc.sgd_update
// CHECK:         gpuc.assign @w, %[[NEW]]
// CHECK:         %[[OLD:.*]] = gpuc.read @"w/ema"
// CHECK:         %[[KEPT:.*]] = gpuc.mul %[[OLD]], %[[KEEP]]
// CHECK:         %[[TAKEN:.*]] = gpuc.mul %[[NEW]], %[[TAKE]]
// CHECK:         %[[FIRST:.*]] = gpuc.compare eq
// CHECK:         %[[MEAN:.*]] = gpuc.add %[[KEPT]], %[[TAKEN]]
// CHECK:         %[[SPREAD:.*]] = gpuc.broadcast %[[FIRST]]
// CHECK:         %[[NEXT:.*]] = gpuc.select %[[SPREAD]], %[[NEW]], %[[MEAN]]
// CHECK:         gpuc.assign @"w/ema", %[[NEXT]]
// What is evaluated is the mean.
// CHECK-LABEL: func.func @eval_step
// CHECK:         gpuc.read @"w/ema"
// CHECK-NOT:     gpuc.read @w :
// WEIGHTS-LABEL: func.func @eval_step
// WEIGHTS:         gpuc.read @w :
// Both begin with one draw.
// CHECK-LABEL: func.func @init
// CHECK:         %[[DRAWN:.*]] = gpuc.random_normal
// CHECK:         gpuc.assign @w, %[[DRAWN]]
// CHECK:         gpuc.assign @"w/ema", %[[DRAWN]]
gpuc.variable @w : tensor<2xf32> init normal(std = 0.1)
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
gpuc.recipe { loss = @loss, optimizer = sgd, ema = ema(decay = 0.75) }
