// Each constraint of the losses of linear layers, broken.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

// A row has no features.
func.func @case(%h: tensor<4xf32>, %w: tensor<7x4xf32>, %l: tensor<i32>) {
  // expected-error @below {{hidden 'tensor<4xf32>' and weight 'tensor<7x4xf32>' do not fit: [rows, features] and [classes, features] of one element type [linear_cross_entropy_C1]}}
  %0:2 = gpuc.linear_cross_entropy %h, %w labels %l : (tensor<4xf32>, tensor<7x4xf32>, tensor<i32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// Three features, four weights for each class.
func.func @case(%h: tensor<5x3xf32>, %w: tensor<7x4xf32>, %l: tensor<5xi32>) {
  // expected-error @below {{hidden 'tensor<5x3xf32>' and weight 'tensor<7x4xf32>' do not fit}}
  %0:2 = gpuc.linear_cross_entropy %h, %w labels %l : (tensor<5x3xf32>, tensor<7x4xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// Two types.
func.func @case(%h: tensor<5x4xf64>, %w: tensor<7x4xf32>, %l: tensor<5xi32>) {
  // expected-error @below {{hidden 'tensor<5x4xf64>' and weight 'tensor<7x4xf32>' do not fit}}
  %0:2 = gpuc.linear_cross_entropy %h, %w labels %l : (tensor<5x4xf64>, tensor<7x4xf32>, tensor<5xi32>) -> (tensor<f64>, tensor<f64>)
  return
}

// -----

// A weight for each sample.
func.func @case(%h: tensor<5x4xf32>, %w: tensor<5x7x4xf32>, %l: tensor<5xi32>) {
  // expected-error @below {{hidden 'tensor<5x4xf32>' and weight 'tensor<5x7x4xf32>' do not fit}}
  %0:2 = gpuc.linear_cross_entropy %h, %w labels %l : (tensor<5x4xf32>, tensor<5x7x4xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// A bias for each feature.
func.func @case(%h: tensor<5x4xf32>, %w: tensor<7x4xf32>, %l: tensor<5xi32>, %b: tensor<4xf32>) {
  // expected-error @below {{bias must be 'tensor<7xf32>', but is 'tensor<4xf32>' [linear_cross_entropy_C2]}}
  %0:2 = gpuc.linear_cross_entropy %h, %w bias %b labels %l : (tensor<5x4xf32>, tensor<7x4xf32>, tensor<4xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// Five rows, four labels.
func.func @case(%h: tensor<5x4xf32>, %w: tensor<7x4xf32>, %l: tensor<4xi32>) {
  // expected-error @below {{labels must be 'tensor<5xi32>', but is 'tensor<4xi32>' [linear_cross_entropy_C3]}}
  %0:2 = gpuc.linear_cross_entropy %h, %w labels %l : (tensor<5x4xf32>, tensor<7x4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// The mask is a row each.
func.func @case(%h: tensor<5x4xf32>, %w: tensor<7x4xf32>, %l: tensor<5xi32>, %m: tensor<4xi1>) {
  // expected-error @below {{mask must be 'tensor<5xi1>', but is 'tensor<4xi1>' [linear_cross_entropy_C4]}}
  %0:2 = gpuc.linear_cross_entropy %h, %w labels %l mask %m : (tensor<5x4xf32>, tensor<7x4xf32>, tensor<5xi32>, tensor<4xi1>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// No rows at a time.
func.func @case(%h: tensor<5x4xf32>, %w: tensor<7x4xf32>, %l: tensor<5xi32>) {
  // expected-error @below {{chunk must be at least 1 row, but is 0 [linear_cross_entropy_C7]}}
  %0:2 = gpuc.linear_cross_entropy %h, %w labels %l chunk 0 : (tensor<5x4xf32>, tensor<7x4xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// Seven classes, five weights.
func.func @case(%h: tensor<5x4xf32>, %w: tensor<7x4xf32>, %l: tensor<5xi32>, %c: tensor<5xf32>) {
  // expected-error @below {{class_weight must be 'tensor<7xf32>', but is 'tensor<5xf32>' [linear_cross_entropy_C5]}}
  %0:2 = gpuc.linear_cross_entropy %h, %w labels %l class_weight %c : (tensor<5x4xf32>, tensor<7x4xf32>, tensor<5xi32>, tensor<5xf32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// More than all.
func.func @case(%h: tensor<5x4xf32>, %w: tensor<7x4xf32>, %l: tensor<5xi32>) {
  // expected-error @below {{smoothing must lie in [0, 1], but is 1.5 [linear_cross_entropy_C6]}}
  %0:2 = gpuc.linear_cross_entropy %h, %w labels %l {smoothing = 1.5 : f64} : (tensor<5x4xf32>, tensor<7x4xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// A row has no features.
func.func @case(%h: tensor<4xf32>, %w: tensor<7x4xf32>, %l: tensor<i32>) {
  // expected-error @below {{hidden 'tensor<4xf32>' and weight 'tensor<7x4xf32>' do not fit: [rows, features] and [classes, features] of one element type [linear_accuracy_C1]}}
  %0:2 = gpuc.linear_accuracy %h, %w labels %l : (tensor<4xf32>, tensor<7x4xf32>, tensor<i32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// Three features, four weights for each class.
func.func @case(%h: tensor<5x3xf32>, %w: tensor<7x4xf32>, %l: tensor<5xi32>) {
  // expected-error @below {{hidden 'tensor<5x3xf32>' and weight 'tensor<7x4xf32>' do not fit}}
  %0:2 = gpuc.linear_accuracy %h, %w labels %l : (tensor<5x3xf32>, tensor<7x4xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// Two types.
func.func @case(%h: tensor<5x4xf64>, %w: tensor<7x4xf32>, %l: tensor<5xi32>) {
  // expected-error @below {{hidden 'tensor<5x4xf64>' and weight 'tensor<7x4xf32>' do not fit}}
  %0:2 = gpuc.linear_accuracy %h, %w labels %l : (tensor<5x4xf64>, tensor<7x4xf32>, tensor<5xi32>) -> (tensor<f64>, tensor<f64>)
  return
}

// -----

// A weight for each sample.
func.func @case(%h: tensor<5x4xf32>, %w: tensor<5x7x4xf32>, %l: tensor<5xi32>) {
  // expected-error @below {{hidden 'tensor<5x4xf32>' and weight 'tensor<5x7x4xf32>' do not fit}}
  %0:2 = gpuc.linear_accuracy %h, %w labels %l : (tensor<5x4xf32>, tensor<5x7x4xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// A bias for each feature.
func.func @case(%h: tensor<5x4xf32>, %w: tensor<7x4xf32>, %l: tensor<5xi32>, %b: tensor<4xf32>) {
  // expected-error @below {{bias must be 'tensor<7xf32>', but is 'tensor<4xf32>' [linear_accuracy_C2]}}
  %0:2 = gpuc.linear_accuracy %h, %w bias %b labels %l : (tensor<5x4xf32>, tensor<7x4xf32>, tensor<4xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// Five rows, four labels.
func.func @case(%h: tensor<5x4xf32>, %w: tensor<7x4xf32>, %l: tensor<4xi32>) {
  // expected-error @below {{labels must be 'tensor<5xi32>', but is 'tensor<4xi32>' [linear_accuracy_C3]}}
  %0:2 = gpuc.linear_accuracy %h, %w labels %l : (tensor<5x4xf32>, tensor<7x4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// The mask is a row each.
func.func @case(%h: tensor<5x4xf32>, %w: tensor<7x4xf32>, %l: tensor<5xi32>, %m: tensor<4xi1>) {
  // expected-error @below {{mask must be 'tensor<5xi1>', but is 'tensor<4xi1>' [linear_accuracy_C4]}}
  %0:2 = gpuc.linear_accuracy %h, %w labels %l mask %m : (tensor<5x4xf32>, tensor<7x4xf32>, tensor<5xi32>, tensor<4xi1>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// No rows at a time.
func.func @case(%h: tensor<5x4xf32>, %w: tensor<7x4xf32>, %l: tensor<5xi32>) {
  // expected-error @below {{chunk must be at least 1 row, but is 0 [linear_accuracy_C5]}}
  %0:2 = gpuc.linear_accuracy %h, %w labels %l chunk 0 : (tensor<5x4xf32>, tensor<7x4xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// What the forward op refuses.
func.func @case(%h: tensor<5x4xf32>, %w: tensor<7x4xf32>, %l: tensor<5xi32>) {
  // expected-error @below {{smoothing must lie in [0, 1], but is -1 [linear_cross_entropy_gradient_C1]}}
  %0:4 = gpuc.linear_cross_entropy_gradient %h, %w labels %l {smoothing = -1.0 : f64} : (tensor<5x4xf32>, tensor<7x4xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<f32>, tensor<5x4xf32>, tensor<7x4xf32>)
  return
}

// -----

// Without a bias there is no gradient of one.
func.func @case(%h: tensor<5x4xf32>, %w: tensor<7x4xf32>, %l: tensor<5xi32>) {
  // expected-error @below {{but returns ('tensor<f32>', 'tensor<f32>', 'tensor<5x4xf32>', 'tensor<7x4xf32>', 'tensor<7xf32>') [inferred_C1]}}
  %0:5 = gpuc.linear_cross_entropy_gradient %h, %w labels %l : (tensor<5x4xf32>, tensor<7x4xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<f32>, tensor<5x4xf32>, tensor<7x4xf32>, tensor<7xf32>)
  return
}

// -----

// No class.
func.func @case(%h: tensor<5x4xf32>, %w: tensor<0x4xf32>, %l: tensor<5xi32>) {
  // expected-error @below {{weight 'tensor<0x4xf32>' is empty: there must be at least one class and one feature [linear_cross_entropy_C1]}}
  %0:2 = gpuc.linear_cross_entropy %h, %w labels %l : (tensor<5x4xf32>, tensor<0x4xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// No feature.
func.func @case(%h: tensor<5x0xf32>, %w: tensor<7x0xf32>, %l: tensor<5xi32>) {
  // expected-error @below {{weight 'tensor<7x0xf32>' is empty: there must be at least one class and one feature [linear_accuracy_C1]}}
  %0:2 = gpuc.linear_accuracy %h, %w labels %l : (tensor<5x0xf32>, tensor<7x0xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<f32>)
  return
}
