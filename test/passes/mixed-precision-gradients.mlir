// RUN: gpuc-opt %s --gpuc-mixed-precision --gpuc-differentiate-loss --gpuc-autodiff | FileCheck %s

// What flows back is of the type that went forward: the gradient of the weight is a product in bf16, rounded to bf16, and
// only then cast to f32, as PyTorch's is. The loss's own gradient is f32.
// CHECK-LABEL: func.func private @gradients(
// CHECK-SAME:    -> (tensor<f32>, tensor<f32>, tensor<8x8xf32> {gpuc.variable = @w})
// CHECK:         %[[XB:.*]] = gpuc.cast %{{.*}} : tensor<4x8xf32> to tensor<4x8xbf16>
// CHECK:         gpuc.mse
// CHECK:         gpuc.sub {{.*}} : tensor<4x8xf32>
// CHECK:         %[[DYB:.*]] = gpuc.cast %{{.*}} : tensor<4x8xf32> to tensor<4x8xbf16>
// CHECK:         %[[DW:.*]] = gpuc.matmul transpose %[[DYB]], %[[XB]] : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<8x8xbf16>
// CHECK:         %[[DW32:.*]] = gpuc.cast %[[DW]] : tensor<8x8xbf16> to tensor<8x8xf32>
// CHECK:         return %{{.*}}, %{{.*}}, %[[DW32]]
module {
  gpuc.variable @w : tensor<8x8xf32> init zeros
  func.func @loss(%x: tensor<4x8xf32>) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<8x8xf32>
    %y = gpuc.matmul %x, transpose %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %sum, %count = gpuc.mse %y, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = sgd(lr = 0.1), precision = bf16 }
}
