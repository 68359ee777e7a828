// RUN: gpuc-opt %s -split-input-file --gpuc-to-plan | FileCheck %s

// An update is computed where the variable lies: the launch reads and writes the same buffer, nothing is copied. A
// reshape is no command, but another name for the buffer behind it.

// CHECK-LABEL: module @update
// CHECK-SAME: plan.target = #plan.target<host, "">
module @update {
  // CHECK: plan.variable @w : tensor<4xf32> "parameter" init zeros
  gpuc.variable @w : tensor<4xf32> init zeros

  // CHECK: plan.kernel @step (%[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>)
  // CHECK: gpuc.sub %[[A]], %[[B]]
  // CHECK: plan.program @train_step
  // CHECK: %[[X:.*]] = plan.input "x" : tensor<2x2xf32> range 7 ignored -1
  // CHECK: %[[ROWS:.*]] = plan.input "rows" : tensor<i32> rows
  // CHECK: %[[W:.*]] = plan.use @w : tensor<4xf32> parameter
  // CHECK: plan.upload %[[X]]
  // CHECK: plan.upload %[[ROWS]]
  // CHECK: plan.launch @step(%[[W]], %[[X]]) -> (%[[W]])
  // CHECK-NEXT: plan.output "x_again" %[[X]]
  func.func @train_step(%x: tensor<2x2xf32> {gpuc.name = "x", gpuc.range = 7 : i64, gpuc.ignored = -1 : i64},
                        %rows: tensor<i32> {gpuc.name = "rows", gpuc.role = "rows"})
      -> (tensor<2x2xf32> {gpuc.name = "x_again"}) {
    %w = gpuc.read @w : tensor<4xf32>
    %flat = gpuc.reshape %x : tensor<2x2xf32> to tensor<4xf32>
    %new = gpuc.fused "step" (%w, %flat) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
      %difference = gpuc.sub %a, %b : tensor<4xf32>
      gpuc.yield %difference : tensor<4xf32>
    }
    gpuc.assign @w, %new : tensor<4xf32>
    return %x : tensor<2x2xf32>
  }
}

// -----

// A result has the shape of its buffer, so that one that is reshaped is copied into a buffer of its own.

// CHECK-LABEL: module @reshaped_result
module @reshaped_result {
  // CHECK: plan.program @predict
  // CHECK: %[[X:.*]] = plan.input "x" : tensor<4xf32>
  // CHECK: %[[Y:.*]] = plan.buffer "reshape.copy" : tensor<2x2xf32>
  // CHECK: plan.launch @reshape.copy(%[[X]]) -> (%[[Y]])
  // CHECK: plan.output "y" %[[Y]]
  func.func @predict(%x: tensor<4xf32> {gpuc.name = "x"}) -> (tensor<2x2xf32> {gpuc.name = "y"}) {
    %y = gpuc.reshape %x : tensor<4xf32> to tensor<2x2xf32>
    return %y : tensor<2x2xf32>
  }
}

// -----

// Whoever reads the old value goes before the update, wherever it stood.

// CHECK-LABEL: module @reader_behind_update
module @reader_behind_update {
  gpuc.variable @w : tensor<4xf32> init zeros
  // CHECK: %[[W:.*]] = plan.use @w : tensor<4xf32> parameter
  // CHECK: plan.launch @look(%[[W]]) -> (%[[Y:.*]])
  // CHECK-NEXT: plan.launch @step(%[[W]]) -> (%[[W]])
  // CHECK-NEXT: plan.output "result0" %[[Y]]
  func.func @train_step() -> tensor<4xf32> {
    %w = gpuc.read @w : tensor<4xf32>
    %new = gpuc.fused "step" (%w) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>):
      %sum = gpuc.add %a, %a : tensor<4xf32>
      gpuc.yield %sum : tensor<4xf32>
    }
    gpuc.assign @w, %new : tensor<4xf32>
    %y = gpuc.fused "look" (%w) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>):
      %negative = gpuc.neg %a : tensor<4xf32>
      gpuc.yield %negative : tensor<4xf32>
    }
    return %y : tensor<4xf32>
  }
}

// -----

// Old and new value are needed at once: no order helps, so the new one is copied in when all is done.

// CHECK-LABEL: module @old_and_new
module @old_and_new {
  gpuc.variable @w : tensor<4xf32> init zeros
  // CHECK: %[[W:.*]] = plan.use @w : tensor<4xf32> parameter
  // CHECK: plan.launch @step(%[[W]]) -> (%[[NEW:.*]])
  // CHECK-NEXT: plan.launch @difference(%[[W]], %[[NEW]]) -> (%[[D:.*]])
  // CHECK-NEXT: plan.launch @w.copy(%[[NEW]]) -> (%[[W]])
  func.func @train_step() -> tensor<4xf32> {
    %w = gpuc.read @w : tensor<4xf32>
    %new = gpuc.fused "step" (%w) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>):
      %sum = gpuc.add %a, %a : tensor<4xf32>
      gpuc.yield %sum : tensor<4xf32>
    }
    gpuc.assign @w, %new : tensor<4xf32>
    %d = gpuc.fused "difference" (%w, %new) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
      %difference = gpuc.sub %a, %b : tensor<4xf32>
      gpuc.yield %difference : tensor<4xf32>
    }
    return %d : tensor<4xf32>
  }
}

// -----

// A kernel that reads the variable backwards may not write it meanwhile.

// CHECK-LABEL: module @not_pointwise
module @not_pointwise {
  gpuc.variable @w : tensor<4xf32> init zeros
  // CHECK: %[[W:.*]] = plan.use @w : tensor<4xf32> parameter
  // CHECK: plan.launch @turn(%[[W]]) -> (%[[NEW:.*]])
  // CHECK-NEXT: plan.launch @w.copy(%[[NEW]]) -> (%[[W]])
  func.func @train_step() {
    %w = gpuc.read @w : tensor<4xf32>
    %new = gpuc.fused "turn" (%w) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>):
      %turned = gpuc.reverse %a dims [0] : tensor<4xf32>
      gpuc.yield %turned : tensor<4xf32>
    }
    gpuc.assign @w, %new : tensor<4xf32>
    return
  }
}

// -----

// A result that is an assigned variable's old value is copied out before the update.

// CHECK-LABEL: module @returns_old
module @returns_old {
  gpuc.variable @w : tensor<4xf32> init zeros
  // CHECK: %[[W:.*]] = plan.use @w : tensor<4xf32> parameter
  // CHECK: plan.launch @w.copy(%[[W]]) -> (%[[OLD:.*]])
  // CHECK-NEXT: plan.launch @step(%[[W]]) -> (%[[W]])
  // CHECK-NEXT: plan.output "old" %[[OLD]]
  func.func @train_step() -> (tensor<4xf32> {gpuc.name = "old"}) {
    %w = gpuc.read @w : tensor<4xf32>
    %new = gpuc.fused "step" (%w) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>):
      %sum = gpuc.add %a, %a : tensor<4xf32>
      gpuc.yield %sum : tensor<4xf32>
    }
    gpuc.assign @w, %new : tensor<4xf32>
    return %w : tensor<4xf32>
  }
}

// -----

// One rhs for all of lhs' matrices makes one product of all their rows: 2 · 3 = 6 of them.

// CHECK-LABEL: module @shared_rhs
module @shared_rhs {
  // CHECK: plan.matmul %{{.*}}, transpose %{{.*}} -> %{{.*}} : f32 batch 1 m 6 n 5 k 4
  func.func @predict(%x: tensor<2x3x4xf32> {gpuc.name = "x"}, %w: tensor<5x4xf32> {gpuc.name = "w"}) -> tensor<2x3x5xf32> {
    %0 = gpuc.matmul %x, transpose %w : (tensor<2x3x4xf32>, tensor<5x4xf32>) -> tensor<2x3x5xf32>
    return %0 : tensor<2x3x5xf32>
  }
}

// -----

// Matmuls keep their transposes and extents; a value that updates a parameter of its shape is a gradient.

// CHECK-LABEL: module @matmul
module @matmul {
  gpuc.variable @w : tensor<8x3xf32> init zeros
  // CHECK: %[[X:.*]] = plan.input "x" : tensor<5x3xf32>
  // CHECK: %[[G:.*]] = plan.buffer "fc.matmul" : tensor<8x3xf32> gradient
  // CHECK: plan.matmul transpose %{{.*}}, %[[X]] -> %[[G]] : f32 batch 1 m 8 n 3 k 5
  func.func @train_step(%d: tensor<5x8xf32> {gpuc.name = "d"}, %x: tensor<5x3xf32> {gpuc.name = "x"}) {
    %w = gpuc.read @w : tensor<8x3xf32>
    %g = gpuc.matmul transpose %d, %x : (tensor<5x8xf32>, tensor<5x3xf32>) -> tensor<8x3xf32> loc("fc")
    %new = gpuc.fused "step" (%w, %g) : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x3xf32> {
    ^bb0(%a: tensor<8x3xf32>, %b: tensor<8x3xf32>):
      %difference = gpuc.sub %a, %b : tensor<8x3xf32>
      gpuc.yield %difference : tensor<8x3xf32>
    }
    gpuc.assign @w, %new : tensor<8x3xf32>
    return
  }
}

// -----

// A convolution is a library's, with all its numbers. Only the filter's gradient needs a workspace on the host: 27
// elements for each of the 4 images.

// CHECK-LABEL: module @convolutions
module @convolutions {
  // CHECK: plan.program @predict
  // CHECK: plan.buffer "conv1.conv.workspace" : tensor<432xi8>  workspace
  // CHECK: %[[DW:.*]] = plan.buffer "conv1.conv_2" : tensor<3x1x3x3xf32>
  // CHECK: plan.conv forward %[[X:.*]], %[[W:.*]] -> %[[Y:.*]] : f32 batch 4 input [1, 7, 8] filter [3, 1, 3, 3] output [3, 4, 8] strides [2, 1] padding [1, 1, 1, 1] dilation [1, 1] groups 1
  // CHECK: plan.conv input_gradient %[[Y]], %[[W]] -> %[[DX:.*]] : f32 batch 4 input [1, 7, 8] filter [3, 1, 3, 3] output [3, 4, 8]
  // CHECK: plan.conv filter_gradient %[[Y]], %[[X]] -> %[[DW]] workspace %{{.*}} : f32
  func.func @predict(%x: tensor<4x1x7x8xf32> {gpuc.name = "x"}, %w: tensor<3x1x3x3xf32> {gpuc.name = "w"})
      -> (tensor<4x1x7x8xf32> {gpuc.name = "dx"}, tensor<3x1x3x3xf32> {gpuc.name = "dw"}) {
    %y = gpuc.conv2d %x, %w strides [2, 1] padding [1, 1, 1, 1] : (tensor<4x1x7x8xf32>, tensor<3x1x3x3xf32>) -> tensor<4x3x4x8xf32> loc("conv1")
    %dx = gpuc.conv2d_input_gradient %y, %w strides [2, 1] padding [1, 1, 1, 1] : (tensor<4x3x4x8xf32>, tensor<3x1x3x3xf32>) -> tensor<4x1x7x8xf32> loc("conv1")
    %dw = gpuc.conv2d_filter_gradient %y, %x strides [2, 1] padding [1, 1, 1, 1] : (tensor<4x3x4x8xf32>, tensor<4x1x7x8xf32>) -> tensor<3x1x3x3xf32> loc("conv1")
    return %dx, %dw : tensor<4x1x7x8xf32>, tensor<3x1x3x3xf32>
  }
}

// -----

// Where a picture is one window the host multiplies images and filters as they lie: 2 · 3 · 4 elements are the columns
// of x. What follows goes with the product. With padding, or in groups, it is a convolution.

// CHECK-LABEL: module @one_window
module @one_window {
  // CHECK: plan.matmul %[[X:.*]], transpose %[[W:.*]] -> %[[Y:.*]] bias %{{.*}} relu : f32 batch 1 m 5 n 7 k 24
  // CHECK: plan.matmul %[[Y]], %[[W]] -> %{{.*}} mask %[[X]] : f32 batch 1 m 5 n 24 k 7
  // CHECK: plan.matmul transpose %[[Y]], %[[X]] -> %{{.*}} : f32 batch 1 m 7 n 24 k 5
  // CHECK: plan.conv forward %[[X]], %{{.*}} -> %{{.*}} : {{.*}} padding [1, 0, 0, 0]
  // CHECK: plan.conv forward %[[X]], %{{.*}} : {{.*}} groups 2
  func.func @predict(%x: tensor<5x2x3x4xf32> {gpuc.name = "x"}, %w: tensor<7x2x3x4xf32> {gpuc.name = "w"}, %b: tensor<7xf32> {gpuc.name = "b"},
                     %v: tensor<6x2x4x4xf32> {gpuc.name = "v"}, %u: tensor<6x1x3x4xf32> {gpuc.name = "u"})
      -> (tensor<5x2x3x4xf32> {gpuc.name = "dx"}, tensor<7x2x3x4xf32> {gpuc.name = "dw"}, tensor<5x6x1x1xf32> {gpuc.name = "p"}, tensor<5x6x1x1xf32> {gpuc.name = "g"}) {
    %y = gpuc.fused "conv" (%x, %w, %b) : (tensor<5x2x3x4xf32>, tensor<7x2x3x4xf32>, tensor<7xf32>) -> tensor<5x7x1x1xf32> {
    ^bb0(%a: tensor<5x2x3x4xf32>, %f: tensor<7x2x3x4xf32>, %bias: tensor<7xf32>):
      %c = gpuc.conv2d %a, %f strides [2, 2] : (tensor<5x2x3x4xf32>, tensor<7x2x3x4xf32>) -> tensor<5x7x1x1xf32>
      %b2 = gpuc.broadcast %bias dims [1] : tensor<7xf32> to tensor<5x7x1x1xf32>
      %s = gpuc.add %c, %b2 : tensor<5x7x1x1xf32>
      %r = gpuc.relu %s : tensor<5x7x1x1xf32>
      gpuc.yield %r : tensor<5x7x1x1xf32>
    }
    %dx = gpuc.fused "conv.input_gradient" (%y, %w, %x) : (tensor<5x7x1x1xf32>, tensor<7x2x3x4xf32>, tensor<5x2x3x4xf32>) -> tensor<5x2x3x4xf32> {
    ^bb0(%ct: tensor<5x7x1x1xf32>, %f: tensor<7x2x3x4xf32>, %z: tensor<5x2x3x4xf32>):
      %zero = gpuc.constant dense<0.0> : tensor<5x2x3x4xf32>
      %d = gpuc.conv2d_input_gradient %ct, %f strides [2, 2] : (tensor<5x7x1x1xf32>, tensor<7x2x3x4xf32>) -> tensor<5x2x3x4xf32>
      %m = gpuc.compare le %z, %zero : tensor<5x2x3x4xf32>
      %t = gpuc.select %m, %zero, %d : tensor<5x2x3x4xi1>, tensor<5x2x3x4xf32>
      gpuc.yield %t : tensor<5x2x3x4xf32>
    }
    %dw = gpuc.conv2d_filter_gradient %y, %x strides [2, 2] : (tensor<5x7x1x1xf32>, tensor<5x2x3x4xf32>) -> tensor<7x2x3x4xf32>
    %p = gpuc.conv2d %x, %v padding [1, 0, 0, 0] : (tensor<5x2x3x4xf32>, tensor<6x2x4x4xf32>) -> tensor<5x6x1x1xf32>
    %g = gpuc.conv2d %x, %u groups 2 : (tensor<5x2x3x4xf32>, tensor<6x1x3x4xf32>) -> tensor<5x6x1x1xf32>
    return %dx, %dw, %p, %g : tensor<5x2x3x4xf32>, tensor<7x2x3x4xf32>, tensor<5x6x1x1xf32>, tensor<5x6x1x1xf32>
  }
}

// -----

// Of 16-bit floats the filter is in the workspace as f32, 27 elements up to the next cache line: 32 · 4 bytes; so is the
// input's gradient, (32 + 4 · 56) · 4 bytes; and the parts of the filter's gradient are those of f32.

// CHECK-LABEL: module @half_convolutions
module @half_convolutions {
  // CHECK-DAG: %[[FORWARD:.*]] = plan.buffer "conv1.conv.workspace" : tensor<128xi8>  workspace
  // CHECK-DAG: %[[INPUT:.*]] = plan.buffer "conv1.conv.workspace_{{.*}}" : tensor<1024xi8>  workspace
  // CHECK-DAG: %[[FILTER:.*]] = plan.buffer "conv1.conv.workspace_{{.*}}" : tensor<432xi8>  workspace
  // CHECK: plan.conv forward %{{.*}}, %{{.*}} -> %{{.*}} workspace %[[FORWARD]] : f16
  // CHECK: plan.conv input_gradient %{{.*}}, %{{.*}} -> %{{.*}} workspace %[[INPUT]] : f16
  // CHECK: plan.conv filter_gradient %{{.*}}, %{{.*}} -> %{{.*}} workspace %[[FILTER]] : f16
  func.func @predict(%x: tensor<4x1x7x8xf16> {gpuc.name = "x"}, %w: tensor<3x1x3x3xf16> {gpuc.name = "w"})
      -> (tensor<4x1x7x8xf16> {gpuc.name = "dx"}, tensor<3x1x3x3xf16> {gpuc.name = "dw"}) {
    %y = gpuc.conv2d %x, %w strides [2, 1] padding [1, 1, 1, 1] : (tensor<4x1x7x8xf16>, tensor<3x1x3x3xf16>) -> tensor<4x3x4x8xf16> loc("conv1")
    %dx = gpuc.conv2d_input_gradient %y, %w strides [2, 1] padding [1, 1, 1, 1] : (tensor<4x3x4x8xf16>, tensor<3x1x3x3xf16>) -> tensor<4x1x7x8xf16> loc("conv1")
    %dw = gpuc.conv2d_filter_gradient %y, %x strides [2, 1] padding [1, 1, 1, 1] : (tensor<4x3x4x8xf16>, tensor<4x1x7x8xf16>) -> tensor<3x1x3x3xf16> loc("conv1")
    return %dx, %dw : tensor<4x1x7x8xf16>, tensor<3x1x3x3xf16>
  }
}

// -----

// Heads that were cut out of one projection are read where they lie, and the result is written in the order in which
// it goes on: no slice, transpose or reshape is left. 2 batch items, 3 queries of 2 heads of 4, three times: a row of
// the projection has 24 elements. The key's first element is the 8th, byte 32, the value's byte 64; from the first
// element of a part to its last there are (2 - 1) · 72 + (2 - 1) · 4 + (3 - 1) · 24 + 4 = 128.

// CHECK-LABEL: module @projected
module @projected {
  // CHECK: plan.program @predict
  // CHECK: %[[QKV:.*]] = plan.input "qkv"
  // CHECK: %[[Q:.*]] = plan.view %[[QKV]][0] : tensor<128xf32>
  // CHECK: %[[K:.*]] = plan.view %[[QKV]][32] : tensor<128xf32>
  // CHECK: %[[V:.*]] = plan.view %[[QKV]][64] : tensor<128xf32>
  // CHECK: %[[Y:.*]] = plan.buffer "attn.attention" : tensor<2x3x2x4xf32>
  // CHECK: %[[LOG:.*]] = plan.buffer "attn.attention.log_sum_exp" : tensor<2x2x3xf32>
  // CHECK-NEXT: plan.upload %[[QKV]]
  // CHECK-NEXT: plan.attention %[[Q]], %[[K]], %[[V]] -> %[[Y]], %[[LOG]] : f32 batch 2 heads 2 groups 2 queries 3 keys 3 width 4 value_width 4 scale 5.000000e-01 strides [72, 4, 24, 72, 4, 24, 72, 4, 24, 24, 4, 8] causal
  // CHECK-NEXT: plan.output "y" %[[Y]]
  func.func @predict(%qkv: tensor<2x3x24xf32> {gpuc.name = "qkv"}) -> (tensor<2x3x2x4xf32> {gpuc.name = "y"}) {
    %0 = gpuc.slice %qkv starts [0, 0, 0] limits [-1, -1, 8] strides [1, 1, 1] : (tensor<2x3x24xf32>) -> tensor<2x3x8xf32>
    %1 = gpuc.reshape %0 : tensor<2x3x8xf32> to tensor<2x3x2x4xf32>
    %q = gpuc.transpose %1 permutation [0, 2, 1, 3] : (tensor<2x3x2x4xf32>) -> tensor<2x2x3x4xf32>
    %2 = gpuc.slice %qkv starts [0, 0, 8] limits [-1, -1, 16] strides [1, 1, 1] : (tensor<2x3x24xf32>) -> tensor<2x3x8xf32>
    %3 = gpuc.reshape %2 : tensor<2x3x8xf32> to tensor<2x3x2x4xf32>
    %k = gpuc.transpose %3 permutation [0, 2, 1, 3] : (tensor<2x3x2x4xf32>) -> tensor<2x2x3x4xf32>
    %4 = gpuc.slice %qkv starts [0, 0, 16] limits [-1, -1, 24] strides [1, 1, 1] : (tensor<2x3x24xf32>) -> tensor<2x3x8xf32>
    %5 = gpuc.reshape %4 : tensor<2x3x8xf32> to tensor<2x3x2x4xf32>
    %v = gpuc.transpose %5 permutation [0, 2, 1, 3] : (tensor<2x3x2x4xf32>) -> tensor<2x2x3x4xf32>
    %y, %log = gpuc.attention %q, %k, %v causal : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> (tensor<2x2x3x4xf32>, tensor<2x2x3xf32>) loc("attn")
    %out = gpuc.transpose %y permutation [0, 2, 1, 3] : (tensor<2x2x3x4xf32>) -> tensor<2x3x2x4xf32>
    return %out : tensor<2x3x2x4xf32>
  }
}

// -----

// Dropout reads the counters, before the step's end overwrites one of them. The mask is the same for all heads. Its
// cotangent is not computed, since nobody reads it. 2 x 2 tiles are too few: 80 keys are two blocks, and so two parts
// of the query's cotangent, 2 · 2 · 2 · 3 · 4 elements.

// CHECK-LABEL: module @dropped
module @dropped {
  // CHECK: plan.program @train_step
  // CHECK: %[[STEP:.*]] = plan.use @step
  // CHECK: %[[SEED:.*]] = plan.use @seed
  // CHECK: plan.buffer "attention.workspace" : tensor<384xi8>  workspace
  // CHECK: plan.attention_gradient %{{.*}} of %{{.*}}, %{{.*}} query %{{.*}} key %{{.*}} value %{{.*}} mask %{{.*}} strides [240, 0, 80, 1] dropout 1.000000e-01 id 7 of %[[SEED]], %[[STEP]] -> %{{[0-9]*}}, %{{[0-9]*}}, %{{[0-9]*}} workspace
  // CHECK: plan.launch @{{.*}}(%[[STEP]]) -> (%[[STEP]])
  gpuc.variable @seed kind counter : tensor<i64> init zeros
  gpuc.variable @step kind counter : tensor<i64> init zeros
  func.func @train_step(%ct: tensor<2x2x3x4xf32>, %y: tensor<2x2x3x4xf32>, %log: tensor<2x2x3xf32>, %q: tensor<2x2x3x4xf32>,
      %k: tensor<2x2x80x4xf32>, %mask: tensor<2x1x3x80xf32>) -> (tensor<2x2x3x4xf32>, tensor<2x2x80x4xf32>) {
    %now = gpuc.read @step : tensor<i64>
    %next = gpuc.fused "next"(%now) : (tensor<i64>) -> tensor<i64> {
    ^bb0(%0: tensor<i64>):
      %one = gpuc.constant 1 : tensor<i64>
      %1 = gpuc.add %0, %one : tensor<i64>
      gpuc.yield %1 : tensor<i64>
    }
    gpuc.assign @step, %next : tensor<i64>
    %dq, %dk, %dv, %dm = gpuc.attention_gradient %ct of %y, %log query %q key %k value %k mask %mask dropout 0.1 id 7
        : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3xf32>, tensor<2x2x3x4xf32>, tensor<2x2x80x4xf32>, tensor<2x2x80x4xf32>, tensor<2x1x3x80xf32>)
        -> (tensor<2x2x3x4xf32>, tensor<2x2x80x4xf32>, tensor<2x2x80x4xf32>, tensor<2x1x3x80xf32>)
    return %dq, %dk : tensor<2x2x3x4xf32>, tensor<2x2x80x4xf32>
  }
}

// -----

// The cotangents of one projection lie side by side: rows of 24 elements, of which each cotangent is 8.

// CHECK-LABEL: module @side_by_side
module @side_by_side {
  // CHECK: %[[ALL:.*]] = plan.buffer "attn.attention.query" : tensor<2x3x24xf32>
  // CHECK-DAG: %[[DQ:.*]] = plan.view %[[ALL]][0] : tensor<128xf32>
  // CHECK-DAG: %[[DK:.*]] = plan.view %[[ALL]][32] : tensor<128xf32>
  // CHECK-DAG: %[[DV:.*]] = plan.view %[[ALL]][64] : tensor<128xf32>
  // CHECK: plan.attention_gradient {{.*}} -> %[[DQ]], %[[DK]], %[[DV]] : {{.*}} strides [{{.*}}, 72, 4, 24, 72, 4, 24, 72, 4, 24]
  // CHECK-NEXT: plan.output "d" %[[ALL]]
  func.func @predict(%ct: tensor<2x2x3x4xf32> {gpuc.name = "ct"}, %y: tensor<2x2x3x4xf32> {gpuc.name = "y"},
      %log: tensor<2x2x3xf32> {gpuc.name = "log"}, %q: tensor<2x2x3x4xf32> {gpuc.name = "q"}) -> (tensor<2x3x24xf32> {gpuc.name = "d"}) {
    %dq, %dk, %dv = gpuc.attention_gradient %ct of %y, %log query %q key %q value %q
        : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
        -> (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) loc("attn")
    %0 = gpuc.transpose %dq permutation [0, 2, 1, 3] : (tensor<2x2x3x4xf32>) -> tensor<2x3x2x4xf32>
    %1 = gpuc.reshape %0 : tensor<2x3x2x4xf32> to tensor<2x3x8xf32>
    %2 = gpuc.transpose %dk permutation [0, 2, 1, 3] : (tensor<2x2x3x4xf32>) -> tensor<2x3x2x4xf32>
    %3 = gpuc.reshape %2 : tensor<2x3x2x4xf32> to tensor<2x3x8xf32>
    %4 = gpuc.transpose %dv permutation [0, 2, 1, 3] : (tensor<2x2x3x4xf32>) -> tensor<2x3x2x4xf32>
    %5 = gpuc.reshape %4 : tensor<2x3x2x4xf32> to tensor<2x3x8xf32>
    %6 = gpuc.concat %1, %3, %5 dim 2 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x24xf32>
    return %6 : tensor<2x3x24xf32>
  }
}

// -----

// What follows a product is a part of its command: a bias that is a part of a vector, relu.

// CHECK-LABEL: module @epilogue
module @epilogue {
  // CHECK: %[[X:.*]] = plan.input "x" : tensor<4x3xf32>
  // CHECK: %[[BS:.*]] = plan.input "bs" : tensor<9xf32>
  // CHECK: %[[B:.*]] = plan.view %[[BS]][12] : tensor<3xf32>
  // CHECK: %[[Y:.*]] = plan.buffer "fc.matmul_add_relu" : tensor<4x3xf32> activation
  // CHECK: plan.matmul %[[X]], %{{.*}} -> %[[Y]] bias %[[B]] relu : f32 batch 1 m 4 n 3 k 3
  // CHECK-NEXT: plan.output "result0" %[[Y]]
  func.func @predict(%x: tensor<4x3xf32> {gpuc.name = "x"}, %w: tensor<3x3xf32> {gpuc.name = "w"}, %bs: tensor<9xf32> {gpuc.name = "bs"}) -> tensor<4x3xf32> {
    %y = gpuc.fused "fc.matmul_add_relu" (%x, %w, %bs) : (tensor<4x3xf32>, tensor<3x3xf32>, tensor<9xf32>) -> tensor<4x3xf32> {
    ^bb0(%a: tensor<4x3xf32>, %m: tensor<3x3xf32>, %biases: tensor<9xf32>):
      %p = gpuc.matmul %a, %m : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
      %b = gpuc.slice %biases starts [3] limits [6] strides [1] : (tensor<9xf32>) -> tensor<3xf32>
      %b2 = gpuc.broadcast %b dims [1] : tensor<3xf32> to tensor<4x3xf32>
      %s = gpuc.add %p, %b2 : tensor<4x3xf32>
      %r = gpuc.relu %s : tensor<4x3xf32>
      gpuc.yield %r : tensor<4x3xf32>
    }
    return %y : tensor<4x3xf32>
  }
}

// -----

// A convolution's too.

// CHECK-LABEL: module @conv_epilogue
module @conv_epilogue {
  // CHECK: plan.conv forward %{{.*}}, %{{.*}} -> %{{.*}} bias %{{.*}} relu : f32 batch 2
  func.func @predict(%x: tensor<2x3x8x8xf32> {gpuc.name = "x"}, %w: tensor<4x3x3x3xf32> {gpuc.name = "w"}, %b: tensor<4xf32> {gpuc.name = "b"}) -> tensor<2x4x6x6xf32> {
    %y = gpuc.fused "conv" (%x, %w, %b) : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<2x4x6x6xf32> {
    ^bb0(%a: tensor<2x3x8x8xf32>, %f: tensor<4x3x3x3xf32>, %bias: tensor<4xf32>):
      %c = gpuc.conv2d %a, %f : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
      %b2 = gpuc.broadcast %bias dims [1] : tensor<4xf32> to tensor<2x4x6x6xf32>
      %s = gpuc.add %c, %b2 : tensor<2x4x6x6xf32>
      %r = gpuc.relu %s : tensor<2x4x6x6xf32>
      gpuc.yield %r : tensor<2x4x6x6xf32>
    }
    return %y : tensor<2x4x6x6xf32>
  }
}

// -----

// A mask.

// CHECK-LABEL: module @mask_epilogue
module @mask_epilogue {
  // CHECK: %[[H:.*]] = plan.input "h" : tensor<4x3xf32>
  // CHECK: plan.matmul %{{.*}}, %{{.*}} -> %{{.*}} mask %[[H]] : f32 batch 1 m 4 n 3 k 5
  func.func @predict(%dy: tensor<4x5xf32> {gpuc.name = "dy"}, %w: tensor<5x3xf32> {gpuc.name = "w"}, %h: tensor<4x3xf32> {gpuc.name = "h"}) -> tensor<4x3xf32> {
    %dh = gpuc.fused "matmul_select" (%dy, %w, %h) : (tensor<4x5xf32>, tensor<5x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32> {
    ^bb0(%a: tensor<4x5xf32>, %b: tensor<5x3xf32>, %y: tensor<4x3xf32>):
      %p = gpuc.matmul %a, %b : (tensor<4x5xf32>, tensor<5x3xf32>) -> tensor<4x3xf32>
      %zero = gpuc.constant 0.0 : tensor<4x3xf32>
      %m = gpuc.compare le %y, %zero : tensor<4x3xf32>
      %s = gpuc.select %m, %zero, %p : tensor<4x3xi1>, tensor<4x3xf32>
      gpuc.yield %s : tensor<4x3xf32>
    }
    return %dh : tensor<4x3xf32>
  }
}

// -----

// CHECK-LABEL: module @conv_mask_epilogue
module @conv_mask_epilogue {
  // CHECK: plan.conv input_gradient %{{.*}}, %{{.*}} -> %{{.*}} mask %{{.*}} : f32 batch 2
  func.func @predict(%dy: tensor<2x4x6x6xf32> {gpuc.name = "dy"}, %w: tensor<4x3x3x3xf32> {gpuc.name = "w"}, %h: tensor<2x3x8x8xf32> {gpuc.name = "h"}) -> tensor<2x3x8x8xf32> {
    %dh = gpuc.fused "conv" (%dy, %w, %h) : (tensor<2x4x6x6xf32>, tensor<4x3x3x3xf32>, tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32> {
    ^bb0(%a: tensor<2x4x6x6xf32>, %b: tensor<4x3x3x3xf32>, %y: tensor<2x3x8x8xf32>):
      %p = gpuc.conv2d_input_gradient %a, %b : (tensor<2x4x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x3x8x8xf32>
      %zero = gpuc.constant 0.0 : tensor<2x3x8x8xf32>
      %m = gpuc.compare le %y, %zero : tensor<2x3x8x8xf32>
      %s = gpuc.select %m, %zero, %p : tensor<2x3x8x8xi1>, tensor<2x3x8x8xf32>
      gpuc.yield %s : tensor<2x3x8x8xf32>
    }
    return %dh : tensor<2x3x8x8xf32>
  }
}

// -----

// CHECK-LABEL: module @ranks
// CHECK: %[[X:.*]] = plan.input "arg0" : tensor<4xf32>
// CHECK: %[[SUM:.*]] = plan.buffer "all_reduce" : tensor<4xf32>
// CHECK: plan.all_reduce %[[X]] -> %[[SUM]] : f32
module @ranks {
  func.func @predict(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = gpuc.all_reduce %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// A gathered weight is a parameter, and what is shared out a gradient.
// CHECK-LABEL: module @shares
// CHECK: plan.variable @w : tensor<3xf32> "parameter" init zeros {shard_of = array<i64: 2, 5>, shards = 4 : i64}
// CHECK: %[[W:.*]] = plan.use @w
// CHECK: %[[WHOLE:.*]] = plan.buffer "all_gather" : tensor<2x5xf32> parameter
// CHECK: %[[SHARE:.*]] = plan.buffer "reduce_scatter" : tensor<3xf32>
// CHECK: plan.all_gather %[[W]] -> %[[WHOLE]] : f32 ranks 4
// CHECK: plan.reduce_scatter %[[WHOLE]] -> %[[SHARE]] : f32 ranks 4
module @shares {
  gpuc.variable @w : tensor<3xf32> init zeros {shard_of = array<i64: 2, 5>, shards = 4 : i64}
  func.func @predict() -> tensor<3xf32> {
    %w = gpuc.read @w : tensor<3xf32>
    %whole = gpuc.all_gather %w ranks 4 : (tensor<3xf32>) -> tensor<2x5xf32>
    %share = gpuc.reduce_scatter %whole ranks 4 : (tensor<2x5xf32>) -> tensor<3xf32>
    return %share : tensor<3xf32>
  }
}

// -----

// What each rank owns lies, whole, in as many places as there are owners.
// CHECK-LABEL: module @owners
// CHECK: plan.variable @m : tensor<2x5xf32> "parameter" init zeros {owners = ["a", "b"], shards = 4 : i64}
// CHECK: %[[OWN:.*]] = plan.use @m
// CHECK-DAG: %[[A:.*]] = plan.buffer "gather_from_owners" : tensor<2x5xf32> parameter
// CHECK-DAG: %[[B:.*]] = plan.buffer "gather_from_owners_1" : tensor<2x5xf32> parameter
// CHECK: plan.all_gather %[[OWN]] -> %[[A]], %[[B]] : f32 ranks 4 owners 2
// CHECK: plan.reduce_scatter %[[A]], %[[B]] -> %{{.*}} : f32 ranks 4 owners 2
module @owners {
  gpuc.variable @m : tensor<2x5xf32> init zeros {owners = ["a", "b"], shards = 4 : i64}
  func.func @predict() -> tensor<2x5xf32> {
    %own = gpuc.read @m : tensor<2x5xf32>
    %wholes:2 = gpuc.gather_from_owners %own ranks 4 : (tensor<2x5xf32>) -> (tensor<2x5xf32>, tensor<2x5xf32>)
    %sum = gpuc.reduce_to_owners %wholes#0, %wholes#1 ranks 4 : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
    return %sum : tensor<2x5xf32>
  }
}

// -----

// The count of a loss that is a sum is of the whole batch.

// CHECK-LABEL: module @sum_over_the_batch
// CHECK: plan.output "loss_sum" %{{[^ ]*}}{{$}}
// CHECK: plan.output "count" %{{[^ ]*}} counts_once{{$}}
module @sum_over_the_batch {
  func.func @eval_step(%x: tensor<f32> {gpuc.name = "x"})
      -> (tensor<f32> {gpuc.name = "loss_sum"}, tensor<f32> {gpuc.counts_once, gpuc.name = "count"}) {
    %one = gpuc.constant 1.0 : tensor<f32>
    return %x, %one : tensor<f32>, tensor<f32>
  }
}
