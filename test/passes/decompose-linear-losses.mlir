// RUN: gpuc-opt %s --gpuc-decompose --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s

// 1,024 rows of 50,257 classes in f32: 256 rows at a time, 4 times. Nothing of [1024, 50257] is left; the product for the
// gradient of weight is added to what is carried.
// CHECK-LABEL: func.func @chunks(
// CHECK:         gpuc.reshape %{{.*}} : tensor<8x128x16xf32> to tensor<4x256x16xf32>
// CHECK:         gpuc.scan over({{.*}}) carry({{.*}}) captures({{.*}}) recompute chunked
// CHECK:           gpuc.matmul %{{.*}}, transpose %{{.*}} -> tensor<256x50257xf32>
// CHECK:           gpuc.exp
// CHECK:           gpuc.matmul %{{.*}} : (tensor<256x50257xf32>, tensor<50257x16xf32>) -> tensor<256x16xf32>
// CHECK:           %[[DW:.*]] = gpuc.matmul transpose %{{.*}} -> tensor<50257x16xf32>
// CHECK:           gpuc.add %{{.*}}, %[[DW]] : tensor<50257x16xf32>
// CHECK-NOT:       1024x50257
// CHECK:         return
func.func @chunks(%h: tensor<8x128x16xf32>, %w: tensor<50257x16xf32>, %labels: tensor<8x128xi32>) -> (tensor<f32>, tensor<8x128x16xf32>, tensor<50257x16xf32>) {
  %sum, %count, %dh, %dw = gpuc.linear_cross_entropy_gradient %h, %w labels %labels : (tensor<8x128x16xf32>, tensor<50257x16xf32>, tensor<8x128xi32>) -> (tensor<f32>, tensor<f32>, tensor<8x128x16xf32>, tensor<50257x16xf32>)
  return %sum, %dh, %dw : tensor<f32>, tensor<8x128x16xf32>, tensor<50257x16xf32>
}

// -----

// 768 rows of 256 classes are 768 KiB: two chunks of 384 rows, which have no more than 512 KiB.
// CHECK-LABEL: func.func @cache(
// CHECK:         tensor<768x8xf32> to tensor<2x384x8xf32>
func.func @cache(%h: tensor<768x8xf32>, %w: tensor<256x8xf32>, %labels: tensor<768xi32>) -> tensor<f32> {
  %sum, %count = gpuc.linear_cross_entropy %h, %w labels %labels : (tensor<768x8xf32>, tensor<256x8xf32>, tensor<768xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum : tensor<f32>
}

// -----

// 521 is prime: three chunks of 174 rows, and one row that does not count.
// CHECK-LABEL: func.func @prime(
// CHECK:         gpuc.pad %{{.*}} high [1, 0] {{.*}} -> tensor<522x8xf32>
// CHECK:         to tensor<3x174x8xf32>
// CHECK:         gpuc.pad %{{.*}} high [1] {{.*}}{value = -1.000000e+00 : f64}
func.func @prime(%h: tensor<521x8xf32>, %w: tensor<1000x8xf32>, %labels: tensor<521xi32>) -> tensor<f32> {
  %sum, %count = gpuc.linear_cross_entropy %h, %w labels %labels : (tensor<521x8xf32>, tensor<1000x8xf32>, tensor<521xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum : tensor<f32>
}

// -----

// What fits into one chunk takes no loop.
// CHECK-LABEL: func.func @small(
// CHECK-NOT:     gpuc.scan
// CHECK:         gpuc.matmul %{{.*}} -> tensor<64x10xf32>
// CHECK:         gpuc.argmax
func.func @small(%h: tensor<64x8xf32>, %w: tensor<10x8xf32>, %labels: tensor<64xi32>) -> tensor<f32> {
  %sum, %count = gpuc.linear_accuracy %h, %w labels %labels : (tensor<64x8xf32>, tensor<10x8xf32>, tensor<64xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum : tensor<f32>
}

// -----

// A frozen weight costs no product: who reads no gradient of it has none.
// CHECK-LABEL: func.func @frozen(
// CHECK:         gpuc.scan
// CHECK-COUNT-2:   gpuc.matmul
// CHECK-NOT:       gpuc.matmul
// CHECK:         return
func.func @frozen(%h: tensor<1024x16xf32>, %w: tensor<1000x16xf32>, %labels: tensor<1024xi32>) -> tensor<1024x16xf32> {
  %sum, %count, %dh, %dw = gpuc.linear_cross_entropy_gradient %h, %w labels %labels : (tensor<1024x16xf32>, tensor<1000x16xf32>, tensor<1024xi32>) -> (tensor<f32>, tensor<f32>, tensor<1024x16xf32>, tensor<1000x16xf32>)
  return %dh : tensor<1024x16xf32>
}

// -----

// The batch must be known.
func.func @unbound(%h: tensor<?x8xf32>, %w: tensor<10x8xf32>, %labels: tensor<?xi32>) -> tensor<f32> {
  // expected-error @below {{hidden 'tensor<?x8xf32>' has rows that are not known yet: run gpuc-specialize-batch first}}
  %sum, %count = gpuc.linear_cross_entropy %h, %w labels %labels : (tensor<?x8xf32>, tensor<10x8xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum : tensor<f32>
}
