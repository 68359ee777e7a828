// RUN: gpuc-opt %s --gpuc-specialize-batch --gpuc-mask-padding --gpuc-differentiate-loss --gpuc-autodiff --gpuc-expand-recipe \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// A step of one rank among others. Its rows and its random numbers begin where its number says; loss, count and gradients are summed
// over ranks before anything is divided, and of the statistic the mean is assigned.
// CHECK-LABEL: module @share
// CHECK-SAME:    gpuc.partition = #gpuc.partition<rows = 4, distributed = true>
// CHECK:         gpuc.variable @rank kind counter : tensor<i64>
// CHECK:         gpuc.variable @world_size kind counter : tensor<i64>
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<4x3xf32> {gpuc.name = "x"}
// CHECK-SAME:    %[[ROWS:[^:]*]]: tensor<i32> {gpuc.name = "rows", gpuc.role = "rows"}
// CHECK:         %[[RANK:.*]] = gpuc.read @rank
// CHECK:         %[[NUMBER:.*]] = gpuc.cast %[[RANK]] : tensor<i64> to tensor<i32>
// CHECK:         %[[FOUR:.*]] = gpuc.constant 4 : tensor<i32>
// CHECK:         %[[BEFORE:.*]] = gpuc.mul %[[NUMBER]], %[[FOUR]]
// CHECK:         gpuc.sub %[[ROWS]], %[[BEFORE]]
// CHECK:         %[[TWELVE:.*]] = gpuc.constant 12 : tensor<i64>
// CHECK:         %[[FROM:.*]] = gpuc.mul %[[RANK]], %[[TWELVE]]
// CHECK:         gpuc.random_bits {{.*}} id 7 from %[[FROM]]
// CHECK:         %[[SUM:.*]] = gpuc.all_reduce %{{.*}} : tensor<3xf32>
// CHECK:         %[[SIZE:.*]] = gpuc.read @world_size
// CHECK:         %[[RANKS:.*]] = gpuc.cast %[[SIZE]] : tensor<i64> to tensor<f32>
// CHECK:         %[[SPREAD:.*]] = gpuc.broadcast %[[RANKS]]
// CHECK:         %[[MEAN:.*]] = gpuc.div %[[SUM]], %[[SPREAD]]
// CHECK:         gpuc.assign @mean, %[[MEAN]]
// CHECK:         %[[LOSS:.*]] = gpuc.all_reduce %{{.*}} : tensor<f32>
// CHECK:         %[[COUNT:.*]] = gpuc.all_reduce %{{.*}} : tensor<f32>
// CHECK:         %[[DW:.*]] = gpuc.all_reduce %{{.*}} : tensor<3xf32>
// CHECK:         gpuc.mul %[[DW]], %{{.*}} : tensor<3xf32>
// CHECK:         return %[[LOSS]], %[[COUNT]]
// What the session sets @init leaves alone.
// CHECK-LABEL: func.func @init(
// CHECK-NOT:     gpuc.assign @rank
// CHECK-NOT:     gpuc.assign @world_size
// CHECK:         return
module @share {
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
  gpuc.recipe { loss = @loss, batch = 4, data_parallel = true, optimizer = sgd(lr = 0.1) }
}

// -----

// Microbatch m of a rank is part 3 rank + m; the sums over ranks are taken of the sums over microbatches.
// CHECK-LABEL: module @microbatches
// CHECK:         %[[RANK:.*]] = gpuc.read @rank
// CHECK:         %[[LOOP:.*]]:3 = gpuc.scan {{.*}} captures({{.*}}%[[RANK]]) chunked :
// CHECK-NEXT:    ^bb0(%{{[^:]*}}: tensor<4x3xf32>, %[[M:[^:]*]]: tensor<i64>, {{.*}}, %[[R:[^:]*]]: tensor<i64>):
// CHECK:           %[[THREE:.*]] = gpuc.constant 3 : tensor<i64>
// CHECK:           %[[FIRST:.*]] = gpuc.mul %[[R]], %[[THREE]]
// CHECK:           %[[PART:.*]] = gpuc.add %[[FIRST]], %[[M]]
// CHECK-NOT:       gpuc.all_reduce
// CHECK:           gpuc.yield
// CHECK:         gpuc.all_reduce %[[LOOP]]#0
// CHECK:         gpuc.all_reduce %[[LOOP]]#1
// CHECK:         gpuc.all_reduce %[[LOOP]]#2
module @microbatches {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x3xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %0 = gpuc.dropout %x p 0.5 id 7 : tensor<?x3xf32>
    %1 = gpuc.broadcast %w dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %2 = gpuc.mul %0, %1 : tensor<?x3xf32>
    %loss, %count = gpuc.mse %2, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, accumulate = 3, data_parallel = true, optimizer = sgd(lr = 0.1) }
}

// -----

module @without_rows {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<4x3xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3xf32>
    %1 = gpuc.broadcast %w dims [1] : tensor<3xf32> to tensor<4x3xf32>
    %loss, %count = gpuc.mse %1, %x : (tensor<4x3xf32>, tensor<4x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  // expected-error @below {{is data_parallel, but no input of @loss has rows to cut: give it a leading `?`}}
  gpuc.recipe { loss = @loss, data_parallel = true, optimizer = sgd(lr = 0.1) }
}

// -----

module @name_taken {
  // expected-error @below {{is named @rank, which is the name of what a session counts, a variable of type 'tensor<i64>'}}
  gpuc.variable @rank : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x3xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @rank : tensor<3xf32>
    %1 = gpuc.broadcast %w dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %loss, %count = gpuc.mse %1, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, data_parallel = true, optimizer = sgd(lr = 0.1) }
}

// -----

// What is trained is shared out: gathered where the model reads it, and updated with the rank's share of its gradient. What is so small
// that this saves nothing is whole on each rank.
// CHECK-LABEL: module @shards
// CHECK:         gpuc.variable @w : tensor<25xf32> init ones {shard_of = array<i64: 25, 3>, shards = 3 : i64}
// CHECK:         gpuc.variable @b : tensor<3xf32> init ones
// CHECK:         gpuc.variable @"w/momentum_buffer" kind optimizer : tensor<25xf32> init zeros {shard_of = array<i64: 25, 3>
// CHECK-LABEL: func.func @train_step(
// CHECK:         %[[SHARE:.*]] = gpuc.read @w : tensor<25xf32>
// CHECK:         gpuc.all_gather %[[SHARE]] ranks 3 : (tensor<25xf32>) -> tensor<25x3xf32>
// CHECK-DAG:     %[[DW:.*]] = gpuc.reduce_scatter %{{.*}} ranks 3 : (tensor<25x3xf32>) -> tensor<25xf32>
// CHECK-DAG:     gpuc.all_reduce %{{.*}} : tensor<3xf32>
// CHECK:         gpuc.sgd_update
// CHECK-LABEL: func.func @eval_step(
// CHECK:         gpuc.all_gather %{{.*}} ranks 3 : (tensor<25xf32>) -> tensor<25x3xf32>
// CHECK-LABEL: func.func @init(
// CHECK:         %[[OWN:.*]] = gpuc.constant 1.0 : tensor<25xf32>
// CHECK:         gpuc.assign @w, %[[OWN]]
module @shards {
  gpuc.variable @w : tensor<25x3xf32> init ones
  gpuc.variable @b : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x25x3xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<25x3xf32>
    %b = gpuc.read @b : tensor<3xf32>
    %0 = gpuc.broadcast %w dims [1, 2] : tensor<25x3xf32> to tensor<?x25x3xf32>
    %1 = gpuc.broadcast %b dims [2] : tensor<3xf32> to tensor<?x25x3xf32>
    %2 = gpuc.mul %0, %1 : tensor<?x25x3xf32>
    %loss, %count = gpuc.mse %2, %x : (tensor<?x25x3xf32>, tensor<?x25x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, data_parallel = true, shard = optimizer, world_size = 3, optimizer = sgd(lr = 0.1, momentum = 0.9) }
}

// -----

// Of gradients each microbatch's are shared out, and the loop carries shares.
// CHECK-LABEL: module @shared_microbatches
// CHECK:         %[[LOOP:.*]]:3 = gpuc.scan
// CHECK:           %[[PART:.*]] = gpuc.reduce_scatter %{{.*}} ranks 2 : (tensor<50xf32>) -> tensor<25xf32>
// CHECK:           gpuc.add %{{.*}}, %[[PART]] : tensor<25xf32>
// CHECK:         gpuc.all_reduce %[[LOOP]]#0 : tensor<f32>
// CHECK:         gpuc.all_reduce %[[LOOP]]#1 : tensor<f32>
// CHECK-NOT:     gpuc.all_reduce %[[LOOP]]#2
module @shared_microbatches {
  gpuc.variable @w : tensor<50xf32> init ones
  func.func @loss(%x: tensor<?x50xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<50xf32>
    %1 = gpuc.broadcast %w dims [1] : tensor<50xf32> to tensor<?x50xf32>
    %loss, %count = gpuc.mse %1, %x : (tensor<?x50xf32>, tensor<?x50xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, accumulate = 3, data_parallel = true, shard = gradients, world_size = 2, optimizer = sgd(lr = 0.1) }
}

// -----

// And so are what ranks own of them: here each of two has the sums of one matrix, in the place of the first.
// CHECK-LABEL: module @owned_microbatches
// CHECK:         %[[LOOP:.*]]:3 = gpuc.scan
// CHECK:           %[[PART:.*]] = gpuc.reduce_to_owners %{{.*}}, %{{.*}} ranks 2 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK:           gpuc.add %{{.*}}, %[[PART]] : tensor<8x8xf32>
// CHECK:         gpuc.all_reduce %[[LOOP]]#0 : tensor<f32>
// CHECK:         gpuc.all_reduce %[[LOOP]]#1 : tensor<f32>
// CHECK-NOT:     %[[LOOP]]#2 ranks
// CHECK:         gpuc.mul %[[LOOP]]#2, %{{.*}} : tensor<8x8xf32>
// CHECK:         gpuc.muon_update
module @owned_microbatches {
  gpuc.variable @a : tensor<8x8xf32> init normal(std = 0.02)
  gpuc.variable @b : tensor<8x8xf32> init normal(std = 0.02)
  func.func @loss(%x: tensor<?x8xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %a = gpuc.read @a : tensor<8x8xf32>
    %b = gpuc.read @b : tensor<8x8xf32>
    %0 = gpuc.matmul %x, %a : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %1 = gpuc.matmul %0, %b : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %loss, %count = gpuc.mse %1, %x : (tensor<?x8xf32>, tensor<?x8xf32>) -> (tensor<f32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, accumulate = 3, data_parallel = true, shard = gradients, world_size = 2, optimizer = muon(lr = 0.1) }
}

// -----

// Of equal matrices that are updated as a whole each rank owns one: it has the sum of that one's gradient, and the others gather it. There
// are three ranks and two such matrices, so that the third rank has none. @c is alone, and shared out by runs, and so is what Muon keeps
// for it; all ranks update it.
// CHECK-LABEL: module @owners
// CHECK-NOT:     gpuc.variable @a :
// CHECK-NOT:     gpuc.variable @b :
// CHECK:         gpuc.variable @c : tensor<48xf32> {{.*}} {shard_of = array<i64: 12, 12>, shards = 3 : i64}
// CHECK:         gpuc.variable @"a/owned" : tensor<8x8xf32> init normal(std = 0.02) {owners = ["a", "b"], shards = 3 : i64}
// CHECK:         gpuc.variable @"a/owned/momentum_buffer" kind optimizer : tensor<8x8xf32> init zeros
// CHECK-SAME:      {owners = ["a/momentum_buffer", "b/momentum_buffer"], shards = 3 : i64}
// CHECK-LABEL: func.func @train_step(
// CHECK:         %[[OWN:.*]] = gpuc.read @"a/owned"
// CHECK:         gpuc.gather_from_owners %[[OWN]] ranks 3 : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
// CHECK:         gpuc.reduce_to_owners %{{.*}}, %{{.*}} ranks 3 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK:         gpuc.all_reduce %{{.*}} : tensor<12x12xf32>
// CHECK-COUNT-2: gpuc.muon_update
// CHECK-NOT:     gpuc.muon_update
// CHECK-LABEL: func.func @eval_step(
// CHECK:         gpuc.gather_from_owners
// CHECK-NOT:     gpuc.gather_from_owners
// Each of both is drawn as if it were on all ranks.
// CHECK-LABEL: func.func @init(
// CHECK:         gpuc.read @rank
// CHECK:         %[[FIRST:.*]] = gpuc.select
// CHECK:         gpuc.assign @"a/owned", %[[FIRST]]
module @owners {
  gpuc.variable @a : tensor<8x8xf32> init normal(std = 0.02)
  gpuc.variable @b : tensor<8x8xf32> init normal(std = 0.02)
  gpuc.variable @c : tensor<12x12xf32> init normal(std = 0.02)
  func.func @loss(%x: tensor<?x8xf32> {gpuc.name = "x"}, %y: tensor<?x12xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %b = gpuc.read @b : tensor<8x8xf32>
    %a = gpuc.read @a : tensor<8x8xf32>
    %c = gpuc.read @c : tensor<12x12xf32>
    %0 = gpuc.matmul %x, %a : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %1 = gpuc.matmul %0, %b : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %2 = gpuc.matmul %y, %c : (tensor<?x12xf32>, tensor<12x12xf32>) -> tensor<?x12xf32>
    %loss, %count = gpuc.mse %1, %x : (tensor<?x8xf32>, tensor<?x8xf32>) -> (tensor<f32>, tensor<f32>)
    %other, %number = gpuc.mse %2, %y : (tensor<?x12xf32>, tensor<?x12xf32>) -> (tensor<f32>, tensor<f32>)
    %both = gpuc.add %loss, %other : tensor<f32>
    %all = gpuc.add %count, %number : tensor<f32>
    return %both, %all : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, data_parallel = true, shard = optimizer, world_size = 3, optimizer = muon(lr = 0.1) }
}

// -----

// The count of a sum over the batch is that of the whole: it counts on the first rank alone.
// CHECK-LABEL: module @once
// CHECK:         %[[RANK:.*]] = gpuc.read @rank
// CHECK:         %[[IS_FIRST:.*]] = gpuc.compare eq %[[RANK]], %{{.*}} : tensor<i64>
// CHECK:         %[[COUNT:.*]] = gpuc.select %[[IS_FIRST]],
// CHECK:         gpuc.all_reduce %[[COUNT]] : tensor<f32>
module @once {
  gpuc.variable @w : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x3xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32> {gpuc.counts_once}) {
    %w = gpuc.read @w : tensor<3xf32>
    %0 = gpuc.broadcast %w dims [1] : tensor<3xf32> to tensor<?x3xf32>
    %sum, %count = gpuc.mse %0, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
    %one = gpuc.constant 1.0 : tensor<f32>
    return %sum, %one : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, data_parallel = true, optimizer = sgd(lr = 0.1) }
}
