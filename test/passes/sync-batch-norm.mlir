// RUN: gpuc-opt %s --gpuc-sync-batch-norm --split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-sync-batch-norm --gpuc-specialize-batch --gpuc-mask-padding --split-input-file | FileCheck %s --check-prefix=ROWS
// RUN: gpuc-opt %s --gpuc-sync-batch-norm --gpuc-specialize-batch --gpuc-mask-padding --gpuc-differentiate-loss --gpuc-autodiff \
// RUN:   --gpuc-expand-recipe --gpuc-decompose --canonicalize --cse --split-input-file | FileCheck %s --check-prefix=STEP

// What is over the batch is synchronised, and counts the rows that hold a sample. What is over
// something else has the same statistics on all ranks as it is.

// CHECK-LABEL: module @marked
// CHECK:         gpuc.batch_norm %{{.*}} running %{{[^ ]*}}, %{{[^ ]*}} weight %{{[^ ]*}} bias %{{[^ ]*}} sync :
// CHECK:         gpuc.batch_norm %{{.*}} running %{{[^ ]*}}, %{{[^ ]*}} : (tensor<5x3xf32>
// ROWS-LABEL:  module @marked
// ROWS-SAME:     gpuc.batch = 4
// ROWS:        func.func private @loss({{.*}}%[[ROWS:[^:]*]]: tensor<i32> {gpuc.name = "rows", gpuc.role = "rows"})
// ROWS:          gpuc.batch_norm {{.*}} rows %[[ROWS]] sync :
// ROWS:          gpuc.batch_norm %{{.*}} running %{{[^ ]*}}, %{{[^ ]*}} : (tensor<5x3xf32>

// A norm adds up over ranks how many rows there are, the elements, and the squares of what they are off their mean. The statistics,
// alike on all ranks, are assigned as they are. In the backward pass it adds up the gradients of weight and bias, as updates do:
// once, and behind them there is the gradient of `scale` alone.
// STEP-LABEL:  func.func @train_step(
// STEP:          %[[HERE:.*]] = gpuc.cast %{{.*}} : tensor<i32> to tensor<f32>
// STEP:          %[[COUNT:.*]] = gpuc.all_reduce %[[HERE]] : tensor<f32>
// STEP:          %[[TOTAL:.*]] = gpuc.all_reduce %{{.*}} : tensor<3xf32>
// STEP:          %[[MEAN:.*]] = gpuc.div %[[TOTAL]], %{{.*}} : tensor<3xf32>
// STEP:          %[[SQUARES:.*]] = gpuc.all_reduce %{{.*}} : tensor<3xf32>
// STEP:          gpuc.div %[[SQUARES]], %{{.*}} : tensor<3xf32>
// STEP-NOT:      gpuc.all_reduce
// STEP:          gpuc.assign @running_mean,
// STEP:          gpuc.all_reduce %{{.*}} : tensor<3xf32>
// STEP:          gpuc.all_reduce %{{.*}} : tensor<3xf32>
// STEP:          gpuc.all_reduce %{{.*}} : tensor<f32>
// STEP:          gpuc.all_reduce %{{.*}} : tensor<f32>
// STEP:          gpuc.all_reduce %{{.*}} : tensor<3xf32>
// STEP-NOT:      gpuc.all_reduce
// STEP:          return
module @marked {
  gpuc.variable @scale : tensor<3xf32> init ones
  gpuc.variable @weight : tensor<3xf32> init ones
  gpuc.variable @bias : tensor<3xf32> init zeros
  gpuc.variable @running_mean kind statistic : tensor<3xf32> init zeros
  gpuc.variable @frozen frozen : tensor<5x3xf32> init ones
  func.func @loss(%x: tensor<?x3xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @weight : tensor<3xf32>
    %b = gpuc.read @bias : tensor<3xf32>
    %r = gpuc.read @running_mean : tensor<3xf32>
    %s = gpuc.read @scale : tensor<3xf32>
    %spread = gpuc.broadcast %s dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %scaled = gpuc.mul %x, %spread : tensor<?x3xf32>
    %0:5 = gpuc.batch_norm %scaled running %r, %r weight %w bias %b : (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
    gpuc.assign @running_mean, %0#1 : tensor<3xf32>
    %f = gpuc.read @frozen : tensor<5x3xf32>
    %1:5 = gpuc.batch_norm %f running %r, %r : (tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
    %2 = gpuc.broadcast %1#4 dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %loss, %count = gpuc.mse %0#0, %2 : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, data_parallel = true, sync_batch_norm = true, optimizer = sgd(lr = 0.1) }
}

// -----

// Nobody asks for it.
// CHECK-LABEL: module @alone
// CHECK-NOT:     sync
module @alone {
  func.func @loss(%x: tensor<?x3xf32> {gpuc.name = "x"}, %r: tensor<3xf32>) -> (tensor<f32>, tensor<f32>) {
    %0:5 = gpuc.batch_norm %x running %r, %r : (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
    %loss, %count = gpuc.mse %0#0, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, data_parallel = true }
}

// -----

// A frontend that has known the batch says which norms are over it.
// CHECK-LABEL: module @known
// CHECK:         gpuc.batch_norm %{{.*}} running %{{[^ ]*}}, %{{[^ ]*}} weight %{{[^ ]*}} sync {gpuc.has_rows} : (tensor<4x3xf32>
// CHECK:         gpuc.batch_norm %{{.*}} running %{{[^ ]*}}, %{{[^ ]*}} : (tensor<4x3xf32>
// ROWS-LABEL:  module @known
// ROWS-NOT:      has_rows
module @known {
  gpuc.variable @scale : tensor<3xf32> init ones
  gpuc.variable @mean kind statistic : tensor<3xf32> init zeros
  func.func @loss(%x: tensor<4x3xf32> {gpuc.name = "x", gpuc.has_rows}) -> (tensor<f32>, tensor<f32>) {
    %r = gpuc.read @mean : tensor<3xf32>
    %s = gpuc.read @scale : tensor<3xf32>
    %0:5 = gpuc.batch_norm %x running %r, %r weight %s {gpuc.has_rows} : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
    %1:5 = gpuc.batch_norm %x running %r, %r : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
    %loss, %count = gpuc.mse %0#0, %1#0 : (tensor<4x3xf32>, tensor<4x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, data_parallel = true, sync_batch_norm = true, optimizer = sgd(lr = 0.1) }
}
