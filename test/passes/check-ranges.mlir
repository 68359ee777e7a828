// RUN: gpuc-opt %s --gpuc-check-ranges --verify-diagnostics | FileCheck %s

// As many classes as labels; no range, which says nothing; one label more, which is ignored.
// CHECK-LABEL: func.func @labels
func.func @labels(%logits: tensor<?x10xf32>, %y: tensor<?xi32> {gpuc.range = 10}, %any: tensor<?xi32>,
                  %void: tensor<?xi32> {gpuc.range = 11}) -> tensor<f32> {
  %0, %c0 = gpuc.cross_entropy %logits, %y : (tensor<?x10xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
  %1, %c1 = gpuc.cross_entropy %logits, %any : (tensor<?x10xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
  %2, %c2 = gpuc.cross_entropy %logits, %void {ignore_index = 10 : i64} : (tensor<?x10xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
  %3 = gpuc.add %0, %1 : tensor<f32>
  %4 = gpuc.add %3, %2 : tensor<f32>
  return %4 : tensor<f32>
}

// Who clamps, selects or computes knows what is out of range.
// CHECK-LABEL: func.func @computed
func.func @computed(%table: tensor<7x4xf32>, %x: tensor<3xi32> {gpuc.range = 9}) -> tensor<3x4xf32> {
  %six = gpuc.constant 6 : tensor<3xi32>
  %clamped = gpuc.min %x, %six : tensor<3xi32>
  %0 = gpuc.gather %table, %clamped dim 0 : (tensor<7x4xf32>, tensor<3xi32>) -> tensor<3x4xf32>
  %known = gpuc.compare lt %x, %six : tensor<3xi32>
  %selected = gpuc.select %known, %x, %six : tensor<3xi1>, tensor<3xi32>
  %1 = gpuc.gather %table, %selected dim 0 : (tensor<7x4xf32>, tensor<3xi32>) -> tensor<3x4xf32>
  %2 = gpuc.add %0, %1 : tensor<3x4xf32>
  return %2 : tensor<3x4xf32>
}

// The elements of a table are no indices of its rows, and a mask of positions is no one-hot vector of them.
// CHECK-LABEL: func.func @others
func.func @others(%x: tensor<4xi32> {gpuc.range = 9}, %rows: tensor<3xi32> {gpuc.range = 4}) -> tensor<4xi1> {
  %0 = gpuc.gather %x, %rows dim 0 : (tensor<4xi32>, tensor<3xi32>) -> tensor<3xi32>
  %places = gpuc.iota dim 0 : tensor<4xi32>
  %1 = gpuc.compare eq %x, %places : tensor<4xi32>
  return %1 : tensor<4xi1>
}

// Nobody would check the data of an entry that says nothing of its range. That is said once for each argument, of what
// it is handed on to, too; not of what is computed, of a part, nor of other tables than weights.
gpuc.variable @table : tensor<7x4xf32> init ones
func.func private @helper(%x: tensor<3xi32>) -> tensor<3x4xf32> {
  %table = gpuc.read @table : tensor<7x4xf32>
  // expected-warning @below {{takes indices from 'tokens' of @predict, which has no gpuc.range: what is none of 7 slices would pass unnoticed; give the argument gpuc.range = 7}}
  %0 = gpuc.gather %table, %x dim 0 : (tensor<7x4xf32>, tensor<3xi32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
// CHECK-LABEL: func.func @predict
func.func @predict(%tokens: tensor<3xi32> {gpuc.name = "tokens"}, %known: tensor<3xi32> {gpuc.range = 7},
                   %clamped: tensor<3xi32>, %any: tensor<3xi32>, %many: tensor<5xi32>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) {
  %table = gpuc.read @table : tensor<7x4xf32>
  %0 = call @helper(%tokens) : (tensor<3xi32>) -> tensor<3x4xf32>
  %1 = call @helper(%known) : (tensor<3xi32>) -> tensor<3x4xf32>
  %six = gpuc.constant 6 : tensor<3xi32>
  %least = gpuc.min %clamped, %six : tensor<3xi32>
  %2 = gpuc.gather %table, %least dim 0 : (tensor<7x4xf32>, tensor<3xi32>) -> tensor<3x4xf32>
  %3 = gpuc.add %0, %2 : tensor<3x4xf32>
  %4 = gpuc.gather %3, %any dim 0 : (tensor<3x4xf32>, tensor<3xi32>) -> tensor<3x4xf32>
  %part = gpuc.slice %many starts [1] limits [4] strides [1] : (tensor<5xi32>) -> tensor<3xi32>
  %5 = gpuc.gather %table, %part dim 0 : (tensor<7x4xf32>, tensor<3xi32>) -> tensor<3x4xf32>
  return %4, %1, %5 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
}
func.func @loss(%logits: tensor<?x10xf32>, %y: tensor<?xi32> {gpuc.name = "labels"}) -> (tensor<f32>, tensor<f32>) {
  // expected-warning @below {{takes labels from 'labels' of @loss, which has no gpuc.range: what is none of 10 classes would pass unnoticed; give the argument gpuc.range = 10}}
  %0, %c = gpuc.cross_entropy %logits, %y : (tensor<?x10xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
  %1, %d = gpuc.accuracy %logits, %y : (tensor<?x10xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
  return %0, %1 : tensor<f32>, tensor<f32>
}
gpuc.recipe { loss = @loss, batch = 4, optimizer = sgd(lr = 0.1) }
