// What gpuc-to-plan and plan-order could leave by mistake.
//
// RUN: not gpuc-opt %s -split-input-file --gpuc-verify-stage="stage=commands after=gpuc-to-plan" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --implicit-check-not=error:

// Nothing is wrong with a loop that reads what it was given, then what its last iteration wrote: slots of 16 bytes.
plan.kernel @double (%a: tensor<4xf32>) {
  %0 = gpuc.add %a, %a : tensor<4xf32>
  gpuc.yield %0 : tensor<4xf32>
}
plan.program @f {
  %h = plan.buffer "h" : tensor<6x4xf32> activation
  %first = plan.view %h[0] : tensor<4xf32>
  plan.fill %first with 1.0 : f32
  plan.repeat 5 {
    %now = plan.view %h[0] strides [16] : tensor<4xf32>
    %next = plan.view %h[16] strides [16] : tensor<4xf32>
    plan.launch @double(%now) -> (%next)
  }
  plan.output "h" %h
}

// -----

// Nor with loops in loops: each outer iteration fills a row of its own before it reads it.
plan.program @f {
  %t = plan.buffer "t" : tensor<2x8xf32> activation
  %y = plan.buffer "y" : tensor<2x3x4xf32> activation
  plan.repeat 2 {
    %row = plan.view %t[0] strides [32] : tensor<8xf32>
    plan.fill %row with 1.0 : f32
    plan.repeat 3 {
      %half = plan.view %row[0] strides [0, 8] : tensor<4xf32>
      %out = plan.view %y[0] strides [48, 16] : tensor<4xf32>
      plan.copy %half -> %out
    }
  }
  plan.output "y" %y
}

// -----

// CHECK: :[[#@LINE+2]]:{{.*}} error: gpuc-to-plan left @predict, which should be a program or a variable of the plan by now
// CHECK: note: unless the text was changed by hand this is a bug of gpuc: please report it with the model
func.func @predict() {
  return
}

// -----

// CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-to-plan left @w, which should be a program or a variable of the plan by now
gpuc.variable @w : tensor<4xf32> init zeros

// -----

// CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-to-plan left @copy, a kernel that nothing launches
plan.kernel @copy (%a: tensor<4xf32>) { gpuc.yield %a : tensor<4xf32> }

// -----

plan.kernel @copy (%a: tensor<4xf32>) { gpuc.yield %a : tensor<4xf32> }
plan.program @f {
  %a = plan.buffer "a" : tensor<4xf32> activation
  %b = plan.buffer "b" : tensor<4xf32> activation
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-to-plan left plan.launch @copy in @f to read bytes [0, 16) of 'a' before anything has written them
  plan.launch @copy(%a) -> (%b)
  plan.launch @copy(%b) -> (%a)
}

// -----

// An input that nobody uploads.
plan.program @f {
  %x = plan.input "x" : tensor<4xf32>
  %b = plan.buffer "b" : tensor<4xf32> activation
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-to-plan left plan.copy in @f to read bytes [0, 16) of 'x' before
  plan.copy %x -> %b
}

// -----

// The half that is read is not the half that was written.
plan.program @f {
  %a = plan.buffer "a" : tensor<8xf32> activation
  %b = plan.buffer "b" : tensor<4xf32> activation
  %lower = plan.view %a[0] : tensor<4xf32>
  %upper = plan.view %a[16] : tensor<4xf32>
  plan.fill %lower with 1.0 : f32
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-to-plan left plan.copy in @f to read bytes [16, 32) of 'a' before
  plan.copy %upper -> %b
}

// -----

// The first iteration finds its slot, but each writes the one behind it: in the last there is none.
plan.program @f {
  %h = plan.buffer "h" : tensor<5x4xf32> activation
  %first = plan.view %h[0] : tensor<4xf32>
  plan.fill %first with 1.0 : f32
  plan.repeat 5 {
    %now = plan.view %h[0] strides [16] : tensor<4xf32>
    %next = plan.view %h[16] strides [16] : tensor<4xf32>
    // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-to-plan left plan.copy in @f to touch bytes [16, 96) of 'h', which has 80
    plan.copy %now -> %next
  }
}

// -----

// The first iteration finds what it reads; the second would read what nothing writes.
plan.program @f {
  %h = plan.buffer "h" : tensor<5x4xf32> activation
  %y = plan.buffer "y" : tensor<4xf32> activation
  %first = plan.view %h[0] : tensor<4xf32>
  plan.fill %first with 1.0 : f32
  plan.repeat 5 {
    %now = plan.view %h[0] strides [16] : tensor<4xf32>
    // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-to-plan left plan.copy in @f to read bytes [0, 80) of 'h' before
    plan.copy %now -> %y
  }
}

// -----

// It moves with a loop that is not around it.
plan.program @f {
  %h = plan.buffer "h" : tensor<5x4xf32> activation
  %now = plan.view %h[0] strides [16] : tensor<4xf32>
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-to-plan left plan.fill in @f to touch bytes [0, 16) of 'h', which has 80
  plan.fill %now with 1.0 : f32
}

// -----

plan.program @f {
  %a = plan.buffer "a" : tensor<4xf32> activation
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-to-plan left the output 'y' of @f, which nothing has written
  plan.output "y" %a
}

// -----

plan.program @f {
  %x = plan.input "x" : tensor<4xf32>
  plan.upload %x
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-to-plan left a second upload of 'x' in @f
  plan.upload %x
}

// -----

plan.program @f {
  %x = plan.input "x" : tensor<4xf32>
  plan.upload %x
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-to-plan left plan.fill in @f to write 'x', which is an input
  plan.fill %x with 1.0 : f32
}

// -----

plan.constant @c = dense<1.0> : tensor<4xf32>
plan.program @f {
  %c = plan.use @c : tensor<4xf32> constant
  // CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-to-plan left plan.fill in @f to write 'c', which is a constant
  plan.fill %c with 1.0 : f32
}

// -----

// Three of four elements.
// CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-to-plan left @w without a value in @init
plan.variable @w : tensor<4xf32> "parameter" init zeros
plan.variable @seed : tensor<i64> "counter" init zeros
plan.program @init {
  %w = plan.use @w : tensor<4xf32> parameter
  %part = plan.view %w[0] : tensor<3xf32>
  plan.fill %part with 1.0 : f32
}

// -----

// CHECK: :[[#@LINE+1]]:{{.*}} error: gpuc-to-plan left @w/exp_avg without a value in @train_step
plan.variable @"w/exp_avg" : tensor<4xf32> "optimizer" init zeros
plan.program @train_step {
  %w = plan.use @"w/exp_avg" : tensor<4xf32> optimizer
  %a = plan.buffer "a" : tensor<4xf32> activation
  plan.copy %w -> %a
}
