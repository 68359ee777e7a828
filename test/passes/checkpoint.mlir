// RUN: gpuc-opt %s -split-input-file --gpuc-checkpoint=policy=save=matmul | FileCheck %s --check-prefixes=CHECK,SAVE
// RUN: gpuc-opt %s -split-input-file --gpuc-checkpoint=policy=full | FileCheck %s --check-prefixes=CHECK,FULL
// RUN: gpuc-opt %s -split-input-file --gpuc-checkpoint=policy=none | FileCheck %s --check-prefix=NONE
// NONE-NOT: gpuc.recomputed

// What is not kept is computed again before its first backward reader, once for all of them, from what is kept. Who is
// forward reads the first.

// CHECK-LABEL: module @chain
// SAVE:        %[[H:.*]] = gpuc.matmul %{{.*}}, %{{.*}} :
// SAVE-NEXT:   %[[A:.*]] = gpuc.fused "act"(%[[H]]) :
// SAVE:        %[[Y:.*]] = gpuc.matmul %[[A]],
// SAVE:        gpuc.fused "loss"(%[[Y]])
// SAVE:        %[[AGAIN:.*]] = gpuc.fused "act"(%[[H]]) {gpuc.recomputed}
// SAVE:        gpuc.matmul transpose %[[AGAIN]],
// SAVE-NEXT:   gpuc.fused "mask"(%{{.*}}, %[[AGAIN]])
// SAVE-NOT:    gpuc.recomputed
module @chain {
  func.func @train_step(%x: tensor<64x8xf32> {gpuc.name = "x"}) -> (tensor<f32> {gpuc.name = "loss_sum"}) {
    %w = gpuc.read @w : tensor<8x8xf32>
    %v = gpuc.read @v : tensor<8x8xf32>
    %h = gpuc.matmul %x, %w : (tensor<64x8xf32>, tensor<8x8xf32>) -> tensor<64x8xf32>
    %a = gpuc.fused "act"(%h) : (tensor<64x8xf32>) -> tensor<64x8xf32> {
    ^bb0(%in: tensor<64x8xf32>):
      %0 = gpuc.exp %in : tensor<64x8xf32>
      gpuc.yield %0 : tensor<64x8xf32>
    }
    %y = gpuc.matmul %a, %v : (tensor<64x8xf32>, tensor<8x8xf32>) -> tensor<64x8xf32>
    %loss = gpuc.fused "loss"(%y) : (tensor<64x8xf32>) -> tensor<f32> {
    ^bb0(%in: tensor<64x8xf32>):
      %0 = gpuc.sum %in dims [0, 1] : (tensor<64x8xf32>) -> tensor<f32>
      gpuc.yield %0 : tensor<f32>
    }
    %dy = gpuc.fused "seed"() : () -> tensor<64x8xf32> {
      %0 = gpuc.constant 1.0 : tensor<64x8xf32>
      gpuc.yield %0 : tensor<64x8xf32>
    } loc(fused<"backward">["loss"])
    %dv = gpuc.matmul transpose %a, %dy : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<8x8xf32> loc(fused<"backward">["v"])
    %dh = gpuc.fused "mask"(%dy, %a) : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32> {
    ^bb0(%in: tensor<64x8xf32>, %other: tensor<64x8xf32>):
      %0 = gpuc.mul %in, %other : tensor<64x8xf32>
      gpuc.yield %0 : tensor<64x8xf32>
    } loc(fused<"backward">["act"])
    %dw = gpuc.matmul transpose %x, %dh : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<8x8xf32> loc(fused<"backward">["w"])
    gpuc.assign @w, %dw : tensor<8x8xf32>
    gpuc.assign @v, %dv : tensor<8x8xf32>
    return %loss : tensor<f32>
  }
  gpuc.variable @w : tensor<8x8xf32> init zeros
  gpuc.variable @v : tensor<8x8xf32> init zeros
}

// -----

// Four ops, each read by the backward pass, the narrow places between them of 4 elements: the cut that leaves the
// fewest bytes live keeps what crosses there, and the last segment.

// CHECK-LABEL: module @segments
// FULL:        %[[WIDE:.*]] = gpuc.fused "wide"(
// FULL:        %[[NARROW:.*]] = gpuc.fused "narrow"(%[[WIDE]])
// FULL:        %[[LAST:.*]] = gpuc.fused "wide"(%[[NARROW]])
// FULL:        gpuc.fused "use"(%{{.*}}, %[[LAST]])
// FULL:        %[[AGAIN:.*]] = gpuc.fused "wide"(%{{.*}}) {gpuc.recomputed}
// FULL:        gpuc.fused "use"(%{{.*}}, %[[AGAIN]])
// FULL-NOT:    gpuc.recomputed
module @segments {
  func.func @train_step(%x: tensor<4xf32> {gpuc.name = "x"}) -> (tensor<f32> {gpuc.name = "loss_sum"}, tensor<f32>) {
    %0 = gpuc.fused "wide"(%x) : (tensor<4xf32>) -> tensor<1000x4xf32> {
    ^bb0(%in: tensor<4xf32>):
      %b = gpuc.broadcast %in dims [1] : tensor<4xf32> to tensor<1000x4xf32>
      gpuc.yield %b : tensor<1000x4xf32>
    }
    %1 = gpuc.fused "narrow"(%0) : (tensor<1000x4xf32>) -> tensor<4xf32> {
    ^bb0(%in: tensor<1000x4xf32>):
      %s = gpuc.sum %in dims [0] : (tensor<1000x4xf32>) -> tensor<4xf32>
      gpuc.yield %s : tensor<4xf32>
    }
    %2 = gpuc.fused "wide"(%1) : (tensor<4xf32>) -> tensor<1000x4xf32> {
    ^bb0(%in: tensor<4xf32>):
      %b = gpuc.broadcast %in dims [1] : tensor<4xf32> to tensor<1000x4xf32>
      gpuc.yield %b : tensor<1000x4xf32>
    }
    %loss = gpuc.fused "loss"(%2) : (tensor<1000x4xf32>) -> tensor<f32> {
    ^bb0(%in: tensor<1000x4xf32>):
      %s = gpuc.sum %in dims [0, 1] : (tensor<1000x4xf32>) -> tensor<f32>
      gpuc.yield %s : tensor<f32>
    }
    %3 = gpuc.fused "use"(%loss, %2) : (tensor<f32>, tensor<1000x4xf32>) -> tensor<f32> {
    ^bb0(%a: tensor<f32>, %in: tensor<1000x4xf32>):
      %s = gpuc.sum %in dims [0, 1] : (tensor<1000x4xf32>) -> tensor<f32>
      %t = gpuc.mul %a, %s : tensor<f32>
      gpuc.yield %t : tensor<f32>
    } loc(fused<"backward">["b"])
    %4 = gpuc.fused "use"(%3, %0) : (tensor<f32>, tensor<1000x4xf32>) -> tensor<f32> {
    ^bb0(%a: tensor<f32>, %in: tensor<1000x4xf32>):
      %s = gpuc.sum %in dims [0, 1] : (tensor<1000x4xf32>) -> tensor<f32>
      %t = gpuc.mul %a, %s : tensor<f32>
      gpuc.yield %t : tensor<f32>
    } loc(fused<"backward">["a"])
    return %loss, %4 : tensor<f32>, tensor<f32>
  }
}

// -----

// A running mean is updated once: what computes it a second time takes the new mean, of which nothing that is read
// hangs, so that the update may go on where the variable lies. What no op of the kernel uses, as the step by which the
// code of attention draws, stays what it was.

// CHECK-LABEL: module @statistics
// SAVE-DAG:    %[[OLD:.*]] = gpuc.read @mean
// SAVE-DAG:    %[[STEP:.*]] = gpuc.read @step
// SAVE:        gpuc.fused "count"(%[[STEP]])
// SAVE:        %[[NORM:.*]]:2 = gpuc.fused "norm"(%{{.*}}, %[[OLD]], %[[STEP]])
// SAVE:        gpuc.fused "norm"(%{{.*}}, %[[NORM]]#1, %[[STEP]]) {gpuc.recomputed}
// SAVE:        gpuc.assign @mean, %[[NORM]]#1
module @statistics {
  gpuc.variable @mean : tensor<8xf32> init zeros
  gpuc.variable @step kind counter : tensor<i64> init zeros
  func.func @train_step(%x: tensor<64x8xf32> {gpuc.name = "x"}) -> (tensor<f32> {gpuc.name = "loss_sum"}, tensor<f32>) {
    %old = gpuc.read @mean : tensor<8xf32>
    %step = gpuc.read @step : tensor<i64>
    %next = gpuc.fused "count"(%step) : (tensor<i64>) -> tensor<i64> {
    ^bb0(%in: tensor<i64>):
      %n = gpuc.add %in, %in : tensor<i64>
      gpuc.yield %n : tensor<i64>
    }
    %norm:2 = gpuc.fused "norm"(%x, %old, %step) : (tensor<64x8xf32>, tensor<8xf32>, tensor<i64>) -> (tensor<64x8xf32>, tensor<8xf32>) {
    ^bb0(%in: tensor<64x8xf32>, %mean: tensor<8xf32>, %unused: tensor<i64>):
      %s = gpuc.sum %in dims [0] : (tensor<64x8xf32>) -> tensor<8xf32>
      %b = gpuc.broadcast %s dims [1] : tensor<8xf32> to tensor<64x8xf32>
      %y = gpuc.sub %in, %b : tensor<64x8xf32>
      %new = gpuc.add %mean, %s : tensor<8xf32>
      gpuc.yield %y, %new : tensor<64x8xf32>, tensor<8xf32>
    }
    %y = gpuc.matmul %norm#0, transpose %norm#0 : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<64x64xf32>
    %loss = gpuc.fused "loss"(%y) : (tensor<64x64xf32>) -> tensor<f32> {
    ^bb0(%in: tensor<64x64xf32>):
      %s = gpuc.sum %in dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
      gpuc.yield %s : tensor<f32>
    }
    %d = gpuc.fused "use"(%norm#0) : (tensor<64x8xf32>) -> tensor<f32> {
    ^bb0(%in: tensor<64x8xf32>):
      %s = gpuc.sum %in dims [0, 1] : (tensor<64x8xf32>) -> tensor<f32>
      gpuc.yield %s : tensor<f32>
    } loc(fused<"backward">["norm"])
    gpuc.assign @mean, %norm#1 : tensor<8xf32>
    gpuc.assign @step, %next : tensor<i64>
    return %loss, %d : tensor<f32>, tensor<f32>
  }
}

// -----

// What a gradient makes of a forward value alone stands right behind it here. With the copy of what it reads it goes to its
// reader: in front of the forward pass's end nothing is computed again.

// CHECK-LABEL: module @early_reader
// SAVE:        gpuc.fused "act"
// SAVE-NOT:    gpuc.fused "slope"
// SAVE:        gpuc.fused "loss"
// SAVE:        %[[AGAIN:.*]] = gpuc.fused "act"({{.*}}) {gpuc.recomputed}
// SAVE:        %[[SLOPE:.*]] = gpuc.fused "slope"(%[[AGAIN]])
// SAVE:        gpuc.fused "use"(%{{.*}}, %[[SLOPE]])
module @early_reader {
  func.func @train_step(%x: tensor<8x8xf32> {gpuc.name = "x"}) -> (tensor<f32> {gpuc.name = "loss_sum"}, tensor<f32>) {
    %h = gpuc.matmul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %a = gpuc.fused "act"(%h) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
    ^bb0(%in: tensor<8x8xf32>):
      %0 = gpuc.exp %in : tensor<8x8xf32>
      gpuc.yield %0 : tensor<8x8xf32>
    }
    %slope = gpuc.fused "slope"(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
    ^bb0(%in: tensor<8x8xf32>):
      %0 = gpuc.neg %in : tensor<8x8xf32>
      gpuc.yield %0 : tensor<8x8xf32>
    } loc(fused<"backward">["act"])
    %y = gpuc.matmul %a, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %loss = gpuc.fused "loss"(%y) : (tensor<8x8xf32>) -> tensor<f32> {
    ^bb0(%in: tensor<8x8xf32>):
      %s = gpuc.sum %in dims [0, 1] : (tensor<8x8xf32>) -> tensor<f32>
      gpuc.yield %s : tensor<f32>
    }
    %d = gpuc.fused "use"(%loss, %slope) : (tensor<f32>, tensor<8x8xf32>) -> tensor<f32> {
    ^bb0(%in: tensor<f32>, %other: tensor<8x8xf32>):
      %s = gpuc.sum %other dims [0, 1] : (tensor<8x8xf32>) -> tensor<f32>
      %t = gpuc.mul %in, %s : tensor<f32>
      gpuc.yield %t : tensor<f32>
    } loc(fused<"backward">["loss"])
    return %loss, %d : tensor<f32>, tensor<f32>
  }
}
