// RUN: gpuc-opt %s --gpuc-specialize-batch --gpuc-mask-padding --gpuc-differentiate-loss --gpuc-autodiff --gpuc-expand-recipe \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// What gpuc-expand-recipe makes of gradients over a part of the batch.

// Three microbatches of four rows. The variables are read once, the statistic is carried, the mask of dropout begins where
// the microbatch does, and of the rows that hold samples each gets its own.
// CHECK-LABEL: module @microbatches
// CHECK-SAME:    gpuc.batch = 4 : i64, gpuc.partition = #gpuc.partition<microbatches = 3, rows = 4>
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<12x3xf32> {gpuc.name = "x"}
// CHECK-SAME:    %[[ROWS:[^:]*]]: tensor<i32> {gpuc.name = "rows", gpuc.role = "rows"}
// CHECK:         %[[XS:.*]] = gpuc.reshape %[[X]] : tensor<12x3xf32> to tensor<3x4x3xf32>
// CHECK:         %[[NUMBERS:.*]] = gpuc.iota dim 0 : tensor<3xi64>
// CHECK:         %[[W:.*]] = gpuc.read @w
// CHECK:         %[[MEAN:.*]] = gpuc.read @mean
// CHECK:         %[[LOOP:.*]]:4 = gpuc.scan over(%[[XS]], %[[NUMBERS]]) carry(%{{.*}}, %{{.*}}, %{{.*}}, %[[MEAN]]) captures(%[[ROWS]], %[[W]]{{.*}}) chunked
// CHECK-NEXT:    ^bb0(%[[XI:[^:]*]]: tensor<4x3xf32>, %[[I:[^:]*]]: tensor<i64>, %[[LOSS:[^:]*]]: tensor<f32>, %{{[^:]*}}: tensor<f32>, %[[DW:[^:]*]]: tensor<3xf32>, %[[OLD:[^:]*]]: tensor<3xf32>, %[[ALL:[^:]*]]: tensor<i32>
// CHECK:           %[[NUMBER:.*]] = gpuc.cast %[[I]] : tensor<i64> to tensor<i32>
// CHECK:           %[[FOUR:.*]] = gpuc.constant 4 : tensor<i32>
// CHECK:           %[[BEFORE:.*]] = gpuc.mul %[[NUMBER]], %[[FOUR]]
// CHECK:           %[[LEFT:.*]] = gpuc.sub %[[ALL]], %[[BEFORE]]
// CHECK-DAG:       %[[TWELVE:.*]] = gpuc.constant 12 : tensor<i64>
// CHECK:           %[[FROM:.*]] = gpuc.mul %[[I]], %[[TWELVE]]
// CHECK:           gpuc.random_bits {{.*}} id 7 from %[[FROM]]
// The mask of the weights is the same in all.
// CHECK:           %[[SAME:.*]] = gpuc.constant 0 : tensor<i64>
// CHECK:           gpuc.random_bits {{.*}} id 8 from %[[SAME]]
// CHECK:           %[[NEW:.*]] = gpuc.mul %[[OLD]],
// CHECK:           gpuc.broadcast %[[LEFT]] dims [] : tensor<i32> to tensor<4xi32>
// CHECK:           %[[SUM:.*]], %{{.*}} = gpuc.mse
// CHECK:           %[[LOSS2:.*]] = gpuc.add %[[LOSS]], %[[SUM]]
// CHECK:           %[[DW2:.*]] = gpuc.add %[[DW]], %{{.*}} : tensor<3xf32>
// CHECK:           gpuc.yield %[[LOSS2]], %{{.*}}, %[[DW2]], %[[NEW]]
// CHECK:         gpuc.assign @mean, %[[LOOP]]#3
// CHECK:         gpuc.mul %[[LOOP]]#2, %{{.*}} : tensor<3xf32>
// CHECK:         return %[[LOOP]]#0, %[[LOOP]]#1
// An entry is over a batch, of which nothing must be known.
// CHECK-LABEL: func.func @eval_step(
// CHECK-SAME:    %{{[^:]*}}: tensor<4x3xf32> {gpuc.name = "x"}
module @microbatches {
  gpuc.variable @w : tensor<3xf32> init ones
  gpuc.variable @mean kind statistic : tensor<3xf32> init zeros
  func.func @loss(%x: tensor<?x3xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %0 = gpuc.dropout %x p 0.5 id 7 : tensor<?x3xf32>
    %1 = gpuc.dropout %w p 0.5 id 8 : tensor<3xf32>
    %2 = gpuc.broadcast %1 dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %3 = gpuc.mul %0, %2 : tensor<?x3xf32>
    %mean = gpuc.read @mean : tensor<3xf32>
    %new = gpuc.mul %mean, %mean : tensor<3xf32>
    gpuc.assign @mean, %new : tensor<3xf32>
    %loss, %count = gpuc.mse %3, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, accumulate = 3, optimizer = sgd(lr = 0.1) }
}

// -----

// One microbatch is the batch.
// CHECK-LABEL: module @one
// CHECK-NOT:     gpuc.partition
// CHECK-NOT:     gpuc.scan
// CHECK:       func.func @init(
module @one {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x3xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %2 = gpuc.broadcast %w dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %loss, %count = gpuc.mse %2, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, accumulate = 1, optimizer = sgd(lr = 0.1) }
}

// -----

// Nothing says what the rows are.
module @rows {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<4x3xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %2 = gpuc.broadcast %w dims [1] : tensor<3xf32> to tensor<4x3xf32>
    %loss, %count = gpuc.mse %2, %x : (tensor<4x3xf32>, tensor<4x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  // expected-error @below {{accumulates over 3 microbatches, but no input of @loss has rows to cut: give it a leading `?`}}
  gpuc.recipe { loss = @loss, accumulate = 3, optimizer = sgd(lr = 0.1) }
}

// -----

// The runtime counts rows in i32.
module @many {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x3xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %2 = gpuc.broadcast %w dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %loss, %count = gpuc.mse %2, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  // expected-error @below {{1 ranks of 1073741824 microbatches of 1 slices of 2 rows are 2^31 rows or more: take fewer [partition_C4]}}
  gpuc.recipe { loss = @loss, batch = 2, accumulate = 1073741824, optimizer = sgd(lr = 0.1) }
}

// -----

// What gpuc-slice-batch has made of the loss becomes gradients over all slices at once: nothing is carried, the parts are added
// up behind the loop. Rows and random numbers are those of the whole batch.
// CHECK-LABEL: module @slices
// CHECK-SAME:    gpuc.partition = #gpuc.partition<slices = 2, rows = 8>
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<16x3xf32> {gpuc.name = "x"}
// CHECK:         %[[XS:.*]] = gpuc.reshape %[[X]] : tensor<16x3xf32> to tensor<2x8x3xf32>
// CHECK:         %[[NUMBERS:.*]] = gpuc.iota dim 0 : tensor<2xi64>
// CHECK:         %[[LOOP:.*]]:3 = gpuc.scan over(%[[XS]], %[[NUMBERS]]) captures({{.*}}) chunked parallel
// CHECK-SAME:      -> (tensor<2xf32>, tensor<2xf32>, tensor<2x3xf32>)
// CHECK-NEXT:    ^bb0(%{{[^:]*}}: tensor<8x3xf32>, %[[I:[^:]*]]: tensor<i64>,
// CHECK:           gpuc.constant 8 : tensor<i32>
// CHECK:           %[[ELEMENTS:.*]] = gpuc.constant 24 : tensor<i64>
// CHECK:           %[[FROM:.*]] = gpuc.mul %[[I]], %[[ELEMENTS]]
// CHECK:           gpuc.random_bits {{.*}} id 7 from %[[FROM]]
// CHECK:         %[[LOSS:.*]] = gpuc.sum %[[LOOP]]#0 dims [0]
// CHECK:         %[[COUNT:.*]] = gpuc.sum %[[LOOP]]#1 dims [0]
// CHECK:         %[[DW:.*]] = gpuc.sum %[[LOOP]]#2 dims [0] : (tensor<2x3xf32>) -> tensor<3xf32>
// CHECK:         gpuc.mul %[[DW]], %{{.*}} : tensor<3xf32>
// CHECK:         return %[[LOSS]], %[[COUNT]]
module @slices {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x3xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %0 = gpuc.broadcast %w dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %loss, %count = gpuc.mse %0, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  func.func private @loss_of_slice(%x: tensor<8x3xf32> {gpuc.name = "x", gpuc.partition = #gpuc.partition<slices = 2, rows = 8>})
      -> (tensor<f32>, tensor<f32>) attributes {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>} {
    %w = gpuc.read @w : tensor<3xf32>
    %0 = gpuc.broadcast %w dims [1] : tensor<3xf32> to tensor<8x3xf32>
    %1 = gpuc.dropout %0 p 0.5 id 7 {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>} : tensor<8x3xf32>
    %loss, %count = gpuc.mse %1, %x : (tensor<8x3xf32>, tensor<8x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// A batch that is cut both ways, a loop within a loop. Slice s of microbatch m is part 2 m + s of the batch: its rows begin at 8
// times that, what is drawn for three numbers a row at 24 times that, and where the model says itself from where it draws, behind it.
// CHECK-LABEL: module @both
// CHECK-SAME:    gpuc.partition = #gpuc.partition<microbatches = 3, slices = 2, rows = 8>
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<48x3xf32> {gpuc.name = "x"}
// CHECK:         %[[XS:.*]] = gpuc.reshape %[[X]] : tensor<48x3xf32> to tensor<3x16x3xf32>
// CHECK:         %[[MS:.*]] = gpuc.iota dim 0 : tensor<3xi64>
// CHECK:         gpuc.scan over(%[[XS]], %[[MS]]) carry({{.*}}) captures({{.*}}) chunked :
// CHECK-NEXT:    ^bb0(%[[XM:[^:]*]]: tensor<16x3xf32>, %[[M:[^:]*]]: tensor<i64>,
// CHECK:           %[[XMS:.*]] = gpuc.reshape %[[XM]] : tensor<16x3xf32> to tensor<2x8x3xf32>
// CHECK:           %[[SS:.*]] = gpuc.iota dim 0 : tensor<2xi64>
// CHECK:           gpuc.scan over(%[[XMS]], %[[SS]]) captures({{.*}}%[[M]]) chunked :
// CHECK-NEXT:      ^bb0(%{{[^:]*}}: tensor<8x3xf32>, %[[S:[^:]*]]: tensor<i64>, {{.*}}, %[[OUTER:[^:]*]]: tensor<i64>):
// CHECK:             %[[TWO:.*]] = gpuc.constant 2 : tensor<i64>
// CHECK:             %[[BEFORE:.*]] = gpuc.mul %[[OUTER]], %[[TWO]]
// CHECK:             %[[PART:.*]] = gpuc.add %[[BEFORE]], %[[S]]
// CHECK:             %[[PART32:.*]] = gpuc.cast %[[PART]] : tensor<i64> to tensor<i32>
// CHECK:             %[[EIGHT:.*]] = gpuc.constant 8 : tensor<i32>
// CHECK:             %[[ROWS:.*]] = gpuc.mul %[[PART32]], %[[EIGHT]]
// CHECK:             gpuc.sub %{{.*}}, %[[ROWS]]
// CHECK:             %[[GIVEN:.*]] = gpuc.constant 5 : tensor<i64>
// CHECK:             %[[ELEMENTS:.*]] = gpuc.constant 24 : tensor<i64>
// CHECK:             %[[MOVED:.*]] = gpuc.mul %[[PART]], %[[ELEMENTS]]
// CHECK:             %[[FROM:.*]] = gpuc.add %[[GIVEN]], %[[MOVED]]
// CHECK:             gpuc.random_bits {{.*}} id 7 from %[[FROM]]
module @both attributes {gpuc.batch = 16 : i64} {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func private @loss(%x: tensor<8x3xf32> {gpuc.name = "x", gpuc.partition = #gpuc.partition<microbatches = 3, slices = 2, rows = 8>}) -> (tensor<f32>, tensor<f32>) attributes {gpuc.partition = #gpuc.partition<microbatches = 3, slices = 2, rows = 8>} {
    %w = gpuc.read @w : tensor<3xf32>
    %0 = gpuc.broadcast %w dims [1] : tensor<3xf32> to tensor<8x3xf32>
    %seed = gpuc.constant 1 : tensor<i64>
    %from = gpuc.constant 5 : tensor<i64>
    %bits = gpuc.random_bits seed %seed step %seed id 7 from %from {gpuc.partition = #gpuc.partition<microbatches = 3, slices = 2, rows = 8>} : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<8x3xi32>
    %1 = gpuc.cast %bits : tensor<8x3xi32> to tensor<8x3xf32>
    %2 = gpuc.mul %0, %1 : tensor<8x3xf32>
    %loss, %count = gpuc.mse %2, %x : (tensor<8x3xf32>, tensor<8x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = sgd(lr = 0.1) }
}

// -----

// In a loop nothing says where in the batch it draws.
module @drawn_within {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x5x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %0 = gpuc.broadcast %w dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %seed = gpuc.constant 1 : tensor<i64>
    %places = gpuc.iota dim 0 : tensor<5xi64>
    %h = gpuc.scan over(%places) carry(%0) captures(%seed) : (tensor<5xi64>, tensor<?x3xf32>, tensor<i64>) -> tensor<?x3xf32> {
    ^bb0(%i: tensor<i64>, %hi: tensor<?x3xf32>, %s: tensor<i64>):
      // expected-error @below {{draws for each row of the batch within a loop, but the batch is cut into parts: draw outside of the loop, and pass the numbers as an input}}
      %bits = gpuc.random_bits seed %s step %s id 7 from %i : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?x3xi32>
      %1 = gpuc.cast %bits : tensor<?x3xi32> to tensor<?x3xf32>
      %2 = gpuc.mul %hi, %1 : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, accumulate = 3, optimizer = sgd(lr = 0.1) }
}

// -----

// A loop of the model's own is not parallel within another.
// CHECK-LABEL: module @parallel_within
// CHECK-LABEL: func.func @train_step(
// CHECK:         gpuc.scan {{.*}} chunked :
// CHECK:           gpuc.scan over(%{{.*}}) :
// CHECK-NOT:     parallel :
// CHECK-LABEL: func.func @eval_step(
module @parallel_within {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x3xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %v = gpuc.scan over(%w) parallel : (tensor<3xf32>) -> tensor<3xf32> {
    ^bb0(%one: tensor<f32>):
      %0 = gpuc.sin %one : tensor<f32>
      gpuc.yield %0 : tensor<f32>
    }
    %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %loss, %count = gpuc.mse %0, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, accumulate = 3, optimizer = sgd(lr = 0.1) }
}

// -----

// Ranks around microbatches around slices: slice s of microbatch m of rank r is part 2 (3 r + m) + s. A statistic goes on from
// microbatch to microbatch, but each rank begins with that of the step before, and the mean of both is assigned.
// CHECK-LABEL: module @ranks
// CHECK-SAME:    gpuc.partition = #gpuc.partition<ranks = 2, microbatches = 3, rows = 4>
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<24x3xf32> {gpuc.name = "x"}
// CHECK:         %[[XS:.*]] = gpuc.reshape %[[X]] : tensor<24x3xf32> to tensor<2x12x3xf32>
// CHECK:         %[[RS:.*]] = gpuc.iota dim 0 : tensor<2xi64>
// CHECK:         %[[MEAN:.*]] = gpuc.read @mean
// CHECK:         gpuc.constant 0.0 : tensor<3xf32>
// CHECK-NEXT:    %[[ZEROS:.*]] = gpuc.constant 0.0 : tensor<3xf32>
// CHECK-NEXT:    %[[RANKS:.*]]:4 = gpuc.scan over(%[[XS]], %[[RS]]) carry(%{{.*}}, %{{.*}}, %{{.*}}, %[[ZEROS]]) captures({{.*}}%[[MEAN]]{{.*}}) chunked :
// CHECK-NEXT:    ^bb0(%[[XR:[^:]*]]: tensor<12x3xf32>, %[[R:[^:]*]]: tensor<i64>, %{{[^:]*}}: tensor<f32>, %{{[^:]*}}: tensor<f32>, %{{[^:]*}}: tensor<3xf32>, %[[SUM:[^:]*]]: tensor<3xf32>
// CHECK:           %[[MICROBATCHES:.*]]:4 = gpuc.scan {{.*}} captures({{.*}}%[[R]]) chunked :
// CHECK-NEXT:      ^bb0(%{{[^:]*}}: tensor<4x3xf32>, %[[M:[^:]*]]: tensor<i64>, {{.*}}, %[[OUTER:[^:]*]]: tensor<i64>):
// CHECK:             %[[THREE:.*]] = gpuc.constant 3 : tensor<i64>
// CHECK:             %[[BEFORE:.*]] = gpuc.mul %[[OUTER]], %[[THREE]]
// CHECK:             %[[PART:.*]] = gpuc.add %[[BEFORE]], %[[M]]
// CHECK:             %[[TWELVE:.*]] = gpuc.constant 12 : tensor<i64>
// CHECK:             %[[FROM:.*]] = gpuc.mul %[[PART]], %[[TWELVE]]
// CHECK:             gpuc.random_bits {{.*}} id 7 from %[[FROM]]
// CHECK:           %[[ADDED:.*]] = gpuc.add %[[SUM]], %[[MICROBATCHES]]#3
// CHECK:           gpuc.yield {{.*}}, %[[ADDED]] :
// CHECK:         %[[TWO:.*]] = gpuc.constant 2.0 : tensor<3xf32>
// CHECK:         %[[HALF:.*]] = gpuc.div %[[RANKS]]#3, %[[TWO]]
// CHECK:         gpuc.assign @mean, %[[HALF]]
module @ranks {
  gpuc.variable @w : tensor<3xf32> init ones
  gpuc.variable @mean kind statistic : tensor<3xf32> init zeros
  func.func @loss(%x: tensor<?x3xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %0 = gpuc.dropout %x p 0.5 id 7 : tensor<?x3xf32>
    %1 = gpuc.broadcast %w dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %2 = gpuc.mul %0, %1 : tensor<?x3xf32>
    %mean = gpuc.read @mean : tensor<3xf32>
    %new = gpuc.mul %mean, %mean : tensor<3xf32>
    gpuc.assign @mean, %new : tensor<3xf32>
    %loss, %count = gpuc.mse %2, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, accumulate = 3, emulate_ranks = 2, optimizer = sgd(lr = 0.1) }
}

// -----

module @ranks_without_rows {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<4x3xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %2 = gpuc.broadcast %w dims [1] : tensor<3xf32> to tensor<4x3xf32>
    %loss, %count = gpuc.mse %2, %x : (tensor<4x3xf32>, tensor<4x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  // expected-error @below {{emulates 2 ranks, but no input of @loss has rows to cut: give it a leading `?`}}
  gpuc.recipe { loss = @loss, emulate_ranks = 2, optimizer = sgd(lr = 0.1) }
}

// -----

// What is the mean of two answers?
module @answered_by_ranks {
  gpuc.variable @w : tensor<3xf32> init ones
  gpuc.variable @seen kind statistic : tensor<i1> init zeros
  func.func @loss(%x: tensor<?x3xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %seen = gpuc.read @seen : tensor<i1>
    %not = gpuc.not %seen : tensor<i1>
    // expected-error @below {{assigns 'tensor<i1>' in each rank, of which the mean is taken: have it assign numbers}}
    gpuc.assign @seen, %not : tensor<i1>
    %2 = gpuc.broadcast %w dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %loss, %count = gpuc.mse %2, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, emulate_ranks = 2, optimizer = sgd(lr = 0.1) }
}

// -----

// The count of a sum over the batch is that of the whole: it counts in the first part alone.
// CHECK-LABEL: module @once
// CHECK:         %[[LOOP:.*]]:3 = gpuc.scan
// CHECK-NEXT:    ^bb0(%{{[^:]*}}: tensor<4x3xf32>, %[[I:[^:]*]]: tensor<i64>,
// CHECK:           gpuc.mse
// CHECK:           %[[ONE:.*]] = gpuc.constant 1.0 : tensor<f32>
// CHECK:           %[[IS_FIRST:.*]] = gpuc.compare eq %[[I]], %{{.*}} : tensor<i64>
// CHECK:           %[[NONE:.*]] = gpuc.constant 0.0 : tensor<f32>
// CHECK:           %[[COUNT:.*]] = gpuc.select %[[IS_FIRST]], %[[ONE]], %[[NONE]]
// CHECK:           gpuc.add %{{.*}}, %[[COUNT]]
// CHECK-NOT:     counts_once
// CHECK-LABEL: func.func @eval_step(
module @once {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x3xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32> {gpuc.counts_once}) {
    %w = gpuc.read @w : tensor<3xf32>
    %0 = gpuc.broadcast %w dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %sum, %count = gpuc.mse %0, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    %one = gpuc.constant 1.0 : tensor<f32>
    return %sum, %one : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, accumulate = 3, optimizer = sgd(lr = 0.1) }
}

// -----

// Attention that drops nothing has the id 0, as what it has not been given; what draws by that id is the same in each part.
// CHECK-LABEL: module @attends
// CHECK:         gpuc.scan
// CHECK-NEXT:    ^bb0(%{{[^:]*}}: tensor<4x1x5x3xf32>, %{{[^:]*}}: tensor<i64>,
// CHECK:           %[[SAME:.*]] = gpuc.constant 0 : tensor<i64>
// CHECK:           gpuc.random_bits {{.*}} id 0 from %[[SAME]]
// CHECK-LABEL: func.func @eval_step(
module @attends {
  gpuc.variable @w : tensor<5x5xf32> init ones
  func.func @loss(%x: tensor<?x1x5x3xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<5x5xf32>
    %mask = gpuc.dropout %w p 0.5 id 0 : tensor<5x5xf32>
    %y, %lse = gpuc.attention %x, %x, %x mask %mask : (tensor<?x1x5x3xf32>, tensor<?x1x5x3xf32>, tensor<?x1x5x3xf32>, tensor<5x5xf32>) -> (tensor<?x1x5x3xf32>, tensor<?x1x5xf32>)
    %loss, %count = gpuc.mse %y, %x : (tensor<?x1x5x3xf32>, tensor<?x1x5x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, accumulate = 3, optimizer = sgd(lr = 0.1) }
}
