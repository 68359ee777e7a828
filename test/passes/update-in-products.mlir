// RUN: gpuc-opt %s -split-input-file --plan-update-in-products | FileCheck %s

// The weight is read once more behind its gradient, so the product moves down to the update. Its kernel gets the gradient
// first; of two equal buffers of 4 MB the step would have had both.

// CHECK-LABEL: module @down
// CHECK:         plan.kernel @w.sgd_update (%[[G:.*]]: tensor<128x64xf32>, %[[W:.*]]: tensor<128x64xf32>) {
// CHECK-NEXT:      %[[NEW:.*]] = gpuc.sub %[[W]], %[[G]]
// CHECK:         plan.program @train_step
// CHECK-NOT:       plan.buffer "g"
// CHECK:           plan.matmul %[[DY:.*]], %[[WEIGHT:.*]] -> %{{.*}} : f32
// CHECK-NEXT:      plan.matmul transpose %[[DY]], %{{.*}} update @w.sgd_update(%[[WEIGHT]]) -> (%[[WEIGHT]]) : f32 batch 1 m 128 n 64 k 8
// CHECK-NOT:       plan.launch
module @down attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w : tensor<128x64xf32> "parameter" init zeros
  plan.kernel @w.sgd_update (%w: tensor<128x64xf32>, %g: tensor<128x64xf32>) {
    %0 = gpuc.sub %w, %g : tensor<128x64xf32>
    gpuc.yield %0 : tensor<128x64xf32>
  }
  plan.program @train_step {
    %w = plan.use @w : tensor<128x64xf32> parameter
    %x = plan.input "x" : tensor<8x64xf32>
    %dy = plan.input "dy" : tensor<8x128xf32>
    %g = plan.buffer "g" : tensor<128x64xf32> gradient
    %dx = plan.buffer "dx" : tensor<8x64xf32> activation
    plan.output "dx" %dx
    plan.matmul transpose %dy, %x -> %g : f32 batch 1 m 128 n 64 k 8
    plan.matmul %dy, %w -> %dx : f32 batch 1 m 8 n 64 k 128
    plan.launch @w.sgd_update(%w, %g) -> (%w)
  }
}

// -----

// Nothing but another kernel stands between: the update moves up, and leaves the squares to who wants them.

// CHECK-LABEL: module @up
// CHECK:         plan.matmul transpose %{{.*}}, %{{.*}} squares %[[SQUARES:.*]] update @w.sgd_update(
// CHECK-NEXT:    plan.launch @sum(%[[SQUARES]])
module @up attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w : tensor<128x64xf32> "parameter" init zeros
  plan.kernel @w.sgd_update (%w: tensor<128x64xf32>, %g: tensor<128x64xf32>) {
    %0 = gpuc.sub %w, %g : tensor<128x64xf32>
    gpuc.yield %0 : tensor<128x64xf32>
  }
  plan.kernel @sum (%squares: tensor<2xf32>) {
    %0 = gpuc.sum %squares dims [0] : (tensor<2xf32>) -> tensor<f32>
    gpuc.yield %0 : tensor<f32>
  }
  plan.program @train_step {
    %w = plan.use @w : tensor<128x64xf32> parameter
    %x = plan.input "x" : tensor<8x64xf32>
    %dy = plan.input "dy" : tensor<8x128xf32>
    %g = plan.buffer "g" : tensor<128x64xf32> gradient
    %squares = plan.buffer "squares" : tensor<2xf32> activation
    %norm = plan.buffer "norm" : tensor<f32> activation
    plan.output "norm" %norm
    plan.matmul transpose %dy, %x -> %g squares %squares : f32 batch 1 m 128 n 64 k 8
    plan.launch @sum(%squares) -> (%norm)
    plan.launch @w.sgd_update(%w, %g) -> (%w)
  }
}

// -----

// Down again, past who wants the squares at once, who moves with it. Not where the update needs what he makes.

// CHECK-LABEL: module @along
// CHECK:         plan.launch @scale
// CHECK-NEXT:    plan.matmul transpose %{{.*}}, %{{.*}} squares %[[SQUARES:.*]] update @w.scaled_update(
// CHECK-NEXT:    plan.launch @sum(%[[SQUARES]]) -> (%[[NORM:.*]])
// CHECK-NEXT:    plan.launch @root(%[[NORM]])
// CHECK-NEXT:    plan.matmul transpose %{{.*}}, %{{.*}} -> %[[G:.*]] squares %[[SQUARES2:.*]] : f32
// CHECK-NEXT:    plan.launch @sum(%[[SQUARES2]]) -> (%[[NORM2:.*]])
// CHECK-NEXT:    plan.launch @v.scaled_update(%{{.*}}, %[[G]], %[[NORM2]])
module @along attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w : tensor<128x64xf32> "parameter" init zeros
  plan.variable @v : tensor<128x64xf32> "parameter" init zeros
  plan.kernel @w.scaled_update (%w: tensor<128x64xf32>, %g: tensor<128x64xf32>, %s: tensor<f32>) {
    %0 = gpuc.broadcast %s dims [] : tensor<f32> to tensor<128x64xf32>
    %1 = gpuc.mul %g, %0 : tensor<128x64xf32>
    %2 = gpuc.sub %w, %1 : tensor<128x64xf32>
    gpuc.yield %2 : tensor<128x64xf32>
  }
  plan.kernel @v.scaled_update (%w: tensor<128x64xf32>, %g: tensor<128x64xf32>, %s: tensor<f32>) {
    %0 = gpuc.broadcast %s dims [] : tensor<f32> to tensor<128x64xf32>
    %1 = gpuc.mul %g, %0 : tensor<128x64xf32>
    %2 = gpuc.sub %w, %1 : tensor<128x64xf32>
    gpuc.yield %2 : tensor<128x64xf32>
  }
  plan.kernel @sum (%squares: tensor<2xf32>) {
    %0 = gpuc.sum %squares dims [0] : (tensor<2xf32>) -> tensor<f32>
    gpuc.yield %0 : tensor<f32>
  }
  plan.kernel @root (%a: tensor<f32>) { %0 = gpuc.sqrt %a : tensor<f32> gpuc.yield %0 : tensor<f32> }
  plan.kernel @scale () { %0 = gpuc.constant 0.1 : tensor<f32> gpuc.yield %0 : tensor<f32> }
  plan.program @train_step {
    %w = plan.use @w : tensor<128x64xf32> parameter
    %v = plan.use @v : tensor<128x64xf32> parameter
    %x = plan.input "x" : tensor<8x64xf32>
    %dy = plan.input "dy" : tensor<8x128xf32>
    %g = plan.buffer "g" : tensor<128x64xf32> gradient
    %h = plan.buffer "h" : tensor<128x64xf32> gradient
    %squares = plan.buffer "squares" : tensor<2xf32> activation
    %squares2 = plan.buffer "squares2" : tensor<2xf32> activation
    %sum = plan.buffer "sum" : tensor<f32> activation
    %sum2 = plan.buffer "sum2" : tensor<f32> activation
    %norm = plan.buffer "norm" : tensor<f32> activation
    %scale = plan.buffer "scale" : tensor<f32> activation
    plan.output "norm" %norm
    plan.matmul transpose %dy, %x -> %g squares %squares : f32 batch 1 m 128 n 64 k 8
    plan.launch @sum(%squares) -> (%sum)
    plan.launch @root(%sum) -> (%norm)
    plan.launch @scale() -> (%scale)
    plan.launch @w.scaled_update(%w, %g, %scale) -> (%w)
    plan.matmul transpose %dy, %x -> %h squares %squares2 : f32 batch 1 m 128 n 64 k 8
    plan.launch @sum(%squares2) -> (%sum2)
    plan.launch @v.scaled_update(%v, %h, %sum2) -> (%v)
  }
}

// -----

// Two launches share the kernel, of which one is of a gradient that no product makes: the other gets a kernel of its own.

// CHECK-LABEL: module @shared
// CHECK-DAG:     plan.kernel @sgd_update (%{{.*}}: tensor<128x64xf32>, %[[G:.*]]: tensor<128x64xf32>)
// CHECK-DAG:     plan.kernel @sgd_update_0 (
// CHECK:         plan.matmul transpose %{{.*}}, %{{.*}} update @sgd_update_0(
// CHECK:         plan.launch @sgd_update(
module @shared attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w : tensor<128x64xf32> "parameter" init zeros
  plan.variable @v : tensor<128x64xf32> "parameter" init zeros
  plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<128x64xf32> gpuc.yield %0 : tensor<128x64xf32> }
  plan.kernel @sgd_update (%w: tensor<128x64xf32>, %g: tensor<128x64xf32>) {
    %0 = gpuc.sub %w, %g : tensor<128x64xf32>
    gpuc.yield %0 : tensor<128x64xf32>
  }
  plan.program @train_step {
    %w = plan.use @w : tensor<128x64xf32> parameter
    %v = plan.use @v : tensor<128x64xf32> parameter
    %x = plan.input "x" : tensor<8x64xf32>
    %dy = plan.input "dy" : tensor<8x128xf32>
    %g = plan.buffer "g" : tensor<128x64xf32> gradient
    %h = plan.buffer "h" : tensor<128x64xf32> gradient
    plan.matmul transpose %dy, %x -> %g : f32 batch 1 m 128 n 64 k 8
    plan.launch @sgd_update(%w, %g) -> (%w)
    plan.launch @make() -> (%h)
    plan.launch @sgd_update(%v, %h) -> (%v)
  }
}

// -----

// To move down, the product would keep %dy and %x until where the peak is, which are larger than what it makes.

// CHECK-LABEL: module @peak
// CHECK-NOT:     update @
// CHECK:         plan.launch @w.sgd_update
module @peak attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w : tensor<64x64xf32> "parameter" init zeros
  plan.kernel @make_x () { %0 = gpuc.constant 1.0 : tensor<800x64xf32> gpuc.yield %0 : tensor<800x64xf32> }
  plan.kernel @make_big () { %0 = gpuc.constant 1.0 : tensor<2000x64xf32> gpuc.yield %0 : tensor<2000x64xf32> }
  plan.kernel @use (%a: tensor<2000x64xf32>, %w: tensor<64x64xf32>) {
    %0 = gpuc.slice %a starts [0, 0] limits [64, 64] strides [1, 1] : (tensor<2000x64xf32>) -> tensor<64x64xf32>
    %1 = gpuc.add %0, %w : tensor<64x64xf32>
    gpuc.yield %1 : tensor<64x64xf32>
  }
  plan.kernel @w.sgd_update (%w: tensor<64x64xf32>, %g: tensor<64x64xf32>) {
    %0 = gpuc.sub %w, %g : tensor<64x64xf32>
    gpuc.yield %0 : tensor<64x64xf32>
  }
  plan.program @train_step {
    %w = plan.use @w : tensor<64x64xf32> parameter
    %x = plan.buffer "x" : tensor<800x64xf32> activation
    %big = plan.buffer "big" : tensor<2000x64xf32> activation
    %used = plan.buffer "used" : tensor<64x64xf32> activation
    %g = plan.buffer "g" : tensor<64x64xf32> gradient
    plan.output "used" %used
    plan.launch @make_x() -> (%x)
    plan.matmul transpose %x, %x -> %g : f32 batch 1 m 64 n 64 k 800
    plan.launch @make_big() -> (%big)
    plan.launch @use(%big, %w) -> (%used)
    plan.launch @w.sgd_update(%w, %g) -> (%w)
  }
}

// -----

// What somebody else reads is stored: as an output, or for its norm. So is what has 16 bits, and what is small.

// CHECK-LABEL: module @whole
// CHECK-NOT:     update @
module @whole attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w : tensor<128x64xf32> "parameter" init zeros
  plan.variable @h : tensor<128x64xbf16> "parameter" init zeros
  plan.variable @s : tensor<32x64xf32> "parameter" init zeros
  plan.kernel @w.update (%w: tensor<128x64xf32>, %g: tensor<128x64xf32>) {
    %0 = gpuc.sub %w, %g : tensor<128x64xf32>
    gpuc.yield %0 : tensor<128x64xf32>
  }
  plan.kernel @h.update (%w: tensor<128x64xbf16>, %g: tensor<128x64xbf16>) {
    %0 = gpuc.sub %w, %g : tensor<128x64xbf16>
    gpuc.yield %0 : tensor<128x64xbf16>
  }
  plan.kernel @s.update (%w: tensor<32x64xf32>, %g: tensor<32x64xf32>) {
    %0 = gpuc.sub %w, %g : tensor<32x64xf32>
    gpuc.yield %0 : tensor<32x64xf32>
  }
  plan.program @train_step {
    %w = plan.use @w : tensor<128x64xf32> parameter
    %h = plan.use @h : tensor<128x64xbf16> parameter
    %s = plan.use @s : tensor<32x64xf32> parameter
    %x = plan.input "x" : tensor<8x64xf32>
    %dy = plan.input "dy" : tensor<8x128xf32>
    %xh = plan.input "xh" : tensor<8x64xbf16>
    %dyh = plan.input "dyh" : tensor<8x128xbf16>
    %dys = plan.input "dys" : tensor<8x32xf32>
    %g = plan.buffer "g" : tensor<128x64xf32> gradient
    %gh = plan.buffer "gh" : tensor<128x64xbf16> gradient
    %gs = plan.buffer "gs" : tensor<32x64xf32> gradient
    plan.output "g" %g
    plan.matmul transpose %dy, %x -> %g : f32 batch 1 m 128 n 64 k 8
    plan.launch @w.update(%w, %g) -> (%w)
    plan.matmul transpose %dyh, %xh -> %gh : bf16 batch 1 m 128 n 64 k 8
    plan.launch @h.update(%h, %gh) -> (%h)
    plan.matmul transpose %dys, %x -> %gs : f32 batch 1 m 32 n 64 k 8
    plan.launch @s.update(%s, %gs) -> (%s)
  }
}

// -----

// w - a · w: each tile of the product reads what other tiles would have written.

// CHECK-LABEL: module @factor
// CHECK:         plan.matmul %{{.*}}, %[[W:.*]] -> %[[G:.*]] : f32
// CHECK-NEXT:    plan.launch @w.update(%[[W]], %[[G]]) -> (%[[W]])
module @factor attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w : tensor<128x64xf32> "parameter" init zeros
  plan.kernel @w.update (%w: tensor<128x64xf32>, %g: tensor<128x64xf32>) {
    %0 = gpuc.sub %w, %g : tensor<128x64xf32>
    gpuc.yield %0 : tensor<128x64xf32>
  }
  plan.program @train_step {
    %w = plan.use @w : tensor<128x64xf32> parameter
    %a = plan.input "a" : tensor<128x128xf32>
    %g = plan.buffer "g" : tensor<128x64xf32> gradient
    plan.matmul %a, %w -> %g : f32 batch 1 m 128 n 64 k 128
    plan.launch @w.update(%w, %g) -> (%w)
  }
}

// -----

// A filter's gradient likewise, with its workspace and its squares. Not in f64, whose tiles the host does not hand on.

// CHECK-LABEL: module @filter
// CHECK:         plan.conv  input_gradient
// CHECK-NEXT:    plan.conv  filter_gradient %[[DY:.*]], %[[X:.*]] workspace %[[SPACE:.*]] squares %[[SQUARES:.*]] update @w.sgd_update(%[[W:.*]]) -> (%[[W]]) : f32 batch 2
// CHECK-NEXT:    plan.launch @sum(%[[SQUARES]])
// CHECK-NEXT:    plan.conv  filter_gradient %{{.*}}, %{{.*}} -> %[[H:.*]] workspace
// CHECK-NEXT:    plan.launch @v.sgd_update(%{{.*}}, %[[H]])
module @filter attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w : tensor<64x32x3x3xf32> "parameter" init zeros
  plan.variable @v : tensor<64x32x3x3xf64> "parameter" init zeros
  plan.kernel @w.sgd_update (%w: tensor<64x32x3x3xf32>, %g: tensor<64x32x3x3xf32>) {
    %0 = gpuc.sub %w, %g : tensor<64x32x3x3xf32>
    gpuc.yield %0 : tensor<64x32x3x3xf32>
  }
  plan.kernel @v.sgd_update (%w: tensor<64x32x3x3xf64>, %g: tensor<64x32x3x3xf64>) {
    %0 = gpuc.sub %w, %g : tensor<64x32x3x3xf64>
    gpuc.yield %0 : tensor<64x32x3x3xf64>
  }
  plan.kernel @sum (%squares: tensor<1xf32>) {
    %0 = gpuc.sum %squares dims [0] : (tensor<1xf32>) -> tensor<f32>
    gpuc.yield %0 : tensor<f32>
  }
  plan.program @train_step {
    %w = plan.use @w : tensor<64x32x3x3xf32> parameter
    %v = plan.use @v : tensor<64x32x3x3xf64> parameter
    %x = plan.input "x" : tensor<2x32x4x4xf32>
    %dy = plan.input "dy" : tensor<2x64x4x4xf32>
    %x2 = plan.input "x2" : tensor<2x32x4x4xf64>
    %dy2 = plan.input "dy2" : tensor<2x64x4x4xf64>
    %g = plan.buffer "g" : tensor<64x32x3x3xf32> gradient
    %h = plan.buffer "h" : tensor<64x32x3x3xf64> gradient
    %dx = plan.buffer "dx" : tensor<2x32x4x4xf32> activation
    %space = plan.buffer "space" : tensor<12288xi8> workspace
    %space2 = plan.buffer "space2" : tensor<24576xi8> workspace
    %squares = plan.buffer "squares" : tensor<1xf32> activation
    %norm = plan.buffer "norm" : tensor<f32> activation
    plan.output "dx" %dx
    plan.output "norm" %norm
    plan.conv filter_gradient %dy, %x -> %g workspace %space squares %squares : f32 batch 2 input [32, 4, 4] filter [64, 32, 3, 3] output [64, 4, 4] strides [1, 1] padding [1, 1, 1, 1] dilation [1, 1] groups 1
    plan.launch @sum(%squares) -> (%norm)
    plan.conv input_gradient %dy, %w -> %dx : f32 batch 2 input [32, 4, 4] filter [64, 32, 3, 3] output [64, 4, 4] strides [1, 1] padding [1, 1, 1, 1] dilation [1, 1] groups 1
    plan.launch @w.sgd_update(%w, %g) -> (%w)
    plan.conv filter_gradient %dy2, %x2 -> %h workspace %space2 : f64 batch 2 input [32, 4, 4] filter [64, 32, 3, 3] output [64, 4, 4] strides [1, 1] padding [1, 1, 1, 1] dilation [1, 1] groups 1
    plan.launch @v.sgd_update(%v, %h) -> (%v)
  }
}
