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

// -----

// Each of the operands, with rows of 3 where its layout says 4.
plan.program @predict {
  %q = plan.input "q" : tensor<1x1x2x4xf32>
  %y = plan.buffer "y" : tensor<1x1x2x4xf32> activation
  %log = plan.buffer "log" : tensor<1x1x2xf32> activation
  %short = plan.buffer "short" : tensor<1x1x2x3xf32> activation
  // expected-error @below {{query has 24 bytes, its layout takes 32}}
  plan.attention %short, %q, %q -> %y, %log : f32 batch 1 heads 1 groups 1 queries 2 keys 2 width 4 value_width 4 scale 1.0 strides [8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4]
}

// -----

plan.program @predict {
  %q = plan.input "q" : tensor<1x1x2x4xf32>
  %y = plan.buffer "y" : tensor<1x1x2x4xf32> activation
  %log = plan.buffer "log" : tensor<1x1x2xf32> activation
  %short = plan.buffer "short" : tensor<1x1x2x3xf32> activation
  // expected-error @below {{value has 24 bytes, its layout takes 32}}
  plan.attention %q, %q, %short -> %y, %log : f32 batch 1 heads 1 groups 1 queries 2 keys 2 width 4 value_width 4 scale 1.0 strides [8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4]
}

// -----

plan.program @predict {
  %q = plan.input "q" : tensor<1x1x2x4xf32>
  %log = plan.buffer "log" : tensor<1x1x2xf32> activation
  %short = plan.buffer "short" : tensor<1x1x2x3xf32> activation
  // expected-error @below {{result has 24 bytes, its layout takes 32}}
  plan.attention %q, %q, %q -> %short, %log : f32 batch 1 heads 1 groups 1 queries 2 keys 2 width 4 value_width 4 scale 1.0 strides [8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4]
}

// -----

plan.program @predict {
  %q = plan.input "q" : tensor<1x1x2x4xf32>
  %d = plan.buffer "d" : tensor<1x1x2x4xf32> activation
  %log = plan.buffer "log" : tensor<1x1x2xf32> activation
  %short = plan.buffer "short" : tensor<1x1x2x3xf32> activation
  // expected-error @below {{cotangent has 24 bytes, its layout takes 32}}
  plan.attention_gradient %short of %q, %log query %q key %q value %q -> %d, %d, %d : f32 batch 1 heads 1 groups 1 queries 2 keys 2 width 4 value_width 4 scale 1.0 strides [8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4]
}

// -----

plan.program @predict {
  %q = plan.input "q" : tensor<1x1x2x4xf32>
  %d = plan.buffer "d" : tensor<1x1x2x4xf32> activation
  %log = plan.buffer "log" : tensor<1x1x2xf32> activation
  %short = plan.buffer "short" : tensor<1x1x2x3xf32> activation
  // expected-error @below {{query's cotangent has 24 bytes, its layout takes 32}}
  plan.attention_gradient %q of %q, %log query %q key %q value %q -> %short, %d, %d : f32 batch 1 heads 1 groups 1 queries 2 keys 2 width 4 value_width 4 scale 1.0 strides [8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4]
}

// -----

plan.program @predict {
  %q = plan.input "q" : tensor<1x1x2x4xf32>
  %d = plan.buffer "d" : tensor<1x1x2x4xf32> activation
  %log = plan.buffer "log" : tensor<1x1x2xf32> activation
  %short = plan.buffer "short" : tensor<1x1x2x3xf32> activation
  // expected-error @below {{key's cotangent has 24 bytes, its layout takes 32}}
  plan.attention_gradient %q of %q, %log query %q key %q value %q -> %d, %short, %d : f32 batch 1 heads 1 groups 1 queries 2 keys 2 width 4 value_width 4 scale 1.0 strides [8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4]
}

// -----

// One logarithm a query.
plan.program @predict {
  %q = plan.input "q" : tensor<1x1x2x4xf32>
  %y = plan.buffer "y" : tensor<1x1x2x4xf32> activation
  %log = plan.buffer "log" : tensor<1x1x1xf32> activation
  // expected-error @below {{log_sum_exp has 4 bytes, its layout takes 8}}
  plan.attention %q, %q, %q -> %y, %log : f32 batch 1 heads 1 groups 1 queries 2 keys 2 width 4 value_width 4 scale 1.0 strides [8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4]
}

// -----

// A mask has the dimensions of the scores.
plan.program @predict {
  %q = plan.input "q" : tensor<1x1x2x4xf32>
  %y = plan.buffer "y" : tensor<1x1x2x4xf32> activation
  %log = plan.buffer "log" : tensor<1x1x2xf32> activation
  %m = plan.buffer "m" : tensor<2xi1> activation
  // expected-error @below {{wants four strides of the mask}}
  plan.attention %q, %q, %q mask %m strides [0, 0, 1] -> %y, %log : f32 batch 1 heads 1 groups 1 queries 2 keys 2 width 4 value_width 4 scale 1.0 strides [8, 8, 4, 8, 8, 4, 8, 8, 4, 8, 8, 4]
}
