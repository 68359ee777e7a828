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

// -----

// An update takes the place of a result.
plan.variable @w : tensor<2x4xf32> "parameter" init zeros
plan.kernel @update (%g: tensor<2x4xf32>, %w: tensor<2x4xf32>) {
  %0 = gpuc.sub %w, %g : tensor<2x4xf32>
  gpuc.yield %0 : tensor<2x4xf32>
}
plan.program @train_step {
  %x = plan.input "x" : tensor<2x3xf32>
  %y = plan.input "y" : tensor<3x4xf32>
  %w = plan.use @w : tensor<2x4xf32> parameter
  %g = plan.buffer "g" : tensor<2x4xf32> gradient
  // expected-error @below {{has an update as well as a result [matmul_C2]}}
  plan.matmul %x, %y -> %g update @update(%w) -> (%w) : f32 batch 1 m 2 n 4 k 3
}

// -----

// One or the other.
plan.program @predict {
  %x = plan.input "x" : tensor<2x3xf32>
  %y = plan.input "y" : tensor<3x4xf32>
  // expected-error @below {{has neither a result nor an update [matmul_C2]}}
  plan.matmul %x, %y : f32 batch 1 m 2 n 4 k 3
}

// -----

// Nothing else follows it.
plan.variable @w : tensor<2x4xf32> "parameter" init zeros
plan.kernel @update (%g: tensor<2x4xf32>, %w: tensor<2x4xf32>) {
  %0 = gpuc.sub %w, %g : tensor<2x4xf32>
  gpuc.yield %0 : tensor<2x4xf32>
}
plan.program @train_step {
  %x = plan.input "x" : tensor<2x3xf32>
  %y = plan.input "y" : tensor<3x4xf32>
  %w = plan.use @w : tensor<2x4xf32> parameter
  // expected-error @below {{has an update, which takes one matrix that nothing else follows}}
  plan.matmul %x, %y relu update @update(%w) -> (%w) : f32 batch 1 m 2 n 4 k 3
}

// -----

// Its kernel begins with the product.
plan.variable @w : tensor<2x4xf32> "parameter" init zeros
plan.kernel @update (%g: tensor<4xf32>, %w: tensor<2x4xf32>) {
  gpuc.yield %w : tensor<2x4xf32>
}
plan.program @train_step {
  %x = plan.input "x" : tensor<2x3xf32>
  %y = plan.input "y" : tensor<3x4xf32>
  %w = plan.use @w : tensor<2x4xf32> parameter
  // expected-error @below {{of 2x4 elements of 'f32', but the update @update begins with 'tensor<4xf32>' [matmul_C1]}}
  plan.matmul %x, %y update @update(%w) -> (%w) : f32 batch 1 m 2 n 4 k 3
}

// -----

// What stands behind is what the kernel takes, and gives.
plan.variable @w : tensor<2x4xf32> "parameter" init zeros
plan.kernel @update (%g: tensor<2x4xf32>, %w: tensor<2x4xf32>) {
  %0 = gpuc.sub %w, %g : tensor<2x4xf32>
  gpuc.yield %0 : tensor<2x4xf32>
}
plan.program @train_step {
  %x = plan.input "x" : tensor<2x3xf32>
  %y = plan.input "y" : tensor<3x4xf32>
  %w = plan.use @w : tensor<2x4xf32> parameter
  // expected-error @below {{gives 0 inputs and 1 outputs, kernel @update has 2 and 1}}
  plan.matmul %x, %y update @update() -> (%w) : f32 batch 1 m 2 n 4 k 3
}

// -----

// A kernel of the module.
plan.variable @w : tensor<2x4xf32> "parameter" init zeros
plan.program @train_step {
  %x = plan.input "x" : tensor<2x3xf32>
  %y = plan.input "y" : tensor<3x4xf32>
  %w = plan.use @w : tensor<2x4xf32> parameter
  // expected-error @below {{of @none, which is no plan.kernel of this module}}
  plan.matmul %x, %y update @none(%w) -> (%w) : f32 batch 1 m 2 n 4 k 3
}

// -----

// Squares are those of the product, not of what follows it.
plan.program @predict {
  %x = plan.input "x" : tensor<2x3xf32>
  %y = plan.input "y" : tensor<3x4xf32>
  %g = plan.buffer "g" : tensor<2x4xf32> activation
  %s = plan.buffer "s" : tensor<1xf32> activation
  // expected-error @below {{has squares, which are those of one matrix that nothing else follows}}
  plan.matmul %x, %y -> %g relu squares %s : f32 batch 1 m 2 n 4 k 3
}

// -----

// Of convolutions a filter's gradient alone is handed on, and has squares.
plan.variable @w : tensor<3x2x1x1xf32> "parameter" init zeros
plan.kernel @update (%g: tensor<3x2x1x1xf32>, %w: tensor<3x2x1x1xf32>) {
  %0 = gpuc.sub %w, %g : tensor<3x2x1x1xf32>
  gpuc.yield %0 : tensor<3x2x1x1xf32>
}
plan.program @train_step {
  %x = plan.input "x" : tensor<1x2x4x4xf32>
  %w = plan.use @w : tensor<3x2x1x1xf32> parameter
  // expected-error @below {{has an update, which takes a filter's gradient alone}}
  plan.conv forward %x, %w update @update(%w) -> (%w) : f32 batch 1 input [2, 4, 4] filter [3, 2, 1, 1] output [3, 4, 4] strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] groups 1
}

// -----

plan.program @train_step {
  %x = plan.input "x" : tensor<1x2x4x4xf32>
  %w = plan.input "w" : tensor<3x2x1x1xf32>
  %y = plan.buffer "y" : tensor<1x3x4x4xf32> activation
  %s = plan.buffer "s" : tensor<1xf32> activation
  // expected-error @below {{has squares, which are those of a filter's gradient alone}}
  plan.conv forward %x, %w -> %y squares %s : f32 batch 1 input [2, 4, 4] filter [3, 2, 1, 1] output [3, 4, 4] strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] groups 1
}

// -----

plan.program @train_step {
  %dy = plan.input "dy" : tensor<1x3x4x4xf32>
  %x = plan.input "x" : tensor<1x2x4x4xf32>
  // expected-error @below {{has neither a result nor an update}}
  plan.conv filter_gradient %dy, %x : f32 batch 1 input [2, 4, 4] filter [3, 2, 1, 1] output [3, 4, 4] strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] groups 1
}

// -----

plan.variable @w : tensor<6x2xf32> "parameter" init zeros
plan.kernel @update (%g: tensor<6x2xf32>, %w: tensor<6x2xf32>) {
  %0 = gpuc.sub %w, %g : tensor<6x2xf32>
  gpuc.yield %0 : tensor<6x2xf32>
}
plan.program @train_step {
  %dy = plan.input "dy" : tensor<1x3x4x4xf32>
  %x = plan.input "x" : tensor<1x2x4x4xf32>
  %w = plan.use @w : tensor<6x2xf32> parameter
  // expected-error @below {{of 3x2x1x1 elements of 'f32', but the update @update begins with 'tensor<6x2xf32>'}}
  plan.conv filter_gradient %dy, %x update @update(%w) -> (%w) : f32 batch 1 input [2, 4, 4] filter [3, 2, 1, 1] output [3, 4, 4] strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] groups 1
}
