// What no op of the dialect may be without: buffers that are named before they are used, types that a buffer can
// hold, numbers that one can count with.
// RUN: gpuc-opt %s --split-input-file --verify-diagnostics

plan.program @index {
  %x = plan.buffer "x" : tensor<4xf32> activation
  // expected-error @below {{is of 'index', which plans know no products of: elements are f64, f32, f16 or bf16}}
  plan.attention %x, %x, %x -> %x, %x : index batch 1 heads 1 groups 1 queries 1 keys 1 width 4 value_width 4 scale 1.0 strides [4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4]
}

// -----

plan.program @tuple {
  %x = plan.buffer "x" : tensor<4xf32> activation
  // expected-error @below {{is of 'tuple<>', which plans know no products of}}
  plan.conv forward %x, %x -> %x : tuple<> batch 1 input [1, 1, 1] filter [1, 1, 1, 1] output [1, 1, 1] strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] groups 1
}

// -----

plan.program @integer {
  %x = plan.buffer "x" : tensor<4xf32> activation
  // expected-error @below {{is of 'i7', which plans know no products of}}
  plan.matmul %x, %x -> %x : i7 batch 1 m 2 n 2 k 2
}

// -----

plan.program @elements {
  // expected-error @below {{is of 'tensor<4xindex>', which plans know no buffers of}}
  %x = plan.buffer "x" : tensor<4xindex> activation
}

// -----

plan.program @dynamic {
  // expected-error @below {{is of 'tensor<?xf32>', which plans know no buffers of}}
  %x = plan.input "x" : tensor<?xf32>
}

// -----

plan.program @huge {
  // expected-error @below {{is of 'tensor<4611686018427387904x4611686018427387904xf32>', which plans know no buffers of: tensors are static, of known elements and of 2^48 bytes at most}}
  %x = plan.buffer "x" : tensor<4611686018427387904x4611686018427387904xf32> activation
}

// -----

// expected-error @below {{has 4294967296 slots; there are from 1 to 64}}
plan.arena 64 bytes, variables at 0x0, workspace at 0x0, inputs at 0x0, slots 4294967296, lower_bound 64

// -----

// expected-error @below {{slots is 4611686018427387904: it must be from 0 to 2^48}}
plan.arena 64 bytes, variables at 0x0, workspace at 0x0, inputs at 0x0, slots 4611686018427387904, lower_bound 64

// -----

// expected-error @below {{bytes is -1: it must be from 0 to 2^48}}
plan.arena -1 bytes, variables at 0x0, workspace at 0x0, inputs at 0x0, slots 1, lower_bound 64

// -----

plan.program @offset {
  %x = plan.buffer "x" : tensor<4xf32> activation
  // expected-error @below {{offset is 9223372036854775807: it must be from 0 to 2^48}}
  %y = plan.view %x[9223372036854775807] : tensor<4xf32>
}

// -----

plan.program @stride {
  %x = plan.buffer "x" : tensor<4xf32> activation
  // expected-error @below {{strides has -9223372036854775808: beyond 2^48 nothing is counted}}
  %y = plan.view %x[0] strides [-9223372036854775808] : tensor<4xf32>
}

// -----

plan.program @products {
  %x = plan.buffer "x" : tensor<4xf32> activation
  // expected-error @below {{bias has 16 bytes, 281474976710656 elements take 1125899906842624}}
  plan.matmul %x, %x -> %x bias %x : f32 batch 281474976710656 m 281474976710656 n 281474976710656 k 2
}

// -----

// A view of itself leads nowhere.
plan.program @circle {
  // expected-error @below {{reads or writes a value that no op before it names as buffer}}
  %y = plan.view %y[0] : tensor<4xf32>
}

// -----

func.func @argument(%x: !plan.buffer) {
  // expected-error @below {{reads or writes a value that no op before it names as buffer}}
  plan.output "x" %x
  return
}

// -----

plan.program @missing {
  // expected-error @below {{of @nothing, which is neither a plan.variable nor a plan.constant}}
  %x = plan.use @nothing : tensor<4xf32> parameter
  %y = plan.view %x[0] : tensor<4xf32>
}

// -----

plan.variable @m : tensor<4xf32> "optimizer" init zeros
plan.program @unlike {
  // expected-error @below {{says 'tensor<8xf32>' parameter, but @m is 'tensor<4xf32>' optimizer}}
  %x = plan.use @m : tensor<8xf32> parameter
}

// -----

plan.program @behind {
  %x = plan.use @c : tensor<4xi32> constant
  %y = plan.view %x[0] : tensor<4xf32>
}
// expected-error @below {{is of 'vector<4xi32>', which no buffer can hold}}
plan.constant @c = dense<1> : vector<4xi32>

// -----

// expected-error @below {{expects a non-empty block}}
"plan.kernel"() <{sym_name = "k"}> ({
^bb0(%a: tensor<4xf32>):
}) : () -> ()

// -----

// expected-error @below {{reads 'index', which no buffer can hold}}
plan.kernel @k (%a: index) {
  gpuc.yield
}

// -----

plan.program @fill {
  %x = plan.buffer "x" : tensor<4xf32> activation
  // expected-error @below {{writes 1 : i64 into a buffer of 'f32'}}
  plan.fill %x with 1 : i64
}
