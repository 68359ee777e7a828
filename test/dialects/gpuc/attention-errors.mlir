// Attention that is refused, each with the constraint's label in dialects/gpuc/ops/AttentionOps.td.
// RUN: gpuc-opt %s --split-input-file --verify-diagnostics

// Without heads.
func.func @f(%q: tensor<2x6x8xf32>) {
  // expected-error @below {{'gpuc.attention' op query 'tensor<2x6x8xf32>', key 'tensor<2x6x8xf32>' and value 'tensor<2x6x8xf32>' must have rank 4 and one element type [attention_C1]}}
  %0:2 = gpuc.attention %q, %q, %q : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x6xf32>)
  return
}

// -----

// Three heads cannot share two.
func.func @f(%q: tensor<2x3x6x8xf32>, %k: tensor<2x2x6x8xf32>) {
  // expected-error @below {{do not fit: [B, H, T, D], [B, G, S, D] and [B, G, S, E], H a multiple of G [attention_C2]}}
  %0:2 = gpuc.attention %q, %k, %k : (tensor<2x3x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> (tensor<2x3x6x8xf32>, tensor<2x3x6xf32>)
  return
}

// -----

// A query is compared with a key of its length.
func.func @f(%q: tensor<2x2x6x8xf32>, %k: tensor<2x2x6x4xf32>) {
  // expected-error @below {{do not fit: [B, H, T, D], [B, G, S, D] and [B, G, S, E], H a multiple of G [attention_C2]}}
  %0:2 = gpuc.attention %q, %k, %k : (tensor<2x2x6x8xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> (tensor<2x2x6x4xf32>, tensor<2x2x6xf32>)
  return
}

// -----

// 4 is neither 1 nor the number of keys.
func.func @f(%q: tensor<2x2x6x8xf32>, %m: tensor<6x4xi1>) {
  // expected-error @below {{mask 'tensor<6x4xi1>' must be i1 or of the element type of query 'tensor<2x2x6x8xf32>', and broadcast to the scores 'tensor<2x2x6x6xf32>' [attention_C3]}}
  %0:2 = gpuc.attention %q, %q, %q mask %m : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<6x4xi1>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6xf32>)
  return
}

// -----

// Neither flags nor numbers to add.
func.func @f(%q: tensor<2x2x6x8xf32>, %m: tensor<6x6xi32>) {
  // expected-error @below {{mask 'tensor<6x6xi32>' must be i1 or of the element type of query 'tensor<2x2x6x8xf32>', and broadcast to the scores 'tensor<2x2x6x6xf32>' [attention_C3]}}
  %0:2 = gpuc.attention %q, %q, %q mask %m : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<6x6xi32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6xf32>)
  return
}

// -----

func.func @f(%q: tensor<2x2x6x8xf32>) {
  // expected-error @below {{'gpuc.attention' op dropout must lie in [0, 1] and id in [0, 268435456), but are 1.5 and 3 [attention_C4]}}
  %0:2 = gpuc.attention %q, %q, %q dropout 1.5 id 3 : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6xf32>)
  return
}

// -----

// No keys.
func.func @f(%q: tensor<2x2x6x8xf32>, %k: tensor<2x2x0x8xf32>) {
  // expected-error @below {{leave nothing to attend to: D and S are at least 1 [attention_C5]}}
  %0:2 = gpuc.attention %q, %k, %k : (tensor<2x2x6x8xf32>, tensor<2x2x0x8xf32>, tensor<2x2x0x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6xf32>)
  return
}

// -----

// One alone without heads.
func.func @f(%q: tensor<2x6x8xf32>, %k: tensor<2x2x6x8xf32>) {
  // expected-error @below {{must have rank 4 and one element type [attention_C1]}}
  %0:2 = gpuc.attention %q, %k, %k : (tensor<2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6xf32>)
  return
}

// -----

// The key.
func.func @f(%q: tensor<2x2x6x8xf32>, %k: tensor<2x6x8xf32>) {
  // expected-error @below {{must have rank 4 and one element type [attention_C1]}}
  %0:2 = gpuc.attention %q, %k, %q : (tensor<2x2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x2x6x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6xf32>)
  return
}

// -----

// The value.
func.func @f(%q: tensor<2x2x6x8xf32>, %v: tensor<2x6x8xf32>) {
  // expected-error @below {{must have rank 4 and one element type [attention_C1]}}
  %0:2 = gpuc.attention %q, %q, %v : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x6x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6xf32>)
  return
}

// -----

// Keys of another element type.
func.func @f(%q: tensor<2x2x6x8xf32>, %k: tensor<2x2x6x8xf64>) {
  // expected-error @below {{must have rank 4 and one element type [attention_C1]}}
  %0:2 = gpuc.attention %q, %k, %q : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf64>, tensor<2x2x6x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6xf32>)
  return
}

// -----

// Values of another element type.
func.func @f(%q: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf64>) {
  // expected-error @below {{must have rank 4 and one element type [attention_C1]}}
  %0:2 = gpuc.attention %q, %q, %v : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf64>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6xf32>)
  return
}

// -----

// Three samples, two of the keys.
func.func @f(%q: tensor<3x2x6x8xf32>, %k: tensor<2x2x6x8xf32>) {
  // expected-error @below {{do not fit: [B, H, T, D], [B, G, S, D] and [B, G, S, E], H a multiple of G [attention_C2]}}
  %0:2 = gpuc.attention %q, %k, %k : (tensor<3x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6xf32>)
  return
}

// -----

// Five values for six keys.
func.func @f(%q: tensor<2x2x6x8xf32>, %v: tensor<2x2x5x8xf32>) {
  // expected-error @below {{do not fit: [B, H, T, D], [B, G, S, D] and [B, G, S, E], H a multiple of G [attention_C2]}}
  %0:2 = gpuc.attention %q, %q, %v : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x5x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6xf32>)
  return
}

// -----

// No group that could have heads.
func.func @f(%q: tensor<2x2x6x8xf32>, %k: tensor<2x0x6x8xf32>) {
  // expected-error @below {{do not fit: [B, H, T, D], [B, G, S, D] and [B, G, S, E], H a multiple of G [attention_C2]}}
  %0:2 = gpuc.attention %q, %k, %k : (tensor<2x2x6x8xf32>, tensor<2x0x6x8xf32>, tensor<2x0x6x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6xf32>)
  return
}

// -----

// Nothing to compare.
func.func @f(%q: tensor<2x2x6x0xf32>, %v: tensor<2x2x6x8xf32>) {
  // expected-error @below {{leave nothing to attend to: D and S are at least 1 [attention_C5]}}
  %0:2 = gpuc.attention %q, %q, %v : (tensor<2x2x6x0xf32>, tensor<2x2x6x0xf32>, tensor<2x2x6x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6xf32>)
  return
}

// -----

// A probability below 0.
func.func @f(%q: tensor<2x2x6x8xf32>) {
  // expected-error @below {{dropout must lie in [0, 1] and id in [0, 268435456), but are -0.5 and 3 [attention_C4]}}
  %0:2 = gpuc.attention %q, %q, %q dropout -0.5 id 3 : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6xf32>)
  return
}

// -----

// Ids are those of draws that a program can tell apart: 2^28.
func.func @f(%q: tensor<2x2x6x8xf32>) {
  // expected-error @below {{dropout must lie in [0, 1] and id in [0, 268435456), but are 0.5 and 268435456 [attention_C4]}}
  %0:2 = gpuc.attention %q, %q, %q dropout 0.5 id 268435456 : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6xf32>)
  return
}

// -----

// A negative one.
func.func @f(%q: tensor<2x2x6x8xf32>) {
  // expected-error @below {{dropout must lie in [0, 1] and id in [0, 268435456), but are 0.5 and -1 [attention_C4]}}
  %0:2 = gpuc.attention %q, %q, %q dropout 0.5 id -1 : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6xf32>)
  return
}

// -----

// What attention refuses, so does its gradient.
func.func @f(%q: tensor<2x3x6x8xf32>, %k: tensor<2x2x6x8xf32>, %l: tensor<2x3x6xf32>) {
  // expected-error @below {{'gpuc.attention_gradient' op query 'tensor<2x3x6x8xf32>', key 'tensor<2x2x6x8xf32>' and value 'tensor<2x2x6x8xf32>' do not fit: [B, H, T, D], [B, G, S, D] and [B, G, S, E], H a multiple of G [attention_gradient_C1]}}
  %0:3 = gpuc.attention_gradient %q of %q, %l query %q key %k value %k : (tensor<2x3x6x8xf32>, tensor<2x3x6x8xf32>, tensor<2x3x6xf32>, tensor<2x3x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> (tensor<2x3x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>)
  return
}

// -----

// The logarithms are one a query.
func.func @f(%q: tensor<2x2x6x8xf32>) {
  // expected-error @below {{'gpuc.attention_gradient' op log_sum_exp must be 'tensor<2x2x6xf32>', but is 'tensor<2x2x6x8xf32>' [attention_gradient_C2]}}
  %0:3 = gpuc.attention_gradient %q of %q, %q query %q key %q value %q : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>)
  return
}

// -----

// Flags have no cotangent.
func.func @f(%q: tensor<2x2x6x8xf32>, %l: tensor<2x2x6xf32>, %m: tensor<6x6xi1>) {
  // expected-error @below {{but returns ('tensor<2x2x6x8xf32>', 'tensor<2x2x6x8xf32>', 'tensor<2x2x6x8xf32>', 'tensor<6x6xf32>') [attention_gradient_C3]}}
  %0:4 = gpuc.attention_gradient %q of %q, %l query %q key %q value %q mask %m : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<6x6xi1>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<6x6xf32>)
  return
}

// -----

// A mask that attention would refuse.
func.func @f(%q: tensor<2x2x6x8xf32>, %l: tensor<2x2x6xf32>, %m: tensor<6x4xi1>) {
  // expected-error @below {{mask 'tensor<6x4xi1>' must be i1 or of the element type of query}}
  %0:3 = gpuc.attention_gradient %q of %q, %l query %q key %q value %q mask %m : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<6x4xi1>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>)
  return
}

// -----

// The cotangent is as long as the result.
func.func @f(%q: tensor<2x2x6x8xf32>, %l: tensor<2x2x6xf32>, %o: tensor<2x2x6x4xf32>) {
  // expected-error @below {{'gpuc.attention_gradient' op cotangent must be 'tensor<2x2x6x8xf32>', but is 'tensor<2x2x6x4xf32>' [attention_gradient_C2]}}
  %0:3 = gpuc.attention_gradient %o of %q, %l query %q key %q value %q : (tensor<2x2x6x4xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>)
  return
}

// -----

// So is the result itself.
func.func @f(%q: tensor<2x2x6x8xf32>, %l: tensor<2x2x6xf32>, %o: tensor<2x2x6x4xf32>) {
  // expected-error @below {{'gpuc.attention_gradient' op result must be 'tensor<2x2x6x8xf32>', but is 'tensor<2x2x6x4xf32>' [attention_gradient_C2]}}
  %0:3 = gpuc.attention_gradient %q of %o, %l query %q key %q value %q : (tensor<2x2x6x8xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>)
  return
}

// -----

// Scores would be NaN.
func.func @f(%q: tensor<2x2x6x8xf32>) {
  // expected-error @below {{scale must be finite, but is inf [attention_C6]}}
  %0:2 = gpuc.attention %q, %q, %q scale 0x7FF0000000000000 : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6xf32>)
  return
}
