// RUN: gpuc-opt %s -split-input-file --plan-assign-streams | FileCheck %s

// The host reads a batch where the caller has it: one stream, one slot.

// CHECK-LABEL: module @host
// CHECK-SAME: plan.slots = 1
module @host attributes {plan.target = #plan.target<host, "">} {
  plan.kernel @copy (%a: tensor<1048576xf32>) { gpuc.yield %a : tensor<1048576xf32> }
  // CHECK: plan.stream "compute" {
  // CHECK-NEXT: plan.upload
  // CHECK-NEXT: plan.launch
  // CHECK-NEXT: }
  // CHECK-NEXT: plan.output
  plan.program @f {
    %x = plan.input "x" : tensor<1048576xf32>
    %y = plan.buffer "y" : tensor<1048576xf32> activation
    plan.upload %x
    plan.launch @copy(%x) -> (%y)
    plan.output "y" %y
  }
}

// -----

// On a GPU copies run beside compute: the batch has two slots, compute waits for its upload, and an upload for the step
// before the last, which used its slot. The slot is free as soon as its last reader is through. Outputs are copied to the
// host at the end, a buffer that is two of them once.

// CHECK-LABEL: module @gpu
// CHECK-SAME: plan.slots = 2
module @gpu attributes {plan.target = #plan.target<cuda, "sm_90">} {
  plan.kernel @copy (%a: tensor<16xf32>) { gpuc.yield %a : tensor<16xf32> }
  // CHECK: %[[READY:.*]] = plan.event "batch_ready"
  // CHECK: %[[FREE:.*]] = plan.event "slot_free"
  // CHECK: plan.stream "compute" {
  // CHECK-NEXT: plan.wait %[[READY]]
  // CHECK-NEXT: plan.launch @copy(%[[X:.*]]) -> (%[[Y:.*]])
  // CHECK-NEXT: plan.record %[[FREE]]
  // CHECK-NEXT: plan.launch @copy(%[[Y]]) -> (%[[Z:.*]])
  // CHECK-NEXT: plan.download %[[Z]]
  // CHECK-NEXT: }
  // CHECK: plan.stream "copy" {
  // CHECK-NEXT: plan.wait %[[FREE]] distance 2
  // CHECK-NEXT: plan.upload %[[X]]
  // CHECK-NEXT: plan.record %[[READY]]
  plan.program @f {
    %x = plan.input "x" : tensor<16xf32>
    %y = plan.buffer "y" : tensor<16xf32> activation
    %z = plan.buffer "z" : tensor<16xf32> activation
    plan.upload %x
    plan.launch @copy(%x) -> (%y)
    plan.launch @copy(%y) -> (%z)
    plan.output "z" %z
    plan.output "again" %z
  }
}

// -----

// What other streams read of variables they read behind what the run before has written.

// CHECK-LABEL: module @shares
// CHECK: %[[BEGUN:.*]] = plan.event "compute0"
// CHECK: plan.stream "compute" {
// CHECK-NEXT: plan.record %[[BEGUN]]
// CHECK-NEXT: plan.wait %[[WHOLE:.*]]
// CHECK-NEXT: plan.launch @copy(
// CHECK: plan.stream "collective" {
// CHECK-NEXT: plan.wait %[[BEGUN]]
// CHECK-NEXT: plan.all_gather
// CHECK-NEXT: plan.record %[[WHOLE]]
module @shares attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w : tensor<8xf32> "parameter" init zeros {shard_of = array<i64: 16>, shards = 2 : i64}
  plan.kernel @copy (%a: tensor<16xf32>) { gpuc.yield %a : tensor<16xf32> }
  plan.program @f {
    %w = plan.use @w : tensor<8xf32> parameter
    %x = plan.buffer "x" : tensor<16xf32> parameter
    %y = plan.buffer "y" : tensor<16xf32> activation
    plan.all_gather %w -> %x : f32 ranks 2 {plan.on_stream = "collective"}
    plan.launch @copy(%x) -> (%y)
    plan.output "y" %y
  }
}

// -----

// An exchange of several tensors waits for the last of the commands that make them alone.

// CHECK-LABEL: module @several
// CHECK: %[[MADE:.*]] = plan.event "compute0"
// CHECK: plan.stream "compute" {
// CHECK-NEXT: plan.launch @fill() -> (%[[A:.*]])
// CHECK-NEXT: plan.launch @fill() -> (%[[B:.*]])
// CHECK-NEXT: plan.record %[[MADE]]
// CHECK-NEXT: plan.wait
// CHECK: plan.stream "collective" {
// CHECK-NEXT: plan.wait %[[MADE]]
// CHECK-NEXT: plan.reduce_scatter %[[A]], %[[B]]
module @several attributes {plan.target = #plan.target<host, "">} {
  plan.kernel @fill () { %zero = gpuc.constant dense<0.0> : tensor<16xf32> gpuc.yield %zero : tensor<16xf32> }
  plan.program @f {
    %a = plan.buffer "a" : tensor<16xf32> gradient
    %b = plan.buffer "b" : tensor<16xf32> gradient
    %x = plan.buffer "x" : tensor<8xf32> gradient
    %y = plan.buffer "y" : tensor<8xf32> gradient
    plan.launch @fill() -> (%a)
    plan.launch @fill() -> (%b)
    plan.reduce_scatter %a, %b -> %x, %y : f32 ranks 2 {plan.on_stream = "collective"}
    plan.output "x" %x
  }
}
