// RUN: gpuc-opt %s -canonicalize | FileCheck %s

// What nobody reads goes, with all that it alone needs: an output, a carry that only serves itself, a capture, an input.
// CHECK-LABEL: func.func @unused(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<3x4xf32>, %{{.*}}: tensor<3x4xf32>, %[[H:[a-z0-9]+]]: tensor<4xf32>
// CHECK: %[[Y:.*]] = gpuc.scan over(%[[X]]) carry(%[[H]]) : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4xf32>, %[[C:.*]]: tensor<4xf32>):
// CHECK-NEXT: %[[N:.*]] = gpuc.mul %[[A]], %[[C]]
// CHECK-NEXT: gpuc.yield %[[N]] : tensor<4xf32>
func.func @unused(%x: tensor<3x4xf32>, %z: tensor<3x4xf32>, %h: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %y, %dead, %stack = gpuc.scan over(%x, %z) carry(%h, %w) captures(%w)
      : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>) {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>, %d: tensor<4xf32>, %e: tensor<4xf32>):
    %n = gpuc.mul %a, %c : tensor<4xf32>
    %m = gpuc.sin %d : tensor<4xf32>
    %o = gpuc.mul %e, %b : tensor<4xf32>
    gpuc.yield %n, %m, %o : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// What is handed on as it came is a capture, and its final value the first one. Without inputs, the count remains.
// CHECK-LABEL: func.func @invariant(
// CHECK-SAME: %{{.*}}: tensor<3x4xf32>, %[[H:[a-z0-9]+]]: tensor<4xf32>, %[[W:[a-z0-9]+]]: tensor<4xf32>
// CHECK: %[[Y:.*]] = gpuc.scan count 3 carry(%[[H]]) captures(%[[W]])
// CHECK: return %[[Y]], %[[W]]
func.func @invariant(%x: tensor<3x4xf32>, %h: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y, %same = gpuc.scan over(%x) carry(%h, %w) : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>, %c: tensor<4xf32>, %d: tensor<4xf32>):
    %n = gpuc.mul %c, %d : tensor<4xf32>
    gpuc.yield %n, %d : tensor<4xf32>, tensor<4xf32>
  }
  return %y, %same : tensor<4xf32>, tensor<4xf32>
}

// Equal outputs are one, and one that is an input again is that input. Equal operands are one.
// CHECK-LABEL: func.func @equal(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<3x4xf32>, %[[W:[a-z0-9]+]]: tensor<4xf32>
// CHECK: %[[Y:.*]] = gpuc.scan over(%[[X]]) captures(%[[W]]) : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
// CHECK: return %[[Y]], %[[Y]], %[[X]]
func.func @equal(%x: tensor<3x4xf32>, %w: tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) {
  %y:3 = gpuc.scan over(%x, %x) captures(%w, %w)
      : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>, %v: tensor<4xf32>, %w_: tensor<4xf32>):
    %n = gpuc.mul %a, %v : tensor<4xf32>
    %m = gpuc.add %n, %w_ : tensor<4xf32>
    gpuc.yield %m, %m, %b : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %y#0, %y#1, %y#2 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
}

// A number is better known inside.
// CHECK-LABEL: func.func @number(
// CHECK: gpuc.scan over(%{{[a-z0-9]*}}) :
// CHECK: gpuc.constant 2.0
func.func @number(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %two = gpuc.constant 2.0 : tensor<4xf32>
  %y = gpuc.scan over(%x) captures(%two) : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32> {
  ^bb0(%a: tensor<4xf32>, %t: tensor<4xf32>):
    %n = gpuc.mul %a, %t : tensor<4xf32>
    gpuc.yield %n : tensor<4xf32>
  }
  return %y : tensor<3x4xf32>
}

// One iteration is no loop.
// CHECK-LABEL: func.func @single(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<1x4xf32>, %[[H:[a-z0-9]+]]: tensor<4xf32>
// CHECK-NEXT: %[[S:.*]] = gpuc.reshape %[[X]] : tensor<1x4xf32> to tensor<4xf32>
// CHECK-NEXT: %[[N:.*]] = gpuc.mul %[[S]], %[[H]]
// CHECK-NEXT: %[[Y:.*]] = gpuc.reshape %[[N]] : tensor<4xf32> to tensor<1x4xf32>
// CHECK-NEXT: return %[[N]], %[[Y]]
func.func @single(%x: tensor<1x4xf32>, %h: tensor<4xf32>) -> (tensor<4xf32>, tensor<1x4xf32>) {
  %n, %y = gpuc.scan over(%x) carry(%h) : (tensor<1x4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<1x4xf32>) {
  ^bb0(%a: tensor<4xf32>, %c: tensor<4xf32>):
    %m = gpuc.mul %a, %c : tensor<4xf32>
    gpuc.yield %m, %m : tensor<4xf32>, tensor<4xf32>
  }
  return %n, %y : tensor<4xf32>, tensor<1x4xf32>
}

// What is needed stays as it is.
// CHECK-LABEL: func.func @needed(
// CHECK: gpuc.scan over(%{{.*}}) carry(%{{.*}}, %{{.*}}) : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
func.func @needed(%x: tensor<3x4xf32>, %h: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %y, %through_y = gpuc.scan over(%x) carry(%h, %g) : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>, %c: tensor<4xf32>, %d: tensor<4xf32>):
    %n = gpuc.mul %d, %a : tensor<4xf32>
    %m = gpuc.sin %d : tensor<4xf32>
    gpuc.yield %n, %m : tensor<4xf32>, tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
