// What convolutions and poolings refuse.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

// A filter of one output is still of rank 4.
func.func @case(%x: tensor<2x3x8x8xf32>, %w: tensor<3x3x3xf32>) {
  // expected-error @below {{input 'tensor<2x3x8x8xf32>' and filter 'tensor<3x3x3xf32>' must be of rank 4 and of one element type, the filter without a batch [conv_C1]}}
  %0 = gpuc.conv2d %x, %w : (tensor<2x3x8x8xf32>, tensor<3x3x3xf32>) -> tensor<2x1x6x6xf32>
  return
}

// -----

func.func @case(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf64>) {
  // expected-error @below {{must be of rank 4 and of one element type, the filter without a batch [conv_C1]}}
  %0 = gpuc.conv2d %x, %w : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf64>) -> tensor<2x4x6x6xf32>
  return
}

// -----

// The batch is no number of outputs.
func.func @case(%x: tensor<2x3x8x8xf32>, %w: tensor<?x3x3x3xf32>) {
  // expected-error @below {{the filter without a batch [conv_C1]}}
  %0 = gpuc.conv2d %x, %w : (tensor<2x3x8x8xf32>, tensor<?x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  return
}

// -----

// Convolutions are of floating-point numbers.
func.func @case(%x: tensor<2x3x8x8xi32>, %w: tensor<4x3x3x3xi32>) {
  // expected-error @below {{operand #0 must be floating-point tensor}}
  %0 = gpuc.conv2d %x, %w : (tensor<2x3x8x8xi32>, tensor<4x3x3x3xi32>) -> tensor<2x4x6x6xi32>
  return
}

// -----

func.func @case(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{strides [0, 1], padding [0, 0, 0, 0], dilation [1, 1] and groups 1 must be two numbers of at least 1, four of at least 0, two of at least 1 and one of at least 1, all less than 2^31 [conv_C2]}}
  %0 = gpuc.conv2d %x, %w strides [0, 1] : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  return
}

// -----

// Symmetric padding is written out.
func.func @case(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{padding [1, 1], dilation [1, 1] and groups 1 must be two numbers of at least 1, four of at least 0}}
  %0 = gpuc.conv2d %x, %w padding [1, 1] : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x8x8xf32>
  return
}

// -----

// Sums of larger numbers would not fit.
func.func @case(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{dilation [9223372036854775807, 1] and groups 1 must be}}
  %0 = gpuc.conv2d %x, %w dilation [9223372036854775807, 1] : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  return
}

// -----

func.func @case(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{and groups 0 must be}}
  %0 = gpuc.conv2d %x, %w groups 0 : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  return
}

// -----

func.func @case(%x: tensor<2x3x8x8xf32>, %w: tensor<4x2x3x3xf32>) {
  // expected-error @below {{input 'tensor<2x3x8x8xf32>' and filter 'tensor<4x2x3x3xf32>' do not agree in 1 groups: the filter has 2 input channels, 3 / 1 are wanted, and its 4 outputs must be a multiple of the groups [conv_C3]}}
  %0 = gpuc.conv2d %x, %w : (tensor<2x3x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<2x4x6x6xf32>
  return
}

// -----

// 4 outputs cannot be shared by 3 groups.
func.func @case(%x: tensor<2x3x8x8xf32>, %w: tensor<4x1x3x3xf32>) {
  // expected-error @below {{do not agree in 3 groups}}
  %0 = gpuc.conv2d %x, %w groups 3 : (tensor<2x3x8x8xf32>, tensor<4x1x3x3xf32>) -> tensor<2x4x6x6xf32>
  return
}

// -----

// Three rows two apart take five, the image and its padding have four.
func.func @case(%x: tensor<2x3x2x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{input 'tensor<2x3x2x8xf32>' and filter 'tensor<4x3x3x3xf32>' do not fit: the filter spans 5 of 2 elements with 1 and 1 of padding, and no extent may be 0 or as large as 2^31 [conv_C4]}}
  %0 = gpuc.conv2d %x, %w padding [1, 1, 0, 0] dilation [2, 1] : (tensor<2x3x2x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x1x6xf32>
  return
}

// -----

// The result's type follows from the operands.
func.func @case(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{must return ('tensor<2x4x6x6xf32>'), but returns ('tensor<2x4x8x8xf32>') [inferred_C1]}}
  %0 = gpuc.conv2d %x, %w : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x8x8xf32>
  return
}

// -----

// An image of 8 rows has 6 windows.
func.func @case(%dy: tensor<2x4x7x6xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{cotangent must be 'tensor<2x4x6x6xf32>', but is 'tensor<2x4x7x6xf32>' [conv_C5]}}
  %0 = gpuc.conv2d_input_gradient %dy, %w : (tensor<2x4x7x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x3x8x8xf32>
  return
}

// -----

func.func @case(%dy: tensor<3x4x6x6xf32>, %x: tensor<2x3x8x8xf32>) {
  // expected-error @below {{cotangent must be 'tensor<2x4x6x6xf32>', but is 'tensor<3x4x6x6xf32>' [conv_C5]}}
  %0 = gpuc.conv2d_filter_gradient %dy, %x : (tensor<3x4x6x6xf32>, tensor<2x3x8x8xf32>) -> tensor<4x3x3x3xf32>
  return
}

// -----

func.func @case(%x: tensor<3x8x8xf32>) {
  // expected-error @below {{images 'tensor<3x8x8xf32>' must have rank 4: (N, C, H, W) [pool_C1]}}
  %0 = gpuc.avg_pool2d %x window [2, 2] : (tensor<3x8x8xf32>) -> tensor<3x7x7xf32>
  return
}

// -----

func.func @case(%x: tensor<2x3x8x8xf32>) {
  // expected-error @below {{window [2], strides [1, 1], padding [0, 0, 0, 0] and dilation [1, 1] must be two numbers of at least 1, two of at least 1, four of at least 0 and two of at least 1, all less than 2^31 [pool_C2]}}
  %0, %1 = gpuc.max_pool2d %x window [2] : (tensor<2x3x8x8xf32>) -> (tensor<2x3x7x7xf32>, tensor<2x3x7x7xi64>)
  return
}

// -----

func.func @case(%x: tensor<2x3x8x8xf32>) {
  // expected-error @below {{padding [-1, 0, 0, 0] and dilation [1, 1] must be}}
  %0, %1 = gpuc.max_pool2d %x window [2, 2] padding [-1, 0, 0, 0] : (tensor<2x3x8x8xf32>) -> (tensor<2x3x6x7xf32>, tensor<2x3x6x7xi64>)
  return
}

// -----

// The first window would hold nothing but padding.
func.func @case(%x: tensor<2x3x8x8xf32>) {
  // expected-error @below {{images 'tensor<2x3x8x8xf32>': of windows that span 2 in steps of 1 over 8 elements with 2 and 0 of padding there must be one, and each must hold an element [pool_C3]}}
  %0, %1 = gpuc.max_pool2d %x window [2, 2] padding [2, 0, 0, 0] : (tensor<2x3x8x8xf32>) -> (tensor<2x3x9x7xf32>, tensor<2x3x9x7xi64>)
  return
}

// -----

// So would the last.
func.func @case(%x: tensor<2x3x8x8xf32>) {
  // expected-error @below {{of windows that span 2 in steps of 1 over 8 elements with 0 and 2 of padding there must be one, and each must hold an element [pool_C3]}}
  %0 = gpuc.avg_pool2d %x window [2, 2] padding [0, 0, 0, 2] : (tensor<2x3x8x8xf32>) -> tensor<2x3x7x9xf32>
  return
}

// -----

// The window's two columns lie at -1 and 2, the image's at 0 and 1.
func.func @case(%x: tensor<2x3x8x2xf32>) {
  // expected-error @below {{of windows that span 4 in steps of 1 over 2 elements with 1 and 1 of padding there must be one, and each must hold an element [pool_C3]}}
  %0, %1 = gpuc.max_pool2d %x window [2, 2] padding [0, 0, 1, 1] dilation [1, 3] : (tensor<2x3x8x2xf32>) -> (tensor<2x3x7x1xf32>, tensor<2x3x7x1xi64>)
  return
}

// -----

// There is no window of nine rows.
func.func @case(%x: tensor<2x3x8x8xf32>) {
  // expected-error @below {{of windows that span 9 in steps of 1 over 8 elements}}
  %0 = gpuc.avg_pool2d %x window [9, 2] : (tensor<2x3x8x8xf32>) -> tensor<2x3x1x7xf32>
  return
}

// -----

func.func @case(%dy: tensor<2x3x4x5xf32>, %i: tensor<2x3x4x4xi64>) {
  // expected-error @below {{cotangent must be 'tensor<2x3x4x4xf32>', but is 'tensor<2x3x4x5xf32>' [pool_C4]}}
  %0 = gpuc.max_pool2d_gradient %dy, %i window [2, 2] strides [2, 2] : (tensor<2x3x4x5xf32>, tensor<2x3x4x4xi64>) -> tensor<2x3x8x8xf32>
  return
}

// -----

func.func @case(%x: tensor<2x3x8x8xf32>, %i: tensor<2x3x4x4xi32>) {
  // expected-error @below {{indices must be 'tensor<2x3x4x4xi64>' or 'tensor<2x3x4x4xui8>', but are 'tensor<2x3x4x4xi32>' [pool_C5]}}
  %0 = gpuc.max_pool2d_gather %x, %i window [2, 2] strides [2, 2] : (tensor<2x3x8x8xf32>, tensor<2x3x4x4xi32>) -> tensor<2x3x4x4xf32>
  return
}

// -----

// A byte has no room for the places in a window of 17 × 16.
func.func @case(%x: tensor<2x3x17x17xf32>) {
  // expected-error @below {{indices must be 'tensor<2x3x1x2xi64>' or 'tensor<2x3x1x2xi32>', but are 'tensor<2x3x1x2xui8>' [pool_C5]}}
  %0, %1 = gpuc.max_pool2d %x window [17, 16] : (tensor<2x3x17x17xf32>) -> (tensor<2x3x1x2xf32>, tensor<2x3x1x2xui8>)
  return
}

// -----

func.func @case(%x: tensor<2x3x8x8xf32>) {
  // expected-error @below {{must return ('tensor<2x3x4x4xf32>', 'tensor<2x3x4x4xi64>'), but returns ('tensor<2x3x4x4xf32>', 'tensor<2x3x4x5xui8>') [inferred_C1]}}
  %0, %1 = gpuc.max_pool2d %x window [2, 2] strides [2, 2] : (tensor<2x3x8x8xf32>) -> (tensor<2x3x4x4xf32>, tensor<2x3x4x5xui8>)
  return
}

// -----

func.func @case(%dy: tensor<2x3x4x4xf64>) {
  // expected-error @below {{cotangent must be 'tensor<2x3x4x4xf32>', but is 'tensor<2x3x4x4xf64>' [pool_C4]}}
  %0 = gpuc.avg_pool2d_gradient %dy window [2, 2] strides [2, 2] : (tensor<2x3x4x4xf64>) -> tensor<2x3x8x8xf32>
  return
}

// -----

// With channels last the filter has its input channels in dimension 3; the message has the types as written.
func.func @case(%x: tensor<2x8x8x3xf32>, %w: tensor<4x3x3x2xf32>) {
  // expected-error @below {{input 'tensor<2x8x8x3xf32>' and filter 'tensor<4x3x3x2xf32>' do not agree in 1 groups: the filter has 2 input channels, 3 / 1 are wanted}}
  %0 = gpuc.conv2d %x, %w channels_last : (tensor<2x8x8x3xf32>, tensor<4x3x3x2xf32>) -> tensor<2x6x6x4xf32>
  return
}

// -----

func.func @case(%y: tensor<2x4x6x6xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{cotangent must be 'tensor<2x6x6x4xf32>', but is 'tensor<2x4x6x6xf32>' [conv_C5]}}
  %0 = gpuc.conv2d_input_gradient %y, %w channels_last : (tensor<2x4x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x8x8x3xf32>
  return
}

// -----

func.func @case(%x: tensor<2x8x8x3xf32>) {
  // expected-error @below {{must return ('tensor<2x4x4x3xf32>'), but returns ('tensor<2x8x4x1xf32>') [inferred_C1]}}
  %0 = gpuc.avg_pool2d %x window [2, 2] strides [2, 2] channels_last : (tensor<2x8x8x3xf32>) -> tensor<2x8x4x1xf32>
  return
}

// -----

func.func @case(%x: tensor<2x8x1x3xf32>) {
  // expected-error @below {{images 'tensor<2x8x1x3xf32>': of windows that span 2 in steps of 1 over 1 elements with 0 and 0 of padding there must be one}}
  %0 = gpuc.avg_pool2d %x window [2, 2] channels_last : (tensor<2x8x1x3xf32>) -> tensor<2x7x0x3xf32>
  return
}
