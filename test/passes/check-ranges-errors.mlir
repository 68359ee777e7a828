// RUN: gpuc-opt %s --gpuc-check-ranges --split-input-file --verify-diagnostics

// A label 10 or 11 would count nothing.
func.func @loss(%logits: tensor<?x10xf32>, %y: tensor<?xi32> {gpuc.name = "y", gpuc.range = 12}) -> (tensor<f32>, tensor<f32>) {
  // expected-error @below {{takes labels from 'y' of @loss, whose gpuc.range is 12, but there are 10 classes: give the argument gpuc.range = 10, or make 12 classes}}
  %sum, %count = gpuc.cross_entropy %logits, %y : (tensor<?x10xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}

// -----

func.func @loss(%p: tensor<?x10xf32>, %y: tensor<?xi64> {gpuc.range = 11}) -> (tensor<f32>, tensor<f32>) {
  // expected-error @below {{takes labels from 'arg1' of @loss, whose gpuc.range is 11, but there are 10 classes}}
  %sum, %count = gpuc.nll %p, %y : (tensor<?x10xf32>, tensor<?xi64>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}

// -----

func.func @accuracy(%p: tensor<?x10xf32>, %y: tensor<?xi32> {gpuc.range = 11}) -> (tensor<f32>, tensor<f32>) {
  // expected-error @below {{but there are 10 classes}}
  %sum, %count = gpuc.accuracy %p, %y : (tensor<?x10xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}

// -----

func.func @loss(%h: tensor<?x8xf32>, %w: tensor<10x8xf32>, %y: tensor<?xi32> {gpuc.range = 11}) -> (tensor<f32>, tensor<f32>) {
  // expected-error @below {{but there are 10 classes}}
  %sum, %count = gpuc.linear_cross_entropy %h, %w labels %y
      : (tensor<?x8xf32>, tensor<10x8xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}

// -----

func.func @accuracy(%h: tensor<?x8xf32>, %w: tensor<10x8xf32>, %y: tensor<?xi32> {gpuc.range = 11}) -> (tensor<f32>, tensor<f32>) {
  // expected-error @below {{but there are 10 classes}}
  %sum, %count = gpuc.linear_accuracy %h, %w labels %y
      : (tensor<?x8xf32>, tensor<10x8xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}

// -----

func.func @embed(%table: tensor<7x4xf32>, %x: tensor<?x3xi32> {gpuc.name = "x", gpuc.range = 8}) -> tensor<?x3x4xf32> {
  // expected-error @below {{takes indices from 'x' of @embed, whose gpuc.range is 8, but there are 7 slices}}
  %0 = gpuc.gather %table, %x dim 0 : (tensor<7x4xf32>, tensor<?x3xi32>) -> tensor<?x3x4xf32>
  return %0 : tensor<?x3x4xf32>
}

// -----

func.func @add(%table: tensor<7x4xf32>, %x: tensor<3xi32> {gpuc.range = 8}, %u: tensor<3x4xf32>) -> tensor<7x4xf32> {
  // expected-error @below {{but there are 7 slices}}
  %0 = gpuc.scatter_add %table, %x, %u dim 0 : (tensor<7x4xf32>, tensor<3xi32>, tensor<3x4xf32>) -> tensor<7x4xf32>
  return %0 : tensor<7x4xf32>
}

// -----

func.func @one_hot(%y: tensor<?xi32> {gpuc.name = "y", gpuc.range = 5}) -> tensor<?x4xi1> {
  %places = gpuc.iota dim 0 : tensor<4xi32>
  %p = gpuc.broadcast %places dims [1] : tensor<4xi32> to tensor<?x4xi32>
  %l = gpuc.broadcast %y dims [0] : tensor<?xi32> to tensor<?x4xi32>
  // expected-error @below {{takes an index from 'y' of @one_hot, whose gpuc.range is 5, but there are 4 places}}
  %0 = gpuc.compare eq %l, %p : tensor<?x4xi32>
  return %0 : tensor<?x4xi1>
}

// -----

func.func @one_hot(%y: tensor<?xi64> {gpuc.name = "y", gpuc.range = 5}) -> tensor<?x4xi1> {
  %p = gpuc.iota dim 1 : tensor<?x4xi64>
  %l = gpuc.broadcast %y dims [0] : tensor<?xi64> to tensor<?x4xi64>
  // expected-error @below {{but there are 4 places}}
  %0 = gpuc.compare eq %p, %l : tensor<?x4xi64>
  return %0 : tensor<?x4xi1>
}

// -----

// Through moves, a cast and a call.
func.func private @embed(%ids: tensor<?x2xi64>) -> tensor<?x2x4xf32> {
  %table = gpuc.constant 0.0 : tensor<7x4xf32>
  // expected-error @below {{takes indices from 'x' of @predict, whose gpuc.range is 8, but there are 7 slices}}
  %0 = gpuc.gather %table, %ids dim 0 : (tensor<7x4xf32>, tensor<?x2xi64>) -> tensor<?x2x4xf32>
  return %0 : tensor<?x2x4xf32>
}
func.func @predict(%x: tensor<?x3xi32> {gpuc.name = "x", gpuc.range = 8}) -> tensor<?x2x4xf32> {
  %wide = gpuc.cast %x : tensor<?x3xi32> to tensor<?x3xi64>
  %part = gpuc.slice %wide starts [0, 1] limits [-1, 3] strides [1, 1] : (tensor<?x3xi64>) -> tensor<?x2xi64>
  %y = call @embed(%part) : (tensor<?x2xi64>) -> tensor<?x2x4xf32>
  return %y : tensor<?x2x4xf32>
}

// -----

// Out of a call: the shifted tokens are the labels.
func.func private @shift(%ids: tensor<?x3xi32>) -> tensor<?x2xi32> {
  %part = gpuc.slice %ids starts [0, 1] limits [-1, 3] strides [1, 1] : (tensor<?x3xi32>) -> tensor<?x2xi32>
  return %part : tensor<?x2xi32>
}
func.func @loss(%x: tensor<?x3xi32> {gpuc.name = "x", gpuc.range = 8}, %p: tensor<?x2x7xf32>) -> (tensor<f32>, tensor<f32>) {
  %y = call @shift(%x) : (tensor<?x3xi32>) -> tensor<?x2xi32>
  // expected-error @below {{takes labels from 'x' of @loss, whose gpuc.range is 8, but there are 7 classes}}
  %sum, %count = gpuc.cross_entropy %p, %y : (tensor<?x2x7xf32>, tensor<?x2xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}

// -----

// Into a loop, as what it walks over, and as what it carries.
func.func @decode(%x: tensor<5x3xi32> {gpuc.name = "x", gpuc.range = 8}, %first: tensor<3xi32> {gpuc.range = 7}, %table: tensor<7x4xf32>) -> tensor<5x3x4xf32> {
  %last, %all = gpuc.scan over(%x) carry(%first) captures(%table)
      : (tensor<5x3xi32>, tensor<3xi32>, tensor<7x4xf32>) -> (tensor<3xi32>, tensor<5x3x4xf32>) {
  ^bb0(%now: tensor<3xi32>, %before: tensor<3xi32>, %t: tensor<7x4xf32>):
    // expected-error @below {{takes indices from 'x' of @decode, whose gpuc.range is 8, but there are 7 slices}}
    %row = gpuc.gather %t, %before dim 0 : (tensor<7x4xf32>, tensor<3xi32>) -> tensor<3x4xf32>
    gpuc.yield %now, %row : tensor<3xi32>, tensor<3x4xf32>
  }
  return %all : tensor<5x3x4xf32>
}

// -----

// Of two callers the one with the larger range.
func.func private @embed(%ids: tensor<3xi32>) -> tensor<3x4xf32> {
  %table = gpuc.constant 0.0 : tensor<7x4xf32>
  // expected-error @below {{takes indices from 'b' of @second, whose gpuc.range is 9}}
  %0 = gpuc.gather %table, %ids dim 0 : (tensor<7x4xf32>, tensor<3xi32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
func.func @first(%a: tensor<3xi32> {gpuc.name = "a", gpuc.range = 7}) -> tensor<3x4xf32> {
  %y = call @embed(%a) : (tensor<3xi32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
func.func @second(%b: tensor<3xi32> {gpuc.name = "b", gpuc.range = 9}) -> tensor<3x4xf32> {
  %y = call @embed(%b) : (tensor<3xi32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// What is ignored may be the last of the labels; between it and the classes there may be others, which count nothing either.
func.func @loss(%logits: tensor<?x21xf32>, %y: tensor<?xi32> {gpuc.name = "y", gpuc.range = 256}) -> (tensor<f32>, tensor<f32>) {
  // expected-warning @below {{takes labels from 'y' in [0, 256) and ignores 255, but there are 21 classes: those from 21 on count nothing either; number what is ignored 21}}
  %sum, %count = gpuc.cross_entropy %logits, %y {ignore_index = 255 : i64} : (tensor<?x21xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}

// -----

func.func @loss(%logits: tensor<?x10xf32>, %y: tensor<?xi32> {gpuc.name = "y", gpuc.range = 12}) -> (tensor<f32>, tensor<f32>) {
  // expected-error @below {{but there are 10 classes}}
  %sum, %count = gpuc.cross_entropy %logits, %y {ignore_index = 10 : i64} : (tensor<?x10xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}

// -----

// expected-error @below {{gives 'x', a 'tensor<3xi32>', gpuc.range = 0 : i64: it is the number, at least 1, below which integers lie}}
func.func @f(%x: tensor<3xi32> {gpuc.name = "x", gpuc.range = 0}) -> tensor<3xi32> {
  return %x : tensor<3xi32>
}

// -----

// expected-error @below {{gives 'arg0', a 'tensor<3xi32>', gpuc.range = "ten"}}
func.func @f(%x: tensor<3xi32> {gpuc.range = "ten"}) -> tensor<3xi32> {
  return %x : tensor<3xi32>
}

// -----

// expected-error @below {{gives 'arg0', a 'tensor<3xf32>', gpuc.range = 3 : i64}}
func.func @f(%x: tensor<3xf32> {gpuc.range = 3}) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}

// -----

// A class that is said to be ignored is one like any other where the loss does not ignore it; what is no class counts nothing.
func.func @loss(%logits: tensor<?x10xf32>, %y: tensor<?xi32> {gpuc.name = "y", gpuc.range = 10, gpuc.ignored = 0},
                %z: tensor<?xi32> {gpuc.name = "z", gpuc.range = 10, gpuc.ignored = -1}) -> (tensor<f32>, tensor<f32>) {
  // expected-warning @below {{takes labels from 'y' of @loss, whose gpuc.ignored is 0, one of 10 classes, and does not ignore it: give the op ignore_index = 0, or leave gpuc.ignored out}}
  %sum, %count = gpuc.cross_entropy %logits, %y : (tensor<?x10xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
  %1, %2 = gpuc.cross_entropy %logits, %y {ignore_index = 0 : i64} : (tensor<?x10xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
  %3, %4 = gpuc.cross_entropy %logits, %z : (tensor<?x10xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
