// RUN: gpuc-opt %s -split-input-file --plan-bucket-all-reduces=link=ethernet | FileCheck %s
// RUN: gpuc-opt %s -split-input-file --plan-bucket-all-reduces=link=ethernet --plan-assign-streams \
// RUN:   | FileCheck %s --check-prefix=STREAMS
// RUN: gpuc-opt %s -split-input-file --plan-bucket-all-reduces="bucket-bytes=100" | FileCheck %s --check-prefix=SMALL
// RUN: gpuc-opt %s -split-input-file --plan-bucket-all-reduces=link=ethernet --plan-assign-streams \
// RUN:   --plan-place-buffers --plan-verify -o %t
// RUN: not gpuc-opt %s -split-input-file --plan-bucket-all-reduces=link=ethernte 2>&1 | FileCheck %s --check-prefix=LINK
// LINK: error: unknown link 'ethernte'; did you mean ethernet?

// Both parts are views of one buffer, 64 bytes apart; what lies between them is filled. Who consumes a sum does so behind
// the exchange, whoever reads something else before it.

// CHECK-LABEL: plan.program @step
// CHECK-NEXT: %[[BUCKET:.*]] = plan.buffer "bucket0" : tensor<20xf32> gradient
// CHECK-NEXT: %[[G2:.*]] = plan.view %[[BUCKET]][0] : tensor<3xf32>
// CHECK-NEXT: %[[GAP:.*]] = plan.view %[[BUCKET]][12] : tensor<13xf32>
// CHECK-NEXT: %[[G1:.*]] = plan.view %[[BUCKET]][64] : tensor<4xf32>
// CHECK-NOT: plan.buffer
// CHECK: plan.launch @one(%{{.*}}) -> (%[[G2]])
// CHECK-NEXT: plan.launch @two(%{{.*}}) -> (%[[G1]])
// CHECK-NEXT: plan.fill %[[GAP]] with 0.0
// CHECK-NEXT: plan.all_reduce %[[BUCKET]] -> %[[BUCKET]] : f32
// CHECK-NEXT: plan.launch @update3(%[[G2]])
// CHECK-NEXT: plan.launch @update4(%[[G1]])

// In turn, and no more than so many bytes: each is consumed as soon as it is there.
// SMALL-LABEL: plan.program @step
// SMALL: plan.launch @one
// SMALL-NEXT: plan.all_reduce %[[PART:.*]] -> %[[SUM:.*]] : f32
// SMALL-NOT: plan.on_stream
// SMALL-NEXT: plan.launch @update3(%[[SUM]]
// SMALL-NEXT: plan.launch @two
// SMALL-NEXT: plan.all_reduce
// SMALL-NEXT: plan.launch @update4
module attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w3 : tensor<3xf32> "parameter" init zeros
  plan.variable @w4 : tensor<4xf32> "parameter" init zeros
  plan.kernel @one (%a: tensor<3xf32>) { gpuc.yield %a : tensor<3xf32> }
  plan.kernel @two (%a: tensor<4xf32>) { gpuc.yield %a : tensor<4xf32> }
  plan.kernel @update3 (%a: tensor<3xf32>) { gpuc.yield %a : tensor<3xf32> }
  plan.kernel @update4 (%a: tensor<4xf32>) { gpuc.yield %a : tensor<4xf32> }
  plan.program @step {
    %w3 = plan.use @w3 : tensor<3xf32> parameter
    %w4 = plan.use @w4 : tensor<4xf32> parameter
    %g2 = plan.buffer "g2" : tensor<3xf32> gradient
    %s2 = plan.buffer "s2" : tensor<3xf32> gradient
    %g1 = plan.buffer "g1" : tensor<4xf32> gradient
    %s1 = plan.buffer "s1" : tensor<4xf32> gradient
    plan.launch @one(%w3) -> (%g2)
    plan.all_reduce %g2 -> %s2 : f32
    plan.launch @update3(%s2) -> (%w3)
    plan.launch @two(%w4) -> (%g1)
    plan.all_reduce %g1 -> %s1 : f32
    plan.launch @update4(%s1) -> (%w4)
  }
}

// -----

// A long backward pass hides the first exchange: the sums get a stream, which waits for each part, and compute for each sum.

// CHECK-LABEL: plan.program @beside
// CHECK: plan.all_reduce %{{.*}} : f32 {plan.on_stream = "collective"}
// CHECK: plan.all_reduce %{{.*}} : f32 {plan.on_stream = "collective"}
// STREAMS-LABEL: plan.program @beside
// STREAMS: %[[READY1:.*]] = plan.event "compute0"
// STREAMS-NEXT: %[[READY2:.*]] = plan.event "compute1"
// STREAMS-NEXT: %[[SUM1:.*]] = plan.event "collective0"
// STREAMS-NEXT: %[[SUM2:.*]] = plan.event "collective1"
// STREAMS: plan.stream "compute" {
// STREAMS-NEXT: plan.launch @grow
// STREAMS-NEXT: plan.record %[[READY1]]
// STREAMS-NEXT: plan.launch @grow
// STREAMS-NEXT: plan.record %[[READY2]]
// STREAMS-NEXT: plan.wait %[[SUM1]]
// STREAMS-NEXT: plan.launch @grow
// STREAMS-NEXT: plan.wait %[[SUM2]]
// STREAMS-NEXT: plan.launch @grow
// STREAMS-NEXT: }
// STREAMS: plan.stream "collective" {
// STREAMS-NEXT: plan.wait %[[READY1]]
// STREAMS-NEXT: plan.all_reduce
// STREAMS-NEXT: plan.record %[[SUM1]]
// STREAMS-NEXT: plan.wait %[[READY2]]
// STREAMS-NEXT: plan.all_reduce
// STREAMS-NEXT: plan.record %[[SUM2]]
// STREAMS-NEXT: }
module attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w1 : tensor<8388608xf32> "parameter" init zeros
  plan.variable @w2 : tensor<8388608xf32> "parameter" init zeros
  plan.kernel @grow (%a: tensor<8388608xf32>) { gpuc.yield %a : tensor<8388608xf32> }
  plan.program @beside {
    %w1 = plan.use @w1 : tensor<8388608xf32> parameter
    %w2 = plan.use @w2 : tensor<8388608xf32> parameter
    %g1 = plan.buffer "g1" : tensor<8388608xf32> gradient
    %s1 = plan.buffer "s1" : tensor<8388608xf32> gradient
    %g2 = plan.buffer "g2" : tensor<8388608xf32> gradient
    %s2 = plan.buffer "s2" : tensor<8388608xf32> gradient
    plan.launch @grow(%w2) -> (%g2)
    plan.all_reduce %g2 -> %s2 : f32
    plan.launch @grow(%s2) -> (%w2)
    plan.launch @grow(%w1) -> (%g1)
    plan.all_reduce %g1 -> %s1 : f32
    plan.launch @grow(%s1) -> (%w1)
  }
}

// -----

// Left alone: an input as a part, a part that is read once it is summed, a sum that is an output, another element type.

// CHECK-LABEL: plan.program @others
// CHECK-NOT: bucket
// SMALL-LABEL: plan.program @others
// SMALL-NOT: bucket
module attributes {plan.target = #plan.target<host, "">} {
  plan.kernel @one (%a: tensor<4xf32>) { gpuc.yield %a : tensor<4xf32> }
  plan.kernel @count (%a: tensor<4xi32>) { gpuc.yield %a : tensor<4xi32> }
  plan.program @others {
    %x = plan.input "x" : tensor<4xf32>
    %n = plan.input "n" : tensor<4xi32>
    %a = plan.buffer "a" : tensor<4xf32> gradient
    %b = plan.buffer "b" : tensor<4xf32> gradient
    %c = plan.buffer "c" : tensor<4xi32> gradient
    %d = plan.buffer "d" : tensor<4xi32> gradient
    %s0 = plan.buffer "s0" : tensor<4xf32> gradient
    %s1 = plan.buffer "s1" : tensor<4xf32> gradient
    %s2 = plan.buffer "s2" : tensor<4xf32> gradient
    plan.upload %x
    plan.upload %n
    plan.all_reduce %x -> %s0 : f32
    plan.launch @one(%x) -> (%a)
    plan.all_reduce %a -> %s1 : f32
    plan.launch @one(%a) -> (%b)
    plan.all_reduce %b -> %s2 : f32
    plan.launch @count(%n) -> (%c)
    plan.all_reduce %c -> %d : i32
    plan.output "s0" %s0
    plan.output "s1" %s1
    plan.output "s2" %s2
    plan.output "d" %d
  }
}

// -----

// The last of four microbatches stands behind the loop, at its places; what lives in one iteration is a buffer of its own there,
// and views of loops within it lose the outer stride.

// CHECK-LABEL: plan.program @microbatches
// CHECK-NEXT: %[[XS:.*]] = plan.input
// CHECK: %[[LAST:.*]] = plan.buffer "t"
// CHECK-NEXT: %[[T:.*]] = plan.buffer "t"
// CHECK-NEXT: %[[G1:.*]] = plan.buffer "g1"
// CHECK: %[[G2:.*]] = plan.buffer "g2"
// CHECK: %[[X:.*]] = plan.view %[[XS]][100663296] : tensor<8388608xf32>
// CHECK: plan.repeat 3 {
// CHECK: plan.launch @grow(%{{.*}}) -> (%[[T]])
// CHECK: }
// CHECK-NEXT: }
// CHECK-NEXT: plan.launch @grow(%[[X]]) -> (%[[LAST]])
// CHECK-NEXT: plan.launch @add(%[[LAST]], %[[G2]]) -> (%[[G2]])
// CHECK-NEXT: plan.all_reduce %[[G2]]
// CHECK-NEXT: plan.repeat 2 {
// CHECK-NEXT: %[[INNER:.*]] = plan.view %[[XS]][100663296] strides [64] : tensor<8388608xf32>
// CHECK-NEXT: plan.launch @add(%[[INNER]], %[[G1]]) -> (%[[G1]])
// CHECK-NEXT: }
// CHECK-NEXT: plan.all_reduce %[[G1]]
module attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w1 : tensor<8388608xf32> "parameter" init zeros
  plan.variable @w2 : tensor<8388608xf32> "parameter" init zeros
  plan.kernel @grow (%a: tensor<8388608xf32>) { gpuc.yield %a : tensor<8388608xf32> }
  plan.kernel @add (%a: tensor<8388608xf32>, %b: tensor<8388608xf32>) {
    %0 = gpuc.add %a, %b : tensor<8388608xf32>
    gpuc.yield %0 : tensor<8388608xf32>
  }
  plan.program @microbatches {
    %xs = plan.input "xs" : tensor<33554448xf32>
    %w1 = plan.use @w1 : tensor<8388608xf32> parameter
    %w2 = plan.use @w2 : tensor<8388608xf32> parameter
    %t = plan.buffer "t" : tensor<8388608xf32> activation
    %g1 = plan.buffer "g1" : tensor<8388608xf32> gradient
    %s1 = plan.buffer "s1" : tensor<8388608xf32> gradient
    %g2 = plan.buffer "g2" : tensor<8388608xf32> gradient
    %s2 = plan.buffer "s2" : tensor<8388608xf32> gradient
    plan.upload %xs
    plan.fill %g1 with 0.0 : f32
    plan.fill %g2 with 0.0 : f32
    plan.repeat 4 {
      %x = plan.view %xs[0] strides [33554432] : tensor<8388608xf32>
      plan.launch @grow(%x) -> (%t)
      plan.launch @add(%t, %g2) -> (%g2)
      plan.repeat 2 {
        %part = plan.view %xs[0] strides [33554432, 64] : tensor<8388608xf32>
        plan.launch @add(%part, %g1) -> (%g1)
      }
    }
    plan.all_reduce %g2 -> %s2 : f32
    plan.all_reduce %g1 -> %s1 : f32
    plan.launch @grow(%s2) -> (%w2)
    plan.launch @grow(%s1) -> (%w1)
  }
}

// -----

// A sum for which another one waits, as a norm's statistics and gradients do, takes its turn in the given order, together with those
// that are ready when it is needed. How large buckets of gradients may be is no concern of theirs.

// CHECK-LABEL: plan.program @between
// SMALL-LABEL: plan.program @between
// SMALL-NEXT: %[[BUCKET:.*]] = plan.buffer "bucket0" : tensor<19xf32>
// SMALL-NEXT: %[[A:.*]] = plan.view %[[BUCKET]][0] : tensor<3xf32>
// SMALL-NEXT: %[[GAP:.*]] = plan.view %[[BUCKET]][12] : tensor<13xf32>
// SMALL-NEXT: %[[B:.*]] = plan.view %[[BUCKET]][64] : tensor<3xf32>
// SMALL: plan.launch @one(%{{.*}}) -> (%[[A]])
// SMALL-NEXT: plan.launch @one(%{{.*}}) -> (%[[B]])
// SMALL-NEXT: plan.launch @one
// SMALL-NEXT: plan.fill %[[GAP]]
// SMALL-NEXT: plan.all_reduce %[[BUCKET]] -> %[[BUCKET]]
// SMALL-NEXT: plan.launch @both(%[[A]], %[[B]]) -> (%[[PART:.*]])
// SMALL-NEXT: plan.all_reduce %[[PART]] -> %[[SUM:.*]] : f32
// SMALL-NEXT: plan.launch @both(%[[SUM]], %{{.*}}) -> (%{{.*}})
module attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w : tensor<3xf32> "parameter" init zeros
  plan.kernel @one (%a: tensor<3xf32>) { gpuc.yield %a : tensor<3xf32> }
  plan.kernel @both (%a: tensor<3xf32>, %b: tensor<3xf32>) {
    %0 = gpuc.add %a, %b : tensor<3xf32>
    gpuc.yield %0 : tensor<3xf32>
  }
  plan.program @between {
    %w = plan.use @w : tensor<3xf32> parameter
    %a = plan.buffer "a" : tensor<3xf32> activation
    %suma = plan.buffer "suma" : tensor<3xf32> activation
    %b = plan.buffer "b" : tensor<3xf32> activation
    %sumb = plan.buffer "sumb" : tensor<3xf32> activation
    %c = plan.buffer "c" : tensor<3xf32> activation
    %g = plan.buffer "g" : tensor<3xf32> gradient
    %s = plan.buffer "s" : tensor<3xf32> gradient
    plan.launch @one(%w) -> (%a)
    plan.all_reduce %a -> %suma : f32
    plan.launch @one(%w) -> (%b)
    plan.all_reduce %b -> %sumb : f32
    plan.launch @one(%w) -> (%c)
    plan.launch @both(%suma, %sumb) -> (%g)
    plan.all_reduce %g -> %s : f32
    plan.launch @both(%s, %c) -> (%w)
  }
}

// -----

// Ranks exchange in one order: where a loop does, all do it in turn with what is computed, and the last iteration stays in its loop.

// CHECK-LABEL: plan.program @in_loop
// CHECK-NOT: plan.on_stream
// CHECK: plan.repeat 2 {
// CHECK-NOT: plan.on_stream
module attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w : tensor<8388608xf32> "parameter" init zeros
  plan.variable @v : tensor<8388608xf32> "parameter" init zeros
  plan.kernel @grow (%a: tensor<8388608xf32>) { gpuc.yield %a : tensor<8388608xf32> }
  plan.program @in_loop {
    %w = plan.use @w : tensor<8388608xf32> parameter
    %v = plan.use @v : tensor<8388608xf32> parameter
    %a = plan.buffer "a" : tensor<8388608xf32> activation
    %sum = plan.buffer "sum" : tensor<8388608xf32> activation
    %g = plan.buffer "g" : tensor<8388608xf32> gradient
    %s = plan.buffer "s" : tensor<8388608xf32> gradient
    %h = plan.buffer "h" : tensor<8388608xf32> gradient
    %t = plan.buffer "t" : tensor<8388608xf32> gradient
    plan.repeat 2 {
      plan.launch @grow(%w) -> (%a)
      plan.all_reduce %a -> %sum : f32
      plan.launch @grow(%sum) -> (%g)
    }
    plan.all_reduce %g -> %s : f32
    plan.launch @grow(%v) -> (%h)
    plan.all_reduce %h -> %t : f32
    plan.launch @grow(%s) -> (%w)
    plan.launch @grow(%t) -> (%v)
  }
}

// -----

// Shares are exchanged by themselves: what is gathered where it is needed first, what is shared out as soon as it is computed, though a
// number is summed behind all of it.

// CHECK-LABEL: plan.program @shares
// CHECK: plan.all_gather {{.*}} {plan.on_stream = "collective"}
// CHECK-NEXT: plan.launch @grow
// CHECK-NEXT: plan.reduce_scatter {{.*}} {plan.on_stream = "collective"}
// CHECK-NEXT: plan.launch @long
// CHECK-NEXT: plan.reduce_scatter {{.*}} {plan.on_stream = "collective"}
// CHECK: plan.launch @norm
// CHECK-NEXT: plan.all_reduce {{.*}} {plan.on_stream = "collective"}
// CHECK-NEXT: plan.launch @update
module attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w : tensor<4194304xf32> "parameter" init zeros {shard_of = array<i64: 8388608>, shards = 2 : i64}
  plan.kernel @grow (%a: tensor<8388608xf32>) { gpuc.yield %a : tensor<8388608xf32> }
  plan.kernel @long (%a: tensor<8388608xf32>) {
    %b = gpuc.exp %a : tensor<8388608xf32>
    gpuc.yield %b : tensor<8388608xf32>
  }
  plan.kernel @norm (%a: tensor<4194304xf32>, %b: tensor<4194304xf32>) {
    %c = gpuc.mul %a, %b : tensor<4194304xf32>
    %d = gpuc.sum %c dims [0] : (tensor<4194304xf32>) -> tensor<f32>
    gpuc.yield %d : tensor<f32>
  }
  plan.kernel @update (%a: tensor<4194304xf32>, %n: tensor<f32>) {
    %s = gpuc.broadcast %n dims [] : tensor<f32> to tensor<4194304xf32>
    %b = gpuc.mul %a, %s : tensor<4194304xf32>
    gpuc.yield %b : tensor<4194304xf32>
  }
  plan.program @shares {
    %w = plan.use @w : tensor<4194304xf32> parameter
    %whole = plan.buffer "whole" : tensor<8388608xf32> parameter
    %g = plan.buffer "g" : tensor<8388608xf32> gradient
    %h = plan.buffer "h" : tensor<8388608xf32> gradient
    %gs = plan.buffer "gs" : tensor<4194304xf32> gradient
    %hs = plan.buffer "hs" : tensor<4194304xf32> gradient
    %n = plan.buffer "n" : tensor<f32> gradient
    %m = plan.buffer "m" : tensor<f32> gradient
    plan.all_gather %w -> %whole : f32 ranks 2
    plan.launch @grow(%whole) -> (%g)
    plan.launch @long(%whole) -> (%h)
    plan.reduce_scatter %g -> %gs : f32 ranks 2
    plan.reduce_scatter %h -> %hs : f32 ranks 2
    plan.launch @norm(%gs, %hs) -> (%n)
    plan.all_reduce %n -> %m : f32
    plan.launch @update(%gs, %m) -> (%w)
  }
}

// -----

// What reads a part comes before its sum, which lies in the part's place.

// CHECK-LABEL: plan.program @read_before
// CHECK: plan.launch @one(%{{.*}}) -> (%[[B:.*]])
// CHECK-NEXT: plan.launch @one(%{{.*}}) -> (%[[A:.*]])
// CHECK-NEXT: plan.launch @one(%[[A]]) -> (%[[C:.*]])
// CHECK-NEXT: plan.fill
// CHECK-NEXT: plan.all_reduce %[[BUCKET:.*]] -> %[[BUCKET]]
// CHECK-NEXT: plan.launch @both(%[[A]], %[[B]]) -> (%[[D:.*]])
// CHECK-NEXT: plan.launch @both(%[[D]], %[[C]])
module attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w : tensor<3xf32> "parameter" init zeros
  plan.variable @v : tensor<3xf32> "parameter" init zeros
  plan.kernel @one (%a: tensor<3xf32>) { gpuc.yield %a : tensor<3xf32> }
  plan.kernel @both (%a: tensor<3xf32>, %b: tensor<3xf32>) {
    %0 = gpuc.add %a, %b : tensor<3xf32>
    gpuc.yield %0 : tensor<3xf32>
  }
  plan.program @read_before {
    %w = plan.use @w : tensor<3xf32> parameter
    %v = plan.use @v : tensor<3xf32> parameter
    %a = plan.buffer "a" : tensor<3xf32> gradient
    %suma = plan.buffer "suma" : tensor<3xf32> gradient
    %b = plan.buffer "b" : tensor<3xf32> gradient
    %sumb = plan.buffer "sumb" : tensor<3xf32> gradient
    %c = plan.buffer "c" : tensor<3xf32> activation
    %d = plan.buffer "d" : tensor<3xf32> activation
    plan.launch @one(%v) -> (%b)
    plan.launch @one(%w) -> (%a)
    plan.launch @one(%a) -> (%c)
    plan.all_reduce %a -> %suma : f32
    plan.all_reduce %b -> %sumb : f32
    plan.launch @both(%suma, %sumb) -> (%d)
    plan.launch @both(%d, %c) -> (%w)
  }
}
