// RUN: gpuc-opt %s --gpuc-to-plan=target=cuda:sm_90 -verify-diagnostics

// A plan for a GPU would name a library call that the runtime does not have.
func.func @predict(%x: tensor<4x1x7x8xf32>, %w: tensor<3x1x3x3xf32>) -> tensor<4x3x5x6xf32> {
  // expected-error @below {{cannot be compiled for cuda yet: there is no convolution; use --target=host}}
  %y = gpuc.conv2d %x, %w : (tensor<4x1x7x8xf32>, tensor<3x1x3x3xf32>) -> tensor<4x3x5x6xf32>
  return %y : tensor<4x3x5x6xf32>
}
