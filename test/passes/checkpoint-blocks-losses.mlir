// RUN: gpuc-opt %s --gpuc-checkpoint='policy=blocks=h.*' | FileCheck %s

// A kernel that computes gradients beside the loss is of no block: it would be computed twice one behind the other.
// CHECK-LABEL: func.func @train_step
// CHECK-NOT:     gpuc.recomputed
// CHECK:         return
func.func @train_step(%x: tensor<64xf32> {gpuc.name = "x"}) -> (tensor<f32> {gpuc.name = "loss_sum"}) {
  %l:2 = gpuc.fused "loss"(%x) : (tensor<64xf32>) -> (tensor<f32>, tensor<64xf32>) {
  ^bb0(%in: tensor<64xf32>):
    %0 = gpuc.exp %in : tensor<64xf32> loc("h.0")
    %1 = gpuc.sum %0 dims [0] : (tensor<64xf32>) -> tensor<f32> loc("h.0")
    %2 = gpuc.mul %0, %in : tensor<64xf32> loc(fused<"backward">["h.0"])
    gpuc.yield %1, %2 : tensor<f32>, tensor<64xf32> loc("h.0")
  } loc(fused["h.0", fused<"backward">["h.0"]])
  %d = gpuc.fused "update"(%l#1) : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%in: tensor<64xf32>):
    %0 = gpuc.neg %in : tensor<64xf32>
    gpuc.yield %0 : tensor<64xf32>
  } loc(fused<"backward">["h.1"])
  gpuc.assign @w, %d : tensor<64xf32>
  return %l#0 : tensor<f32>
}
gpuc.variable @w : tensor<64xf32> init ones
