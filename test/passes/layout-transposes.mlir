// RUN: gpuc-opt %s --gpuc-layout --canonicalize --split-input-file | FileCheck %s

// A norm over the channels of pictures, as models write it: elements are computed, and sums taken, in the order in
// which the pictures lie.
// CHECK-LABEL: func.func @norm(
// CHECK-SAME:      %[[X:.*]]: tensor<2x8x5x6xf32>, %[[W:.*]]: tensor<8xf32>)
// CHECK-NOT:     gpuc.transpose
// CHECK:         %[[SUM:.*]] = gpuc.sum %[[X]] dims [1] : (tensor<2x8x5x6xf32>) -> tensor<2x5x6xf32>
// CHECK:         %[[MEAN:.*]] = gpuc.broadcast %[[SUM]] dims [0, 2, 3]
// CHECK:         %[[CENTERED:.*]] = gpuc.sub %[[X]], %[[MEAN]] : tensor<2x8x5x6xf32>
// CHECK:         %[[SQUARES:.*]] = gpuc.mul %[[CENTERED]], %[[CENTERED]]
// CHECK:         gpuc.sum %[[SQUARES]] dims [1]
// CHECK:         %[[WEIGHT:.*]] = gpuc.broadcast %[[W]] dims [1] : tensor<8xf32> to tensor<2x8x5x6xf32>
// CHECK:         %[[Y:.*]] = gpuc.mul %[[CENTERED]], %[[WEIGHT]]
// CHECK:         %[[PARTS:.*]] = gpuc.sum %[[Y]] dims [0, 2, 3] : (tensor<2x8x5x6xf32>) -> tensor<8xf32>
// CHECK:         return %[[Y]], %{{.*}}, %[[PARTS]]
func.func @norm(%x: tensor<2x8x5x6xf32>, %w: tensor<8xf32>) -> (tensor<2x8x5x6xf32>, tensor<2x5x6xf32>, tensor<8xf32>) {
  %t = gpuc.transpose %x permutation [0, 2, 3, 1] : (tensor<2x8x5x6xf32>) -> tensor<2x5x6x8xf32>
  %s = gpuc.sum %t dims [3] : (tensor<2x5x6x8xf32>) -> tensor<2x5x6xf32>
  %m = gpuc.broadcast %s dims [0, 1, 2] : tensor<2x5x6xf32> to tensor<2x5x6x8xf32>
  %c = gpuc.sub %t, %m : tensor<2x5x6x8xf32>
  %q = gpuc.mul %c, %c : tensor<2x5x6x8xf32>
  %v = gpuc.sum %q dims [3] : (tensor<2x5x6x8xf32>) -> tensor<2x5x6xf32>
  %b = gpuc.broadcast %w dims [3] : tensor<8xf32> to tensor<2x5x6x8xf32>
  %y = gpuc.mul %c, %b : tensor<2x5x6x8xf32>
  %g = gpuc.sum %y dims [0, 1, 2] : (tensor<2x5x6x8xf32>) -> tensor<8xf32>
  %u = gpuc.transpose %y permutation [0, 3, 1, 2] : (tensor<2x5x6x8xf32>) -> tensor<2x8x5x6xf32>
  return %u, %v, %g : tensor<2x8x5x6xf32>, tensor<2x5x6xf32>, tensor<8xf32>
}

// -----

// What is not transposed back stays in its order, and what hangs together with it.
// CHECK-LABEL: func.func @goes_on(
// CHECK-SAME:      %[[X:.*]]: tensor<2x8x30xf32>, %[[W:.*]]: tensor<8x4xf32>)
// CHECK:         %[[T:.*]] = gpuc.transpose %[[X]] permutation [0, 2, 1]
// CHECK:         %[[Y:.*]] = gpuc.exp %[[T]] : tensor<2x30x8xf32>
// CHECK:         gpuc.sum %[[Y]] dims [2]
// CHECK:         gpuc.reshape %[[Y]]
// CHECK:         gpuc.transpose %[[Y]] permutation [0, 2, 1]
func.func @goes_on(%x: tensor<2x8x30xf32>, %w: tensor<8x4xf32>) -> (tensor<60x4xf32>, tensor<2x30xf32>, tensor<2x8x30xf32>) {
  %t = gpuc.transpose %x permutation [0, 2, 1] : (tensor<2x8x30xf32>) -> tensor<2x30x8xf32>
  %y = gpuc.exp %t : tensor<2x30x8xf32>
  %s = gpuc.sum %y dims [2] : (tensor<2x30x8xf32>) -> tensor<2x30xf32>
  %r = gpuc.reshape %y : tensor<2x30x8xf32> to tensor<60x8xf32>
  %p = gpuc.matmul %r, %w : (tensor<60x8xf32>, tensor<8x4xf32>) -> tensor<60x4xf32>
  %u = gpuc.transpose %y permutation [0, 2, 1] : (tensor<2x30x8xf32>) -> tensor<2x8x30xf32>
  return %p, %s, %u : tensor<60x4xf32>, tensor<2x30xf32>, tensor<2x8x30xf32>
}

// -----

// Smaller operands and results are transposed where their dimensions come in another order; an index counts, and is
// found, along the dimension that it had.
// CHECK-LABEL: func.func @orders(
// CHECK-SAME:      %[[X:.*]]: tensor<3x4x5xf32>, %[[P:.*]]: tensor<5x4xf32>)
// CHECK:         %[[BACK:.*]] = gpuc.transpose %[[P]] permutation [1, 0] : (tensor<5x4xf32>) -> tensor<4x5xf32>
// CHECK:         %[[WIDE:.*]] = gpuc.broadcast %[[BACK]] dims [1, 2] : tensor<4x5xf32> to tensor<3x4x5xf32>
// CHECK:         %[[A:.*]] = gpuc.add %[[X]], %[[WIDE]]
// CHECK:         %[[IOTA:.*]] = gpuc.iota dim 1 : tensor<3x4x5xf32>
// CHECK:         %[[B:.*]] = gpuc.add %[[A]], %[[IOTA]]
// CHECK:         gpuc.argmax %[[B]] dim 1 : (tensor<3x4x5xf32>) -> tensor<3x5xi64>
// CHECK:         gpuc.transpose %{{.*}} permutation [1, 0] : (tensor<3x5xi64>) -> tensor<5x3xi64>
// CHECK:         return %[[B]]
func.func @orders(%x: tensor<3x4x5xf32>, %p: tensor<5x4xf32>) -> (tensor<3x4x5xf32>, tensor<5x3xi64>) {
  %t = gpuc.transpose %x permutation [2, 1, 0] : (tensor<3x4x5xf32>) -> tensor<5x4x3xf32>
  %w = gpuc.broadcast %p dims [0, 1] : tensor<5x4xf32> to tensor<5x4x3xf32>
  %i = gpuc.iota dim 1 : tensor<5x4x3xf32>
  %a = gpuc.add %t, %w : tensor<5x4x3xf32>
  %b = gpuc.add %a, %i : tensor<5x4x3xf32>
  %m = gpuc.argmax %b dim 1 : (tensor<5x4x3xf32>) -> tensor<5x3xi64>
  %u = gpuc.transpose %b permutation [2, 1, 0] : (tensor<5x4x3xf32>) -> tensor<3x4x5xf32>
  return %u, %m : tensor<3x4x5xf32>, tensor<5x3xi64>
}

// -----

// There and back, twice: what stands between the two pairs is not between transposes itself.
// CHECK-LABEL: func.func @twice(
// CHECK-SAME:      %[[X:.*]]: tensor<4x6xf32>)
// CHECK-NOT:     gpuc.transpose
// CHECK:         %[[A:.*]] = gpuc.exp %[[X]] : tensor<4x6xf32>
// CHECK:         %[[B:.*]] = gpuc.neg %[[A]] : tensor<4x6xf32>
// CHECK:         %[[C:.*]] = gpuc.tanh %[[B]] : tensor<4x6xf32>
// CHECK:         return %[[C]]
func.func @twice(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %t = gpuc.transpose %x permutation [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %a = gpuc.exp %t : tensor<6x4xf32>
  %u = gpuc.transpose %a permutation [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %b = gpuc.neg %u : tensor<4x6xf32>
  %v = gpuc.transpose %b permutation [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %c = gpuc.tanh %v : tensor<6x4xf32>
  %w = gpuc.transpose %c permutation [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  return %w : tensor<4x6xf32>
}

// -----

// Operands of two orders have none.
// CHECK-LABEL: func.func @two_orders(
// CHECK-COUNT-3: gpuc.transpose
func.func @two_orders(%x: tensor<4x4x4xf32>, %z: tensor<4x4x4xf32>) -> tensor<4x4x4xf32> {
  %t = gpuc.transpose %x permutation [1, 2, 0] : (tensor<4x4x4xf32>) -> tensor<4x4x4xf32>
  %r = gpuc.transpose %z permutation [2, 0, 1] : (tensor<4x4x4xf32>) -> tensor<4x4x4xf32>
  %a = gpuc.add %t, %r : tensor<4x4x4xf32>
  %u = gpuc.transpose %a permutation [2, 0, 1] : (tensor<4x4x4xf32>) -> tensor<4x4x4xf32>
  return %u : tensor<4x4x4xf32>
}

// -----

// The loss of pictures' classes: where a label is the class is computed of an index and a broadcast, in any order.
// CHECK-LABEL: func.func @classes(
// CHECK-SAME:      %[[X:.*]]: tensor<2x8x30xf32>, %[[LABELS:.*]]: tensor<2x30xi64>)
// CHECK-NOT:     gpuc.transpose
// CHECK-DAG:     %[[PLACE:.*]] = gpuc.iota dim 1 : tensor<2x8x30xi64>
// CHECK-DAG:     %[[WIDE:.*]] = gpuc.broadcast %[[LABELS]] dims [0, 2] : tensor<2x30xi64> to tensor<2x8x30xi64>
// CHECK:         %[[IS:.*]] = gpuc.compare eq %[[PLACE]], %[[WIDE]] : tensor<2x8x30xi64>
// CHECK:         %[[CHOSEN:.*]] = gpuc.select %[[IS]], %[[X]], %{{.*}} : tensor<2x8x30xi1>, tensor<2x8x30xf32>
// CHECK:         %[[LOSS:.*]] = gpuc.sum %[[CHOSEN]] dims [1]
// CHECK:         %[[ONE:.*]] = gpuc.select %[[IS]], %{{.*}}, %{{.*}} : tensor<2x8x30xi1>, tensor<2x8x30xf32>
// CHECK:         %[[DX:.*]] = gpuc.sub %[[CHOSEN]], %[[ONE]]
// CHECK:         return %[[LOSS]], %[[DX]]
func.func @classes(%x: tensor<2x8x30xf32>, %labels: tensor<2x30xi64>) -> (tensor<2x30xf32>, tensor<2x8x30xf32>) {
  %zero = gpuc.constant 0.0 : tensor<2x30x8xf32>
  %one = gpuc.constant 1.0 : tensor<2x30x8xf32>
  %t = gpuc.transpose %x permutation [0, 2, 1] : (tensor<2x8x30xf32>) -> tensor<2x30x8xf32>
  %place = gpuc.iota dim 2 : tensor<2x30x8xi64>
  %wide = gpuc.broadcast %labels dims [0, 1] : tensor<2x30xi64> to tensor<2x30x8xi64>
  %is = gpuc.compare eq %place, %wide : tensor<2x30x8xi64>
  %chosen = gpuc.select %is, %t, %zero : tensor<2x30x8xi1>, tensor<2x30x8xf32>
  %loss = gpuc.sum %chosen dims [2] : (tensor<2x30x8xf32>) -> tensor<2x30xf32>
  %ones = gpuc.select %is, %one, %zero : tensor<2x30x8xi1>, tensor<2x30x8xf32>
  %d = gpuc.sub %chosen, %ones : tensor<2x30x8xf32>
  %dx = gpuc.transpose %d permutation [0, 2, 1] : (tensor<2x30x8xf32>) -> tensor<2x8x30xf32>
  return %loss, %dx : tensor<2x30xf32>, tensor<2x8x30xf32>
}

// -----

// What sums alone read needs no transpose back. Another's transpose stays.
// CHECK-LABEL: func.func @summed_up(
// CHECK-SAME:      %[[X:.*]]: tensor<2x8x30xf32>)
// CHECK-NEXT:    %[[T:.*]] = gpuc.transpose %[[X]] permutation [0, 2, 1]
// CHECK-NEXT:    %[[TOP:.*]] = gpuc.reduce_max %[[X]] dims [1] : (tensor<2x8x30xf32>) -> tensor<2x30xf32>
// CHECK-NEXT:    %[[WIDE:.*]] = gpuc.broadcast %[[TOP]] dims [0, 2]
// CHECK-NEXT:    %[[D:.*]] = gpuc.sub %[[X]], %[[WIDE]]
// CHECK-NEXT:    %[[E:.*]] = gpuc.exp %[[D]]
// CHECK-NEXT:    %[[SUM:.*]] = gpuc.sum %[[E]] dims [1]
// CHECK-NEXT:    return %[[SUM]], %[[T]]
func.func @summed_up(%x: tensor<2x8x30xf32>) -> (tensor<2x30xf32>, tensor<2x30x8xf32>) {
  %t = gpuc.transpose %x permutation [0, 2, 1] : (tensor<2x8x30xf32>) -> tensor<2x30x8xf32>
  %top = gpuc.reduce_max %t dims [2] : (tensor<2x30x8xf32>) -> tensor<2x30xf32>
  %wide = gpuc.broadcast %top dims [0, 1] : tensor<2x30xf32> to tensor<2x30x8xf32>
  %d = gpuc.sub %t, %wide : tensor<2x30x8xf32>
  %e = gpuc.exp %d : tensor<2x30x8xf32>
  %sum = gpuc.sum %e dims [2] : (tensor<2x30x8xf32>) -> tensor<2x30xf32>
  return %sum, %t : tensor<2x30xf32>, tensor<2x30x8xf32>
}
