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
