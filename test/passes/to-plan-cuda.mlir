// RUN: gpuc-opt %s --gpuc-to-plan=target=cuda:sm_90 -split-input-file | FileCheck %s

// Engines for f32 get 64 KiB and three times the filter, 324 bytes up to 384. For the filter's gradient they turn all three
// tensors around, with channels in fours: (4·4·56 + 4·4·9 + 4·4·32) · 4 bytes = 6208, and as much for parts of sums.

// CHECK-LABEL: module @convolutions
module @convolutions {
  // CHECK: plan.program @predict
  // CHECK: %[[FORWARD:.*]] = plan.buffer "conv1.conv.workspace" : tensor<66048xi8>  workspace
  // CHECK: %[[INPUT:.*]] = plan.buffer "conv1.conv.workspace_1" : tensor<66048xi8>  workspace
  // CHECK: %[[FILTER:.*]] = plan.buffer "conv1.conv.workspace_2" : tensor<78080xi8>  workspace
  // CHECK: plan.conv forward %{{.*}}, %{{.*}} -> %{{.*}} workspace %[[FORWARD]] : f32 batch 4 input [1, 7, 8] filter [3, 1, 3, 3] output [3, 4, 8] strides [2, 1] padding [1, 1, 1, 1] dilation [1, 1] groups 1
  // CHECK: plan.conv input_gradient %{{.*}} workspace %[[INPUT]] : f32
  // CHECK: plan.conv filter_gradient %{{.*}} workspace %[[FILTER]] : f32
  func.func @predict(%x: tensor<4x1x7x8xf32> {gpuc.name = "x"}, %w: tensor<3x1x3x3xf32> {gpuc.name = "w"})
      -> (tensor<4x1x7x8xf32> {gpuc.name = "dx"}, tensor<3x1x3x3xf32> {gpuc.name = "dw"}) {
    %y = gpuc.conv2d %x, %w strides [2, 1] padding [1, 1, 1, 1] : (tensor<4x1x7x8xf32>, tensor<3x1x3x3xf32>) -> tensor<4x3x4x8xf32> loc("conv1")
    %dx = gpuc.conv2d_input_gradient %y, %w strides [2, 1] padding [1, 1, 1, 1] : (tensor<4x3x4x8xf32>, tensor<3x1x3x3xf32>) -> tensor<4x1x7x8xf32> loc("conv1")
    %dw = gpuc.conv2d_filter_gradient %y, %x strides [2, 1] padding [1, 1, 1, 1] : (tensor<4x3x4x8xf32>, tensor<4x1x7x8xf32>) -> tensor<3x1x3x3xf32> loc("conv1")
    return %dx, %dw : tensor<4x1x7x8xf32>, tensor<3x1x3x3xf32>
  }
}

// -----

// Tensor cores take 16-bit floats, channels in eights: (4·8·56 + 8·8·9 + 4·8·32) · 2 bytes = 6784, twice.

// CHECK-LABEL: module @half_convolution
module @half_convolution {
  // CHECK: %[[WORKSPACE:.*]] = plan.buffer "conv1.conv.workspace" : tensor<79104xi8>  workspace
  // CHECK: plan.conv forward %{{.*}} workspace %[[WORKSPACE]] : bf16
  func.func @predict(%x: tensor<4x1x7x8xbf16> {gpuc.name = "x"}, %w: tensor<3x1x3x3xbf16> {gpuc.name = "w"}) -> (tensor<4x3x4x8xbf16> {gpuc.name = "y"}) {
    %y = gpuc.conv2d %x, %w strides [2, 1] padding [1, 1, 1, 1] : (tensor<4x1x7x8xbf16>, tensor<3x1x3x3xbf16>) -> tensor<4x3x4x8xbf16> loc("conv1")
    return %y : tensor<4x3x4x8xbf16>
  }
}

// -----

// Channels last: extents are named in the order that they always have. Channels in eights are not turned around, and parts of
// sums get what the tensors take: (4·16·56 + 24·16·6 + 4·24·35) · 2 bytes = 18496.

// CHECK-LABEL: module @channels_last
module @channels_last {
  // CHECK: %[[WORKSPACE:.*]] = plan.buffer "conv.workspace" : tensor<84224xi8>  workspace
  // CHECK: plan.conv forward %{{.*}} channels_last workspace %[[WORKSPACE]] : bf16 batch 4 input [16, 7, 8] filter [24, 16, 3, 2] output [24, 5, 7]
  // CHECK: plan.conv input_gradient %{{.*}} channels_last workspace %{{.*}} : bf16 batch 4 input [16, 7, 8] filter [24, 16, 3, 2] output [24, 5, 7]
  func.func @predict(%x: tensor<4x7x8x16xbf16> {gpuc.name = "x"}, %w: tensor<24x3x2x16xbf16> {gpuc.name = "w"}) -> (tensor<4x7x8x16xbf16> {gpuc.name = "dx"}) {
    %y = gpuc.conv2d %x, %w channels_last : (tensor<4x7x8x16xbf16>, tensor<24x3x2x16xbf16>) -> tensor<4x5x7x24xbf16>
    %dx = gpuc.conv2d_input_gradient %y, %w channels_last : (tensor<4x5x7x24xbf16>, tensor<24x3x2x16xbf16>) -> tensor<4x7x8x16xbf16>
    return %dx : tensor<4x7x8x16xbf16>
  }
}

// -----

// Ranks are known of GPUs too, as far as to a plan's text.

// CHECK-LABEL: module @ranks
module @ranks {
  // CHECK: plan.all_reduce %{{.*}} -> %{{.*}} : f32
  func.func @predict(%x: tensor<4xf32> {gpuc.name = "x"}) -> (tensor<4xf32> {gpuc.name = "sum"}) {
    %0 = gpuc.all_reduce %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
