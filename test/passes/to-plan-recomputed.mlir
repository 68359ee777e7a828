// RUN: gpuc-opt %s --gpuc-to-plan | FileCheck %s

// What is computed again from a variable's old value stays where it stands: the new value waits in a buffer of its own. A
// command of what is computed again says so.

// CHECK:      plan.launch @power(%[[U:.*]]) -> (%[[SIGMA:.*]], %[[NEW:.*]])
// CHECK-NEXT: plan.launch @use(%[[SIGMA]])
// CHECK-NEXT: plan.launch @power{{.*}}(%[[U]]) -> (%[[AGAIN:.*]], %{{.*}}) {gpuc.recomputed}
// CHECK-NEXT: plan.launch @use{{.*}}(%[[AGAIN]])
// CHECK-NEXT: plan.launch @u.copy(%[[NEW]]) -> (%[[U]])
module attributes {gpuc.fused_for = "host"} {
  gpuc.variable @u : tensor<8xf32> init zeros
  func.func @train_step() -> (tensor<8xf32> {gpuc.name = "loss_sum"}, tensor<8xf32>) {
    %u = gpuc.read @u : tensor<8xf32>
    %power:2 = gpuc.fused "power"(%u) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    ^bb0(%in: tensor<8xf32>):
      %0 = gpuc.exp %in : tensor<8xf32>
      %1 = gpuc.neg %in : tensor<8xf32>
      gpuc.yield %0, %1 : tensor<8xf32>, tensor<8xf32>
    }
    %loss = gpuc.fused "use"(%power#0) : (tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%in: tensor<8xf32>):
      %0 = gpuc.exp %in : tensor<8xf32>
      gpuc.yield %0 : tensor<8xf32>
    }
    %again:2 = gpuc.fused "power"(%u) {gpuc.recomputed} : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    ^bb0(%in: tensor<8xf32>):
      %0 = gpuc.exp %in : tensor<8xf32>
      %1 = gpuc.neg %in : tensor<8xf32>
      gpuc.yield %0, %1 : tensor<8xf32>, tensor<8xf32>
    }
    %other = gpuc.fused "use"(%again#0) : (tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%in: tensor<8xf32>):
      %0 = gpuc.exp %in : tensor<8xf32>
      gpuc.yield %0 : tensor<8xf32>
    }
    gpuc.assign @u, %power#1 : tensor<8xf32>
    return %loss, %other : tensor<8xf32>, tensor<8xf32>
  }
}
