// RUN: gpuc-opt %s --gpuc-to-plan=target=cuda:sm_90 -verify-diagnostics -split-input-file

// What an earlier stage kept whole for the host.
func.func @attend(%q: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  // expected-error @below {{was kept whole for the host, and cuda has no kernel for it: compile the model, not a later stage of it, with --target=cuda}}
  %y, %log = gpuc.attention %q, %q, %q : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> (tensor<2x2x3x4xf32>, tensor<2x2x3xf32>)
  return %y : tensor<2x2x3x4xf32>
}
