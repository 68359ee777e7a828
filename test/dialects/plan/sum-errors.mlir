// What a sum of parts refuses.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

plan.program @predict {
  %x = plan.input "x" : tensor<2x3xf32>
  %y = plan.buffer "y" : tensor<4xf32> activation
  // expected-error @below {{of 24 bytes of parts, which is no whole number of results of 16}}
  plan.sum %x -> %y : f32
}
