// What an output refuses: checks that are not one for each of its elements.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

// Two elements, one check.
plan.program @train_step {
  %y = plan.buffer "y" : tensor<2xi32> activation
  // expected-error @below {{has 1 checks and is 'tensor<2xi32>', expected 'tensor<1xi32>'}}
  plan.output "nonfinite" %y checks [#gpuc.check<op = "log", layer = "head", location = "model.mlir:12:5", backward = false>]
}

// -----

// What is counted is i32.
plan.program @train_step {
  %y = plan.buffer "y" : tensor<1xf32> activation
  // expected-error @below {{has 1 checks and is 'tensor<1xf32>', expected 'tensor<1xi32>'}}
  plan.output "nonfinite" %y checks [#gpuc.check<op = "log", layer = "head", location = "model.mlir:12:5", backward = true>]
}

// -----

plan.program @train_step {
  %y = plan.buffer "y" : tensor<1xi32> activation
  // expected-error @below {{attribute 'checks' failed to satisfy constraint: checks}}
  plan.output "nonfinite" %y checks ["log"]
}
