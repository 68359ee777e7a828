// RUN: gpuc-opt %s --gpuc-epilogues --split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-epilogues=target=cuda:sm_90 --split-input-file | FileCheck %s --check-prefix=CUDA
// RUN: gpuc-opt %s --gpuc-epilogues --gpuc-fuse --split-input-file | FileCheck %s --check-prefix=FUSE
// RUN: not gpuc-opt %s --gpuc-epilogues=target=tpu --split-input-file 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: error: unknown target 'tpu': host[:CPU] or cuda:ARCHITECTURE

// Bias and relu, of whichever side of the addition.
// CHECK-LABEL: func.func @layer(
// CHECK-SAME:    %[[X:.*]]: tensor<4x3xf32>, %[[W:.*]]: tensor<5x3xf32>, %[[B:.*]]: tensor<5xf32>
// CHECK-NEXT:    %[[Y:.*]] = gpuc.fused "fc.matmul_add_relu"(%[[X]], %[[W]], %[[B]])
// CHECK-NEXT:    ^bb0(%[[X0:.*]]: tensor<4x3xf32>, %[[W0:.*]]: tensor<5x3xf32>, %[[B0:.*]]: tensor<5xf32>):
// CHECK-NEXT:      %[[P:.*]] = gpuc.matmul %[[X0]], transpose %[[W0]]
// CHECK-NEXT:      %[[BS:.*]] = gpuc.broadcast %[[B0]] dims [1]
// CHECK-NEXT:      %[[S:.*]] = gpuc.add %[[BS]], %[[P]]
// CHECK-NEXT:      %[[R:.*]] = gpuc.relu %[[S]]
// CHECK-NEXT:      gpuc.yield %[[R]]
// CHECK:         return %[[Y]]
// CUDA-LABEL: func.func @layer(
// CUDA:         gpuc.fused "fc.matmul_add_relu"
func.func @layer(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>, %b: tensor<5xf32>) -> tensor<4x5xf32> {
  %p = gpuc.matmul %x, transpose %w : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32> loc("fc")
  %bs = gpuc.broadcast %b dims [1] : tensor<5xf32> to tensor<4x5xf32> loc("fc")
  %s = gpuc.add %bs, %p : tensor<4x5xf32> loc("fc")
  %r = gpuc.relu %s : tensor<4x5xf32> loc("act")
  return %r : tensor<4x5xf32>
}

// -----

// A bias that is a part of a vector. The residual stays outside: a library would begin its sum with it.
// CHECK-LABEL: func.func @residual(
// CHECK:         %[[P:.*]] = gpuc.fused "matmul_add"
// CHECK:           gpuc.matmul
// CHECK-NEXT:      %[[SLICE:.*]] = gpuc.slice
// CHECK-NEXT:      gpuc.broadcast %[[SLICE]]
// CHECK-NEXT:      gpuc.add
// CHECK-NEXT:      gpuc.yield
// CHECK:         %[[SUM:.*]] = gpuc.add %[[P]], %arg0
// CHECK:         return %[[SUM]], %[[P]]
func.func @residual(%x: tensor<4x3xf32>, %w: tensor<3x3xf32>, %bs: tensor<9xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %p = gpuc.matmul %x, %w : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
  %b = gpuc.slice %bs starts [3] limits [6] strides [1] : (tensor<9xf32>) -> tensor<3xf32>
  %b2 = gpuc.broadcast %b dims [1] : tensor<3xf32> to tensor<4x3xf32>
  %s = gpuc.add %p, %b2 : tensor<4x3xf32>
  %r = gpuc.add %s, %x : tensor<4x3xf32>
  return %r, %s : tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// Nor are two products that are added one command, be the sum read by whomever.
// CHECK-LABEL: func.func @products(
// CHECK-NOT:     gpuc.fused
// CHECK:         return
func.func @products(%x: tensor<4x3xf32>, %w: tensor<3x5xf32>, %y: tensor<4x7xf32>, %v: tensor<7x5xf32>) -> tensor<4x5xf32> {
  %p = gpuc.matmul %x, %w : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %q = gpuc.matmul %y, %v : (tensor<4x7xf32>, tensor<7x5xf32>) -> tensor<4x5xf32>
  %s = gpuc.add %p, %q : tensor<4x5xf32>
  return %s : tensor<4x5xf32>
}

// -----

// Where the only reader is pointwise, its kernel adds the bias too: that it were added before would save nothing.
// CHECK-LABEL: func.func @kernel_behind(
// CHECK-NOT:     gpuc.fused
// CHECK:         return
func.func @kernel_behind(%x: tensor<4x3xf32>, %w: tensor<3x5xf32>, %b: tensor<5xf32>) -> tensor<4x5xf32> {
  %p = gpuc.matmul %x, %w : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %bs = gpuc.broadcast %b dims [1] : tensor<5xf32> to tensor<4x5xf32>
  %s = gpuc.add %p, %bs : tensor<4x5xf32>
  %r = gpuc.tanh %s : tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}

// -----

// A convolution's bias is its channels'.
// CHECK-LABEL: func.func @conv(
// CHECK:         gpuc.fused "conv2d_add_relu"
// CUDA-LABEL: func.func @conv(
// CUDA:         gpuc.fused "conv2d_add_relu"
func.func @conv(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>) -> tensor<2x4x6x6xf32> {
  %y = gpuc.conv2d %x, %w : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  %bs = gpuc.broadcast %b dims [1] : tensor<4xf32> to tensor<2x4x6x6xf32>
  %s = gpuc.add %y, %bs : tensor<2x4x6x6xf32>
  %r = gpuc.relu %s : tensor<2x4x6x6xf32>
  return %r : tensor<2x4x6x6xf32>
}

// -----

// Of images that lie channels last it is the last dimension; a vector along their height is no bias.
// CUDA-LABEL: func.func @conv_channels_last(
// CUDA:         gpuc.fused "conv2d_add_relu"
// CUDA-NOT:     gpuc.fused
// CUDA:         return
func.func @conv_channels_last(%x: tensor<2x6x6x8xbf16>, %w: tensor<4x3x3x8xbf16>, %b: tensor<4xbf16>) -> (tensor<2x4x4x4xbf16>, tensor<2x4x4x4xbf16>) {
  %y = gpuc.conv2d %x, %w channels_last : (tensor<2x6x6x8xbf16>, tensor<4x3x3x8xbf16>) -> tensor<2x4x4x4xbf16>
  %bs = gpuc.broadcast %b dims [3] : tensor<4xbf16> to tensor<2x4x4x4xbf16>
  %s = gpuc.add %y, %bs : tensor<2x4x4x4xbf16>
  %r = gpuc.relu %s : tensor<2x4x4x4xbf16>
  %z = gpuc.conv2d %x, %w channels_last : (tensor<2x6x6x8xbf16>, tensor<4x3x3x8xbf16>) -> tensor<2x4x4x4xbf16>
  %hs = gpuc.broadcast %b dims [1] : tensor<4xbf16> to tensor<2x4x4x4xbf16>
  %t = gpuc.add %z, %hs : tensor<2x4x4x4xbf16>
  return %r, %t : tensor<2x4x4x4xbf16>, tensor<2x4x4x4xbf16>
}

// -----

// cuDNN has no relu right behind a convolution, nor any of this for f64.
// CHECK-LABEL: func.func @convs_of_the_host(
// CHECK:         gpuc.fused "conv2d_relu"
// CHECK:         gpuc.fused "conv2d_add"
// CHECK:         gpuc.fused "conv2d_add_relu"
// CUDA-LABEL: func.func @convs_of_the_host(
// CUDA-NOT:     gpuc.fused
// CUDA:         gpuc.fused "conv2d_add"
// CUDA-NOT:     gpuc.fused
// CUDA:         return
func.func @convs_of_the_host(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %hx: tensor<2x3x8x8xbf16>, %hw: tensor<4x3x3x3xbf16>, %hb: tensor<4xbf16>, %dx: tensor<2x3x8x8xf64>, %dw: tensor<4x3x3x3xf64>, %db: tensor<4xf64>) -> (tensor<2x4x6x6xf32>, tensor<2x4x6x6xbf16>, tensor<2x4x6x6xf64>) {
  %y = gpuc.conv2d %x, %w : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  %r = gpuc.relu %y : tensor<2x4x6x6xf32>
  %hy = gpuc.conv2d %hx, %hw : (tensor<2x3x8x8xbf16>, tensor<4x3x3x3xbf16>) -> tensor<2x4x6x6xbf16>
  %hbs = gpuc.broadcast %hb dims [1] : tensor<4xbf16> to tensor<2x4x6x6xbf16>
  %hs = gpuc.add %hy, %hbs : tensor<2x4x6x6xbf16>
  %dy = gpuc.conv2d %dx, %dw : (tensor<2x3x8x8xf64>, tensor<4x3x3x3xf64>) -> tensor<2x4x6x6xf64>
  %dbs = gpuc.broadcast %db dims [1] : tensor<4xf64> to tensor<2x4x6x6xf64>
  %ds = gpuc.add %dy, %dbs : tensor<2x4x6x6xf64>
  %dr = gpuc.relu %ds : tensor<2x4x6x6xf64>
  return %r, %hs, %dr : tensor<2x4x6x6xf32>, tensor<2x4x6x6xbf16>, tensor<2x4x6x6xf64>
}

// -----

// A bias that is cast: the cast is of the bias itself, and takes the place of a kernel over the whole product.
// CUDA-LABEL: func.func @cast(
// CUDA:         %[[B:.*]] = gpuc.cast %arg2 : tensor<5xf32> to tensor<5xbf16>
// CUDA:         gpuc.fused "matmul_add_relu"(%arg0, %arg1, %[[B]])
// CHECK-LABEL: func.func @cast(
// CHECK:         %[[B:.*]] = gpuc.cast %arg2 : tensor<5xf32> to tensor<5xbf16>
// CHECK:         gpuc.fused "matmul_add_relu"(%arg0, %arg1, %[[B]])
func.func @cast(%x: tensor<4x3xbf16>, %w: tensor<3x5xbf16>, %b: tensor<5xf32>) -> tensor<4x5xbf16> {
  %p = gpuc.matmul %x, %w : (tensor<4x3xbf16>, tensor<3x5xbf16>) -> tensor<4x5xbf16>
  %bs = gpuc.broadcast %b dims [1] : tensor<5xf32> to tensor<4x5xf32>
  %c = gpuc.cast %bs : tensor<4x5xf32> to tensor<4x5xbf16>
  %s = gpuc.add %p, %c : tensor<4x5xbf16>
  %r = gpuc.relu %s : tensor<4x5xbf16>
  return %r : tensor<4x5xbf16>
}

// -----

// It would be one kernel more, where kernels read the sum anyway.
// CHECK-LABEL: func.func @cast_for_a_kernel(
// CHECK-NOT:     gpuc.fused
// CHECK:         return
func.func @cast_for_a_kernel(%x: tensor<4x3xbf16>, %w: tensor<3x5xbf16>, %b: tensor<5xf32>) -> (tensor<4x5xbf16>, tensor<4x5xbf16>) {
  %p = gpuc.matmul %x, %w : (tensor<4x3xbf16>, tensor<3x5xbf16>) -> tensor<4x5xbf16>
  %bs = gpuc.broadcast %b dims [1] : tensor<5xf32> to tensor<4x5xf32>
  %c = gpuc.cast %bs : tensor<4x5xf32> to tensor<4x5xbf16>
  %s = gpuc.add %p, %c : tensor<4x5xbf16>
  %r = gpuc.exp %s : tensor<4x5xbf16>
  return %r, %s : tensor<4x5xbf16>, tensor<4x5xbf16>
}

// -----

// A relu alone it does take.
// CUDA-LABEL: func.func @half(
// CUDA:         gpuc.fused "matmul_relu"
func.func @half(%x: tensor<4x3xbf16>, %w: tensor<3x5xbf16>) -> tensor<4x5xbf16> {
  %p = gpuc.matmul %x, %w : (tensor<4x3xbf16>, tensor<3x5xbf16>) -> tensor<4x5xbf16>
  %r = gpuc.relu %p : tensor<4x5xbf16>
  return %r : tensor<4x5xbf16>
}

// -----

// Not: a product that others read, be it before the bias or before the relu (the bias alone is added then).
// CHECK-LABEL: func.func @other_readers(
// CHECK:         %[[P:.*]] = gpuc.matmul
// CHECK:         gpuc.add %[[P]]
// CHECK:         %[[S:.*]] = gpuc.fused "matmul_add"
// CHECK:         gpuc.relu %[[S]]
func.func @other_readers(%x: tensor<4x3xf32>, %w: tensor<3x5xf32>, %b: tensor<5xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>) {
  %p = gpuc.matmul %x, %w : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %bs = gpuc.broadcast %b dims [1] : tensor<5xf32> to tensor<4x5xf32>
  %s = gpuc.add %p, %bs : tensor<4x5xf32>
  %q = gpuc.matmul %x, %w : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %t = gpuc.add %q, %bs : tensor<4x5xf32>
  %r = gpuc.relu %t : tensor<4x5xf32>
  return %p, %s, %t, %r : tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>
}

// -----

// Not: a bias of the rows, a constant, and what a kernel computes for this addition alone: that kernel adds.
// CHECK-LABEL: func.func @no_biases(
// CHECK-NOT:     gpuc.fused
// CHECK:         return
func.func @no_biases(%x: tensor<4x3xf32>, %w: tensor<3x4xf32>, %b: tensor<4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %p = gpuc.matmul %x, %w : (tensor<4x3xf32>, tensor<3x4xf32>) -> tensor<4x4xf32>
  %bs = gpuc.broadcast %b dims [0] : tensor<4xf32> to tensor<4x4xf32>
  %s = gpuc.add %p, %bs : tensor<4x4xf32>
  %q = gpuc.matmul %x, %w : (tensor<4x3xf32>, tensor<3x4xf32>) -> tensor<4x4xf32>
  %one = gpuc.constant 1.0 : tensor<4x4xf32>
  %t = gpuc.add %q, %one : tensor<4x4xf32>
  %o = gpuc.matmul %x, %w : (tensor<4x3xf32>, tensor<3x4xf32>) -> tensor<4x4xf32>
  %e = gpuc.exp %s : tensor<4x4xf32>
  %u = gpuc.add %o, %e : tensor<4x4xf32>
  return %s, %t, %u : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Not: through another shape; f64 on CUDA; and outer products, which kernels compute.
// CHECK-LABEL: func.func @others(
// CHECK:         gpuc.reshape
// CHECK-NEXT:    gpuc.relu
// CHECK:         gpuc.fused "matmul_relu"
// CHECK:         gpuc.matmul
// CHECK-NEXT:    gpuc.relu
// CUDA-LABEL: func.func @others(
// CUDA-NOT:     gpuc.fused
// CUDA:         return
func.func @others(%x: tensor<4x3xf64>, %w: tensor<3x4xf64>, %y: tensor<4x1xf32>, %v: tensor<1x4xf32>) -> (tensor<16xf64>, tensor<4x4xf64>, tensor<4x4xf32>) {
  %p = gpuc.matmul %x, %w : (tensor<4x3xf64>, tensor<3x4xf64>) -> tensor<4x4xf64>
  %f = gpuc.reshape %p : tensor<4x4xf64> to tensor<16xf64>
  %r = gpuc.relu %f : tensor<16xf64>
  %q = gpuc.matmul %x, %w : (tensor<4x3xf64>, tensor<3x4xf64>) -> tensor<4x4xf64>
  %t = gpuc.relu %q : tensor<4x4xf64>
  %o = gpuc.matmul %y, %v : (tensor<4x1xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
  %u = gpuc.relu %o : tensor<4x4xf32>
  return %r, %t, %u : tensor<16xf64>, tensor<4x4xf64>, tensor<4x4xf32>
}

// -----

// What a loop carries is added up where it lies: gpuc-to-plan sees to that. A bias in the loop is taken.
// CHECK-LABEL: func.func @carried(
// CHECK:         gpuc.scan
// CHECK:           gpuc.fused "matmul_add_relu"
// CHECK:           %[[P:.*]] = gpuc.matmul transpose
// CHECK-NEXT:      gpuc.add %{{.*}}, %[[P]]
func.func @carried(%x: tensor<6x4x3xf32>, %w: tensor<3x4xf32>, %b: tensor<4xf32>, %zeros: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<6x4x4xf32>) {
  %s, %ys = gpuc.scan over(%x) carry(%zeros) captures(%w, %b) : (tensor<6x4x3xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<6x4x4xf32>) {
  ^bb0(%a: tensor<4x3xf32>, %before: tensor<3x4xf32>, %w0: tensor<3x4xf32>, %b0: tensor<4xf32>):
    %p = gpuc.matmul %a, %w0 : (tensor<4x3xf32>, tensor<3x4xf32>) -> tensor<4x4xf32>
    %bs = gpuc.broadcast %b0 dims [1] : tensor<4xf32> to tensor<4x4xf32>
    %y = gpuc.add %p, %bs : tensor<4x4xf32>
    %r = gpuc.relu %y : tensor<4x4xf32>
    %q = gpuc.matmul transpose %a, %r : (tensor<4x3xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %n = gpuc.add %before, %q : tensor<3x4xf32>
    gpuc.yield %n, %r : tensor<3x4xf32>, tensor<4x4xf32>
  }
  return %s, %ys : tensor<3x4xf32>, tensor<6x4x4xf32>
}

// -----

// What has its epilogue is left alone, as when a compilation is continued from here.
// CHECK-LABEL: func.func @again(
// CHECK:         gpuc.fused "fc.matmul_relu"
// CHECK-NOT:     gpuc.fused
// CHECK:         return
// FUSE-LABEL:  func.func @again(
// FUSE:          gpuc.fused "fc.matmul_relu"
// FUSE-NEXT:     ^bb0
// FUSE-NEXT:       gpuc.matmul
// FUSE-NEXT:       gpuc.relu
// FUSE-NEXT:       gpuc.yield
// FUSE:          gpuc.fused "exp"
// FUSE-NOT:      gpuc.fused
// FUSE:          return
func.func @again(%x: tensor<4x3xf32>, %w: tensor<3x5xf32>) -> tensor<4x5xf32> {
  %y = gpuc.fused "fc.matmul_relu" (%x, %w) : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%a: tensor<4x3xf32>, %b: tensor<3x5xf32>):
    %p = gpuc.matmul %a, %b : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
    %r = gpuc.relu %p : tensor<4x5xf32>
    gpuc.yield %r : tensor<4x5xf32>
  }
  %e = gpuc.exp %y : tensor<4x5xf32>
  return %e : tensor<4x5xf32>
}

// -----

// relu's gradient: 0 where its result, which others read too, is 0 or less. cuBLASLt's would read bits.
// CHECK-LABEL: func.func @relu_gradient(
// CHECK-SAME:    %[[DY:.*]]: tensor<4x5xf32>, %[[W:.*]]: tensor<5x3xf32>, %[[H:.*]]: tensor<4x3xf32>
// CHECK:         %[[DH:.*]] = gpuc.fused "matmul_select"(%[[DY]], %[[W]], %[[H]])
// CHECK-NEXT:    ^bb0(%{{.*}}: tensor<4x5xf32>, %{{.*}}: tensor<5x3xf32>, %[[Y:.*]]: tensor<4x3xf32>):
// CHECK-NEXT:      %[[P:.*]] = gpuc.matmul
// CHECK:           %[[M:.*]] = gpuc.compare le %[[Y]], %[[Z:.*]] :
// CHECK:           %[[R:.*]] = gpuc.select %[[M]], %[[Z]], %[[P]]
// CHECK-NEXT:      gpuc.yield %[[R]]
// CHECK:         gpuc.sum %[[DH]]
// CUDA-LABEL: func.func @relu_gradient(
// CUDA-NOT:     gpuc.fused
// CUDA:         return
func.func @relu_gradient(%dy: tensor<4x5xf32>, %w: tensor<5x3xf32>, %h: tensor<4x3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>) {
  %zero = gpuc.constant 0.0 : tensor<4x3xf32>
  %p = gpuc.matmul %dy, %w : (tensor<4x5xf32>, tensor<5x3xf32>) -> tensor<4x3xf32>
  %m = gpuc.compare le %h, %zero : tensor<4x3xf32>
  %dh = gpuc.select %m, %zero, %p : tensor<4x3xi1>, tensor<4x3xf32>
  %db = gpuc.sum %dh dims [0] : (tensor<4x3xf32>) -> tensor<3xf32>
  return %db, %dh : tensor<3xf32>, tensor<4x3xf32>
}

// -----

// Of a convolution's input too.
// CHECK-LABEL: func.func @conv_relu_gradient(
// CHECK:         gpuc.fused "conv2d_input_gradient_select"(%arg0, %arg1, %arg2)
func.func @conv_relu_gradient(%dy: tensor<2x4x6x6xf32>, %w: tensor<4x3x3x3xf32>, %h: tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32> {
  %zero = gpuc.constant 0.0 : tensor<2x3x8x8xf32>
  %p = gpuc.conv2d_input_gradient %dy, %w : (tensor<2x4x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x3x8x8xf32>
  %m = gpuc.compare le %h, %zero : tensor<2x3x8x8xf32>
  %dh = gpuc.select %m, %zero, %p : tensor<2x3x8x8xi1>, tensor<2x3x8x8xf32>
  return %dh : tensor<2x3x8x8xf32>
}

// -----

// A factor that is a constant is memory that the product reads; the constant of the mask is the kernel's.
// CHECK-LABEL: func.func @masked_product_of_a_constant(
// CHECK:         %[[DY:.*]] = gpuc.constant 2.0 : tensor<4x5xf32>
// CHECK:         gpuc.fused "matmul_select"(%[[DY]], %arg0, %arg1)
// CHECK:           gpuc.constant 0.0 : tensor<4x3xf32>
func.func @masked_product_of_a_constant(%w: tensor<5x3xf32>, %h: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %zero = gpuc.constant 0.0 : tensor<4x3xf32>
  %dy = gpuc.constant 2.0 : tensor<4x5xf32>
  %p = gpuc.matmul %dy, %w : (tensor<4x5xf32>, tensor<5x3xf32>) -> tensor<4x3xf32>
  %m = gpuc.compare le %h, %zero : tensor<4x3xf32>
  %dh = gpuc.select %m, %zero, %p : tensor<4x3xi1>, tensor<4x3xf32>
  return %dh : tensor<4x3xf32>
}

// -----

// Not: what a kernel computes for the mask alone and nobody stores, another comparison, another number, and what only
// a kernel of elements reads.
// CHECK-LABEL: func.func @no_masks(
// CHECK-NOT:     gpuc.fused
// CHECK:         return
func.func @no_masks(%dy: tensor<4x5xf32>, %w: tensor<5x3xf32>, %h: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>) {
  %zero = gpuc.constant 0.0 : tensor<4x3xf32>
  %one = gpuc.constant 1.0 : tensor<4x3xf32>
  %p = gpuc.matmul %dy, %w : (tensor<4x5xf32>, tensor<5x3xf32>) -> tensor<4x3xf32>
  %e = gpuc.exp %h : tensor<4x3xf32>
  %m = gpuc.compare le %e, %zero : tensor<4x3xf32>
  %a = gpuc.select %m, %zero, %p : tensor<4x3xi1>, tensor<4x3xf32>
  %q = gpuc.matmul %dy, %w : (tensor<4x5xf32>, tensor<5x3xf32>) -> tensor<4x3xf32>
  %lt = gpuc.compare lt %h, %zero : tensor<4x3xf32>
  %b = gpuc.select %lt, %zero, %q : tensor<4x3xi1>, tensor<4x3xf32>
  %o = gpuc.matmul %dy, %w : (tensor<4x5xf32>, tensor<5x3xf32>) -> tensor<4x3xf32>
  %n = gpuc.compare le %h, %zero : tensor<4x3xf32>
  %c = gpuc.select %n, %one, %o : tensor<4x3xi1>, tensor<4x3xf32>
  %r = gpuc.matmul %dy, %w : (tensor<4x5xf32>, tensor<5x3xf32>) -> tensor<4x3xf32>
  %s = gpuc.select %n, %zero, %r : tensor<4x3xi1>, tensor<4x3xf32>
  %d = gpuc.exp %s : tensor<4x3xf32>
  return %a, %b, %c, %d : tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// A gradient's norm: on the host the product adds up its squares. The gradient itself may be read by others.
// CHECK-LABEL: func.func @norm(
// CHECK:         %[[G:.*]]:2 = gpuc.fused "fc.matmul_mul_sum"
// CHECK:           %[[P:.*]] = gpuc.matmul transpose
// CHECK-NEXT:      %[[SQUARE:.*]] = gpuc.mul %[[P]], %[[P]]
// CHECK-NEXT:      %[[SUM:.*]] = gpuc.sum %[[SQUARE]] dims [0, 1]
// CHECK-NEXT:      gpuc.yield %[[P]], %[[SUM]]
// CHECK:         gpuc.neg %[[G]]#0
// CHECK:         return %{{.*}}, %[[G]]#1
// CUDA-LABEL: func.func @norm(
// CUDA-NOT:     gpuc.fused
// CUDA:         return
func.func @norm(%dy: tensor<4x80xf32>, %x: tensor<4x60xf32>) -> (tensor<80x60xf32>, tensor<f32>) {
  %g = gpuc.matmul transpose %dy, %x : (tensor<4x80xf32>, tensor<4x60xf32>) -> tensor<80x60xf32> loc("fc")
  %n = gpuc.neg %g : tensor<80x60xf32>
  %s = gpuc.mul %g, %g : tensor<80x60xf32>
  %sum = gpuc.sum %s dims [0, 1] : (tensor<80x60xf32>) -> tensor<f32>
  return %n, %sum : tensor<80x60xf32>, tensor<f32>
}

// -----

// Not those of a small gradient, of 16 bits, of two matrices, nor a sum for each column.
// CHECK-LABEL: func.func @no_norm(
// CHECK-NOT:     gpuc.fused
// CHECK:         return
func.func @no_norm(%a: tensor<4x20xf32>, %b: tensor<4x80xbf16>, %c: tensor<2x4x80xf32>, %d: tensor<4x80xf32>)
    -> (tensor<f32>, tensor<bf16>, tensor<f32>, tensor<80xf32>) {
  %p = gpuc.matmul transpose %a, %a : (tensor<4x20xf32>, tensor<4x20xf32>) -> tensor<20x20xf32>
  %p2 = gpuc.mul %p, %p : tensor<20x20xf32>
  %ps = gpuc.sum %p2 dims [0, 1] : (tensor<20x20xf32>) -> tensor<f32>
  %q = gpuc.matmul transpose %b, %b : (tensor<4x80xbf16>, tensor<4x80xbf16>) -> tensor<80x80xbf16>
  %q2 = gpuc.mul %q, %q : tensor<80x80xbf16>
  %qs = gpuc.sum %q2 dims [0, 1] : (tensor<80x80xbf16>) -> tensor<bf16>
  %r = gpuc.matmul transpose %c, %c : (tensor<2x4x80xf32>, tensor<2x4x80xf32>) -> tensor<2x80x80xf32>
  %r2 = gpuc.mul %r, %r : tensor<2x80x80xf32>
  %rs = gpuc.sum %r2 dims [0, 1, 2] : (tensor<2x80x80xf32>) -> tensor<f32>
  %t = gpuc.matmul transpose %d, %d : (tensor<4x80xf32>, tensor<4x80xf32>) -> tensor<80x80xf32>
  %t2 = gpuc.mul %t, %t : tensor<80x80xf32>
  %ts = gpuc.sum %t2 dims [0] : (tensor<80x80xf32>) -> tensor<80xf32>
  return %ps, %qs, %rs, %ts : tensor<f32>, tensor<bf16>, tensor<f32>, tensor<80xf32>
}

// -----

// A filter's gradient leaves its squares as well; one of f64 does not.
// CHECK-LABEL: func.func @filter_norm(
// CHECK:         %[[G:.*]]:2 = gpuc.fused "conv.conv2d_filter_gradient_mul_sum"
// CHECK:         %[[H:.*]] = gpuc.conv2d_filter_gradient {{.*}} -> tensor<64x32x3x3xf64>
// CHECK:         %[[SQUARE:.*]] = gpuc.mul %[[H]], %[[H]]
// CHECK:         return %[[G]]#0, %[[G]]#1, %[[H]]
// CUDA-LABEL: func.func @filter_norm(
// CUDA-NOT:     gpuc.fused
// CUDA:         return
func.func @filter_norm(%dy: tensor<2x64x4x4xf32>, %x: tensor<2x32x4x4xf32>, %dy2: tensor<2x64x4x4xf64>, %x2: tensor<2x32x4x4xf64>)
    -> (tensor<64x32x3x3xf32>, tensor<f32>, tensor<64x32x3x3xf64>, tensor<f64>) {
  %g = gpuc.conv2d_filter_gradient %dy, %x strides [1, 1] padding [1, 1, 1, 1] dilation [1, 1] groups 1 : (tensor<2x64x4x4xf32>, tensor<2x32x4x4xf32>) -> tensor<64x32x3x3xf32> loc("conv")
  %s = gpuc.mul %g, %g : tensor<64x32x3x3xf32>
  %sum = gpuc.sum %s dims [0, 1, 2, 3] : (tensor<64x32x3x3xf32>) -> tensor<f32>
  %h = gpuc.conv2d_filter_gradient %dy2, %x2 strides [1, 1] padding [1, 1, 1, 1] dilation [1, 1] groups 1 : (tensor<2x64x4x4xf64>, tensor<2x32x4x4xf64>) -> tensor<64x32x3x3xf64> loc("conv2")
  %t = gpuc.mul %h, %h : tensor<64x32x3x3xf64>
  %tsum = gpuc.sum %t dims [0, 1, 2, 3] : (tensor<64x32x3x3xf64>) -> tensor<f64>
  return %g, %sum, %h, %tsum : tensor<64x32x3x3xf32>, tensor<f32>, tensor<64x32x3x3xf64>, tensor<f64>
}
