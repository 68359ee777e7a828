// RUN: gpuc-opt %s --gpuc-to-plan=target=cuda:sm_90 -verify-diagnostics -split-input-file

// A plan for a GPU would name a library call that the runtime does not have.
func.func @predict(%x: tensor<4x1x7x8xf32>, %w: tensor<3x1x3x3xf32>) -> tensor<4x3x5x6xf32> {
  // expected-error @below {{cannot be compiled for cuda yet: there is no convolution; use --target=host}}
  %y = gpuc.conv2d %x, %w : (tensor<4x1x7x8xf32>, tensor<3x1x3x3xf32>) -> tensor<4x3x5x6xf32>
  return %y : tensor<4x3x5x6xf32>
}

// -----

// What an earlier stage kept whole for the host.
func.func @attend(%q: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  // expected-error @below {{was kept whole for the host, and cuda has no kernel for it: compile the model, not a later stage of it, with --target=cuda}}
  %y, %log = gpuc.attention %q, %q, %q : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> (tensor<2x2x3x4xf32>, tensor<2x2x3xf32>)
  return %y : tensor<2x2x3x4xf32>
}
