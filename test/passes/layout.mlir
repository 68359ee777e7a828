// RUN: gpuc-opt %s --gpuc-layout=target=cuda:sm_90 --canonicalize --cse -split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-layout=target=cuda:sm_90 --canonicalize --cse --gpuc-fuse=target=cuda:sm_90 -split-input-file | FileCheck %s --check-prefix=FUSED
// On the host nothing changes.
// RUN: gpuc-opt %s --canonicalize --cse -split-input-file -o %t.before
// RUN: gpuc-opt %s --gpuc-layout=target=host --canonicalize --cse -split-input-file | diff %t.before -

// Two layers and their gradients. Transposes are left at the image, at filters and at their gradients; none between layers. Kernels
// take them in: that of the cast which makes a filter, and that of the cast which reads its gradient.

// CHECK-LABEL: func.func @layers(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<8x16x12x12xf32>, %[[W:[^:]*]]: tensor<32x16x3x3xf32>, %[[V:[^:]*]]: tensor<64x32x3x3xf32>
// CHECK-DAG:     gpuc.transpose %[[X]] permutation [0, 2, 3, 1] : (tensor<8x16x12x12xf32>) -> tensor<8x12x12x16xf32>
// CHECK-DAG:     %[[W16:.*]] = gpuc.cast %[[W]] :
// CHECK-DAG:     gpuc.transpose %[[W16]] permutation [0, 2, 3, 1] : (tensor<32x16x3x3xbf16>) -> tensor<32x3x3x16xbf16>
// CHECK-DAG:     %[[V16:.*]] = gpuc.cast %[[V]] :
// CHECK-DAG:     gpuc.transpose %[[V16]] permutation [0, 2, 3, 1] : (tensor<64x32x3x3xbf16>) -> tensor<64x3x3x32xbf16>
// CHECK-NOT:     gpuc.transpose
// CHECK:         gpuc.conv2d %{{.*}} padding [1, 1, 1, 1] channels_last : (tensor<8x12x12x16xbf16>, tensor<32x3x3x16xbf16>) -> tensor<8x12x12x32xbf16>
// CHECK-NOT:     gpuc.transpose
// CHECK:         gpuc.relu %{{.*}} : tensor<8x12x12x32xbf16>
// CHECK:         gpuc.conv2d %{{.*}} channels_last
// CHECK-NOT:     gpuc.transpose
// CHECK:         gpuc.conv2d_input_gradient %{{.*}} channels_last
// CHECK:         %[[DW:.*]] = gpuc.conv2d_filter_gradient %{{.*}} channels_last : (tensor<8x12x12x64xbf16>, tensor<8x12x12x32xbf16>) -> tensor<64x3x3x32xbf16>
// CHECK:         gpuc.transpose %[[DW]] permutation [0, 3, 1, 2]
// CHECK-NOT:     gpuc.transpose
// CHECK:         return
// FUSED-LABEL: func.func @layers(
// FUSED-DAG:     gpuc.fused "{{(cast_transpose|transpose_cast|cast)[_0-9]*}}"(%arg0) : (tensor<8x16x12x12xf32>) -> tensor<8x12x12x16xbf16>
// FUSED-DAG:     gpuc.fused "cast_transpose{{[_0-9]*}}"(%arg1) : (tensor<32x16x3x3xf32>) -> tensor<32x3x3x16xbf16>
// FUSED-DAG:     gpuc.fused "cast_transpose{{[_0-9]*}}"(%arg2) : (tensor<64x32x3x3xf32>) -> tensor<64x3x3x32xbf16>
// FUSED:         gpuc.fused "cast{{[_0-9]*}}"(%{{.*}}) : (tensor<64x3x3x32xbf16>) -> tensor<64x32x3x3xf32>
func.func @layers(%x: tensor<8x16x12x12xf32>, %w: tensor<32x16x3x3xf32>, %v: tensor<64x32x3x3xf32>) -> (tensor<f32>, tensor<64x32x3x3xf32>) {
  %x16 = gpuc.cast %x : tensor<8x16x12x12xf32> to tensor<8x16x12x12xbf16>
  %w16 = gpuc.cast %w : tensor<32x16x3x3xf32> to tensor<32x16x3x3xbf16>
  %v16 = gpuc.cast %v : tensor<64x32x3x3xf32> to tensor<64x32x3x3xbf16>
  %y = gpuc.conv2d %x16, %w16 padding [1, 1, 1, 1] : (tensor<8x16x12x12xbf16>, tensor<32x16x3x3xbf16>) -> tensor<8x32x12x12xbf16>
  %r = gpuc.relu %y : tensor<8x32x12x12xbf16>
  %z = gpuc.conv2d %r, %v16 padding [1, 1, 1, 1] : (tensor<8x32x12x12xbf16>, tensor<64x32x3x3xbf16>) -> tensor<8x64x12x12xbf16>
  %dr = gpuc.conv2d_input_gradient %z, %v16 padding [1, 1, 1, 1] : (tensor<8x64x12x12xbf16>, tensor<64x32x3x3xbf16>) -> tensor<8x32x12x12xbf16>
  %dv = gpuc.conv2d_filter_gradient %z, %r padding [1, 1, 1, 1] : (tensor<8x64x12x12xbf16>, tensor<8x32x12x12xbf16>) -> tensor<64x32x3x3xbf16>
  %d = gpuc.cast %dr : tensor<8x32x12x12xbf16> to tensor<8x32x12x12xf32>
  %s = gpuc.sum %d dims [0, 1, 2, 3] : (tensor<8x32x12x12xf32>) -> tensor<f32>
  %dv32 = gpuc.cast %dv : tensor<64x32x3x3xbf16> to tensor<64x32x3x3xf32>
  return %s, %dv32 : tensor<f32>, tensor<64x32x3x3xf32>
}

// -----

// A norm: sums by channel, first within each image and then over images, and broadcasts of what came of them. Indices and
// numbers that fill an image are made in the new order.

// CHECK-LABEL: func.func @norm(
// CHECK:         %[[C:.*]] = gpuc.constant 1.0 : tensor<8x6x6x32xbf16>
// CHECK:         %[[Y:.*]] = gpuc.conv2d %{{.*}} channels_last
// CHECK:         %[[I:.*]] = gpuc.sum %[[Y]] dims [1, 2] : (tensor<8x6x6x32xbf16>) -> tensor<8x32xbf16>
// CHECK:         %[[S:.*]] = gpuc.sum %[[I]] dims [0] : (tensor<8x32xbf16>) -> tensor<32xbf16>
// CHECK:         %[[B:.*]] = gpuc.broadcast %[[S]] dims [3] : tensor<32xbf16> to tensor<8x6x6x32xbf16>
// CHECK:         %[[D:.*]] = gpuc.sub %[[Y]], %[[B]]
// CHECK:         %[[E:.*]] = gpuc.add %[[D]], %[[C]]
// CHECK:         %[[Z:.*]] = gpuc.conv2d %[[E]], %{{.*}} channels_last
// CHECK-NEXT:    %[[P:.*]] = gpuc.sum %[[Z]] dims [1, 2] : (tensor<8x6x6x32xbf16>) -> tensor<8x32xbf16>
// CHECK-NEXT:    %[[A:.*]] = gpuc.argmax %[[Z]] dim 3 : (tensor<8x6x6x32xbf16>) -> tensor<8x6x6xi64>
// What keeps channels before pixels gets them back where it is smallest.
// CHECK-NEXT:    %[[M:.*]] = gpuc.reduce_max %[[Z]] dims [0] : (tensor<8x6x6x32xbf16>) -> tensor<6x6x32xbf16>
// CHECK-NEXT:    %[[T:.*]] = gpuc.transpose %[[M]] permutation [2, 0, 1] : (tensor<6x6x32xbf16>) -> tensor<32x6x6xbf16>
// CHECK-NEXT:    return %[[P]], %[[A]], %[[T]]
func.func @norm(%x: tensor<8x32x6x6xbf16>, %w: tensor<32x32x3x3xbf16>) -> (tensor<8x32xbf16>, tensor<8x6x6xi64>, tensor<32x6x6xbf16>) {
  %one = gpuc.constant 1.0 : tensor<8x32x6x6xbf16>
  %y = gpuc.conv2d %x, %w padding [1, 1, 1, 1] : (tensor<8x32x6x6xbf16>, tensor<32x32x3x3xbf16>) -> tensor<8x32x6x6xbf16>
  %s = gpuc.sum %y dims [0, 2, 3] : (tensor<8x32x6x6xbf16>) -> tensor<32xbf16>
  %b = gpuc.broadcast %s dims [1] : tensor<32xbf16> to tensor<8x32x6x6xbf16>
  %d = gpuc.sub %y, %b : tensor<8x32x6x6xbf16>
  %e = gpuc.add %d, %one : tensor<8x32x6x6xbf16>
  %z = gpuc.conv2d %e, %w padding [1, 1, 1, 1] : (tensor<8x32x6x6xbf16>, tensor<32x32x3x3xbf16>) -> tensor<8x32x6x6xbf16>
  %p = gpuc.sum %z dims [2, 3] : (tensor<8x32x6x6xbf16>) -> tensor<8x32xbf16>
  %a = gpuc.argmax %z dim 1 : (tensor<8x32x6x6xbf16>) -> tensor<8x6x6xi64>
  %m = gpuc.reduce_max %z dims [0] : (tensor<8x32x6x6xbf16>) -> tensor<32x6x6xbf16>
  return %p, %a, %m : tensor<8x32xbf16>, tensor<8x6x6xi64>, tensor<32x6x6xbf16>
}

// -----

// Poolings, their gradients, and what says of dimensions by number.

// CHECK-LABEL: func.func @windows(
// CHECK:         gpuc.max_pool2d %{{.*}} window [2, 2] strides [2, 2] channels_last : (tensor<8x12x12x32xbf16>) -> (tensor<8x6x6x32xbf16>, tensor<8x6x6x32xi64>)
// CHECK-NEXT:    gpuc.avg_pool2d %{{.*}} window [3, 3] padding [1, 1, 1, 1] channels_last : (tensor<8x6x6x32xbf16>)
// CHECK-NEXT:    gpuc.avg_pool2d_gradient %{{.*}} window [3, 3] padding [1, 1, 1, 1] channels_last
// CHECK-NEXT:    gpuc.max_pool2d_gradient %{{.*}} window [2, 2] strides [2, 2] channels_last
// CHECK-NEXT:    gpuc.slice %{{.*}} starts [0, 2, 0, 8] limits [8, 12, 11, 32] strides [1, 2, 1, 1] : (tensor<8x12x12x32xbf16>) -> tensor<8x5x11x24xbf16>
// CHECK-NEXT:    gpuc.pad %{{.*}} low [0, 1, 2, 0] high [0, 3, 4, 8] interior [0, 0, 1, 0] : (tensor<8x5x11x24xbf16>) -> tensor<8x9x27x32xbf16>
// CHECK-NEXT:    gpuc.reverse %{{.*}} dims [2, 3] : tensor<8x9x27x32xbf16>
// CHECK-NEXT:    gpuc.concat %{{.*}} dim 3 : (tensor<8x9x27x32xbf16>, tensor<8x9x27x32xbf16>) -> tensor<8x9x27x64xbf16>
// CHECK-NEXT:    gpuc.sum %{{.*}} dims [0, 1, 2, 3]
func.func @windows(%x: tensor<8x32x12x12xbf16>, %w: tensor<32x32x3x3xbf16>) -> tensor<bf16> {
  %y = gpuc.conv2d %x, %w padding [1, 1, 1, 1] : (tensor<8x32x12x12xbf16>, tensor<32x32x3x3xbf16>) -> tensor<8x32x12x12xbf16>
  %v, %i = gpuc.max_pool2d %y window [2, 2] strides [2, 2] : (tensor<8x32x12x12xbf16>) -> (tensor<8x32x6x6xbf16>, tensor<8x32x6x6xi64>)
  %a = gpuc.avg_pool2d %v window [3, 3] padding [1, 1, 1, 1] : (tensor<8x32x6x6xbf16>) -> tensor<8x32x6x6xbf16>
  %da = gpuc.avg_pool2d_gradient %a window [3, 3] padding [1, 1, 1, 1] : (tensor<8x32x6x6xbf16>) -> tensor<8x32x6x6xbf16>
  %dv = gpuc.max_pool2d_gradient %da, %i window [2, 2] strides [2, 2] : (tensor<8x32x6x6xbf16>, tensor<8x32x6x6xi64>) -> tensor<8x32x12x12xbf16>
  %s = gpuc.slice %dv starts [0, 8, 2, 0] limits [8, 32, 12, 11] strides [1, 1, 2, 1] : (tensor<8x32x12x12xbf16>) -> tensor<8x24x5x11xbf16>
  %p = gpuc.pad %s low [0, 0, 1, 2] high [0, 8, 3, 4] interior [0, 0, 0, 1] : (tensor<8x24x5x11xbf16>) -> tensor<8x32x9x27xbf16>
  %r = gpuc.reverse %p dims [1, 3] : tensor<8x32x9x27xbf16>
  %c = gpuc.concat %p, %r dim 1 : (tensor<8x32x9x27xbf16>, tensor<8x32x9x27xbf16>) -> tensor<8x64x9x27xbf16>
  %t = gpuc.sum %c dims [0, 1, 2, 3] : (tensor<8x64x9x27xbf16>) -> tensor<bf16>
  return %t : tensor<bf16>
}

// -----

// A flatten needs the order that the model has: one transpose, which the kernel of the relu takes in.

// CHECK-LABEL: func.func @flatten(
// CHECK:         %[[R:.*]] = gpuc.relu %{{.*}} : tensor<8x6x6x32xbf16>
// CHECK:         %[[T:.*]] = gpuc.transpose %[[R]] permutation [0, 3, 1, 2]
// CHECK:         gpuc.reshape %[[T]] : tensor<8x32x6x6xbf16> to tensor<8x1152xbf16>
// FUSED-LABEL: func.func @flatten(
// FUSED:         gpuc.fused "relu_transpose"(%{{.*}}) : (tensor<8x6x6x32xbf16>) -> tensor<8x32x6x6xbf16>
func.func @flatten(%x: tensor<8x32x6x6xbf16>, %w: tensor<32x32x3x3xbf16>, %v: tensor<1152x8xbf16>) -> tensor<8x8xbf16> {
  %y = gpuc.conv2d %x, %w padding [1, 1, 1, 1] : (tensor<8x32x6x6xbf16>, tensor<32x32x3x3xbf16>) -> tensor<8x32x6x6xbf16>
  %r = gpuc.relu %y : tensor<8x32x6x6xbf16>
  %f = gpuc.reshape %r : tensor<8x32x6x6xbf16> to tensor<8x1152xbf16>
  %z = gpuc.matmul %f, %v : (tensor<8x1152xbf16>, tensor<1152x8xbf16>) -> tensor<8x8xbf16>
  return %z : tensor<8x8xbf16>
}

// -----

// Each microbatch of a loop is a block of its own; the loop's input is an edge.

// CHECK-LABEL: func.func @microbatches(
// CHECK:         gpuc.scan
// CHECK:         ^bb0(%[[X:[^:]*]]: tensor<8x32x6x6xbf16>
// CHECK:         gpuc.transpose %[[X]] permutation [0, 2, 3, 1]
// CHECK:         gpuc.conv2d %{{.*}} channels_last
func.func @microbatches(%xs: tensor<4x8x32x6x6xbf16>, %w: tensor<32x32x3x3xbf16>) -> tensor<bf16> {
  %zero = gpuc.constant 0.0 : tensor<bf16>
  %total = gpuc.scan over(%xs) carry(%zero) captures(%w) : (tensor<4x8x32x6x6xbf16>, tensor<bf16>, tensor<32x32x3x3xbf16>) -> tensor<bf16> {
  ^bb0(%x: tensor<8x32x6x6xbf16>, %sum: tensor<bf16>, %f: tensor<32x32x3x3xbf16>):
    %r = gpuc.relu %x : tensor<8x32x6x6xbf16>
    %y = gpuc.conv2d %r, %f padding [1, 1, 1, 1] : (tensor<8x32x6x6xbf16>, tensor<32x32x3x3xbf16>) -> tensor<8x32x6x6xbf16>
    %s = gpuc.sum %y dims [0, 1, 2, 3] : (tensor<8x32x6x6xbf16>) -> tensor<bf16>
    %t = gpuc.add %sum, %s : tensor<bf16>
    gpuc.yield %t : tensor<bf16>
  }
  return %total : tensor<bf16>
}

// -----

// Products that are not made on tensor cores stay: f32, and f64.

// CHECK-LABEL: func.func @f32(
// CHECK-NOT:     channels_last
// CHECK-NOT:     gpuc.transpose
// CHECK:         return
func.func @f32(%x: tensor<8x32x6x6xf32>, %w: tensor<32x32x3x3xf32>) -> tensor<f32> {
  %y = gpuc.conv2d %x, %w : (tensor<8x32x6x6xf32>, tensor<32x32x3x3xf32>) -> tensor<8x32x4x4xf32>
  %s = gpuc.sum %y dims [0, 1, 2, 3] : (tensor<8x32x4x4xf32>) -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// The same in TF32: kernels read the result, and only the image and the filter are copied.

// CHECK-LABEL: func.func @tf32(
// CHECK-COUNT-2: gpuc.transpose
// CHECK-NOT:     gpuc.transpose
// CHECK:         gpuc.conv2d %{{.*}} channels_last {gpuc.tf32}
func.func @tf32(%x: tensor<8x32x6x6xf32>, %w: tensor<32x32x3x3xf32>) -> tensor<f32> {
  %y = gpuc.conv2d %x, %w {gpuc.tf32} : (tensor<8x32x6x6xf32>, tensor<32x32x3x3xf32>) -> tensor<8x32x4x4xf32>
  %s = gpuc.sum %y dims [0, 1, 2, 3] : (tensor<8x32x4x4xf32>) -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// Turning around image, filter and result by kernels moves just what cuDNN would move: it does not pay.

// CHECK-LABEL: func.func @alone(
// CHECK-NOT:     gpuc.transpose
// CHECK-NOT:     channels_last
// CHECK:         return
func.func @alone(%x: tensor<8x32x6x6xbf16>, %w: tensor<32x32x3x3xbf16>) -> tensor<8x32x4x4xbf16> {
  %y = gpuc.conv2d %x, %w : (tensor<8x32x6x6xbf16>, tensor<32x32x3x3xbf16>) -> tensor<8x32x4x4xbf16>
  return %y : tensor<8x32x4x4xbf16>
}

// -----

// Nor with channels that fill no 16 bytes: cuDNN has to copy them anyway.

// CHECK-LABEL: func.func @three_channels(
// CHECK-NOT:     channels_last
// CHECK:         return
func.func @three_channels(%x: tensor<8x3x6x6xbf16>, %w: tensor<5x3x3x3xbf16>) -> tensor<bf16> {
  %y = gpuc.conv2d %x, %w : (tensor<8x3x6x6xbf16>, tensor<5x3x3x3xbf16>) -> tensor<8x5x4x4xbf16>
  %s = gpuc.sum %y dims [0, 1, 2, 3] : (tensor<8x5x4x4xbf16>) -> tensor<bf16>
  return %s : tensor<bf16>
}

// -----

// Small images that are summed twice: what cuDNN would move is little, and each sum takes two kernels more.

// CHECK:         "conv2d", "", {{.*}}, "channels_first", "", "", "transposes take 4 kernels and 0 bytes, cuDNN's own 3 kernels and {{[0-9]+}} bytes"
// CHECK-LABEL: func.func @small_norm(
// CHECK-NOT:     channels_last
// CHECK:         return
func.func @small_norm(%x: tensor<8x32x4x4xbf16>, %w: tensor<32x32x3x3xf32>) -> tensor<32xbf16> {
  %w16 = gpuc.cast %w : tensor<32x32x3x3xf32> to tensor<32x32x3x3xbf16>
  %r = gpuc.relu %x : tensor<8x32x4x4xbf16>
  %y = gpuc.conv2d %r, %w16 padding [1, 1, 1, 1] : (tensor<8x32x4x4xbf16>, tensor<32x32x3x3xbf16>) -> tensor<8x32x4x4xbf16>
  %a = gpuc.exp %y : tensor<8x32x4x4xbf16>
  %s0 = gpuc.sum %y dims [0, 2, 3] : (tensor<8x32x4x4xbf16>) -> tensor<32xbf16>
  %s1 = gpuc.sum %a dims [0, 2, 3] : (tensor<8x32x4x4xbf16>) -> tensor<32xbf16>
  %t = gpuc.add %s0, %s1 : tensor<32xbf16>
  return %t : tensor<32xbf16>
}
