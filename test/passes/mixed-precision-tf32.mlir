// RUN: gpuc-opt %s --gpuc-mixed-precision=target=cuda:sm_80 | FileCheck %s
// RUN: gpuc-opt %s --gpuc-mixed-precision=target=cuda:sm_80 --gpuc-differentiate-loss --gpuc-autodiff | FileCheck %s --check-prefix=GRAD
// RUN: gpuc-opt %s --gpuc-mixed-precision=target=cuda:sm_80 --gpuc-decompose=target=cuda:sm_80 | FileCheck %s --check-prefix=PARTS
// RUN: not gpuc-opt %s --gpuc-mixed-precision=target=cuda:sm_90,sm_75 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: gpuc-compile %s --target=cuda:sm_80 --emit=plan -o - | FileCheck %s --check-prefix=PLAN
// RUN: gpuc-compile %s --target=cuda:sm_80 --emit=train -o %t.train.mlir
// RUN: not gpuc-opt %t.train.mlir --gpuc-to-plan -o %t.plan 2>&1 | FileCheck %s --check-prefix=HOST
// RUN: not gpuc-compile %t.train.mlir --target=host -o %t.plan 2>&1 | FileCheck %s --check-prefix=MADE
// RUN: gpuc-model lstm-generator -o - | gpuc-compile - --target=cuda:sm_80 --precision=tf32 --emit=plan -o - | FileCheck %s --check-prefix=EVERY
// RUN: gpuc-model gpt2 -o - | gpuc-compile - --target=cuda:sm_80 --precision=tf32 --emit=plan -o - | FileCheck %s --check-prefix=EVERY

// One of the devices is too old.
// OLD: error: 'gpuc.recipe' op precision tf32: cuda:sm_75 has no tf32 units; take f32, or compile for cuda:sm_80 and newer

// Nothing is cast. Products are marked, in loops too, but the layer that the recipe leaves out, and what is not f32.
// CHECK-LABEL: func.func @loss(
// CHECK-NOT:     gpuc.cast
// CHECK:         gpuc.matmul %{{.*}} {gpuc.tf32} : (tensor<4x8xf32>, tensor<8x8xf32>)
// CHECK:         gpuc.attention {{.*}} {gpuc.tf32}
// CHECK:         gpuc.scan
// CHECK:           gpuc.matmul {{.*}} {gpuc.tf32}
// CHECK:         gpuc.matmul {{.*}}%{{[a-z0-9]+}} : (tensor<4x8xf32>, tensor<8x8xf32>)
// CHECK:         gpuc.matmul {{.*}}%{{[a-z0-9]+}} : (tensor<8x8xf64>, tensor<8x8xf64>)

// What comes of a product backwards is a product of that kind.
// GRAD-LABEL: func.func private @gradients(
// GRAD-COUNT-4: gpuc.matmul {{.*}} {gpuc.tf32}

// The definition of attention has two products.
// PARTS-LABEL: func.func @loss(
// PARTS-COUNT-4: gpuc.matmul {{.*}} {gpuc.tf32}
// PARTS-NOT:     {gpuc.tf32}

// PLAN-LABEL: plan.program @train_step
// PLAN:         plan.matmul {{.*}} tf32 workspace %{{.*}} : f32
// PLAN:         plan.matmul {{.*}} -> %{{[0-9]+}} workspace %{{.*}} : f32

// Whatever becomes of products: hoisted from loops, added up, differentiated, attention's.
// EVERY:     plan.matmul {{.*}} tf32 workspace
// EVERY-NOT: plan.matmul {{.*}} -> %{{[0-9]+( accumulate)?( bias %[0-9]+)?( relu)?}} workspace

// HOST: error: {{.*}}'gpuc.matmul' op is to be computed in TF32, which the host has not: compile with --target=cuda:sm_80 or newer
// MADE: error: the train step is made for cuda:sm_80 already: its target can be chosen no more
module {
  gpuc.variable @w : tensor<8x8xf32> init normal(std = 0.1)
  func.func @loss(%x: tensor<4x8xf32>) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<8x8xf32>
    %0 = gpuc.matmul %x, transpose %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("body")
    %1 = gpuc.reshape %0 : tensor<4x8xf32> to tensor<4x2x2x2xf32>
    %2:2 = gpuc.attention %1, %1, %1 : (tensor<4x2x2x2xf32>, tensor<4x2x2x2xf32>, tensor<4x2x2x2xf32>) -> (tensor<4x2x2x2xf32>, tensor<4x2x2xf32>) loc("attention")
    %3 = gpuc.reshape %2#0 : tensor<4x2x2x2xf32> to tensor<4x8xf32>
    %4 = gpuc.scan count 3 carry(%3) captures(%w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> {
    ^bb0(%carry: tensor<4x8xf32>, %c: tensor<8x8xf32>):
      %5 = gpuc.matmul %carry, %c : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("cell")
      gpuc.yield %5 : tensor<4x8xf32>
    }
    %6 = gpuc.matmul %4, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("head")
    %d = gpuc.cast %w : tensor<8x8xf32> to tensor<8x8xf64>
    %7 = gpuc.matmul %d, %d : (tensor<8x8xf64>, tensor<8x8xf64>) -> tensor<8x8xf64>
    %sum, %count = gpuc.mse %6, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = sgd(lr = 0.1), precision = tf32(f32 = "head") }
}
