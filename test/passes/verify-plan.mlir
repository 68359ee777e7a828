// RUN: gpuc-opt %s -split-input-file --plan-verify | FileCheck %s

// Uploads run beside compute: events order each pair of accesses to a slot.
// CHECK: plan.program @f
plan.arena 192 bytes, variables at 0x0, workspace at 0x0, inputs at 0x40, slots 2, lower_bound 192
plan.kernel @copy (%a: tensor<16xf32>) { gpuc.yield %a : tensor<16xf32> }
plan.program @f {
  %x = plan.input "x" : tensor<16xf32> at 0x40 stride 64
  %y = plan.buffer "y" : tensor<16xf32> activation at 0x0
  %ready = plan.event "batch_ready"
  %free = plan.event "slot_free"
  plan.stream "compute" {
    plan.wait %ready
    plan.launch @copy(%x) -> (%y)
    plan.record %free
  }
  plan.stream "copy" {
    plan.wait %free distance 2
    plan.upload %x
    plan.record %ready
  }
  plan.output "y" %y
}

// -----

// A repeat that fills a buffer piece by piece: the whole is written when it is read.
// CHECK: plan.repeat 4
plan.arena 512 bytes, variables at 0x0, workspace at 0x0, inputs at 0x200, slots 1, lower_bound 512
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
plan.kernel @copy (%a: tensor<64xf32>) { gpuc.yield %a : tensor<64xf32> }
plan.program @f {
  %stack = plan.buffer "stack" : tensor<64xf32> activation at 0x0
  %y = plan.buffer "y" : tensor<64xf32> activation at 0x100
  %piece = plan.view %stack[0] strides [64] : tensor<16xf32>
  plan.stream "compute" {
    plan.repeat 4 {
      plan.launch @make() -> (%piece)
    }
    plan.launch @copy(%stack) -> (%y)
  }
}

// -----

// Each of three cotangents writes a third of every row of 24 elements.
// CHECK-LABEL: plan.program @side_by_side
plan.arena 1536 bytes, variables at 0x0, workspace at 0x0, inputs at 0x600, slots 1, lower_bound 1536
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<48xf32> gpuc.yield %0 : tensor<48xf32> }
plan.kernel @logs () { %0 = gpuc.constant 1.0 : tensor<12xf32> gpuc.yield %0 : tensor<12xf32> }
plan.program @side_by_side {
  %q = plan.buffer "q" : tensor<48xf32> activation at 0x0
  %log = plan.buffer "log" : tensor<12xf32> activation at 0x100
  %all = plan.buffer "all" : tensor<2x3x24xf32> activation at 0x200
  %dq = plan.view %all[0] : tensor<128xf32>
  %dk = plan.view %all[32] : tensor<128xf32>
  %dv = plan.view %all[64] : tensor<128xf32>
  plan.stream "compute" {
    plan.launch @make() -> (%q)
    plan.launch @logs() -> (%log)
    plan.attention_gradient %q of %q, %log query %q key %q value %q -> %dq, %dk, %dv : f32 batch 2 heads 2 groups 2 queries 3 keys 3 width 4 value_width 4 scale 0.5 strides [24, 12, 4, 24, 12, 4, 24, 12, 4, 24, 12, 4, 24, 12, 4, 72, 4, 24, 72, 4, 24, 72, 4, 24]
  }
  plan.output "d" %all
}

// -----

// Each part has its place in %t; all read %w.
// CHECK-LABEL: module @parallel
module @parallel {
  plan.arena 448 bytes, variables at 0x0, workspace at 0x0, inputs at 0x1C0, slots 1, lower_bound 448
  plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
  plan.kernel @add (%a: tensor<16xf32>, %b: tensor<16xf32>) {
    %0 = gpuc.add %a, %b : tensor<16xf32>
    gpuc.yield %0 : tensor<16xf32>
  }
  plan.program @f {
    %w = plan.buffer "w" : tensor<16xf32> activation at 0x0
    %t = plan.buffer "t" : tensor<3x16xf32> activation at 0x40
    %y = plan.buffer "y" : tensor<3x16xf32> activation at 0x100
    plan.stream "compute" {
      plan.launch @make() -> (%w)
      plan.parallel 3 {
        %mine = plan.view %t[0] strides [64] : tensor<16xf32>
        %out = plan.view %y[128] strides [-64] : tensor<16xf32>
        plan.launch @make() -> (%mine)
        plan.launch @add(%mine, %w) -> (%out)
      }
    }
    plan.output "y" %y
  }
}
