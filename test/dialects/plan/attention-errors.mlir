// What attention's commands refuse: buffers that are not as long as their layouts.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

// From the first element to the last of 2 rows, 8 apart, of 4: 12 elements.
plan.program @predict {
  %q = plan.input "q" : tensor<1x1x2x4xf32>
  %y = plan.buffer "y" : tensor<1x1x2x4xf32> activation
  %log = plan.buffer "log" : tensor<1x1x2xf32> activation
  // expected-error @below {{key has 32 bytes, its layout takes 48}}
  plan.attention %q, %q, %q -> %y, %log : f32 batch 1 heads 1 groups 1 queries 2 keys 2 width 4 value_width 4 scale 1.0 strides [8, 8, 4, 8, 8, 8, 8, 8, 4, 8, 8, 4]
}

// -----

plan.program @predict {
  %q = plan.input "q" : tensor<1x1x2x4xf32>
  %y = plan.buffer "y" : tensor<1x1x2x4xf32> activation
  %log = plan.buffer "log" : tensor<1x1x2xf32> activation
  // expected-error @below {{wants three strides for each of 4 operands, has 9}}
  plan.attention %q, %q, %q -> %y, %log : f32 batch 1 heads 1 groups 1 queries 2 keys 2 width 4 value_width 4 scale 1.0 strides [8, 8, 4, 8, 8, 4, 8, 8, 4]
}

// -----

// A mask of 2 keys is 2 bytes or 8, not 4.
plan.program @predict {
  %q = plan.input "q" : tensor<1x1x2x4xf32>
  %m = plan.input "m" : tensor<1x1x2x2xi1>
  %y = plan.buffer "y" : tensor<1x1x2x4xf32> activation
  %log = plan.buffer "log" : tensor<1x1x2xf32> activation
  // expected-error @below {{mask has 4 bytes, 2 elements of i1 or 'f32' take 2 or 8}}
  plan.attention %q, %q, %q mask %m strides [0, 0, 0, 1] -> %y, %log : f32 batch 1 heads 1 groups 1 queries 2 keys 2 width 4 value_width 4 scale 1.0 strides [8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4]
}

// -----

plan.program @predict {
  %q = plan.input "q" : tensor<1x1x2x4xf32>
  %log = plan.buffer "log" : tensor<1x1x2xf32> activation
  %d = plan.buffer "d" : tensor<1x1x2x4xf32> activation
  // expected-error @below {{value's cotangent has 8 bytes, its layout takes 32}}
  plan.attention_gradient %q of %q, %log query %q key %q value %q -> %d, %d, %log : f32 batch 1 heads 1 groups 1 queries 2 keys 2 width 4 value_width 4 scale 1.0 strides [8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4]
}
