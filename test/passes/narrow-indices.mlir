// RUN: gpuc-opt %s -split-input-file --gpuc-narrow-indices | FileCheck %s
// RUN: gpuc-opt %s -split-input-file --gpuc-narrow-indices --gpuc-autodiff | FileCheck %s --check-prefix=KEPT

// 3 × 3 = 9 places have room in a byte, and the gradient reads that byte.
// CHECK-LABEL: func.func private @loss(
// CHECK:       gpuc.max_pool2d {{.*}} -> (tensor<2x3x3x4xf32>, tensor<2x3x3x4xui8>)
// CHECK-NOT:   i64
// CHECK:       return
// KEPT-LABEL:  func.func @gradient(
// KEPT:        %{{.*}}, %[[PLACES:.*]] = gpuc.max_pool2d {{.*}} -> (tensor<2x3x3x4xf32>, tensor<2x3x3x4xui8>)
// KEPT:        gpuc.max_pool2d_gradient %{{.*}}, %[[PLACES]] window [3, 3] strides [2, 2] padding [1, 1, 1, 1]
// KEPT-NOT:    i64
// KEPT:        return
func.func private @loss(%x: tensor<2x3x6x8xf32>) -> tensor<f32> {
  %v, %i = gpuc.max_pool2d %x window [3, 3] strides [2, 2] padding [1, 1, 1, 1] : (tensor<2x3x6x8xf32>) -> (tensor<2x3x3x4xf32>, tensor<2x3x3x4xi64>)
  %s = gpuc.sum %v dims [0, 1, 2, 3] : (tensor<2x3x3x4xf32>) -> tensor<f32>
  return %s : tensor<f32>
}
func.func @gradient(%x: tensor<2x3x6x8xf32>) -> tensor<2x3x6x8xf32> {
  %l, %g = gpuc.gradient @loss(%x) wrt arguments [0] : (tensor<2x3x6x8xf32>) -> (tensor<f32>, tensor<2x3x6x8xf32>)
  return %g : tensor<2x3x6x8xf32>
}

// -----

// 16 × 16 are the most for a byte. 17 × 16 = 272 need an i32, and (2^31 - 1) × 2 an i64, which counts in the image.
// CHECK-LABEL: func.func @sizes(
// CHECK:       window [16, 16] {{.*}}xui8>)
// CHECK:       window [17, 16] {{.*}}xi32>)
// CHECK:       window [2147483647, 2] {{.*}}xi64>)
func.func @sizes(%x: tensor<1x1x17x17xf32>, %y: tensor<1x1x2147483647x2xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x1x2xf32>, tensor<1x1x1x1xf32>) {
  %0, %i = gpuc.max_pool2d %x window [16, 16] : (tensor<1x1x17x17xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xi64>)
  %1, %j = gpuc.max_pool2d %x window [17, 16] : (tensor<1x1x17x17xf32>) -> (tensor<1x1x1x2xf32>, tensor<1x1x1x2xi64>)
  %2, %k = gpuc.max_pool2d %y window [2147483647, 2] : (tensor<1x1x2147483647x2xf32>) -> (tensor<1x1x1x1xf32>, tensor<1x1x1x1xi64>)
  return %0, %1, %2 : tensor<1x1x2x2xf32>, tensor<1x1x1x2xf32>, tensor<1x1x1x1xf32>
}

// -----

// What reads indices gets them as before: of place p of windows of two columns, row p / 2 and column p - 2 · row; of a window (q, r)
// that is row q · 2 + row · 3 - 1 and column r · 4 + column of an image of width 9.
// CHECK-LABEL: func.func @read(
// CHECK:       %{{.*}}, %[[PLACES:.*]] = gpuc.max_pool2d {{.*}} -> (tensor<1x2x3x2xf32>, tensor<1x2x3x2xui8>)
// CHECK:       %[[PLACE:.*]] = gpuc.cast %[[PLACES]] : tensor<1x2x3x2xui8> to tensor<1x2x3x2xi64>
// CHECK:       gpuc.div %[[PLACE]],
// CHECK:       gpuc.iota dim 2
// CHECK:       gpuc.iota dim 3
// CHECK:       gpuc.add {{.*}} : tensor<1x2x3x2xi64>
// CHECK:       return %{{[a-z]+}}, %[[INDICES:[0-9]+]], %[[INDICES]] :
func.func @read(%x: tensor<1x2x6x9xf32>) -> (tensor<1x2x3x2xf32>, tensor<1x2x3x2xi64>, tensor<1x2x3x2xi64>) {
  %v, %i = gpuc.max_pool2d %x window [2, 2] strides [2, 4] padding [1, 1, 0, 0] dilation [3, 1] : (tensor<1x2x6x9xf32>) -> (tensor<1x2x3x2xf32>, tensor<1x2x3x2xi64>)
  return %v, %i, %i : tensor<1x2x3x2xf32>, tensor<1x2x3x2xi64>, tensor<1x2x3x2xi64>
}

// -----

// Of a batch that is not known yet nothing is computed; what nobody reads is narrow all the same.
// CHECK-LABEL: func.func @batch(
// CHECK:       -> (tensor<?x1x3x3xf32>, tensor<?x1x3x3xi64>)
// CHECK:       -> (tensor<?x1x3x3xf32>, tensor<?x1x3x3xui8>)
func.func @batch(%x: tensor<?x1x6x6xf32>) -> (tensor<?x1x3x3xi64>, tensor<?x1x3x3xf32>) {
  %v, %i = gpuc.max_pool2d %x window [2, 2] strides [2, 2] : (tensor<?x1x6x6xf32>) -> (tensor<?x1x3x3xf32>, tensor<?x1x3x3xi64>)
  %w, %j = gpuc.max_pool2d %x window [2, 2] strides [2, 2] : (tensor<?x1x6x6xf32>) -> (tensor<?x1x3x3xf32>, tensor<?x1x3x3xi64>)
  return %i, %w : tensor<?x1x3x3xi64>, tensor<?x1x3x3xf32>
}
