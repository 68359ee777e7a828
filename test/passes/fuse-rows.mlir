// RUN: gpuc-opt %s --gpuc-fuse --split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-fuse=target=cuda:sm_90 --split-input-file | FileCheck %s --check-prefix=CUDA

// Two reductions and what lies between and behind them: each row is read from memory once.
// CHECK-LABEL: func.func @softmax(
// CHECK-SAME:    %[[X:.*]]: tensor<64x100xf32>
// CHECK-NEXT:    %[[Y:.*]] = gpuc.fused "reduce_max_sub_exp_sum"(%[[X]]) : (tensor<64x100xf32>) -> tensor<64x100xf32> {
// CHECK-NOT:     gpuc.fused
// CHECK:         return %[[Y]]
// CUDA-LABEL:  func.func @softmax(
// CUDA:          gpuc.fused "reduce_max_sub_exp_sum"(
// CUDA-NOT:      gpuc.fused
// CUDA:          return
func.func @softmax(%x: tensor<64x100xf32>) -> tensor<64x100xf32> {
  %0 = gpuc.reduce_max %x dims [1] : (tensor<64x100xf32>) -> tensor<64xf32>
  %1 = gpuc.broadcast %0 dims [0] : tensor<64xf32> to tensor<64x100xf32>
  %2 = gpuc.sub %x, %1 : tensor<64x100xf32>
  %3 = gpuc.exp %2 : tensor<64x100xf32>
  %4 = gpuc.sum %3 dims [1] : (tensor<64x100xf32>) -> tensor<64xf32>
  %5 = gpuc.broadcast %4 dims [0] : tensor<64xf32> to tensor<64x100xf32>
  %6 = gpuc.div %3, %5 : tensor<64x100xf32>
  return %6 : tensor<64x100xf32>
}

// -----

// A residual that others read too is a result of the kernel that normalises it, and so are statistics.
// CHECK-LABEL: func.func @residual_norm(
// CHECK:         %[[Y:.*]]:3 = gpuc.fused "add_sum_sub_mul"(%arg0, %arg1) : (tensor<64x32xbf16>, tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64xf32>, tensor<64x32xbf16>)
// CHECK-NOT:     gpuc.fused
// CHECK:         return %[[Y]]#0, %[[Y]]#1, %[[Y]]#2
func.func @residual_norm(%x: tensor<64x32xbf16>, %residual: tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64xf32>, tensor<64x32xbf16>) {
  %wide = gpuc.cast %x : tensor<64x32xbf16> to tensor<64x32xf32>
  %0 = gpuc.add %wide, %residual : tensor<64x32xf32>
  %1 = gpuc.sum %0 dims [1] : (tensor<64x32xf32>) -> tensor<64xf32>
  %2 = gpuc.broadcast %1 dims [0] : tensor<64xf32> to tensor<64x32xf32>
  %3 = gpuc.sub %0, %2 : tensor<64x32xf32>
  %4 = gpuc.mul %3, %3 : tensor<64x32xf32>
  %5 = gpuc.sum %4 dims [1] : (tensor<64x32xf32>) -> tensor<64xf32>
  %6 = gpuc.rsqrt %5 : tensor<64xf32>
  %7 = gpuc.broadcast %6 dims [0] : tensor<64xf32> to tensor<64x32xf32>
  %8 = gpuc.mul %3, %7 : tensor<64x32xf32>
  %9 = gpuc.cast %8 : tensor<64x32xf32> to tensor<64x32xbf16>
  return %0, %6, %9 : tensor<64x32xf32>, tensor<64xf32>, tensor<64x32xbf16>
}

// -----

// One long row: its elements are spread over threads, which a kernel of rows could not do.
// CHECK-LABEL: func.func @one_long_row(
// CHECK:         gpuc.fused "sum"(
// CHECK:         gpuc.fused "div"(
// CUDA-LABEL:  func.func @one_long_row(
// CUDA:          gpuc.fused "sum"(
// CUDA:          gpuc.fused "div"(
func.func @one_long_row(%x: tensor<1x1000000xf32>) -> tensor<1x1000000xf32> {
  %0 = gpuc.sum %x dims [1] : (tensor<1x1000000xf32>) -> tensor<1xf32>
  %1 = gpuc.broadcast %0 dims [0] : tensor<1xf32> to tensor<1x1000000xf32>
  %2 = gpuc.div %x, %1 : tensor<1x1000000xf32>
  return %2 : tensor<1x1000000xf32>
}

// -----

// Rows of 400 KB leave the cache before they are read again: nothing would be saved.
// CHECK-LABEL: func.func @rows_beyond_the_cache(
// CHECK:         gpuc.fused "sum"(
// CHECK:         gpuc.fused "div"(
func.func @rows_beyond_the_cache(%x: tensor<64x100000xf32>) -> tensor<64x100000xf32> {
  %0 = gpuc.sum %x dims [1] : (tensor<64x100000xf32>) -> tensor<64xf32>
  %1 = gpuc.broadcast %0 dims [0] : tensor<64xf32> to tensor<64x100000xf32>
  %2 = gpuc.div %x, %1 : tensor<64x100000xf32>
  return %2 : tensor<64x100000xf32>
}

// -----

// The sum of another row: a kernel of rows does not have it.
// CHECK-LABEL: func.func @other_rows(
// CHECK:         gpuc.fused "sum"(
// CHECK:         gpuc.fused "div"(
func.func @other_rows(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = gpuc.sum %x dims [1] : (tensor<64x64xf32>) -> tensor<64xf32>
  %1 = gpuc.broadcast %0 dims [1] : tensor<64xf32> to tensor<64x64xf32>
  %2 = gpuc.div %x, %1 : tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}

// -----

// Sums of rows and of columns; the columns' kernel would write the quotients stride by stride.
// CHECK-LABEL: func.func @rows_and_columns(
// CHECK:         %[[Y:.*]] = gpuc.fused "sum_div"(%arg0) : (tensor<4096x64xf32>) -> tensor<4096x64xf32>
// CHECK:         gpuc.fused "sum"(%[[Y]]) : (tensor<4096x64xf32>) -> tensor<64xf32>
func.func @rows_and_columns(%x: tensor<4096x64xf32>) -> (tensor<4096x64xf32>, tensor<64xf32>) {
  %0 = gpuc.sum %x dims [1] : (tensor<4096x64xf32>) -> tensor<4096xf32>
  %1 = gpuc.broadcast %0 dims [0] : tensor<4096xf32> to tensor<4096x64xf32>
  %2 = gpuc.div %x, %1 : tensor<4096x64xf32>
  %3 = gpuc.sum %2 dims [0] : (tensor<4096x64xf32>) -> tensor<64xf32>
  return %2, %3 : tensor<4096x64xf32>, tensor<64xf32>
}

// -----

// As layer_norm's backward pass: two reductions of the rows, two of the columns, each pair in one kernel. What
// both read of x is computed by both, not kept.
// CHECK-LABEL: func.func @rows_and_columns_of_two(
// CHECK-SAME:    %[[X:.*]]: tensor<4096x64xf32>, %[[CT:.*]]: tensor<4096x64xf32>, %[[MEAN:.*]]: tensor<4096xf32>
// CHECK-DAG:     gpuc.fused "{{.*}}"(%[[X]], %[[MEAN]], %[[CT]]) : (tensor<4096x64xf32>, tensor<4096xf32>, tensor<4096x64xf32>) -> tensor<4096x64xf32> {
// CHECK-DAG:     gpuc.fused "{{.*}}"(%[[X]], %[[MEAN]], %[[CT]]) : (tensor<4096x64xf32>, tensor<4096xf32>, tensor<4096x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
// CHECK-NOT:     = gpuc.fused
// CHECK:         return
func.func @rows_and_columns_of_two(%x: tensor<4096x64xf32>, %ct: tensor<4096x64xf32>, %mean: tensor<4096xf32>)
    -> (tensor<4096x64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %m = gpuc.broadcast %mean dims [0] : tensor<4096xf32> to tensor<4096x64xf32>
  %unit = gpuc.sub %x, %m : tensor<4096x64xf32>
  %0 = gpuc.mul %ct, %unit : tensor<4096x64xf32>
  %1 = gpuc.sum %0 dims [0] : (tensor<4096x64xf32>) -> tensor<64xf32>
  %2 = gpuc.sum %ct dims [0] : (tensor<4096x64xf32>) -> tensor<64xf32>
  %3 = gpuc.sum %ct dims [1] : (tensor<4096x64xf32>) -> tensor<4096xf32>
  %4 = gpuc.broadcast %3 dims [0] : tensor<4096xf32> to tensor<4096x64xf32>
  %5 = gpuc.mul %unit, %4 : tensor<4096x64xf32>
  %6 = gpuc.sum %5 dims [1] : (tensor<4096x64xf32>) -> tensor<4096xf32>
  %7 = gpuc.broadcast %6 dims [0] : tensor<4096xf32> to tensor<4096x64xf32>
  %8 = gpuc.add %unit, %7 : tensor<4096x64xf32>
  return %8, %1, %2 : tensor<4096x64xf32>, tensor<64xf32>, tensor<64xf32>
}

// -----

// A sum of two operands takes more to compute again than to load; so does an exponential.
// CHECK-LABEL: func.func @kept_results(
// CHECK:         %[[Y:.*]]:3 = gpuc.fused "add_exp_sum"(%arg0, %arg1) : {{.*}} -> (tensor<4096x64xf32>, tensor<4096x64xf32>, tensor<4096xf32>)
// CHECK:         gpuc.fused "sum"(%[[Y]]#0)
// CHECK:         gpuc.fused "sum_2"(%[[Y]]#1)
func.func @kept_results(%x: tensor<4096x64xf32>, %y: tensor<4096x64xf32>)
    -> (tensor<64xf32>, tensor<64xf32>, tensor<4096xf32>) {
  %0 = gpuc.add %x, %y : tensor<4096x64xf32>
  %1 = gpuc.exp %0 : tensor<4096x64xf32>
  %2 = gpuc.sum %1 dims [1] : (tensor<4096x64xf32>) -> tensor<4096xf32>
  %3 = gpuc.sum %0 dims [0] : (tensor<4096x64xf32>) -> tensor<64xf32>
  %4 = gpuc.sum %1 dims [0] : (tensor<4096x64xf32>) -> tensor<64xf32>
  return %3, %4, %2 : tensor<64xf32>, tensor<64xf32>, tensor<4096xf32>
}

// -----

// Nor is a product computed again that takes a vector which the kernel makes for itself: it would have to put that out, which
// has the shape of neither its rows nor their elements.
// CHECK-LABEL: func.func @vector_of_its_own
// CHECK:         %[[Y:.*]]:2 = gpuc.fused "mul_sum"(%arg1, %arg0) : {{.*}} -> (tensor<4096x64xf32>, tensor<4096xf32>)
// CHECK:         gpuc.fused "sum"(%[[Y]]#0)
func.func @vector_of_its_own(%x: tensor<4096x64xf32>, %w: tensor<64xf32>) -> (tensor<64xf32>, tensor<4096xf32>) {
  %v = gpuc.mul %w, %w : tensor<64xf32>
  %0 = gpuc.broadcast %v dims [1] : tensor<64xf32> to tensor<4096x64xf32>
  %1 = gpuc.mul %x, %0 : tensor<4096x64xf32>
  %2 = gpuc.sum %1 dims [1] : (tensor<4096x64xf32>) -> tensor<4096xf32>
  %3 = gpuc.sum %1 dims [0] : (tensor<4096x64xf32>) -> tensor<64xf32>
  return %3, %2 : tensor<64xf32>, tensor<4096xf32>
}

// -----

// The exponentials of long rows: a CPU stores them for their second reader, a GPU computes them again there, though that pads
// them.
// CHECK-LABEL: func.func @exponentials(
// CHECK:         gpuc.fused "exp"(%arg0)
// CHECK:         gpuc.fused "sum"
// CHECK:         gpuc.fused "div_cast_pad"
// CUDA-LABEL:  func.func @exponentials(
// CUDA:          gpuc.fused {{.*}} -> tensor<1024xf32>
// CUDA:          gpuc.fused {{.*}} -> tensor<1024x50264xbf16>
// CUDA:            gpuc.exp
// CUDA:            gpuc.pad
func.func @exponentials(%x: tensor<1024x50257xbf16>) -> tensor<1024x50264xbf16> {
  %wide = gpuc.cast %x : tensor<1024x50257xbf16> to tensor<1024x50257xf32>
  %e = gpuc.exp %wide : tensor<1024x50257xf32>
  %sum = gpuc.sum %e dims [1] : (tensor<1024x50257xf32>) -> tensor<1024xf32>
  %all = gpuc.broadcast %sum dims [0] : tensor<1024xf32> to tensor<1024x50257xf32>
  %p = gpuc.div %e, %all : tensor<1024x50257xf32>
  %narrow = gpuc.cast %p : tensor<1024x50257xf32> to tensor<1024x50257xbf16>
  %padded = gpuc.pad %narrow low [0, 0] high [0, 7] interior [0, 0] : (tensor<1024x50257xbf16>) -> tensor<1024x50264xbf16>
  return %padded : tensor<1024x50264xbf16>
}
