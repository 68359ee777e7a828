// RUN: gpuc-opt %s --gpuc-fuse --split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-fuse=enable=false --split-input-file | FileCheck %s --check-prefix=OFF

// A chain with its broadcast and constant becomes one kernel, which reads the matmul's result and the bias.
// CHECK-LABEL: func.func @chain(
// CHECK:         %[[H:.*]] = gpuc.matmul
// CHECK:         %[[B:.*]] = gpuc.read @b
// CHECK:         %[[Y:.*]] = gpuc.fused "fc1.add_mul_relu"(%[[H]], %[[B]]) : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32> {
// CHECK:           gpuc.broadcast
// CHECK:           gpuc.add
// CHECK:           gpuc.constant 2.0
// CHECK:           gpuc.mul
// CHECK:           gpuc.relu
// CHECK:         }
// CHECK-NOT:     gpuc.fused
// CHECK:         return %[[Y]]
// Switched off, each op is a kernel; constants are immediates all the same.
// OFF-LABEL:   func.func @chain(
// OFF:           gpuc.fused "fc1.broadcast"
// OFF:           gpuc.fused "fc1.add"
// OFF:           gpuc.fused "fc1.mul"
// OFF-NEXT:      ^bb0
// OFF-NEXT:        gpuc.constant 2.0
// OFF:           gpuc.fused "act1.relu"
gpuc.variable @b : tensor<2xf32> init zeros
func.func @chain(%x: tensor<4x3xf32>, %w: tensor<3x2xf32>) -> tensor<4x2xf32> {
  %0 = gpuc.matmul %x, %w : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32> loc("fc1")
  %b = gpuc.read @b : tensor<2xf32> loc("fc1")
  %1 = gpuc.broadcast %b dims [1] : tensor<2xf32> to tensor<4x2xf32> loc("fc1")
  %2 = gpuc.add %0, %1 : tensor<4x2xf32> loc("fc1")
  %two = gpuc.constant 2.0 : tensor<4x2xf32> loc("fc1")
  %3 = gpuc.mul %2, %two : tensor<4x2xf32> loc("fc1")
  %4 = gpuc.relu %3 : tensor<4x2xf32> loc("act1")
  return %4 : tensor<4x2xf32>
}

// -----

// A reduction takes in what it alone reads, and what follows it in its shape.
// CHECK-LABEL: func.func @reduction(
// CHECK:         gpuc.fused "norm.mul_sum_sqrt"(%{{.*}}) : (tensor<8x4xf32>) -> tensor<8xf32> {
// CHECK-NOT:     gpuc.fused
// CHECK:         return
func.func @reduction(%x: tensor<8x4xf32>) -> tensor<8xf32> {
  %0 = gpuc.mul %x, %x : tensor<8x4xf32> loc("norm")
  %1 = gpuc.sum %0 dims [1] : (tensor<8x4xf32>) -> tensor<8xf32> loc("norm")
  %2 = gpuc.sqrt %1 : tensor<8xf32> loc("norm")
  return %2 : tensor<8xf32>
}

// -----

// exp is read by a sum and by a library call: it is computed once, and kept.
// CHECK-LABEL: func.func @read_twice(
// CHECK:         %[[E:.*]]:2 = gpuc.fused "exp_sum"(
// CHECK:         gpuc.matmul %[[E]]#0, %[[E]]#0
// CHECK-NOT:     gpuc.exp
// CHECK:         return
func.func @read_twice(%x: tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4x4xf32>) {
  %0 = gpuc.exp %x : tensor<4x4xf32>
  %1 = gpuc.sum %0 dims [1] : (tensor<4x4xf32>) -> tensor<4xf32>
  %2 = gpuc.matmul %0, %0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4x4xf32>
}

// -----

// Values of one shape that others read too are results of one kernel, as Adam's moments are.
// CHECK-LABEL: func.func @several_results(
// CHECK:         %[[NEW:.*]]:3 = gpuc.fused "mul_add_sqrt_div"
// CHECK-NOT:     gpuc.fused
// CHECK:         gpuc.assign @m, %[[NEW]]#0
// CHECK:         gpuc.assign @v, %[[NEW]]#1
// CHECK:         gpuc.assign @w, %[[NEW]]#2
gpuc.variable @w : tensor<4xf32> init zeros
gpuc.variable @m : tensor<4xf32> init zeros
gpuc.variable @v : tensor<4xf32> init zeros
func.func @several_results(%g: tensor<4xf32>) {
  %w = gpuc.read @w : tensor<4xf32>
  %m = gpuc.read @m : tensor<4xf32>
  %v = gpuc.read @v : tensor<4xf32>
  %0 = gpuc.mul %m, %g : tensor<4xf32>
  %1 = gpuc.add %v, %g : tensor<4xf32>
  %2 = gpuc.sqrt %1 : tensor<4xf32>
  %3 = gpuc.div %0, %2 : tensor<4xf32>
  %4 = gpuc.sub %w, %3 : tensor<4xf32>
  gpuc.assign @m, %0 : tensor<4xf32>
  gpuc.assign @v, %1 : tensor<4xf32>
  gpuc.assign @w, %4 : tensor<4xf32>
  return
}

// -----

// exp is kept and read at another index too: in one kernel it would be computed twice.
// CHECK-LABEL: func.func @moved(
// CHECK:         %[[E:.*]] = gpuc.fused "exp"(
// CHECK:         gpuc.fused "neg"(%[[E]])
// CHECK:           gpuc.transpose
func.func @moved(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3x2xf32>) {
  %0 = gpuc.exp %x : tensor<2x3xf32>
  %1 = gpuc.transpose %0 permutation [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = gpuc.neg %1 : tensor<3x2xf32>
  return %0, %2 : tensor<2x3xf32>, tensor<3x2xf32>
}
func.func @moved_square(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {
  // CHECK-LABEL: func.func @moved_square(
  // CHECK:         gpuc.fused "exp_2"
  // CHECK:         gpuc.fused "neg_2"
  %0 = gpuc.exp %x : tensor<3x3xf32>
  %1 = gpuc.transpose %0 permutation [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = gpuc.neg %1 : tensor<3x3xf32>
  return %0, %2 : tensor<3x3xf32>, tensor<3x3xf32>
}

// -----

// exp feeds the matmul and, with its result, the add: exp and add in one kernel would wait for themselves.
// CHECK-LABEL: func.func @no_cycle(
// CHECK:         %[[E:.*]] = gpuc.fused "exp"
// CHECK:         %[[M:.*]] = gpuc.matmul %[[E]]
// CHECK:         gpuc.fused "add"(%[[E]], %[[M]])
func.func @no_cycle(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = gpuc.exp %x : tensor<4x4xf32>
  %1 = gpuc.matmul %0, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = gpuc.add %0, %1 : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

// The logarithm of a scalar is computed once, not for each of 64 elements; a difference may be.
// CHECK-LABEL: func.func @scalars(
// CHECK:         gpuc.fused "log"(%{{.*}}) : (tensor<f32>) -> tensor<f32>
// CHECK:         gpuc.fused "mul"(
// CHECK:         gpuc.fused "sub_mul"(%{{.*}}) : ({{.*}}) -> tensor<64xf32>
// CHECK-NOT:     gpuc.fused
// CHECK:         return
func.func @scalars(%a: tensor<f32>, %x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = gpuc.log %a : tensor<f32>
  %1 = gpuc.broadcast %0 dims [] : tensor<f32> to tensor<64xf32>
  %2 = gpuc.mul %x, %1 : tensor<64xf32>
  %one = gpuc.constant 1.0 : tensor<f32>
  %3 = gpuc.sub %one, %a : tensor<f32>
  %4 = gpuc.broadcast %3 dims [] : tensor<f32> to tensor<64xf32>
  %5 = gpuc.mul %x, %4 : tensor<64xf32>
  return %2, %5 : tensor<64xf32>, tensor<64xf32>
}

// -----

// The mask of a relu is computed in the backward pass, from the result that is kept anyway.
// CHECK-LABEL: func.func @mask(
// CHECK:         %[[H:.*]] = gpuc.fused "act1.relu"(%{{.*}}) : (tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK:         gpuc.matmul
// CHECK:         gpuc.fused "act1.backward.compare_select"(%[[H]],
func.func @mask(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = gpuc.relu %x : tensor<4x4xf32> loc("act1")
  %1 = gpuc.matmul %0, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %zero = gpuc.constant 0.0 : tensor<4x4xf32>
  %2 = gpuc.compare le %0, %zero : tensor<4x4xf32> loc(fused<"backward">["act1"])
  %3 = gpuc.select %2, %zero, %1 : tensor<4x4xi1>, tensor<4x4xf32> loc(fused<"backward">["act1"])
  return %3 : tensor<4x4xf32>
}

// -----

// What no kernel reads but an assign or the caller does is a kernel of its own; names are used once.
// CHECK-LABEL: func.func @materialized(
// CHECK:         %[[ONES:.*]] = gpuc.fused "w.constant"() : () -> tensor<4xf32>
// CHECK:         %[[WIDE:.*]] = gpuc.fused "broadcast"(
// CHECK:         gpuc.fused "neg"(
// CHECK:         gpuc.fused "neg_2"(
// CHECK:         gpuc.assign @w, %[[ONES]]
// CHECK:         return %[[WIDE]]
gpuc.variable @w : tensor<4xf32> init zeros
func.func @materialized(%x: tensor<4xf32>, %y: tensor<2xf32>) -> (tensor<3x4xf32>, tensor<4xf32>, tensor<2xf32>) {
  %ones = gpuc.constant 1.0 : tensor<4xf32> loc("w")
  %wide = gpuc.broadcast %x dims [1] : tensor<4xf32> to tensor<3x4xf32>
  %0 = gpuc.neg %x : tensor<4xf32>
  %1 = gpuc.neg %y : tensor<2xf32>
  gpuc.assign @w, %ones : tensor<4xf32>
  return %wide, %0, %1 : tensor<3x4xf32>, tensor<4xf32>, tensor<2xf32>
}

// -----

// A sort works in the buffers of both results, also where nobody reads one of them. It takes in what comes
// before it, nothing that comes after.
// CHECK-LABEL: func.func @sorted(
// CHECK:         %[[S:.*]]:2 = gpuc.fused "{{.*}}"(%arg0) : (tensor<4x9xf32>) -> (tensor<4x9xf32>, tensor<4x9xi64>) {
// CHECK:           gpuc.neg
// CHECK:           gpuc.sort
// CHECK-NEXT:      gpuc.yield %{{.*}}, %{{.*}} : tensor<4x9xf32>, tensor<4x9xi64>
// CHECK:         gpuc.fused "{{.*}}"(%[[S]]#0)
// CHECK:           gpuc.exp
func.func @sorted(%x: tensor<4x9xf32>) -> tensor<4x9xf32> {
  %0 = gpuc.neg %x : tensor<4x9xf32>
  %values, %indices = gpuc.sort %0 dim 1 : (tensor<4x9xf32>) -> (tensor<4x9xf32>, tensor<4x9xi64>)
  %1 = gpuc.exp %values : tensor<4x9xf32>
  return %1 : tensor<4x9xf32>
}

// What 16 bits hold is read as f32 where it is needed, and not kept as f32 for two readers: each kernel has the cast.
// CHECK-LABEL: func.func @widening_cast(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xbf16>
// CHECK-DAG:     gpuc.fused "{{.*}}exp{{.*}}"(%[[X]]) : (tensor<4x8xbf16>)
// CHECK-DAG:     gpuc.fused "{{.*}}sum{{.*}}"(%[[X]]) : (tensor<4x8xbf16>)
// CHECK:         return
func.func @widening_cast(%x: tensor<4x8xbf16>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %0 = gpuc.cast %x : tensor<4x8xbf16> to tensor<4x8xf32>
  %1 = gpuc.exp %0 : tensor<4x8xf32>
  %2 = gpuc.sum %0 dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  return %1, %2 : tensor<4x8xf32>, tensor<4xf32>
}
