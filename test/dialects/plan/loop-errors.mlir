// What loops refuse.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

plan.program @f {
  plan.stream "compute" {
    // expected-error @below {{of 0 iterations; there must be at least one}}
    plan.repeat 0 {
    }
  }
}

// -----

plan.program @f {
  plan.stream "compute" {
    // expected-error @below {{of 1 parts; there must be at least two}}
    plan.parallel 1 {
    }
  }
}

// -----

plan.program @f {
  plan.stream "compute" {
    // expected-error @below {{of 0 parts; there must be at least two}}
    plan.parallel rows 0 {
    }
  }
}

// -----

plan.program @f {
  plan.stream "compute" {
    plan.parallel 2 {
      // expected-error @below {{may not stand in a plan.parallel}}
      %done = plan.event "done"
    }
  }
}

// -----

plan.program @f {
  %a = plan.buffer "a" : tensor<2x16xf32> activation
  plan.stream "compute" {
    plan.repeat 3 {
      // expected-error @below {{stands in a plan.repeat, where only one by rows may be}}
      plan.parallel 2 {
        %part = plan.view %a[0] strides [0, 64] : tensor<16xf32>
        plan.fill %part with 0.0 : f32
      }
    }
  }
}

// -----

plan.program @f {
  %a = plan.buffer "a" : tensor<2x16xf32> activation
  plan.stream "compute" {
    plan.parallel 2 {
      // expected-error @below {{stands in another}}
      plan.parallel rows 16 {
        plan.fill %a with 0.0 : f32
      }
    }
  }
}

// -----

plan.program @f {
  %done = plan.event "done"
  plan.stream "compute" {
    plan.parallel 2 {
      plan.repeat 3 {
        // expected-error @below {{may not stand in a plan.parallel: its parts wait for nothing}}
        plan.record %done
      }
    }
  }
}

// -----

plan.program @f {
  %x = plan.input "x" : tensor<16xf32>
  plan.stream "compute" {
    plan.parallel rows 16 {
      // expected-error @below {{may not stand in a plan.parallel: its parts wait for nothing}}
      plan.upload %x
    }
  }
}
