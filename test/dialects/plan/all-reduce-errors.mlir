// What a sum over ranks refuses.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

plan.program @predict {
  %x = plan.input "x" : tensor<2x3xf32>
  %y = plan.buffer "y" : tensor<3xf32> activation
  // expected-error @below {{of 24 bytes into 12 [all_reduce_C1]}}
  plan.all_reduce %x -> %y : f32
}

// -----

plan.program @predict {
  %x = plan.input "x" : tensor<3xi1>
  %y = plan.buffer "y" : tensor<3xi1> activation
  // expected-error @below {{is of 'i1', which plans know no products of: elements are f64, f32, f16 or bf16}}
  plan.all_reduce %x -> %y : i1
}
