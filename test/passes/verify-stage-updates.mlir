// An assigned value is written over the old one. Half-way through gpuc-to-plan, which has put ops in such an order that
// nobody needs the old one by then, this could have gone wrong: nothing but the numbers would show it later.
//
// RUN: not gpuc-opt %s -split-input-file --gpuc-verify-stage="stage=updates after=gpuc-to-plan" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --implicit-check-not=error:

// Nothing is wrong with one who reads the new value, nor with the update itself.
gpuc.variable @w : tensor<4xf32> init zeros
func.func @train_step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = gpuc.read @w : tensor<4xf32>
  %new = gpuc.add %w, %x : tensor<4xf32>
  %y = gpuc.neg %new : tensor<4xf32>
  gpuc.assign @w, %new : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Through a reshape.
gpuc.variable @w : tensor<4xf32> init zeros
func.func @train_step(%x: tensor<4xf32>) -> tensor<2x2xf32> {
  %w = gpuc.read @w : tensor<4xf32>
  %square = gpuc.reshape %w : tensor<4xf32> to tensor<2x2xf32>
  %new = gpuc.add %w, %x : tensor<4xf32>
  gpuc.assign @w, %new : tensor<4xf32>
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-to-plan left 'gpuc.neg' in @train_step to read the old value of @w behind what writes the new one over it
  %y = gpuc.neg %square : tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// -----

// The caller reads it when the step is over.
gpuc.variable @w : tensor<4xf32> init zeros
func.func @train_step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = gpuc.read @w : tensor<4xf32>
  %new = gpuc.add %w, %x : tensor<4xf32>
  gpuc.assign @w, %new : tensor<4xf32>
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-to-plan left 'func.return' in @train_step to read the old value of @w behind
  return %w : tensor<4xf32>
}

// -----

// Attention drops by the step's number, without a gpuc.read.
gpuc.variable @seed kind counter : tensor<i64> init zeros
gpuc.variable @step kind counter : tensor<i64> init zeros
func.func @train_step(%q: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %step = gpuc.read @step : tensor<i64>
  %next = gpuc.add %step, %step : tensor<i64>
  gpuc.assign @step, %next : tensor<i64>
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-to-plan left 'gpuc.attention' in @train_step to read the old value of @step behind
  %y, %log = gpuc.attention %q, %q, %q dropout 0.5 id 3 : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> (tensor<2x2x3x4xf32>, tensor<2x2x3xf32>)
  return %y : tensor<2x2x3x4xf32>
}
