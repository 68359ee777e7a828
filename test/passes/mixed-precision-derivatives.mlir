// RUN: gpuc-opt %s --gpuc-mixed-precision | FileCheck %s

// What a model differentiates by itself is lowered as well, at whatever depth, and its decisions are the loss's.
// CHECK:       module attributes {gpuc.precision = [
// CHECK-SAME:    "bf16", "autocast list: lower"
// CHECK-LABEL: func.func private @energy(
// CHECK:         gpuc.matmul {{.*}} -> tensor<4x8xbf16>
// CHECK:         return %{{.*}} : tensor<f32>
// CHECK-LABEL: func.func private @slope(
module {
  gpuc.variable @w : tensor<8x8xf32> init zeros
  func.func private @energy(%x: tensor<4x8xf32>) -> tensor<f32> {
    %w = gpuc.read @w : tensor<8x8xf32>
    %y = gpuc.matmul %x, transpose %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %t = gpuc.tanh %y : tensor<4x8xf32>
    %e = gpuc.sum %t dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
    return %e : tensor<f32>
  }
  func.func private @slope(%x: tensor<4x8xf32>) -> tensor<f32> {
    %e, %dx = gpuc.gradient @energy(%x) wrt arguments [0] : (tensor<4x8xf32>) -> (tensor<f32>, tensor<4x8xf32>)
    %s = gpuc.sum %dx dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
    return %s : tensor<f32>
  }
  func.func @loss(%x: tensor<4x8xf32>) -> (tensor<f32>, tensor<f32>) {
    %s, %dx = gpuc.gradient @slope(%x) wrt arguments [0] : (tensor<4x8xf32>) -> (tensor<f32>, tensor<4x8xf32>)
    %sum, %count = gpuc.mse %dx, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = sgd(lr = 0.1), precision = bf16 }
}
