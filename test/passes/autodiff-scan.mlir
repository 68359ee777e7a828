// RUN: gpuc-opt %s --gpuc-autodiff --canonicalize --cse | FileCheck %s

// The gradient of a loop is a loop in the other direction. tanh keeps its result: an output that is there already.
// The products' operands are the input, which is read again, the capture, and what came into each iteration: one more
// output. The weights' cotangents are summed up in carries; the last stack, of x's cotangents, is what is asked for.

// CHECK-LABEL: func.func @d_rnn(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<5x2x3xf64>, %[[H0:[a-z0-9]+]]: tensor<2x4xf64>, %[[W:[a-z0-9]+]]: tensor<3x4xf64>, %[[U:[a-z0-9]+]]: tensor<4x4xf64>)
// CHECK-DAG: %[[ONES:.*]] = gpuc.constant 1.0 : tensor<5x2x4xf64>
// CHECK: %[[F:.*]]:3 = gpuc.scan over(%[[X]]) carry(%[[H0]]) captures(%[[W]], %[[U]]) :
// CHECK-SAME: -> (tensor<2x4xf64>, tensor<5x2x4xf64>, tensor<5x2x4xf64>)
// CHECK: ^bb0(%{{.*}}: tensor<2x3xf64>, %[[H:.*]]: tensor<2x4xf64>, %{{.*}}: tensor<3x4xf64>, %{{.*}}: tensor<4x4xf64>):
// CHECK: gpuc.yield %[[N:.*]], %[[N]], %[[H]]
// CHECK: %[[B:.*]]:3 = gpuc.scan over(%[[ONES]], %[[F]]#1, %[[F]]#2) carry(%{{.*}}, %{{.*}}) captures(%[[U]], %[[W]]) reverse :
// CHECK-SAME: -> (tensor<2x4xf64>, tensor<4x4xf64>, tensor<5x2x3xf64>)
// CHECK: return %[[B]]#2, %[[B]]#1
func.func @rnn(%x: tensor<5x2x3xf64>, %h0: tensor<2x4xf64>, %w: tensor<3x4xf64>, %u: tensor<4x4xf64>) -> tensor<f64> {
  %hn, %hs = gpuc.scan over(%x) carry(%h0) captures(%w, %u)
      : (tensor<5x2x3xf64>, tensor<2x4xf64>, tensor<3x4xf64>, tensor<4x4xf64>) -> (tensor<2x4xf64>, tensor<5x2x4xf64>) {
  ^bb0(%xi: tensor<2x3xf64>, %h: tensor<2x4xf64>, %wi: tensor<3x4xf64>, %ui: tensor<4x4xf64>):
    %0 = gpuc.matmul %xi, %wi : (tensor<2x3xf64>, tensor<3x4xf64>) -> tensor<2x4xf64>
    %1 = gpuc.matmul %h, %ui : (tensor<2x4xf64>, tensor<4x4xf64>) -> tensor<2x4xf64>
    %2 = gpuc.add %0, %1 : tensor<2x4xf64>
    %3 = gpuc.tanh %2 : tensor<2x4xf64>
    gpuc.yield %3, %3 : tensor<2x4xf64>, tensor<2x4xf64>
  } loc("rnn")
  %s = gpuc.sum %hs dims [0, 1, 2] : (tensor<5x2x4xf64>) -> tensor<f64>
  return %s : tensor<f64>
}
func.func @d_rnn(%x: tensor<5x2x3xf64>, %h0: tensor<2x4xf64>, %w: tensor<3x4xf64>, %u: tensor<4x4xf64>)
    -> (tensor<5x2x3xf64>, tensor<4x4xf64>) {
  %s, %dx, %du = gpuc.gradient @rnn(%x, %h0, %w, %u) wrt arguments [0, 3]
      : (tensor<5x2x3xf64>, tensor<2x4xf64>, tensor<3x4xf64>, tensor<4x4xf64>) -> (tensor<f64>, tensor<5x2x3xf64>, tensor<4x4xf64>)
  return %dx, %du : tensor<5x2x3xf64>, tensor<4x4xf64>
}

// With recompute only what is carried is stacked, and tanh is computed again in the backward loop: the output of its
// own is the user's.
// CHECK-LABEL: func.func @d_again(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<5x4xf64>, %[[H0:[a-z0-9]+]]: tensor<4xf64>)
// CHECK: %[[F:.*]]:2 = gpuc.scan over(%[[X]]) carry(%[[H0]]) recompute :
// CHECK-SAME: -> (tensor<4xf64>, tensor<5x4xf64>)
// CHECK: ^bb0(%{{.*}}: tensor<4xf64>, %[[H:.*]]: tensor<4xf64>):
// CHECK: gpuc.yield %{{.*}}, %[[H]]
// CHECK: gpuc.scan over(%[[X]], %[[F]]#1) carry(%{{.*}}) reverse :
// CHECK: gpuc.tanh
// CHECK: gpuc.yield
func.func @again(%x: tensor<5x4xf64>, %h0: tensor<4xf64>) -> tensor<f64> {
  %hn = gpuc.scan over(%x) carry(%h0) recompute : (tensor<5x4xf64>, tensor<4xf64>) -> tensor<4xf64> {
  ^bb0(%xi: tensor<4xf64>, %h: tensor<4xf64>):
    %0 = gpuc.mul %xi, %h : tensor<4xf64>
    %1 = gpuc.tanh %0 : tensor<4xf64>
    gpuc.yield %1 : tensor<4xf64>
  }
  %s = gpuc.sum %hn dims [0] : (tensor<4xf64>) -> tensor<f64>
  return %s : tensor<f64>
}
func.func @d_again(%x: tensor<5x4xf64>, %h0: tensor<4xf64>) -> tensor<4xf64> {
  %s, %dh = gpuc.gradient @again(%x, %h0) wrt arguments [1]
      : (tensor<5x4xf64>, tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
  return %dh : tensor<4xf64>
}

// What does not vary has no part in it: by h0 alone, there is nothing to compute for the other carry, nor for w.
// CHECK-LABEL: func.func @d_apart(
// CHECK: gpuc.scan count 3 carry(%{{.*}}) captures(%{{.*}}) reverse :
// CHECK-NOT: gpuc.cos
// CHECK: return
func.func @apart(%h0: tensor<4xf64>, %g0: tensor<4xf64>, %w: tensor<4xf64>) -> tensor<f64> {
  %hn, %gn = gpuc.scan count 3 carry(%h0, %g0) captures(%w)
      : (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>) {
  ^bb0(%h: tensor<4xf64>, %g: tensor<4xf64>, %v: tensor<4xf64>):
    %0 = gpuc.mul %h, %v : tensor<4xf64>
    %1 = gpuc.sin %g : tensor<4xf64>
    gpuc.yield %0, %1 : tensor<4xf64>, tensor<4xf64>
  }
  %0 = gpuc.add %hn, %gn : tensor<4xf64>
  %s = gpuc.sum %0 dims [0] : (tensor<4xf64>) -> tensor<f64>
  return %s : tensor<f64>
}
func.func @d_apart(%h0: tensor<4xf64>, %g0: tensor<4xf64>, %w: tensor<4xf64>) -> tensor<4xf64> {
  %s, %dh = gpuc.gradient @apart(%h0, %g0, %w) wrt arguments [0]
      : (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
  return %dh : tensor<4xf64>
}
