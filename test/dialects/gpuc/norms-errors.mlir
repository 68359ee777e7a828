// Normalisations that are refused, each with the constraint's label in dialects/gpuc/ops/NormOps.td.
// RUN: gpuc-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<5x4xf32>) {
  // expected-error @below {{'gpuc.layer_norm' op dim 2 is not a dimension of the operand 'tensor<5x4xf32>', which has 2 [layer_norm_C1]}}
  %0:3 = gpuc.layer_norm %x dim 2 : (tensor<5x4xf32>) -> (tensor<5x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>)
  return
}

// -----

// A sample's result would depend on the others.
func.func @f(%x: tensor<?x4xf32>) {
  // expected-error @below {{'gpuc.layer_norm' op cannot normalise 'tensor<?x4xf32>' over its dimensions from 0: one is ? [layer_norm_C2]}}
  %0:3 = gpuc.layer_norm %x dim 0 : (tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<f32>, tensor<f32>)
  return
}

// -----

// Nothing has no mean.
func.func @f(%x: tensor<5x0xf32>) {
  // expected-error @below {{'gpuc.layer_norm' op cannot normalise 'tensor<5x0xf32>' over its dimensions from 1: one is 0 [layer_norm_C2]}}
  %0:3 = gpuc.layer_norm %x dim 1 : (tensor<5x0xf32>) -> (tensor<5x0xf32>, tensor<5xf32>, tensor<5xf32>)
  return
}

// -----

// A weight has the shape of what is normalised over.
func.func @f(%x: tensor<5x4xf32>, %w: tensor<5xf32>) {
  // expected-error @below {{'gpuc.layer_norm' op weight must be 'tensor<4xf32>', but is 'tensor<5xf32>' [layer_norm_C3]}}
  %0:3 = gpuc.layer_norm %x dim 1 weight %w : (tensor<5x4xf32>, tensor<5xf32>) -> (tensor<5x4xf32>, tensor<5xf32>, tensor<5xf32>)
  return
}

// -----

// So has a bias.
func.func @f(%x: tensor<5x4xf32>, %b: tensor<4xf64>) {
  // expected-error @below {{'gpuc.layer_norm' op bias must be 'tensor<4xf32>', but is 'tensor<4xf64>' [layer_norm_C3]}}
  %0:3 = gpuc.layer_norm %x dim 1 bias %b : (tensor<5x4xf32>, tensor<4xf64>) -> (tensor<5x4xf32>, tensor<5xf32>, tensor<5xf32>)
  return
}

// -----

// The root of a negative number may be asked for.
func.func @f(%x: tensor<5x4xf32>) {
  // expected-error @below {{'gpuc.layer_norm' op eps must not be negative, but is -1 [layer_norm_C4]}}
  %0:3 = gpuc.layer_norm %x dim 1 {eps = -1.0 : f64} : (tensor<5x4xf32>) -> (tensor<5x4xf32>, tensor<5xf32>, tensor<5xf32>)
  return
}

// -----

// Statistics of half precision are f32.
func.func @f(%x: tensor<5x4xf16>) {
  // expected-error @below {{'gpuc.layer_norm' op must return ('tensor<5x4xf16>', 'tensor<5xf32>', 'tensor<5xf32>'), but returns ('tensor<5x4xf16>', 'tensor<5xf16>', 'tensor<5xf16>') [inferred_C1]}}
  %0:3 = gpuc.layer_norm %x dim 1 : (tensor<5x4xf16>) -> (tensor<5x4xf16>, tensor<5xf16>, tensor<5xf16>)
  return
}

// -----

func.func @f(%x: tensor<5x4xf32>) {
  // expected-error @below {{'gpuc.rms_norm' op dim -1 is not a dimension of the operand 'tensor<5x4xf32>', which has 2 [rms_norm_C1]}}
  %0:2 = gpuc.rms_norm %x dim -1 : (tensor<5x4xf32>) -> (tensor<5x4xf32>, tensor<5x4xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>) {
  // expected-error @below {{'gpuc.rms_norm' op cannot normalise 'tensor<?x4xf32>' over its dimensions from 0: one is ? [rms_norm_C2]}}
  %0:2 = gpuc.rms_norm %x dim 0 : (tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<f32>)
  return
}

// -----

func.func @f(%x: tensor<5x4xf32>, %w: tensor<5x4xf32>) {
  // expected-error @below {{'gpuc.rms_norm' op weight must be 'tensor<4xf32>', but is 'tensor<5x4xf32>' [rms_norm_C3]}}
  %0:2 = gpuc.rms_norm %x dim 1 weight %w : (tensor<5x4xf32>, tensor<5x4xf32>) -> (tensor<5x4xf32>, tensor<5xf32>)
  return
}

// -----

func.func @f(%x: tensor<5x4xf32>) {
  // expected-error @below {{'gpuc.rms_norm' op eps must not be negative, but is -1 [rms_norm_C4]}}
  %0:2 = gpuc.rms_norm %x dim 1 {eps = -1.0 : f64} : (tensor<5x4xf32>) -> (tensor<5x4xf32>, tensor<5xf32>)
  return
}

// -----

// Channels are dimension 1.
func.func @f(%x: tensor<5xf32>, %c: tensor<5xf32>) {
  // expected-error @below {{'gpuc.batch_norm' op operand must be batch by channels, but is 'tensor<5xf32>' [batch_norm_C1]}}
  %0:5 = gpuc.batch_norm %x running %c, %c : (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>)
  return
}

// -----

// A mean for each channel.
func.func @f(%x: tensor<?x3xf32>, %c: tensor<3xf32>, %d: tensor<4xf32>) {
  // expected-error @below {{'gpuc.batch_norm' op running_mean must be 'tensor<3xf32>', but is 'tensor<4xf32>' [batch_norm_C2]}}
  %0:5 = gpuc.batch_norm %x running %d, %c : (tensor<?x3xf32>, tensor<4xf32>, tensor<3xf32>) -> (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

// Running statistics are f32 where the operand is f16: a thousand small steps would be lost.
func.func @f(%x: tensor<?x3xf16>, %c: tensor<3xf32>, %d: tensor<3xf16>) {
  // expected-error @below {{'gpuc.batch_norm' op running_variance must be 'tensor<3xf32>', but is 'tensor<3xf16>' [batch_norm_C2]}}
  %0:5 = gpuc.batch_norm %x running %c, %d : (tensor<?x3xf16>, tensor<3xf32>, tensor<3xf16>) -> (tensor<?x3xf16>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

// A weight for each channel.
func.func @f(%x: tensor<?x3x7xf32>, %c: tensor<3xf32>, %w: tensor<7xf32>) {
  // expected-error @below {{'gpuc.batch_norm' op weight must be 'tensor<3xf32>', but is 'tensor<7xf32>' [batch_norm_C3]}}
  %0:5 = gpuc.batch_norm %x running %c, %c weight %w : (tensor<?x3x7xf32>, tensor<3xf32>, tensor<3xf32>, tensor<7xf32>) -> (tensor<?x3x7xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x3xf32>, %c: tensor<3xf32>) {
  // expected-error @below {{'gpuc.batch_norm' op momentum must lie in [0, 1], but is 1.5 [batch_norm_C4]}}
  %0:5 = gpuc.batch_norm %x running %c, %c {momentum = 1.5 : f64} : (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

// How many rows count is one number.
func.func @f(%x: tensor<?x3xf32>, %c: tensor<3xf32>, %rows: tensor<3xi32>) {
  // expected-error @below {{'gpuc.batch_norm' op rows must be 'tensor<i32>', but is 'tensor<3xi32>' [batch_norm_C6]}}
  %0:5 = gpuc.batch_norm %x running %c, %c rows %rows : (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xi32>) -> (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

// No image has pixels.
func.func @f(%x: tensor<?x3x0xf32>, %c: tensor<3xf32>) {
  // expected-error @below {{'gpuc.batch_norm' op operand 'tensor<?x3x0xf32>' has no elements in a channel [batch_norm_C5]}}
  %0:5 = gpuc.batch_norm %x running %c, %c : (tensor<?x3x0xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<?x3x0xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}
