// RUN: gpuc-opt %s --gpuc-differentiate-loss --gpuc-autodiff --gpuc-expand-recipe --split-input-file | FileCheck %s

// What flows back from the loss of each part is the scale over the count of the whole batch. That is counted in a loop of its own,
// which takes labels alone, before the first backward pass. The sums are those of the scaled mean: times 1 / scale, and nothing else.
// CHECK-LABEL: module @microbatches
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<12x2xf32> {gpuc.name = "x"}, %[[LABELS:[^:]*]]: tensor<12xi32> {gpuc.name = "labels"}
// CHECK:         %[[COUNT:.*]] = gpuc.scan
// CHECK-NOT:       gpuc.matmul
// CHECK-NOT:       gpuc.assign
// CHECK:           gpuc.yield %{{.*}} : tensor<f32>
// CHECK:         %[[SCALE:.*]] = gpuc.read @loss_scale
// CHECK:         %[[ANY:.*]] = gpuc.compare gt %[[COUNT]], %{{.*}} : tensor<f32>
// CHECK:         %[[DIVISOR:.*]] = gpuc.select %[[ANY]], %[[COUNT]], %{{.*}}
// CHECK:         %[[SEED:.*]] = gpuc.div %[[SCALE]], %[[DIVISOR]] : tensor<f32>
// CHECK:         %[[LOOP:.*]]:4 = gpuc.scan {{.*}}captures({{.*}}%[[SEED]]
// CHECK:           gpuc.cross_entropy
// CHECK-NOT:       gpuc.read
// CHECK:           gpuc.yield
// CHECK-NOT:     gpuc.mul %[[LOOP]]#2
// CHECK:         %[[INVERSE:.*]] = gpuc.div %{{.*}}, %{{.*}} : tensor<f32>
// CHECK:         %[[INVERSES:.*]] = gpuc.broadcast %[[INVERSE]] dims [] : tensor<f32> to tensor<3x2xf32>
// CHECK:         %[[MEAN:.*]] = gpuc.mul %[[LOOP]]#2, %[[INVERSES]] : tensor<3x2xf32>
// CHECK:         gpuc.is_finite %[[MEAN]]
// CHECK:         %[[KEPT:.*]] = gpuc.select %{{.*}}, %[[LOOP]]#3
// CHECK:         gpuc.assign @mean, %[[KEPT]]
module @microbatches attributes {gpuc.batch = 4 : i64} {
  gpuc.variable @w : tensor<3x2xf32> init ones
  gpuc.variable @mean kind statistic : tensor<2xf32> init ones
  func.func @loss(%x: tensor<4x2xf32> {gpuc.name = "x", gpuc.partition = #gpuc.partition<microbatches = 3, rows = 4>}, %labels: tensor<4xi32> {gpuc.name = "labels", gpuc.partition = #gpuc.partition<microbatches = 3, rows = 4>})
      -> (tensor<f32>, tensor<f32>) attributes {gpuc.partition = #gpuc.partition<microbatches = 3, rows = 4>} {
    %w = gpuc.read @w : tensor<3x2xf32>
    %mean = gpuc.read @mean : tensor<2xf32>
    %next = gpuc.mul %mean, %mean : tensor<2xf32>
    gpuc.assign @mean, %next : tensor<2xf32>
    %0 = gpuc.matmul %x, transpose %w : (tensor<4x2xf32>, tensor<3x2xf32>) -> tensor<4x3xf32>
    %sum, %count = gpuc.cross_entropy %0, %labels : (tensor<4x3xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = sgd(lr = 0.1), loss_scale = dynamic(init_scale = 1024.0) }
}

// -----

// A count that hangs on what a part assigns is counted with it, and assigned once all the same.
// CHECK-LABEL: module @running
// CHECK-LABEL: func.func @train_step(
// CHECK:         %[[FIRST:.*]] = gpuc.read @seen
// CHECK:         gpuc.scan {{.*}} carry(%{{.*}}, %[[FIRST]])
// CHECK-NOT:     gpuc.assign
// CHECK:         gpuc.scan
// CHECK:         gpuc.assign @seen
// CHECK-NOT:     gpuc.assign @seen
// CHECK-LABEL: func.func @eval_step(
module @running attributes {gpuc.batch = 4 : i64} {
  gpuc.variable @w : tensor<2xf32> init ones
  gpuc.variable @seen kind statistic : tensor<f32> init zeros
  func.func @loss(%x: tensor<4x2xf32> {gpuc.name = "x", gpuc.partition = #gpuc.partition<microbatches = 3, rows = 4>}) -> (tensor<f32>, tensor<f32>) attributes {gpuc.partition = #gpuc.partition<microbatches = 3, rows = 4>} {
    %w = gpuc.read @w : tensor<2xf32>
    %0 = gpuc.broadcast %w dims [1] : tensor<2xf32> to tensor<4x2xf32>
    %sum, %count = gpuc.mse %0, %x : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<f32>, tensor<f32>)
    %seen = gpuc.read @seen : tensor<f32>
    %all = gpuc.add %seen, %count : tensor<f32>
    gpuc.assign @seen, %all : tensor<f32>
    return %sum, %all : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = sgd(lr = 0.1), loss_scale = static(scale = 8.0) }
}

// -----

// Slices are counted side by side too.
// CHECK-LABEL: module @slices
// CHECK-LABEL: func.func @train_step(
// CHECK:         %[[COUNTS:.*]] = gpuc.scan {{.*}} parallel
// CHECK:         %[[COUNT:.*]] = gpuc.sum %[[COUNTS]] dims [0]
// CHECK:         %[[SCALE:.*]] = gpuc.constant 8.0 : tensor<f32>
// CHECK:         %[[DIVISOR:.*]] = gpuc.select %{{.*}}, %[[COUNT]],
// CHECK:         %[[SEED:.*]] = gpuc.div %[[SCALE]], %[[DIVISOR]] : tensor<f32>
// CHECK:         gpuc.scan {{.*}}captures({{.*}}%[[SEED]]{{.*}} parallel
module @slices attributes {gpuc.batch = 32 : i64} {
  gpuc.variable @w : tensor<2xf32> init ones
  func.func @loss(%x: tensor<32x2xf32>) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<2xf32>
    %0 = gpuc.broadcast %w dims [1] : tensor<2xf32> to tensor<32x2xf32>
    %sum, %count = gpuc.mse %0, %x : (tensor<32x2xf32>, tensor<32x2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  func.func private @loss_of_slice(%x: tensor<16x2xf32> {gpuc.partition = #gpuc.partition<slices = 2, rows = 16>}) -> (tensor<f32>, tensor<f32>) attributes {gpuc.partition = #gpuc.partition<slices = 2, rows = 16>} {
    %w = gpuc.read @w : tensor<2xf32>
    %0 = gpuc.broadcast %w dims [1] : tensor<2xf32> to tensor<16x2xf32>
    %sum, %count = gpuc.mse %0, %x : (tensor<16x2xf32>, tensor<16x2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = sgd(lr = 0.1), loss_scale = static(scale = 8.0) }
}
