// Every op of convolution and pooling reads back what it writes.
// RUN: gpuc-opt %s -o %t.mlir
// RUN: gpuc-opt %t.mlir | diff %t.mlir -
// RUN: gpuc-opt %s --mlir-print-op-generic | gpuc-opt | diff %t.mlir -
// RUN: gpuc-opt %s --emit-bytecode | gpuc-opt | diff %t.mlir -
// RUN: FileCheck %s < %t.mlir

// What is a default is not written.
// CHECK-LABEL: @convolutions
func.func @convolutions(%x: tensor<?x4x32x32xf32>, %w: tensor<16x2x3x3xf32>, %y: tensor<?x16x16x16xf32>, %x1: tensor<2x3x5x5xf64>, %w1: tensor<4x3x1x1xf64>) {
  // (32 + 2 - 3) / 2 + 1 = 16
  // CHECK: gpuc.conv2d %arg0, %arg1 strides [2, 2] padding [1, 1, 1, 1] groups 2 : (tensor<?x4x32x32xf32>, tensor<16x2x3x3xf32>) -> tensor<?x16x16x16xf32>
  %0 = gpuc.conv2d %x, %w strides [2, 2] padding [1, 1, 1, 1] groups 2 : (tensor<?x4x32x32xf32>, tensor<16x2x3x3xf32>) -> tensor<?x16x16x16xf32>
  // CHECK: gpuc.conv2d_input_gradient %arg2, %arg1 strides [2, 2] padding [1, 1, 1, 1] groups 2 : (tensor<?x16x16x16xf32>, tensor<16x2x3x3xf32>) -> tensor<?x4x32x32xf32>
  %1 = gpuc.conv2d_input_gradient %y, %w strides [2, 2] padding [1, 1, 1, 1] groups 2 : (tensor<?x16x16x16xf32>, tensor<16x2x3x3xf32>) -> tensor<?x4x32x32xf32>
  // An input of 31 rows has a cotangent of the same shape.
  %2 = gpuc.conv2d_input_gradient %y, %w strides [2, 2] padding [1, 1, 1, 1] groups 2 : (tensor<?x16x16x16xf32>, tensor<16x2x3x3xf32>) -> tensor<?x4x31x32xf32>
  // CHECK: gpuc.conv2d_filter_gradient %arg2, %arg0
  %3 = gpuc.conv2d_filter_gradient %y, %x strides [2, 2] padding [1, 1, 1, 1] groups 2 : (tensor<?x16x16x16xf32>, tensor<?x4x32x32xf32>) -> tensor<16x2x3x3xf32>
  // CHECK: gpuc.conv2d %arg3, %arg4 : (
  %4 = gpuc.conv2d %x1, %w1 strides [1, 1] : (tensor<2x3x5x5xf64>, tensor<4x3x1x1xf64>) -> tensor<2x4x5x5xf64>
  // The filter spans 9 rows: 32 - 9 + 1 = 24 windows.
  %5 = gpuc.conv2d %x, %w dilation [4, 1] groups 2 : (tensor<?x4x32x32xf32>, tensor<16x2x3x3xf32>) -> tensor<?x16x24x30xf32>
  return
}

// Rows and columns are dimensions 1 and 2, of images and filters; numbers and indices mean what they did.
// CHECK-LABEL: @channels_last
func.func @channels_last(%x: tensor<?x32x31x4xf32>, %w: tensor<16x3x2x2xf32>, %y: tensor<?x16x30x16xf32>) {
  // (32 + 2 - 3) / 2 + 1 = 16, 31 - 2 + 1 = 30
  // CHECK: gpuc.conv2d %arg0, %arg1 strides [2, 1] padding [1, 1, 0, 0] groups 2 channels_last : (tensor<?x32x31x4xf32>, tensor<16x3x2x2xf32>) -> tensor<?x16x30x16xf32>
  %0 = gpuc.conv2d %x, %w strides [2, 1] padding [1, 1, 0, 0] groups 2 channels_last : (tensor<?x32x31x4xf32>, tensor<16x3x2x2xf32>) -> tensor<?x16x30x16xf32>
  // CHECK: gpuc.conv2d_input_gradient %arg2, %arg1 strides [2, 1] padding [1, 1, 0, 0] groups 2 channels_last :
  %1 = gpuc.conv2d_input_gradient %y, %w strides [2, 1] padding [1, 1, 0, 0] groups 2 channels_last : (tensor<?x16x30x16xf32>, tensor<16x3x2x2xf32>) -> tensor<?x32x31x4xf32>
  // CHECK: gpuc.conv2d_filter_gradient %arg2, %arg0 strides [2, 1] padding [1, 1, 0, 0] groups 2 channels_last :
  %2 = gpuc.conv2d_filter_gradient %y, %x strides [2, 1] padding [1, 1, 0, 0] groups 2 channels_last : (tensor<?x16x30x16xf32>, tensor<?x32x31x4xf32>) -> tensor<16x3x2x2xf32>
  // CHECK: %[[V:.*]], %[[I:.*]] = gpuc.max_pool2d %arg0 window [2, 3] strides [2, 3] channels_last : (tensor<?x32x31x4xf32>) -> (tensor<?x16x10x4xf32>, tensor<?x16x10x4xi64>)
  %v, %i = gpuc.max_pool2d %x window [2, 3] strides [2, 3] channels_last : (tensor<?x32x31x4xf32>) -> (tensor<?x16x10x4xf32>, tensor<?x16x10x4xi64>)
  // CHECK: gpuc.max_pool2d_gradient %[[V]], %[[I]] window [2, 3] strides [2, 3] channels_last :
  %3 = gpuc.max_pool2d_gradient %v, %i window [2, 3] strides [2, 3] channels_last : (tensor<?x16x10x4xf32>, tensor<?x16x10x4xi64>) -> tensor<?x32x31x4xf32>
  // CHECK: gpuc.max_pool2d_gather %arg0, %[[I]] window [2, 3] strides [2, 3] channels_last :
  %4 = gpuc.max_pool2d_gather %x, %i window [2, 3] strides [2, 3] channels_last : (tensor<?x32x31x4xf32>, tensor<?x16x10x4xi64>) -> tensor<?x16x10x4xf32>
  // CHECK: gpuc.avg_pool2d %arg0 window [2, 3] strides [2, 3] exclude_padding channels_last :
  %5 = gpuc.avg_pool2d %x window [2, 3] strides [2, 3] exclude_padding channels_last : (tensor<?x32x31x4xf32>) -> tensor<?x16x10x4xf32>
  // CHECK: gpuc.avg_pool2d_gradient %[[V]] window [2, 3] strides [2, 3] channels_last :
  %6 = gpuc.avg_pool2d_gradient %v window [2, 3] strides [2, 3] channels_last : (tensor<?x16x10x4xf32>) -> tensor<?x32x31x4xf32>
  return
}

// CHECK-LABEL: @poolings
func.func @poolings(%x: tensor<?x8x28x28xf32>, %y: tensor<?x8x14x14xf32>, %i: tensor<?x8x14x14xi64>) {
  // CHECK: gpuc.max_pool2d %arg0 window [2, 2] strides [2, 2] : (tensor<?x8x28x28xf32>) -> (tensor<?x8x14x14xf32>, tensor<?x8x14x14xi64>)
  %values, %indices = gpuc.max_pool2d %x window [2, 2] strides [2, 2] : (tensor<?x8x28x28xf32>) -> (tensor<?x8x14x14xf32>, tensor<?x8x14x14xi64>)
  // CHECK: gpuc.max_pool2d %arg0 window [3, 3] strides [2, 2] padding [1, 1, 1, 1] dilation [1, 2]
  %0, %1 = gpuc.max_pool2d %x window [3, 3] strides [2, 2] padding [1, 1, 1, 1] dilation [1, 2] : (tensor<?x8x28x28xf32>) -> (tensor<?x8x14x13xf32>, tensor<?x8x14x13xi64>)
  %2 = gpuc.max_pool2d_gradient %y, %i window [2, 2] strides [2, 2] : (tensor<?x8x14x14xf32>, tensor<?x8x14x14xi64>) -> tensor<?x8x28x28xf32>
  %3 = gpuc.max_pool2d_gather %x, %i window [2, 2] strides [2, 2] : (tensor<?x8x28x28xf32>, tensor<?x8x14x14xi64>) -> tensor<?x8x14x14xf32>
  // Places in a window.
  // CHECK: %[[V:.*]], %[[P:.*]] = gpuc.max_pool2d %arg0 window [2, 2] strides [2, 2] : (tensor<?x8x28x28xf32>) -> (tensor<?x8x14x14xf32>, tensor<?x8x14x14xui8>)
  %v, %p = gpuc.max_pool2d %x window [2, 2] strides [2, 2] : (tensor<?x8x28x28xf32>) -> (tensor<?x8x14x14xf32>, tensor<?x8x14x14xui8>)
  // CHECK: gpuc.max_pool2d_gradient %[[V]], %[[P]]
  %7 = gpuc.max_pool2d_gradient %v, %p window [2, 2] strides [2, 2] : (tensor<?x8x14x14xf32>, tensor<?x8x14x14xui8>) -> tensor<?x8x28x28xf32>
  // CHECK: gpuc.max_pool2d_gather %arg0, %[[P]]
  %8 = gpuc.max_pool2d_gather %x, %p window [2, 2] strides [2, 2] : (tensor<?x8x28x28xf32>, tensor<?x8x14x14xui8>) -> tensor<?x8x14x14xf32>
  // CHECK: gpuc.avg_pool2d %arg0 window [3, 3] strides [2, 2] padding [1, 1, 1, 1] exclude_padding :
  %4 = gpuc.avg_pool2d %x window [3, 3] strides [2, 2] padding [1, 1, 1, 1] exclude_padding : (tensor<?x8x28x28xf32>) -> tensor<?x8x14x14xf32>
  %5 = gpuc.avg_pool2d_gradient %y window [2, 2] strides [2, 2] : (tensor<?x8x14x14xf32>) -> tensor<?x8x28x28xf32>
  return
}
