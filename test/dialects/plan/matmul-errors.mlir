// What a matrix multiplication's command refuses.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

// It starts from the bias, or from what is there.
plan.program @predict {
  %x = plan.input "x" : tensor<2x3xf32>
  %w = plan.input "w" : tensor<3x4xf32>
  %b = plan.input "b" : tensor<4xf32>
  %y = plan.buffer "y" : tensor<2x4xf32> activation
  // expected-error @below {{adds to its result, and so has no bias to start from}}
  plan.matmul %x, %w -> %y accumulate bias %b : f32 batch 1 m 2 n 4 k 3
}
