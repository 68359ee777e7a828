// RUN: gpuc-opt %s --gpuc-autodiff | FileCheck %s

// Of one of two shards: the mean whose gradient f16 is to hold is the batch's, the sum over 2 · max(count, 1).
// CHECK-LABEL: func.func private @gradients(
// CHECK-SAME:    attributes {gpuc.shards = 2 : i64}
// CHECK:         %[[SUM:.*]], %[[COUNT:.*]] = gpuc.mse
// CHECK:         %[[SCALE:.*]] = gpuc.read @loss_scale
// CHECK:         %[[MOST:.*]] = gpuc.max %[[COUNT]], %{{.*}} : tensor<f32>
// CHECK:         %[[SHARDS:.*]] = gpuc.constant 2.0 : tensor<f32>
// CHECK:         %[[ALL:.*]] = gpuc.mul %[[MOST]], %[[SHARDS]] : tensor<f32>
// CHECK:         %[[FACTOR:.*]] = gpuc.div %[[SCALE]], %[[ALL]] : tensor<f32>
// CHECK:         gpuc.scale_gradient %[[SUM]], %[[FACTOR]]
// CHECK:         %[[AGAIN:.*]] = gpuc.max %[[COUNT]], %{{.*}} : tensor<f32>
// CHECK:         %[[TIMES:.*]] = gpuc.mul %[[AGAIN]], %{{.*}} : tensor<f32>
// CHECK:         %[[EACH:.*]] = gpuc.broadcast %[[TIMES]] dims [] : tensor<f32> to tensor<2xf32>
// CHECK:         gpuc.mul %{{.*}}, %[[EACH]] : tensor<2xf32>
module {
  gpuc.variable @w : tensor<2xf32> init ones
  func.func @loss(%x: tensor<32x2xf32>) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<2xf32>
    %0 = gpuc.broadcast %w dims [1] : tensor<2xf32> to tensor<32x2xf32>
    %sum, %count = gpuc.mse %0, %x : (tensor<32x2xf32>, tensor<32x2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  func.func private @loss_of_shard(%x: tensor<16x2xf32>) -> (tensor<f32>, tensor<f32>) attributes {gpuc.shards = 2 : i64} {
    %w = gpuc.read @w : tensor<2xf32>
    %0 = gpuc.broadcast %w dims [1] : tensor<2xf32> to tensor<16x2xf32>
    %sum, %count = gpuc.mse %0, %x : (tensor<16x2xf32>, tensor<16x2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = sgd(lr = 0.1), loss_scale = dynamic(init_scale = 1024.0) }
}
