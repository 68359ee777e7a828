// Within functions, too: of a whole model what is left is what the defect needs, here that there is a gpuc.tanh. What is
// before it becomes a constant, what is behind it goes, and so do variables, calls and the recipe's entries.
// RUN: gpuc-reduce %s -reduce-graph='test=%S/Inputs/has-tanh.sh' | FileCheck %s

// CHECK-NOT: gpuc.variable
// CHECK: func.func @predict
// CHECK-NEXT: %[[X:.*]] = gpuc.constant 0.5 : tensor<?x3xf32>
// CHECK-NEXT: %[[Y:.*]] = gpuc.tanh %[[X]]
// CHECK-NEXT: return %[[Y]]
// CHECK-NOT: @unused
// CHECK: func.func @loss
// CHECK-NEXT: %[[A:.*]] = gpuc.constant
// CHECK-NEXT: %[[B:.*]] = gpuc.constant
// CHECK-NEXT: return %[[A]], %[[B]]
// CHECK: gpuc.recipe {
// CHECK-NEXT: loss = @loss
// CHECK-NEXT: }
// CHECK-NOT: gpuc.checkpoint

// What nobody finds interesting is not touched.
// RUN: not gpuc-reduce %s -reduce-graph='test=%S/Inputs/never.sh' 2>&1 | FileCheck %s --check-prefix=NEVER
// NEVER: is not interesting: '{{.*}}never.sh' exits with 0 for it; it must exit with 1 for what shows the defect

module {
  gpuc.variable @w : tensor<4x3xf32> init zeros
  gpuc.variable @b : tensor<3xf32> init zeros
  gpuc.variable @mean kind statistic : tensor<3xf32> init zeros
  func.func @predict(%x: tensor<?x4xf32>) -> tensor<?x3xf32> {
    %w = gpuc.read @w : tensor<4x3xf32>
    %b = gpuc.read @b : tensor<3xf32>
    %0 = gpuc.matmul %x, %w : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
    %1 = gpuc.broadcast %b dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %2 = gpuc.add %0, %1 : tensor<?x3xf32>
    %3 = gpuc.tanh %2 : tensor<?x3xf32>
    %4 = gpuc.exp %3 : tensor<?x3xf32>
    gpuc.assign @mean, %b : tensor<3xf32>
    return %4 : tensor<?x3xf32>
  }
  func.func private @unused(%x: tensor<3xf32>) -> tensor<3xf32> {
    return %x : tensor<3xf32>
  }
  func.func @loss(%x: tensor<?x4xf32>, %y: tensor<?xi32>) -> (tensor<f32>, tensor<f32>) {
    %0 = call @predict(%x) : (tensor<?x4xf32>) -> tensor<?x3xf32>
    %sum, %count = gpuc.cross_entropy %0, %y : (tensor<?x3xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss,
    batch = 4,
    clip_norm = 1.0,
    optimizer = sgd(lr = 0.1)
  }
  gpuc.checkpoint "h.*"
}
