// RUN: gpuc-opt %s --gpuc-find-entries --split-input-file --verify-diagnostics | FileCheck %s

// A function that nobody calls is an entry. Those of the recipe, @predict, and what they call, are no further ones.
// CHECK:       func.func private @body(%{{.*}}: tensor<?x2xf32>) -> tensor<?x2xf32> {
// CHECK:       func.func @scale(%{{.*}}: tensor<?x2xf32>) -> tensor<?x2xf32> {
// CHECK:       func.func @predict(%{{.*}}: tensor<?x2xf32>) -> tensor<?x2xf32> {
// CHECK:       func.func @loss(%{{.*}}: tensor<?x2xf32>) -> (tensor<f32>, tensor<f32>) {
// CHECK:       func.func @embed(%{{.*}}: tensor<?x2xf32>) -> tensor<?x2xf32> attributes {gpuc.entry} {
func.func private @body(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = call @scale(%x) : (tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
func.func @scale(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = gpuc.add %x, %x : tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
func.func @predict(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = call @body(%x) : (tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
func.func @loss(%x: tensor<?x2xf32>) -> (tensor<f32>, tensor<f32>) {
  %0 = call @predict(%x) : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %sum, %count = gpuc.mse %0, %x : (tensor<?x2xf32>, tensor<?x2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
func.func @embed(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = call @body(%x) : (tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
gpuc.recipe { loss = @loss, batch = 4, optimizer = sgd(lr = 0.1) }

// -----

// Without a recipe @loss is a function like any other. One that takes the gradient of another uses it.
// CHECK:       func.func @loss(%{{.*}}) -> tensor<f64> {
// CHECK:       func.func @slope(%{{.*}}) -> tensor<4xf64> attributes {gpuc.entry} {
func.func @loss(%x: tensor<4xf64>) -> tensor<f64> {
  %0 = gpuc.sum %x dims [0] : (tensor<4xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}
func.func @slope(%x: tensor<4xf64>) -> tensor<4xf64> {
  %y, %d = gpuc.gradient @loss(%x) wrt arguments [0] : (tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
  return %d : tensor<4xf64>
}

// -----

// What is left out is said: once for a function that nobody calls and for each that it alone calls.
func.func @predict(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}
// expected-warning @below {{@helper is left out: it is private, and no entry of the plan calls it; a public function is an entry itself}}
func.func private @helper(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}
// expected-warning @below {{@around is left out: only functions that it calls call it}}
func.func @around(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = call @back(%x) : (tensor<4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}
// expected-warning @below {{@back is left out}}
func.func private @back(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = call @around(%x) : (tensor<4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// -----

// After gpuc-expand-recipe all functions are entries.
// CHECK:       func.func @init() {
// CHECK:       func.func @other(
// CHECK-NOT:   gpuc.entry
func.func @init() {
  return
}
func.func @other(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}

// -----

// @predict is one by its name, though it is private.
// CHECK:       func.func @predict(%{{.*}}: tensor<?x2xf32>) -> tensor<?x2xf32> {
func.func private @predict(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  return %x : tensor<?x2xf32>
}
