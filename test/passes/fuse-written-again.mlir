// RUN: gpuc-opt %s --gpuc-fuse --split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-fuse=target=cuda:sm_90 --split-input-file | FileCheck %s --check-prefix=CUDA
// CUDA-NOT: written_again

// What a product of the backward pass reads again need not be kept if a kernel there, on its way, computes it from what
// it reads: it writes it again. A byte that waits costs what it takes to move two (FuseCost.h), this one more.

// A layer of a transformer: y = x * tanh(x) is what the second product multiplies. Its weight's gradient is computed
// behind the kernel that gives x's, and reads what that writes; x alone is kept.
// CHECK-LABEL: func.func @gate(
// CHECK:         %[[Y:.*]] = gpuc.fused "{{(f\.)?}}tanh_mul"(%arg0)
// CHECK:         %[[DY:.*]] = gpuc.matmul %{{.*}}, transpose %arg1
// CHECK:         %[[K:.*]]:2 = gpuc.fused "f.backward.tanh_mul"({{.*}}) {gpuc.written_again = {{\[\[}}0, "tanh_mul", 0]]}
// CHECK-DAG:     %[[DW:.*]] = gpuc.matmul transpose %[[K]]#0, %{{.*}}
// CHECK:         return %{{.*}}, %[[K]]#1, %[[DW]]
func.func @gate(%x: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>) {
  %t = gpuc.tanh %x : tensor<1024x1024xf32>
  %y = gpuc.mul %x, %t : tensor<1024x1024xf32>
  %z = gpuc.matmul %y, %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %dw = gpuc.matmul transpose %y, %z : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %dy = gpuc.matmul %z, transpose %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %d = gpuc.mul %dy, %t : tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %e = gpuc.mul %d, %x : tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %dx = gpuc.matmul %e, %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %g = gpuc.matmul %dx, %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc(fused<"backward">["f"])
  return %z, %e, %dw : tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>
}

// -----

// The reader may see it under another shape, of which the forward pass reads its own.
// CHECK-LABEL: func.func @reshaped(
// CHECK:         %[[Y:.*]] = gpuc.fused "{{(f\.)?}}tanh_mul"(%arg0)
// CHECK:         %[[ROWS:.*]] = gpuc.reshape %[[Y]]
// CHECK:         gpuc.matmul %[[ROWS]], %arg1
// CHECK:         %[[K:.*]]:2 = gpuc.fused "f.backward.tanh_mul"
// CHECK:         %[[AGAIN:.*]] = gpuc.reshape %[[K]]#0
// CHECK:         gpuc.matmul transpose %[[AGAIN]], %{{.*}}
func.func @reshaped(%x: tensor<2x512x1024xf32>, %w: tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>, tensor<2x512x1024xf32>, tensor<1024x1024xf32>) {
  %t = gpuc.tanh %x : tensor<2x512x1024xf32>
  %y = gpuc.mul %x, %t : tensor<2x512x1024xf32>
  %r = gpuc.reshape %y : tensor<2x512x1024xf32> to tensor<1024x1024xf32>
  %z = gpuc.matmul %r, %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %dw = gpuc.matmul transpose %r, %z : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %dr = gpuc.matmul %z, transpose %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %dy = gpuc.reshape %dr : tensor<1024x1024xf32> to tensor<2x512x1024xf32> loc(fused<"backward">["f"])
  %d = gpuc.mul %dy, %t : tensor<2x512x1024xf32> loc(fused<"backward">["f"])
  %e = gpuc.mul %d, %x : tensor<2x512x1024xf32> loc(fused<"backward">["f"])
  %s = gpuc.reshape %e : tensor<2x512x1024xf32> to tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %dx = gpuc.matmul %s, %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc(fused<"backward">["f"])
  return %dx, %e, %dw : tensor<1024x1024xf32>, tensor<2x512x1024xf32>, tensor<1024x1024xf32>
}

// -----

// Its reader may be another kernel, which spreads it over pixels and stands before the one that writes it again: a gate of
// squeeze-and-excitation.
// CHECK-LABEL: func.func @excited(
// CHECK:         %[[G:.*]] = gpuc.fused "tanh_mul"(%arg1)
// CHECK:         gpuc.fused "mul"
// CHECK:         %[[K:.*]]:2 = gpuc.fused "f.backward.tanh_mul"(%arg1, %{{.*}}) {gpuc.written_again = {{\[\[}}0, "tanh_mul", 0]]}
// CHECK:         %[[AGAIN:.*]] = gpuc.reshape %[[K]]#0
// CHECK:         gpuc.fused "f.backward.mul_add"(%{{.*}}, %[[AGAIN]], %{{.*}})
func.func @excited(%x: tensor<64x32x32x32xf32>, %u: tensor<64x32x1x1xf32>, %w: tensor<1024x1024xf32>) -> (tensor<64x32x32x32xf32>, tensor<64x32x1x1xf32>) {
  %t = gpuc.tanh %u : tensor<64x32x1x1xf32>
  %g = gpuc.mul %u, %t : tensor<64x32x1x1xf32>
  %r = gpuc.reshape %g : tensor<64x32x1x1xf32> to tensor<64x32xf32>
  %b = gpuc.broadcast %r dims [0, 1] : tensor<64x32xf32> to tensor<64x32x32x32xf32>
  %y = gpuc.mul %b, %x : tensor<64x32x32x32xf32>
  %rows = gpuc.reshape %y : tensor<64x32x32x32xf32> to tensor<2048x1024xf32>
  %z = gpuc.matmul %rows, %w : (tensor<2048x1024xf32>, tensor<1024x1024xf32>) -> tensor<2048x1024xf32>
  %dz = gpuc.matmul %z, transpose %w : (tensor<2048x1024xf32>, tensor<1024x1024xf32>) -> tensor<2048x1024xf32> loc(fused<"backward">["f"])
  %dy = gpuc.reshape %dz : tensor<2048x1024xf32> to tensor<64x32x32x32xf32> loc(fused<"backward">["f"])
  %m = gpuc.mul %dy, %b : tensor<64x32x32x32xf32> loc(fused<"backward">["f"])
  %p = gpuc.mul %dy, %x : tensor<64x32x32x32xf32> loc(fused<"backward">["f"])
  %s = gpuc.sum %p dims [2, 3] : (tensor<64x32x32x32xf32>) -> tensor<64x32xf32> loc(fused<"backward">["f"])
  %dg = gpuc.reshape %s : tensor<64x32xf32> to tensor<64x32x1x1xf32> loc(fused<"backward">["f"])
  %d = gpuc.mul %dg, %t : tensor<64x32x1x1xf32> loc(fused<"backward">["f"])
  %e = gpuc.mul %d, %u : tensor<64x32x1x1xf32> loc(fused<"backward">["f"])
  %q = gpuc.reshape %e : tensor<64x32x1x1xf32> to tensor<64x32xf32> loc(fused<"backward">["f"])
  %c = gpuc.broadcast %q dims [0, 1] : tensor<64x32xf32> to tensor<64x32x32x32xf32> loc(fused<"backward">["f"])
  %dx = gpuc.add %m, %c : tensor<64x32x32x32xf32> loc(fused<"backward">["f"])
  return %dx, %e : tensor<64x32x32x32xf32>, tensor<64x32x1x1xf32>
}

// -----

// The kernel that could write it again waits for the product that reads it.
// CHECK-LABEL: func.func @read_before(
// CHECK:         %[[Y:.*]] = gpuc.fused "{{(f\.)?}}tanh_mul"(%arg0)
// CHECK:         gpuc.matmul transpose %[[Y]], %{{.*}}
// CHECK-NOT:     written_again
// CHECK:         return
func.func @read_before(%x: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %t = gpuc.tanh %x : tensor<1024x1024xf32>
  %y = gpuc.mul %x, %t : tensor<1024x1024xf32>
  %z = gpuc.matmul %y, %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %dy = gpuc.matmul transpose %y, %z : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %d = gpuc.mul %dy, %t : tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %e = gpuc.mul %d, %x : tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %dx = gpuc.matmul %e, %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc(fused<"backward">["f"])
  return %dx : tensor<1024x1024xf32>
}

// -----

// The forward pass alone reads it under another shape, behind what the backward pass reads as it is: that shape stays where it was.
// CHECK-LABEL: func.func @reshaped_in_front(
// CHECK:         %[[Y:.*]] = gpuc.fused "{{(f\.)?}}tanh_mul"(%arg0)
// CHECK:         %[[ROWS:.*]] = gpuc.reshape %[[Y]] : tensor<1024x1024xf32> to tensor<512x2048xf32>
// CHECK:         gpuc.matmul %[[ROWS]], %arg2
// CHECK:         %[[K:.*]]:2 = gpuc.fused "f.backward.tanh_mul"({{.*}}) {gpuc.written_again = {{\[\[}}0, "tanh_mul", 0]]}
// CHECK:         gpuc.matmul transpose %[[K]]#0, %{{.*}}
func.func @reshaped_in_front(%x: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>, %v: tensor<2048x1024xf32>) -> (tensor<1024x1024xf32>, tensor<512x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>) {
  %t = gpuc.tanh %x : tensor<1024x1024xf32>
  %y = gpuc.mul %x, %t : tensor<1024x1024xf32>
  %z = gpuc.matmul %y, %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %dw = gpuc.matmul transpose %y, %z : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %r = gpuc.reshape %y : tensor<1024x1024xf32> to tensor<512x2048xf32>
  %o = gpuc.matmul %r, %v : (tensor<512x2048xf32>, tensor<2048x1024xf32>) -> tensor<512x1024xf32>
  %dy = gpuc.matmul %z, transpose %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %d = gpuc.mul %dy, %t : tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %e = gpuc.mul %d, %x : tensor<1024x1024xf32> loc(fused<"backward">["f"])
  %dx = gpuc.matmul %e, %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc(fused<"backward">["f"])
  return %dx, %o, %e, %dw : tensor<1024x1024xf32>, tensor<512x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>
}
