// RUN: gpuc-opt %s --gpuc-to-plan | FileCheck %s

// A counter that gradients read is copied at the end: what else is computed beside its new value, of which the optimizer
// waits for a correction, need not wait for the last gradient.

// CHECK-LABEL: plan.program @train_step
// CHECK:         plan.launch @count(%[[STEP:.*]]) -> (%[[NEW:.*]], %[[CORRECTION:.*]])
// CHECK-NEXT:    plan.launch @update(%{{.*}}, %[[CORRECTION]])
// CHECK-NEXT:    plan.launch @dropout(%[[STEP]])
// CHECK-NEXT:    plan.launch @step.copy(%[[NEW]]) -> (%[[STEP]])
module attributes {gpuc.fused_for = "host"} {
  gpuc.variable @step : tensor<i64> init zeros
  gpuc.variable @w : tensor<f32> init zeros
  func.func @train_step() -> (tensor<f32> {gpuc.name = "loss_sum"}) {
    %step = gpuc.read @step : tensor<i64>
    %w = gpuc.read @w : tensor<f32>
    %next:2 = gpuc.fused "count"(%step) : (tensor<i64>) -> (tensor<i64>, tensor<f32>) {
    ^bb0(%in: tensor<i64>):
      %one = gpuc.constant 1 : tensor<i64>
      %0 = gpuc.add %in, %one : tensor<i64>
      %1 = gpuc.cast %0 : tensor<i64> to tensor<f32>
      gpuc.yield %0, %1 : tensor<i64>, tensor<f32>
    }
    %updated = gpuc.fused "update"(%w, %next#1) : (tensor<f32>, tensor<f32>) -> tensor<f32> {
    ^bb0(%in: tensor<f32>, %correction: tensor<f32>):
      %0 = gpuc.mul %in, %correction : tensor<f32>
      gpuc.yield %0 : tensor<f32>
    }
    %gradient = gpuc.fused "dropout"(%step) : (tensor<i64>) -> tensor<f32> {
    ^bb0(%in: tensor<i64>):
      %0 = gpuc.cast %in : tensor<i64> to tensor<f32>
      gpuc.yield %0 : tensor<f32>
    } loc(fused<"backward">["drop"])
    gpuc.assign @step, %next#0 : tensor<i64>
    gpuc.assign @w, %updated : tensor<f32>
    return %gradient : tensor<f32>
  }
}
