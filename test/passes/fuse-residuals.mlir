// RUN: gpuc-opt %s --gpuc-fuse --split-input-file | FileCheck %s

// What the forward pass computes and the backward pass reads waits in memory. A byte of it costs what it takes to move
// two (FuseCost.h), if more waits than the caches hold; and so costly values are computed again where they are read.

// 4 MiB. To store and to load an element takes 0.4 ns, that it waits costs 0.4 more, to compute the tanh again 0.5; %x
// is there anyway.
// CHECK-LABEL: func.func @tanh_again(
// CHECK:         %[[Y:.*]] = gpuc.fused "tanh_mul"(%arg0) : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
// CHECK:         gpuc.fused "f.backward.tanh_mul"(%arg0, %{{.*}})
// CHECK:           gpuc.tanh
func.func @tanh_again(%x: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>, tensor<1024x1024xf32>) {
  %t = gpuc.tanh %x : tensor<1024x1024xf32>
  %y = gpuc.mul %x, %t : tensor<1024x1024xf32>
  %z = gpuc.matmul %y, %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %dy = gpuc.matmul %z, transpose %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %d = gpuc.mul %dy, %t : tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %dx = gpuc.mul %d, %x : tensor<1024x1024xf32> loc(fused<"backward">["f"])
  return %z, %dx : tensor<1024x1024xf32>, tensor<1024x1024xf32>
}

// -----

// 1 MiB is still in a cache when the backward pass comes to it, and is kept for nothing.
// CHECK-LABEL: func.func @tanh_in_the_cache(
// CHECK:         %[[F:.*]]:2 = gpuc.fused "tanh_mul"(%arg0)
// CHECK:         gpuc.fused "f.backward.mul"(%{{.*}}, %[[F]]#0, %arg0)
// CHECK-NOT:     gpuc.tanh
// CHECK:         return
func.func @tanh_in_the_cache(%x: tensor<512x512xf32>, %w: tensor<512x512xf32>) -> (tensor<512x512xf32>, tensor<512x512xf32>) {
  %t = gpuc.tanh %x : tensor<512x512xf32>
  %y = gpuc.mul %x, %t : tensor<512x512xf32>
  %z = gpuc.matmul %y, %w : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %dy = gpuc.matmul %z, transpose %w : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32> loc(fused<"backward">["f"])
  %d = gpuc.mul %dy, %t : tensor<512x512xf32> loc(fused<"backward">["f"])
  %dx = gpuc.mul %d, %x : tensor<512x512xf32> loc(fused<"backward">["f"])
  return %z, %dx : tensor<512x512xf32>, tensor<512x512xf32>
}

// -----

// Two such ops take longer than all of that.
// CHECK-LABEL: func.func @two_costly_ops(
// CHECK:         %[[F:.*]]:2 = gpuc.fused "exp_tanh_mul"(%arg0)
// CHECK:         gpuc.fused "f.backward.mul"(%{{.*}}, %[[F]]#0, %arg0)
// CHECK-NOT:     gpuc.tanh
// CHECK:         return
func.func @two_costly_ops(%x: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>, tensor<1024x1024xf32>) {
  %e = gpuc.exp %x : tensor<1024x1024xf32>
  %t = gpuc.tanh %e : tensor<1024x1024xf32>
  %y = gpuc.mul %x, %t : tensor<1024x1024xf32>
  %z = gpuc.matmul %y, %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %dy = gpuc.matmul %z, transpose %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %d = gpuc.mul %dy, %t : tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %dx = gpuc.mul %d, %x : tensor<1024x1024xf32> loc(fused<"backward">["f"])
  return %z, %dx : tensor<1024x1024xf32>, tensor<1024x1024xf32>
}

// -----

// Of what the tanh is computed the backward pass reads nothing: as many bytes would wait for it.
// CHECK-LABEL: func.func @what_would_wait_instead(
// CHECK:         %[[A:.*]] = gpuc.matmul %arg0, %arg1
// CHECK:         %[[F:.*]]:2 = gpuc.fused "tanh_mul"(%[[A]])
// CHECK:         gpuc.fused "f.backward.mul"(%{{.*}}, %[[F]]#0, %arg0)
// CHECK-NOT:     gpuc.tanh
// CHECK:         return
func.func @what_would_wait_instead(%x: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>, tensor<1024x1024xf32>) {
  %a = gpuc.matmul %x, %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %t = gpuc.tanh %a : tensor<1024x1024xf32>
  %y = gpuc.mul %a, %t : tensor<1024x1024xf32>
  %z = gpuc.matmul %y, %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %dy = gpuc.matmul %z, transpose %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %d = gpuc.mul %dy, %t : tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %dx = gpuc.mul %d, %x : tensor<1024x1024xf32> loc(fused<"backward">["f"])
  return %z, %dx : tensor<1024x1024xf32>, tensor<1024x1024xf32>
}

// -----

// A pooling reads what the relu gives, and its gradient whether that was positive: of the backward pass it is computed
// again, from what the normalisation's gradient reads anyway, and no longer kept behind the pooling.
// CHECK-LABEL: func.func @relu_before_pooling(
// CHECK:         %[[Y:.*]] = gpuc.fused "add_relu"(%arg0) : (tensor<4x64x64x64xf32>) -> tensor<4x64x64x64xf32>
// CHECK:         %[[POOL:.*]]:2 = gpuc.fused "{{.*}}max_pool2d"(%[[Y]])
// CHECK:         gpuc.fused "f.backward.{{.*}}"(%arg0, %arg2, %[[POOL]]#1)
// CHECK:           gpuc.relu
// CHECK:           gpuc.max_pool2d_gradient
// CHECK:         return
func.func @relu_before_pooling(%x: tensor<4x64x64x64xf32>, %w: tensor<4x64x64x64xf32>, %dp: tensor<4x64x32x32xf32>) -> (tensor<4x64x32x32xf32>, tensor<4x64x64x64xf32>) {
  %a = gpuc.add %x, %x : tensor<4x64x64x64xf32>
  %y = gpuc.relu %a : tensor<4x64x64x64xf32>
  %p, %i = gpuc.max_pool2d %y window [2, 2] strides [2, 2] padding [0, 0, 0, 0] : (tensor<4x64x64x64xf32>) -> (tensor<4x64x32x32xf32>, tensor<4x64x32x32xi64>)
  %dy = gpuc.max_pool2d_gradient %dp, %i window [2, 2] strides [2, 2] padding [0, 0, 0, 0] : (tensor<4x64x32x32xf32>, tensor<4x64x32x32xi64>) -> tensor<4x64x64x64xf32> loc(fused<"backward">["f"])
  %zero = gpuc.constant 0.0 : tensor<4x64x64x64xf32>
  %m = gpuc.compare gt %y, %zero : tensor<4x64x64x64xf32> loc(fused<"backward">["f"])
  %dx = gpuc.select %m, %dy, %zero : tensor<4x64x64x64xi1>, tensor<4x64x64x64xf32> loc(fused<"backward">["f"])
  return %p, %dx : tensor<4x64x32x32xf32>, tensor<4x64x64x64xf32>
}

// -----

// Of each element nine windows would compute the tanh again: it is kept.
// CHECK-LABEL: func.func @tanh_in_windows(
// CHECK:         %[[F:.*]]:2 = gpuc.fused "tanh_mul"(%arg0)
// CHECK:         gpuc.fused "f.backward.avg_pool2d"(%[[F]]#0)
// CHECK-NOT:     gpuc.tanh
// CHECK:         return
func.func @tanh_in_windows(%x: tensor<4x64x64x64xf32>) -> (tensor<4x64x64x64xf32>, tensor<4x64x64x64xf32>) {
  %t = gpuc.tanh %x : tensor<4x64x64x64xf32>
  %y = gpuc.mul %x, %t : tensor<4x64x64x64xf32>
  %d = gpuc.avg_pool2d %t window [3, 3] strides [1, 1] padding [1, 1, 1, 1] : (tensor<4x64x64x64xf32>) -> tensor<4x64x64x64xf32> loc(fused<"backward">["f"])
  return %y, %d : tensor<4x64x64x64xf32>, tensor<4x64x64x64xf32>
}
