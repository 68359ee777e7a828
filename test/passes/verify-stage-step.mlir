// What passes up to the train step could leave by mistake: each case is an error that names the pass whose work it was.
//
// RUN: not gpuc-opt %s -split-input-file --gpuc-verify-stage="stage=step after=gpuc-expand-recipe" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --implicit-check-not=error:

// Nothing is wrong with a step that trains what its loss depends on, and not what is frozen or stopped.
func.func @init() {
  %w = gpuc.constant 0.0 : tensor<f32>
  gpuc.assign @w, %w : tensor<f32>
  gpuc.assign @frozen, %w : tensor<f32>
  gpuc.assign @stopped, %w : tensor<f32>
  return
}
gpuc.variable @w : tensor<f32> init zeros
gpuc.variable @frozen frozen : tensor<f32> init zeros
gpuc.variable @stopped : tensor<f32> init zeros
gpuc.variable @seed kind counter : tensor<i64> init zeros
func.func @train_step() -> (tensor<f32> {gpuc.name = "loss_sum"}) {
  %w = gpuc.read @w : tensor<f32>
  %frozen = gpuc.read @frozen : tensor<f32>
  %stopped = gpuc.read @stopped : tensor<f32>
  %constant = gpuc.stop_gradient %stopped : tensor<f32>
  %0 = gpuc.mul %w, %frozen : tensor<f32>
  %1 = gpuc.mul %0, %constant : tensor<f32>
  gpuc.assign @w, %1 : tensor<f32>
  return %1 : tensor<f32>
}

// -----

func.func @loss(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %x, %x : tensor<f32>, tensor<f32>
}
// CHECK: :[[#@LINE+2]]:{{.*}} error: gpuc-expand-recipe left the recipe
// CHECK: note: unless the text was changed by hand this is a bug of gpuc: please report it with the model
gpuc.recipe {
  loss = @loss
}

// -----

// CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-expand-recipe left @helper, which is no entry
func.func private @helper(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-expand-recipe left @predict, which is not one block of ops
func.func private @predict(%x: tensor<4xf32>) -> tensor<4xf32>

// -----

func.func @predict(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-expand-recipe left a call of @embed in @predict
  %y = call @embed(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @embed(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @square(%x: tensor<f32>) -> tensor<f32> {
  %0 = gpuc.mul %x, %x : tensor<f32>
  return %0 : tensor<f32>
}
func.func @predict(%x: tensor<f32>) -> tensor<f32> {
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-autodiff left a gradient of @square in @predict, seen behind gpuc-expand-recipe
  %y, %dx = gpuc.gradient @square(%x) wrt arguments [0] : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %dx : tensor<f32>
}

// -----

// CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-specialize-batch left a value of type tensor<?x4xf32> in @predict, seen behind
func.func @predict(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  return %x : tensor<?x4xf32>
}

// -----

func.func @predict(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-expand-recipe left a value of type vector<4xf32> in @predict
  %0 = builtin.unrealized_conversion_cast %x : tensor<4xf32> to vector<4xf32>
  return %x : tensor<4xf32>
}

// -----

func.func @predict(%x: tensor<2x5x4xf32>, %h: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-specialize-batch left a scan over its second dimension in @predict
  %0 = gpuc.scan over(%x) carry(%h) batch_first : (tensor<2x5x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%xi: tensor<2x4xf32>, %hi: tensor<2x4xf32>):
    %next = gpuc.add %xi, %hi : tensor<2x4xf32>
    gpuc.yield %next : tensor<2x4xf32>
  }
  return %0 : tensor<2x4xf32>
}

// -----

// CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-expand-recipe left @w without a value in @init
gpuc.variable @w : tensor<4xf32> init zeros
func.func @init() {
  return
}

// -----

// The step reads the slot, and the next one would read the same.
// CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-expand-recipe left @w/exp_avg without a value in @train_step
gpuc.variable @"w/exp_avg" kind optimizer : tensor<f32> init zeros
func.func @train_step() -> (tensor<f32> {gpuc.name = "loss_sum"}) {
  %0 = gpuc.read @"w/exp_avg" : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-expand-recipe left @step without a value in @train_step
gpuc.variable @step kind counter : tensor<i64> init zeros
func.func @train_step() -> (tensor<i64> {gpuc.name = "loss_sum"}) {
  %0 = gpuc.read @step : tensor<i64>
  return %0 : tensor<i64>
}

// -----

gpuc.variable @w : tensor<4xf32> init zeros
func.func @predict(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-expand-recipe left an assignment of @w in @predict
  gpuc.assign @w, %x : tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

func.func @predict(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-expand-recipe left 'gpuc.dropout' as in training in @predict
  %y = gpuc.dropout %x p 0.5 id 7 : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-mask-padding left @eval_step, which takes `rows`, without a mask of them, seen behind
func.func @eval_step(%x: tensor<8x3xf32>, %labels: tensor<8xi32>, %rows: tensor<i32> {gpuc.name = "rows", gpuc.role = "rows"})
    -> (tensor<f32> {gpuc.name = "loss_sum"}, tensor<f32> {gpuc.name = "count"}) {
  %limit = gpuc.broadcast %rows dims [] : tensor<i32> to tensor<8xi32>
  %sum, %count = gpuc.cross_entropy %x, %labels : (tensor<8x3xf32>, tensor<8xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}

// -----

// CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-expand-recipe left @train_step without its result loss_sum
func.func @train_step(%x: tensor<f32>) -> (tensor<f32> {gpuc.name = "count"}) {
  return %x : tensor<f32>
}

// -----

// The loss depends on @w through what a loop carries and what it captures.
gpuc.variable @b : tensor<4xf32> init zeros
// CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-expand-recipe left @w, on which the loss depends, untrained
gpuc.variable @w : tensor<4xf32> init zeros
func.func @train_step(%x: tensor<5x4xf32>, %h: tensor<4xf32>) -> (tensor<4xf32> {gpuc.name = "loss_sum"}) {
  %w = gpuc.read @w : tensor<4xf32>
  %b = gpuc.read @b : tensor<4xf32>
  %0, %1 = gpuc.scan over(%x) carry(%h, %b) captures(%w) : (tensor<5x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%xi: tensor<4xf32>, %first: tensor<4xf32>, %second: tensor<4xf32>, %wi: tensor<4xf32>):
    %next = gpuc.mul %xi, %wi : tensor<4xf32>
    gpuc.yield %second, %next : tensor<4xf32>, tensor<4xf32>
  }
  gpuc.assign @b, %1 : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

gpuc.variable @seed kind counter : tensor<i64> init zeros
gpuc.variable @v : tensor<4xf32> init zeros
gpuc.variable @w : tensor<4xf32> init zeros
func.func @init() {
  %seed = gpuc.read @seed : tensor<i64>
  %v = gpuc.random_uniform seed %seed step %seed id 1 low -0.5 high 0.5 : (tensor<i64>, tensor<i64>) -> tensor<4xf32>
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-expand-recipe left two draws under the id 1 in @init
  %w = gpuc.random_uniform seed %seed step %seed id 1 low -0.5 high 0.5 : (tensor<i64>, tensor<i64>) -> tensor<4xf32>
  gpuc.assign @v, %v : tensor<4xf32>
  gpuc.assign @w, %w : tensor<4xf32>
  return
}
