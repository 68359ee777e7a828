// The pipelines as gpuc-opt knows them: a model becomes functions whose every op has a kernel or a library call.
//
// RUN: gpuc-opt %s --gpuc-train-pipeline | FileCheck %s --check-prefixes=CHECK,TRAIN
// RUN: gpuc-opt %s --gpuc-eval-pipeline | FileCheck %s --check-prefixes=CHECK,EVAL
// RUN: gpuc-opt %s --gpuc-eval-pipeline="batch=3 seed=7 fuse=false" | FileCheck %s --check-prefix=OPTIONS
// RUN: gpuc-opt %s --gpuc-train-pipeline="entries=clip_norm=0.5;schedule=cosine:T_max=9 optimizer=sgd" | FileCheck %s --check-prefix=RECIPE
// RUN: gpuc-opt %s --gpuc-eval-pipeline --gpuc-plan-pipeline | FileCheck %s --check-prefix=PLAN

// Entries of the recipe that are said anew: another optimizer, without slots, a bound for the norm, a schedule.
// RECIPE-NOT: exp_avg
// RECIPE:     func.func @train_step
// RECIPE:       gpuc.min
// RECIPE:       gpuc.cos
// RECIPE:     func.func @eval_step

// Evaluation has neither slots nor gradients; the recipe's optimizer is left aside.
// CHECK:      gpuc.variable @w : tensor<5xf32>
// TRAIN:      @"w/exp_avg"
// EVAL-NOT:   @"w/exp_avg"
// EVAL-NOT:   @train_step
// CHECK:      func.func @predict(%{{[^:]*}}: tensor<4x5xf32>
// TRAIN:      func.func @train_step
// CHECK:      func.func @eval_step
// CHECK:        gpuc.fused
// CHECK-NOT:    gpuc.mse
// CHECK:      func.func @init
// CHECK-NOT:  gpuc.recipe

// OPTIONS:    module @scaled attributes {gpuc.batch = 3 : i64, gpuc.fused_for = "host", gpuc.seed = 7 : i64, gpuc.training = {{-?[0-9]+}} : i64}
// OPTIONS:    func.func @predict(%{{[^:]*}}: tensor<3x5xf32>
// OPTIONS:      gpuc.fused "broadcast"
// OPTIONS:      gpuc.fused "mul"

// PLAN:       plan.arena
// PLAN:       plan.program @predict
// PLAN:       plan.program @eval_step
// PLAN:       plan.program @init
// PLAN-NOT:   plan.program
module @scaled {
  gpuc.variable @w : tensor<5xf32> init ones
  func.func @predict(%x: tensor<?x5xf32> {gpuc.name = "x"}) -> (tensor<?x5xf32> {gpuc.name = "y"}) {
    %w = gpuc.read @w : tensor<5xf32>
    %b = gpuc.broadcast %w dims [1] : tensor<5xf32> to tensor<?x5xf32>
    %y = gpuc.mul %x, %b : tensor<?x5xf32>
    return %y : tensor<?x5xf32>
  }
  func.func @loss(%x: tensor<?x5xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %y = call @predict(%x) : (tensor<?x5xf32>) -> tensor<?x5xf32>
    %sum, %count = gpuc.mse %y, %x : (tensor<?x5xf32>, tensor<?x5xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss,
    batch = 4,
    optimizer = adam
  }
}
