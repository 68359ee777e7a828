// RUN: gpuc-opt %s --gpuc-fuse --split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-fuse=enable=false --split-input-file | FileCheck %s --check-prefix=OFF

// The squares of each row are summed up by whoever computes that row; then the sums.
// CHECK-LABEL: func.func @norm(
// CHECK:         %[[ROWS:.*]] = gpuc.fused "mul_sum"(%arg0) : (tensor<256x512xf32>) -> tensor<256xf32> {
// CHECK:           gpuc.sum %{{.*}} dims [1]
// CHECK:         gpuc.fused "sum"(%[[ROWS]]) : (tensor<256xf32>) -> tensor<f32> {
// CHECK:           gpuc.sum %{{.*}} dims [0]
// OFF-LABEL:   func.func @norm(
// OFF:           gpuc.sum %{{.*}} dims [0, 1]
func.func @norm(%x: tensor<256x512xf32>) -> tensor<f32> {
  %0 = gpuc.mul %x, %x : tensor<256x512xf32>
  %1 = gpuc.sum %0 dims [0, 1] : (tensor<256x512xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// Of a filter, parts are as many as they are long, nearly: 128 of 288 rather than 4096 of 9.
// CHECK-LABEL: func.func @filter(
// CHECK:         gpuc.sum %{{.*}} dims [1, 2, 3] : (tensor<128x32x3x3xf32>) -> tensor<128xf32>
// CHECK:         gpuc.sum %{{.*}} dims [0] : (tensor<128xf32>) -> tensor<f32>
func.func @filter(%x: tensor<128x32x3x3xf32>) -> tensor<f32> {
  %0 = gpuc.sum %x dims [0, 1, 2, 3] : (tensor<128x32x3x3xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Short ones, those with less than 16 parts, vectors, and sums that have several results stay one.
// CHECK-LABEL: func.func @not(
// CHECK-COUNT-4: gpuc.fused "sum{{.*}}"(%arg{{.}}) :
// CHECK-NOT:     gpuc.fused
func.func @not(%short: tensor<128x128xf32>, %few: tensor<4x65536xf32>, %vector: tensor<65536xf32>, %rows: tensor<2x128x512xf32>)
    -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<2xf32>) {
  %0 = gpuc.sum %short dims [0, 1] : (tensor<128x128xf32>) -> tensor<f32>
  %1 = gpuc.sum %few dims [0, 1] : (tensor<4x65536xf32>) -> tensor<f32>
  %2 = gpuc.sum %vector dims [0] : (tensor<65536xf32>) -> tensor<f32>
  %3 = gpuc.sum %rows dims [1, 2] : (tensor<2x128x512xf32>) -> tensor<2xf32>
  return %0, %1, %2, %3 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<2xf32>
}
