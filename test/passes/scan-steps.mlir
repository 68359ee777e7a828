// What is compiled for a loop does not depend on how often it iterates: as many kernels and commands for 16 steps, from which on
// weights are pre-transposed, as for 120, and for 128, which are cut into chunks, as for 4,000; and the same bytes of workspace
// for what lives in one iteration only.
// RUN: sed s/TIME/16/g %s | gpuc-opt --gpuc-train-pipeline --gpuc-plan-pipeline -o %t.16
// RUN: sed s/TIME/120/g %s | gpuc-opt --gpuc-train-pipeline --gpuc-plan-pipeline -o %t.120
// RUN: sed s/TIME/128/g %s | gpuc-opt --gpuc-train-pipeline --gpuc-plan-pipeline -o %t.128
// RUN: sed s/TIME/4000/g %s | gpuc-opt --gpuc-train-pipeline --gpuc-plan-pipeline -o %t.4000
// RUN: grep -oE "plan.(launch|matmul|copy|fill|repeat|kernel|upload)" %t.16 | sort > %t.16.commands
// RUN: grep -oE "plan.(launch|matmul|copy|fill|repeat|kernel|upload)" %t.120 | sort > %t.120.commands
// RUN: grep -oE "plan.(launch|matmul|copy|fill|repeat|kernel|upload)" %t.128 | sort > %t.128.commands
// RUN: grep -oE "plan.(launch|matmul|copy|fill|repeat|kernel|upload)" %t.4000 | sort > %t.4000.commands
// RUN: diff %t.16.commands %t.120.commands
// RUN: diff %t.128.commands %t.4000.commands
// RUN: FileCheck %s < %t.120
// RUN: FileCheck %s --check-prefix=CHUNKS < %t.4000

// A forward and a backward loop; weights' gradients are computed behind it, from stacks; nothing is copied.
// CHECK: plan.program @train_step
// CHECK-NOT: plan.copy
// CHECK: plan.matmul
// CHECK: plan.fill
// CHECK: plan.repeat 120 {
// CHECK: plan.matmul
// CHECK-NOT: plan.matmul
// CHECK: plan.launch
// CHECK-NOT: plan.copy
// CHECK: }
// CHECK: plan.repeat 120 {
// CHECK-NOT: plan.copy
// CHECK: }
// CHECK: plan.matmul transpose
// CHECK-NOT: plan.copy
// CHECK: plan.output

// 4,000 steps are 50 chunks of 80. A chunk's part of the weights' gradients is added up behind its steps. What is carried lies
// where it is stacked, for both loops: nothing is copied either.
// CHUNKS: plan.program @train_step
// CHUNKS-NOT: plan.copy
// CHUNKS: plan.repeat 50 {
// CHUNKS:   plan.repeat 80 {
// CHUNKS:   }
// CHUNKS: plan.repeat 50 {
// CHUNKS:   plan.repeat 80 {
// CHUNKS:   }
// CHUNKS:   plan.matmul transpose
// CHUNKS-NOT: plan.copy
// CHUNKS: plan.output
module @rnn {
  gpuc.variable @wx : tensor<4x16xf32> init uniform(bound = 0.25)
  gpuc.variable @wh : tensor<16x16xf32> init uniform(bound = 0.25)
  gpuc.variable @b : tensor<16xf32> init zeros

  func.func @loss(%x: tensor<TIMEx8x4xf32> {gpuc.name = "x"}, %y: tensor<8x16xf32> {gpuc.name = "y"})
      -> (tensor<f32>, tensor<f32>) {
    %wx = gpuc.read @wx : tensor<4x16xf32>
    %wh = gpuc.read @wh : tensor<16x16xf32>
    %b = gpuc.read @b : tensor<16xf32>
    %zeros = gpuc.constant 0.0 : tensor<8x16xf32>
    %hn = gpuc.scan over(%x) carry(%zeros) captures(%wx, %wh, %b)
        : (tensor<TIMEx8x4xf32>, tensor<8x16xf32>, tensor<4x16xf32>, tensor<16x16xf32>, tensor<16xf32>) -> tensor<8x16xf32> {
    ^bb0(%xt: tensor<8x4xf32>, %h: tensor<8x16xf32>, %wx_: tensor<4x16xf32>, %wh_: tensor<16x16xf32>, %b_: tensor<16xf32>):
      %0 = gpuc.matmul %xt, %wx_ : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
      %1 = gpuc.matmul %h, %wh_ : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
      %2 = gpuc.add %0, %1 : tensor<8x16xf32>
      %3 = gpuc.broadcast %b_ dims [1] : tensor<16xf32> to tensor<8x16xf32>
      %4 = gpuc.add %2, %3 : tensor<8x16xf32>
      %5 = gpuc.tanh %4 : tensor<8x16xf32>
      gpuc.yield %5 : tensor<8x16xf32>
    } loc("rnn")
    %sum, %count = gpuc.mse %hn, %y : (tensor<8x16xf32>, tensor<8x16xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss,
    batch = 8,
    optimizer = sgd(lr = 1.0e-1)
  }
}
