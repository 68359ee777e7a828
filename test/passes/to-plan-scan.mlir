// RUN: gpuc-opt %s -split-input-file --gpuc-to-plan | FileCheck %s
// RUN: gpuc-opt %s -split-input-file --gpuc-to-plan --plan-order --plan-assign-streams --plan-place-buffers --plan-verify -o /dev/null

// h is an output: iteration i reads slot i of six and writes slot i + 1. The zeros are filled into slot 0. Slices of x
// (32 bytes) are read where they lie; nothing is copied but the final value, which the caller reads as a whole.

// CHECK-LABEL: module @stacked
// CHECK: %[[X:.*]] = plan.input "x" : tensor<5x2x4xf32>
// CHECK: %[[H:.*]] = plan.buffer "rnn.carry" : tensor<6x2x4xf32> activation
// CHECK: %[[INIT:.*]] = plan.view %[[H]][0] : tensor<2x4xf32>
// CHECK: %[[ALL:.*]] = plan.view %[[H]][32] : tensor<5x2x4xf32>
// CHECK: %[[LAST:.*]] = plan.view %[[H]][160] : tensor<2x4xf32>
// CHECK: plan.fill %[[INIT]] with 0.0
// CHECK: plan.repeat 5 {
// CHECK-DAG: %[[XI:.*]] = plan.view %[[X]][0] strides [32] : tensor<2x4xf32>
// CHECK-DAG: %[[HI:.*]] = plan.view %[[H]][0] strides [32] : tensor<2x4xf32>
// CHECK-DAG: %[[HN:.*]] = plan.view %[[H]][32] strides [32] : tensor<2x4xf32>
// CHECK: plan.launch @cell(%[[XI]], %[[HI]]) -> (%[[HN]])
// CHECK-NOT: plan.copy
// CHECK: }
// CHECK: plan.launch @mean(%[[ALL]])
// CHECK: plan.copy %[[LAST]] -> %[[COPY:.*]]
// CHECK: plan.output "hn" %[[COPY]]
module @stacked {
  func.func @predict(%x: tensor<5x2x4xf32> {gpuc.name = "x"})
      -> (tensor<f32> {gpuc.name = "y"}, tensor<2x4xf32> {gpuc.name = "hn"}) {
    %zeros = gpuc.constant 0.0 : tensor<2x4xf32>
    %hn, %hs = gpuc.scan over(%x) carry(%zeros) : (tensor<5x2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<5x2x4xf32>) {
    ^bb0(%xi: tensor<2x4xf32>, %h: tensor<2x4xf32>):
      %n = gpuc.fused "cell" (%xi, %h) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> {
      ^bb0(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>):
        %0 = gpuc.add %a, %b : tensor<2x4xf32>
        gpuc.yield %0 : tensor<2x4xf32>
      }
      gpuc.yield %n, %n : tensor<2x4xf32>, tensor<2x4xf32>
    } loc("rnn")
    %y = gpuc.fused "mean" (%hs) : (tensor<5x2x4xf32>) -> tensor<f32> {
    ^bb0(%a: tensor<5x2x4xf32>):
      %0 = gpuc.mean %a dims [0, 1, 2] : (tensor<5x2x4xf32>) -> tensor<f32>
      gpuc.yield %0 : tensor<f32>
    }
    return %y, %hn : tensor<f32>, tensor<2x4xf32>
  }
}

// -----

// In reverse, slices are read from the last to the first. What is only carried has one place, where it is updated; the
// init is computed there, since nothing else needs it. The outputs go where the stack is.

// CHECK-LABEL: module @reverse
// CHECK: %[[X:.*]] = plan.input "x" : tensor<5x8xf32>
// CHECK: %[[C:.*]] = plan.buffer "lstm.carry" : tensor<8xf32> activation
// CHECK: %[[Y:.*]] = plan.buffer "cell.stack" : tensor<5x8xf32> activation
// CHECK: plan.launch @init(%{{.*}}) -> (%[[C]])
// CHECK: plan.repeat 5 {
// CHECK-DAG: %[[XI:.*]] = plan.view %[[X]][128] strides [-32] : tensor<8xf32>
// CHECK-DAG: %[[YI:.*]] = plan.view %[[Y]][128] strides [-32] : tensor<8xf32>
// CHECK: plan.launch @cell(%[[XI]], %[[C]]) -> (%[[C]], %[[YI]])
// CHECK-NOT: plan.copy
// CHECK: }
// CHECK: plan.output "c" %[[C]]
// CHECK: plan.output "y" %[[Y]]
module @reverse {
  func.func @predict(%x: tensor<5x8xf32> {gpuc.name = "x"}, %w: tensor<8xf32> {gpuc.name = "w"})
      -> (tensor<8xf32> {gpuc.name = "c"}, tensor<5x8xf32> {gpuc.name = "y"}) {
    %c0 = gpuc.fused "init" (%w) : (tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%a: tensor<8xf32>):
      %0 = gpuc.sin %a : tensor<8xf32>
      gpuc.yield %0 : tensor<8xf32>
    }
    %c, %ys = gpuc.scan over(%x) carry(%c0) reverse : (tensor<5x8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<5x8xf32>) {
    ^bb0(%xi: tensor<8xf32>, %ci: tensor<8xf32>):
      %n:2 = gpuc.fused "cell" (%xi, %ci) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
        %0 = gpuc.add %a, %b : tensor<8xf32>
        %1 = gpuc.sin %0 : tensor<8xf32>
        gpuc.yield %0, %1 : tensor<8xf32>, tensor<8xf32>
      }
      gpuc.yield %n#0, %n#1 : tensor<8xf32>, tensor<8xf32>
    } loc("lstm")
    return %c, %ys : tensor<8xf32>, tensor<5x8xf32>
  }
}

// -----

// The next value is written over the carried one only if nobody reads that any more: here a product does, and a product
// cannot be computed in place either. So it is copied when the iteration ends.

// CHECK-LABEL: module @late_reader
// CHECK: plan.repeat 3 {
// CHECK: plan.matmul %{{.*}}, %[[C:.*]] -> %[[N:[a-z0-9_]*]]
// CHECK: plan.matmul %[[N]], %[[C]] ->
// CHECK: plan.copy %[[N]] -> %[[C]]
// CHECK-NEXT: }
module @late_reader {
  func.func @predict(%x: tensor<3x16x16xf32> {gpuc.name = "x"}, %c: tensor<16x16xf32> {gpuc.name = "c"})
      -> (tensor<16x16xf32> {gpuc.name = "cn"}, tensor<3x16x16xf32> {gpuc.name = "y"}) {
    %cn, %ys = gpuc.scan over(%x) carry(%c) : (tensor<3x16x16xf32>, tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<3x16x16xf32>) {
    ^bb0(%xi: tensor<16x16xf32>, %ci: tensor<16x16xf32>):
      %n = gpuc.matmul %xi, %ci : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
      %y = gpuc.matmul %n, %ci : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
      gpuc.yield %n, %y : tensor<16x16xf32>, tensor<16x16xf32>
    }
    return %cn, %ys : tensor<16x16xf32>, tensor<3x16x16xf32>
  }
}

// -----

// Values that change places go by way of buffers of their own: each would overwrite the other.

// CHECK-LABEL: module @exchange
// CHECK: plan.repeat 3 {
// CHECK-NEXT: plan.copy %[[B:.*]] -> %[[HELD_B:.*]]
// CHECK-NEXT: plan.copy %[[A:.*]] -> %[[HELD_A:.*]]
// CHECK-NEXT: plan.copy %[[HELD_B]] -> %[[A]]
// CHECK-NEXT: plan.copy %[[HELD_A]] -> %[[B]]
// CHECK-NEXT: }
module @exchange {
  func.func @predict(%a: tensor<16xf32> {gpuc.name = "a"}, %b: tensor<16xf32> {gpuc.name = "b"})
      -> (tensor<16xf32> {gpuc.name = "an"}, tensor<16xf32> {gpuc.name = "bn"}) {
    %r:2 = gpuc.scan count 3 carry(%a, %b) : (tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
    ^bb0(%ai: tensor<16xf32>, %bi: tensor<16xf32>):
      gpuc.yield %bi, %ai : tensor<16xf32>, tensor<16xf32>
    }
    return %r#0, %r#1 : tensor<16xf32>, tensor<16xf32>
  }
}

// -----

// A loop in a loop: the inner one's views move with both. The inner stack lies in the outer one.

// CHECK-LABEL: module @nested
// CHECK: %[[X:.*]] = plan.input "x" : tensor<3x2x16xf32>
// CHECK: %[[Y:.*]] = plan.buffer "{{.*}}stack" : tensor<3x2x16xf32>
// CHECK: plan.repeat 3 {
// CHECK-DAG: %[[ROW:.*]] = plan.view %[[X]][0] strides [128] : tensor<2x16xf32>
// CHECK-DAG: %[[OUT:.*]] = plan.view %[[Y]][0] strides [128] : tensor<2x16xf32>
// CHECK: plan.repeat 2 {
// CHECK-DAG: %[[XI:.*]] = plan.view %[[ROW]][0] strides [0, 64] : tensor<16xf32>
// CHECK-DAG: %[[YI:.*]] = plan.view %[[OUT]][0] strides [0, 64] : tensor<16xf32>
// CHECK: plan.launch @sin(%[[XI]]) -> (%[[YI]])
// CHECK-NOT: plan.copy
module @nested {
  func.func @predict(%x: tensor<3x2x16xf32> {gpuc.name = "x"}) -> (tensor<3x2x16xf32> {gpuc.name = "y"}) {
    %ys = gpuc.scan over(%x) : (tensor<3x2x16xf32>) -> tensor<3x2x16xf32> {
    ^bb0(%row: tensor<2x16xf32>):
      %y = gpuc.scan over(%row) : (tensor<2x16xf32>) -> tensor<2x16xf32> {
      ^bb0(%xi: tensor<16xf32>):
        %n = gpuc.fused "sin" (%xi) : (tensor<16xf32>) -> tensor<16xf32> {
        ^bb0(%a: tensor<16xf32>):
          %0 = gpuc.sin %a : tensor<16xf32>
          gpuc.yield %0 : tensor<16xf32>
        }
        gpuc.yield %n : tensor<16xf32>
      }
      gpuc.yield %y : tensor<2x16xf32>
    }
    return %ys : tensor<3x2x16xf32>
  }
}

// -----

// A product that is added to what is carried, and to nothing else: the matmul adds it. Neither a buffer of the product nor
// a kernel is needed.

// CHECK-LABEL: module @sum
// CHECK: %[[SUM:.*]] = plan.buffer "scan.carry" : tensor<3x4xf32> activation
// CHECK: plan.fill %[[SUM]] with 0.0
// CHECK: plan.repeat 5 {
// CHECK: plan.matmul transpose %{{.*}}, %{{.*}} -> %[[SUM]] accumulate : f32 batch 1 m 3 n 4 k 2
// CHECK-NOT: plan.launch
// CHECK: }
// CHECK: plan.output "s" %[[SUM]]
module @sum {
  func.func @predict(%x: tensor<5x2x3xf32> {gpuc.name = "x"}, %y: tensor<5x2x4xf32> {gpuc.name = "y"}) -> (tensor<3x4xf32> {gpuc.name = "s"}) {
    %zeros = gpuc.constant 0.0 : tensor<3x4xf32>
    %s = gpuc.scan over(%x, %y) carry(%zeros) chunked : (tensor<5x2x3xf32>, tensor<5x2x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32> {
    ^bb0(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>, %before: tensor<3x4xf32>):
      %p = gpuc.matmul transpose %a, %b : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
      %n = gpuc.fused "add" (%before, %p) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32> {
      ^bb0(%c: tensor<3x4xf32>, %d: tensor<3x4xf32>):
        %0 = gpuc.add %c, %d : tensor<3x4xf32>
        gpuc.yield %0 : tensor<3x4xf32>
      }
      gpuc.yield %n : tensor<3x4xf32>
    }
    return %s : tensor<3x4xf32>
  }
}

// -----

// Who reads the sum behind the product must find what was there before: a kernel adds. So it does where the product is
// needed besides.

// CHECK-LABEL: module @needed
// CHECK: plan.repeat 5 {
// CHECK-NOT: accumulate
// CHECK: plan.launch @add
// CHECK: }
// CHECK: plan.repeat 5 {
// CHECK-NOT: accumulate
// CHECK: plan.launch @add
module @needed {
  func.func @predict(%x: tensor<5x2x2xf32> {gpuc.name = "x"}) -> (tensor<2x2xf32> {gpuc.name = "s"}, tensor<2x2xf32> {gpuc.name = "t"}, tensor<5x2x2xf32> {gpuc.name = "ps"}) {
    %zeros = gpuc.constant 0.0 : tensor<2x2xf32>
    %s = gpuc.scan over(%x) carry(%zeros) chunked : (tensor<5x2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32> {
    ^bb0(%a: tensor<2x2xf32>, %before: tensor<2x2xf32>):
      %p = gpuc.matmul %a, %before : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      %n = gpuc.fused "add" (%p, %before) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32> {
      ^bb0(%c: tensor<2x2xf32>, %d: tensor<2x2xf32>):
        %0 = gpuc.add %c, %d : tensor<2x2xf32>
        gpuc.yield %0 : tensor<2x2xf32>
      }
      gpuc.yield %n : tensor<2x2xf32>
    }
    %t, %ps = gpuc.scan over(%x) carry(%zeros) chunked : (tensor<5x2x2xf32>, tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<5x2x2xf32>) {
    ^bb0(%a: tensor<2x2xf32>, %before: tensor<2x2xf32>):
      %p = gpuc.matmul %a, %a : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      %n = gpuc.fused "add" (%before, %p) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32> {
      ^bb0(%c: tensor<2x2xf32>, %d: tensor<2x2xf32>):
        %0 = gpuc.add %c, %d : tensor<2x2xf32>
        gpuc.yield %0 : tensor<2x2xf32>
      }
      gpuc.yield %n, %p : tensor<2x2xf32>, tensor<2x2xf32>
    }
    return %s, %t, %ps : tensor<2x2xf32>, tensor<2x2xf32>, tensor<5x2x2xf32>
  }
}

// -----

// A product reads all of what a loop carries before it has written all of what comes next: not in the same place.

// CHECK-LABEL: module @product_of_carry
// CHECK: %[[CARRY:.*]] = plan.buffer "scan.carry"
// CHECK: %[[NEXT:.*]] = plan.buffer "rnn.matmul_relu"
// CHECK: plan.repeat 6 {
// CHECK: plan.matmul %[[CARRY]], %{{.*}} -> %[[NEXT]] relu
// CHECK: plan.copy %[[NEXT]] -> %[[CARRY]]
module @product_of_carry {
  func.func @predict(%x: tensor<6x4x4xf32> {gpuc.name = "x"}, %w: tensor<4x4xf32> {gpuc.name = "w"}, %h: tensor<4x4xf32> {gpuc.name = "h"}) -> tensor<4x4xf32> {
    %last = gpuc.scan over(%x) carry(%h) captures(%w) : (tensor<6x4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
    ^bb0(%a: tensor<4x4xf32>, %before: tensor<4x4xf32>, %v: tensor<4x4xf32>):
      %next = gpuc.fused "rnn.matmul_relu" (%before, %v) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
      ^bb0(%l: tensor<4x4xf32>, %r: tensor<4x4xf32>):
        %p = gpuc.matmul %l, %r : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
        %y = gpuc.relu %p : tensor<4x4xf32>
        gpuc.yield %y : tensor<4x4xf32>
      }
      gpuc.yield %next : tensor<4x4xf32>
    }
    return %last : tensor<4x4xf32>
  }
}

// -----

// What adds up the parts of a parallel scan, and does nothing else, is no kernel's.

// CHECK-LABEL: module @sum_of_parts
// CHECK-NOT: plan.kernel @total
// CHECK: plan.kernel @scaled
// CHECK: plan.kernel @columns
// CHECK: %[[PARTS:.*]] = plan.buffer "part.stack" : tensor<2x4xf32> activation
// CHECK: plan.parallel 2 {
// CHECK: plan.sum %[[PARTS]] -> %{{.*}} : f32
// CHECK: plan.launch @scaled
// CHECK: plan.launch @columns
module @sum_of_parts {
  func.func @f(%x: tensor<2x4xf32> {gpuc.name = "x"})
      -> (tensor<4xf32> {gpuc.name = "y"}, tensor<4xf32> {gpuc.name = "z"}, tensor<2xf32> {gpuc.name = "c"}) {
    %parts = gpuc.scan over(%x) parallel : (tensor<2x4xf32>) -> tensor<2x4xf32> {
    ^bb0(%xi: tensor<4xf32>):
      %0 = gpuc.fused "part" (%xi) : (tensor<4xf32>) -> tensor<4xf32> {
      ^bb0(%a: tensor<4xf32>):
        %1 = gpuc.sin %a : tensor<4xf32>
        gpuc.yield %1 : tensor<4xf32>
      }
      gpuc.yield %0 : tensor<4xf32>
    }
    %y = gpuc.fused "total" (%parts) : (tensor<2x4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<2x4xf32>):
      %0 = gpuc.sum %a dims [0] : (tensor<2x4xf32>) -> tensor<4xf32>
      gpuc.yield %0 : tensor<4xf32>
    }
    %z = gpuc.fused "scaled" (%parts) : (tensor<2x4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<2x4xf32>):
      %0 = gpuc.sum %a dims [0] : (tensor<2x4xf32>) -> tensor<4xf32>
      %1 = gpuc.neg %0 : tensor<4xf32>
      gpuc.yield %1 : tensor<4xf32>
    }
    %c = gpuc.fused "columns" (%parts) : (tensor<2x4xf32>) -> tensor<2xf32> {
    ^bb0(%a: tensor<2x4xf32>):
      %0 = gpuc.sum %a dims [1] : (tensor<2x4xf32>) -> tensor<2xf32>
      gpuc.yield %0 : tensor<2xf32>
    }
    return %y, %z, %c : tensor<4xf32>, tensor<4xf32>, tensor<2xf32>
  }
}

// -----

// A parallel scan: what only its iterations use has a part for each, as long as a line of the cache at least, and so has the
// carry of the scan within. Results lie in the stacks.

// CHECK-LABEL: module @parallel
// CHECK: %[[H:.*]] = plan.buffer "rnn.carry" : tensor<2x32xf32> activation
// CHECK: %[[Z:.*]] = plan.buffer "wave" : tensor<2x16xf32> activation
// CHECK: plan.parallel 2 {
// CHECK: %[[MYH:.*]] = plan.view %[[H]][0] strides [128] : tensor<6x1x4xf32>
// CHECK: %[[FIRST:.*]] = plan.view %[[MYH]][0] : tensor<1x4xf32>
// CHECK: %[[MYZ:.*]] = plan.view %[[Z]][0] strides [64] : tensor<1x4xf32>
// CHECK: %[[SLICE:.*]] = plan.view %{{.*}}[0] strides [80] : tensor<5x1x4xf32>
// CHECK: plan.fill %[[FIRST]] with 0.0
// CHECK: plan.repeat 5 {
// CHECK-DAG: plan.view %[[SLICE]][0] strides [0, 16] : tensor<1x4xf32>
// CHECK-DAG: plan.view %[[MYH]][0] strides [0, 16] : tensor<1x4xf32>
// CHECK-DAG: plan.view %[[MYH]][16] strides [0, 16] : tensor<1x4xf32>
// CHECK: }
// CHECK: plan.launch @wave(%{{.*}}) -> (%[[MYZ]])
// CHECK: plan.launch @mean(%[[MYZ]]) ->
module @parallel {
  func.func @f(%x: tensor<2x5x1x4xf32> {gpuc.name = "x"}) -> (tensor<2xf32> {gpuc.name = "y"}, tensor<2x5x1x4xf32> {gpuc.name = "hs"}) {
    %zeros = gpuc.constant 0.0 : tensor<1x4xf32>
    %y, %all = gpuc.scan over(%x) parallel : (tensor<2x5x1x4xf32>) -> (tensor<2xf32>, tensor<2x5x1x4xf32>) {
    ^bb0(%slice: tensor<5x1x4xf32>):
      %start = gpuc.constant 0.0 : tensor<1x4xf32>
      %hn, %hs = gpuc.scan over(%slice) carry(%start) : (tensor<5x1x4xf32>, tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<5x1x4xf32>) {
      ^bb0(%xi: tensor<1x4xf32>, %h: tensor<1x4xf32>):
        %n = gpuc.fused "cell" (%xi, %h) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32> {
        ^bb0(%a: tensor<1x4xf32>, %b: tensor<1x4xf32>):
          %0 = gpuc.add %a, %b : tensor<1x4xf32>
          gpuc.yield %0 : tensor<1x4xf32>
        }
        gpuc.yield %n, %h : tensor<1x4xf32>, tensor<1x4xf32>
      } loc("rnn")
      %wave = gpuc.fused "wave" (%hn) : (tensor<1x4xf32>) -> tensor<1x4xf32> {
      ^bb0(%a: tensor<1x4xf32>):
        %0 = gpuc.sin %a : tensor<1x4xf32>
        gpuc.yield %0 : tensor<1x4xf32>
      }
      %mean = gpuc.fused "mean" (%wave) : (tensor<1x4xf32>) -> tensor<f32> {
      ^bb0(%a: tensor<1x4xf32>):
        %0 = gpuc.mean %a dims [0, 1] : (tensor<1x4xf32>) -> tensor<f32>
        gpuc.yield %0 : tensor<f32>
      }
      gpuc.yield %mean, %slice : tensor<f32>, tensor<5x1x4xf32>
    }
    return %y, %all : tensor<2xf32>, tensor<2x5x1x4xf32>
  }
}
