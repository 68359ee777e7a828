// What a repeat refuses.
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
  %a = plan.buffer "a" : tensor<2x16xf32> activation
  plan.stream "compute" {
    plan.repeat 3 {
      // expected-error @below {{is parallel and stands in another: only an outermost one may be}}
      plan.repeat 2 parallel {
        %part = plan.view %a[0] strides [0, 64] : tensor<16xf32>
        plan.fill %part with 0.0 : f32
      }
    }
  }
}

// -----

plan.program @f {
  %done = plan.event "done"
  plan.stream "compute" {
    plan.repeat 2 parallel {
      plan.repeat 3 {
        // expected-error @below {{may not stand in a parallel plan.repeat: its iterations wait for nothing}}
        plan.record %done
      }
    }
  }
}
