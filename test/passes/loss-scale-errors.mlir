// RUN: gpuc-opt %s --gpuc-differentiate-loss --gpuc-autodiff --gpuc-expand-recipe --split-input-file --verify-diagnostics

// A counter's name is taken by something else.
module {
  // expected-error @below {{is named @loss_scale, which is the name of a counter that scales the loss, a variable of type 'tensor<f32>'}}
  gpuc.variable @loss_scale : tensor<2xf32> init ones
  func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @loss_scale : tensor<2xf32>
    %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = sgd(lr = 0.1), precision = fp16 }
}

// -----

// What GradScaler refuses.
module {
  gpuc.variable @w : tensor<2xf32> init ones
  func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<2xf32>
    %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  // expected-error @below {{loss scale dynamic: growth_factor must be above 1, but is}}
  gpuc.recipe { loss = @loss, optimizer = sgd(lr = 0.1), loss_scale = dynamic(growth_factor = 0.5) }
}
