// RUN: gpuc-opt %s -split-input-file --plan-assign-streams --plan-group-launches | FileCheck %s
// RUN: gpuc-opt %s -split-input-file --plan-assign-streams --plan-group-launches=most-operands=6 | FileCheck %s --check-prefix=SIX
// RUN: gpuc-opt %s -split-input-file --plan-assign-streams --plan-group-launches=most-bytes=128 | FileCheck %s --check-prefix=SHORT

// Two updates become one launch where the second stood: the members are segments of its kernel, with operands of their own
// and the learning rate in common. The 64 bytes of %g2 that now live for longer were live before, with %big.

// CHECK-LABEL: module @updates
// CHECK-NOT:     plan.kernel @fc2.weight.sgd_update_2
// CHECK:         plan.kernel @update.sgd_update (%[[G2:.*]]: tensor<16xf32>, %[[W2:.*]]: tensor<16xf32>, %[[LR:.*]]: tensor<f32>, %[[G1:.*]]: tensor<4x2xf32>, %[[W1:.*]]: tensor<4x2xf32>) {
// CHECK-NEXT:      %[[A:.*]] = gpuc.fused "fc2.weight.sgd_update_2"(%[[G2]], %[[W2]], %[[LR]])
// CHECK:           %[[B:.*]] = gpuc.fused "fc1.weight.mul_sgd_update"(%[[G1]], %[[W1]])
// CHECK:           gpuc.yield %[[A]], %[[B]]
// CHECK:         plan.program @train_step
// CHECK-NOT:       plan.launch @fc
// CHECK:           plan.launch @make() -> (%[[GRADIENT:.*]])
// CHECK-NEXT:      plan.launch @update.sgd_update(%{{.*}}, %{{.*}}, %{{.*}}, %[[GRADIENT]], %{{.*}}) -> (%{{.*}}, %{{.*}})
// CHECK-NEXT:    }

// Five are read and two written: where a launch takes six buffers at most, it has no place for both.
// SIX-LABEL: module @updates
// SIX:         plan.launch @fc2.weight.sgd_update_2
// SIX:         plan.launch @fc1.weight.mul_sgd_update

// The first touches 196 bytes, the second 96.
// SHORT-LABEL: module @updates
// SHORT:         plan.launch @fc2.weight.sgd_update_2
// SHORT:         plan.launch @fc1.weight.mul_sgd_update
module @updates attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w1 : tensor<4x2xf32> "parameter" init zeros
  plan.variable @w2 : tensor<16xf32> "parameter" init zeros
  plan.variable @lr : tensor<f32> "counter" init zeros
  plan.kernel @make_big () { %0 = gpuc.constant 1.0 : tensor<1024xf32> gpuc.yield %0 : tensor<1024xf32> }
  plan.kernel @start (%a: tensor<1024xf32>) {
    %0 = gpuc.slice %a starts [0] limits [16] strides [1] : (tensor<1024xf32>) -> tensor<16xf32>
    gpuc.yield %0 : tensor<16xf32>
  }
  plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<4x2xf32> gpuc.yield %0 : tensor<4x2xf32> }
  plan.kernel @fc2.weight.sgd_update_2 (%g: tensor<16xf32>, %w: tensor<16xf32>, %lr: tensor<f32>) {
    %0 = gpuc.broadcast %lr dims [] : tensor<f32> to tensor<16xf32>
    %1 = gpuc.mul %g, %0 : tensor<16xf32>
    %2 = gpuc.sub %w, %1 : tensor<16xf32>
    gpuc.yield %2 : tensor<16xf32>
  }
  plan.kernel @fc1.weight.mul_sgd_update (%g: tensor<4x2xf32>, %w: tensor<4x2xf32>) {
    %0 = gpuc.sub %w, %g : tensor<4x2xf32>
    gpuc.yield %0 : tensor<4x2xf32>
  }
  plan.program @train_step {
    %w1 = plan.use @w1 : tensor<4x2xf32> parameter
    %w2 = plan.use @w2 : tensor<16xf32> parameter
    %lr = plan.use @lr : tensor<f32> parameter
    %big = plan.buffer "big" : tensor<1024xf32> activation
    %g2 = plan.buffer "g2" : tensor<16xf32> gradient
    %g1 = plan.buffer "g1" : tensor<4x2xf32> gradient
    plan.launch @make_big() -> (%big)
    plan.launch @start(%big) -> (%g2)
    plan.launch @fc2.weight.sgd_update_2(%g2, %w2, %lr) -> (%w2)
    plan.launch @make() -> (%g1)
    plan.launch @fc1.weight.mul_sgd_update(%g1, %w1) -> (%w1)
  }
}

// -----

// The norms of two gradients are of one kind, whatever the shapes; that of squares' roots is not, nor is a row's norm, of
// which there are several. What the gradients alone need, their bytes, is live until both are read: no more than at the
// start, when %big is.

// CHECK-LABEL: module @norms
// CHECK:         plan.kernel @grad_norm.mul_sum (
// CHECK:           gpuc.fused "grad_norm.mul_sum"
// CHECK:           gpuc.fused "grad_norm.mul_sum_2"
// CHECK:         plan.program
// CHECK:           plan.launch @roots
// CHECK-NEXT:      plan.launch @rows
// CHECK-NEXT:      plan.launch @grad_norm.mul_sum
// CHECK-NOT:       plan.launch @grad_norm
module @norms attributes {plan.target = #plan.target<host, "">} {
  plan.variable @a : tensor<8x4xf32> "parameter" init zeros
  plan.variable @b : tensor<8xf32> "parameter" init zeros
  plan.kernel @grad_norm.mul_sum (%g: tensor<8x4xf32>) {
    %0 = gpuc.mul %g, %g : tensor<8x4xf32>
    %1 = gpuc.sum %0 dims [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
    gpuc.yield %1 : tensor<f32>
  }
  plan.kernel @roots (%g: tensor<8xf32>) {
    %0 = gpuc.sqrt %g : tensor<8xf32>
    %1 = gpuc.sum %0 dims [0] : (tensor<8xf32>) -> tensor<f32>
    gpuc.yield %1 : tensor<f32>
  }
  plan.kernel @rows (%g: tensor<8x4xf32>) {
    %0 = gpuc.mul %g, %g : tensor<8x4xf32>
    %1 = gpuc.sum %0 dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
    gpuc.yield %1 : tensor<8xf32>
  }
  plan.kernel @grad_norm.mul_sum_2 (%g: tensor<8xf32>) {
    %0 = gpuc.mul %g, %g : tensor<8xf32>
    %1 = gpuc.sum %0 dims [0] : (tensor<8xf32>) -> tensor<f32>
    gpuc.yield %1 : tensor<f32>
  }
  plan.program @train_step {
    %a = plan.use @a : tensor<8x4xf32> parameter
    %b = plan.use @b : tensor<8xf32> parameter
    %0 = plan.buffer "n0" : tensor<f32> activation
    %1 = plan.buffer "n1" : tensor<f32> activation
    %2 = plan.buffer "n2" : tensor<8xf32> activation
    %3 = plan.buffer "n3" : tensor<f32> activation
    plan.launch @grad_norm.mul_sum(%a) -> (%0)
    plan.launch @roots(%b) -> (%1)
    plan.launch @rows(%a) -> (%2)
    plan.launch @grad_norm.mul_sum_2(%b) -> (%3)
    plan.output "n0" %0
    plan.output "n1" %1
    plan.output "n2" %2
    plan.output "n3" %3
  }
}

// -----

// The sums of two long norms first, as late as the last; then the parts of both, of which each may wait until there. A row's
// norm that somebody else reads is no part.

// CHECK-LABEL: module @parts
// CHECK:         plan.program
// CHECK-NEXT:      plan.use
// CHECK:           plan.launch @read(
// CHECK-NEXT:      plan.launch @grad_norm.mul_sum(%{{.*}}, %{{.*}}) -> (%[[P0:.*]], %[[P1:.*]])
// CHECK-NEXT:      plan.launch @grad_norm.sum(%[[P0]], %[[P1]])
// CHECK-NOT:       plan.launch
module @parts attributes {plan.target = #plan.target<host, "">} {
  plan.variable @a : tensor<8x4xf32> "parameter" init zeros
  plan.variable @b : tensor<16x2x2xf32> "parameter" init zeros
  plan.kernel @make_big () { %0 = gpuc.constant 1.0 : tensor<1024xf32> gpuc.yield %0 : tensor<1024xf32> }
  plan.kernel @start (%a: tensor<1024xf32>) {
    %0 = gpuc.slice %a starts [0] limits [8] strides [1] : (tensor<1024xf32>) -> tensor<8xf32>
    gpuc.yield %0 : tensor<8xf32>
  }
  plan.kernel @grad_norm.mul_sum (%g: tensor<8x4xf32>) {
    %0 = gpuc.mul %g, %g : tensor<8x4xf32>
    %1 = gpuc.sum %0 dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
    gpuc.yield %1 : tensor<8xf32>
  }
  plan.kernel @grad_norm.sum (%p: tensor<8xf32>) {
    %0 = gpuc.sum %p dims [0] : (tensor<8xf32>) -> tensor<f32>
    gpuc.yield %0 : tensor<f32>
  }
  plan.kernel @rows (%g: tensor<8x4xf32>) {
    %0 = gpuc.mul %g, %g : tensor<8x4xf32>
    %1 = gpuc.sum %0 dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
    gpuc.yield %1 : tensor<8xf32>
  }
  plan.kernel @read (%p: tensor<8xf32>) {
    %0 = gpuc.sqrt %p : tensor<8xf32>
    gpuc.yield %0 : tensor<8xf32>
  }
  plan.kernel @grad_norm.mul_sum_2 (%g: tensor<16x2x2xf32>) {
    %0 = gpuc.mul %g, %g : tensor<16x2x2xf32>
    %1 = gpuc.sum %0 dims [1, 2] : (tensor<16x2x2xf32>) -> tensor<16xf32>
    gpuc.yield %1 : tensor<16xf32>
  }
  plan.kernel @grad_norm.sum_2 (%p: tensor<16xf32>) {
    %0 = gpuc.sum %p dims [0] : (tensor<16xf32>) -> tensor<f32>
    gpuc.yield %0 : tensor<f32>
  }
  plan.program @train_step {
    %a = plan.use @a : tensor<8x4xf32> parameter
    %b = plan.use @b : tensor<16x2x2xf32> parameter
    %big = plan.buffer "big" : tensor<1024xf32> activation
    %3 = plan.buffer "n3" : tensor<8xf32> activation
    %p0 = plan.buffer "p0" : tensor<8xf32> activation
    %p1 = plan.buffer "p1" : tensor<16xf32> activation
    %p2 = plan.buffer "p2" : tensor<8xf32> activation
    %0 = plan.buffer "n0" : tensor<f32> activation
    %1 = plan.buffer "n1" : tensor<f32> activation
    %2 = plan.buffer "n2" : tensor<8xf32> activation
    plan.launch @make_big() -> (%big)
    plan.launch @start(%big) -> (%3)
    plan.launch @grad_norm.mul_sum(%a) -> (%p0)
    plan.launch @grad_norm.sum(%p0) -> (%0)
    plan.launch @rows(%a) -> (%p2)
    plan.launch @read(%p2) -> (%2)
    plan.launch @grad_norm.mul_sum_2(%b) -> (%p1)
    plan.launch @grad_norm.sum_2(%p1) -> (%1)
    plan.output "n0" %0
    plan.output "n1" %1
    plan.output "n2" %2
    plan.output "n3" %3
  }
}

// -----

// The update of @w2 would keep %g2 (4 KiB) while %g1 (4 KiB) is there: 8 KiB at once instead of 4.

// CHECK-LABEL: module @would_cost_memory
// CHECK:         plan.launch @sgd_update(
// CHECK-NEXT:    plan.launch @make
// CHECK-NEXT:    plan.launch @sgd_update(
module @would_cost_memory attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w1 : tensor<1024xf32> "parameter" init zeros
  plan.variable @w2 : tensor<1024xf32> "parameter" init zeros
  plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<1024xf32> gpuc.yield %0 : tensor<1024xf32> }
  plan.kernel @sgd_update (%g: tensor<1024xf32>, %w: tensor<1024xf32>) {
    %0 = gpuc.sub %w, %g : tensor<1024xf32>
    gpuc.yield %0 : tensor<1024xf32>
  }
  plan.program @train_step {
    %w1 = plan.use @w1 : tensor<1024xf32> parameter
    %w2 = plan.use @w2 : tensor<1024xf32> parameter
    %g1 = plan.buffer "g1" : tensor<1024xf32> gradient
    %g2 = plan.buffer "g2" : tensor<1024xf32> gradient
    plan.launch @make() -> (%g2)
    plan.launch @sgd_update(%g2, %w2) -> (%w2)
    plan.launch @make() -> (%g1)
    plan.launch @sgd_update(%g1, %w1) -> (%w1)
  }
}

// -----

// A launch stays before what reads the variable that it updates: here a kernel, which makes what the second one reads.

// CHECK-LABEL: module @dependent
// CHECK:         plan.launch @sgd_update(
// CHECK-NEXT:    plan.launch @twice(
// CHECK-NEXT:    plan.launch @sgd_update(
module @dependent attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w1 : tensor<16xf32> "parameter" init zeros
  plan.variable @w2 : tensor<16xf32> "parameter" init zeros
  plan.kernel @twice (%a: tensor<16xf32>) {
    %0 = gpuc.add %a, %a : tensor<16xf32>
    gpuc.yield %0 : tensor<16xf32>
  }
  plan.kernel @sgd_update (%g: tensor<16xf32>, %w: tensor<16xf32>) {
    %0 = gpuc.sub %w, %g : tensor<16xf32>
    gpuc.yield %0 : tensor<16xf32>
  }
  plan.program @train_step {
    %w1 = plan.use @w1 : tensor<16xf32> parameter
    %w2 = plan.use @w2 : tensor<16xf32> parameter
    %g = plan.buffer "g" : tensor<16xf32> gradient
    plan.launch @sgd_update(%w1, %w2) -> (%w2)
    plan.launch @twice(%w2) -> (%g)
    plan.launch @sgd_update(%g, %w1) -> (%w1)
  }
}

// -----

// What a repeat does in each iteration stays there, and so does what only writes variables, such as initialisation, or
// folds and updates at once.

// CHECK-LABEL: module @others
// CHECK-NOT:     gpuc.fused
// CHECK:         plan.program @init
// CHECK:           plan.launch @zero
// CHECK-NEXT:      plan.launch @zero
// CHECK:         plan.program @train_step
// CHECK:           plan.repeat 3
// CHECK-NEXT:        plan.launch @sgd_update
// CHECK-NEXT:        plan.launch @sgd_update
// CHECK:           plan.launch @sum_sgd_update
// CHECK-NEXT:      plan.launch @sum_sgd_update
module @others attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w1 : tensor<16xf32> "parameter" init zeros
  plan.variable @w2 : tensor<16xf32> "parameter" init zeros
  plan.variable @m : tensor<16x2xf32> "optimizer" init zeros
  plan.kernel @zero () { %0 = gpuc.constant 0.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
  plan.kernel @sgd_update (%w: tensor<16xf32>) {
    %0 = gpuc.add %w, %w : tensor<16xf32>
    gpuc.yield %0 : tensor<16xf32>
  }
  plan.kernel @sum_sgd_update (%w: tensor<16xf32>, %m: tensor<16x2xf32>) {
    %0 = gpuc.sum %m dims [1] : (tensor<16x2xf32>) -> tensor<16xf32>
    %1 = gpuc.add %w, %0 : tensor<16xf32>
    gpuc.yield %1 : tensor<16xf32>
  }
  plan.program @init {
    %w1 = plan.use @w1 : tensor<16xf32> parameter
    %w2 = plan.use @w2 : tensor<16xf32> parameter
    plan.launch @zero() -> (%w1)
    plan.launch @zero() -> (%w2)
  }
  plan.program @train_step {
    %w1 = plan.use @w1 : tensor<16xf32> parameter
    %w2 = plan.use @w2 : tensor<16xf32> parameter
    %m = plan.use @m : tensor<16x2xf32> optimizer
    plan.repeat 3 {
      plan.launch @sgd_update(%w1) -> (%w1)
      plan.launch @sgd_update(%w2) -> (%w2)
    }
    plan.launch @sum_sgd_update(%w1, %m) -> (%w1)
    plan.launch @sum_sgd_update(%w2, %m) -> (%w2)
  }
}

// -----

// The threads of a host have parts of long variables in their caches: an update of 288 KiB stays alone there. CUDA's is one
// launch less.

// CHECK-LABEL: module @long_on_host
// CHECK:         plan.launch @w.sgd_update(
// CHECK-NEXT:    plan.launch @w.sgd_update(
// CHECK-NEXT:    plan.launch @update.sgd_update(
// CHECK-NOT:     plan.launch
module @long_on_host attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w1 : tensor<24576xf32> "parameter" init zeros
  plan.variable @w2 : tensor<24576xf32> "parameter" init zeros
  plan.variable @b1 : tensor<16xf32> "parameter" init zeros
  plan.variable @b2 : tensor<16xf32> "parameter" init zeros
  plan.kernel @w.sgd_update (%g: tensor<24576xf32>, %w: tensor<24576xf32>) {
    %0 = gpuc.sub %w, %g : tensor<24576xf32>
    gpuc.yield %0 : tensor<24576xf32>
  }
  plan.kernel @b.sgd_update (%g: tensor<16xf32>, %w: tensor<16xf32>) {
    %0 = gpuc.sub %w, %g : tensor<16xf32>
    gpuc.yield %0 : tensor<16xf32>
  }
  plan.program @train_step {
    %w1 = plan.use @w1 : tensor<24576xf32> parameter
    %w2 = plan.use @w2 : tensor<24576xf32> parameter
    %b1 = plan.use @b1 : tensor<16xf32> parameter
    %b2 = plan.use @b2 : tensor<16xf32> parameter
    plan.launch @w.sgd_update(%w1, %w1) -> (%w1)
    plan.launch @b.sgd_update(%b1, %b1) -> (%b1)
    plan.launch @w.sgd_update(%w2, %w2) -> (%w2)
    plan.launch @b.sgd_update(%b2, %b2) -> (%b2)
  }
}

// -----

// CHECK-LABEL: module @long_on_cuda
// CHECK:         plan.launch @update.sgd_update(
// CHECK-NOT:     plan.launch
module @long_on_cuda attributes {plan.target = #plan.target<cuda, "sm_90">} {
  plan.variable @w1 : tensor<24576xf32> "parameter" init zeros
  plan.variable @w2 : tensor<24576xf32> "parameter" init zeros
  plan.variable @b1 : tensor<16xf32> "parameter" init zeros
  plan.variable @b2 : tensor<16xf32> "parameter" init zeros
  plan.kernel @w.sgd_update (%g: tensor<24576xf32>, %w: tensor<24576xf32>) {
    %0 = gpuc.sub %w, %g : tensor<24576xf32>
    gpuc.yield %0 : tensor<24576xf32>
  }
  plan.kernel @b.sgd_update (%g: tensor<16xf32>, %w: tensor<16xf32>) {
    %0 = gpuc.sub %w, %g : tensor<16xf32>
    gpuc.yield %0 : tensor<16xf32>
  }
  plan.program @train_step {
    %w1 = plan.use @w1 : tensor<24576xf32> parameter
    %w2 = plan.use @w2 : tensor<24576xf32> parameter
    %b1 = plan.use @b1 : tensor<16xf32> parameter
    %b2 = plan.use @b2 : tensor<16xf32> parameter
    plan.launch @w.sgd_update(%w1, %w1) -> (%w1)
    plan.launch @b.sgd_update(%b1, %b1) -> (%b1)
    plan.launch @w.sgd_update(%w2, %w2) -> (%w2)
    plan.launch @b.sgd_update(%b2, %b2) -> (%b2)
  }
}
