// RUN: gpuc-opt %s --gpuc-autodiff --split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-autodiff --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=LOC

// d sum(x · x) / dx = 1 · x + 1 · x: both uses of x give a part, and the parts are added.
// CHECK-LABEL: func.func @several_uses(
// CHECK-SAME:    %[[X:.*]]: tensor<4xf64>
// CHECK:         gpuc.mul %[[X]], %[[X]]
// CHECK:         %[[Y:.*]] = gpuc.sum
// CHECK:         %[[ONE:.*]] = gpuc.constant 1.0 : tensor<f64>
// CHECK:         %[[SEED:.*]] = gpuc.broadcast %[[ONE]] dims [] : tensor<f64> to tensor<4xf64>
// CHECK:         %[[LEFT:.*]] = gpuc.mul %[[SEED]], %[[X]]
// CHECK:         %[[RIGHT:.*]] = gpuc.mul %[[SEED]], %[[X]]
// CHECK:         %[[DX:.*]] = gpuc.add %[[LEFT]], %[[RIGHT]]
// CHECK:         return %[[Y]], %[[DX]]
// The layer's name stays, the backward pass is told apart.
// LOC-LABEL: func.func @several_uses(
// LOC:         gpuc.mul {{.*}} loc("square")
// LOC:         gpuc.sum {{.*}} loc("total")
// LOC:         gpuc.broadcast {{.*}} loc(fused<"backward">["total"])
// LOC:         gpuc.mul {{.*}} loc(fused<"backward">["square"])
// LOC:         gpuc.add {{.*}} loc(fused<"backward">["square"])
func.func @square(%x: tensor<4xf64>) -> tensor<f64> {
  %0 = gpuc.mul %x, %x : tensor<4xf64> loc("square")
  %1 = gpuc.sum %0 dims [0] : (tensor<4xf64>) -> tensor<f64> loc("total")
  return %1 : tensor<f64>
}
func.func @several_uses(%x: tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>) {
  %y, %dx = gpuc.gradient @square(%x) wrt arguments [0] : (tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
  return %y, %dx : tensor<f64>, tensor<4xf64>
}

// -----

// One value for two arguments: the gradient is by the first of them alone, 1 · b.
// CHECK-LABEL: func.func @same_value_twice(
// CHECK-SAME:    %[[X:.*]]: tensor<f64>
// CHECK:         %[[ONE:.*]] = gpuc.constant 1.0
// CHECK:         %[[DA:.*]] = gpuc.mul %[[ONE]], %[[X]]
// CHECK-NOT:     gpuc.add
// CHECK:         return %[[DA]]
func.func @product(%a: tensor<f64>, %b: tensor<f64>) -> tensor<f64> {
  %0 = gpuc.mul %a, %b : tensor<f64>
  return %0 : tensor<f64>
}
func.func @same_value_twice(%x: tensor<f64>) -> tensor<f64> {
  %y, %da = gpuc.gradient @product(%x, %x) wrt arguments [0] : (tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<f64>)
  return %da : tensor<f64>
}

// -----

// Only what varies with %w is differentiated: of two matmuls in the backward pass (by x and by w) one remains; the exp
// of a dead branch and the tanh of what does not vary have none.
// CHECK-LABEL: func.func @only_what_varies(
// CHECK:         gpuc.tanh
// CHECK:         gpuc.matmul
// CHECK:         gpuc.constant 1.0 : tensor<f32>
// CHECK-NOT:     gpuc.exp
// CHECK-NOT:     gpuc.tanh
// CHECK:         gpuc.matmul
// CHECK-NOT:     gpuc.matmul
// CHECK:         return
func.func @layer(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> tensor<f32> {
  %h = gpuc.tanh %x : tensor<2x3xf32>
  %0 = gpuc.matmul %h, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %dead = gpuc.exp %0 : tensor<2x4xf32>
  %1 = gpuc.sum %0 dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @only_what_varies(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %y, %dw = gpuc.gradient @layer(%x, %w) wrt arguments [1]
      : (tensor<2x3xf32>, tensor<3x4xf32>) -> (tensor<f32>, tensor<3x4xf32>)
  return %dw : tensor<3x4xf32>
}

// -----

// What is asked for but does not matter has a gradient of zero: an argument, and one behind stop_gradient.
// CHECK-LABEL: func.func @zero(
// CHECK:         %[[ZERO:.*]] = gpuc.constant 0.0 : tensor<4xf32>
// CHECK:         %[[STOPPED:.*]] = gpuc.constant 0.0 : tensor<f32>
// CHECK:         return %[[ZERO]], %[[STOPPED]]
func.func @stopped(%x: tensor<f32>, %unused: tensor<4xf32>) -> tensor<f32> {
  %0 = gpuc.stop_gradient %x : tensor<f32>
  %1 = gpuc.exp %0 : tensor<f32>
  return %1 : tensor<f32>
}
func.func @zero(%x: tensor<f32>, %unused: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
  %y, %du, %dx = gpuc.gradient @stopped(%x, %unused) wrt arguments [1, 0]
      : (tensor<f32>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  return %du, %dx : tensor<4xf32>, tensor<f32>
}

// -----

// Functions that call functions are inlined, and a variable that is read in both gets the sum.
// w is read as w1 in @inner and as w2 in @outer: y = exp(x · w1) · w2.
// CHECK-LABEL: func.func @nested(
// CHECK-NOT:     call
// CHECK:         %[[W1:.*]] = gpuc.read @w
// CHECK:         %[[W2:.*]] = gpuc.read @w
// CHECK:         %[[DW:.*]] = gpuc.add
// CHECK:         return %[[DW]]
gpuc.variable @w : tensor<f64> init ones
func.func private @innermost(%x: tensor<f64>) -> tensor<f64> {
  %w = gpuc.read @w : tensor<f64>
  %0 = gpuc.mul %x, %w : tensor<f64>
  return %0 : tensor<f64>
}
func.func private @inner(%x: tensor<f64>) -> tensor<f64> {
  %0 = call @innermost(%x) : (tensor<f64>) -> tensor<f64>
  %1 = gpuc.exp %0 : tensor<f64>
  return %1 : tensor<f64>
}
func.func @outer(%x: tensor<f64>) -> tensor<f64> {
  %0 = call @inner(%x) : (tensor<f64>) -> tensor<f64>
  %w = gpuc.read @w : tensor<f64>
  %1 = gpuc.mul %0, %w : tensor<f64>
  return %1 : tensor<f64>
}
func.func @nested(%x: tensor<f64>) -> tensor<f64> {
  %y, %dw = gpuc.gradient @outer(%x) wrt [@w] : (tensor<f64>) -> (tensor<f64>, tensor<f64>)
  return %dw : tensor<f64>
}

// -----

// Gradient of a gradient: y = exp(x), y' = 1 · y; by the chain rule through the product, y'' = 1 · exp(x) as well.
// CHECK-LABEL: func.func @second(
// CHECK-NOT:     gpuc.gradient
// CHECK:         %[[Y:.*]] = gpuc.exp
// CHECK:         %[[FIRST:.*]] = gpuc.mul %{{.*}}, %[[Y]]
// CHECK:         %[[ONE:.*]] = gpuc.constant 1.0
// CHECK:         %[[DY:.*]] = gpuc.mul %[[ONE]], %{{.*}}
// CHECK:         %[[DDX:.*]] = gpuc.mul %[[DY]], %[[Y]]
// CHECK:         return %[[DDX]]
func.func @f(%x: tensor<f64>) -> tensor<f64> {
  %0 = gpuc.exp %x : tensor<f64>
  return %0 : tensor<f64>
}
func.func @first(%x: tensor<f64>) -> tensor<f64> {
  %y, %dx = gpuc.gradient @f(%x) wrt arguments [0] : (tensor<f64>) -> (tensor<f64>, tensor<f64>)
  return %dx : tensor<f64>
}
func.func @second(%x: tensor<f64>) -> tensor<f64> {
  %y, %ddx = gpuc.gradient @first(%x) wrt arguments [0] : (tensor<f64>) -> (tensor<f64>, tensor<f64>)
  return %ddx : tensor<f64>
}

// -----

// What flows back is the seed that the gradient names.
// CHECK-LABEL: func.func @seeded(
// CHECK-SAME:    %[[X:.*]]: tensor<4xf64>, %[[SEED:.*]]: tensor<f64>
// CHECK-NOT:     gpuc.constant
// CHECK:         %[[Y:.*]] = gpuc.sum %[[X]]
// CHECK:         %[[DX:.*]] = gpuc.broadcast %[[SEED]] dims [] : tensor<f64> to tensor<4xf64>
// CHECK:         return %[[Y]], %[[DX]]
func.func @total(%x: tensor<4xf64>) -> tensor<f64> {
  %0 = gpuc.sum %x dims [0] : (tensor<4xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}
func.func @seeded(%x: tensor<4xf64>, %seed: tensor<f64>) -> (tensor<f64>, tensor<4xf64>) {
  %y, %dx = gpuc.gradient @total(%x) seed %seed : tensor<f64> wrt arguments [0] : (tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
  return %y, %dx : tensor<f64>, tensor<4xf64>
}

// -----

// A recipe is nothing that is differentiated.
// CHECK-LABEL: func.func @loss(
// CHECK-NOT:   @gradients
gpuc.variable @w : tensor<2xf32> init ones
func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
gpuc.recipe { loss = @loss, optimizer = sgd, loss_scale = static(scale = 8.0) }
