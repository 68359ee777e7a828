// RUN: gpuc-opt %s --gpuc-layout=target=cuda:sm_90 --canonicalize --cse -split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-layout=target=cuda:sm_90 --canonicalize --cse --gpuc-fuse=target=cuda:sm_90 -split-input-file | FileCheck %s --check-prefix=FUSED
// RUN: gpuc-opt %s --gpuc-layout=target=cuda:sm_90 --gpuc-hoist-from-scans --canonicalize --cse --gpuc-fuse=target=cuda:sm_90 -split-input-file | FileCheck %s --check-prefix=HOISTED
// On the host nothing changes.
// RUN: gpuc-opt %s --canonicalize --cse -split-input-file -o %t.before
// RUN: gpuc-opt %s --gpuc-layout=target=host --canonicalize --cse -split-input-file | diff %t.before -

// The logits of 50257 words, as 50264: the next multiple of 8. Weight and cotangent get their zeros once for all who read them,
// in the kernels that make them; readers take the slice in.

// CHECK:       "matmul", "head", {{.*}}, "4096x50257x768", "4096x50264x768", "395.2 us less for 0.0 us of copies"
// CHECK-SAME:  "4096x768x50257", "4096x768x50264"
// CHECK-SAME:  "50257x768x4096", "50264x768x4096"
// CHECK-LABEL: func.func @logits(
// CHECK:       %[[W16:.*]] = gpuc.cast
// CHECK:       %[[W:.*]] = gpuc.pad %[[W16]] low [0, 0] high [7, 0] interior [0, 0] : (tensor<50257x768xbf16>) -> tensor<50264x768xbf16>
// CHECK:       %[[Y:.*]] = gpuc.matmul %{{.*}}, transpose %[[W]] : (tensor<4096x768xbf16>, tensor<50264x768xbf16>) -> tensor<4096x50264xbf16>
// CHECK:       %[[S:.*]] = gpuc.slice %[[Y]] starts [0, 0] limits [4096, 50257] strides [1, 1]
// CHECK:       %[[E:.*]] = gpuc.exp %[[S]]
// CHECK:       %[[P:.*]] = gpuc.pad %[[E]] low [0, 0] high [0, 7]
// CHECK:       gpuc.matmul %[[P]], %[[W]] : (tensor<4096x50264xbf16>, tensor<50264x768xbf16>) -> tensor<4096x768xbf16>
// CHECK:       %[[D:.*]] = gpuc.matmul transpose %[[P]], %{{.*}} -> tensor<50264x768xbf16>
// CHECK:       gpuc.slice %[[D]] starts [0, 0] limits [50257, 768]
// FUSED-LABEL: func.func @logits(
// FUSED:       gpuc.fused "head.cast_pad"(%{{.*}}) : (tensor<50257x768xf32>) -> tensor<50264x768xbf16>
// FUSED:       gpuc.fused "sum"(%{{.*}}) : (tensor<4096x50264xbf16>) -> tensor<4096xf32>
// FUSED:       gpuc.fused "{{.*}}exp_pad"(%{{.*}}) : (tensor<4096x50264xbf16>) -> tensor<4096x50264xbf16>
// FUSED:       gpuc.fused "cast{{[_0-9]*}}"(%{{.*}}) : (tensor<50264x768xbf16>) -> tensor<50257x768xf32>
// FUSED-NOT:   gpuc.fused
// FUSED:       return
func.func @logits(%x: tensor<4096x768xbf16>, %w: tensor<50257x768xf32>) -> (tensor<4096xf32>, tensor<4096x768xbf16>, tensor<50257x768xf32>) {
  %w16 = gpuc.cast %w : tensor<50257x768xf32> to tensor<50257x768xbf16> loc("head")
  %y = gpuc.matmul %x, transpose %w16 : (tensor<4096x768xbf16>, tensor<50257x768xbf16>) -> tensor<4096x50257xbf16> loc("head")
  %y32 = gpuc.cast %y : tensor<4096x50257xbf16> to tensor<4096x50257xf32>
  %s = gpuc.sum %y32 dims [1] : (tensor<4096x50257xf32>) -> tensor<4096xf32>
  %e = gpuc.exp %y : tensor<4096x50257xbf16>
  %dx = gpuc.matmul %e, %w16 : (tensor<4096x50257xbf16>, tensor<50257x768xbf16>) -> tensor<4096x768xbf16>
  %dw = gpuc.matmul transpose %e, %x : (tensor<4096x50257xbf16>, tensor<4096x768xbf16>) -> tensor<50257x768xbf16>
  %dw32 = gpuc.cast %dw : tensor<50257x768xbf16> to tensor<50257x768xf32>
  return %s, %dx, %dw32 : tensor<4096xf32>, tensor<4096x768xbf16>, tensor<50257x768xf32>
}

// -----

// A small classifier moves its bytes in the same time, and what is a multiple needs nothing.

// CHECK:       "64x10x128", "64x10x128", "0.0 us less for 0.0 us of copies"
// CHECK-SAME:  "64x16x128", "64x16x128", "rows are multiples of 16 bytes"
// CHECK-LABEL: func.func @classifier(
// CHECK-NOT:   gpuc.pad
// CHECK:       return
func.func @classifier(%x: tensor<64x128xbf16>, %w: tensor<10x128xbf16>, %v: tensor<16x128xbf16>) -> (tensor<64x10xbf16>, tensor<64x16xbf16>) {
  %r = gpuc.relu %w : tensor<10x128xbf16>
  %y = gpuc.matmul %x, transpose %r : (tensor<64x128xbf16>, tensor<10x128xbf16>) -> tensor<64x10xbf16>
  %e = gpuc.exp %y : tensor<64x10xbf16>
  %z = gpuc.matmul %x, transpose %v : (tensor<64x128xbf16>, tensor<16x128xbf16>) -> tensor<64x16xbf16>
  return %e, %z : tensor<64x10xbf16>, tensor<64x16xbf16>
}

// -----

// Arguments and results that no kernel makes or reads would be copied: 2 · 25 MB take longer than the product gains.

// CHECK:       "256x4097x3001", "256x4097x3001", "{{.*}} us less for {{.*}} us of copies"
// CHECK-LABEL: func.func @copies(
// CHECK-NOT:   gpuc.pad
// CHECK:       return
func.func @copies(%x: tensor<256x3001xbf16>, %w: tensor<3001x4097xbf16>) -> tensor<256x4097xbf16> {
  %y = gpuc.matmul %x, %w : (tensor<256x3001xbf16>, tensor<3001x4097xbf16>) -> tensor<256x4097xbf16>
  return %y : tensor<256x4097xbf16>
}

// -----

// f32 in TF32: multiples of 4. Only rows count: m of a left operand that is not transposed may be odd. f32 as such stays.

// CHECK:       "4095x4097x4096", "4095x4100x4096"
// CHECK-LABEL: func.func @tf32(
// CHECK:       gpuc.pad %{{.*}} low [0, 0] high [0, 3]
// CHECK-NOT:   gpuc.pad
// CHECK:       gpuc.matmul %{{.*}} {gpuc.tf32} : (tensor<4095x4096xf32>, tensor<4096x4100xf32>) -> tensor<4095x4100xf32>
// CHECK:       gpuc.matmul %{{.*}} : (tensor<4095x4096xf32>, tensor<4096x4097xf32>) -> tensor<4095x4097xf32>
func.func @tf32(%x: tensor<4095x4096xf32>, %w: tensor<4096x4097xf32>) -> (tensor<4095x4097xf32>, tensor<4095x4097xf32>) {
  %r = gpuc.exp %w : tensor<4096x4097xf32>
  %y = gpuc.matmul %x, %r {gpuc.tf32} : (tensor<4095x4096xf32>, tensor<4096x4097xf32>) -> tensor<4095x4097xf32>
  %e = gpuc.exp %y : tensor<4095x4097xf32>
  %z = gpuc.matmul %x, %r : (tensor<4095x4096xf32>, tensor<4096x4097xf32>) -> tensor<4095x4097xf32>
  return %e, %z : tensor<4095x4097xf32>, tensor<4095x4097xf32>
}

// -----

// What is added to a sum that a loop carries is written where that lies, and has its extents.

// CHECK:       "added up where it lies"
// CHECK-LABEL: func.func @added_up(
// CHECK-NOT:   gpuc.pad
// CHECK:       return
func.func @added_up(%xs: tensor<4x4096x4097xbf16>, %ys: tensor<4x4096x4096xbf16>) -> tensor<4097x4096xbf16> {
  %zero = gpuc.constant 0.0 : tensor<4097x4096xbf16>
  %total = gpuc.scan over(%xs, %ys) carry(%zero) chunked : (tensor<4x4096x4097xbf16>, tensor<4x4096x4096xbf16>, tensor<4097x4096xbf16>) -> tensor<4097x4096xbf16> {
  ^bb0(%x: tensor<4096x4097xbf16>, %y: tensor<4096x4096xbf16>, %sum: tensor<4097x4096xbf16>):
    %e = gpuc.exp %x : tensor<4096x4097xbf16>
    %p = gpuc.matmul transpose %e, %y : (tensor<4096x4097xbf16>, tensor<4096x4096xbf16>) -> tensor<4097x4096xbf16>
    %t = gpuc.add %sum, %p : tensor<4097x4096xbf16>
    gpuc.yield %t : tensor<4097x4096xbf16>
  }
  return %total : tensor<4097x4096xbf16>
}

// -----

// The product of a matrix with itself: its rows are padded as columns of the result, not as rows.

// CHECK:       "4097x4097x4096", "4097x4104x4096"
// CHECK-LABEL: func.func @gram(
// CHECK:       %[[R:.*]] = gpuc.relu
// CHECK:       %[[P:.*]] = gpuc.pad %[[R]] low [0, 0] high [7, 0]
// CHECK:       gpuc.matmul %[[R]], transpose %[[P]] : (tensor<4097x4096xbf16>, tensor<4104x4096xbf16>) -> tensor<4097x4104xbf16>
func.func @gram(%x: tensor<4097x4096xbf16>) -> tensor<4097x4097xbf16> {
  %r = gpuc.relu %x : tensor<4097x4096xbf16>
  %y = gpuc.matmul %r, transpose %r : (tensor<4097x4096xbf16>, tensor<4097x4096xbf16>) -> tensor<4097x4097xbf16>
  %e = gpuc.exp %y : tensor<4097x4097xbf16>
  return %e : tensor<4097x4097xbf16>
}

// -----

// Chunks of rows of a linear loss: each of the three products would pay for no copy, but all want the same zeros. The weight's are
// the loop's capture, and stand before the loop when gpuc-hoist-from-scans has run, in the kernel of the cast.

// CHECK:       "256x50257x768", "256x50264x768", "23.6 us less for 0.0 us of copies"
// CHECK-SAME:  "256x768x50257", "256x768x50264", "23.6 us less for 0.0 us of copies"
// CHECK-SAME:  "50257x768x256", "50264x768x256", "23.6 us less for 0.0 us of copies"
// CHECK-LABEL: func.func @chunks(
// CHECK:       gpuc.scan
// HOISTED-LABEL: func.func @chunks(
// HOISTED:     gpuc.fused "cast_pad"(%{{.*}}) : (tensor<50257x768xf32>) -> tensor<50264x768xbf16>
// HOISTED:     gpuc.scan
// HOISTED:     gpuc.matmul %{{.*}} -> tensor<256x50264xbf16>
// HOISTED:     gpuc.fused "exp_pad"(%{{.*}}) : (tensor<256x50264xbf16>) -> tensor<256x50264xbf16>
func.func @chunks(%xs: tensor<32x256x768xbf16>, %w: tensor<50257x768xf32>) -> (tensor<50257x768xf32>, tensor<32x256x768xbf16>) {
  %zero = gpuc.constant 0.0 : tensor<50257x768xf32>
  %w16 = gpuc.cast %w : tensor<50257x768xf32> to tensor<50257x768xbf16>
  %total, %dxs = gpuc.scan over(%xs) carry(%zero) captures(%w16) chunked : (tensor<32x256x768xbf16>, tensor<50257x768xf32>, tensor<50257x768xbf16>) -> (tensor<50257x768xf32>, tensor<32x256x768xbf16>) {
  ^bb0(%x: tensor<256x768xbf16>, %sum: tensor<50257x768xf32>, %v: tensor<50257x768xbf16>):
    %y = gpuc.matmul %x, transpose %v : (tensor<256x768xbf16>, tensor<50257x768xbf16>) -> tensor<256x50257xbf16>
    %e = gpuc.exp %y : tensor<256x50257xbf16>
    %dx = gpuc.matmul %e, %v : (tensor<256x50257xbf16>, tensor<50257x768xbf16>) -> tensor<256x768xbf16>
    %dv = gpuc.matmul transpose %e, %x : (tensor<256x50257xbf16>, tensor<256x768xbf16>) -> tensor<50257x768xbf16>
    %dv32 = gpuc.cast %dv : tensor<50257x768xbf16> to tensor<50257x768xf32>
    %t = gpuc.add %sum, %dv32 : tensor<50257x768xf32>
    gpuc.yield %t, %dx : tensor<50257x768xf32>, tensor<256x768xbf16>
  }
  return %total, %dxs : tensor<50257x768xf32>, tensor<32x256x768xbf16>
}
