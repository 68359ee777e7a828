// What ranks cannot share out.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

plan.program @predict {
  %x = plan.input "x" : tensor<8xf32>
  %y = plan.buffer "y" : tensor<2xf32> activation
  // expected-error @below {{of 32 bytes, of which 2 ranks have 8 each, but the pieces are of 32 and 16 [reduce_scatter_C1]}}
  plan.reduce_scatter %x -> %y : f32 ranks 2 pieces [8]
}

// -----

plan.program @predict {
  %x = plan.input "x" : tensor<5xf32>
  %y = plan.buffer "y" : tensor<21xf32> activation
  // Pieces begin at multiples of 64 bytes.
  // expected-error @below {{of 84 bytes, of which 2 ranks have 20 each, but the pieces are of 84 and 76 [all_gather_C1]}}
  plan.all_gather %x -> %y : f32 ranks 2 pieces [5, 5]
}

// -----

plan.program @predict {
  %x = plan.input "x" : tensor<8xf32>
  %y = plan.buffer "y" : tensor<8xf32> activation
  // expected-error @below {{of 32 bytes, of which 0 ranks have 32 each [reduce_scatter_C1]}}
  plan.reduce_scatter %x -> %y : f32 ranks 0 pieces [8]
}

// -----

plan.program @predict {
  %x = plan.input "x" : tensor<8xi1>
  %y = plan.buffer "y" : tensor<4xi1> activation
  // expected-error @below {{is of 'i1', which plans know no products of: elements are f64, f32, f16 or bf16}}
  plan.reduce_scatter %x -> %y : i1 ranks 2 pieces [8]
}
