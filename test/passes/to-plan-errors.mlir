// RUN: gpuc-opt %s -split-input-file --gpuc-to-plan -verify-diagnostics

// Only kernels and library calls become commands.
func.func @predict(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{cannot become a command: gpuc-decompose and gpuc-fuse come before gpuc-to-plan}}
  %0 = gpuc.neg %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A program calls nothing.
// expected-error @+1 {{is private: calls are inlined before gpuc-to-plan}}
func.func private @helper(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// Nothing would be copied, and what reads it would read what nothing has written.
// expected-error @below {{input of type 'tensor<0x4xf32>' holds nothing: every extent of an input must be at least 1}}
func.func @predict(%x: tensor<0x4xf32>) -> tensor<0x4xf32> {
  return %x : tensor<0x4xf32>
}

// -----

// 2^61 elements of 4 bytes: one more than 64 bits with a sign can count.
// expected-error @below {{tensor of type 'tensor<2305843009213693952xf32>' has 2^63 bytes or more; is the batch too large?}}
func.func @predict(%x: tensor<2305843009213693952xf32>) -> tensor<2305843009213693952xf32> {
  return %x : tensor<2305843009213693952xf32>
}

// -----

// The host's convolutions have their channels first; gpuc-layout would have put transposes around it.
func.func @predict(%x: tensor<4x7x8x16xf32>, %w: tensor<24x3x2x16xf32>) -> tensor<4x5x7x24xf32> {
  // expected-error @below {{has its channels last, which no convolution of the host has: compile the model, not a later stage of it, with --target=host}}
  %y = gpuc.conv2d %x, %w channels_last : (tensor<4x7x8x16xf32>, tensor<24x3x2x16xf32>) -> tensor<4x5x7x24xf32>
  return %y : tensor<4x5x7x24xf32>
}

// -----

// Numbers are tensors of rank 0.
// expected-error @below {{@predict takes 'i1': a function's values are tensors of static shape, as tensor<i1> is for one number}}
func.func @predict(%x: i1) -> i1 {
  return %x : i1
}

// -----

// expected-error @below {{@predict gives 'i32': a function's values are tensors of static shape}}
func.func @predict() -> i32 {
  %0 = builtin.unrealized_conversion_cast to i32
  return %0 : i32
}

// -----

func.func @predict(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{makes a value of type 'vector<4xf32>', which is no tensor that functions compute with}}
  %0 = builtin.unrealized_conversion_cast %x : tensor<4xf32> to vector<4xf32>
  return %x : tensor<4xf32>
}
