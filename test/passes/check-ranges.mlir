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
