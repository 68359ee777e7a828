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

// -----

// The weight is the same in all terms: behind the sums of the two cotangents, what flows back to x has no sums of its
// own.
// CHECK-LABEL: func.func @common_factors(
// CHECK:         %[[S:.*]] = gpuc.fused "mul_sum"(%arg1, %arg0) : (tensor<8x10x10x64xf32>, tensor<8x10x10x64xf32>) -> tensor<8x64xf32> {
// CHECK:         %[[T:.*]]:2 = gpuc.fused "sum_mul"(%[[S]], %arg2) : (tensor<8x64xf32>, tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[T]]#0, %[[T]]#1
func.func @common_factors(%x: tensor<8x10x10x64xf32>, %ct: tensor<8x10x10x64xf32>, %weight: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = gpuc.mul %ct, %x : tensor<8x10x10x64xf32>
  %1 = gpuc.sum %0 dims [1, 2] : (tensor<8x10x10x64xf32>) -> tensor<8x64xf32>
  %2 = gpuc.sum %1 dims [0] : (tensor<8x64xf32>) -> tensor<64xf32>
  %w = gpuc.broadcast %weight dims [3] : tensor<64xf32> to tensor<8x10x10x64xf32>
  %3 = gpuc.mul %ct, %w : tensor<8x10x10x64xf32>
  %4 = gpuc.mul %3, %x : tensor<8x10x10x64xf32>
  %5 = gpuc.sum %4 dims [1, 2] : (tensor<8x10x10x64xf32>) -> tensor<8x64xf32>
  %6 = gpuc.sum %5 dims [0] : (tensor<8x64xf32>) -> tensor<64xf32>
  return %2, %6 : tensor<64xf32>, tensor<64xf32>
}

// -----

// A single number stays in the sum, too: the inverse of a loss scale keeps the squares of a gradient in their range.
// CHECK-LABEL: func.func @scaled_squares(
// CHECK:         gpuc.fused "mul_sum"(%arg0, %arg1) : (tensor<8x64xf32>, tensor<f32>) -> tensor<f32> {
// CHECK:           gpuc.mul
// CHECK:           gpuc.mul
// CHECK:           gpuc.sum
func.func @scaled_squares(%g: tensor<8x64xf32>, %inverse: tensor<f32>) -> tensor<f32> {
  %0 = gpuc.broadcast %inverse dims [] : tensor<f32> to tensor<8x64xf32>
  %1 = gpuc.mul %g, %0 : tensor<8x64xf32>
  %2 = gpuc.mul %1, %1 : tensor<8x64xf32>
  %3 = gpuc.sum %2 dims [0, 1] : (tensor<8x64xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}

// -----

// A factor for each term stays in the sum.
// CHECK-LABEL: func.func @factors_of_terms(
// CHECK:         gpuc.fused
// CHECK:           gpuc.mul
// CHECK:           gpuc.sum
func.func @factors_of_terms(%x: tensor<8x64xf32>, %weight: tensor<8xf32>) -> tensor<64xf32> {
  %w = gpuc.broadcast %weight dims [0] : tensor<8xf32> to tensor<8x64xf32>
  %0 = gpuc.mul %x, %w : tensor<8x64xf32>
  %1 = gpuc.sum %0 dims [0] : (tensor<8x64xf32>) -> tensor<64xf32>
  return %1 : tensor<64xf32>
}

// -----

// Mean and variance: the first row's mean, one sweep over all with it as a shift, and the parts put together.
// CHECK-LABEL: func.func @moments(
// CHECK:         %[[SHIFT:.*]] = gpuc.fused "{{.*}}"(%arg0) : (tensor<8x100x100x64xbf16>) -> tensor<8x64xf32> {
// CHECK:           gpuc.slice {{.*}} limits [8, 1, 100, 64]
// CHECK:         %[[PARTS:.*]]:2 = gpuc.fused "{{.*}}"(%arg0, %[[SHIFT]]) : (tensor<8x100x100x64xbf16>, tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<8x64xf32>) {
// CHECK:         %[[ALL:.*]]:2 = gpuc.fused "{{.*}}"(%[[SHIFT]], %[[PARTS]]#0, %[[PARTS]]#1) : (tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[ALL]]#0, %[[ALL]]#1
// HOST-LABEL:  func.func @moments(
// HOST-NOT:      gpuc.slice
func.func @moments(%x: tensor<8x100x100x64xbf16>) -> (tensor<64xf32>, tensor<64xf32>) {
  %n = gpuc.constant 80000.0 : tensor<64xf32>
  %wide = gpuc.cast %x : tensor<8x100x100x64xbf16> to tensor<8x100x100x64xf32>
  %0 = gpuc.sum %wide dims [1, 2] : (tensor<8x100x100x64xf32>) -> tensor<8x64xf32>
  %1 = gpuc.sum %0 dims [0] : (tensor<8x64xf32>) -> tensor<64xf32>
  %mean = gpuc.div %1, %n : tensor<64xf32>
  %2 = gpuc.broadcast %mean dims [3] : tensor<64xf32> to tensor<8x100x100x64xf32>
  %3 = gpuc.sub %wide, %2 : tensor<8x100x100x64xf32>
  %4 = gpuc.mul %3, %3 : tensor<8x100x100x64xf32>
  %5 = gpuc.sum %4 dims [1, 2] : (tensor<8x100x100x64xf32>) -> tensor<8x64xf32>
  %6 = gpuc.sum %5 dims [0] : (tensor<8x64xf32>) -> tensor<64xf32>
  %variance = gpuc.div %6, %n : tensor<64xf32>
  return %mean, %variance : tensor<64xf32>, tensor<64xf32>
}

// -----

// What is centred by something else than its mean is no variance.
// CHECK-LABEL: func.func @no_mean(
// CHECK-NOT:     gpuc.slice
// CHECK:         return
func.func @no_mean(%x: tensor<8x100x100x64xf32>) -> tensor<64xf32> {
  %n = gpuc.constant 8000.0 : tensor<64xf32>
  %0 = gpuc.sum %x dims [1, 2] : (tensor<8x100x100x64xf32>) -> tensor<8x64xf32>
  %1 = gpuc.sum %0 dims [0] : (tensor<8x64xf32>) -> tensor<64xf32>
  %mean = gpuc.div %1, %n : tensor<64xf32>
  %2 = gpuc.broadcast %mean dims [3] : tensor<64xf32> to tensor<8x100x100x64xf32>
  %3 = gpuc.sub %x, %2 : tensor<8x100x100x64xf32>
  %4 = gpuc.mul %3, %3 : tensor<8x100x100x64xf32>
  %5 = gpuc.sum %4 dims [1, 2] : (tensor<8x100x100x64xf32>) -> tensor<8x64xf32>
  %6 = gpuc.sum %5 dims [0] : (tensor<8x64xf32>) -> tensor<64xf32>
  return %6 : tensor<64xf32>
}

// -----

// The gradient of a relu asks whether its result is positive. The backward pass has at hand what that was computed
// from: neither the result, which the product needs, nor what flows through the relu goes through memory for it.
// CHECK-LABEL: func.func @relu_of_norm(
// CHECK:         %[[Y:.*]] = gpuc.fused "f.mul_cast_relu"(%arg0, %arg1)
// CHECK:         gpuc.matmul %[[Y]]
// CHECK:         %[[CT:.*]] = gpuc.matmul
// CHECK:         %[[SUM:.*]] = gpuc.fused {{.*}}(%arg0, %arg1, %[[CT]]) : {{.*}} -> tensor<64x64xf32> {
// CHECK:           gpuc.relu
// CHECK:         gpuc.fused {{.*}}(%arg0, %arg1, %[[CT]], %[[SUM]]) : {{.*}} -> tensor<64x4096x64xbf16> {
// CHECK:           gpuc.relu
// CHECK:         gpuc.matmul transpose %[[Y]]
// HOST-LABEL:  func.func @relu_of_norm(
// HOST:          gpuc.fused "mul_cast_relu"
// HOST:          %[[MASKED:.*]]:2 = gpuc.fused {{.*}}(%arg0, %arg1, %{{.*}}) {gpuc.written_again = {{\[\[}}0, "mul_cast_relu", 0]]}
// HOST:          gpuc.fused {{.*}}(%[[MASKED]]#1, %arg0)
// HOST:          gpuc.matmul transpose %[[MASKED]]#0
func.func @relu_of_norm(%x: tensor<64x4096x64xbf16>, %scale: tensor<64xf32>, %w: tensor<64x64xbf16>)
    -> (tensor<64x4096x64xbf16>, tensor<64x4096x64xbf16>, tensor<64x64x64xbf16>) {
  %zero = gpuc.constant 0.0 : tensor<64x4096x64xbf16>
  %wide = gpuc.cast %x : tensor<64x4096x64xbf16> to tensor<64x4096x64xf32>
  %s = gpuc.broadcast %scale dims [2] : tensor<64xf32> to tensor<64x4096x64xf32>
  %0 = gpuc.mul %wide, %s : tensor<64x4096x64xf32>
  %1 = gpuc.cast %0 : tensor<64x4096x64xf32> to tensor<64x4096x64xbf16>
  %y = gpuc.relu %1 : tensor<64x4096x64xbf16>
  %z = gpuc.matmul %y, %w : (tensor<64x4096x64xbf16>, tensor<64x64xbf16>) -> tensor<64x4096x64xbf16>
  %dy = gpuc.matmul %z, transpose %w : (tensor<64x4096x64xbf16>, tensor<64x64xbf16>) -> tensor<64x4096x64xbf16> loc(fused<"backward">["f"])
  %off = gpuc.compare le %y, %zero : tensor<64x4096x64xbf16> loc(fused<"backward">["f"])
  %d = gpuc.select %off, %zero, %dy : tensor<64x4096x64xi1>, tensor<64x4096x64xbf16> loc(fused<"backward">["f"])
  %dwide = gpuc.cast %d : tensor<64x4096x64xbf16> to tensor<64x4096x64xf32> loc(fused<"backward">["f"])
  %2 = gpuc.mul %dwide, %wide : tensor<64x4096x64xf32> loc(fused<"backward">["f"])
  %3 = gpuc.sum %2 dims [1] : (tensor<64x4096x64xf32>) -> tensor<64x64xf32> loc(fused<"backward">["f"])
  %4 = gpuc.broadcast %3 dims [0, 2] : tensor<64x64xf32> to tensor<64x4096x64xf32> loc(fused<"backward">["f"])
  %5 = gpuc.mul %wide, %4 : tensor<64x4096x64xf32> loc(fused<"backward">["f"])
  %6 = gpuc.sub %dwide, %5 : tensor<64x4096x64xf32> loc(fused<"backward">["f"])
  %dx = gpuc.cast %6 : tensor<64x4096x64xf32> to tensor<64x4096x64xbf16> loc(fused<"backward">["f"])
  %dw = gpuc.matmul transpose %y, %z : (tensor<64x4096x64xbf16>, tensor<64x4096x64xbf16>) -> tensor<64x64x64xbf16> loc(fused<"backward">["f"])
  return %z, %dx, %dw : tensor<64x4096x64xbf16>, tensor<64x4096x64xbf16>, tensor<64x64x64xbf16>
}

// -----

// Parts that one kernel has summed up are added up by one kernel, too.
// CHECK-LABEL: func.func @parts_of_two_sums(
// CHECK:         %[[S:.*]]:2 = gpuc.fused "sum_mul"(%arg1, %arg0)
// CHECK:         %[[T:.*]]:2 = gpuc.fused "sum"(%[[S]]#0, %[[S]]#1)
// CHECK-NOT:     = gpuc.fused
// CHECK:         return %[[T]]#0, %[[T]]#1
func.func @parts_of_two_sums(%x: tensor<8x100x100x64xf32>, %ct: tensor<8x100x100x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = gpuc.sum %ct dims [1, 2] : (tensor<8x100x100x64xf32>) -> tensor<8x64xf32>
  %1 = gpuc.mul %ct, %x : tensor<8x100x100x64xf32>
  %2 = gpuc.sum %1 dims [1, 2] : (tensor<8x100x100x64xf32>) -> tensor<8x64xf32>
  %3 = gpuc.sum %0 dims [0] : (tensor<8x64xf32>) -> tensor<64xf32>
  %4 = gpuc.sum %2 dims [0] : (tensor<8x64xf32>) -> tensor<64xf32>
  return %3, %4 : tensor<64xf32>, tensor<64xf32>
}
