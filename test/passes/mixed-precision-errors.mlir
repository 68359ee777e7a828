// RUN: gpuc-opt %s --gpuc-mixed-precision --split-input-file --verify-diagnostics
// RUN: not gpuc-opt %s --gpuc-mixed-precision=target=cuda:sm_75 --split-input-file 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: not gpuc-opt %s --gpuc-override-recipe=entries=precision=fp8 --split-input-file 2>&1 | FileCheck %s --check-prefix=FLAG

// A device without units for it.
// OLD: error: 'gpuc.recipe' op precision bf16: cuda:sm_75 has no bf16 units; take fp16, or compile for cuda:sm_80 and newer

// On the command line as in the recipe.
// FLAG: error: precision fp8: plans hold no products of 8 bits, neither for the host nor for CUDA; take bf16

module {
  func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %0 = gpuc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %sum, %count = gpuc.mse %0, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, precision = bf16 }
}

// -----

module {
  func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %sum, %count = gpuc.mse %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  // expected-error @below {{precision fp8: plans hold no products of 8 bits, neither for the host nor for CUDA; take bf16}}
  gpuc.recipe { loss = @loss, precision = fp8 }
}

// -----

// With the names that others give its forms.
module {
  func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %sum, %count = gpuc.mse %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  // expected-error @below {{precision f8E4M3FN: plans hold no products of 8 bits, neither for the host nor for CUDA; take bf16}}
  gpuc.recipe { loss = @loss, precision = f8E4M3FN }
}

// -----

module {
  func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %sum, %count = gpuc.mse %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  // expected-error @below {{unknown precision 'fp61': the nearest is 'fp16'; known are f32, tf32, bf16, fp16}}
  gpuc.recipe { loss = @loss, precision = fp61 }
}

// -----

// A host without units for it.
module {
  func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %sum, %count = gpuc.mse %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  // expected-error @below {{precision tf32: the host has no TF32 units; take f32, or compile for cuda:sm_80 and newer}}
  gpuc.recipe { loss = @loss, precision = tf32 }
}

// -----

module {
  func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %sum, %count = gpuc.mse %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  // expected-error @below {{precision tf32 has no key 'tf32': all products are; known is f32}}
  gpuc.recipe { loss = @loss, precision = tf32(tf32 = "matmul") }
}

// -----

// A pattern that means nothing is misspelt: an op's name, and a layer's.
module {
  func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %sum, %count = gpuc.mse %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  // expected-error @below {{precision: no layer and no op is named 'gpuc.softmx'; the nearest is 'gpuc.softmax'}}
  gpuc.recipe { loss = @loss, precision = bf16(f32 = "gpuc.softmx") }
}

// -----

module {
  func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %0 = gpuc.relu %x : tensor<4x4xf32> loc("head.act")
    %sum, %count = gpuc.mse %0, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  // expected-error @below {{precision: no layer and no op is named 'haed.act'; the nearest is 'head.act'}}
  gpuc.recipe { loss = @loss, precision = fp16(f32 = ("relu", "haed.act")) }
}

// -----

// Only f32 and the precision itself can be asked for, by names.
module {
  func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %sum, %count = gpuc.mse %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  // expected-error @below {{precision bf16 has no key 'fp16': known are f32, bf16}}
  gpuc.recipe { loss = @loss, precision = bf16(fp16 = "relu") }
}

// -----

module {
  func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %sum, %count = gpuc.mse %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  // expected-error @below {{precision f32 has no key 'f32': all is f32}}
  gpuc.recipe { loss = @loss, precision = f32(f32 = "relu") }
}

// -----

module {
  func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %sum, %count = gpuc.mse %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  // expected-error @below {{precision: f32 lists layers and ops, not 3}}
  gpuc.recipe { loss = @loss, precision = bf16(f32 = 3) }
}

// -----

// Without a scale f16 loses gradients: allowed, but said.
module {
  func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %0 = gpuc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %sum, %count = gpuc.mse %0, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  // expected-warning @below {{trains in fp16 without a loss scale: gradients below 6e-8 become 0}}
  gpuc.recipe { loss = @loss, precision = fp16, loss_scale = none }
}

// -----

// A model of f64: nothing in it is lowered.
module {
  func.func @loss(%x: tensor<4x4xf64>) -> (tensor<f64>, tensor<f64>) {
    %0 = gpuc.matmul %x, %x : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
    %sum, %count = gpuc.mse %0, %x : (tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<f64>, tensor<f64>)
    return %sum, %count : tensor<f64>, tensor<f64>
  }
  // expected-warning @below {{precision bf16 changes nothing: @loss has no product to lower (f64 is left alone); make the model one of f32, or leave it out}}
  gpuc.recipe { loss = @loss, precision = bf16 }
}
