// RUN: gpuc-opt %s -split-input-file --plan-order | FileCheck %s

// Each kernel turns 4 KiB into 4 bytes. Making both big buffers first would keep 8 KiB live; one after the other, 4.

// CHECK-LABEL: module @one_after_the_other
module @one_after_the_other {
  plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<1024xf32> gpuc.yield %0 : tensor<1024xf32> }
  plan.kernel @sum (%a: tensor<1024xf32>) {
    %0 = gpuc.sum %a dims [0] : (tensor<1024xf32>) -> tensor<f32>
    gpuc.yield %0 : tensor<f32>
  }
  // CHECK: plan.launch @make() -> (%[[A:.*]])
  // CHECK-NEXT: plan.launch @sum(%[[A]]) -> (%{{.*}})
  // CHECK-NEXT: plan.launch @make() -> (%[[B:.*]])
  // CHECK-NEXT: plan.launch @sum(%[[B]]) -> (%{{.*}})
  // CHECK-NEXT: plan.output
  plan.program @f {
    %a = plan.buffer "a" : tensor<1024xf32> activation
    %b = plan.buffer "b" : tensor<1024xf32> activation
    %c = plan.buffer "c" : tensor<f32> activation
    %d = plan.buffer "d" : tensor<f32> activation
    plan.launch @make() -> (%a)
    plan.launch @make() -> (%b)
    plan.launch @sum(%a) -> (%c)
    plan.launch @sum(%b) -> (%d)
    plan.output "c" %c
    plan.output "d" %d
  }
}

// -----

// What writes a variable stays behind what reads its old value: here the update would free a buffer early, and must not.

// CHECK-LABEL: module @keeps_hazards
module @keeps_hazards {
  plan.variable @w : tensor<1024xf32> "parameter" init zeros
  plan.kernel @copy (%a: tensor<1024xf32>) { gpuc.yield %a : tensor<1024xf32> }
  // CHECK: plan.launch @copy(%[[W:.*]]) -> (%[[OLD:.*]])
  // CHECK: plan.launch @copy(%{{.*}}) -> (%[[W]])
  plan.program @f {
    %w = plan.use @w : tensor<1024xf32> parameter
    %x = plan.input "x" : tensor<1024xf32>
    %old = plan.buffer "old" : tensor<1024xf32> activation
    plan.upload %x
    plan.launch @copy(%w) -> (%old)
    plan.launch @copy(%x) -> (%w)
    plan.output "old" %old
  }
}

// -----

// In a loop, too: iterations need 4 KiB at a time, not 8.

// CHECK-LABEL: module @in_a_loop
module @in_a_loop {
  plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<1024xf32> gpuc.yield %0 : tensor<1024xf32> }
  plan.kernel @sum (%a: tensor<1024xf32>) {
    %0 = gpuc.sum %a dims [0] : (tensor<1024xf32>) -> tensor<f32>
    gpuc.yield %0 : tensor<f32>
  }
  // CHECK: plan.repeat 3
  // CHECK: plan.launch @make() -> (%[[A:.*]])
  // CHECK-NEXT: plan.launch @sum(%[[A]]) -> (%{{.*}})
  // CHECK-NEXT: plan.launch @make() -> (%[[B:.*]])
  // CHECK-NEXT: plan.launch @sum(%[[B]]) -> (%{{.*}})
  // CHECK-NEXT: }
  plan.program @f {
    %a = plan.buffer "a" : tensor<1024xf32> activation
    %b = plan.buffer "b" : tensor<1024xf32> activation
    %c = plan.buffer "c" : tensor<3xf32> activation
    %d = plan.buffer "d" : tensor<3xf32> activation
    plan.repeat 3 {
      %ci = plan.view %c[0] strides [4] : tensor<f32>
      %di = plan.view %d[0] strides [4] : tensor<f32>
      plan.launch @make() -> (%a)
      plan.launch @make() -> (%b)
      plan.launch @sum(%a) -> (%ci)
      plan.launch @sum(%b) -> (%di)
    }
    plan.output "c" %c
    plan.output "d" %d
  }
}

// -----

// In a loop of a loop. %c and %d hand on what the inner one adds up: they are live all the time, and their updates stay
// behind what reads their old values.

// CHECK-LABEL: module @in_loops_of_loops
module @in_loops_of_loops {
  plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<1024xf32> gpuc.yield %0 : tensor<1024xf32> }
  plan.kernel @sum (%a: tensor<1024xf32>, %b: tensor<f32>) {
    %0 = gpuc.sum %a dims [0] : (tensor<1024xf32>) -> tensor<f32>
    %1 = gpuc.add %0, %b : tensor<f32>
    gpuc.yield %1 : tensor<f32>
  }
  // CHECK: plan.repeat 2
  // CHECK: plan.repeat 3
  // CHECK: plan.launch @make() -> (%[[A:.*]])
  // CHECK-NEXT: plan.launch @sum(%[[A]], %[[C:.*]]) -> (%[[D:.*]])
  // CHECK-NEXT: plan.launch @make() -> (%[[B:.*]])
  // CHECK-NEXT: plan.launch @sum(%[[B]], %[[D]]) -> (%[[C]])
  // CHECK-NEXT: }
  plan.program @f {
    %a = plan.buffer "a" : tensor<1024xf32> activation
    %b = plan.buffer "b" : tensor<1024xf32> activation
    %c = plan.buffer "c" : tensor<f32> activation
    %d = plan.buffer "d" : tensor<f32> activation
    plan.fill %c with 0.0 : f32
    plan.repeat 2 {
      plan.repeat 3 {
        plan.launch @make() -> (%a)
        plan.launch @make() -> (%b)
        plan.launch @sum(%a, %c) -> (%d)
        plan.launch @sum(%b, %d) -> (%c)
      }
    }
    plan.output "c" %c
  }
}

// -----

// Parts that are taken side by side: each has a place of its own in %a and %b, and needs them one after the other.

// CHECK-LABEL: module @in_a_parallel
module @in_a_parallel {
  plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<1024xf32> gpuc.yield %0 : tensor<1024xf32> }
  plan.kernel @sum (%a: tensor<1024xf32>) {
    %0 = gpuc.sum %a dims [0] : (tensor<1024xf32>) -> tensor<f32>
    gpuc.yield %0 : tensor<f32>
  }
  // CHECK: plan.parallel 2
  // CHECK: plan.launch @make() -> (%[[A:.*]])
  // CHECK-NEXT: plan.launch @sum(%[[A]]) -> (%{{.*}})
  // CHECK-NEXT: plan.launch @make() -> (%[[B:.*]])
  // CHECK-NEXT: plan.launch @sum(%[[B]]) -> (%{{.*}})
  // CHECK-NEXT: }
  plan.program @f {
    %a = plan.buffer "a" : tensor<2x1024xf32> activation
    %b = plan.buffer "b" : tensor<2x1024xf32> activation
    %c = plan.buffer "c" : tensor<2xf32> activation
    %d = plan.buffer "d" : tensor<2xf32> activation
    plan.parallel 2 {
      %ai = plan.view %a[0] strides [4096] : tensor<1024xf32>
      %bi = plan.view %b[0] strides [4096] : tensor<1024xf32>
      %ci = plan.view %c[0] strides [4] : tensor<f32>
      %di = plan.view %d[0] strides [4] : tensor<f32>
      plan.launch @make() -> (%ai)
      plan.launch @make() -> (%bi)
      plan.launch @sum(%ai) -> (%ci)
      plan.launch @sum(%bi) -> (%di)
    }
    plan.output "c" %c
    plan.output "d" %d
  }
}

// -----

// What lives throughout the loop decides nothing: the order that was given stays.

// CHECK-LABEL: module @what_is_handed_on_stays
module @what_is_handed_on_stays {
  plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<1024xf32> gpuc.yield %0 : tensor<1024xf32> }
  plan.kernel @half (%a: tensor<512xf32>) { gpuc.yield %a : tensor<512xf32> }
  // CHECK: plan.launch @make() -> (%[[A:.*]])
  // CHECK-NEXT: plan.launch @make() -> (%[[B:.*]])
  // CHECK-NEXT: plan.launch @half(
  // CHECK-NEXT: plan.launch @half(
  plan.program @f {
    %a = plan.buffer "a" : tensor<1024xf32> activation
    %b = plan.buffer "b" : tensor<1024xf32> activation
    %lower = plan.view %a[0] : tensor<512xf32>
    %upper = plan.view %a[2048] : tensor<512xf32>
    plan.repeat 3 {
      plan.launch @make() -> (%a)
      plan.launch @make() -> (%b)
      plan.launch @half(%lower) -> (%upper)
      plan.launch @half(%upper) -> (%lower)
    }
    plan.output "a" %a
    plan.output "b" %b
  }
}

// -----

// What is computed again stays behind what it stands behind: %half could free %k before %b is made, and less would be live
// then. But nobody would have to compute it again if it came first.

// CHECK-LABEL: module @again
module @again {
  plan.kernel @keep () { %0 = gpuc.constant 1.0 : tensor<1024xf32> gpuc.yield %0 : tensor<1024xf32> }
  plan.kernel @grow (%k: tensor<1024xf32>) { %0 = gpuc.constant 1.0 : tensor<4096xf32> gpuc.yield %0 : tensor<4096xf32> }
  plan.kernel @sum (%a: tensor<4096xf32>) {
    %0 = gpuc.sum %a dims [0] : (tensor<4096xf32>) -> tensor<f32>
    gpuc.yield %0 : tensor<f32>
  }
  plan.kernel @spread (%c: tensor<f32>) {
    %0 = gpuc.broadcast %c dims [] : tensor<f32> to tensor<8192xf32>
    gpuc.yield %0 : tensor<8192xf32>
  }
  plan.kernel @halve (%k: tensor<1024xf32>) { %0 = gpuc.constant 1.0 : tensor<512xf32> gpuc.yield %0 : tensor<512xf32> }
  // CHECK: plan.launch @keep() -> (%[[KEPT:.*]])
  // CHECK-NEXT: plan.launch @grow
  // CHECK-NEXT: plan.launch @sum
  // CHECK-NEXT: plan.launch @spread
  // CHECK-NEXT: plan.launch @halve(%[[KEPT]]) -> (%{{.*}}) {gpuc.recomputed}
  plan.program @f {
    %k = plan.buffer "k" : tensor<1024xf32> activation
    %a = plan.buffer "a" : tensor<4096xf32> activation
    %c = plan.buffer "c" : tensor<f32> activation
    %b = plan.buffer "b" : tensor<8192xf32> activation
    %half = plan.buffer "half" : tensor<512xf32> activation
    plan.launch @keep() -> (%k)
    plan.launch @grow(%k) -> (%a)
    plan.launch @sum(%a) -> (%c)
    plan.launch @spread(%c) -> (%b)
    plan.launch @halve(%k) -> (%half) {gpuc.recomputed}
    plan.output "b" %b
    plan.output "half" %half
  }
}

// -----

// What takes little next is not always first: with the three small buffers before the big ones 7 KiB are live at once. In the
// given order, but for what frees something and comes as soon as it can, it is 4.

// CHECK-LABEL: module @big_ones_first
module @big_ones_first {
  plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<1024xf32> gpuc.yield %0 : tensor<1024xf32> }
  plan.kernel @small () { %0 = gpuc.constant 1.0 : tensor<256xf32> gpuc.yield %0 : tensor<256xf32> }
  plan.kernel @sum (%a: tensor<1024xf32>) {
    %0 = gpuc.sum %a dims [0] : (tensor<1024xf32>) -> tensor<f32>
    gpuc.yield %0 : tensor<f32>
  }
  plan.kernel @join (%a: tensor<256xf32>, %b: tensor<256xf32>, %c: tensor<256xf32>) {
    %0 = gpuc.add %a, %b : tensor<256xf32>
    %1 = gpuc.add %0, %c : tensor<256xf32>
    gpuc.yield %1 : tensor<256xf32>
  }
  // CHECK:      plan.launch @make
  // CHECK-NEXT: plan.launch @sum
  // CHECK-NEXT: plan.launch @make
  // CHECK-NEXT: plan.launch @sum
  // CHECK-NEXT: plan.launch @small
  // CHECK-NEXT: plan.launch @small
  // CHECK-NEXT: plan.launch @small
  // CHECK-NEXT: plan.launch @join
  plan.program @f {
    %x = plan.buffer "x" : tensor<1024xf32> activation
    %y = plan.buffer "y" : tensor<1024xf32> activation
    %a = plan.buffer "a" : tensor<256xf32> activation
    %b = plan.buffer "b" : tensor<256xf32> activation
    %c = plan.buffer "c" : tensor<256xf32> activation
    %d = plan.buffer "d" : tensor<256xf32> activation
    %p = plan.buffer "p" : tensor<f32> activation
    %q = plan.buffer "q" : tensor<f32> activation
    plan.launch @make() -> (%x)
    plan.launch @make() -> (%y)
    plan.launch @sum(%x) -> (%p)
    plan.launch @sum(%y) -> (%q)
    plan.launch @small() -> (%a)
    plan.launch @small() -> (%b)
    plan.launch @small() -> (%c)
    plan.launch @join(%a, %b, %c) -> (%d)
    plan.output "d" %d
    plan.output "p" %p
    plan.output "q" %q
  }
}
