// RUN: gpuc-opt %s -split-input-file --gpuc-checkpoint=policy=blocks=act | FileCheck %s
// RUN: gpuc-opt %s -split-input-file --gpuc-checkpoint=policy=save=exp | FileCheck %s --check-prefix=SAVE

// What kernels of the backward pass write again (gpuc-fuse) is computed again with all around it by the policies that
// drop wholes: it is there then, and who reads it does not wait. `save` drops here and there, and leaves it.

// CHECK-LABEL: module @again
// CHECK:         gpuc.fused "act"(%{{.*}}) :
// CHECK-NOT:     written_again
// CHECK:         %[[DX:.*]] = gpuc.fused "back"(%{{.*}}, %{{.*}}) : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32> {
// CHECK-NEXT:    ^bb0(%[[IN:.*]]: tensor<64x8xf32>, %[[X:.*]]: tensor<64x8xf32>):
// CHECK-NEXT:      %[[PRODUCT:.*]] = gpuc.mul %[[IN]], %[[X]]
// CHECK-NEXT:      gpuc.yield %[[PRODUCT]] :
// CHECK:         %[[A:.*]] = gpuc.fused "act"(%{{.*}}) {gpuc.recomputed}
// CHECK:         gpuc.matmul transpose %[[A]], %[[DX]]
// SAVE-LABEL:  module @again
// SAVE:          %[[BACK:.*]]:2 = gpuc.fused "back"
// SAVE:          gpuc.matmul transpose %[[BACK]]#0, %[[BACK]]#1
module @again {
  func.func @train_step(%x: tensor<64x8xf32> {gpuc.name = "x"}) -> (tensor<f32> {gpuc.name = "loss_sum"}) {
    %a = gpuc.fused "act"(%x) : (tensor<64x8xf32>) -> tensor<64x8xf32> {
    ^bb0(%in: tensor<64x8xf32>):
      %0 = gpuc.exp %in : tensor<64x8xf32> loc("act")
      gpuc.yield %0 : tensor<64x8xf32> loc("act")
    } loc("act")
    %loss = gpuc.fused "loss"(%a) : (tensor<64x8xf32>) -> tensor<f32> {
    ^bb0(%in: tensor<64x8xf32>):
      %0 = gpuc.sum %in dims [0, 1] : (tensor<64x8xf32>) -> tensor<f32>
      gpuc.yield %0 : tensor<f32>
    }
    %dy = gpuc.fused "seed"() : () -> tensor<64x8xf32> {
      %0 = gpuc.constant 1.0 : tensor<64x8xf32>
      gpuc.yield %0 : tensor<64x8xf32>
    } loc(fused<"backward">["loss"])
    %b:2 = gpuc.fused "back"(%dy, %x) {gpuc.written_again = [[0, "act", 0]]} : (tensor<64x8xf32>, tensor<64x8xf32>) -> (tensor<64x8xf32>, tensor<64x8xf32>) {
    ^bb0(%in: tensor<64x8xf32>, %other: tensor<64x8xf32>):
      %0 = gpuc.exp %other : tensor<64x8xf32>
      %1 = gpuc.mul %in, %other : tensor<64x8xf32>
      gpuc.yield %0, %1 : tensor<64x8xf32>, tensor<64x8xf32>
    } loc(fused<"backward">["act"])
    %dw = gpuc.matmul transpose %b#0, %b#1 : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<8x8xf32> loc(fused<"backward">["w"])
    gpuc.assign @w, %dw : tensor<8x8xf32>
    return %loss : tensor<f32>
  }
  gpuc.variable @w : tensor<8x8xf32> init ones
}

// -----

// Of two results one is computed again, and the kernel still writes the other, which is its first one now.
// CHECK-LABEL: module @one_of_two
// CHECK:         %[[BACK:.*]]:2 = gpuc.fused "back"{{.*}} {gpuc.written_again = {{\[\[}}0, "keep", 0]]}
// CHECK:         %[[A:.*]] = gpuc.fused "act"(%{{.*}}) {gpuc.recomputed}
// CHECK:         gpuc.matmul transpose %[[A]], %[[BACK]]#0
module @one_of_two {
  func.func @train_step(%x: tensor<64x8xf32> {gpuc.name = "x"}) -> (tensor<f32> {gpuc.name = "loss_sum"}) {
    %a = gpuc.fused "act"(%x) : (tensor<64x8xf32>) -> tensor<64x8xf32> {
    ^bb0(%in: tensor<64x8xf32>):
      %0 = gpuc.exp %in : tensor<64x8xf32> loc("act")
      gpuc.yield %0 : tensor<64x8xf32> loc("act")
    } loc("act")
    %c = gpuc.fused "keep"(%x) : (tensor<64x8xf32>) -> tensor<64x8xf32> {
    ^bb0(%in: tensor<64x8xf32>):
      %0 = gpuc.tanh %in : tensor<64x8xf32> loc("keep")
      gpuc.yield %0 : tensor<64x8xf32> loc("keep")
    } loc("keep")
    %loss = gpuc.fused "loss"(%a, %c) : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<f32> {
    ^bb0(%in: tensor<64x8xf32>, %other: tensor<64x8xf32>):
      %0 = gpuc.add %in, %other : tensor<64x8xf32>
      %1 = gpuc.sum %0 dims [0, 1] : (tensor<64x8xf32>) -> tensor<f32>
      gpuc.yield %1 : tensor<f32>
    }
    %b:3 = gpuc.fused "back"(%x) {gpuc.written_again = [[0, "act", 0], [1, "keep", 0]]} : (tensor<64x8xf32>) -> (tensor<64x8xf32>, tensor<64x8xf32>, tensor<64x8xf32>) {
    ^bb0(%in: tensor<64x8xf32>):
      %0 = gpuc.exp %in : tensor<64x8xf32>
      %1 = gpuc.tanh %in : tensor<64x8xf32>
      %2 = gpuc.neg %in : tensor<64x8xf32>
      gpuc.yield %0, %1, %2 : tensor<64x8xf32>, tensor<64x8xf32>, tensor<64x8xf32>
    } loc(fused<"backward">["act"])
    %dw = gpuc.matmul transpose %b#0, %b#1 : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<8x8xf32> loc(fused<"backward">["w"])
    %dv = gpuc.matmul transpose %b#2, %b#2 : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<8x8xf32> loc(fused<"backward">["v"])
    gpuc.assign @w, %dw : tensor<8x8xf32>
    gpuc.assign @v, %dv : tensor<8x8xf32>
    return %loss : tensor<f32>
  }
  gpuc.variable @w : tensor<8x8xf32> init ones
  gpuc.variable @v : tensor<8x8xf32> init ones
}

// -----

// What is said of kernels that are not there, or of others, is left as it is.
// CHECK-LABEL: module @anyones
// CHECK:         gpuc.fused "back"{{.*}} {gpuc.written_again = {{\[\[}}0, "act", 1], [0, "gone", 0], 7, [2, "act", 0], [0, "back", 0]]}
module @anyones {
  func.func @train_step(%x: tensor<64x8xf32> {gpuc.name = "x"}) -> (tensor<f32> {gpuc.name = "loss_sum"}) {
    %a = gpuc.fused "act"(%x) : (tensor<64x8xf32>) -> tensor<64x8xf32> {
    ^bb0(%in: tensor<64x8xf32>):
      %0 = gpuc.exp %in : tensor<64x8xf32> loc("act")
      gpuc.yield %0 : tensor<64x8xf32> loc("act")
    } loc("act")
    %loss = gpuc.fused "loss"(%a) : (tensor<64x8xf32>) -> tensor<f32> {
    ^bb0(%in: tensor<64x8xf32>):
      %0 = gpuc.sum %in dims [0, 1] : (tensor<64x8xf32>) -> tensor<f32>
      gpuc.yield %0 : tensor<f32>
    }
    %b = gpuc.fused "back"(%x) {gpuc.written_again = [[0, "act", 1], [0, "gone", 0], 7, [2, "act", 0], [0, "back", 0]]} : (tensor<64x8xf32>) -> tensor<64x8xf32> {
    ^bb0(%in: tensor<64x8xf32>):
      %0 = gpuc.exp %in : tensor<64x8xf32>
      gpuc.yield %0 : tensor<64x8xf32>
    } loc(fused<"backward">["act"])
    %dw = gpuc.matmul transpose %b, %b : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<8x8xf32> loc(fused<"backward">["w"])
    gpuc.assign @w, %dw : tensor<8x8xf32>
    return %loss : tensor<f32>
  }
  gpuc.variable @w : tensor<8x8xf32> init ones
}
