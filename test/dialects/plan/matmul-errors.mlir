// What the commands of products refuse of what follows.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

// A bias has an element for each column.
plan.program @predict {
  %x = plan.input "x" : tensor<2x3xf32>
  %w = plan.input "w" : tensor<3x4xf32>
  %b = plan.input "b" : tensor<3xf32>
  %y = plan.buffer "y" : tensor<2x4xf32> activation
  // expected-error @below {{bias has 12 bytes, 4 elements take 16}}
  plan.matmul %x, %w -> %y bias %b : f32 batch 1 m 2 n 4 k 3
}

// -----

// What is added up over several commands has no last one of which relu could be taken.
plan.program @predict {
  %x = plan.input "x" : tensor<2x3xf32>
  %w = plan.input "w" : tensor<3x4xf32>
  %y = plan.buffer "y" : tensor<2x4xf32> activation
  // expected-error @below {{adds to its result, which neither bias nor relu nor mask follows}}
  plan.matmul %x, %w -> %y accumulate relu : f32 batch 1 m 2 n 4 k 3
}

// -----

// A convolution's bias has an element for each channel of its output.
plan.program @predict {
  %x = plan.input "x" : tensor<1x2x4x4xf32>
  %w = plan.input "w" : tensor<3x2x1x1xf32>
  %b = plan.input "b" : tensor<2xf32>
  %y = plan.buffer "y" : tensor<1x3x4x4xf32> activation
  // expected-error @below {{bias has 8 bytes, 1 x [3] take 12}}
  plan.conv forward %x, %w -> %y bias %b : f32 batch 1 input [2, 4, 4] filter [3, 2, 1, 1] output [3, 4, 4] strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] groups 1
}

// -----

// Gradients are the bare sums.
plan.program @predict {
  %dy = plan.input "dy" : tensor<1x3x4x4xf32>
  %w = plan.input "w" : tensor<3x2x1x1xf32>
  %dx = plan.buffer "dx" : tensor<1x2x4x4xf32> activation
  // expected-error @below {{is a gradient, which neither bias nor relu follows}}
  plan.conv input_gradient %dy, %w -> %dx relu : f32 batch 1 input [2, 4, 4] filter [3, 2, 1, 1] output [3, 4, 4] strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] groups 1
}

// -----

// A mask lies as the result does.
plan.program @predict {
  %dy = plan.input "dy" : tensor<2x3xf32>
  %w = plan.input "w" : tensor<3x4xf32>
  %h = plan.input "h" : tensor<4xf32>
  %dh = plan.buffer "dh" : tensor<2x4xf32> activation
  // expected-error @below {{mask has 16 bytes, 8 elements take 32}}
  plan.matmul %dy, %w -> %dh mask %h : f32 batch 1 m 2 n 4 k 3
}

// -----

// It makes a gradient, and what has a bias is none.
plan.program @predict {
  %dy = plan.input "dy" : tensor<2x3xf32>
  %w = plan.input "w" : tensor<3x4xf32>
  %h = plan.input "h" : tensor<2x4xf32>
  %dh = plan.buffer "dh" : tensor<2x4xf32> activation
  // expected-error @below {{has a mask, of a gradient, which neither bias nor relu follows}}
  plan.matmul %dy, %w -> %dh relu mask %h : f32 batch 1 m 2 n 4 k 3
}

// -----

// Of convolutions, an input's gradient has one; it lies as the input does.
plan.program @predict {
  %x = plan.input "x" : tensor<1x2x4x4xf32>
  %w = plan.input "w" : tensor<3x2x1x1xf32>
  %h = plan.input "h" : tensor<1x3x4x4xf32>
  %y = plan.buffer "y" : tensor<1x3x4x4xf32> activation
  // expected-error @below {{has a mask, which follows an input_gradient alone}}
  plan.conv forward %x, %w -> %y mask %h : f32 batch 1 input [2, 4, 4] filter [3, 2, 1, 1] output [3, 4, 4] strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] groups 1
}

// -----

plan.program @predict {
  %dy = plan.input "dy" : tensor<1x3x4x4xf32>
  %w = plan.input "w" : tensor<3x2x1x1xf32>
  %h = plan.input "h" : tensor<1x3x4x4xf32>
  %dx = plan.buffer "dx" : tensor<1x2x4x4xf32> activation
  // expected-error @below {{mask has 192 bytes, 1 x [2, 4, 4] take 128}}
  plan.conv input_gradient %dy, %w -> %dx mask %h : f32 batch 1 input [2, 4, 4] filter [3, 2, 1, 1] output [3, 4, 4] strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] groups 1
}
