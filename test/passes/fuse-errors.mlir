// RUN: gpuc-opt %s --gpuc-fuse --split-input-file --verify-diagnostics

// A call is inlined before kernels are made.
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @predict(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'func.call' op has no kernel on any target}}
  %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// So is a gradient.
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
func.func @predict(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{'gpuc.gradient' op has no kernel on any target}}
  %y, %dx = gpuc.gradient @f(%x) wrt arguments [0] : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %dx : tensor<f32>
}
