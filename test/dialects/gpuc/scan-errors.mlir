// RUN: gpuc-opt %s -split-input-file -verify-diagnostics

func.func @endless(%x: tensor<4xf32>) {
  // expected-error @+1 {{'gpuc.scan' op has neither inputs nor a count [scan_C1]}}
  %y = gpuc.scan carry(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    gpuc.yield %a : tensor<4xf32>
  }
  return
}

// -----

func.func @counted_twice(%x: tensor<2x4xf32>) {
  // expected-error @+1 {{has inputs, which say how often it iterates, and a count [scan_C1]}}
  %y = gpuc.scan over(%x) count 2 : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<4xf32>):
    gpuc.yield %a : tensor<4xf32>
  }
  return
}

// -----

func.func @never(%x: tensor<4xf32>) {
  // expected-error @+1 {{count must be at least 1, but is 0 [scan_C1]}}
  %y = gpuc.scan count 0 carry(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    gpuc.yield %a : tensor<4xf32>
  }
  return
}

// -----

func.func @scalar_input(%x: tensor<f32>) {
  // expected-error @+1 {{iterates along dimension 0 of input 'tensor<f32>', whose extent is not known to be at least 1 [scan_C2]}}
  %y = gpuc.scan over(%x) : (tensor<f32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<f32>):
    gpuc.yield %a : tensor<f32>
  }
  return
}

// -----

// The number of iterations must be known, so that the batch cannot be it.
func.func @over_the_batch(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{iterates along dimension 0 of input 'tensor<?x4xf32>', whose extent is not known to be at least 1 [scan_C2]}}
  %y = gpuc.scan over(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32> {
  ^bb0(%a: tensor<4xf32>):
    gpuc.yield %a : tensor<4xf32>
  }
  return
}

// -----

func.func @unequal_inputs(%x: tensor<2x4xf32>, %z: tensor<3x4xf32>) {
  // expected-error @+1 {{iterates along dimension 0 of inputs 'tensor<2x4xf32>' and 'tensor<3x4xf32>', whose extents differ [scan_C2]}}
  %y = gpuc.scan over(%x, %z) : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    gpuc.yield %a : tensor<4xf32>
  }
  return
}

// -----

func.func @wrong_result(%x: tensor<2x4xf32>) {
  // expected-error @+1 {{returns ('tensor<3x4xf32>'), but must return ('tensor<2x4xf32>') [scan_C3]}}
  %y = gpuc.scan over(%x) : (tensor<2x4xf32>) -> tensor<3x4xf32> {
  ^bb0(%a: tensor<4xf32>):
    gpuc.yield %a : tensor<4xf32>
  }
  return
}

// -----

func.func @wrong_argument(%x: tensor<2x4xf32>) {
  // expected-error @+1 {{region takes ('tensor<2x4xf32>'), but slices, carried values and captures are ('tensor<4xf32>') [scan_C4]}}
  %y = gpuc.scan over(%x) : (tensor<2x4xf32>) -> tensor<2x2x4xf32> {
  ^bb0(%a: tensor<2x4xf32>):
    gpuc.yield %a : tensor<2x4xf32>
  }
  return
}

// -----

func.func @other_carry(%x: tensor<4xf32>) {
  // expected-error @+1 {{region yields ('tensor<f32>'), but must yield ('tensor<4xf32>') to carry and then a slice of each of 0 outputs [scan_C5]}}
  %y = gpuc.scan count 2 carry(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %0 = gpuc.sum %a dims [0] : (tensor<4xf32>) -> tensor<f32>
    gpuc.yield %0 : tensor<f32>
  }
  return
}

// -----

func.func @scalar_per_batch(%x: tensor<?x2xf32>) {
  // expected-error @+1 {{yields the scalar 'tensor<f32>' with batch_first [scan_C5]}}
  %y = gpuc.scan over(%x) batch_first : (tensor<?x2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<?xf32>):
    %0 = gpuc.sum %a dims [0] : (tensor<?xf32>) -> tensor<f32>
    gpuc.yield %0 : tensor<f32>
  }
  return
}

// -----

gpuc.variable @w : tensor<4xf32> init zeros
func.func @reads(%x: tensor<2x4xf32>) {
  %y = gpuc.scan over(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<4xf32>):
    // expected-error @+1 {{'gpuc.read' op may not stand in a gpuc.scan: read the variable outside and pass it as a capture [scan_C6]}}
    %w = gpuc.read @w : tensor<4xf32>
    gpuc.yield %w : tensor<4xf32>
  }
  return
}

// -----

gpuc.variable @w : tensor<4xf32> init zeros
func.func @assigns(%x: tensor<2x4xf32>) {
  %y = gpuc.scan over(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<4xf32>):
    // expected-error @+1 {{may not stand in a gpuc.scan: carry the value and assign the final one outside [scan_C6]}}
    gpuc.assign @w, %a : tensor<4xf32>
    gpuc.yield %a : tensor<4xf32>
  }
  return
}

// -----

func.func @draws(%x: tensor<2x4xf32>) {
  %y = gpuc.scan over(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<4xf32>):
    // expected-error @+1 {{it would draw the same numbers in each iteration: draw them all outside and pass them as an input [scan_C6]}}
    %0 = gpuc.dropout %a p 0.5 id 1 : tensor<4xf32>
    gpuc.yield %0 : tensor<4xf32>
  }
  return
}

// -----

func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @calls(%x: tensor<2x4xf32>) {
  %y = gpuc.scan over(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<4xf32>):
    // expected-error @+1 {{may not stand in a gpuc.scan: inline it [scan_C6]}}
    %0 = func.call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>
    gpuc.yield %0 : tensor<4xf32>
  }
  return
}

// -----

func.func @carries(%x: tensor<2x4xf32>, %s: tensor<4xf32>) {
  // expected-error @+1 {{is parallel: it carries nothing and stands in no other scan [scan_C7]}}
  %y = gpuc.scan over(%x) carry(%s) parallel : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %sum: tensor<4xf32>):
    %0 = gpuc.add %sum, %a : tensor<4xf32>
    gpuc.yield %0 : tensor<4xf32>
  }
  return
}

// -----

func.func @nests(%x: tensor<2x3x4xf32>) {
  %y = gpuc.scan over(%x) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  ^bb0(%a: tensor<3x4xf32>):
    // expected-error @+1 {{is parallel: it carries nothing and stands in no other scan [scan_C7]}}
    %0 = gpuc.scan over(%a) parallel : (tensor<3x4xf32>) -> tensor<3x4xf32> {
    ^bb0(%b: tensor<4xf32>):
      gpuc.yield %b : tensor<4xf32>
    }
    gpuc.yield %0 : tensor<3x4xf32>
  }
  return
}
