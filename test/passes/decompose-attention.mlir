// RUN: gpuc-opt %s --gpuc-decompose=target=host | FileCheck %s --check-prefixes=CHECK,HOST
// RUN: gpuc-opt %s --gpuc-decompose=target=host:x86-64-v3 | FileCheck %s --check-prefixes=CHECK,HOST
// RUN: gpuc-opt %s --gpuc-decompose=target=cuda:sm_90 | FileCheck %s --check-prefixes=CHECK,CUDA
// RUN: gpuc-opt %s --gpuc-decompose | FileCheck %s --check-prefixes=CHECK,NONE

// The host computes attention and its gradient whole, in f32 and f64, CUDA in f32 and 16 bits.
// CHECK-LABEL: func.func @whole(
// HOST:          gpuc.attention
// HOST:          gpuc.attention_gradient
// CUDA:          gpuc.attention
// CUDA:          gpuc.attention_gradient
// NONE-NOT:      gpuc.attention
// CHECK:         return
func.func @whole(%q: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %y, %log = gpuc.attention %q, %q, %q causal : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> (tensor<2x2x3x4xf32>, tensor<2x2x3xf32>)
  %dq, %dk, %dv = gpuc.attention_gradient %y of %y, %log query %q key %q value %q causal
      : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
      -> (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
  return %dk : tensor<2x2x3x4xf32>
}

// CHECK-LABEL: func.func @f64(
// HOST:          gpuc.attention
// CUDA-NOT:      gpuc.attention
// NONE-NOT:      gpuc.attention
// CHECK:         return
func.func @f64(%q: tensor<2x2x3x4xf64>) -> tensor<2x2x3x4xf64> {
  %y, %log = gpuc.attention %q, %q, %q : (tensor<2x2x3x4xf64>, tensor<2x2x3x4xf64>, tensor<2x2x3x4xf64>) -> (tensor<2x2x3x4xf64>, tensor<2x2x3xf64>)
  return %y : tensor<2x2x3x4xf64>
}

// 16 bits are computed as f32: by the definition, between casts on the host, within the kernel on CUDA.
// CHECK-LABEL: func.func @half(
// HOST-SAME:     %[[Q:.*]]: tensor<2x2x3x4xbf16>
// HOST:          %[[WIDE:.*]] = gpuc.cast %{{.*}} : tensor<2x2x3x4xbf16> to tensor<2x2x3x4xf32>
// HOST:          %[[Y:.*]], %{{.*}} = gpuc.attention %{{.*}} : (tensor<2x2x3x4xf32>,
// HOST:          gpuc.cast %[[Y]] : tensor<2x2x3x4xf32> to tensor<2x2x3x4xbf16>
// CUDA:          gpuc.attention %{{.*}} : (tensor<2x2x3x4xbf16>,
// NONE-NOT:      gpuc.attention
// CHECK:         return
func.func @half(%half: tensor<2x2x3x4xbf16>) -> tensor<2x2x3x4xbf16> {
  %0, %1 = gpuc.attention %half, %half, %half : (tensor<2x2x3x4xbf16>, tensor<2x2x3x4xbf16>, tensor<2x2x3x4xbf16>) -> (tensor<2x2x3x4xbf16>, tensor<2x2x3xf32>)
  return %0 : tensor<2x2x3x4xbf16>
}

// Wide heads do not fit the kernel's stack, or a thread's registers, and what drops everything is 0 in the definition.
// CHECK-LABEL: func.func @never(
// CHECK-NOT:     gpuc.attention
// CHECK:         return
func.func @never(%wide: tensor<1x1x3x257xf32>, %q: tensor<2x2x3x4xf32>) -> (tensor<1x1x3x257xf32>, tensor<2x2x3x4xf32>) {
  %2, %3 = gpuc.attention %wide, %wide, %wide : (tensor<1x1x3x257xf32>, tensor<1x1x3x257xf32>, tensor<1x1x3x257xf32>) -> (tensor<1x1x3x257xf32>, tensor<1x1x3xf32>)
  %4, %5 = gpuc.attention %q, %q, %q dropout 1.0 id 3 : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> (tensor<2x2x3x4xf32>, tensor<2x2x3xf32>)
  return %2, %4 : tensor<1x1x3x257xf32>, tensor<2x2x3x4xf32>
}

// In a loop, of microbatches say, it stays whole; dropout needs the counters, which a loop cannot read.
// CHECK-LABEL: func.func @looped(
// CHECK:         gpuc.scan
// HOST:            gpuc.attention
// CUDA:            gpuc.attention
// NONE-NOT:        gpuc.attention
// CHECK:         return
func.func @looped(%qs: tensor<5x2x2x3x4xf32>) -> tensor<5x2x2x3x4xf32> {
  %ys = gpuc.scan over(%qs) : (tensor<5x2x2x3x4xf32>) -> tensor<5x2x2x3x4xf32> {
  ^bb0(%q: tensor<2x2x3x4xf32>):
    %y, %log = gpuc.attention %q, %q, %q causal : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> (tensor<2x2x3x4xf32>, tensor<2x2x3xf32>)
    gpuc.yield %y : tensor<2x2x3x4xf32>
  }
  return %ys : tensor<5x2x2x3x4xf32>
}

// CUDA's kernels give no mask its gradient, hold a part of a row of up to 128 in registers, and multiply f32 exactly: what
// may be rounded to TF32 is faster as products of the library.
// CHECK-LABEL: func.func @narrower(
// CHECK:         gpuc.tf32
// HOST:          gpuc.attention_gradient
// HOST:          gpuc.attention
// CUDA-NOT:      gpuc.attention
// NONE-NOT:      gpuc.attention
// CHECK:         return
func.func @narrower(%q: tensor<1x2x3x4xf32>, %mask: tensor<3x3xf32>, %log: tensor<1x2x3xf32>, %wide: tensor<1x1x3x129xf32>)
    -> (tensor<3x3xf32>, tensor<1x1x3x129xf32>, tensor<1x2x3x4xf32>) {
  %y, %log_2 = gpuc.attention %q, %q, %q {gpuc.tf32} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3xf32>)
  %dq, %dk, %dv, %dm = gpuc.attention_gradient %q of %q, %log query %q key %q value %q mask %mask
      : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<3x3xf32>)
      -> (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<3x3xf32>)
  %z, %log_3 = gpuc.attention %wide, %wide, %wide : (tensor<1x1x3x129xf32>, tensor<1x1x3x129xf32>, tensor<1x1x3x129xf32>) -> (tensor<1x1x3x129xf32>, tensor<1x1x3xf32>)
  return %dm, %z, %y : tensor<3x3xf32>, tensor<1x1x3x129xf32>, tensor<1x2x3x4xf32>
}
