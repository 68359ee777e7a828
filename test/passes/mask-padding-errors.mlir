// RUN: gpuc-opt %s --gpuc-mask-padding --split-input-file --verify-diagnostics

// 10 rows cannot be divided among 4 samples: which of them are padding is not known.
module attributes {gpuc.batch = 4 : i64} {
  func.func @loss(%x: tensor<10x5xf32>, %labels: tensor<10xi32>) -> (tensor<f32>, tensor<f32>) {
    // expected-error @below {{is over 10 rows, not a multiple of the batch of 4: give it a mask}}
    %sum, %count = gpuc.cross_entropy %x, %labels : (tensor<10x5xf32>, tensor<10xi32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss
  }
}

// -----

// The loss is only declared.
module attributes {gpuc.batch = 4 : i64} {
  func.func private @loss(tensor<4x5xf32>) -> (tensor<f32>, tensor<f32>)
  // expected-error @below {{names @loss, which has no body in this module}}
  gpuc.recipe {
    loss = @loss
  }
}

// -----

// 10 rows of a norm that ranks share: which of them are padding is not known either.
module attributes {gpuc.batch = 4 : i64} {
  func.func @loss(%x: tensor<10x5xf32>, %y: tensor<4x5xf32>, %r: tensor<5xf32>) -> (tensor<f32>, tensor<f32>) {
    // expected-error @below {{is over 10 rows, not a multiple of the batch of 4: leave out sync_batch_norm, or have it normalise the whole batch}}
    %0:5 = gpuc.batch_norm %x running %r, %r sync : (tensor<10x5xf32>, tensor<5xf32>, tensor<5xf32>) -> (tensor<10x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>)
    %sum, %count = gpuc.mse %y, %y : (tensor<4x5xf32>, tensor<4x5xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss
  }
}
