// What a convolution's command refuses: buffers of other sizes than its numbers say.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

// The image has two rows of windows, not three.
plan.program @predict {
  %x = plan.input "x" : tensor<1x1x4x4xf32>
  %w = plan.input "w" : tensor<1x1x3x3xf32>
  %y = plan.buffer "y" : tensor<1x1x2x2xf32> activation
  // expected-error @below {{output has 16 bytes, 1 x [1, 3, 2] take 24}}
  plan.conv forward %x, %w -> %y : f32 batch 1 input [1, 4, 4] filter [1, 1, 3, 3] output [1, 3, 2] strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] groups 1
}

// -----

// Of a gradient the first operand is the output's cotangent.
plan.program @predict {
  %x = plan.input "x" : tensor<1x1x4x4xf32>
  %w = plan.input "w" : tensor<1x1x3x3xf32>
  %y = plan.buffer "y" : tensor<1x1x2x2xf32> activation
  // expected-error @below {{output has 64 bytes, 1 x [1, 2, 2] take 16}}
  plan.conv input_gradient %x, %w -> %y : f32 batch 1 input [1, 4, 4] filter [1, 1, 3, 3] output [1, 2, 2] strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] groups 1
}

// -----

plan.program @predict {
  %x = plan.input "x" : tensor<1x1x4x4xf32>
  %w = plan.input "w" : tensor<1x1x3x3xf32>
  %y = plan.buffer "y" : tensor<1x1x2x2xf32> activation
  // expected-error @below {{wants input [C, H, W], filter [O, C / groups, kh, kw], output [O, OH, OW], two strides, four paddings and two dilations}}
  plan.conv forward %x, %w -> %y : f32 batch 1 input [4, 4] filter [1, 1, 3, 3] output [1, 2, 2] strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] groups 1
}
