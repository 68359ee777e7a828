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
