// What elementwise ops refuse: the message names the operand, both types and the constraint.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

// Nothing is broadcast silently.
func.func @case(%a: tensor<4xf32>, %b: tensor<5xf32>) {
  // expected-error @below {{'gpuc.add' op operand #1 is 'tensor<5xf32>', but the result is 'tensor<4xf32>' [same_type_C1]}}
  %0 = "gpuc.add"(%a, %b) : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  return
}

// -----

// A unary op keeps the type.
func.func @case(%a: tensor<4xf32>) {
  // expected-error @below {{operand #0 is 'tensor<4xf32>', but the result is 'tensor<4xf64>' [same_type_C1]}}
  %0 = "gpuc.exp"(%a) : (tensor<4xf32>) -> tensor<4xf64>
  return
}

// -----

// A cast keeps the shape.
func.func @case(%a: tensor<4xf32>) {
  // expected-error @below {{operand #0 is 'tensor<4xf32>', but the result is 'tensor<5xi32>': their shapes differ [same_shape_C1]}}
  %0 = gpuc.cast %a : tensor<4xf32> to tensor<5xi32>
  return
}

// -----

// The condition has the shape of what it chooses from.
func.func @case(%c: tensor<5xi1>, %a: tensor<4xf32>) {
  // expected-error @below {{operand #0 is 'tensor<5xi1>', but the result is 'tensor<4xf32>': their shapes differ [same_shape_C1]}}
  %0 = gpuc.select %c, %a, %a : tensor<5xi1>, tensor<4xf32>
  return
}

// -----

// A mask is no number.
func.func @case(%a: tensor<4xi32>) {
  // expected-error @below {{operand #0 must be floating-point tensor of static shape (a leading ? is the batch), but got 'tensor<4xi32>'}}
  %0 = gpuc.exp %a : tensor<4xi32>
  return
}

// -----

// Only the first dimension can be the batch.
func.func @case(%a: tensor<4x?xf32>) {
  // expected-error @below {{operand #0 must be floating-point tensor of static shape (a leading ? is the batch), but got 'tensor<4x?xf32>'}}
  %0 = gpuc.exp %a : tensor<4x?xf32>
  return
}

// -----

// No number lies between.
func.func @case(%a: tensor<4xf32>) {
  // expected-error @below {{low must not exceed high, but low is 1 and high 0 [clamp_C1]}}
  %0 = gpuc.clamp %a low 1.0 high 0.0 : tensor<4xf32>
  return
}

// -----

// Dimensions count from 0.
func.func @case() {
  // expected-error @below {{dim 1 is not a dimension of the result 'tensor<4xf32>' [iota_C1]}}
  %0 = gpuc.iota dim 1 : tensor<4xf32>
  return
}

// -----

// Elements of another shape.
func.func @case() {
  // expected-error @below {{elements are 'tensor<2xf32>', but the result is 'tensor<4xf32>' [constant_C1]}}
  %0 = "gpuc.constant"() <{value = dense<[1.0, 2.0]> : tensor<2xf32>}> : () -> tensor<4xf32>
  return
}

// -----

// A string is no number.
func.func @case() {
  // expected-error @below {{value must be a number or dense elements, but is "x" [constant_C2]}}
  %0 = "gpuc.constant"() <{value = "x"}> : () -> tensor<4xf32>
  return
}

// -----

// A number of another type.
func.func @case() {
  // expected-error @below {{number is of type 'f64', but the result is 'tensor<4xf32>' [constant_C3]}}
  %0 = "gpuc.constant"() <{value = 1.0 : f64}> : () -> tensor<4xf32>
  return
}

// -----

// A byte holds 0 to 255.
func.func @case() {
  // expected-error @below {{the number does not fit in 'ui8'}}
  %0 = gpuc.constant 256 : tensor<ui8>
  return
}

// -----

// No integer has a fraction.
func.func @case() {
  // expected-error @below {{expected an integer for element type 'i32'}}
  %0 = gpuc.constant 1.5 : tensor<i32>
  return
}

// -----

// i1 is true or false.
func.func @case() {
  // expected-error @below {{expected true or false for element type 'i1'}}
  %0 = gpuc.constant 1 : tensor<i1>
  return
}

// -----

// Too large for the type.
func.func @case() {
  // expected-error @below {{the number does not fit in 'f16'}}
  %0 = gpuc.constant 1.0e5 : tensor<f16>
  return
}

// -----

// Too large for any type. What is meant to be infinite says so.
func.func @case() {
  // expected-error @below {{the number does not fit in f64: write inf for infinity}}
  %0 = gpuc.constant 1.0e400 : tensor<f32>
  return
}

// -----

// Not 0 as it is written.
func.func @case() {
  // expected-error @below {{the number is too small to be another number than 0: write 0.0}}
  %0 = gpuc.constant -1.0e-400 : tensor<f64>
  return
}

// -----

// Nor here, but the smallest f16 is 6e-8.
func.func @case() {
  // expected-error @below {{the number is 0 in 'f16', which holds none so small}}
  %0 = gpuc.constant 1.0e-12 : tensor<f16>
  return
}

// -----

// These bits are an infinity.
func.func @case() {
  // expected-error @below {{these are not the bits of a NaN of type 'f32'}}
  %0 = gpuc.constant nan(0x7f800000) : tensor<f32>
  return
}

// -----

// A line without a slope.
func.func @case(%a: tensor<4xf32>) {
  // expected-error @below {{slope must be finite, but is nan [leaky_relu_C1]}}
  %0 = gpuc.leaky_relu %a {slope = 0x7FF8000000000000 : f64} : tensor<4xf32>
  return
}
