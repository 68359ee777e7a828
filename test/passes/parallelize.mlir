// Loops whose rows, or iterations, threads may take side by side.
// RUN: gpuc-opt %s -plan-parallelize -plan-verify -split-input-file | FileCheck %s
// Once more changes nothing.
// RUN: gpuc-opt %s -plan-parallelize -plan-parallelize -plan-verify -split-input-file | FileCheck %s

// Each row goes through all steps without the others. What moves does so by the repeat's strides, one level further in.
// CHECK-LABEL: module @over_time
// CHECK: plan.kernel @add ({{.*}}) attributes {by_rows = array<i64: 0, 1, 2>, rows = 16 : i64}
// CHECK: plan.kernel @elsewhere ({{.*}}) {
// CHECK: plan.parallel rows 16 {
// CHECK-NEXT: plan.repeat 3 {
// CHECK-NEXT: plan.view %{{.*}}[0] strides [0, 2048] : tensor<16x32xf32>
// CHECK: plan.matmul
// CHECK: plan.launch @add
module @over_time attributes {plan.target = #plan.target<host, "x86-64-v3">} {
  plan.arena 20544 bytes, variables at 0x0, workspace at 0x0, inputs at 0x5040, slots 1, lower_bound 20544
  plan.kernel @add (%a: tensor<16x32xf32>, %b: tensor<16x32xf32>) {
    %0 = gpuc.add %a, %b : tensor<16x32xf32>
    gpuc.yield %0 : tensor<16x32xf32>
  }
  plan.kernel @elsewhere (%a: tensor<16x32xf32>) {
    %0 = gpuc.neg %a : tensor<16x32xf32>
    gpuc.yield %0 : tensor<16x32xf32>
  }
  plan.program @f {
    %x = plan.buffer "x" : tensor<3x16x32xf32> activation at 0x0
    %w = plan.buffer "w" : tensor<32x32xf32> activation at 0x1800
    %h = plan.buffer "h" : tensor<16x32xf32> activation at 0x2800
    %z = plan.buffer "z" : tensor<16x32xf32> activation at 0x3000
    %n = plan.buffer "n" : tensor<16x32xf32> activation at 0x3800
    plan.stream "compute" {
      plan.fill %x with 1.0 : f32
      plan.fill %w with 1.0 : f32
      plan.fill %h with 0.0 : f32
      plan.repeat 3 {
        %xt = plan.view %x[0] strides [2048] : tensor<16x32xf32>
        plan.matmul %h, %w -> %z : f32 batch 1 m 16 n 32 k 32
        plan.launch @add(%z, %xt) -> (%h)
      }
      plan.launch @elsewhere(%h) -> (%n)
    }
    plan.output "n" %n
  }
}

// -----

// The rows of the product that adds up are others; those of the loop within go through it alone.
// CHECK-LABEL: module @within
// CHECK: plan.repeat 2 {
// CHECK: plan.parallel rows 8 {
// CHECK-NEXT: plan.repeat 3 {
// CHECK-NEXT: plan.view %{{.*}}[0] strides [3072, 0, 1024] : tensor<8x32xf32>
// CHECK: plan.matmul {{.*}}transpose
module @within attributes {plan.target = #plan.target<host, "x86-64-v3">} {
  plan.arena 16384 bytes, variables at 0x0, workspace at 0x0, inputs at 0x4000, slots 1, lower_bound 16384
  plan.program @f {
    %x = plan.buffer "x" : tensor<6x8x32xf32> activation at 0x0
    %h = plan.buffer "h" : tensor<8x32xf32> activation at 0x1800
    %g = plan.buffer "g" : tensor<32x32xf32> activation at 0x2000
    plan.stream "compute" {
      plan.fill %x with 1.0 : f32
      plan.fill %g with 0.0 : f32
      plan.repeat 2 {
        plan.repeat 3 {
          %xt = plan.view %x[0] strides [3072, 1024] : tensor<8x32xf32>
          plan.matmul %xt, %g -> %h : f32 batch 1 m 8 n 32 k 32
        }
        plan.matmul transpose %h, %h -> %g accumulate : f32 batch 1 m 32 n 32 k 8
      }
    }
    plan.output "g" %g
  }
}

// -----

// Iterations that touch nothing of one another; not those that add up, nor those of which one may wait.
// CHECK-LABEL: module @iterations
// CHECK: plan.parallel 4 {
// CHECK-NEXT: plan.view %{{.*}}[0] strides [64] : tensor<4x4xf32>
// CHECK: plan.repeat 4 {
// CHECK-NOT: plan.parallel
module @iterations attributes {plan.target = #plan.target<host, "x86-64-v3">} {
  plan.arena 640 bytes, variables at 0x0, workspace at 0x0, inputs at 0x280, slots 1, lower_bound 640
  plan.program @f {
    %x = plan.buffer "x" : tensor<4x4x4xf32> activation at 0x0
    %y = plan.buffer "y" : tensor<4x4x4xf32> activation at 0x100
    %g = plan.buffer "g" : tensor<4x4xf32> activation at 0x200
    plan.stream "compute" {
      plan.fill %x with 1.0 : f32
      plan.fill %g with 0.0 : f32
      plan.repeat 4 {
        %a = plan.view %x[0] strides [64] : tensor<4x4xf32>
        %b = plan.view %y[0] strides [64] : tensor<4x4xf32>
        plan.matmul transpose %a, %a -> %b : f32 batch 1 m 4 n 4 k 4
      }
      plan.repeat 4 {
        %b = plan.view %y[0] strides [64] : tensor<4x4xf32>
        plan.matmul transpose %b, %b -> %g accumulate : f32 batch 1 m 4 n 4 k 4
      }
    }
    plan.output "g" %g
  }
}

// -----

// CUDA's blocks share each command.
// CHECK-LABEL: module @cuda
// CHECK-NOT: plan.parallel
module @cuda attributes {plan.target = #plan.target<cuda, "sm_90">} {
  plan.arena 512 bytes, variables at 0x0, workspace at 0x0, inputs at 0x200, slots 1, lower_bound 512
  plan.program @f {
    %x = plan.buffer "x" : tensor<4x4x4xf32> activation at 0x0
    %y = plan.buffer "y" : tensor<4x4x4xf32> activation at 0x100
    plan.stream "compute" {
      plan.fill %x with 1.0 : f32
      plan.repeat 4 {
        %a = plan.view %x[0] strides [64] : tensor<4x4xf32>
        %b = plan.view %y[0] strides [64] : tensor<4x4xf32>
        plan.copy %a -> %b
      }
    }
    plan.output "y" %y
  }
}

// -----

// A view that moves with the loop stands outside of it: it is left as it is, and so is the loop.
// CHECK-LABEL: module @outside
// CHECK-NOT: plan.parallel
// CHECK: plan.repeat 3 {
module @outside attributes {plan.target = #plan.target<host, "x86-64-v3">} {
  plan.arena 20544 bytes, variables at 0x0, workspace at 0x0, inputs at 0x5040, slots 1, lower_bound 20544
  plan.program @f {
    %x = plan.buffer "x" : tensor<3x16x32xf32> activation at 0x0
    %w = plan.buffer "w" : tensor<32x32xf32> activation at 0x1800
    %z = plan.buffer "z" : tensor<3x16x32xf32> activation at 0x2800
    %xt = plan.view %x[0] strides [2048] : tensor<16x32xf32>
    %zt = plan.view %z[0] strides [2048] : tensor<16x32xf32>
    plan.stream "compute" {
      plan.fill %x with 1.0 : f32
      plan.fill %w with 1.0 : f32
      plan.repeat 3 {
        plan.matmul %xt, %w -> %zt : f32 batch 1 m 16 n 32 k 32
      }
    }
    plan.output "z" %z
  }
}
