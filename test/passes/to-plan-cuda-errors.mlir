// RUN: gpuc-opt %s --gpuc-to-plan=target=cuda:sm_90 -verify-diagnostics -split-input-file

// What an earlier stage kept whole for the host.
func.func @attend(%q: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  // expected-error @below {{was kept whole for the host, and cuda has no kernel for it: compile the model, not a later stage of it, with --target=cuda}}
  %y, %log = gpuc.attention %q, %q, %q : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> (tensor<2x2x3x4xf32>, tensor<2x2x3xf32>)
  return %y : tensor<2x2x3x4xf32>
}

// -----

// What the host's library does to the elements of a product, and CUDA's does not.
func.func @finish(%x: tensor<2x3xf64>, %w: tensor<3x4xf64>) -> tensor<2x4xf64> {
  // expected-error @below {{was made for the host, and cuda's library does not do what follows the product: compile the model, not a later stage of it, with --target=cuda}}
  %y = gpuc.fused "matmul_relu" (%x, %w) : (tensor<2x3xf64>, tensor<3x4xf64>) -> tensor<2x4xf64> {
  ^bb0(%a: tensor<2x3xf64>, %b: tensor<3x4xf64>):
    %p = gpuc.matmul %a, %b : (tensor<2x3xf64>, tensor<3x4xf64>) -> tensor<2x4xf64>
    %r = gpuc.relu %p : tensor<2x4xf64>
    gpuc.yield %r : tensor<2x4xf64>
  }
  return %y : tensor<2x4xf64>
}

// -----

func.func @mask(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %h: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-error @below {{was made for the host, and cuda's library does not do what follows the product: compile the model, not a later stage of it, with --target=cuda}}
  %y = gpuc.fused "matmul_select" (%x, %w, %h) : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>, %m: tensor<2x4xf32>):
    %p = gpuc.matmul %a, %b : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %zero = gpuc.constant 0.0 : tensor<2x4xf32>
    %c = gpuc.compare le %m, %zero : tensor<2x4xf32>
    %s = gpuc.select %c, %zero, %p : tensor<2x4xi1>, tensor<2x4xf32>
    gpuc.yield %s : tensor<2x4xf32>
  }
  return %y : tensor<2x4xf32>
}

// -----

// cuDNN has no engine for it.
func.func @convolve(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32> {
  // expected-error @below {{was made for the host, and cuda's library does not do what follows the product: compile the model, not a later stage of it, with --target=cuda}}
  %y = gpuc.fused "conv2d_relu" (%x, %w) : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32> {
  ^bb0(%a: tensor<2x3x8x8xf32>, %f: tensor<4x3x3x3xf32>):
    %c = gpuc.conv2d %a, %f : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
    %r = gpuc.relu %c : tensor<2x4x6x6xf32>
    gpuc.yield %r : tensor<2x4x6x6xf32>
  }
  return %y : tensor<2x4x6x6xf32>
}
