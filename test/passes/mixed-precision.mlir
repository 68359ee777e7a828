// RUN: gpuc-opt %s --gpuc-mixed-precision --split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-mixed-precision --gpuc-mixed-precision --split-input-file | FileCheck %s

// A linear layer, its bias and a ReLU in bf16, the loss in f32. The weight is cast once for both products that read it;
// arguments and results stay as they are. PyTorch under autocast computes just so.
// CHECK-LABEL: module @layers attributes {gpuc.precision = [
// CHECK-SAME:    ["matmul", "fc1", "{{[^"]*}}mixed-precision.mlir:{{[0-9:]+}}", "bf16", "autocast list: lower"]
// CHECK-SAME:    ["add", "fc1", {{.*}}, "bf16", "bias of a product"]
// CHECK-SAME:    ["mse", "", {{.*}}, "f32", "autocast list: f32"]
// CHECK-LABEL: func.func @loss(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>
// CHECK-SAME:    -> (tensor<f32>, tensor<f32>)
// CHECK:         %[[XB:.*]] = gpuc.cast %[[X]] : tensor<4x8xf32> to tensor<4x8xbf16>
// CHECK:         %[[W:.*]] = gpuc.read @w
// CHECK-NEXT:    %[[WB:.*]] = gpuc.cast %[[W]] : tensor<8x8xf32> to tensor<8x8xbf16>
// CHECK:         %[[B:.*]] = gpuc.read @b
// CHECK:         %[[H:.*]] = gpuc.matmul %[[XB]], transpose %[[WB]] : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
// CHECK:         %[[BIAS:.*]] = gpuc.broadcast %[[B]]
// CHECK:         %[[BB:.*]] = gpuc.cast %[[BIAS]] : tensor<4x8xf32> to tensor<4x8xbf16>
// CHECK:         %[[A:.*]] = gpuc.add %[[H]], %[[BB]] : tensor<4x8xbf16>
// CHECK:         %[[R:.*]] = gpuc.relu %[[A]] : tensor<4x8xbf16>
// CHECK:         %[[Y:.*]] = gpuc.matmul %[[R]], %[[WB]] : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
// CHECK:         %[[Y32:.*]] = gpuc.cast %[[Y]] : tensor<4x8xbf16> to tensor<4x8xf32>
// CHECK:         gpuc.mse %[[Y32]], %[[X]] : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<f32>, tensor<f32>)

// Prediction too, and back in the type that it promises.
// CHECK-LABEL: func.func @predict(
// CHECK:         %[[P:.*]] = gpuc.matmul {{.*}} -> tensor<4x8xbf16>
// CHECK:         %[[P32:.*]] = gpuc.cast %[[P]] : tensor<4x8xbf16> to tensor<4x8xf32>
// CHECK:         return %[[P32]]
module @layers {
  gpuc.variable @w : tensor<8x8xf32> init zeros
  gpuc.variable @b : tensor<8xf32> init zeros
  func.func @loss(%x: tensor<4x8xf32>) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<8x8xf32>
    %b = gpuc.read @b : tensor<8xf32>
    %0 = gpuc.matmul %x, transpose %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("fc1"("mixed-precision.mlir":1:2))
    %1 = gpuc.broadcast %b dims [1] : tensor<8xf32> to tensor<4x8xf32> loc("fc1")
    %2 = gpuc.add %0, %1 : tensor<4x8xf32> loc("fc1")
    %3 = gpuc.relu %2 : tensor<4x8xf32>
    %4 = gpuc.matmul %3, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("fc2")
    %sum, %count = gpuc.mse %4, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  func.func @predict(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %w = gpuc.read @w : tensor<8x8xf32>
    %0 = gpuc.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
  gpuc.recipe { loss = @loss, precision = bf16 }
}

// -----

// What follows its operands: x · 2 stays f16, since a number has no say; a sum with an f32 tensor becomes f32 (the
// residual of a transformer); 1 / x is PyTorch's reciprocal, in f32; mean is computed in f32 and stored in f16.
// CHECK-LABEL: module @follow
// CHECK-LABEL: func.func @loss(
// CHECK-SAME:    %[[X:.*]]: tensor<4x4xf32>
// CHECK:         %[[H:.*]] = gpuc.matmul {{.*}} -> tensor<4x4xf16>
// CHECK:         %[[H32:.*]] = gpuc.cast %[[H]] : tensor<4x4xf16> to tensor<4x4xf32>
// CHECK:         %[[TWICE:.*]] = gpuc.mul %[[H]], %{{.*}} : tensor<4x4xf16>
// CHECK:         %[[T32:.*]] = gpuc.cast %[[TWICE]] : tensor<4x4xf16> to tensor<4x4xf32>
// CHECK:         gpuc.add %[[X]], %[[H32]] : tensor<4x4xf32>
// CHECK:         gpuc.div %{{.*}}, %[[T32]] : tensor<4x4xf32>
// CHECK:         %[[M:.*]] = gpuc.mean %[[T32]] dims [1] : (tensor<4x4xf32>) -> tensor<4xf32>
// CHECK:         gpuc.cast %[[M]] : tensor<4xf32> to tensor<4xf16>
module @follow {
  func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %0 = gpuc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %two = gpuc.constant 2.0 : tensor<4x4xf32>
    %1 = gpuc.mul %0, %two : tensor<4x4xf32>
    %2 = gpuc.add %x, %0 : tensor<4x4xf32>
    %one = gpuc.constant 1.0 : tensor<4x4xf32>
    %3 = gpuc.div %one, %1 : tensor<4x4xf32>
    %4 = gpuc.mean %1 dims [1] : (tensor<4x4xf32>) -> tensor<4xf32>
    %5 = gpuc.relu %4 : tensor<4xf32>
    %6 = gpuc.sum %5 dims [0] : (tensor<4xf32>) -> tensor<f32>
    %7 = gpuc.sum %2 dims [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
    %8 = gpuc.add %6, %7 : tensor<f32>
    %9 = gpuc.sum %3 dims [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
    return %8, %9 : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, precision = fp16 }
}

// -----

// Numbers that f16 cannot hold, 10⁶ and 10⁻⁹, do not become infinite or 0: their ops are computed in f32, and rounded. An
// infinity is one in any type; bf16 has the range of f32.
// CHECK-LABEL: module @numbers
// CHECK-SAME:    ["mul", "", {{[^]]*}}, "f32", "a number that its type cannot hold"]
// CHECK:         %[[H:.*]] = gpuc.matmul {{.*}} -> tensor<4x4xf16>
// CHECK:         %[[H32:.*]] = gpuc.cast %[[H]] : tensor<4x4xf16> to tensor<4x4xf32>
// CHECK:         %[[L32:.*]] = gpuc.mul %[[H32]], %{{.*}} : tensor<4x4xf32>
// CHECK-NEXT:    %[[L:.*]] = gpuc.cast %[[L32]] : tensor<4x4xf32> to tensor<4x4xf16>
// CHECK:         gpuc.compare lt %[[H32]], %{{.*}} : tensor<4x4xf32>
// CHECK:         %[[M32:.*]] = gpuc.add %{{.*}}, %{{.*}} : tensor<4x4xf32>
// CHECK-NEXT:    gpuc.cast %[[M32]] : tensor<4x4xf32> to tensor<4x4xf16>
// CHECK:         gpuc.min %{{.*}}, %{{.*}} : tensor<4x4xf16>
// CHECK-LABEL: module @bf16_numbers
// CHECK:         gpuc.mul %{{.*}}, %{{.*}} : tensor<4x4xbf16>
module @numbers {
  func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %0 = gpuc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %large = gpuc.constant 1.0e6 : tensor<f32>
    %larges = gpuc.broadcast %large dims [] : tensor<f32> to tensor<4x4xf32>
    %1 = gpuc.mul %0, %larges : tensor<4x4xf32>
    %2 = gpuc.compare lt %0, %larges : tensor<4x4xf32>
    %small = gpuc.constant 1.0e-9 : tensor<4x4xf32>
    %3 = gpuc.add %0, %small : tensor<4x4xf32>
    %4 = gpuc.select %2, %1, %3 : tensor<4x4xi1>, tensor<4x4xf32>
    %inf = gpuc.constant inf : tensor<4x4xf32>
    %5 = gpuc.min %4, %inf : tensor<4x4xf32>
    %sum, %count = gpuc.mse %5, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, precision = fp16 }
}

// -----

module @bf16_numbers {
  func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %0 = gpuc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %large = gpuc.constant 1.0e6 : tensor<4x4xf32>
    %1 = gpuc.mul %0, %large : tensor<4x4xf32>
    %sum, %count = gpuc.mse %1, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, precision = bf16 }
}

// -----

// Batch normalisation: f32 inside, its running statistics too, the result in the type of what came in.
// CHECK-LABEL: module @norm
// CHECK:         %[[C:.*]] = gpuc.conv2d {{.*}} -> tensor<2x3x4x4xbf16>
// CHECK:         %[[C32:.*]] = gpuc.cast %[[C]] : tensor<2x3x4x4xbf16> to tensor<2x3x4x4xf32>
// CHECK:         %[[N:.*]], %[[MEAN:.*]], %{{.*}}, %{{.*}}, %{{.*}} = gpuc.batch_norm %[[C32]]
// CHECK:         %[[NB:.*]] = gpuc.cast %[[N]] : tensor<2x3x4x4xf32> to tensor<2x3x4x4xbf16>
// CHECK:         gpuc.assign @mean, %[[MEAN]] : tensor<3xf32>
// CHECK:         gpuc.relu %[[NB]] : tensor<2x3x4x4xbf16>
module @norm {
  gpuc.variable @mean kind statistic : tensor<3xf32> init zeros
  gpuc.variable @variance kind statistic : tensor<3xf32> init ones
  gpuc.variable @filter : tensor<3x3x1x1xf32> init ones
  func.func @loss(%x: tensor<2x3x4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %f = gpuc.read @filter : tensor<3x3x1x1xf32>
    %0 = gpuc.conv2d %x, %f : (tensor<2x3x4x4xf32>, tensor<3x3x1x1xf32>) -> tensor<2x3x4x4xf32>
    %m = gpuc.read @mean : tensor<3xf32>
    %v = gpuc.read @variance : tensor<3xf32>
    %1, %nm, %nv, %mu, %r = gpuc.batch_norm %0 running %m, %v
        : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
        -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
    gpuc.assign @mean, %nm : tensor<3xf32>
    %2 = gpuc.relu %1 : tensor<2x3x4x4xf32>
    %sum, %count = gpuc.mse %2, %x : (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, precision = bf16 }
}

// -----

// A recurrent cell: products, what follows them and the state in bf16; weight and slices, which the body reads in bf16
// alone, are cast before the loop, once.
// CHECK-LABEL: module @cell
// CHECK:         gpuc.scan over(%{{.*}}) carry(%{{.*}}) captures(%{{.*}}) : (tensor<5x2x4xbf16>, tensor<2x4xbf16>, tensor<4x4xbf16>) -> (tensor<2x4xbf16>, tensor<5x2x4xbf16>)
// CHECK-NOT:     gpuc.cast
// CHECK:         gpuc.tanh %{{.*}} : tensor<2x4xbf16>
// CHECK-NEXT:    gpuc.yield
module @cell {
  gpuc.variable @w : tensor<4x4xf32> init zeros
  func.func @loss(%xs: tensor<5x2x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<4x4xf32>
    %h0 = gpuc.constant 0.0 : tensor<2x4xf32>
    %hn, %hs = gpuc.scan over(%xs) carry(%h0) captures(%w)
        : (tensor<5x2x4xf32>, tensor<2x4xf32>, tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<5x2x4xf32>) {
    ^bb0(%x: tensor<2x4xf32>, %h: tensor<2x4xf32>, %w_: tensor<4x4xf32>):
      %0 = gpuc.matmul %h, %w_ : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
      %1 = gpuc.matmul %x, %w_ : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
      %2 = gpuc.add %0, %1 : tensor<2x4xf32>
      %3 = gpuc.tanh %2 : tensor<2x4xf32>
      gpuc.yield %3, %3 : tensor<2x4xf32>, tensor<2x4xf32>
    }
    %sum, %count = gpuc.mse %hs, %xs : (tensor<5x2x4xf32>, tensor<5x2x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, precision = bf16 }
}

// -----

// A state that a softmax makes is f32, and so is a sum over iterations, though products in bf16 are added to it.
// CHECK-LABEL: module @states
// CHECK:         gpuc.scan over(%{{.*}}) carry(%{{.*}}, %{{.*}}) captures(%{{.*}}) : (tensor<5x4x4xbf16>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xbf16>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
// CHECK:         gpuc.add %{{.*}}, %{{.*}} : tensor<4x4xbf16>
// CHECK:         gpuc.add %{{.*}}, %{{.*}} : tensor<4x4xf32>
// CHECK:         gpuc.softmax %{{.*}} dim 1 : tensor<4x4xf32>
module @states {
  func.func @loss(%xs: tensor<5x4x4xf32>, %w: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %h0 = gpuc.constant 0.0 : tensor<4x4xf32>
    %hn, %total = gpuc.scan over(%xs) carry(%h0, %h0) captures(%w)
        : (tensor<5x4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    ^bb0(%x: tensor<4x4xf32>, %h: tensor<4x4xf32>, %s: tensor<4x4xf32>, %w_: tensor<4x4xf32>):
      %0 = gpuc.matmul %h, %w_ : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %1 = gpuc.matmul %x, %w_ : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %4 = gpuc.add %0, %1 : tensor<4x4xf32>
      %2 = gpuc.add %s, %4 : tensor<4x4xf32>
      %3 = gpuc.softmax %0 dim 1 : tensor<4x4xf32>
      gpuc.yield %3, %2 : tensor<4x4xf32>, tensor<4x4xf32>
    }
    %sum, %count = gpuc.mse %hn, %total : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, precision = bf16 }
}

// -----

// Exceptions by layer and by op: head.* is f32 however lower it is by the list, exp bf16.
// CHECK-LABEL: module @overrides
// CHECK-SAME:    ["matmul", "head.out", {{.*}}"f32", "override head.*"]
// CHECK-SAME:    ["exp", {{.*}}"bf16", "override gpuc.exp"]
// CHECK:         gpuc.matmul %{{.*}} -> tensor<4x4xf32>
// CHECK:         gpuc.exp %{{.*}} : tensor<4x4xbf16>
module @overrides {
  func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %0 = gpuc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("head.out")
    %1 = gpuc.exp %0 : tensor<4x4xf32>
    %sum, %count = gpuc.mse %1, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, precision = bf16(f32 = "head.*", bf16 = "gpuc.exp") }
}

// -----

// An exception for batch_norm takes operand, weight and bias to bf16; running statistics are f32 in any case.
// CHECK-LABEL: module @lower_norm
// CHECK:         gpuc.batch_norm %{{.*}} running %{{.*}}, %{{.*}} weight
// CHECK-SAME:      (tensor<2x3xbf16>, tensor<3xf32>, tensor<3xf32>, tensor<3xbf16>, tensor<3xbf16>) -> (tensor<2x3xbf16>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
module @lower_norm {
  func.func @loss(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %w: tensor<3xf32>) -> (tensor<f32>, tensor<f32>) {
    %0, %nm, %nv, %mu, %r = gpuc.batch_norm %x running %s, %s weight %w bias %w
        : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
        -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
    %sum, %count = gpuc.mse %0, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, precision = bf16(bf16 = "batch_norm") }
}

// -----

// f64 is left alone, and so is a model in f32.
// CHECK-LABEL: module @double
// CHECK-NOT:     bf16>
// CHECK-LABEL: module @single
// CHECK-NOT:     gpuc.cast
module @double {
  func.func @loss(%x: tensor<4x4xf64>) -> (tensor<f64>, tensor<f64>) {
    %0 = gpuc.matmul %x, %x : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
    %sum, %count = gpuc.mse %0, %x : (tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<f64>, tensor<f64>)
    return %sum, %count : tensor<f64>, tensor<f64>
  }
  gpuc.recipe { loss = @loss, precision = bf16 }
}

// -----

module @single {
  func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %0 = gpuc.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %sum, %count = gpuc.mse %0, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, precision = f32 }
}
