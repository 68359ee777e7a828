// RUN: gpuc-opt %s -split-input-file --plan-order | FileCheck %s

// Each kernel turns 4 KiB into 4 bytes. Making both big buffers first would keep 8 KiB live; one after the other, 4.

// CHECK-LABEL: module @one_after_the_other
module @one_after_the_other {
  plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<1024xf32> gpuc.yield %0 : tensor<1024xf32> }
  plan.kernel @sum (%a: tensor<1024xf32>) {
    %0 = gpuc.sum %a dims [0] : (tensor<1024xf32>) -> tensor<f32>
    gpuc.yield %0 : tensor<f32>
  }
  // CHECK: plan.launch @make() -> (%[[A:.*]])
  // CHECK-NEXT: plan.launch @sum(%[[A]]) -> (%{{.*}})
  // CHECK-NEXT: plan.launch @make() -> (%[[B:.*]])
  // CHECK-NEXT: plan.launch @sum(%[[B]]) -> (%{{.*}})
  // CHECK-NEXT: plan.output
  plan.program @f {
    %a = plan.buffer "a" : tensor<1024xf32> activation
    %b = plan.buffer "b" : tensor<1024xf32> activation
    %c = plan.buffer "c" : tensor<f32> activation
    %d = plan.buffer "d" : tensor<f32> activation
    plan.launch @make() -> (%a)
    plan.launch @make() -> (%b)
    plan.launch @sum(%a) -> (%c)
    plan.launch @sum(%b) -> (%d)
    plan.output "c" %c
    plan.output "d" %d
  }
}

// -----

// What writes a variable stays behind what reads its old value: here the update would free a buffer early, and must not.

// CHECK-LABEL: module @keeps_hazards
module @keeps_hazards {
  plan.variable @w : tensor<1024xf32> "parameter" init zeros
  plan.kernel @copy (%a: tensor<1024xf32>) { gpuc.yield %a : tensor<1024xf32> }
  // CHECK: plan.launch @copy(%[[W:.*]]) -> (%[[OLD:.*]])
  // CHECK: plan.launch @copy(%{{.*}}) -> (%[[W]])
  plan.program @f {
    %w = plan.use @w : tensor<1024xf32> parameter
    %x = plan.input "x" : tensor<1024xf32>
    %old = plan.buffer "old" : tensor<1024xf32> activation
    plan.upload %x
    plan.launch @copy(%w) -> (%old)
    plan.launch @copy(%x) -> (%w)
    plan.output "old" %old
  }
}
