// In the generic text of an op with optional operands stands how many there are of each, and of those that it cannot do without there is
// one. Where all operands are of one type nothing else would tell them apart.
// RUN: gpuc-opt %s --split-input-file --verify-diagnostics

func.func @cross_entropy(%x: tensor<4x8xf32>, %labels: tensor<4xi32>) {
  // expected-error @below {{'gpuc.cross_entropy' op requires one of operand 0, and operandSegmentSizes say 0}}
  %sum, %count = "gpuc.cross_entropy"(%labels, %x) <{operandSegmentSizes = array<i32: 0, 1, 1, 0>}>
      : (tensor<4xi32>, tensor<4x8xf32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @nll(%x: tensor<4x8xf32>, %labels: tensor<4xi32>) {
  // expected-error @below {{'gpuc.nll' op requires one of operand 1, and operandSegmentSizes say 0}}
  %sum, %count = "gpuc.nll"(%x, %x) <{operandSegmentSizes = array<i32: 1, 0, 1, 0>}>
      : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @bce_with_logits(%x: tensor<8xf32>) {
  // expected-error @below {{'gpuc.bce_with_logits' op requires one of operand 0, and operandSegmentSizes say 2}}
  %sum, %count = "gpuc.bce_with_logits"(%x, %x) <{operandSegmentSizes = array<i32: 2, 0, 0, 0>}>
      : (tensor<8xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @target_that_would_be_a_weight(%x: tensor<8xf32>) {
  // expected-error @below {{'gpuc.bce_with_logits' op requires one of operand 1, and operandSegmentSizes say 0}}
  %sum, %count = "gpuc.bce_with_logits"(%x, %x) <{operandSegmentSizes = array<i32: 1, 0, 1, 0>}>
      : (tensor<8xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @layer_norm(%x: tensor<8xf32>) {
  // expected-error @below {{'gpuc.layer_norm' op requires one of operand 0, and operandSegmentSizes say 0}}
  %y:3 = "gpuc.layer_norm"(%x, %x) <{dim = 0 : i64, operandSegmentSizes = array<i32: 0, 1, 1>}>
      : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @batch_norm(%x: tensor<4x8xf32>, %s: tensor<8xf32>) {
  // expected-error @below {{'gpuc.batch_norm' op requires one of operand 2, and operandSegmentSizes say 0}}
  %y:5 = "gpuc.batch_norm"(%x, %s, %s) <{operandSegmentSizes = array<i32: 1, 1, 0, 1, 0, 0>}>
      : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
      -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @rmsprop_update(%w: tensor<8xf32>, %lr: tensor<f32>) {
  // expected-error @below {{'gpuc.rmsprop_update' op requires one of operand 5, and operandSegmentSizes say 0}}
  %updated:2 = "gpuc.rmsprop_update"(%w, %w, %w, %lr) <{alpha = 0.9 : f64, eps = 1.0 : f64, momentum = 0.0 : f64,
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 0, 0>, weight_decay = 0.0 : f64}>
      : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @linear_cross_entropy(%h: tensor<4x8xf32>, %w: tensor<5x8xf32>, %labels: tensor<4xi32>) {
  // expected-error @below {{'gpuc.linear_cross_entropy' op requires one of operand 1, and operandSegmentSizes say 0}}
  %sum, %count = "gpuc.linear_cross_entropy"(%h, %w, %labels) <{operandSegmentSizes = array<i32: 1, 0, 1, 1, 0, 0>}>
      : (tensor<4x8xf32>, tensor<5x8xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @linear_cross_entropy_gradient(%h: tensor<4x8xf32>, %w: tensor<5x8xf32>, %labels: tensor<4xi32>) {
  // expected-error @below {{'gpuc.linear_cross_entropy_gradient' op requires one of operand 0, and operandSegmentSizes say 0}}
  %all:4 = "gpuc.linear_cross_entropy_gradient"(%h, %w, %labels) <{operandSegmentSizes = array<i32: 0, 1, 1, 1, 0, 0>}>
      : (tensor<4x8xf32>, tensor<5x8xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>, tensor<5x8xf32>)
  return
}

// -----

func.func @linear_accuracy(%h: tensor<4x8xf32>, %w: tensor<5x8xf32>) {
  // expected-error @below {{'gpuc.linear_accuracy' op requires one of operand 3, and operandSegmentSizes say 0}}
  %sum, %count = "gpuc.linear_accuracy"(%h, %w, %h) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}>
      : (tensor<4x8xf32>, tensor<5x8xf32>, tensor<4x8xf32>) -> (tensor<f32>, tensor<f32>)
  return
}
