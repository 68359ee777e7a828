// RUN: gpuc-opt %s --gpuc-differentiate-loss --gpuc-autodiff --gpuc-expand-recipe --canonicalize --cse --split-input-file | FileCheck %s

// 4 updates of warm-up from 0.25 to 0.5 of the rate 2, then half a wave over 6. What is computed hangs on @step alone,
// the number of updates made, and is the rate of the update and the step's result.
// CHECK-LABEL: module @warm_up
// CHECK:       func.func @train_step
// CHECK-DAG:     %[[RATE:.*]] = gpuc.constant 2.0 : tensor<f64>
// CHECK-DAG:     %[[FOUR:.*]] = gpuc.constant 4.0 : tensor<f64>
// CHECK-DAG:     %[[QUARTER:.*]] = gpuc.constant 0.25 : tensor<f64>
// CHECK:         %[[STEP:.*]] = gpuc.read @step
// CHECK:         %[[T:.*]] = gpuc.cast %[[STEP]] : tensor<i64> to tensor<f64>
// CHECK:         %[[MIN:.*]] = gpuc.min %[[T]], %[[FOUR]]
// CHECK:         %[[RISE:.*]] = gpuc.mul %[[MIN]], %[[QUARTER]]
// CHECK:         %[[PART:.*]] = gpuc.div %[[RISE]], %[[FOUR]]
// CHECK:         %[[FACTOR:.*]] = gpuc.add %[[PART]], %[[QUARTER]]
// CHECK:         %[[WARM:.*]] = gpuc.mul %[[FACTOR]], %[[RATE]]
// CHECK:         %[[LATER:.*]] = gpuc.compare ge %[[T]], %[[FOUR]]
// CHECK:         %[[SINCE:.*]] = gpuc.sub %[[T]], %[[FOUR]]
// CHECK:         %[[CLAMPED:.*]] = gpuc.max %[[SINCE]], %{{.*}} : tensor<f64>
// CHECK:         gpuc.rem %[[CLAMPED]], %{{.*}} : tensor<f64>
// CHECK:         gpuc.cos
// CHECK:         %[[LR:.*]] = gpuc.select %[[LATER]], %{{.*}}, %[[WARM]]
// CHECK:         gpuc.sgd_update {{.*}} lr %[[LR]]
// CHECK:         return %{{.*}}, %{{.*}}, %[[LR]], %{{.*}}
module @warm_up {
  gpuc.variable @w : tensor<2xf32> init ones
  func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<2xf32>
    %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss,
    optimizer = sgd(lr = 2.0),
    schedule = (linear(start_factor = 0.25, end_factor = 0.5, total_iters = 4, steps = 4), cosine(T_max = 6))
  }
}

// -----

// The rates between milestones are known: 4, half of it from update 10 on, a quarter from 20 on.
// CHECK-LABEL: module @milestones
// CHECK:       func.func @train_step
// CHECK-DAG:     %[[FIRST:.*]] = gpuc.constant 4.0 : tensor<f64>
// CHECK-DAG:     %[[SECOND:.*]] = gpuc.constant 2.0 : tensor<f64>
// CHECK-DAG:     %[[THIRD:.*]] = gpuc.constant 1.0 : tensor<f64>
// CHECK-DAG:     %[[TEN:.*]] = gpuc.constant 10.0 : tensor<f64>
// CHECK-DAG:     %[[TWENTY:.*]] = gpuc.constant 20.0 : tensor<f64>
// CHECK:         %[[AFTER_10:.*]] = gpuc.compare ge %[[T:.*]], %[[TEN]]
// CHECK:         %[[RATE:.*]] = gpuc.select %[[AFTER_10]], %[[SECOND]], %[[FIRST]]
// CHECK:         %[[AFTER_20:.*]] = gpuc.compare ge %[[T]], %[[TWENTY]]
// CHECK:         gpuc.select %[[AFTER_20]], %[[THIRD]], %[[RATE]]
module @milestones {
  gpuc.variable @w : tensor<2xf32> init ones
  func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<2xf32>
    %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss,
    optimizer = sgd(lr = 4.0),
    schedule = multi_step(milestones = (10, 20), gamma = 0.5)
  }
}

// -----

// Three times as long from cycle to cycle: 2, 6, 18. The cycle n is found by its beginning, 2 · (3^n - 1) / 2.
// CHECK-LABEL: module @restarts
// CHECK:       func.func @train_step
// CHECK:         gpuc.log
// CHECK:         %[[NEAREST:.*]] = gpuc.round
// CHECK:         gpuc.pow %{{.*}}, %[[NEAREST]]
// CHECK:         %[[TOO_LATE:.*]] = gpuc.compare gt
// CHECK:         %[[BEFORE:.*]] = gpuc.sub %[[NEAREST]], %{{.*}}
// CHECK:         %[[CYCLE:.*]] = gpuc.select %[[TOO_LATE]], %[[BEFORE]], %[[NEAREST]]
// CHECK:         gpuc.pow %{{.*}}, %[[CYCLE]]
module @restarts {
  gpuc.variable @w : tensor<2xf32> init ones
  func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<2xf32>
    %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss,
    optimizer = sgd,
    schedule = cosine_restarts(T_0 = 2, T_mult = 3)
  }
}

// -----

// Whoever runs the plan writes the rates: @lr for what no group names, @"lr/1" for the first group. At first they hold
// the recipe's.
// CHECK-LABEL: module @given
// CHECK:       gpuc.variable @lr kind counter : tensor<f64> init constant(value = 2.0)
// CHECK:       gpuc.variable @"lr/1" kind counter : tensor<f64> init constant(value = 0.5)
// CHECK:       func.func @train_step
// CHECK-DAG:     %[[LR:.*]] = gpuc.read @lr : tensor<f64>
// CHECK-DAG:     %[[OF_GROUP:.*]] = gpuc.read @"lr/1" : tensor<f64>
// CHECK-DAG:     %[[W:.*]] = gpuc.sgd_update {{.*}} lr %[[LR]]
// CHECK-DAG:     gpuc.assign @w, %[[W]]
// CHECK-DAG:     %[[V:.*]] = gpuc.sgd_update {{.*}} lr %[[OF_GROUP]]
// CHECK-DAG:     gpuc.assign @v, %[[V]]
// CHECK:         return %{{.*}}, %{{.*}}, %[[LR]], %{{.*}}
module @given {
  gpuc.variable @w : tensor<2xf32> init ones
  gpuc.variable @v : tensor<2xf32> init ones
  func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<2xf32>
    %v = gpuc.read @v : tensor<2xf32>
    %s = gpuc.mul %w, %v : tensor<2xf32>
    %sum, %count = gpuc.mse %s, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss,
    optimizer = sgd(lr = 2.0),
    groups = (group(match = "v", lr = 0.5)),
    schedule = (given)
  }
}

// -----

// Of the optimizer's numbers those are given, too, that the schedule names and that are not 0: @v has no decay, and no
// momentum of its own.
// CHECK-LABEL: module @given_numbers
// CHECK-DAG:   gpuc.variable @"optimizer/momentum" kind counter : tensor<f64> init constant(value = 0.9)
// CHECK-DAG:   gpuc.variable @"optimizer/weight_decay" kind counter : tensor<f64> init constant(value = 0.1)
// CHECK-DAG:   gpuc.variable @"optimizer/momentum/1" kind counter : tensor<f64> init constant(value = 0.8)
// CHECK-NOT:   gpuc.variable @"optimizer/weight_decay/1"
// CHECK:       func.func @train_step
// CHECK-DAG:     %[[MOMENTUM:.*]] = gpuc.read @"optimizer/momentum" : tensor<f64>
// CHECK-DAG:     %[[DECAY:.*]] = gpuc.read @"optimizer/weight_decay" : tensor<f64>
// CHECK-DAG:     %[[OF_GROUP:.*]] = gpuc.read @"optimizer/momentum/1" : tensor<f64>
// CHECK-DAG:     %[[W:.*]]:2 = gpuc.sgd_update {{.*}} given %[[MOMENTUM]], %[[DECAY]] ["momentum", "weight_decay"]
// CHECK-DAG:     gpuc.assign @w, %[[W]]#0
// CHECK-DAG:     %[[V:.*]]:2 = gpuc.sgd_update {{.*}} given %[[OF_GROUP]] ["momentum"]
// CHECK-DAG:     gpuc.assign @v, %[[V]]#0
module @given_numbers {
  gpuc.variable @w : tensor<2xf32> init ones
  gpuc.variable @v : tensor<2xf32> init ones
  func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<2xf32>
    %v = gpuc.read @v : tensor<2xf32>
    %s = gpuc.mul %w, %v : tensor<2xf32>
    %sum, %count = gpuc.mse %s, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss,
    optimizer = sgd(lr = 2.0, momentum = 0.9, weight_decay = 0.1),
    groups = (group(match = "v", momentum = 0.8, weight_decay = 0.0)),
    schedule = (given(momentum = true, weight_decay = true))
  }
}
