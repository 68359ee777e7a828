// RUN: gpuc-opt %s -split-input-file --plan-place-buffers | FileCheck %s

// Lifetimes, by position on the stream:      bytes
//   a  [0, 2)  written by 0, read by 1        4096
//   b  [1, 3)  written by 1, read by 2        4096, over which nothing can be written in place: reverse
//   c  [2, 4)  written by 2, an output        4096
// a and c never meet, so 8192 bytes hold all three. The variable comes first, the input slot last.

// CHECK-LABEL: module @reuse
// CHECK: plan.arena 8320 bytes, variables at 0x0, workspace at 0x40, inputs at 0x2040, slots 2, lower_bound 8320
module @reuse attributes {plan.slots = 2 : i64} {
  // CHECK: plan.variable @w : tensor<f32> "parameter" init zeros at 0x0
  plan.variable @w : tensor<f32> "parameter" init zeros
  plan.kernel @spread (%a: tensor<f32>, %b: tensor<f32>) {
    %0 = gpuc.add %a, %b : tensor<f32>
    %1 = gpuc.broadcast %0 dims [] : tensor<f32> to tensor<1024xf32>
    gpuc.yield %1 : tensor<1024xf32>
  }
  plan.kernel @reverse (%a: tensor<1024xf32>) {
    %0 = gpuc.reverse %a dims [0] : tensor<1024xf32>
    gpuc.yield %0 : tensor<1024xf32>
  }
  // CHECK: plan.program @f peak 8320
  // CHECK: plan.input "x" : tensor<f32> at 0x2040 stride 4
  // CHECK: plan.buffer "a" : tensor<1024xf32> activation at 0x[[A:[0-9A-F]+]]
  // CHECK: plan.buffer "b" : tensor<1024xf32> activation at 0x
  // CHECK: plan.buffer "c" : tensor<1024xf32> activation at 0x[[A]]
  plan.program @f {
    %x = plan.input "x" : tensor<f32>
    %w = plan.use @w : tensor<f32> parameter
    %a = plan.buffer "a" : tensor<1024xf32> activation
    %b = plan.buffer "b" : tensor<1024xf32> activation
    %c = plan.buffer "c" : tensor<1024xf32> activation
    plan.stream "compute" {
      plan.upload %x
      plan.launch @spread(%x, %w) -> (%a)
      plan.launch @reverse(%a) -> (%b)
      plan.launch @reverse(%b) -> (%c)
    }
    plan.output "c" %c
  }
}

// -----

// What is shorter than a line shares one, before what fills lines, at a multiple of the power of two that holds it.

// CHECK-LABEL: module @short
// CHECK: plan.arena 512 bytes, variables at 0x0, workspace at 0xC0, inputs at 0xC0, slots 2, lower_bound 512
module @short attributes {plan.slots = 2 : i64} {
  // CHECK: plan.variable @scale : tensor<f32> "parameter" init zeros at 0x30
  // CHECK: plan.variable @weight : tensor<16xf32> "parameter" init zeros at 0x80
  // CHECK: plan.variable @three : tensor<3xi32> "parameter" init zeros at 0x20
  // CHECK: plan.variable @long : tensor<12xf32> "parameter" init zeros at 0x40
  // CHECK: plan.variable @five : tensor<5xf32> "parameter" init zeros at 0x0
  plan.variable @scale : tensor<f32> "parameter" init zeros
  plan.variable @weight : tensor<16xf32> "parameter" init zeros
  plan.variable @three : tensor<3xi32> "parameter" init zeros
  plan.variable @long : tensor<12xf32> "parameter" init zeros
  plan.variable @five : tensor<5xf32> "parameter" init zeros
  // CHECK: plan.input "row" : tensor<17xf32> at 0x100 stride 128
  // CHECK: plan.input "count" : tensor<i64> at 0xC0 stride 8
  plan.program @f {
    %0 = plan.input "row" : tensor<17xf32>
    %1 = plan.input "count" : tensor<i64>
    plan.stream "compute" {
      plan.upload %0
      plan.upload %1
    }
  }
}

// -----

// A GPU's libraries like whole lines better.

// CHECK-LABEL: module @on_cuda
module @on_cuda attributes {plan.slots = 1 : i64, plan.target = #plan.target<cuda, "sm_90">} {
  // CHECK: plan.variable @scale : tensor<f32> "parameter" init zeros at 0x0
  // CHECK: plan.variable @shift : tensor<f32> "parameter" init zeros at 0x40
  plan.variable @scale : tensor<f32> "parameter" init zeros
  plan.variable @shift : tensor<f32> "parameter" init zeros
  plan.program @f {
    plan.stream "compute" {
    }
  }
}

// -----

// A pointwise kernel writes over the operand that dies there: 4096 bytes hold both.

// CHECK-LABEL: module @in_place
// CHECK: plan.arena 4096 bytes
module @in_place attributes {plan.slots = 1 : i64} {
  plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<1024xf32> gpuc.yield %0 : tensor<1024xf32> }
  plan.kernel @negate (%a: tensor<1024xf32>) {
    %0 = gpuc.neg %a : tensor<1024xf32>
    gpuc.yield %0 : tensor<1024xf32>
  }
  // CHECK: plan.buffer "a" : tensor<1024xf32> activation at 0x0
  // CHECK: plan.buffer "b" : tensor<1024xf32> activation at 0x0
  plan.program @f {
    %a = plan.buffer "a" : tensor<1024xf32> activation
    %b = plan.buffer "b" : tensor<1024xf32> activation
    plan.stream "compute" {
      plan.launch @make() -> (%a)
      plan.launch @negate(%a) -> (%b)
    }
    plan.output "b" %b
  }
}

// -----

// Programs overlay one another: the workspace is as large as the larger needs.

// CHECK-LABEL: module @overlay
// CHECK: plan.arena 4096 bytes
module @overlay attributes {plan.slots = 1 : i64} {
  plan.kernel @large () { %0 = gpuc.constant 1.0 : tensor<1024xf32> gpuc.yield %0 : tensor<1024xf32> }
  plan.kernel @small () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
  // CHECK: plan.program @f peak 4096
  plan.program @f {
    %a = plan.buffer "a" : tensor<1024xf32> activation
    plan.stream "compute" { plan.launch @large() -> (%a) }
    plan.output "a" %a
  }
  // CHECK: plan.program @g peak 64
  plan.program @g {
    %a = plan.buffer "a" : tensor<16xf32> activation
    plan.stream "compute" { plan.launch @small() -> (%a) }
    plan.output "a" %a
  }
}

// -----

// Iterations that may be executed at once have parts of their own of what they need in turn: of a, b and c, each behind the
// other, a and c lie over one another in each iteration, 4096 bytes apart in both, though c is as long as b and shorter than
// a. d, which all need, and y, in which the parts of both stay, have places of their own.

// CHECK-LABEL: module @iterations
// CHECK: plan.arena 12480 bytes
module @iterations attributes {plan.slots = 1 : i64} {
  plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
  plan.kernel @broadcast (%a: tensor<16xf32>) {
    %0 = gpuc.broadcast %a dims [1] : tensor<16xf32> to tensor<64x16xf32>
    gpuc.yield %0 : tensor<64x16xf32>
  }
  plan.kernel @sum (%a: tensor<64x16xf32>) {
    %0 = gpuc.reshape %a : tensor<64x16xf32> to tensor<2x32x16xf32>
    %1 = gpuc.sum %0 dims [0] : (tensor<2x32x16xf32>) -> tensor<32x16xf32>
    gpuc.yield %1 : tensor<32x16xf32>
  }
  plan.kernel @reverse (%a: tensor<32x16xf32>) {
    %0 = gpuc.reverse %a dims [0] : tensor<32x16xf32>
    gpuc.yield %0 : tensor<32x16xf32>
  }
  plan.kernel @total (%a: tensor<32x16xf32>) {
    %0 = gpuc.sum %a dims [0] : (tensor<32x16xf32>) -> tensor<16xf32>
    gpuc.yield %0 : tensor<16xf32>
  }
  // CHECK: plan.buffer "a" : tensor<2x64x16xf32> activation at 0x[[A:[0-9A-F]+]]
  // CHECK: plan.buffer "b" : tensor<2x32x16xf32> activation at 0x
  // CHECK: plan.buffer "c" : tensor<2x1024xf32> activation at 0x[[A]]
  // CHECK: plan.parallel 2
  // CHECK: plan.view %{{.*}}[0] strides [4096] : tensor<64x16xf32>
  // CHECK: plan.view %{{.*}}[0] strides [2048] : tensor<32x16xf32>
  // CHECK: plan.view %{{.*}}[0] strides [4096] : tensor<32x16xf32>
  plan.program @f {
    %a = plan.buffer "a" : tensor<2x64x16xf32> activation
    %b = plan.buffer "b" : tensor<2x32x16xf32> activation
    %c = plan.buffer "c" : tensor<2x32x16xf32> activation
    %d = plan.buffer "d" : tensor<16xf32> activation
    %y = plan.buffer "y" : tensor<2x16xf32> activation
    plan.stream "compute" {
      plan.launch @make() -> (%d)
      plan.parallel 2 {
        %my_a = plan.view %a[0] strides [4096] : tensor<64x16xf32>
        %my_b = plan.view %b[0] strides [2048] : tensor<32x16xf32>
        %my_c = plan.view %c[0] strides [2048] : tensor<32x16xf32>
        %my_y = plan.view %y[0] strides [64] : tensor<16xf32>
        plan.launch @broadcast(%d) -> (%my_a)
        plan.launch @sum(%my_a) -> (%my_b)
        plan.launch @reverse(%my_b) -> (%my_c)
        plan.launch @total(%my_c) -> (%my_y)
      }
    }
    plan.output "y" %y
  }
}

// -----

// A sum over ranks lies where its part was.
// CHECK-LABEL: module @ranks
// CHECK: plan.arena 4224 bytes, {{.*}} lower_bound 4224
module @ranks attributes {plan.slots = 1 : i64} {
  plan.variable @w : tensor<f32> "parameter" init zeros
  plan.kernel @spread (%a: tensor<f32>, %b: tensor<f32>) {
    %0 = gpuc.add %a, %b : tensor<f32>
    %1 = gpuc.broadcast %0 dims [] : tensor<f32> to tensor<1024xf32>
    gpuc.yield %1 : tensor<1024xf32>
  }
  // CHECK: plan.buffer "part" : tensor<1024xf32> gradient at 0x40
  // CHECK: plan.buffer "sum" : tensor<1024xf32> gradient at 0x40
  plan.program @f {
    %x = plan.input "x" : tensor<f32>
    %w = plan.use @w : tensor<f32> parameter
    %part = plan.buffer "part" : tensor<1024xf32> gradient
    %sum = plan.buffer "sum" : tensor<1024xf32> gradient
    plan.stream "compute" {
      plan.launch @spread(%x, %w) -> (%part)
      plan.all_reduce %part -> %sum : f32
    }
    plan.output "sum" %sum
  }
}

// -----

// c, half as long as a was, has its middle where a had it: each of two threads writes where it has written. A GPU has one cache.
// CHECK-LABEL: module @halves
module @halves attributes {plan.slots = 1 : i64} {
  plan.kernel @spread (%x: tensor<f32>) {
    %0 = gpuc.broadcast %x dims [] : tensor<f32> to tensor<131072xf32>
    gpuc.yield %0 : tensor<131072xf32>
  }
  plan.kernel @cut (%a: tensor<131072xf32>) {
    %0 = gpuc.slice %a starts [0] limits [16384] strides [1] : (tensor<131072xf32>) -> tensor<16384xf32>
    gpuc.yield %0 : tensor<16384xf32>
  }
  plan.kernel @repeat (%b: tensor<16384xf32>) {
    %0 = gpuc.broadcast %b dims [1] : tensor<16384xf32> to tensor<4x16384xf32>
    gpuc.yield %0 : tensor<4x16384xf32>
  }
  // CHECK: plan.buffer "a" : tensor<131072xf32> activation at 0x0
  // CHECK: plan.buffer "c" : tensor<4x16384xf32> activation at 0x20000
  plan.program @f {
    %x = plan.input "x" : tensor<f32>
    %a = plan.buffer "a" : tensor<131072xf32> activation
    %b = plan.buffer "b" : tensor<16384xf32> activation
    %c = plan.buffer "c" : tensor<4x16384xf32> activation
    plan.stream "compute" {
      plan.launch @spread(%x) -> (%a)
      plan.launch @cut(%a) -> (%b)
      plan.launch @repeat(%b) -> (%c)
    }
    plan.output "c" %c
  }
}

// -----

// CHECK-LABEL: module @halves_on_cuda
module @halves_on_cuda attributes {plan.slots = 1 : i64, plan.target = #plan.target<cuda, "sm_90">} {
  plan.kernel @spread (%x: tensor<f32>) {
    %0 = gpuc.broadcast %x dims [] : tensor<f32> to tensor<131072xf32>
    gpuc.yield %0 : tensor<131072xf32>
  }
  plan.kernel @cut (%a: tensor<131072xf32>) {
    %0 = gpuc.slice %a starts [0] limits [16384] strides [1] : (tensor<131072xf32>) -> tensor<16384xf32>
    gpuc.yield %0 : tensor<16384xf32>
  }
  plan.kernel @repeat (%b: tensor<16384xf32>) {
    %0 = gpuc.broadcast %b dims [1] : tensor<16384xf32> to tensor<4x16384xf32>
    gpuc.yield %0 : tensor<4x16384xf32>
  }
  // CHECK: plan.buffer "a" : tensor<131072xf32> activation at 0x0
  // CHECK: plan.buffer "c" : tensor<4x16384xf32> activation at 0x0
  plan.program @f {
    %x = plan.input "x" : tensor<f32>
    %a = plan.buffer "a" : tensor<131072xf32> activation
    %b = plan.buffer "b" : tensor<16384xf32> activation
    %c = plan.buffer "c" : tensor<4x16384xf32> activation
    plan.stream "compute" {
      plan.launch @spread(%x) -> (%a)
      plan.launch @cut(%a) -> (%b)
      plan.launch @repeat(%b) -> (%c)
    }
    plan.output "c" %c
  }
}
