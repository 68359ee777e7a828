// RUN: gpuc-opt %s --gpuc-checkpoint=policy=full | FileCheck %s

// Loops over 2 chunks of 3 steps: the forward one stacks, for the backward one alone, what each step computes (%act). Not kept,
// it is no output of the forward loop any more, nor of the loop over a chunk's steps. In its place the former stacks what was
// carried into each chunk, from which, and from the inputs, the backward loop computes the chunk's steps again. What others
// read (%ys) stays as it is, and the copy does not stack it.
//
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME:  %[[X:[a-z0-9]+]]: tensor<2x3x4xf32>
// CHECK:       %[[W:.*]] = gpuc.read @w
// CHECK:       %[[F:.*]]:3 = gpuc.scan over(%[[X]]) carry(%{{.*}}) captures(%[[W]]) chunked
// CHECK-SAME:    -> (tensor<4xf32>, tensor<2x3x4xf32>, tensor<2x4xf32>)
// CHECK-NEXT:  ^bb0(%{{.*}}: tensor<3x4xf32>, %[[CARRIED:.*]]: tensor<4xf32>,
// CHECK:         %[[STEPS:.*]]:2 = gpuc.scan {{.*}} -> (tensor<4xf32>, tensor<3x4xf32>)
// CHECK-NOT:     gpuc.recomputed
// CHECK:         gpuc.yield %[[STEPS]]#0, %[[STEPS]]#1, %[[CARRIED]]
// CHECK:       gpuc.fused "loss"(%[[F]]#1)
// CHECK:       gpuc.scan over(%{{.*}}, %[[X]], %[[F]]#2) carry(%{{.*}}) captures(%[[W]]) reverse chunked
// CHECK-NEXT:  ^bb0(%{{.*}}: tensor<3x4xf32>, %[[CHUNK:.*]]: tensor<3x4xf32>, %[[INTO:.*]]: tensor<4xf32>, %{{.*}}: tensor<4xf32>, %[[CAPTURED:.*]]: tensor<4xf32>):
// CHECK-NEXT:    %[[AGAIN:.*]]:2 = gpuc.scan over(%[[CHUNK]]) carry(%[[INTO]]) captures(%[[CAPTURED]]) {gpuc.recomputed}
// CHECK-SAME:      -> (tensor<4xf32>, tensor<3x4xf32>)
// CHECK:         gpuc.scan over(%{{.*}}, %[[AGAIN]]#1) carry(%{{.*}}) reverse :
// CHECK-NOT:   gpuc.recomputed
module {
  gpuc.variable @w : tensor<4xf32> init zeros
  func.func @train_step(%x: tensor<2x3x4xf32> {gpuc.name = "x"}) -> (tensor<f32> {gpuc.name = "loss_sum"}) {
    %zero = gpuc.constant 0.0 : tensor<4xf32>
    %w = gpuc.read @w : tensor<4xf32>
    %h, %ys, %acts = gpuc.scan over(%x) carry(%zero) captures(%w) chunked
        : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
    ^bb0(%chunk: tensor<3x4xf32>, %c: tensor<4xf32>, %v: tensor<4xf32>):
      %next, %y, %act = gpuc.scan over(%chunk) carry(%c) captures(%v)
          : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) {
      ^bb0(%a: tensor<4xf32>, %d: tensor<4xf32>, %u: tensor<4xf32>):
        %k:2 = gpuc.fused "cell"(%a, %d, %u) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
        ^bb0(%p: tensor<4xf32>, %q: tensor<4xf32>, %r: tensor<4xf32>):
          %0 = gpuc.mul %q, %r : tensor<4xf32>
          %1 = gpuc.add %0, %p : tensor<4xf32>
          %2 = gpuc.tanh %1 : tensor<4xf32>
          gpuc.yield %1, %2 : tensor<4xf32>, tensor<4xf32>
        }
        gpuc.yield %k#1, %k#1, %k#0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
      }
      gpuc.yield %next, %y, %act : tensor<4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
    } loc("rnn")
    %loss = gpuc.fused "loss"(%ys) : (tensor<2x3x4xf32>) -> tensor<f32> {
    ^bb0(%in: tensor<2x3x4xf32>):
      %0 = gpuc.sum %in dims [0, 1, 2] : (tensor<2x3x4xf32>) -> tensor<f32>
      gpuc.yield %0 : tensor<f32>
    } loc("loss")
    %dys = gpuc.fused "seed"(%loss) : (tensor<f32>) -> tensor<2x3x4xf32> {
    ^bb0(%in: tensor<f32>):
      %0 = gpuc.broadcast %in dims [] : tensor<f32> to tensor<2x3x4xf32>
      gpuc.yield %0 : tensor<2x3x4xf32>
    } loc(fused<"backward">["loss"])
    %dw = gpuc.scan over(%dys, %acts) carry(%zero) reverse chunked
        : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%dy: tensor<3x4xf32>, %act: tensor<3x4xf32>, %sum: tensor<4xf32>):
      %0 = gpuc.scan over(%dy, %act) carry(%sum) reverse : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<4xf32>) -> tensor<4xf32> {
      ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>, %s: tensor<4xf32>):
        %k = gpuc.fused "d_cell"(%a, %b, %s) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
        ^bb0(%p: tensor<4xf32>, %q: tensor<4xf32>, %r: tensor<4xf32>):
          %1 = gpuc.mul %p, %q : tensor<4xf32>
          %2 = gpuc.add %1, %r : tensor<4xf32>
          gpuc.yield %2 : tensor<4xf32>
        }
        gpuc.yield %k : tensor<4xf32>
      }
      gpuc.yield %0 : tensor<4xf32>
    } loc(fused<"backward">["rnn"])
    gpuc.assign @w, %dw : tensor<4xf32> loc(fused<"backward">["rnn"])
    return %loss : tensor<f32>
  }
}
