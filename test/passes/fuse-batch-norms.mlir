// RUN: gpuc-opt %s --gpuc-fuse=target=cuda:sm_90 --split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-fuse --split-input-file | FileCheck %s --check-prefix=HOST

// What a batch norm costs on a GPU is how often it reads its operand: channels lie last, its sums over images are cut
// in two, and no row stays in a cache.

// Two sums over the same images take one sweep over them, and are one kernel. The host has two, each of one sweep.
// CHECK-LABEL: func.func @two_sums(
// CHECK:         %[[S:.*]]:2 = gpuc.fused "sum_mul"(%arg1, %arg0)
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[S]]#0, %[[S]]#1
// HOST-LABEL:  func.func @two_sums(
// HOST-COUNT-2:  = gpuc.fused
func.func @two_sums(%x: tensor<8x100x100x64xf32>, %ct: tensor<8x100x100x64xf32>) -> (tensor<8x64xf32>, tensor<8x64xf32>) {
  %0 = gpuc.sum %ct dims [1, 2] : (tensor<8x100x100x64xf32>) -> tensor<8x64xf32>
  %1 = gpuc.mul %ct, %x : tensor<8x100x100x64xf32>
  %2 = gpuc.sum %1 dims [1, 2] : (tensor<8x100x100x64xf32>) -> tensor<8x64xf32>
  return %0, %2 : tensor<8x64xf32>, tensor<8x64xf32>
}
