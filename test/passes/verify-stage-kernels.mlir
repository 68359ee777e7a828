// What passes up to the kernels could leave by mistake: each case is an error that names the pass whose work it was.
//
// RUN: not gpuc-opt %s -split-input-file --gpuc-verify-stage="stage=kernels after=gpuc-fuse" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --implicit-check-not=error:
// RUN: not gpuc-opt %s --gpuc-verify-stage=stage=kernel -o /dev/null 2>&1 | FileCheck %s --check-prefix=STAGE

// STAGE: error: unknown stage 'kernel': step, entries, kernels, updates or commands

module attributes {gpuc.fused_for = "host"} {
  func.func @predict(%x: tensor<4xf32>) -> tensor<4xf32> {
    // CHECK: :[[#@LINE+2]]:{{.*}} error: gpuc-fuse left 'gpuc.neg' in @predict outside of every kernel, and no command does what it does
    // CHECK: note: unless the text was changed by hand this is a bug of gpuc: please report it with the model
    %0 = gpuc.neg %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// Only attention sees through strides; here nobody would know where the elements lie.
module attributes {gpuc.fused_for = "host"} {
  func.func @predict(%x: tensor<4x3xf32>, %w: tensor<4x4xf32>) -> tensor<3x4xf32> {
    // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-fuse left 'gpuc.transpose' in @predict outside of every kernel
    %0 = gpuc.transpose %x permutation [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
    %1 = gpuc.matmul %0, %w : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    return %1 : tensor<3x4xf32>
  }
}

// -----

// In a loop, too.
module attributes {gpuc.fused_for = "host"} {
  func.func @predict(%x: tensor<5x4xf32>, %h: tensor<4xf32>) -> tensor<4xf32> {
    %0 = gpuc.scan over(%x) carry(%h) : (tensor<5x4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%xi: tensor<4xf32>, %hi: tensor<4xf32>):
      // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-fuse left 'gpuc.add' in @predict outside of every kernel
      %next = gpuc.add %xi, %hi : tensor<4xf32>
      gpuc.yield %next : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
}

// -----

// Rows and columns cannot be folded in one sweep.
module attributes {gpuc.fused_for = "host"} {
  func.func @predict(%x: tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-fuse left gpuc.fused "both" in @predict, which is not one kernel
    %0, %1 = gpuc.fused "both" (%x) : (tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    ^bb0(%a: tensor<4x4xf32>):
      %2 = gpuc.sum %a dims [0] : (tensor<4x4xf32>) -> tensor<4xf32>
      %3 = gpuc.sum %a dims [1] : (tensor<4x4xf32>) -> tensor<4xf32>
      gpuc.yield %2, %3 : tensor<4xf32>, tensor<4xf32>
    }
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// On CUDA attention is a kernel's.
module attributes {gpuc.fused_for = "cuda:sm_90"} {
  func.func @predict(%q: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
    // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-fuse left 'gpuc.attention' in @predict outside of every kernel
    %y, %log = gpuc.attention %q, %q, %q : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> (tensor<2x2x3x4xf32>, tensor<2x2x3xf32>)
    return %y : tensor<2x2x3x4xf32>
  }
}

// -----

// CHECK: error: gpuc-fuse left a module that does not say which target its kernels are for
module {
  func.func @predict(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

module attributes {gpuc.fused_for = "host"} {
  func.func @train_step(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-join-checks left @train_step_checks beside the step that it counts for, seen behind gpuc-fuse
  func.func private @train_step_checks(%x: tensor<4xf32>) -> tensor<4xf32> attributes {gpuc.checks_of = @train_step} {
    return %x : tensor<4xf32>
  }
}

// -----

// What held of the step holds still.
module attributes {gpuc.fused_for = "host"} {
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-fuse left @w without a value in @init
  gpuc.variable @w : tensor<4xf32> init zeros
  func.func @init() {
    return
  }
}
