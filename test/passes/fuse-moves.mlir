// RUN: gpuc-opt %s --split-input-file --gpuc-autodiff --symbol-dce --canonicalize --cse --gpuc-decompose --canonicalize --cse \
// RUN:   --gpuc-fuse | FileCheck %s

// Transposes, slices and casts are ways of reading; sums of columns; kernels with several results.

// CHECK-LABEL: func.func @transposed(
// CHECK-NEXT:    %[[Y:.*]] = gpuc.fused "add"(%arg0, %arg1) : (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x32xf32> {
// CHECK:           gpuc.transpose
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[Y]]
func.func @transposed(%x: tensor<64x32xf32>, %y: tensor<32x64xf32>) -> tensor<64x32xf32> {
  %0 = gpuc.transpose %y permutation [1, 0] : (tensor<32x64xf32>) -> tensor<64x32xf32>
  %1 = gpuc.add %x, %0 : tensor<64x32xf32>
  return %1 : tensor<64x32xf32>
}

// -----

// A value that a sum of rows reads, and somebody else transposed, is stored, not computed twice.
// CHECK-LABEL: func.func @sum_and_transpose(
// CHECK:         %[[E:.*]]:2 = gpuc.fused "exp_sum"(%arg0) : (tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64xf32>)
// CHECK:         gpuc.fused "tanh"(%[[E]]#0) : (tensor<64x32xf32>) -> tensor<32x64xf32>
func.func @sum_and_transpose(%x: tensor<64x32xf32>) -> (tensor<64xf32>, tensor<32x64xf32>) {
  %0 = gpuc.exp %x : tensor<64x32xf32>
  %1 = gpuc.sum %0 dims [1] : (tensor<64x32xf32>) -> tensor<64xf32>
  %2 = gpuc.transpose %0 permutation [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32>
  %3 = gpuc.tanh %2 : tensor<32x64xf32>
  return %1, %3 : tensor<64xf32>, tensor<32x64xf32>
}

// -----

// 16 bits become 32 where they are read, and 16 again where they are written.
// CHECK-LABEL: func.func @casts(
// CHECK-NEXT:    %[[Y:.*]] = gpuc.fused "add_cast"(%arg0, %arg1) : (tensor<64x32xbf16>, tensor<64x32xf32>) -> tensor<64x32xbf16> {
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[Y]]
func.func @casts(%x: tensor<64x32xbf16>, %y: tensor<64x32xf32>) -> tensor<64x32xbf16> {
  %0 = gpuc.cast %x : tensor<64x32xbf16> to tensor<64x32xf32>
  %1 = gpuc.add %0, %y : tensor<64x32xf32>
  %2 = gpuc.cast %1 : tensor<64x32xf32> to tensor<64x32xbf16>
  return %2 : tensor<64x32xbf16>
}

// -----

// A product reads memory: the cast for it is a second result of the kernel that has the number, not a kernel.
// CHECK-LABEL: func.func @cast_for_a_product(
// CHECK-NEXT:    %[[Y:.*]]:2 = gpuc.fused "relu_cast"(%arg0) : (tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xbf16>) {
// CHECK-NOT:     = gpuc.fused
// CHECK:         gpuc.matmul %[[Y]]#1, %arg1
func.func @cast_for_a_product(%x: tensor<64x32xf32>, %w: tensor<32x8xbf16>) -> (tensor<64x32xf32>, tensor<64x8xbf16>) {
  %0 = gpuc.relu %x : tensor<64x32xf32>
  %1 = gpuc.cast %0 : tensor<64x32xf32> to tensor<64x32xbf16>
  %2 = gpuc.matmul %1, %w : (tensor<64x32xbf16>, tensor<32x8xbf16>) -> tensor<64x8xbf16>
  return %0, %2 : tensor<64x32xf32>, tensor<64x8xbf16>
}

// -----

// Sums of the columns of the same rows: one sweep.
// CHECK-LABEL: func.func @column_sums(
// CHECK-NEXT:    %[[Y:.*]]:2 = gpuc.fused "mul_sum"(%arg0, %arg1) : (tensor<256x64xf32>, tensor<256x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[Y]]#0, %[[Y]]#1
func.func @column_sums(%x: tensor<256x64xf32>, %y: tensor<256x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = gpuc.mul %x, %y : tensor<256x64xf32>
  %1 = gpuc.sum %0 dims [0] : (tensor<256x64xf32>) -> tensor<64xf32>
  %2 = gpuc.sum %x dims [0] : (tensor<256x64xf32>) -> tensor<64xf32>
  return %1, %2 : tensor<64xf32>, tensor<64xf32>
}

// -----

// Of other rows: two, though the results are of one shape.
// CHECK-LABEL: func.func @columns_of_two_tensors(
// CHECK:         gpuc.fused "sum"(%arg0)
// CHECK:         gpuc.fused "sum_2"(%arg1)
func.func @columns_of_two_tensors(%x: tensor<256x64xf32>, %y: tensor<128x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %1 = gpuc.sum %x dims [0] : (tensor<256x64xf32>) -> tensor<64xf32>
  %2 = gpuc.sum %y dims [0] : (tensor<128x64xf32>) -> tensor<64xf32>
  return %1, %2 : tensor<64xf32>, tensor<64xf32>
}

// -----

// A result that is also needed on the way to another.
// CHECK-LABEL: func.func @several_results(
// CHECK-NEXT:    %[[Y:.*]]:2 = gpuc.fused "exp_tanh"(%arg0) : (tensor<256x64xf32>) -> (tensor<256x64xf32>, tensor<256x64xf32>) {
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[Y]]#0, %[[Y]]#1
func.func @several_results(%x: tensor<256x64xf32>) -> (tensor<256x64xf32>, tensor<256x64xf32>) {
  %0 = gpuc.exp %x : tensor<256x64xf32>
  %1 = gpuc.tanh %0 : tensor<256x64xf32>
  return %0, %1 : tensor<256x64xf32>, tensor<256x64xf32>
}

// -----

// Results of two shapes are two kernels: one runs over the elements of one shape.
// CHECK-LABEL: func.func @results_of_two_shapes(
// CHECK:         %[[E:.*]] = gpuc.fused "exp"(%arg0) : (tensor<256x64xf32>) -> tensor<256x64xf32> {
// CHECK:         gpuc.fused "tanh"(%[[E]]) : (tensor<256x64xf32>) -> tensor<64x64xf32> {
// CHECK:           gpuc.slice
func.func @results_of_two_shapes(%x: tensor<256x64xf32>) -> (tensor<256x64xf32>, tensor<64x64xf32>) {
  %0 = gpuc.exp %x : tensor<256x64xf32>
  %1 = gpuc.slice %0 starts [0, 0] limits [64, 64] strides [1, 1] : (tensor<256x64xf32>) -> tensor<64x64xf32>
  %2 = gpuc.tanh %1 : tensor<64x64xf32>
  return %0, %2 : tensor<256x64xf32>, tensor<64x64xf32>
}

// -----

// What a concat is made of is no result beside it, though the sum could compute the rest from both.
// CHECK-LABEL: func.func @beside_a_concat(
// CHECK-NEXT:    %[[S:.*]] = gpuc.fused "compare_concat_or_select"(%arg0, %arg1) : ({{.*}}) -> tensor<4x6xf64> {
// CHECK:         gpuc.fused "sum"(%[[S]])
func.func @beside_a_concat(%x: tensor<4x6xf64>, %y: tensor<4x6xf64>) -> tensor<f64> {
  %zeros = gpuc.constant 0.0 : tensor<4x6xf64>
  %positive = gpuc.compare gt %x, %zeros : tensor<4x6xf64>
  %flipped = gpuc.reverse %positive dims [1] : tensor<4x6xi1>
  %last = gpuc.slice %positive starts [3, 0] limits [4, 6] strides [1, 1] : (tensor<4x6xi1>) -> tensor<1x6xi1>
  %first = gpuc.slice %positive starts [0, 0] limits [3, 6] strides [1, 1] : (tensor<4x6xi1>) -> tensor<3x6xi1>
  %rolled = gpuc.concat %last, %first dim 0 : (tensor<1x6xi1>, tensor<3x6xi1>) -> tensor<4x6xi1>
  %either = gpuc.or %flipped, %rolled : tensor<4x6xi1>
  %some = gpuc.select %either, %y, %zeros : tensor<4x6xi1>, tensor<4x6xf64>
  %squares = gpuc.mul %some, %some : tensor<4x6xf64>
  %sum = gpuc.sum %squares dims [0, 1] : (tensor<4x6xf64>) -> tensor<f64>
  return %sum : tensor<f64>
}
