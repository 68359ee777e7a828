// RUN: gpuc-opt %s --gpuc-slice-batch --split-input-file --verify-diagnostics | FileCheck %s
// RUN: gpuc-opt %s --gpuc-slice-batch=target=cuda:sm_90 --split-input-file | FileCheck %s --check-prefix=CUDA
// RUN: gpuc-opt %s --gpuc-slice-batch=batch=12 --split-input-file | FileCheck %s --check-prefix=TWELVE
// CUDA-NOT: gpuc.partition
// TWELVE-NOT: gpuc.partition

// The loss stays as it is; beside it stands its copy over half of the rows. Calls are inlined.
// CHECK-LABEL: module @two_slices
// CHECK-LABEL: func.func @loss(
// CHECK-SAME:    tensor<?x16x3xf32> {gpuc.name = "x"}
// CHECK:         call @states
// CHECK-LABEL: func.func private @loss_of_slice(
// CHECK-SAME:    %[[X:.*]]: tensor<8x16x3xf32> {gpuc.name = "x", gpuc.partition = #gpuc.partition<slices = 2, rows = 8>}, %[[Y:.*]]: tensor<8x3xf32> {gpuc.name = "y", gpuc.partition = #gpuc.partition<slices = 2, rows = 8>}
// CHECK-SAME:    attributes {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>}
// CHECK:         %[[H:.*]] = gpuc.scan over(%[[X]]) carry(%[[Y]])
// CHECK:           gpuc.mul {{.*}} : tensor<8x3xf32>
// CHECK:         %[[KEPT:.*]] = gpuc.dropout %[[H]] p 5.000000e-01 id 7 {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>} : tensor<8x3xf32>
// CHECK:         gpuc.mse %[[KEPT]], %[[Y]]
module @two_slices {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @states(%x: tensor<?x16x3xf32>, %y: tensor<?x3xf32>) -> tensor<?x3xf32> {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    return %h : tensor<?x3xf32>
  }
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %h = call @states(%x, %y) : (tensor<?x16x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %kept = gpuc.dropout %h p 0.5 id 7 : tensor<?x3xf32>
    %loss, %count = gpuc.mse %kept, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @four_slices
// CHECK:         attributes {gpuc.partition = #gpuc.partition<slices = 4, rows = 16>}
module @four_slices {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 64, optimizer = sgd(lr = 0.1) }
}

// -----

// A quarter would have 6 rows.
// CHECK-LABEL: module @half_of_more
// CHECK:         attributes {gpuc.partition = #gpuc.partition<slices = 2, rows = 12>}
module @half_of_more {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 24, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @odd
// CHECK-NOT:     gpuc.partition
module @odd {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 17, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @few
// CHECK-NOT:     gpuc.partition
module @few {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 14, optimizer = sgd(lr = 0.1) }
}

// -----

// A batch in microbatches is cut already.
// CHECK-LABEL: module @microbatches
// CHECK-NOT:     gpuc.partition
module @microbatches {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, accumulate = 2, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @large_weights
// CHECK-NOT:     gpuc.partition
module @large_weights {
  gpuc.variable @w : tensor<3xf32> init ones
  gpuc.variable @large : tensor<131072x3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %large = gpuc.read @large : tensor<131072x3xf32>
    %sum = gpuc.sum %large dims [0] : (tensor<131072x3xf32>) -> tensor<3xf32>
    %sums = gpuc.broadcast %sum dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %loss, %count = gpuc.mse %h, %sums : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// Commands of other networks are long enough to share.
// CHECK-LABEL: module @no_loop
// CHECK-NOT:     gpuc.partition
module @no_loop {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.broadcast %w dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @multiples_and_sums_of_sums
// CHECK:         attributes {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>}
module @multiples_and_sums_of_sums {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    %all = gpuc.sum %h dims [0, 1] : (tensor<?x3xf32>) -> tensor<f32>
    %two = gpuc.constant 2.0 : tensor<f32>
    %half = gpuc.div %all, %two : tensor<f32>
    %twice = gpuc.mul %two, %loss : tensor<f32>
    %total = gpuc.sub %twice, %half : tensor<f32>
    return %total, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @what_keeps_rows_apart
// CHECK:         attributes {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>}
module @what_keeps_rows_apart {
  gpuc.variable @w : tensor<3xf32> init ones
  gpuc.variable @m : tensor<3x5xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %m = gpuc.read @m : tensor<3x5xf32>
    %0 = gpuc.matmul %h, %m : (tensor<?x3xf32>, tensor<3x5xf32>) -> tensor<?x5xf32>
    %1 = gpuc.softmax %0 dim 1 : tensor<?x5xf32>
    %2 = gpuc.slice %1 starts [0, 1] limits [-1, 4] strides [1, 1] : (tensor<?x5xf32>) -> tensor<?x3xf32>
    %3 = gpuc.concat %2, %h dim 1 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x6xf32>
    %4 = gpuc.reshape %3 : tensor<?x6xf32> to tensor<?x2x3xf32>
    %5 = gpuc.transpose %4 permutation [0, 2, 1] : (tensor<?x2x3xf32>) -> tensor<?x3x2xf32>
    %6 = gpuc.matmul %5, %4 : (tensor<?x3x2xf32>, tensor<?x2x3xf32>) -> tensor<?x3x3xf32>
    %7 = gpuc.mean %6 dims [1] : (tensor<?x3x3xf32>) -> tensor<?x3xf32>
    %8 = gpuc.argmax %7 dim 1 : (tensor<?x3xf32>) -> tensor<?xi64>
    %9 = gpuc.gather %m, %8 dim 0 : (tensor<3x5xf32>, tensor<?xi64>) -> tensor<?x5xf32>
    %10 = gpuc.iota dim 1 : tensor<?x5xf32>
    %loss, %count = gpuc.mse %9, %10 : (tensor<?x5xf32>, tensor<?x5xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// The mean of a half is not a half of the mean.
// CHECK-LABEL: module @a_mean
// CHECK-NOT:     gpuc.partition
module @a_mean {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %mean = gpuc.mean %h dims [0, 1] : (tensor<?x3xf32>) -> tensor<f32>
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %mean, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @a_count_that_is_no_sum
// CHECK-NOT:     gpuc.partition
module @a_count_that_is_no_sum {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %sixteen = gpuc.constant 16.0 : tensor<f32>
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %sixteen : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// What every slice adds, the batch adds once.
// CHECK-LABEL: module @a_penalty
// CHECK-NOT:     gpuc.partition
module @a_penalty {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %penalty = gpuc.sum %w dims [0] : (tensor<3xf32>) -> tensor<f32>
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    %total = gpuc.add %loss, %penalty : tensor<f32>
    return %total, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @a_product_of_sums
// CHECK-NOT:     gpuc.partition
module @a_product_of_sums {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    %square = gpuc.mul %loss, %loss : tensor<f32>
    return %square, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @a_quotient_of_sums
// CHECK-NOT:     gpuc.partition
module @a_quotient_of_sums {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    %mean = gpuc.div %loss, %count : tensor<f32>
    return %mean, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @a_function_of_a_sum
// CHECK-NOT:     gpuc.partition
module @a_function_of_a_sum {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    %log = gpuc.log %loss : tensor<f32>
    return %log, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @a_number_by_a_sum
// CHECK-NOT:     gpuc.partition
module @a_number_by_a_sum {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %one = gpuc.constant 1.0 : tensor<f32>
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    %inverse = gpuc.div %one, %loss : tensor<f32>
    return %inverse, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @rows_that_know_their_sum
// CHECK-NOT:     gpuc.partition
module @rows_that_know_their_sum {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %sum = gpuc.sum %h dims [0] : (tensor<?x3xf32>) -> tensor<3xf32>
    %sums = gpuc.broadcast %sum dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %rest = gpuc.sub %h, %sums : tensor<?x3xf32>
    %loss, %count = gpuc.mse %rest, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @rows_that_know_the_largest
// CHECK-NOT:     gpuc.partition
module @rows_that_know_the_largest {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %most = gpuc.reduce_max %h dims [0] : (tensor<?x3xf32>) -> tensor<3xf32>
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @rows_that_know_their_number
// CHECK-NOT:     gpuc.partition
module @rows_that_know_their_number {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %number = gpuc.iota dim 0 : tensor<?x3xf32>
    %numbered = gpuc.add %h, %number : tensor<?x3xf32>
    %loss, %count = gpuc.mse %numbered, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @rows_along_which_is_summed
// CHECK-NOT:     gpuc.partition
module @rows_along_which_is_summed {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %before = gpuc.cumsum %h dim 0 : tensor<?x3xf32>
    %loss, %count = gpuc.mse %before, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @rows_that_meet_in_a_product
// CHECK-NOT:     gpuc.partition
module @rows_that_meet_in_a_product {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %both = gpuc.matmul transpose %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<3x3xf32>
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @rows_that_meet_in_a_loop
// CHECK-NOT:     gpuc.partition
module @rows_that_meet_in_a_loop {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.softmax %1 dim 0 : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @a_sum_in_a_loop
// CHECK-NOT:     gpuc.partition
module @a_sum_in_a_loop {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.sum %1 dims [0] : (tensor<?x3xf32>) -> tensor<3xf32>
      gpuc.yield %1 : tensor<?x3xf32>
    }
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @what_is_assigned
// CHECK-NOT:     gpuc.partition
module @what_is_assigned {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    gpuc.assign @w, %w : tensor<3xf32>
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @an_op_of_which_nothing_is_known
// CHECK-NOT:     gpuc.partition
module @an_op_of_which_nothing_is_known {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %sorted, %places = gpuc.sort %h dim 1 : (tensor<?x3xf32>) -> (tensor<?x3xf32>, tensor<?x3xi64>)
    %loss, %count = gpuc.mse %sorted, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @few_steps
// CHECK-NOT:     gpuc.partition
module @few_steps {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x15x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x15x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// Each row is a class for all others.
// CHECK-LABEL: module @rows_as_classes
// CHECK-NOT:     gpuc.partition
module @rows_as_classes {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %places = gpuc.constant 1 : tensor<?xi32>
    %loss, %count = gpuc.linear_cross_entropy %h, %y labels %places
        : (tensor<?x3xf32>, tensor<?x3xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @rows_as_classes_of_the_accuracy
// CHECK-NOT:     gpuc.partition
module @rows_as_classes_of_the_accuracy {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    %places = gpuc.constant 1 : tensor<?xi32>
    %correct, %of = gpuc.linear_accuracy %h, %y labels %places
        : (tensor<?x3xf32>, tensor<?x3xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
    %total = gpuc.add %loss, %correct : tensor<f32>
    return %total, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// A part of the sum is rounded, and then the sum of parts is another.
// CHECK-LABEL: module @whole_numbers
// CHECK-NOT:     gpuc.partition
module @whole_numbers {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    %whole = gpuc.cast %loss : tensor<f32> to tensor<i32>
    %number = gpuc.cast %whole : tensor<i32> to tensor<f32>
    return %number, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// By its id this may be taken for dropout of rows.
// CHECK-LABEL: module @weights_of_which_some_are_dropped
// CHECK-NOT:     gpuc.partition
module @weights_of_which_some_are_dropped {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %kept = gpuc.dropout %w p 0.5 id 7 : tensor<3xf32>
    %all = gpuc.broadcast %kept dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %loss, %count = gpuc.mse %h, %all : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @bits_from_a_place
// CHECK-NOT:     gpuc.partition
module @bits_from_a_place {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      %seed = gpuc.constant 1 : tensor<i64>
      %bits = gpuc.random_bits seed %seed step %seed id 3 from %seed
          : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?x3xi32>
      %noise = gpuc.cast %bits : tensor<?x3xi32> to tensor<?x3xf32>
      %3 = gpuc.add %2, %noise : tensor<?x3xf32>
      gpuc.yield %3 : tensor<?x3xf32>
    }
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @a_function_that_is_told_its_rows
// CHECK-NOT:     gpuc.partition
module @a_function_that_is_told_its_rows {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"},
                  %rows: tensor<i32> {gpuc.name = "rows", gpuc.role = "rows"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    %number = gpuc.cast %rows : tensor<i32> to tensor<f32>
    %times = gpuc.mul %loss, %number : tensor<f32>
    return %times, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}

// -----

// CHECK-LABEL: module @a_name_that_is_taken
// CHECK:         func.func private @loss_of_slice_0(
// CHECK-SAME:      attributes {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>}
// CHECK:         func.func @loss_of_slice(
module @a_name_that_is_taken {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x16x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %h = gpuc.scan over(%x) carry(%y) captures(%w) batch_first
        : (tensor<?x16x3xf32>, tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> {
    ^bb0(%xi: tensor<?x3xf32>, %hi: tensor<?x3xf32>, %v: tensor<3xf32>):
      %0 = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32>
      %1 = gpuc.mul %hi, %0 : tensor<?x3xf32>
      %2 = gpuc.add %1, %xi : tensor<?x3xf32>
      gpuc.yield %2 : tensor<?x3xf32>
    }
    %loss, %count = gpuc.mse %h, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  func.func @loss_of_slice(%y: tensor<?x3xf32>) -> tensor<?x3xf32> {
    return %y : tensor<?x3xf32>
  }
  gpuc.recipe { loss = @loss, batch = 16, optimizer = sgd(lr = 0.1) }
}
