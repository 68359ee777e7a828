// What ranks share out travels together, each tensor from and to where it lies. Here a bucket is of at most two tensors: of 32 elements
// each moves 64 bytes, as a sum of 64 does in each of its two messages.
// RUN: gpuc-opt %s -split-input-file --plan-bucket-all-reduces="bucket-bytes=128" | FileCheck %s
// RUN: gpuc-opt %s -split-input-file --plan-bucket-all-reduces="bucket-bytes=128" --plan-assign-streams --plan-place-buffers \
// RUN:   --plan-verify -o %t
// RUN: gpuc-opt %s -split-input-file --plan-bucket-all-reduces="bucket-bytes=128 always-beside=true" --plan-assign-streams \
// RUN:   --plan-place-buffers --plan-verify -o %t

// In the order in which they are needed, not in the given one, and no earlier; what fills no bucket is needed first.

// CHECK-LABEL: plan.program @gathers
// CHECK: plan.all_gather %{{.*}} -> %[[X1:.*]] : f32 ranks 2
// CHECK-NEXT: plan.launch @one(%[[X1]]) -> (%[[A:.*]])
// CHECK-NEXT: plan.all_gather %{{.*}}, %{{.*}} -> %[[X2:.*]], %[[X3:.*]] : f32 ranks 2
// CHECK-NEXT: plan.launch @two(%[[A]], %[[X2]]) -> (%[[B:.*]])
// CHECK-NEXT: plan.launch @two(%[[B]], %[[X3]])
module attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w1 : tensor<16xf32> "parameter" init zeros {shard_of = array<i64: 32>, shards = 2 : i64}
  plan.variable @w2 : tensor<16xf32> "parameter" init zeros {shard_of = array<i64: 32>, shards = 2 : i64}
  plan.variable @w3 : tensor<16xf32> "parameter" init zeros {shard_of = array<i64: 32>, shards = 2 : i64}
  plan.kernel @one (%a: tensor<32xf32>) { gpuc.yield %a : tensor<32xf32> }
  plan.kernel @two (%a: tensor<32xf32>, %b: tensor<32xf32>) {
    %c = gpuc.add %a, %b : tensor<32xf32>
    gpuc.yield %c : tensor<32xf32>
  }
  plan.program @gathers {
    %w1 = plan.use @w1 : tensor<16xf32> parameter
    %w2 = plan.use @w2 : tensor<16xf32> parameter
    %w3 = plan.use @w3 : tensor<16xf32> parameter
    %x1 = plan.buffer "x1" : tensor<32xf32> parameter
    %x2 = plan.buffer "x2" : tensor<32xf32> parameter
    %x3 = plan.buffer "x3" : tensor<32xf32> parameter
    %a = plan.buffer "a" : tensor<32xf32> activation
    %b = plan.buffer "b" : tensor<32xf32> activation
    %c = plan.buffer "c" : tensor<32xf32> activation
    plan.all_gather %w3 -> %x3 : f32 ranks 2
    plan.all_gather %w2 -> %x2 : f32 ranks 2
    plan.all_gather %w1 -> %x1 : f32 ranks 2
    plan.launch @one(%x1) -> (%a)
    plan.launch @two(%a, %x2) -> (%b)
    plan.launch @two(%b, %x3) -> (%c)
    plan.output "c" %c
  }
}

// -----

// Gradients in the order in which they are computed. What is gathered for an update alone, as Muon's momentum, is when that is made.

// CHECK-LABEL: plan.program @scatters
// CHECK: plan.launch @gradient(%{{.*}}) -> (%[[G1:.*]])
// CHECK-NEXT: plan.launch @gradient(%{{.*}}) -> (%[[G2:.*]])
// CHECK-NEXT: plan.reduce_scatter %[[G1]], %[[G2]] -> %[[S1:.*]], %[[S2:.*]] : f32 ranks 2
// CHECK-NEXT: plan.launch @update(%[[S1]]
// CHECK-NEXT: plan.all_gather %{{.*}} -> %[[WHOLE:.*]] : f32 ranks 2
// CHECK-NEXT: plan.launch @update_whole(%[[S2]], %[[WHOLE]]
// CHECK-NEXT: plan.launch @gradient(%{{.*}}) -> (%[[G3:.*]])
// CHECK-NEXT: plan.reduce_scatter %[[G3]] -> %[[S3:.*]] : f32 ranks 2
// CHECK-NEXT: plan.launch @update(%[[S3]]
module attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w1 : tensor<16xf32> "parameter" init zeros {shard_of = array<i64: 32>, shards = 2 : i64}
  plan.variable @w2 : tensor<16xf32> "parameter" init zeros {shard_of = array<i64: 32>, shards = 2 : i64}
  plan.variable @w3 : tensor<16xf32> "parameter" init zeros {shard_of = array<i64: 32>, shards = 2 : i64}
  plan.variable @m2 : tensor<16xf32> "optimizer" init zeros {shard_of = array<i64: 32>, shards = 2 : i64}
  plan.kernel @gradient (%a: tensor<32xf32>) { gpuc.yield %a : tensor<32xf32> }
  plan.kernel @update (%a: tensor<16xf32>) { gpuc.yield %a : tensor<16xf32> }
  plan.kernel @update_whole (%a: tensor<16xf32>, %m: tensor<32xf32>) { gpuc.yield %a, %a : tensor<16xf32>, tensor<16xf32> }
  plan.program @scatters {
    %x = plan.input "x" : tensor<32xf32>
    %w1 = plan.use @w1 : tensor<16xf32> parameter
    %w2 = plan.use @w2 : tensor<16xf32> parameter
    %w3 = plan.use @w3 : tensor<16xf32> parameter
    %m2 = plan.use @m2 : tensor<16xf32> optimizer
    %whole = plan.buffer "whole" : tensor<32xf32> parameter
    %g1 = plan.buffer "g1" : tensor<32xf32> gradient
    %g2 = plan.buffer "g2" : tensor<32xf32> gradient
    %g3 = plan.buffer "g3" : tensor<32xf32> gradient
    %s1 = plan.buffer "s1" : tensor<16xf32> gradient
    %s2 = plan.buffer "s2" : tensor<16xf32> gradient
    %s3 = plan.buffer "s3" : tensor<16xf32> gradient
    plan.upload %x
    plan.all_gather %m2 -> %whole : f32 ranks 2
    plan.launch @gradient(%x) -> (%g1)
    plan.reduce_scatter %g1 -> %s1 : f32 ranks 2
    plan.launch @update(%s1) -> (%w1)
    plan.launch @gradient(%x) -> (%g2)
    plan.reduce_scatter %g2 -> %s2 : f32 ranks 2
    plan.launch @update_whole(%s2, %whole) -> (%w2, %m2)
    plan.launch @gradient(%x) -> (%g3)
    plan.reduce_scatter %g3 -> %s3 : f32 ranks 2
    plan.launch @update(%s3) -> (%w3)
  }
}

// -----

// In each iteration, too; a sum there, which would need a buffer, is alone.

// CHECK-LABEL: plan.program @microbatches
// CHECK: plan.repeat 4 {
// CHECK-NEXT: plan.view
// CHECK-NEXT: plan.launch @gradient(%{{.*}}) -> (%[[G1:.*]])
// CHECK-NEXT: plan.launch @gradient(%{{.*}}) -> (%[[G2:.*]])
// CHECK-NEXT: plan.reduce_scatter %[[G1]], %[[G2]] -> %[[S1:.*]], %[[S2:.*]] : f32 ranks 2
// CHECK-NEXT: plan.launch @add(%[[S1]]) -> (%[[A1:.*]])
// CHECK-NEXT: plan.launch @add(%[[S2]]) -> (%[[A2:.*]])
// CHECK-NEXT: }
// CHECK-NEXT: plan.launch @update(%[[A1]])
module attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w1 : tensor<16xf32> "parameter" init zeros {shard_of = array<i64: 32>, shards = 2 : i64}
  plan.variable @w2 : tensor<16xf32> "parameter" init zeros {shard_of = array<i64: 32>, shards = 2 : i64}
  plan.kernel @gradient (%a: tensor<32xf32>) { gpuc.yield %a : tensor<32xf32> }
  plan.kernel @add (%a: tensor<16xf32>) { gpuc.yield %a : tensor<16xf32> }
  plan.kernel @update (%a: tensor<16xf32>) { gpuc.yield %a : tensor<16xf32> }
  plan.program @microbatches {
    %xs = plan.input "xs" : tensor<4x32xf32>
    %w1 = plan.use @w1 : tensor<16xf32> parameter
    %w2 = plan.use @w2 : tensor<16xf32> parameter
    %g1 = plan.buffer "g1" : tensor<32xf32> gradient
    %g2 = plan.buffer "g2" : tensor<32xf32> gradient
    %s1 = plan.buffer "s1" : tensor<16xf32> gradient
    %s2 = plan.buffer "s2" : tensor<16xf32> gradient
    %a1 = plan.buffer "a1" : tensor<16xf32> gradient
    %a2 = plan.buffer "a2" : tensor<16xf32> gradient
    plan.upload %xs
    plan.repeat 4 {
      %x = plan.view %xs[0] strides [128] : tensor<32xf32>
      plan.launch @gradient(%x) -> (%g1)
      plan.reduce_scatter %g1 -> %s1 : f32 ranks 2
      plan.launch @add(%s1) -> (%a1)
      plan.launch @gradient(%x) -> (%g2)
      plan.reduce_scatter %g2 -> %s2 : f32 ranks 2
      plan.launch @add(%s2) -> (%a2)
    }
    plan.launch @update(%a1) -> (%w1)
    plan.launch @update(%a2) -> (%w2)
  }
}

// -----

// What ranks own travels together, too, and apart from what they share out: in a bucket of two such groups of two tensors each, all that is
// gathered stands in the order of the shares.

// CHECK-LABEL: plan.program @owners
// CHECK: plan.all_gather %{{.*}}, %{{.*}} -> %[[A1:.*]], %[[A2:.*]], %[[B1:.*]], %[[B2:.*]] : f32 ranks 2 owners 2
// CHECK: plan.all_gather %{{.*}} -> %[[X:.*]] : f32 ranks 2
module attributes {plan.target = #plan.target<host, "">} {
  plan.variable @a : tensor<16xf32> "parameter" init zeros {owners = ["a1", "a2"], shards = 2 : i64}
  plan.variable @b : tensor<16xf32> "parameter" init zeros {owners = ["b1", "b2"], shards = 2 : i64}
  plan.variable @w : tensor<16xf32> "parameter" init zeros {shard_of = array<i64: 32>, shards = 2 : i64}
  plan.kernel @four (%a: tensor<16xf32>, %b: tensor<16xf32>, %c: tensor<16xf32>, %d: tensor<16xf32>) {
    %0 = gpuc.add %a, %b : tensor<16xf32>
    %1 = gpuc.add %c, %d : tensor<16xf32>
    %2 = gpuc.add %0, %1 : tensor<16xf32>
    gpuc.yield %2 : tensor<16xf32>
  }
  plan.kernel @one (%a: tensor<32xf32>) { gpuc.yield %a : tensor<32xf32> }
  plan.program @owners {
    %a = plan.use @a : tensor<16xf32> parameter
    %b = plan.use @b : tensor<16xf32> parameter
    %w = plan.use @w : tensor<16xf32> parameter
    %a1 = plan.buffer "a1" : tensor<16xf32> parameter
    %a2 = plan.buffer "a2" : tensor<16xf32> parameter
    %b1 = plan.buffer "b1" : tensor<16xf32> parameter
    %b2 = plan.buffer "b2" : tensor<16xf32> parameter
    %x = plan.buffer "x" : tensor<32xf32> parameter
    %sum = plan.buffer "sum" : tensor<16xf32> activation
    %y = plan.buffer "y" : tensor<32xf32> activation
    plan.all_gather %a -> %a1, %a2 : f32 ranks 2 owners 2
    plan.all_gather %b -> %b1, %b2 : f32 ranks 2 owners 2
    plan.launch @four(%a1, %a2, %b1, %b2) -> (%sum)
    plan.all_gather %w -> %x : f32 ranks 2
    plan.launch @one(%x) -> (%y)
    plan.output "sum" %sum
    plan.output "y" %y
  }
}

// -----

// A part that is shared out, too, as a synchronised norm's gradient, is not overwritten by its sum: it is read when all of its bucket are
// there, which may be behind that. (In place of a view in a bucket the sum is alone.)

// CHECK-LABEL: plan.program @also_summed
// CHECK: plan.launch @gradient(%{{.*}}) -> (%[[G1:.*]])
// CHECK-NEXT: plan.launch @gradient(%{{.*}}) -> (%[[H1:.*]])
// CHECK-NEXT: plan.all_reduce %[[G1]] -> %[[G:.*]] : f32
// CHECK-NEXT: plan.all_reduce %[[H1]] -> %[[H:.*]] : f32
// CHECK-NEXT: plan.launch @both(%[[G]], %[[H]]) -> (%[[G2:.*]])
// CHECK-NEXT: plan.reduce_scatter %[[G1]], %[[G2]] -> %{{.*}}, %{{.*}} : f32 ranks 2
module attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w1 : tensor<16xf32> "parameter" init zeros {shard_of = array<i64: 32>, shards = 2 : i64}
  plan.variable @w2 : tensor<16xf32> "parameter" init zeros {shard_of = array<i64: 32>, shards = 2 : i64}
  plan.kernel @gradient (%a: tensor<32xf32>) { gpuc.yield %a : tensor<32xf32> }
  plan.kernel @both (%a: tensor<32xf32>, %b: tensor<32xf32>) {
    %0 = gpuc.add %a, %b : tensor<32xf32>
    gpuc.yield %0 : tensor<32xf32>
  }
  plan.kernel @update (%a: tensor<16xf32>) { gpuc.yield %a : tensor<16xf32> }
  plan.program @also_summed {
    %x = plan.input "x" : tensor<32xf32>
    %w1 = plan.use @w1 : tensor<16xf32> parameter
    %w2 = plan.use @w2 : tensor<16xf32> parameter
    %g1 = plan.buffer "g1" : tensor<32xf32> gradient
    %h1 = plan.buffer "h1" : tensor<32xf32> gradient
    %g2 = plan.buffer "g2" : tensor<32xf32> gradient
    %g = plan.buffer "g" : tensor<32xf32> activation
    %h = plan.buffer "h" : tensor<32xf32> activation
    %s1 = plan.buffer "s1" : tensor<16xf32> gradient
    %s2 = plan.buffer "s2" : tensor<16xf32> gradient
    plan.upload %x
    plan.launch @gradient(%x) -> (%g1)
    plan.launch @gradient(%x) -> (%h1)
    plan.reduce_scatter %g1 -> %s1 : f32 ranks 2
    plan.all_reduce %g1 -> %g : f32
    plan.all_reduce %h1 -> %h : f32
    plan.launch @both(%g, %h) -> (%g2)
    plan.reduce_scatter %g2 -> %s2 : f32 ranks 2
    plan.launch @update(%s1) -> (%w1)
    plan.launch @update(%s2) -> (%w2)
  }
}
