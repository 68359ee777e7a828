// RUN: gpuc-opt %s -split-input-file --gpuc-cut-scans | FileCheck %s

// 128 steps: the least divisor that is no less than 16, nor than the root of 128, is 16. Stacks are cut in 8 chunks of 16, what
// is carried goes from chunk to chunk, captures are the same in all.
// CHECK-LABEL: func.func @cut(
// CHECK-SAME:  %[[X:[a-z0-9]+]]: tensor<128x2x4xf32>, %[[H:[a-z0-9]+]]: tensor<2x4xf32>, %[[W:[a-z0-9]+]]: tensor<4xf32>
// CHECK:       %[[CHUNKS:.*]] = gpuc.reshape %[[X]] : tensor<128x2x4xf32> to tensor<8x16x2x4xf32>
// CHECK:       %[[OUTER:.*]]:2 = gpuc.scan over(%[[CHUNKS]]) carry(%[[H]]) captures(%[[W]]) chunked
// CHECK-SAME:    -> (tensor<2x4xf32>, tensor<8x16x2x4xf32>)
// CHECK-NEXT:  ^bb0(%[[CHUNK:.*]]: tensor<16x2x4xf32>, %[[CARRIED:.*]]: tensor<2x4xf32>, %[[CAPTURED:.*]]: tensor<4xf32>):
// CHECK-NEXT:    %[[INNER:.*]]:2 = gpuc.scan over(%[[CHUNK]]) carry(%[[CARRIED]]) captures(%[[CAPTURED]]) :
// CHECK:           gpuc.mul
// CHECK:         gpuc.yield %[[INNER]]#0, %[[INNER]]#1
// CHECK:       %[[YS:.*]] = gpuc.reshape %[[OUTER]]#1 : tensor<8x16x2x4xf32> to tensor<128x2x4xf32>
// CHECK:       return %[[OUTER]]#0, %[[YS]]
func.func @cut(%x: tensor<128x2x4xf32>, %h: tensor<2x4xf32>, %w: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<128x2x4xf32>) {
  %y, %ys = gpuc.scan over(%x) carry(%h) captures(%w)
      : (tensor<128x2x4xf32>, tensor<2x4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<128x2x4xf32>) {
  ^bb0(%a: tensor<2x4xf32>, %c: tensor<2x4xf32>, %v: tensor<4xf32>):
    %0 = gpuc.broadcast %v dims [1] : tensor<4xf32> to tensor<2x4xf32>
    %1 = gpuc.mul %c, %0 : tensor<2x4xf32>
    %2 = gpuc.add %1, %a : tensor<2x4xf32>
    gpuc.yield %2, %2 : tensor<2x4xf32>, tensor<2x4xf32>
  }
  return %y, %ys : tensor<2x4xf32>, tensor<128x2x4xf32>
}

// -----

// In reverse both loops go from the end. Where there are no inputs, each counts: 784 = 28 chunks of 28.
// CHECK-LABEL: func.func @reverse_count(
// CHECK:       gpuc.scan count 28 carry(%{{.*}}) reverse chunked
// CHECK:         gpuc.scan count 28 carry(%{{.*}}) reverse :
func.func @reverse_count(%h: tensor<4xf32>) -> tensor<4xf32> {
  %y = gpuc.scan count 784 carry(%h) reverse : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%c: tensor<4xf32>):
    %0 = gpuc.exp %c : tensor<4xf32>
    gpuc.yield %0 : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// -----

// Left as they are: 127 steps are few; 131 have no divisor; 254 have 127 alone, of which there are but two; nothing is carried
// in the last loop.
// CHECK-LABEL: func.func @left(
// CHECK-NOT:   chunked
func.func @left(%h: tensor<4xf32>, %x: tensor<256x4xf32>) -> (tensor<4xf32>, tensor<256x4xf32>) {
  %0 = gpuc.scan count 127 carry(%h) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%c: tensor<4xf32>):
    %n = gpuc.exp %c : tensor<4xf32>
    gpuc.yield %n : tensor<4xf32>
  }
  %1 = gpuc.scan count 131 carry(%0) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%c: tensor<4xf32>):
    %n = gpuc.exp %c : tensor<4xf32>
    gpuc.yield %n : tensor<4xf32>
  }
  %2 = gpuc.scan count 254 carry(%1) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%c: tensor<4xf32>):
    %n = gpuc.exp %c : tensor<4xf32>
    gpuc.yield %n : tensor<4xf32>
  }
  %3 = gpuc.scan over(%x) : (tensor<256x4xf32>) -> tensor<256x4xf32> {
  ^bb0(%c: tensor<4xf32>):
    %n = gpuc.exp %c : tensor<4xf32>
    gpuc.yield %n : tensor<4xf32>
  }
  return %2, %3 : tensor<4xf32>, tensor<256x4xf32>
}
