// RUN: gpuc-opt %s --gpuc-hoist-from-scans --canonicalize --cse | FileCheck %s
// RUN: gpuc-opt %s --gpuc-hoist-from-scans -o %t && gpuc-opt %t --gpuc-hoist-from-scans | diff %t -

// x_t · W for all steps is one product in front of the loop: 3 · 2 rows.
// CHECK-LABEL: func.func @input_product(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<3x2x4xf32>, %[[H:[a-z0-9]+]]: tensor<2x5xf32>, %[[W:[a-z0-9]+]]: tensor<4x5xf32>
// CHECK: %[[ROWS:.*]] = gpuc.reshape %[[X]] : tensor<3x2x4xf32> to tensor<6x4xf32>
// CHECK: %[[P:.*]] = gpuc.matmul %[[ROWS]], %[[W]]
// CHECK: %[[PS:.*]] = gpuc.reshape %[[P]] : tensor<6x5xf32> to tensor<3x2x5xf32>
// CHECK: gpuc.scan over(%[[PS]]) carry(%[[H]]) : (tensor<3x2x5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
// CHECK-NOT: gpuc.matmul
// CHECK: return
func.func @input_product(%x: tensor<3x2x4xf32>, %h: tensor<2x5xf32>, %w: tensor<4x5xf32>) -> tensor<2x5xf32> {
  %y = gpuc.scan over(%x) carry(%h) captures(%w) : (tensor<3x2x4xf32>, tensor<2x5xf32>, tensor<4x5xf32>) -> tensor<2x5xf32> {
  ^bb0(%a: tensor<2x4xf32>, %c: tensor<2x5xf32>, %v: tensor<4x5xf32>):
    %0 = gpuc.matmul %a, %v : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
    %1 = gpuc.add %0, %c : tensor<2x5xf32>
    gpuc.yield %1 : tensor<2x5xf32>
  }
  return %y : tensor<2x5xf32>
}

// What depends on captures alone is computed once. The broadcast costs nothing in a kernel, and stays.
// CHECK-LABEL: func.func @invariant(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<3x2x4xf32>, %[[W:[a-z0-9]+]]: tensor<4xf32>
// CHECK: %[[E:.*]] = gpuc.exp %[[W]]
// CHECK: gpuc.scan over(%[[X]]) captures(%[[E]])
// CHECK: gpuc.broadcast
func.func @invariant(%x: tensor<3x2x4xf32>, %w: tensor<4xf32>) -> tensor<3x2x4xf32> {
  %y = gpuc.scan over(%x) captures(%w) : (tensor<3x2x4xf32>, tensor<4xf32>) -> tensor<3x2x4xf32> {
  ^bb0(%a: tensor<2x4xf32>, %v: tensor<4xf32>):
    %0 = gpuc.exp %v : tensor<4xf32>
    %1 = gpuc.broadcast %0 dims [1] : tensor<4xf32> to tensor<2x4xf32>
    %2 = gpuc.mul %a, %1 : tensor<2x4xf32>
    gpuc.yield %2 : tensor<2x4xf32>
  }
  return %y : tensor<3x2x4xf32>
}

// A weight's and a bias's gradient, which the loop only adds up: one product and one sum behind it, over the input that is
// there and a stack of what the iterations give. Nothing is left to carry.
// CHECK-LABEL: func.func @sums(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<3x2x4xf32>, %[[D:[a-z0-9]+]]: tensor<3x2x5xf32>
// CHECK: %[[S:.*]] = gpuc.scan over(%[[D]]) reverse : (tensor<3x2x5xf32>) -> tensor<3x2x5xf32>
// CHECK-NOT: gpuc.matmul
// CHECK: gpuc.yield
// CHECK-DAG: %[[A:.*]] = gpuc.reshape %[[X]] : tensor<3x2x4xf32> to tensor<6x4xf32>
// CHECK-DAG: %[[B:.*]] = gpuc.reshape %[[S]] : tensor<3x2x5xf32> to tensor<6x5xf32>
// CHECK-DAG: %[[DW:.*]] = gpuc.matmul transpose %[[A]], %[[B]]
// CHECK-DAG: %[[DB:.*]] = gpuc.sum %[[S]] dims [0, 1]
// CHECK: return %[[DW]], %[[DB]]
func.func @sums(%x: tensor<3x2x4xf32>, %d: tensor<3x2x5xf32>) -> (tensor<4x5xf32>, tensor<5xf32>) {
  %zero_w = gpuc.constant 0.0 : tensor<4x5xf32>
  %zero_b = gpuc.constant 0.0 : tensor<5xf32>
  %w, %b = gpuc.scan over(%x, %d) carry(%zero_w, %zero_b) reverse
      : (tensor<3x2x4xf32>, tensor<3x2x5xf32>, tensor<4x5xf32>, tensor<5xf32>) -> (tensor<4x5xf32>, tensor<5xf32>) {
  ^bb0(%a: tensor<2x4xf32>, %c: tensor<2x5xf32>, %sw: tensor<4x5xf32>, %sb: tensor<5xf32>):
    %0 = gpuc.sin %c : tensor<2x5xf32>
    %1 = gpuc.matmul transpose %a, %0 : (tensor<2x4xf32>, tensor<2x5xf32>) -> tensor<4x5xf32>
    %2 = gpuc.add %sw, %1 : tensor<4x5xf32>
    %3 = gpuc.sum %0 dims [0] : (tensor<2x5xf32>) -> tensor<5xf32>
    %4 = gpuc.add %sb, %3 : tensor<5xf32>
    gpuc.yield %2, %4 : tensor<4x5xf32>, tensor<5xf32>
  }
  return %w, %b : tensor<4x5xf32>, tensor<5xf32>
}

// What it was before the loop is added to.
// CHECK-LABEL: func.func @sum_from(
// CHECK-SAME: %[[D:[a-z0-9]+]]: tensor<3x5xf32>, %[[S0:[a-z0-9]+]]: tensor<f32>
// CHECK-NOT: gpuc.scan
// CHECK: %[[S:.*]] = gpuc.sum %[[D]] dims [0, 1]
// CHECK: gpuc.add %[[S0]], %[[S]]
func.func @sum_from(%d: tensor<3x5xf32>, %s0: tensor<f32>) -> tensor<f32> {
  %s = gpuc.scan over(%d) carry(%s0) : (tensor<3x5xf32>, tensor<f32>) -> tensor<f32> {
  ^bb0(%a: tensor<5xf32>, %c: tensor<f32>):
    %0 = gpuc.sum %a dims [0] : (tensor<5xf32>) -> tensor<f32>
    %1 = gpuc.add %c, %0 : tensor<f32>
    gpuc.yield %1 : tensor<f32>
  }
  return %s : tensor<f32>
}

// An output that is a product with a capture is one product of what goes into it.
// CHECK-LABEL: func.func @output_product(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<3x2x4xf32>, %[[W:[a-z0-9]+]]: tensor<5x4xf32>
// CHECK: %[[S:.*]] = gpuc.scan over(%[[X]]) : (tensor<3x2x4xf32>) -> tensor<3x2x4xf32>
// CHECK: %[[ROWS:.*]] = gpuc.reshape %[[S]]
// CHECK: gpuc.matmul %[[ROWS]], transpose %[[W]] : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
func.func @output_product(%x: tensor<3x2x4xf32>, %w: tensor<5x4xf32>) -> tensor<3x2x5xf32> {
  %y = gpuc.scan over(%x) captures(%w) : (tensor<3x2x4xf32>, tensor<5x4xf32>) -> tensor<3x2x5xf32> {
  ^bb0(%a: tensor<2x4xf32>, %v: tensor<5x4xf32>):
    %0 = gpuc.sin %a : tensor<2x4xf32>
    %1 = gpuc.matmul %0, transpose %v : (tensor<2x4xf32>, tensor<5x4xf32>) -> tensor<2x5xf32>
    gpuc.yield %1 : tensor<2x5xf32>
  }
  return %y : tensor<3x2x5xf32>
}

// What hangs on what is carried stays: h · U; a sum that the iterations look at; a product that is added to what each
// iteration scales.
// CHECK-LABEL: func.func @carried(
// CHECK-NOT: gpuc.matmul
// CHECK-NOT: gpuc.sum
// CHECK: gpuc.scan
// CHECK: gpuc.matmul
// CHECK: gpuc.sum
// CHECK: gpuc.sum
// CHECK: gpuc.yield
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @carried(%d: tensor<3x2x4xf32>, %h: tensor<2x4xf32>, %s0: tensor<4xf32>, %t0: tensor<4xf32>, %u: tensor<4x4xf32>)
    -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %hn, %s, %t = gpuc.scan over(%d) carry(%h, %s0, %t0) captures(%u)
      : (tensor<3x2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x4xf32>)
      -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: tensor<2x4xf32>, %c: tensor<2x4xf32>, %e: tensor<4xf32>, %f: tensor<4xf32>, %v: tensor<4x4xf32>):
    %0 = gpuc.matmul %c, %v : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %1 = gpuc.broadcast %e dims [1] : tensor<4xf32> to tensor<2x4xf32>
    %2 = gpuc.add %0, %1 : tensor<2x4xf32>
    %3 = gpuc.add %2, %a : tensor<2x4xf32>
    %4 = gpuc.sum %3 dims [0] : (tensor<2x4xf32>) -> tensor<4xf32>
    %5 = gpuc.add %e, %4 : tensor<4xf32>
    %6 = gpuc.sin %f : tensor<4xf32>
    %7 = gpuc.sum %a dims [0] : (tensor<2x4xf32>) -> tensor<4xf32>
    %8 = gpuc.add %6, %7 : tensor<4xf32>
    gpuc.yield %3, %5, %8 : tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %hn, %s, %t : tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Of chunks of one computation nothing is stacked: the products stay, what depends on captures alone goes.
// CHECK-LABEL: func.func @chunked(
// CHECK:         gpuc.exp
// CHECK:         gpuc.scan {{.*}} chunked
// CHECK-COUNT-2:   gpuc.matmul
// CHECK-NOT:     gpuc.matmul
// CHECK:         return
func.func @chunked(%x: tensor<3x2x4xf32>, %sum: tensor<4x5xf32>, %w: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %y = gpuc.scan over(%x) carry(%sum) captures(%w) chunked : (tensor<3x2x4xf32>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%a: tensor<2x4xf32>, %s: tensor<4x5xf32>, %v: tensor<4x5xf32>):
    %e = gpuc.exp %v : tensor<4x5xf32>
    %0 = gpuc.matmul %a, %e : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
    %1 = gpuc.matmul transpose %a, %0 : (tensor<2x4xf32>, tensor<2x5xf32>) -> tensor<4x5xf32>
    %2 = gpuc.add %s, %1 : tensor<4x5xf32>
    gpuc.yield %2 : tensor<4x5xf32>
  }
  return %y : tensor<4x5xf32>
}

// A transpose that a loop in the loop reads would be made in each iteration: no kernel takes it in. With it goes its sum, which has left
// the inner loop.
// CHECK-LABEL: func.func @transposed_for_inner(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<3x2x4xf32>, %[[H:[a-z0-9]+]]: tensor<4xf32>, %[[W:[a-z0-9]+]]: tensor<4x5xf32>
// CHECK: %[[T:.*]] = gpuc.transpose %[[W]]
// CHECK: %[[SUM:.*]] = gpuc.sum %[[T]]
// CHECK: gpuc.scan over(%[[X]]) carry(%[[H]]) captures(%[[SUM]]) chunked
// CHECK-NOT: gpuc.transpose
// CHECK-NOT: gpuc.sum
// CHECK: return
func.func @transposed_for_inner(%x: tensor<3x2x4xf32>, %h: tensor<4xf32>, %w: tensor<4x5xf32>) -> tensor<4xf32> {
  %y = gpuc.scan over(%x) carry(%h) captures(%w) chunked : (tensor<3x2x4xf32>, tensor<4xf32>, tensor<4x5xf32>) -> tensor<4xf32> {
  ^bb0(%chunk: tensor<2x4xf32>, %c: tensor<4xf32>, %v: tensor<4x5xf32>):
    %t = gpuc.transpose %v permutation [1, 0] : (tensor<4x5xf32>) -> tensor<5x4xf32>
    %n = gpuc.scan over(%chunk) carry(%c) captures(%t) : (tensor<2x4xf32>, tensor<4xf32>, tensor<5x4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>, %d: tensor<4xf32>, %u: tensor<5x4xf32>):
      %0 = gpuc.sum %u dims [0] : (tensor<5x4xf32>) -> tensor<4xf32>
      %1 = gpuc.mul %d, %0 : tensor<4xf32>
      %2 = gpuc.add %1, %a : tensor<4xf32>
      gpuc.yield %2 : tensor<4xf32>
    }
    gpuc.yield %n : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
