// RUN: gpuc-opt %s --gpuc-differentiate-loss --gpuc-autodiff --gpuc-expand-recipe --split-input-file | FileCheck %s

// The model y = dropout(w · x) with sgd and momentum. Of the recipe, only @init and the steps are left, the counters and
// the optimizer's slot are variables now, behind the model's own.
// CHECK-LABEL: module @sgd
// CHECK-SAME:    gpuc.seed = 5 : i64
// CHECK:       gpuc.variable @w : tensor<2xf32> init uniform(bound = 0.5)
// CHECK-NEXT:  gpuc.variable @b : tensor<2xf32> init constant(value = 3
// CHECK-NEXT:  gpuc.variable @seed kind counter : tensor<i64> init zeros
// CHECK-NEXT:  gpuc.variable @step kind counter : tensor<i64> init zeros
// CHECK-NEXT:  gpuc.variable @"w/momentum_buffer" kind optimizer : tensor<2xf32> init zeros
// CHECK-NEXT:  gpuc.variable @"b/momentum_buffer" kind optimizer : tensor<2xf32> init zeros

// @predict: dropout is the identity.
// CHECK-LABEL: func.func @predict(
// CHECK-NOT:     gpuc.dropout
// CHECK:         return

// @train_step: the sums are multiplied by 1 / count (1 where it is 0) and the norm of the gradients is that of the sums,
// divided; step t = @step + 1 is both the update's and the counter's new value.
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME:    %{{.*}}: tensor<4x2xf32> {gpuc.name = "x"}
// CHECK-SAME:    -> (tensor<f32> {gpuc.name = "loss_sum"}, tensor<f32> {gpuc.name = "count"}, tensor<f64> {gpuc.name = "lr"}, tensor<f32> {gpuc.name = "grad_norm"})
// CHECK:         gpuc.dropout %{{.*}} p 2.5{{0*}}e-01 id 7
// CHECK:         %[[SUM:.*]], %[[COUNT:.*]] = gpuc.mse
// CHECK:         %[[ANY:.*]] = gpuc.compare gt %[[COUNT]], %{{.*}} : tensor<f32>
// CHECK:         %[[DIVISOR:.*]] = gpuc.select %[[ANY]], %[[COUNT]], %{{.*}}
// CHECK:         %[[INVERSE:.*]] = gpuc.div %{{.*}}, %[[DIVISOR]] : tensor<f32>
// CHECK:         %[[WIDE:.*]] = gpuc.broadcast %[[INVERSE]] dims [] : tensor<f32> to tensor<2xf32>
// CHECK:         %[[DW:.*]] = gpuc.mul %[[DW_SUM:.*]], %[[WIDE]] : tensor<2xf32>
// CHECK:         gpuc.mul %[[DW_SUM]], %[[DW_SUM]]
// CHECK:         %[[ROOT:.*]] = gpuc.sqrt %{{.*}} : tensor<f32>
// CHECK:         %[[NORM:.*]] = gpuc.div %[[ROOT]], %[[DIVISOR]] : tensor<f32>
// CHECK:         %[[STEP:.*]] = gpuc.read @step
// CHECK:         %[[T:.*]] = gpuc.add %[[STEP]], %{{.*}} : tensor<i64>
// CHECK:         gpuc.assign @step, %[[T]]
// CHECK:         %[[LR:.*]] = gpuc.constant 0.1 : tensor<f64>
// CHECK:         %[[W:.*]] = gpuc.read @w
// CHECK:         %[[BUFFER:.*]] = gpuc.read @"w/momentum_buffer"
// CHECK:         %[[NEW:.*]]:2 = gpuc.sgd_update %[[W]] gradient %[[DW]] buffer %[[BUFFER]] step %[[T]] lr %[[LR]]
// CHECK-SAME:      dampening = 0.0{{.*}}momentum = 9.0{{0*}}e-01{{.*}}nesterov = true{{.*}}weight_decay = 0.0
// CHECK:         gpuc.assign @w, %[[NEW]]#0
// CHECK:         gpuc.assign @"w/momentum_buffer", %[[NEW]]#1
// CHECK:         gpuc.assign @b,
// CHECK:         return %[[SUM]], %[[COUNT]], %[[LR]], %[[NORM]]

// @eval_step: loss and accuracy over the same arguments, no dropout, no gradients.
// CHECK-LABEL: func.func @eval_step(
// CHECK-SAME:    %{{[^:,]*}}: tensor<4x2xf32> {gpuc.name = "x"}) ->
// CHECK-SAME:    (tensor<f32> {gpuc.name = "loss_sum"}, tensor<f32> {gpuc.name = "count"}, tensor<f32> {gpuc.name = "correct"}, tensor<f32> {gpuc.name = "correct_count"})
// CHECK-NOT:     gpuc.dropout
// CHECK-NOT:     gpuc.assign
// CHECK:         return

// @init: w is drawn with an id of its own, 2^27 and its place among the variables; @seed is not touched.
// CHECK-LABEL: func.func @init() {
// CHECK-DAG:     %[[SEED:.*]] = gpuc.read @seed
// CHECK-DAG:     %[[ZERO:.*]] = gpuc.constant 0 : tensor<i64>
// CHECK:         %[[W0:.*]] = gpuc.random_uniform seed %[[SEED]] step %[[ZERO]] id 134217728 low -5.0{{0*}}e-01 high 5.0{{0*}}e-01
// CHECK:         gpuc.assign @w, %[[W0]]
// CHECK:         %[[B0:.*]] = gpuc.constant 3.0 : tensor<2xf32>
// CHECK:         gpuc.assign @b, %[[B0]]
// CHECK-NOT:     gpuc.assign @seed
// CHECK:         gpuc.assign @step
// CHECK:         gpuc.assign @"w/momentum_buffer"
// CHECK:         gpuc.assign @"b/momentum_buffer"
// CHECK-NOT:   @loss
// CHECK-NOT:   @gradients
// CHECK-NOT:   gpuc.recipe
module @sgd {
  gpuc.variable @w : tensor<2xf32> init uniform(bound = 0.5)
  gpuc.variable @b : tensor<2xf32> init constant(value = 3.0)
  func.func @predict(%x: tensor<4x2xf32> {gpuc.name = "x"}) -> tensor<4x2xf32> {
    %w = gpuc.read @w : tensor<2xf32>
    %0 = gpuc.broadcast %w dims [1] : tensor<2xf32> to tensor<4x2xf32>
    %1 = gpuc.mul %x, %0 : tensor<4x2xf32>
    %2 = gpuc.dropout %1 p 0.25 id 7 : tensor<4x2xf32>
    %b = gpuc.read @b : tensor<2xf32>
    %3 = gpuc.broadcast %b dims [1] : tensor<2xf32> to tensor<4x2xf32>
    %4 = gpuc.add %2, %3 : tensor<4x2xf32>
    return %4 : tensor<4x2xf32>
  }
  func.func @loss(%x: tensor<4x2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %0 = call @predict(%x) : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %sum, %count = gpuc.mse %0, %x : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  func.func @accuracy(%x: tensor<4x2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %0 = call @predict(%x) : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %1 = gpuc.sum %0 dims [0, 1] : (tensor<4x2xf32>) -> tensor<f32>
    return %1, %1 : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss,
    accuracy = @accuracy,
    optimizer = sgd(lr = 0.1, momentum = 0.9, nesterov = true),
    seed = 5
  }
}

// -----

// adamw: decoupled decay, PyTorch's defaults, two slots; in f64 the norm is in f64.
// CHECK-LABEL: module @adamw
// CHECK:       gpuc.variable @"w/exp_avg" kind optimizer : tensor<2x3xf64>
// CHECK-NEXT:  gpuc.variable @"w/exp_avg_sq" kind optimizer : tensor<2x3xf64>
// CHECK:       func.func @train_step
// CHECK-SAME:    tensor<f64> {gpuc.name = "grad_norm"}
// CHECK:         gpuc.constant 0.001 : tensor<f64>
// CHECK:         gpuc.adam_update {{.*}} decoupled
// CHECK-SAME:      beta1 = 9.0{{0*}}e-01{{.*}}beta2 = {{0.998999|9.990000e-01}}{{.*}}eps = 1.0{{0*}}e-08{{.*}}weight_decay = 1.0{{0*}}e-02
module @adamw {
  gpuc.variable @w : tensor<2x3xf64> init normal(std = 0.1)
  func.func @loss(%x: tensor<2x3xf64> {gpuc.name = "x"}) -> (tensor<f64>, tensor<f64>) {
    %w = gpuc.read @w : tensor<2x3xf64>
    %sum, %count = gpuc.mse %w, %x : (tensor<2x3xf64>, tensor<2x3xf64>) -> (tensor<f64>, tensor<f64>)
    return %sum, %count : tensor<f64>, tensor<f64>
  }
  gpuc.recipe {
    loss = @loss,
    optimizer = adamw
  }
}

// -----

// Without an optimizer: all but @train_step, and no slots.
// kaiming_uniform(fan_in = 16) is uniform in ±1/√16 = ±0.25; xavier_normal(fan_in = 5, fan_out = 3) has deviation
// √(2 / 8) = 0.5; kaiming_normal(fan_in = 8) has √2 / √8 = 0.5.
// CHECK-LABEL: module @untrained
// CHECK-NOT:   @train_step
// CHECK:       func.func @predict
// CHECK:       func.func @eval_step
// CHECK-SAME:    -> (tensor<f32> {gpuc.name = "loss_sum"}, tensor<f32> {gpuc.name = "count"})
// CHECK:       func.func @init
// CHECK:         gpuc.random_uniform seed %{{.*}} step %{{.*}} id 134217728 low -0.2{{5|499999}}{{.*}} high 0.2{{5|499999}}
// CHECK:         gpuc.random_normal seed %{{.*}} step %{{.*}} id 134217729 mean 0{{.*}} deviation {{5.0+e-01|0.5}}
// CHECK:         gpuc.random_normal seed %{{.*}} step %{{.*}} id 134217730 mean 0{{.*}} deviation {{5.0+e-01|0.5}}
// CHECK:         gpuc.constant 1 : tensor<3xi32>
// CHECK-NOT:   @loss
module @untrained {
  gpuc.variable @a : tensor<2x16xf32> init kaiming_uniform(fan_in = 16)
  gpuc.variable @b : tensor<3x5xf32> init xavier_normal(fan_in = 5, fan_out = 3)
  gpuc.variable @c : tensor<2x8xf32> init kaiming_normal(fan_in = 8)
  gpuc.variable @d kind statistic : tensor<3xi32> init ones
  func.func @predict(%x: tensor<2x16xf32>) -> tensor<2x16xf32> {
    %a = gpuc.read @a : tensor<2x16xf32>
    %0 = gpuc.add %x, %a : tensor<2x16xf32>
    return %0 : tensor<2x16xf32>
  }
  func.func @loss(%x: tensor<2x16xf32>) -> (tensor<f32>, tensor<f32>) {
    %0 = call @predict(%x) : (tensor<2x16xf32>) -> tensor<2x16xf32>
    %sum, %count = gpuc.mse %0, %x : (tensor<2x16xf32>, tensor<2x16xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss
  }
}

// -----

// What is expanded stays so.
// CHECK-LABEL: module @expanded
// CHECK:       func.func @init
// CHECK-NOT:   func.func @init
module @expanded {
  func.func @init() {
    return
  }
}

// -----

// A loss that is a sum: its count is that of the whole batch in evaluation, too.
// CHECK-LABEL: module @sum_over_the_batch
// CHECK:       func.func @eval_step
// CHECK-SAME:    -> (tensor<f32> {gpuc.name = "loss_sum"}, tensor<f32> {gpuc.counts_once, gpuc.name = "count"})
module @sum_over_the_batch {
  gpuc.variable @seed kind counter : tensor<i64> init zeros
  gpuc.variable @step kind counter : tensor<i64> init zeros
  func.func @loss(%x: tensor<4x2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32> {gpuc.counts_once}) {
    %sum, %count = gpuc.mse %x, %x : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<f32>, tensor<f32>)
    %one = gpuc.constant 1.0 : tensor<f32>
    return %sum, %one : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss }
}

// -----

// Integers as they are written, of which not each is a double.
// CHECK-LABEL: module @large_integers
// CHECK:       func.func @init
// CHECK:         gpuc.constant 9007199254740993 : tensor<2xi64>
// CHECK:         gpuc.constant 9223372036854775807 : tensor<i64>
module @large_integers {
  gpuc.variable @w : tensor<2xf32> init zeros
  gpuc.variable @a kind counter : tensor<2xi64> init constant(value = 9007199254740993)
  gpuc.variable @b kind counter : tensor<i64> init constant(value = 9223372036854775807)
  func.func @loss(%x: tensor<4x2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<2xf32>
    %0 = gpuc.broadcast %w dims [1] : tensor<2xf32> to tensor<4x2xf32>
    %sum, %count = gpuc.mse %0, %x : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = sgd(lr = 0.1) }
}
