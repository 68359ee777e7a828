// What an operand is to its op, and which decisions are reported.
// RUN: gpuc-opt %s --gpuc-mixed-precision --split-input-file | FileCheck %s

// The whole report: decisions and casts, and neither what only follows its operands (relu, x · 2) nor what has no f32 (the
// sum of integers).
// CHECK-LABEL: module @report
// CHECK-SAME:    gpuc.precision = {{\[\[}}"matmul", "", "{{[^"]*}}", "bf16", "autocast list: lower"], ["add", "residual", "{{[^"]*}}", "f32", "widest operand"], ["mse", "", "{{[^"]*}}", "f32", "autocast list: f32"{{\]\]}}}
module @report {
  func.func @loss(%x: tensor<4x4xf32>, %i: tensor<4xi64>) -> (tensor<f32>, tensor<f32>) {
    %0 = gpuc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = gpuc.relu %0 : tensor<4x4xf32>
    %two = gpuc.constant 2.0 : tensor<4x4xf32>
    %2 = gpuc.mul %1, %two : tensor<4x4xf32>
    %3 = gpuc.add %2, %x : tensor<4x4xf32> loc("residual")
    %n = gpuc.sum %i dims [0] : (tensor<4xi64>) -> tensor<i64>
    %sum, %count = gpuc.mse %3, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, precision = bf16 }
}

// -----

// Biases of products go with them: of a product in another shape, of a sum of products, of a convolution.
// CHECK-LABEL: module @biases
// CHECK:         gpuc.add %{{.*}}, %{{.*}} : tensor<16xbf16>
// CHECK:         gpuc.add %{{.*}}, %{{.*}} : tensor<4x4xbf16>
// CHECK-NEXT:    gpuc.add %{{.*}}, %{{.*}} : tensor<4x4xbf16>
// CHECK:         gpuc.add %{{.*}}, %{{.*}} : tensor<1x3x4x4xbf16>
module @biases {
  func.func @loss(%x: tensor<4x4xf32>, %long: tensor<16xf32>, %b: tensor<4xf32>, %image: tensor<1x3x4x4xf32>,
                  %filter: tensor<3x3x1x1xf32>, %c: tensor<3xf32>) -> (tensor<f32>, tensor<f32>) {
    %0 = gpuc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %flat = gpuc.reshape %0 : tensor<4x4xf32> to tensor<16xf32>
    %longs = gpuc.broadcast %long dims [0] : tensor<16xf32> to tensor<16xf32>
    %1 = gpuc.add %flat, %longs : tensor<16xf32>
    %bs = gpuc.broadcast %b dims [1] : tensor<4xf32> to tensor<4x4xf32>
    %2 = gpuc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %3 = gpuc.add %0, %2 : tensor<4x4xf32>
    %4 = gpuc.add %bs, %3 : tensor<4x4xf32>
    %5 = gpuc.conv2d %image, %filter : (tensor<1x3x4x4xf32>, tensor<3x3x1x1xf32>) -> tensor<1x3x4x4xf32>
    %cs = gpuc.broadcast %c dims [1] : tensor<3xf32> to tensor<1x3x4x4xf32>
    %6 = gpuc.add %5, %cs : tensor<1x3x4x4xf32>
    %s1 = gpuc.sum %1 dims [0] : (tensor<16xf32>) -> tensor<f32>
    %s4 = gpuc.sum %4 dims [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
    %s6 = gpuc.sum %6 dims [0, 1, 2, 3] : (tensor<1x3x4x4xf32>) -> tensor<f32>
    %s = gpuc.add %s1, %s4 : tensor<f32>
    return %s, %s6 : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, precision = bf16 }
}

// -----

// A vector that is added to a relu, a matrix that is repeated, and a bias of a product that stays in f32 are none.
// CHECK-LABEL: module @no_biases
// CHECK:         gpuc.relu %{{.*}} : tensor<4x4xbf16>
// CHECK:         gpuc.add %{{.*}}, %{{.*}} : tensor<4x4xf32>
// CHECK:         gpuc.add %{{.*}}, %{{.*}} : tensor<2x4x4xf32>
// CHECK:         gpuc.add %{{.*}}, %{{.*}} : tensor<4x4xf32>
module @no_biases {
  func.func @loss(%x: tensor<4x4xf32>, %b: tensor<4xf32>, %xs: tensor<2x4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %bs = gpuc.broadcast %b dims [1] : tensor<4xf32> to tensor<4x4xf32>
    %0 = gpuc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = gpuc.relu %0 : tensor<4x4xf32>
    %2 = gpuc.add %1, %bs : tensor<4x4xf32>
    %3 = gpuc.matmul %xs, %xs : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
    %repeated = gpuc.broadcast %x dims [1, 2] : tensor<4x4xf32> to tensor<2x4x4xf32>
    %4 = gpuc.add %3, %repeated : tensor<2x4x4xf32>
    %5 = gpuc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("head")
    %6 = gpuc.add %5, %bs : tensor<4x4xf32>
    %7 = gpuc.relu %6 : tensor<4x4xf32>
    %s2 = gpuc.sum %2 dims [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
    %s4 = gpuc.sum %4 dims [0, 1, 2] : (tensor<2x4x4xf32>) -> tensor<f32>
    %s7 = gpuc.sum %7 dims [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
    %s = gpuc.add %s2, %s4 : tensor<f32>
    return %s, %s7 : tensor<f32>, tensor<f32>
  }
  // Where both match, f32 wins.
  gpuc.recipe { loss = @loss, precision = bf16(bf16 = "matmul", f32 = "head") }
}

// -----

// A scalar and a number in another shape have no say; numbers that differ have.
// CHECK-LABEL: module @numbers
// CHECK:         gpuc.mul %{{.*}}, %{{.*}} : tensor<4x4xbf16>
// CHECK:         gpuc.mul %{{.*}}, %{{.*}} : tensor<4x4xbf16>
// CHECK:         gpuc.mul %{{.*}}, %{{.*}} : tensor<4x4xf32>
module @numbers {
  func.func @loss(%x: tensor<4x4xf32>, %s: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    %0 = gpuc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %ss = gpuc.broadcast %s dims [] : tensor<f32> to tensor<4x4xf32>
    %1 = gpuc.mul %0, %ss : tensor<4x4xf32>
    %two = gpuc.constant 2.0 : tensor<16xf32>
    %twos = gpuc.reshape %two : tensor<16xf32> to tensor<4x4xf32>
    %2 = gpuc.mul %1, %twos : tensor<4x4xf32>
    %row = gpuc.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %rows = gpuc.broadcast %row dims [1] : tensor<4xf32> to tensor<4x4xf32>
    %3 = gpuc.mul %2, %rows : tensor<4x4xf32>
    %sum, %count = gpuc.mse %3, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, precision = bf16 }
}

// -----

// What the model says of types holds: a cast to f64 is one of the product as it came; what is assigned is of the variable's
// type; an op in the model's own f16 is left alone, and no decision. Accuracy is computed as the loss is.
// CHECK-LABEL: module @own
// CHECK-NOT:     "batch_norm"
// CHECK-LABEL: func.func @loss
// CHECK:         %[[H:.*]] = gpuc.matmul {{.*}} -> tensor<4x4xbf16>
// CHECK:         %[[H32:.*]] = gpuc.cast %[[H]] : tensor<4x4xbf16> to tensor<4x4xf32>
// CHECK:         gpuc.cast %[[H]] : tensor<4x4xbf16> to tensor<4x4xf64>
// CHECK:         gpuc.assign @seen, %[[H32]] : tensor<4x4xf32>
// CHECK:         gpuc.batch_norm {{.*}} : (tensor<4x4xf16>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x4xf16>
// CHECK-LABEL: func.func @accuracy
// CHECK:         gpuc.matmul {{.*}} -> tensor<4x4xbf16>
module @own {
  gpuc.variable @seen kind statistic : tensor<4x4xf32> init zeros
  func.func @loss(%x: tensor<4x4xf32>, %half: tensor<4x4xf16>, %m: tensor<4xf32>) -> (tensor<f64>, tensor<f64>) {
    %0 = gpuc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = gpuc.cast %0 : tensor<4x4xf32> to tensor<4x4xf64>
    gpuc.assign @seen, %0 : tensor<4x4xf32>
    %2, %nm, %nv, %mu, %r = gpuc.batch_norm %half running %m, %m
        : (tensor<4x4xf16>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x4xf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    %3 = gpuc.cast %2 : tensor<4x4xf16> to tensor<4x4xf64>
    %sum, %count = gpuc.mse %1, %3 : (tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<f64>, tensor<f64>)
    return %sum, %count : tensor<f64>, tensor<f64>
  }
  func.func @accuracy(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %0 = gpuc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %s = gpuc.sum %0 dims [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
    return %s, %s : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, accuracy = @accuracy, precision = bf16 }
}

// -----

// One value as running statistics, in f32, and as weight, in bf16.
// CHECK-LABEL: module @both
// CHECK:         gpuc.batch_norm %{{.*}} running %[[S:.*]], %[[S]] weight %[[B:.*]] bias %[[B]]
// CHECK-SAME:      (tensor<2x3xbf16>, tensor<3xf32>, tensor<3xf32>, tensor<3xbf16>, tensor<3xbf16>)
module @both {
  func.func @loss(%x: tensor<2x3xf32>, %s: tensor<3xf32>) -> (tensor<f32>, tensor<f32>) {
    %0, %nm, %nv, %mu, %r = gpuc.batch_norm %x running %s, %s weight %s bias %s
        : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
        -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
    %sum, %count = gpuc.mse %0, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, precision = bf16(bf16 = "batch_norm") }
}

// -----

// A loop's slices of a product take their bias in bf16. What a softmax reads beside a product is taken into the loop in f32.
// What is carried without a product of what is carried is no cell's state, and stays f32. The loop still recomputes.
// CHECK-LABEL: module @loop
// CHECK:         gpuc.scan over(%{{.*}}) carry(%{{.*}}, %{{.*}}, %{{.*}}) captures(%{{.*}}, %{{.*}}) recompute chunked {kept} : (tensor<5x4x4xbf16>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>)
// CHECK:         gpuc.add %{{.*}}, %{{.*}} : tensor<4x4xbf16>
// CHECK:         gpuc.tanh %{{.*}} : tensor<4x4xf32>
// CHECK:         gpuc.matmul %{{.*}} -> tensor<4x4xbf16>
// CHECK:         gpuc.mul %{{.*}}, %{{.*}} : tensor<4x4xf32>
// CHECK:         gpuc.softmax %{{.*}} dim 1 : tensor<4x4xf32>
module @loop {
  func.func @loss(%xs: tensor<5x4x4xf32>, %w: tensor<4x4xf32>, %b: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
    %ps = gpuc.matmul %xs, %xs : (tensor<5x4x4xf32>, tensor<5x4x4xf32>) -> tensor<5x4x4xf32>
    %h0 = gpuc.constant 0.0 : tensor<4x4xf32>
    %a, %c, %d = gpuc.scan over(%ps) carry(%h0, %h0, %h0) captures(%w, %b) recompute chunked {kept}
        : (tensor<5x4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>)
        -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
    ^bb0(%p: tensor<4x4xf32>, %tame: tensor<4x4xf32>, %gated: tensor<4x4xf32>, %s: tensor<4x4xf32>, %w_: tensor<4x4xf32>,
         %b_: tensor<4xf32>):
      %bs = gpuc.broadcast %b_ dims [1] : tensor<4xf32> to tensor<4x4xf32>
      %0 = gpuc.add %p, %bs : tensor<4x4xf32>
      %1 = gpuc.tanh %tame : tensor<4x4xf32>
      %2 = gpuc.matmul %0, %w_ : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %3 = gpuc.mul %gated, %2 : tensor<4x4xf32>
      %4 = gpuc.softmax %w_ dim 1 : tensor<4x4xf32>
      %5 = gpuc.add %s, %4 : tensor<4x4xf32>
      gpuc.yield %1, %3, %5 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
    }
    %e = gpuc.add %c, %d : tensor<4x4xf32>
    %sum, %count = gpuc.mse %a, %e : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, precision = bf16 }
}

// -----

// A loop that is built once more, since its state is not bf16 after all, is reported once.
// CHECK-LABEL: module @rebuilt
// CHECK-SAME:    gpuc.precision = {{\[\[}}"matmul", "first", "{{[^"]*}}", "bf16", "autocast list: lower"], ["matmul", "cell", "{{[^"]*}}", "bf16", "autocast list: lower"], ["softmax", "cell", "{{[^"]*}}", "f32", "autocast list: f32"], ["mse", "", "{{[^"]*}}", "f32", "autocast list: f32"{{\]\]}}}
module @rebuilt {
  func.func @loss(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %h0 = gpuc.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("first")
    %a = gpuc.scan count 5 carry(%h0) captures(%w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
    ^bb0(%h: tensor<4x4xf32>, %w_: tensor<4x4xf32>):
      %1 = gpuc.matmul %h, %w_ : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("cell")
      %2 = gpuc.softmax %1 dim 1 : tensor<4x4xf32> loc("cell")
      gpuc.yield %2 : tensor<4x4xf32>
    }
    %sum, %count = gpuc.mse %a, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, precision = bf16 }
}

// -----

// A bias that is added to what is carried is none of a product, whatever the loop begins with.
// CHECK-LABEL: module @carried
// CHECK:         gpuc.scan count 5 carry(%{{.*}}) captures(%{{.*}}, %{{.*}}) : (tensor<4x4xbf16>, tensor<4x4xbf16>, tensor<4xf32>) -> tensor<4x4xbf16>
// CHECK:         gpuc.add %{{.*}}, %{{.*}} : tensor<4x4xf32>
module @carried {
  func.func @loss(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>, %b: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
    %h0 = gpuc.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %a = gpuc.scan count 5 carry(%h0) captures(%w, %b)
        : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32> {
    ^bb0(%h: tensor<4x4xf32>, %w_: tensor<4x4xf32>, %b_: tensor<4xf32>):
      %bs = gpuc.broadcast %b_ dims [1] : tensor<4xf32> to tensor<4x4xf32>
      %0 = gpuc.add %h, %bs : tensor<4x4xf32>
      %1 = gpuc.matmul %0, %w_ : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      gpuc.yield %1 : tensor<4x4xf32>
    }
    %sum, %count = gpuc.mse %a, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, precision = bf16 }
}
