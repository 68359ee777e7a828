// What ranks cannot share out.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

plan.program @predict {
  %x = plan.input "x" : tensor<8xf32>
  %y = plan.buffer "y" : tensor<2xf32> activation
  // expected-error @below {{of 32 bytes, of which 2 ranks have 8 each, but a share is of 16 [reduce_scatter_C1]}}
  plan.reduce_scatter %x -> %y : f32 ranks 2
}

// -----

plan.program @predict {
  %x = plan.input "x" : tensor<3xf32>
  %y = plan.buffer "y" : tensor<5xf32> activation
  %z = plan.buffer "z" : tensor<8xf32> activation
  // The first is as it should be: 5 elements, of which each has 3. Of 8 each has 4.
  // expected-error @below {{of 32 bytes, of which 2 ranks have 12 each, but a share is of 16 [all_gather_C1]}}
  plan.all_gather %x, %x -> %y, %z : f32 ranks 2
}

// -----

plan.program @predict {
  %x = plan.input "x" : tensor<8xf32>
  %y = plan.buffer "y" : tensor<4xf32> activation
  // expected-error @below {{of 1 shares of 2 tensors [reduce_scatter_C1]}}
  plan.reduce_scatter %x, %x -> %y : f32 ranks 2
}

// -----

plan.program @predict {
  %x = plan.input "x" : tensor<8xf32>
  %y = plan.buffer "y" : tensor<8xf32> activation
  // expected-error @below {{of 32 bytes, of which 0 ranks have 32 each [reduce_scatter_C1]}}
  plan.reduce_scatter %x -> %y : f32 ranks 0
}

// -----

plan.program @predict {
  %x = plan.input "x" : tensor<8xi1>
  %y = plan.buffer "y" : tensor<4xi1> activation
  // expected-error @below {{is of 'i1', which plans know no products of: elements are f64, f32, f16 or bf16}}
  plan.reduce_scatter %x -> %y : i1 ranks 2
}

// -----

plan.program @predict {
  %x = plan.input "x" : tensor<8xf32>
  %y = plan.buffer "y" : tensor<8xf32> activation
  // expected-error @below {{of 3 owners among 2 ranks [reduce_scatter_C1]}}
  plan.reduce_scatter %x, %x, %x -> %y : f32 ranks 2 owners 3
}

// -----

plan.program @predict {
  %x = plan.input "x" : tensor<8xf32>
  %z = plan.input "z" : tensor<4xf32>
  %y = plan.buffer "y" : tensor<8xf32> activation
  // What owners have of one share is alike.
  // expected-error @below {{of 32 bytes, of which 2 ranks have 32 each [reduce_scatter_C1]}}
  plan.reduce_scatter %x, %z -> %y : f32 ranks 2 owners 2
}

// -----

plan.program @predict {
  %x = plan.input "x" : tensor<8xf32>
  %y = plan.buffer "y" : tensor<8xf32> activation
  // expected-error @below {{of 1 shares of 1 tensors [all_gather_C1]}}
  plan.all_gather %x -> %y : f32 ranks 2 owners 2
}
