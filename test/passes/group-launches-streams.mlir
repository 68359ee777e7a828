// RUN: gpuc-opt %s -split-input-file --plan-group-launches | FileCheck %s

// Sums travel on a stream of their own. The first update may wait for the second although a record stands between them: whoever
// waits for that touches other gradients.

// CHECK-LABEL: module @beside
// CHECK: plan.stream "compute"
// CHECK: plan.wait
// CHECK-NEXT: plan.record
// CHECK-NEXT: plan.wait
// CHECK-NEXT: plan.launch @update.sgd(
// CHECK-NEXT: }
module @beside attributes {plan.slots = 1 : i64, plan.target = #plan.target<cuda, "sm_90">} {
  plan.variable @w1 : tensor<16xf32> "parameter" init zeros
  plan.variable @w2 : tensor<16xf32> "parameter" init zeros
  plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
  plan.kernel @w1.sgd (%w: tensor<16xf32>, %g: tensor<16xf32>) { %0 = gpuc.sub %w, %g : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
  plan.kernel @w2.sgd (%w: tensor<16xf32>, %g: tensor<16xf32>) { %0 = gpuc.sub %w, %g : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
  plan.program @train_step {
    %w1 = plan.use @w1 : tensor<16xf32> parameter
    %w2 = plan.use @w2 : tensor<16xf32> parameter
    %g1 = plan.buffer "g1" : tensor<16xf32> gradient
    %g2 = plan.buffer "g2" : tensor<16xf32> gradient
    %ready1 = plan.event "compute0"
    %ready2 = plan.event "compute1"
    %summed1 = plan.event "collective0"
    %summed2 = plan.event "collective1"
    plan.stream "compute" {
      plan.launch @make() -> (%g1)
      plan.record %ready1
      plan.launch @make() -> (%g2)
      plan.wait %summed1
      plan.launch @w1.sgd(%w1, %g1) -> (%w1)
      plan.record %ready2
      plan.wait %summed2
      plan.launch @w2.sgd(%w2, %g2) -> (%w2)
    }
    plan.stream "collective" {
      plan.wait %ready1
      plan.all_reduce %g1 -> %g1 : f32
      plan.record %summed1
      plan.wait %ready2
      plan.all_reduce %g2 -> %g2 : f32
      plan.record %summed2
    }
  }
}

// -----

// Here the record gives the gradient itself to the other stream: the update that reads it stays in front.

// CHECK-LABEL: module @held
// CHECK: plan.launch @w1.sgd(
// CHECK-NEXT: plan.record
// CHECK: plan.launch @w2.sgd(
module @held attributes {plan.slots = 1 : i64, plan.target = #plan.target<cuda, "sm_90">} {
  plan.variable @w1 : tensor<16xf32> "parameter" init zeros
  plan.variable @w2 : tensor<16xf32> "parameter" init zeros
  plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
  plan.kernel @w1.sgd (%w: tensor<16xf32>, %g: tensor<16xf32>) { %0 = gpuc.sub %w, %g : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
  plan.kernel @w2.sgd (%w: tensor<16xf32>, %g: tensor<16xf32>) { %0 = gpuc.sub %w, %g : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
  plan.program @train_step {
    %w1 = plan.use @w1 : tensor<16xf32> parameter
    %w2 = plan.use @w2 : tensor<16xf32> parameter
    %g = plan.buffer "g" : tensor<16xf32> gradient
    %h = plan.buffer "h" : tensor<16xf32> gradient
    %read = plan.event "compute0"
    %written = plan.event "other0"
    plan.stream "compute" {
      plan.launch @make() -> (%g)
      plan.launch @w1.sgd(%w1, %g) -> (%w1)
      plan.record %read
      plan.launch @make() -> (%h)
      plan.launch @w2.sgd(%w2, %h) -> (%w2)
      plan.wait %written
    }
    plan.stream "other" {
      plan.wait %read
      plan.launch @make() -> (%g)
      plan.record %written
    }
  }
}
