// RUN: gpuc-opt %s --gpuc-specialize-batch --split-input-file --verify-diagnostics
// RUN: not gpuc-opt %s --gpuc-specialize-batch=batch=-1 --split-input-file 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not gpuc-opt %s --gpuc-specialize-batch=batch=8 --split-input-file 2>&1 | FileCheck %s --check-prefix=OTHER

// NEGATIVE: error: batch must be at least 1, not -1

// Neither the option nor a recipe names a batch.
// expected-error @below {{no batch is known: pass --batch=N or give the recipe `batch = N`}}
module {
  func.func @predict(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    return %x : tensor<?x4xf32>
  }
}

// -----

// The recipe is there, but without a batch.
// expected-error @below {{no batch is known}}
module {
  func.func @loss(%x: tensor<?x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %sum, %count = gpuc.mse %x, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss
  }
}

// -----

// The shapes hold another batch already: 4, while the option says 8.
// OTHER: error: the batch is already bound to 4, not to 8
module attributes {gpuc.batch = 4 : i64} {
  func.func @predict(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
    return %x : tensor<4x4xf32>
  }
}

// -----

// An option that changes nothing is worth a warning.
// OTHER: warning: batch=8 changes nothing: no shape has a leading `?`
module {
  func.func @predict(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
    return %x : tensor<4x4xf32>
  }
}

// -----

// Nor by those of a recipe: whoever brings data would be refused.
// expected-error @below {{no shape has a leading `?` for a batch of 3 to be bound to, and no input has 3 rows: leave the recipe's `batch` out}}
module {
  func.func @loss(%x: tensor<6x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %sum, %count = gpuc.mse %x, %x : (tensor<6x4xf32>, tensor<6x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 3 }
}

// -----

// Training by other rows than there are.
// OTHER: error: no shape has a leading `?` for a batch of 8 to be bound to, and no input has 8 rows: leave --batch out
module {
  func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %sum, %count = gpuc.mse %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss
  }
}

// -----

// Before any pass counts elements of it.
module {
  // expected-error @below {{tensor of type 'tensor<2305843009213693952x4xf32>' has 2^63 bytes or more; is the batch too large?}}
  func.func @loss(%x: tensor<?x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %sum, %count = gpuc.mse %x, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss,
    batch = 2305843009213693952
  }
}

// -----

// No tensor of a model is empty: no input, whoever reads it,
module {
  // expected-error @below {{input of type 'tensor<4x0xf32>' holds nothing: every extent of an input must be at least 1}}
  func.func @predict(%x: tensor<4x0xf32>) -> tensor<4x0xf32> {
    return %x : tensor<4x0xf32>
  }
}

// -----

// nor beside the batch,
module {
  // expected-error @below {{input of type 'tensor<?x0xf32>' holds nothing}}
  func.func @predict(%x: tensor<?x0xf32>) -> tensor<?x0xf32> {
    return %x : tensor<?x0xf32>
  }
}

// -----

// no variable,
module {
  // expected-error @below {{variable of type 'tensor<0x4xf32>' holds nothing: every extent of a variable must be at least 1}}
  gpuc.variable @w : tensor<0x4xf32> init zeros
}

// -----

// and nothing that is computed, though an op could,
module {
  func.func @predict(%x: tensor<4xf32>) -> tensor<f32> {
    // expected-error @below {{tensor of type 'tensor<0xf32>' holds nothing: every extent of a tensor must be at least 1}}
    %0 = gpuc.slice %x starts [2] limits [2] strides [1] : (tensor<4xf32>) -> tensor<0xf32>
    %1 = gpuc.sum %0 dims [0] : (tensor<0xf32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----

// in loops as well.
module {
  func.func @predict(%x: tensor<3x4xf32>) -> tensor<3xf32> {
    %0 = gpuc.scan over(%x) : (tensor<3x4xf32>) -> tensor<3xf32> {
    ^bb0(%row: tensor<4xf32>):
      // expected-error @below {{tensor of type 'tensor<0xf32>' holds nothing}}
      %none = gpuc.slice %row starts [4] limits [4] strides [1] : (tensor<4xf32>) -> tensor<0xf32>
      %sum = gpuc.sum %none dims [0] : (tensor<0xf32>) -> tensor<f32>
      gpuc.yield %sum : tensor<f32>
    }
    return %0 : tensor<3xf32>
  }
}

// -----

// What the passes have made of a model may hold nothing.
module {
  func.func @init() {
    return
  }
  func.func @predict(%x: tensor<4xf32>) -> tensor<f32> {
    %0 = gpuc.slice %x starts [2] limits [2] strides [1] : (tensor<4xf32>) -> tensor<0xf32>
    %1 = gpuc.sum %0 dims [0] : (tensor<0xf32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
}
