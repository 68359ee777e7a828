// RUN: gpuc-opt %s --gpuc-fuse --split-input-file | FileCheck %s

// The figures of FuseCost.cpp, one at a time: what one kernel does on one side of a bound, and two on the other.

// Of rows that are read twice the second sweep finds in the cache what the first has left there: 3 · 400 KB of 1.5 MiB.
// CHECK-LABEL: func.func @rows_in_the_cache(
// CHECK:         gpuc.fused "sum_mul_add"(%arg0, %arg1)
// CHECK-NOT:     = gpuc.fused
// CHECK:         return
func.func @rows_in_the_cache(%x: tensor<64x100000xf32>, %r: tensor<64x100000xf32>) -> tensor<64x100000xf32> {
  %0 = gpuc.sum %x dims [1] : (tensor<64x100000xf32>) -> tensor<64xf32>
  %1 = gpuc.broadcast %0 dims [0] : tensor<64xf32> to tensor<64x100000xf32>
  %2 = gpuc.mul %x, %1 : tensor<64x100000xf32>
  %3 = gpuc.add %2, %r : tensor<64x100000xf32>
  return %3 : tensor<64x100000xf32>
}

// -----

// 3 · 800 KB: the second sweep reads from memory again, and nothing is saved.
// CHECK-LABEL: func.func @rows_beyond_the_cache(
// CHECK:         %[[S:.*]] = gpuc.fused "sum"(%arg0)
// CHECK:         gpuc.fused "mul_add"(%arg0, %[[S]], %arg1)
func.func @rows_beyond_the_cache(%x: tensor<64x200000xf32>, %r: tensor<64x200000xf32>) -> tensor<64x200000xf32> {
  %0 = gpuc.sum %x dims [1] : (tensor<64x200000xf32>) -> tensor<64xf32>
  %1 = gpuc.broadcast %0 dims [0] : tensor<64xf32> to tensor<64x200000xf32>
  %2 = gpuc.mul %x, %1 : tensor<64x200000xf32>
  %3 = gpuc.add %2, %r : tensor<64x200000xf32>
  return %3 : tensor<64x200000xf32>
}

// -----

// Sums that need nothing of one another share a sweep; the result, which needs one of them, has one of its own, and so
// is a kernel of its own.
// CHECK-LABEL: func.func @sums_beyond_the_cache(
// CHECK:         %[[S:.*]]:2 = gpuc.fused "sum_mul"(%arg0, %arg1)
// CHECK:         gpuc.fused "mul_add"(%arg0, %[[S]]#1, %arg1)
func.func @sums_beyond_the_cache(%x: tensor<64x200000xf32>, %r: tensor<64x200000xf32>) -> (tensor<64xf32>, tensor<64x200000xf32>) {
  %0 = gpuc.sum %x dims [1] : (tensor<64x200000xf32>) -> tensor<64xf32>
  %1 = gpuc.mul %x, %r : tensor<64x200000xf32>
  %2 = gpuc.sum %1 dims [1] : (tensor<64x200000xf32>) -> tensor<64xf32>
  %3 = gpuc.broadcast %2 dims [0] : tensor<64xf32> to tensor<64x200000xf32>
  %4 = gpuc.mul %x, %3 : tensor<64x200000xf32>
  %5 = gpuc.add %4, %r : tensor<64x200000xf32>
  return %0, %5 : tensor<64xf32>, tensor<64x200000xf32>
}

// -----

// An exponential is kept from the sweep that adds up to the one that multiplies, in 16 KB of the thread's 32.
// CHECK-LABEL: func.func @kept(
// CHECK:         gpuc.fused "exp_sum_mul"(%arg0) : (tensor<64x4000xf32>) -> tensor<64x4000xf32>
// CHECK-NOT:     = gpuc.fused
// CHECK:         return
func.func @kept(%x: tensor<64x4000xf32>) -> tensor<64x4000xf32> {
  %e = gpuc.exp %x : tensor<64x4000xf32>
  %0 = gpuc.sum %e dims [1] : (tensor<64x4000xf32>) -> tensor<64xf32>
  %1 = gpuc.broadcast %0 dims [0] : tensor<64xf32> to tensor<64x4000xf32>
  %2 = gpuc.mul %e, %1 : tensor<64x4000xf32>
  return %2 : tensor<64x4000xf32>
}

// -----

// 80 KB of them are not: in one kernel each would be computed twice, which takes longer than to load it.
// CHECK-LABEL: func.func @too_long_to_keep(
// CHECK:         %[[E:.*]] = gpuc.fused "exp"(%arg0)
// CHECK:         gpuc.fused "sum_mul"(%[[E]])
func.func @too_long_to_keep(%x: tensor<64x20000xf32>) -> tensor<64x20000xf32> {
  %e = gpuc.exp %x : tensor<64x20000xf32>
  %0 = gpuc.sum %e dims [1] : (tensor<64x20000xf32>) -> tensor<64xf32>
  %1 = gpuc.broadcast %0 dims [0] : tensor<64xf32> to tensor<64x20000xf32>
  %2 = gpuc.mul %e, %1 : tensor<64x20000xf32>
  return %2 : tensor<64x20000xf32>
}

// -----

// Clamped numbers are: what takes two comparisons is computed again.
// CHECK-LABEL: func.func @cheap_to_repeat(
// CHECK:         gpuc.fused "clamp_sum_mul"(%arg0) : (tensor<64x20000xf32>) -> tensor<64x20000xf32>
// CHECK-NOT:     = gpuc.fused
// CHECK:         return
func.func @cheap_to_repeat(%x: tensor<64x20000xf32>) -> tensor<64x20000xf32> {
  %c = gpuc.clamp %x low 0.0 high 6.0 : tensor<64x20000xf32>
  %0 = gpuc.sum %c dims [1] : (tensor<64x20000xf32>) -> tensor<64xf32>
  %1 = gpuc.broadcast %0 dims [0] : tensor<64xf32> to tensor<64x20000xf32>
  %2 = gpuc.mul %c, %1 : tensor<64x20000xf32>
  return %2 : tensor<64x20000xf32>
}

// -----

// A kernel of rows spreads them over the cores: eight rows are enough for eight.
// CHECK-LABEL: func.func @rows_for_all_cores(
// CHECK:         gpuc.fused "sum_mul"(%arg0)
// CHECK-NOT:     = gpuc.fused
// CHECK:         return
func.func @rows_for_all_cores(%x: tensor<8x100000xf32>) -> tensor<8x100000xf32> {
  %0 = gpuc.sum %x dims [1] : (tensor<8x100000xf32>) -> tensor<8xf32>
  %1 = gpuc.broadcast %0 dims [0] : tensor<8xf32> to tensor<8x100000xf32>
  %2 = gpuc.mul %x, %1 : tensor<8x100000xf32>
  return %2 : tensor<8x100000xf32>
}

// -----

// One row would be one core's, the products as well, which by themselves are everyone's.
// CHECK-LABEL: func.func @a_row_for_one_core(
// CHECK:         gpuc.fused "sum"(
// CHECK:         gpuc.fused "mul"(
func.func @a_row_for_one_core(%x: tensor<1x800000xf32>) -> tensor<1x800000xf32> {
  %0 = gpuc.sum %x dims [1] : (tensor<1x800000xf32>) -> tensor<1xf32>
  %1 = gpuc.broadcast %0 dims [0] : tensor<1xf32> to tensor<1x800000xf32>
  %2 = gpuc.mul %x, %1 : tensor<1x800000xf32>
  return %2 : tensor<1x800000xf32>
}

// -----

// Columns side by side are a few vectors' lanes: eight of them are a piece for one core.
// CHECK-LABEL: func.func @columns_for_one_core(
// CHECK:         gpuc.fused "sum"(
// CHECK:         gpuc.fused "mul"(
func.func @columns_for_one_core(%x: tensor<100000x8xf32>) -> tensor<100000x8xf32> {
  %0 = gpuc.sum %x dims [0] : (tensor<100000x8xf32>) -> tensor<8xf32>
  %1 = gpuc.broadcast %0 dims [1] : tensor<8xf32> to tensor<100000x8xf32>
  %2 = gpuc.mul %x, %1 : tensor<100000x8xf32>
  return %2 : tensor<100000x8xf32>
}
