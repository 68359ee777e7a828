// Zeros around images, and rows and columns that are cut off, as padding of convolutions.
//
// RUN: gpuc-opt %s --gpuc-fold-padding --split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-fold-padding --canonicalize --split-input-file | FileCheck %s --check-prefix=CLEAN

// TensorFlow's "same" of stride 2 has a row at the bottom alone.
// CHECK-LABEL: @same
// CHECK-NEXT: %[[Y:.*]] = gpuc.conv2d %{{.*}}, %{{.*}} strides [2, 2] padding [0, 1, 0, 1] : (tensor<?x3x32x32xf32>, tensor<16x3x3x3xf32>) -> tensor<?x16x16x16xf32>
// CHECK-NEXT: return %[[Y]]
func.func @same(%x: tensor<?x3x32x32xf32>, %w: tensor<16x3x3x3xf32>) -> tensor<?x16x16x16xf32> {
  %padded = gpuc.pad %x low [0, 0, 0, 0] high [0, 0, 1, 1] interior [0, 0, 0, 0] : (tensor<?x3x32x32xf32>) -> tensor<?x3x33x33xf32>
  %y = gpuc.conv2d %padded, %w strides [2, 2] : (tensor<?x3x33x33xf32>, tensor<16x3x3x3xf32>) -> tensor<?x16x16x16xf32>
  return %y : tensor<?x16x16x16xf32>
}

// -----

// Two pads and the convolution's own padding; who else reads what is padded still does.
// CHECK-LABEL: @twice
// CHECK-NEXT: %[[INNER:.*]] = gpuc.pad %[[X:.*]] low [0, 0, 1, 2]
// CHECK-NEXT: %[[OUTER:.*]] = gpuc.pad %[[INNER]]
// CHECK-NEXT: %[[Y:.*]] = gpuc.conv2d %[[X]], %{{.*}} padding [3, 3, 3, 6] : (tensor<2x3x4x4xf32>,
// CHECK-NEXT: return %[[Y]], %[[OUTER]]
func.func @twice(%x: tensor<2x3x4x4xf32>, %w: tensor<5x3x3x3xf32>) -> (tensor<2x5x8x11xf32>, tensor<2x3x8x11xf32>) {
  %inner = gpuc.pad %x low [0, 0, 1, 2] high [0, 0, 0, 1] interior [0, 0, 0, 0] : (tensor<2x3x4x4xf32>) -> tensor<2x3x5x7xf32>
  %outer = gpuc.pad %inner low [0, 0, 1, 0] high [0, 0, 2, 4] interior [0, 0, 0, 0] : (tensor<2x3x5x7xf32>) -> tensor<2x3x8x11xf32>
  %y = gpuc.conv2d %outer, %w padding [1, 1, 1, 1] : (tensor<2x3x8x11xf32>, tensor<5x3x3x3xf32>) -> tensor<2x5x8x11xf32>
  return %y, %outer : tensor<2x5x8x11xf32>, tensor<2x3x8x11xf32>
}

// -----

// Causal: a series is padded on the left alone.
// CHECK-LABEL: @causal(
// CHECK-NEXT: %[[IMAGE:.*]] = gpuc.reshape %{{.*}} : tensor<2x4x8xf32> to tensor<2x4x1x8xf32>
// CHECK-NEXT: gpuc.conv2d %[[IMAGE]], %{{.*}} padding [0, 0, 2, 0]
// CHECK-NEXT: return
func.func @causal(%x: tensor<2x4x8xf32>, %w: tensor<8x4x1x3xf32>) -> tensor<2x8x1x8xf32> {
  %padded = gpuc.pad %x low [0, 0, 2] high [0, 0, 0] interior [0, 0, 0] : (tensor<2x4x8xf32>) -> tensor<2x4x10xf32>
  %image = gpuc.reshape %padded : tensor<2x4x10xf32> to tensor<2x4x1x10xf32>
  %y = gpuc.conv2d %image, %w : (tensor<2x4x1x10xf32>, tensor<8x4x1x3xf32>) -> tensor<2x8x1x8xf32>
  return %y : tensor<2x8x1x8xf32>
}

// -----

// A series may as well be of width 1.
// CHECK-LABEL: @tall
// CHECK-NEXT: gpuc.reshape %{{.*}} : tensor<2x4x8xf32> to tensor<2x4x8x1xf32>
// CHECK-NEXT: gpuc.conv2d {{.*}} padding [2, 0, 0, 0]
func.func @tall(%x: tensor<2x4x8xf32>, %w: tensor<8x4x3x1xf32>) -> tensor<2x8x8x1xf32> {
  %padded = gpuc.pad %x low [0, 0, 2] high [0, 0, 0] interior [0, 0, 0] : (tensor<2x4x8xf32>) -> tensor<2x4x10xf32>
  %image = gpuc.reshape %padded : tensor<2x4x10xf32> to tensor<2x4x10x1xf32>
  %y = gpuc.conv2d %image, %w : (tensor<2x4x10x1xf32>, tensor<8x4x3x1xf32>) -> tensor<2x8x8x1xf32>
  return %y : tensor<2x8x8x1xf32>
}

// -----

// Causal, padded on both sides and cut, behind a bias.
// CHECK-LABEL: @chomp
// CHECK-NEXT: %[[Y:.*]] = gpuc.conv2d %{{.*}}, %{{.*}} padding [0, 0, 4, 0] dilation [1, 2] : (tensor<?x4x1x8xf32>, tensor<8x4x1x3xf32>) -> tensor<?x8x1x8xf32>
// CHECK: %[[BIAS:.*]] = gpuc.broadcast %{{.*}} dims [1, 2] : tensor<8x1xf32> to tensor<?x8x1x8xf32>
// CHECK-NEXT: %[[SUM:.*]] = gpuc.add %[[Y]], %[[BIAS]]
// CHECK-NEXT: %[[CUT:.*]] = gpuc.reshape %[[SUM]] : tensor<?x8x1x8xf32> to tensor<?x8x8xf32>
// CHECK-NEXT: return %[[CUT]]
// CLEAN-LABEL: @chomp
// CLEAN-NEXT: gpuc.conv2d
// CLEAN-NEXT: gpuc.broadcast %{{.*}} dims [1] : tensor<8xf32> to tensor<?x8x1x8xf32>
// CLEAN-NEXT: gpuc.add
func.func @chomp(%x: tensor<?x4x1x8xf32>, %w: tensor<8x4x1x3xf32>, %b: tensor<8xf32>) -> tensor<?x8x8xf32> {
  %y = gpuc.conv2d %x, %w padding [0, 0, 4, 4] dilation [1, 2] : (tensor<?x4x1x8xf32>, tensor<8x4x1x3xf32>) -> tensor<?x8x1x12xf32>
  %column = gpuc.reshape %b : tensor<8xf32> to tensor<8x1xf32>
  %bias = gpuc.broadcast %column dims [1, 2] : tensor<8x1xf32> to tensor<?x8x1x12xf32>
  %sum = gpuc.add %y, %bias : tensor<?x8x1x12xf32>
  %series = gpuc.reshape %sum : tensor<?x8x1x12xf32> to tensor<?x8x12xf32>
  %cut = gpuc.slice %series starts [0, 0, 0] limits [-1, 8, 8] strides [1, 1, 1] : (tensor<?x8x12xf32>) -> tensor<?x8x8xf32>
  return %cut : tensor<?x8x8xf32>
}

// -----

// By strides: windows 1 to 4 of 6, whose first begins where padding does, and an element that no window holds.
// CHECK-LABEL: @strided
// CHECK-NEXT: gpuc.conv2d {{.*}} strides [2, 1] padding [0, 0, 1, 1] : (tensor<1x1x10x4xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x4x4xf32>
// CHECK-NEXT: return
func.func @strided(%x: tensor<1x1x10x4xf32>, %w: tensor<1x1x3x3xf32>) -> tensor<1x1x4x4xf32> {
  %y = gpuc.conv2d %x, %w strides [2, 1] padding [2, 2, 1, 1] : (tensor<1x1x10x4xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x6x4xf32>
  %cut = gpuc.slice %y starts [0, 0, 1, 0] limits [-1, 1, 5, 4] strides [1, 1, 1, 1] : (tensor<1x1x6x4xf32>) -> tensor<1x1x4x4xf32>
  return %cut : tensor<1x1x4x4xf32>
}

// -----

// A transposed convolution's edges: the last row of windows 2 apart, and two columns.
// CHECK-LABEL: @transposed
// CHECK-NEXT: gpuc.conv2d_input_gradient {{.*}} strides [2, 2] padding [1, 1, 1, 3] : (tensor<1x2x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<1x3x8x6xf32>
// CHECK-NEXT: return
func.func @transposed(%dy: tensor<1x2x4x4xf32>, %w: tensor<2x3x4x4xf32>) -> tensor<1x3x8x6xf32> {
  %y = gpuc.conv2d_input_gradient %dy, %w strides [2, 2] padding [0, 1, 1, 1] : (tensor<1x2x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<1x3x9x8xf32>
  %cut = gpuc.slice %y starts [0, 0, 1, 0] limits [-1, 3, 9, 6] strides [1, 1, 1, 1] : (tensor<1x3x9x8xf32>) -> tensor<1x3x8x6xf32>
  return %cut : tensor<1x3x8x6xf32>
}

// -----

// Not zeros; zeros between; around channels; no image of the series; and what is no pad at all.
// CHECK-LABEL: @left_pads
// CHECK-COUNT-4: gpuc.pad
// CHECK-NOT: padding
func.func @left_pads(%x: tensor<1x2x3x3xf32>, %w: tensor<1x2x3x3xf32>, %w3: tensor<1x3x3x3xf32>, %s: tensor<1x2x8xf32>, %w1: tensor<1x1x3x3xf32>)
    -> (tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32>, tensor<1x1x1x1xf32>, tensor<1x1x2x3xf32>) {
  %ones = gpuc.pad %x low [0, 0, 1, 1] high [0, 0, 1, 1] interior [0, 0, 0, 0] {value = 1.0} : (tensor<1x2x3x3xf32>) -> tensor<1x2x5x5xf32>
  %a = gpuc.conv2d %ones, %w : (tensor<1x2x5x5xf32>, tensor<1x2x3x3xf32>) -> tensor<1x1x3x3xf32>
  %apart = gpuc.pad %x low [0, 0, 0, 0] high [0, 0, 0, 0] interior [0, 0, 1, 1] : (tensor<1x2x3x3xf32>) -> tensor<1x2x5x5xf32>
  %b = gpuc.conv2d %apart, %w : (tensor<1x2x5x5xf32>, tensor<1x2x3x3xf32>) -> tensor<1x1x3x3xf32>
  %channels = gpuc.pad %x low [0, 1, 0, 0] high [0, 0, 0, 0] interior [0, 0, 0, 0] : (tensor<1x2x3x3xf32>) -> tensor<1x3x3x3xf32>
  %c = gpuc.conv2d %channels, %w3 : (tensor<1x3x3x3xf32>, tensor<1x3x3x3xf32>) -> tensor<1x1x1x1xf32>
  %series = gpuc.pad %s low [0, 0, 2] high [0, 0, 0] interior [0, 0, 0] : (tensor<1x2x8xf32>) -> tensor<1x2x10xf32>
  %folded = gpuc.reshape %series : tensor<1x2x10xf32> to tensor<1x1x4x5xf32>
  %d = gpuc.conv2d %folded, %w1 : (tensor<1x1x4x5xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x2x3xf32>
  return %a, %b, %c, %d : tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32>, tensor<1x1x1x1xf32>, tensor<1x1x2x3xf32>
}

// -----

// Further inside than padding reaches, at either end; every second column; channels; what is read elsewhere; a bias of each element.
// CHECK-LABEL: @left_cuts
// CHECK-COUNT-6: gpuc.slice
func.func @left_cuts(%x: tensor<1x2x6x6xf32>, %w: tensor<2x2x3x3xf32>, %b: tensor<6xf32>)
    -> (tensor<1x2x4x6xf32>, tensor<1x2x4x6xf32>, tensor<1x2x6x3xf32>, tensor<1x1x6x6xf32>, tensor<1x2x5x6xf32>, tensor<1x2x6x6xf32>, tensor<1x2x5x6xf32>) {
  %y0 = gpuc.conv2d %x, %w padding [1, 1, 1, 1] : (tensor<1x2x6x6xf32>, tensor<2x2x3x3xf32>) -> tensor<1x2x6x6xf32>
  %top = gpuc.slice %y0 starts [0, 0, 2, 0] limits [-1, 2, 6, 6] strides [1, 1, 1, 1] : (tensor<1x2x6x6xf32>) -> tensor<1x2x4x6xf32>
  %y1 = gpuc.conv2d %x, %w padding [1, 1, 1, 1] : (tensor<1x2x6x6xf32>, tensor<2x2x3x3xf32>) -> tensor<1x2x6x6xf32>
  %bottom = gpuc.slice %y1 starts [0, 0, 0, 0] limits [-1, 2, 4, 6] strides [1, 1, 1, 1] : (tensor<1x2x6x6xf32>) -> tensor<1x2x4x6xf32>
  %y2 = gpuc.conv2d %x, %w padding [1, 1, 1, 1] : (tensor<1x2x6x6xf32>, tensor<2x2x3x3xf32>) -> tensor<1x2x6x6xf32>
  %second = gpuc.slice %y2 starts [0, 0, 0, 0] limits [-1, 2, 6, 6] strides [1, 1, 1, 2] : (tensor<1x2x6x6xf32>) -> tensor<1x2x6x3xf32>
  %y3 = gpuc.conv2d %x, %w padding [1, 1, 1, 1] : (tensor<1x2x6x6xf32>, tensor<2x2x3x3xf32>) -> tensor<1x2x6x6xf32>
  %channel = gpuc.slice %y3 starts [0, 1, 0, 0] limits [-1, 2, 6, 6] strides [1, 1, 1, 1] : (tensor<1x2x6x6xf32>) -> tensor<1x1x6x6xf32>
  %y4 = gpuc.conv2d %x, %w padding [1, 1, 1, 1] : (tensor<1x2x6x6xf32>, tensor<2x2x3x3xf32>) -> tensor<1x2x6x6xf32>
  %shared = gpuc.slice %y4 starts [0, 0, 0, 0] limits [-1, 2, 5, 6] strides [1, 1, 1, 1] : (tensor<1x2x6x6xf32>) -> tensor<1x2x5x6xf32>
  %y5 = gpuc.conv2d %x, %w padding [1, 1, 1, 1] : (tensor<1x2x6x6xf32>, tensor<2x2x3x3xf32>) -> tensor<1x2x6x6xf32>
  %rows = gpuc.broadcast %b dims [2] : tensor<6xf32> to tensor<1x2x6x6xf32>
  %sum = gpuc.add %y5, %rows : tensor<1x2x6x6xf32>
  %biased = gpuc.slice %sum starts [0, 0, 0, 0] limits [-1, 2, 5, 6] strides [1, 1, 1, 1] : (tensor<1x2x6x6xf32>) -> tensor<1x2x5x6xf32>
  return %top, %bottom, %second, %channel, %shared, %y4, %biased : tensor<1x2x4x6xf32>, tensor<1x2x4x6xf32>, tensor<1x2x6x3xf32>, tensor<1x1x6x6xf32>, tensor<1x2x5x6xf32>, tensor<1x2x6x6xf32>, tensor<1x2x5x6xf32>
}

// -----

// An empty image; what is cut down to nothing; and sums and series that are read whole elsewhere.
// CHECK-LABEL: @left_whole
// CHECK: gpuc.pad
// CHECK-COUNT-3: gpuc.slice
func.func @left_whole(%none: tensor<1x2x0x4xf32>, %one: tensor<1x2x1x1xf32>, %x: tensor<1x2x1x6xf32>, %w: tensor<2x2x1x3xf32>, %b: tensor<2xf32>)
    -> (tensor<1x2x2x2xf32>, tensor<1x2x1x0xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x6xf32>, tensor<1x2x4xf32>, tensor<1x2x6xf32>) {
  %zeros = gpuc.pad %none low [0, 0, 2, 0] high [0, 0, 0, 0] interior [0, 0, 0, 0] : (tensor<1x2x0x4xf32>) -> tensor<1x2x2x4xf32>
  %of_zeros = gpuc.conv2d %zeros, %w : (tensor<1x2x2x4xf32>, tensor<2x2x1x3xf32>) -> tensor<1x2x2x2xf32>
  %y0 = gpuc.conv2d %one, %w padding [0, 0, 0, 4] : (tensor<1x2x1x1xf32>, tensor<2x2x1x3xf32>) -> tensor<1x2x1x3xf32>
  %nothing = gpuc.slice %y0 starts [0, 0, 0, 0] limits [-1, 2, 1, 0] strides [1, 1, 1, 1] : (tensor<1x2x1x3xf32>) -> tensor<1x2x1x0xf32>
  %y1 = gpuc.conv2d %x, %w padding [0, 0, 1, 1] : (tensor<1x2x1x6xf32>, tensor<2x2x1x3xf32>) -> tensor<1x2x1x6xf32>
  %bias = gpuc.broadcast %b dims [1] : tensor<2xf32> to tensor<1x2x1x6xf32>
  %sum = gpuc.add %y1, %bias : tensor<1x2x1x6xf32>
  %of_sum = gpuc.slice %sum starts [0, 0, 0, 1] limits [-1, 2, 1, 5] strides [1, 1, 1, 1] : (tensor<1x2x1x6xf32>) -> tensor<1x2x1x4xf32>
  %y2 = gpuc.conv2d %x, %w padding [0, 0, 1, 1] : (tensor<1x2x1x6xf32>, tensor<2x2x1x3xf32>) -> tensor<1x2x1x6xf32>
  %series = gpuc.reshape %y2 : tensor<1x2x1x6xf32> to tensor<1x2x6xf32>
  %of_series = gpuc.slice %series starts [0, 0, 1] limits [-1, 2, 5] strides [1, 1, 1] : (tensor<1x2x6xf32>) -> tensor<1x2x4xf32>
  return %of_zeros, %nothing, %of_sum, %sum, %of_series, %series : tensor<1x2x2x2xf32>, tensor<1x2x1x0xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x6xf32>, tensor<1x2x4xf32>, tensor<1x2x6xf32>
}
