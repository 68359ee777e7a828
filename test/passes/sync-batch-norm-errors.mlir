// RUN: gpuc-opt %s --gpuc-sync-batch-norm --split-input-file --verify-diagnostics

func.func @loss(%x: tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>) {
  %loss, %count = gpuc.mse %x, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
  return %loss, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{has sync_batch_norm, but the model has no batch norm over the batch (in eval mode it goes by its running statistics): leave it out}}
gpuc.recipe { loss = @loss, data_parallel = true, sync_batch_norm = true }

// -----

// Its gradient is taken loop by loop.
func.func @loss(%x: tensor<?x7x3xf32>, %y: tensor<?x3xf32>, %r: tensor<3xf32>) -> (tensor<f32>, tensor<f32>) {
  %h = gpuc.scan over(%x) carry(%y) captures(%r) batch_first
      : (tensor<?x7x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
  ^bb0(%xt: tensor<?x3xf32>, %h: tensor<?x3xf32>, %s: tensor<3xf32>):
    // expected-error @below {{stands in a loop, in which norms of several ranks cannot be one: leave out sync_batch_norm}}
    %0:5 = gpuc.batch_norm %xt running %s, %s : (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
    %1 = gpuc.add %0#0, %h : tensor<?x3xf32>
    gpuc.yield %1 : tensor<?x3xf32>
  }
  %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
  return %loss, %count : tensor<f32>, tensor<f32>
}
gpuc.recipe { loss = @loss, data_parallel = true, sync_batch_norm = true }
