// RUN: gpuc-opt %s -split-input-file --gpuc-to-plan | FileCheck %s
// RUN: gpuc-opt %s -split-input-file --gpuc-to-plan --plan-order --plan-assign-streams --plan-place-buffers --plan-verify -o /dev/null

// Two chunks of three steps, from the last to the first. What goes out of each step is stacked (h): seven slots of 32 bytes serve
// both loops. A chunk has four of them, from its first on; it begins with its last one (slot 6 for the second chunk, slot 3 for
// the first), and the output is slots 0 to 5. Nothing is copied from chunk to chunk.

// CHECK-LABEL: module @stacked
// CHECK: %[[H:.*]] = plan.buffer "rnn.carry" : tensor<7x8xf32>
// CHECK: %[[INIT:.*]] = plan.view %[[H]][192] : tensor<8xf32>
// CHECK: %[[ALL:.*]] = plan.view %[[H]][0] : tensor<2x3x8xf32>
// CHECK: plan.fill %[[INIT]] with 0.0
// CHECK: plan.repeat 2 {
// CHECK: %[[CHUNK:.*]] = plan.view %[[H]][96] strides [-96] : tensor<4x8xf32>
// CHECK: plan.repeat 3 {
// CHECK-DAG: %[[READ:.*]] = plan.view %[[CHUNK]][96] strides [0, -32] : tensor<8xf32>
// CHECK-DAG: %[[WRITTEN:.*]] = plan.view %[[CHUNK]][64] strides [0, -32] : tensor<8xf32>
// CHECK: plan.launch @cell(%{{.*}}, %[[READ]]) -> (%[[WRITTEN]])
// CHECK-NOT: plan.copy
// CHECK: plan.launch @mean(%[[ALL]])
module @stacked {
  func.func @predict(%x: tensor<2x3x8xf32> {gpuc.name = "x"}) -> (tensor<f32> {gpuc.name = "y"}) {
    %zeros = gpuc.constant 0.0 : tensor<8xf32>
    %hn, %hs = gpuc.scan over(%x) carry(%zeros) reverse chunked : (tensor<2x3x8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<2x3x8xf32>) {
    ^bb0(%chunk: tensor<3x8xf32>, %c: tensor<8xf32>):
      %n, %ns = gpuc.scan over(%chunk) carry(%c) reverse : (tensor<3x8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<3x8xf32>) {
      ^bb0(%xi: tensor<8xf32>, %h: tensor<8xf32>):
        %k = gpuc.fused "cell" (%xi, %h) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
        ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
          %0 = gpuc.add %a, %b : tensor<8xf32>
          gpuc.yield %0 : tensor<8xf32>
        }
        gpuc.yield %k, %k : tensor<8xf32>, tensor<8xf32>
      } loc("rnn")
      gpuc.yield %n, %ns : tensor<8xf32>, tensor<3x8xf32>
    } loc("rnn")
    %y = gpuc.fused "mean" (%hs) : (tensor<2x3x8xf32>) -> tensor<f32> {
    ^bb0(%a: tensor<2x3x8xf32>):
      %0 = gpuc.mean %a dims [0, 1, 2] : (tensor<2x3x8xf32>) -> tensor<f32>
      gpuc.yield %0 : tensor<f32>
    }
    return %y : tensor<f32>
  }
}

// -----

// What is carried alone has one place, for both loops.

// CHECK-LABEL: module @single
// CHECK: %[[H:.*]] = plan.buffer "rnn.carry" : tensor<8xf32>
// CHECK: plan.repeat 2 {
// CHECK: plan.repeat 3 {
// CHECK: plan.launch @cell(%{{.*}}, %[[H]]) -> (%[[H]])
// CHECK-NOT: plan.copy
// CHECK: plan.launch @mean(%[[H]])
module @single {
  func.func @predict(%x: tensor<2x3x8xf32> {gpuc.name = "x"}) -> (tensor<f32> {gpuc.name = "y"}) {
    %zeros = gpuc.constant 0.0 : tensor<8xf32>
    %hn = gpuc.scan over(%x) carry(%zeros) chunked : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%chunk: tensor<3x8xf32>, %c: tensor<8xf32>):
      %n = gpuc.scan over(%chunk) carry(%c) : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<8xf32> {
      ^bb0(%xi: tensor<8xf32>, %h: tensor<8xf32>):
        %k = gpuc.fused "cell" (%xi, %h) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
        ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
          %0 = gpuc.add %a, %b : tensor<8xf32>
          gpuc.yield %0 : tensor<8xf32>
        }
        gpuc.yield %k : tensor<8xf32>
      } loc("rnn")
      gpuc.yield %n : tensor<8xf32>
    } loc("rnn")
    %y = gpuc.fused "mean" (%hn) : (tensor<8xf32>) -> tensor<f32> {
    ^bb0(%a: tensor<8xf32>):
      %0 = gpuc.mean %a dims [0] : (tensor<8xf32>) -> tensor<f32>
      gpuc.yield %0 : tensor<f32>
    }
    return %y : tensor<f32>
  }
}

// -----

// The chunk's first value is read again behind its steps: it stays, and they begin with a copy of it.

// CHECK-LABEL: module @read_again
// CHECK: plan.repeat 2 {
// CHECK: plan.copy
// CHECK: plan.repeat 3 {
// CHECK: plan.launch @both(
module @read_again {
  func.func @predict(%x: tensor<2x3x8xf32> {gpuc.name = "x"}) -> (tensor<2x8xf32> {gpuc.name = "y"}) {
    %zeros = gpuc.constant 0.0 : tensor<8xf32>
    %hn, %ys = gpuc.scan over(%x) carry(%zeros) chunked : (tensor<2x3x8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<2x8xf32>) {
    ^bb0(%chunk: tensor<3x8xf32>, %c: tensor<8xf32>):
      %n = gpuc.scan over(%chunk) carry(%c) : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<8xf32> {
      ^bb0(%xi: tensor<8xf32>, %h: tensor<8xf32>):
        %k = gpuc.fused "cell" (%xi, %h) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
        ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
          %0 = gpuc.add %a, %b : tensor<8xf32>
          gpuc.yield %0 : tensor<8xf32>
        }
        gpuc.yield %k : tensor<8xf32>
      } loc("rnn")
      %both = gpuc.fused "both" (%n, %c) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
      ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
        %0 = gpuc.add %a, %b : tensor<8xf32>
        gpuc.yield %0 : tensor<8xf32>
      }
      gpuc.yield %n, %both : tensor<8xf32>, tensor<8xf32>
    } loc("rnn")
    return %ys : tensor<2x8xf32>
  }
}
