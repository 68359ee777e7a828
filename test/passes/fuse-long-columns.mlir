// RUN: gpuc-opt %s --gpuc-fuse=target=cuda:sm_90 --split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-fuse --split-input-file | FileCheck %s --check-prefix=HOST

// A bias's gradient: sums of each sequence by whoever computes what is added up, then of those.
// CHECK-LABEL: func.func @bias(
// CHECK:         %[[PARTS:.*]]:2 = gpuc.fused {{.*}} -> (tensor<8x1024x768xf32>, tensor<8x768xf32>) {
// CHECK:           gpuc.sum %{{.*}} dims [1]
// CHECK:         gpuc.fused "sum{{.*}}"(%[[PARTS]]#1) : (tensor<8x768xf32>) -> tensor<768xf32> {
// CHECK:           gpuc.sum %{{.*}} dims [0]
// HOST-LABEL:  func.func @bias(
// HOST:          gpuc.sum %{{.*}} dims [0, 1]
func.func @bias(%x: tensor<8x1024x768xf32>) -> (tensor<8x1024x768xf32>, tensor<768xf32>) {
  %0 = gpuc.mul %x, %x : tensor<8x1024x768xf32>
  %1 = gpuc.sum %0 dims [0, 1] : (tensor<8x1024x768xf32>) -> tensor<768xf32>
  return %0, %1 : tensor<8x1024x768xf32>, tensor<768xf32>
}

// -----

// Not of fewer numbers, of more columns, of too few parts or too many, of what is rounded to 16 bits, nor of dimensions
// that are not the first ones.
// CHECK-LABEL: func.func @not(
// CHECK-COUNT-6: gpuc.fused "sum{{.*}}"(%arg{{.}}) :
// CHECK-NOT:     gpuc.fused
func.func @not(%short: tensor<8x512x768xf32>, %wide: tensor<8x32x50257xf32>, %few: tensor<2x4096x768xf32>,
               %many: tensor<65x256x768xf32>, %half: tensor<8x1024x768xbf16>, %inner: tensor<8x768x1024xf32>)
    -> (tensor<768xf32>, tensor<50257xf32>, tensor<768xf32>, tensor<768xf32>, tensor<768xbf16>, tensor<768xf32>) {
  %0 = gpuc.sum %short dims [0, 1] : (tensor<8x512x768xf32>) -> tensor<768xf32>
  %1 = gpuc.sum %wide dims [0, 1] : (tensor<8x32x50257xf32>) -> tensor<50257xf32>
  %2 = gpuc.sum %few dims [0, 1] : (tensor<2x4096x768xf32>) -> tensor<768xf32>
  %3 = gpuc.sum %many dims [0, 1] : (tensor<65x256x768xf32>) -> tensor<768xf32>
  %4 = gpuc.sum %half dims [0, 1] : (tensor<8x1024x768xbf16>) -> tensor<768xbf16>
  %5 = gpuc.sum %inner dims [0, 2] : (tensor<8x768x1024xf32>) -> tensor<768xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<768xf32>, tensor<50257xf32>, tensor<768xf32>, tensor<768xf32>, tensor<768xbf16>, tensor<768xf32>
}
