// RUN: gpuc-opt %s --plan-assign-streams --plan-place-buffers --plan-verify -verify-diagnostics -split-input-file

// An update writes where it reads, element by element.
module @in_place attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w : tensor<128x64xf32> "parameter" init zeros
  plan.kernel @update (%g: tensor<128x64xf32>, %w: tensor<128x64xf32>) {
    %0 = gpuc.sub %w, %g : tensor<128x64xf32>
    gpuc.yield %0 : tensor<128x64xf32>
  }
  plan.program @train_step {
    %w = plan.use @w : tensor<128x64xf32> parameter
    %x = plan.input "x" : tensor<8x64xf32>
    %dy = plan.input "dy" : tensor<8x128xf32>
    plan.upload %x
    plan.upload %dy
    plan.matmul transpose %dy, %x update @update(%w) -> (%w) : f32 batch 1 m 128 n 64 k 8
  }
}

// -----

// Not over a factor, which other tiles of the product still read.
module @over_a_factor attributes {plan.target = #plan.target<host, "">} {
  plan.variable @w : tensor<128x64xf32> "parameter" init zeros
  plan.kernel @update (%g: tensor<128x64xf32>, %w: tensor<128x64xf32>) {
    %0 = gpuc.sub %w, %g : tensor<128x64xf32>
    gpuc.yield %0 : tensor<128x64xf32>
  }
  plan.program @train_step {
    %w = plan.use @w : tensor<128x64xf32> parameter
    %a = plan.input "a" : tensor<128x128xf32>
    plan.upload %a
    // expected-error @below {{'plan.matmul' op accesses overlapping bytes at once: w [0x0, 0x8000) and w [0x0, 0x8000)}}
    plan.matmul %a, %w update @update(%w) -> (%w) : f32 batch 1 m 128 n 64 k 128
  }
}
