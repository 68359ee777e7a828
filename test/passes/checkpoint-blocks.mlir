// RUN: gpuc-opt %s --gpuc-checkpoint='policy=blocks=h.*' | FileCheck %s
// The model may say the same itself, in one pattern or in several; afterwards it says no more.
// RUN: sed '$a gpuc.checkpoint "h.*"' %s > %t.mlir && gpuc-opt %t.mlir --gpuc-checkpoint | FileCheck %s --implicit-check-not=gpuc.checkpoint
// RUN: sed -e '1i gpuc.checkpoint "h.0"' -e '$a gpuc.checkpoint "?.1"' %s > %t.2.mlir && gpuc-opt %t.2.mlir --gpuc-checkpoint=policy=model | FileCheck %s --implicit-check-not=gpuc.checkpoint
// Another policy overrules it, which is said.
// RUN: gpuc-opt %t.2.mlir --gpuc-checkpoint=policy=none 2>&1 | FileCheck %s --check-prefix=OVERRULED --implicit-check-not=gpuc.recomputed
// OVERRULED: {{.*}}checkpoint-blocks.mlir.tmp.2.mlir:1:1: warning: --checkpoint=none overrules the model's gpuc.checkpoint "h.0" and 1 more
// OVERRULED: module
// OVERRULED-NOT: gpuc.checkpoint
// RUN: sed '$a gpuc.checkpoint "g.*"' %s > %t.mlir && not gpuc-opt %t.mlir --gpuc-checkpoint 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: {{.*}}checkpoint-blocks.mlir.tmp.mlir:[[#]]:1: error: 'gpuc.checkpoint' op no layer is named 'g.*'; the nearest is 'h.0'
// No plan is made before it is done.
// RUN: not gpuc-opt %t.2.mlir --gpuc-to-plan 2>&1 | FileCheck %s --check-prefix=PLAN
// PLAN: error: 'gpuc.checkpoint' op is done before there is a plan: run gpuc-checkpoint before gpuc-to-plan
// RUN: not gpuc-opt %s --gpuc-checkpoint='policy=blocks=h.*,g.0' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: blocks: no layer is named 'g.0'; the nearest is 'h.0'
// RUN: not gpuc-opt %s --gpuc-checkpoint='policy=blocks=h.[' 2>&1 | FileCheck %s --check-prefix=MALFORMED
// MALFORMED: error: 'h.[' invalid glob pattern, unmatched '['
// RUN: not gpuc-opt %s --gpuc-checkpoint='policy=blocks=' 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: '' names no layer

// Two blocks, with a kernel between them that begins in the one and ends in the other: it is kept, as is what the second
// block reads of the first one (%b). All else of a block is computed again; what the kernel alone reads (%c) is not kept for it.

// CHECK-LABEL: func.func @train_step(
// CHECK:         %[[A:.*]] = gpuc.fused "a"(%[[X:.*]]) :
// CHECK:         %[[B:.*]] = gpuc.fused "b"(%[[A]]) :
// CHECK:         %[[C:.*]] = gpuc.fused "c"(%[[B]]) :
// CHECK:         %[[MIXED:.*]] = gpuc.fused "mixed"(%[[C]]) :
// CHECK:         %[[D:.*]] = gpuc.fused "d"(%[[MIXED]], %[[B]]) :
// CHECK:         gpuc.fused "loss"(%[[D]]) :
// CHECK-DAG:     %[[DD:.*]] = gpuc.fused "d"(%[[MIXED]], %[[B]]) {gpuc.recomputed}
// CHECK-DAG:     %[[CC:.*]] = gpuc.fused "c"(%[[B]]) {gpuc.recomputed}
// CHECK-DAG:     %[[AA:.*]] = gpuc.fused "a"(%[[X]]) {gpuc.recomputed}
// CHECK:         gpuc.fused "backward"(%{{.*}}, %[[DD]], %[[MIXED]], %[[CC]], %[[B]], %[[AA]])
// CHECK-NOT:     gpuc.recomputed
gpuc.variable @w : tensor<64xf32> init ones
func.func @train_step(%x: tensor<64xf32> {gpuc.name = "x"}) -> (tensor<f32> {gpuc.name = "loss_sum"}) {
  %a = gpuc.fused "a"(%x) : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%in: tensor<64xf32>):
    %0 = gpuc.exp %in : tensor<64xf32> loc("h.0.first")
    gpuc.yield %0 : tensor<64xf32> loc("h.0.first")
  } loc("h.0.first")
  %b = gpuc.fused "b"(%a) : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%in: tensor<64xf32>):
    %0 = gpuc.exp %in : tensor<64xf32> loc("h.0.second")
    gpuc.yield %0 : tensor<64xf32> loc("h.0.second")
  } loc("h.0.second")
  %c = gpuc.fused "c"(%b) : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%in: tensor<64xf32>):
    %0 = gpuc.exp %in : tensor<64xf32> loc("h.0")
    gpuc.yield %0 : tensor<64xf32> loc("h.0")
  } loc("h.0")
  %m = gpuc.fused "mixed"(%c) : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%in: tensor<64xf32>):
    %0 = gpuc.exp %in : tensor<64xf32> loc("h.0")
    %1 = gpuc.exp %0 : tensor<64xf32> loc("h.1.norm")
    gpuc.yield %1 : tensor<64xf32> loc("h.1.norm")
  } loc(fused["h.0", "h.1.norm"])
  %d = gpuc.fused "d"(%m, %b) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%in: tensor<64xf32>, %before: tensor<64xf32>):
    %0 = gpuc.add %in, %before : tensor<64xf32> loc("h.1")
    gpuc.yield %0 : tensor<64xf32> loc("h.1")
  } loc("h.1")
  %loss = gpuc.fused "loss"(%d) : (tensor<64xf32>) -> tensor<f32> {
  ^bb0(%in: tensor<64xf32>):
    %0 = gpuc.sum %in dims [0] : (tensor<64xf32>) -> tensor<f32> loc("loss")
    gpuc.yield %0 : tensor<f32> loc("loss")
  } loc("loss")
  %seed = gpuc.constant 1.0 : tensor<64xf32>
  %dd = gpuc.fused "backward"(%seed, %d, %m, %c, %b, %a) : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%s: tensor<64xf32>, %0: tensor<64xf32>, %1: tensor<64xf32>, %2: tensor<64xf32>, %3: tensor<64xf32>, %4: tensor<64xf32>):
    %5 = gpuc.mul %s, %0 : tensor<64xf32>
    gpuc.yield %5 : tensor<64xf32>
  } loc(fused<"backward">["h.1"])
  gpuc.assign @w, %dd : tensor<64xf32>
  return %loss : tensor<f32>
}
