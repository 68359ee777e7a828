// RUN: gpuc-opt %s --gpuc-check-numerics --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// The step itself is left alone. In its copy the input, the variable and log are counted. relu makes nothing of finite numbers, and is as finite as its operand: exp,
// the third, is held against log's count. The first line of each table is what is made, the second what must be finite.
// CHECK-LABEL: func.func private @train_step_checks(
// CHECK-SAME:    tensor<4xi32> {gpuc.checks = [
// CHECK-SAME:      #gpuc.check<op = "input", layer = "x", location = "", backward = false>
// CHECK-SAME:      #gpuc.check<op = "variable", layer = "w", location = "", backward = false>
// CHECK-SAME:      #gpuc.check<op = "log", layer = "head", location = "model.mlir:12:5", backward = false>
// CHECK-SAME:      #gpuc.check<op = "exp", layer = "head", location = "model.mlir:13:5", backward = true>
// CHECK-SAME:    ], gpuc.name = "nonfinite"}
// CHECK:         %[[FINITE:.*]] = gpuc.is_finite %{{.*}} : tensor<3xf32>
// CHECK:         %[[NOT:.*]] = gpuc.not %[[FINITE]]
// CHECK:         %[[ONES:.*]] = gpuc.cast %[[NOT]] : tensor<3xi1> to tensor<3xi32>
// CHECK:         gpuc.sum %[[ONES]] dims [0]
// CHECK:         %[[LOG:.*]] = gpuc.log
// CHECK:         gpuc.is_finite %[[LOG]]
// CHECK:         gpuc.relu
// CHECK-NOT:     is_finite
// CHECK:         %[[EXP:.*]] = gpuc.exp
// CHECK:         gpuc.is_finite %[[EXP]]
// CHECK:         %[[COUNTS:.*]] = gpuc.concat
// CHECK:         %[[OWN:.*]] = gpuc.constant dense<{{\[\[}}0], [1], [2], [3]]> : tensor<4x1xi64>
// CHECK:         %[[OWN_COUNTS:.*]] = gpuc.gather %[[COUNTS]], %[[OWN]]
// CHECK:         %[[MADE:.*]] = gpuc.sum %[[OWN_COUNTS]] dims [1]
// CHECK:         %[[BEFORE:.*]] = gpuc.constant dense<{{\[\[}}-1, -1], [-1, -1], [0, 1], [2, -1]]> : tensor<4x2xi64>
// CHECK:         %[[DIRT:.*]] = gpuc.sum %{{.*}} dims [1]
// CHECK:         %[[CLEAN:.*]] = gpuc.compare eq %[[DIRT]],
// CHECK:         %[[RESULT:.*]] = gpuc.select %[[CLEAN]], %[[MADE]],
// CHECK:         return %[[RESULT]]
gpuc.variable @w : tensor<3xf32> init ones
func.func @train_step(%x: tensor<3xf32> {gpuc.name = "x"}) -> tensor<3xf32> {
  %w = gpuc.read @w : tensor<3xf32>
  %max = gpuc.max %x, %w : tensor<3xf32>
  %log = gpuc.log %max : tensor<3xf32> loc("head"("model.mlir":12:5))
  %relu = gpuc.relu %log : tensor<3xf32>
  %exp = gpuc.exp %relu : tensor<3xf32> loc(fused<"backward">["head"("model.mlir":13:5)])
  return %exp : tensor<3xf32>
}

// -----

// -inf comes from a constant: in the scores NaN alone is counted. softmax takes it away.
// CHECK-LABEL: func.func private @train_step_checks(
// CHECK:         %[[SCORES:.*]] = gpuc.add
// CHECK:         gpuc.compare ne %[[SCORES]], %[[SCORES]]
// CHECK:         %[[P:.*]] = gpuc.softmax
// CHECK:         gpuc.is_finite %[[P]]
func.func @train_step(%x: tensor<3xf32> {gpuc.name = "x"}, %c: tensor<3xi1>) -> tensor<3xf32> {
  %zero = gpuc.constant 0.0 : tensor<3xf32>
  %ninf = gpuc.constant -inf : tensor<3xf32>
  %mask = gpuc.select %c, %zero, %ninf : tensor<3xi1>, tensor<3xf32>
  %scores = gpuc.add %x, %mask : tensor<3xf32>
  %p = gpuc.softmax %scores dim 0 : tensor<3xf32>
  return %p : tensor<3xf32>
}

// -----

// What only a select takes is judged behind it, under the name of the first op that may have made it.
// CHECK-LABEL: func.func private @train_step_checks(
// CHECK-SAME:    tensor<2xi32> {gpuc.checks = [#gpuc.check<op = "input", {{.*}}#gpuc.check<op = "log", layer = "guarded"
// CHECK:         gpuc.log
// CHECK-NEXT:    gpuc.mul
// CHECK-NEXT:    %[[S:.*]] = gpuc.select
// CHECK-NEXT:    gpuc.is_finite %[[S]]
func.func @train_step(%x: tensor<3xf32> {gpuc.name = "x"}, %c: tensor<3xi1>) -> tensor<3xf32> {
  %log = gpuc.log %x : tensor<3xf32> loc("guarded")
  %twice = gpuc.mul %log, %log : tensor<3xf32>
  %safe = gpuc.select %c, %twice, %x : tensor<3xi1>, tensor<3xf32>
  return %safe : tensor<3xf32>
}

// -----

// A loop adds up what its iterations count; the sum of products that it carries is judged behind it.
// CHECK-LABEL: func.func private @train_step_checks(
// CHECK-SAME:    #gpuc.check<op = "exp", layer = "cell"
// CHECK-SAME:    #gpuc.check<op = "matmul", layer = "weight"
// CHECK:         %[[ZEROS:.*]] = gpuc.constant 0 : tensor<1xi32>
// CHECK:         %[[LOOP:.*]]:2 = gpuc.scan over(%{{.*}}) carry(%{{.*}}, %[[ZEROS]])
// CHECK:           %[[EXP:.*]] = gpuc.exp
// CHECK:           %[[PRODUCT:.*]] = gpuc.matmul
// CHECK-NEXT:      %[[SUM:.*]] = gpuc.add %{{.*}}, %[[PRODUCT]]
// CHECK-NOT:       gpuc.is_finite %[[SUM]]
// CHECK:           %[[ALL:.*]] = gpuc.add
// CHECK-NEXT:      gpuc.yield %[[SUM]], %[[ALL]]
// CHECK:         gpuc.is_finite %[[LOOP]]#0
func.func @train_step(%x: tensor<5x2x2xf32> {gpuc.name = "x"}) -> tensor<2x2xf32> {
  %zeros = gpuc.constant 0.0 : tensor<2x2xf32>
  %sum = gpuc.scan over(%x) carry(%zeros) : (tensor<5x2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32> {
  ^bb0(%slice: tensor<2x2xf32>, %carried: tensor<2x2xf32>):
    %exp = gpuc.exp %slice : tensor<2x2xf32> loc("cell")
    %product = gpuc.matmul %exp, transpose %exp : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32> loc("weight")
    %next = gpuc.add %carried, %product : tensor<2x2xf32>
    gpuc.yield %next : tensor<2x2xf32>
  }
  return %sum : tensor<2x2xf32>
}

// -----

// Without a step there is nothing to count.
// CHECK-LABEL: func.func @predict(
// CHECK-NOT:     is_finite
func.func @predict(%x: tensor<3xf32>) -> tensor<3xf32> {
  %log = gpuc.log %x : tensor<3xf32>
  return %log : tensor<3xf32>
}
