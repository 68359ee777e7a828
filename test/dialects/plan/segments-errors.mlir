// In the generic text of a command with optional operands stands how many there are of each, and of those that it cannot do without there
// is one. The others may be missing: what is left out here is what each case is about.
// RUN: gpuc-opt %s --split-input-file --verify-diagnostics

plan.program @no_second_factor {
  %x = plan.buffer "x" : tensor<16xf32> activation
  // expected-error @below {{'plan.matmul' op requires one of b, and operandSegmentSizes say 0}}
  "plan.matmul"(%x, %x, %x) <{batch = 1 : i64, element = f32, k = 4 : i64, m = 4 : i64, n = 4 : i64,
      operandSegmentSizes = array<i32: 1, 0, 1, 1, 0, 0, 0, 0, 0>}> : (!plan.buffer, !plan.buffer, !plan.buffer) -> ()
}

// -----

plan.program @two_results {
  %x = plan.buffer "x" : tensor<16xf32> activation
  // expected-error @below {{'plan.matmul' op operand group starting at #2 requires 0 or 1 element, but found 2}}
  "plan.matmul"(%x, %x, %x, %x) <{batch = 1 : i64, element = f32, k = 4 : i64, m = 4 : i64, n = 4 : i64,
      operandSegmentSizes = array<i32: 1, 1, 2, 0, 0, 0, 0, 0, 0>}> : (!plan.buffer, !plan.buffer, !plan.buffer, !plan.buffer) -> ()
}

// -----

plan.program @nothing_at_all {
  %x = plan.buffer "x" : tensor<16xf32> activation
  // expected-error @below {{'plan.conv' op requires one of a, and operandSegmentSizes say 0}}
  "plan.conv"(%x, %x, %x) <{batch = 1 : i64, dilation = array<i64: 1, 1>, element = f32, filter = array<i64: 1, 1, 1, 1>,
      groups = 1 : i64, input = array<i64: 1, 4, 4>, kind = #plan<conv_kind forward>, operandSegmentSizes = array<i32: 0, 0, 0, 1, 1, 1, 0, 0, 0>,
      output = array<i64: 1, 4, 4>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>}>
      : (!plan.buffer, !plan.buffer, !plan.buffer) -> ()
}

// -----

plan.program @no_logarithms {
  %x = plan.buffer "x" : tensor<16xf32> activation
  // expected-error @below {{'plan.attention' op requires one of log_sum_exp, and operandSegmentSizes say 0}}
  "plan.attention"(%x, %x, %x, %x, %x) <{batch = 1 : i64, element = f32, groups = 1 : i64, heads = 1 : i64, keys = 4 : i64,
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 0, 0>, queries = 4 : i64, scale = 1.0 : f64,
      strides = array<i64: 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4>, value_width = 4 : i64, width = 4 : i64}>
      : (!plan.buffer, !plan.buffer, !plan.buffer, !plan.buffer, !plan.buffer) -> ()
}

// -----

plan.program @no_cotangent {
  %x = plan.buffer "x" : tensor<16xf32> activation
  // expected-error @below {{'plan.attention_gradient' op requires one of cotangent, and operandSegmentSizes say 0}}
  "plan.attention_gradient"(%x, %x, %x, %x, %x, %x, %x, %x, %x) <{batch = 1 : i64, element = f32, groups = 1 : i64, heads = 1 : i64,
      keys = 4 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0>, queries = 4 : i64, scale = 1.0 : f64,
      strides = array<i64: 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4>, value_width = 4 : i64, width = 4 : i64}>
      : (!plan.buffer, !plan.buffer, !plan.buffer, !plan.buffer, !plan.buffer, !plan.buffer, !plan.buffer, !plan.buffer, !plan.buffer) -> ()
}
