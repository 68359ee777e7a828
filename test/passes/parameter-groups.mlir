// Which variable is trained with which numbers. Updates stand in the order of the variables.
// RUN: gpuc-opt %s --split-input-file --gpuc-differentiate-loss --gpuc-autodiff --gpuc-expand-recipe --canonicalize --cse | FileCheck %s

// adamw does not decay what is no matrix.
// CHECK-LABEL: module @matrices
// CHECK:         gpuc.adam_update {{.*}}weight_decay = 1.0{{0*}}e-01 : f64} : (tensor<5x3xf32>
// CHECK:         gpuc.adam_update {{.*}}weight_decay = 0.0{{0*}}e+00 : f64} : (tensor<5xf32>
// CHECK:         gpuc.adam_update {{.*}}weight_decay = 1.0{{0*}}e-01 : f64} : (tensor<2x5xf32>
module @matrices {
  gpuc.variable @fc1.weight : tensor<5x3xf32> init normal(std = 0.1)
  gpuc.variable @fc1.bias : tensor<5xf32> init zeros
  gpuc.variable @head.weight : tensor<2x5xf32> init normal(std = 0.1)
  func.func @predict(%x: tensor<4x3xf32> {gpuc.name = "x"}) -> (tensor<4x2xf32> {gpuc.name = "y"}) {
    %w = gpuc.read @fc1.weight : tensor<5x3xf32>
    %b = gpuc.read @fc1.bias : tensor<5xf32>
    %v = gpuc.read @head.weight : tensor<2x5xf32>
    %0 = gpuc.matmul %x, transpose %w : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
    %1 = gpuc.broadcast %b dims [1] : tensor<5xf32> to tensor<4x5xf32>
    %2 = gpuc.add %0, %1 : tensor<4x5xf32>
    %3 = gpuc.matmul %2, transpose %v : (tensor<4x5xf32>, tensor<2x5xf32>) -> tensor<4x2xf32>
    return %3 : tensor<4x2xf32>
  }
  func.func @loss(%x: tensor<4x3xf32> {gpuc.name = "x"}, %y: tensor<4x2xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %0 = call @predict(%x) : (tensor<4x3xf32>) -> tensor<4x2xf32>
    %sum, %count = gpuc.mse %0, %y : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = adamw(weight_decay = 0.1) }
}

// -----

// Unless all are asked for: PyTorch's way. adam, whose decay is part of the gradient, has it of all.
// CHECK-LABEL: module @all
// CHECK:         gpuc.adam_update {{.*}}weight_decay = 1.0{{0*}}e-01 : f64} : (tensor<5x3xf32>
// CHECK:         gpuc.adam_update {{.*}}weight_decay = 1.0{{0*}}e-01 : f64} : (tensor<5xf32>
module @all {
  gpuc.variable @fc1.weight : tensor<5x3xf32> init normal(std = 0.1)
  gpuc.variable @fc1.bias : tensor<5xf32> init zeros
  gpuc.variable @head.weight : tensor<2x5xf32> init normal(std = 0.1)
  func.func @predict(%x: tensor<4x3xf32> {gpuc.name = "x"}) -> (tensor<4x2xf32> {gpuc.name = "y"}) {
    %w = gpuc.read @fc1.weight : tensor<5x3xf32>
    %b = gpuc.read @fc1.bias : tensor<5xf32>
    %v = gpuc.read @head.weight : tensor<2x5xf32>
    %0 = gpuc.matmul %x, transpose %w : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
    %1 = gpuc.broadcast %b dims [1] : tensor<5xf32> to tensor<4x5xf32>
    %2 = gpuc.add %0, %1 : tensor<4x5xf32>
    %3 = gpuc.matmul %2, transpose %v : (tensor<4x5xf32>, tensor<2x5xf32>) -> tensor<4x2xf32>
    return %3 : tensor<4x2xf32>
  }
  func.func @loss(%x: tensor<4x3xf32> {gpuc.name = "x"}, %y: tensor<4x2xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %0 = call @predict(%x) : (tensor<4x3xf32>) -> tensor<4x2xf32>
    %sum, %count = gpuc.mse %0, %y : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = adamw(weight_decay = 0.1, decay = "all") }
}

// -----

// CHECK-LABEL: module @adam
// CHECK:         gpuc.adam_update {{.*}}weight_decay = 1.0{{0*}}e-01 : f64} : (tensor<5xf32>
module @adam {
  gpuc.variable @fc1.weight : tensor<5x3xf32> init normal(std = 0.1)
  gpuc.variable @fc1.bias : tensor<5xf32> init zeros
  gpuc.variable @head.weight : tensor<2x5xf32> init normal(std = 0.1)
  func.func @predict(%x: tensor<4x3xf32> {gpuc.name = "x"}) -> (tensor<4x2xf32> {gpuc.name = "y"}) {
    %w = gpuc.read @fc1.weight : tensor<5x3xf32>
    %b = gpuc.read @fc1.bias : tensor<5xf32>
    %v = gpuc.read @head.weight : tensor<2x5xf32>
    %0 = gpuc.matmul %x, transpose %w : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
    %1 = gpuc.broadcast %b dims [1] : tensor<5xf32> to tensor<4x5xf32>
    %2 = gpuc.add %0, %1 : tensor<4x5xf32>
    %3 = gpuc.matmul %2, transpose %v : (tensor<4x5xf32>, tensor<2x5xf32>) -> tensor<4x2xf32>
    return %3 : tensor<4x2xf32>
  }
  func.func @loss(%x: tensor<4x3xf32> {gpuc.name = "x"}, %y: tensor<4x2xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %0 = call @predict(%x) : (tensor<4x3xf32>) -> tensor<4x2xf32>
    %sum, %count = gpuc.mse %0, %y : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = adam(weight_decay = 0.1) }
}

// -----

// The first group that matches holds; a group that gives weight_decay is taken at its word. What is not given stays.
// The learning rate that the step returns is the optimizer's own.
// CHECK-LABEL: module @groups
// CHECK:       func.func @train_step
// CHECK-DAG:     %[[OWN:.*]] = gpuc.constant 0.01 : tensor<f64>
// CHECK-DAG:     %[[HEAD:.*]] = gpuc.constant 1.0e-04 : tensor<f64>
// CHECK:         gpuc.adam_update {{.*}} lr %[[OWN]] {{.*}}beta1 = 5.0{{0*}}e-01{{.*}}weight_decay = 1.0{{0*}}e-02 : f64} : (tensor<5x3xf32>
// CHECK:         gpuc.adam_update {{.*}} lr %[[OWN]] {{.*}}beta1 = 9.0{{0*}}e-01{{.*}}weight_decay = 3.0{{0*}}e-01 : f64} : (tensor<5xf32>
// CHECK:         gpuc.adam_update {{.*}} lr %[[HEAD]] {{.*}}beta1 = 9.0{{0*}}e-01{{.*}}weight_decay = 1.0{{0*}}e-02 : f64} : (tensor<2x5xf32>
// CHECK:         return {{.*}}%[[OWN]]
module @groups {
  gpuc.variable @fc1.weight : tensor<5x3xf32> init normal(std = 0.1)
  gpuc.variable @fc1.bias : tensor<5xf32> init zeros
  gpuc.variable @head.weight : tensor<2x5xf32> init normal(std = 0.1)
  func.func @predict(%x: tensor<4x3xf32> {gpuc.name = "x"}) -> (tensor<4x2xf32> {gpuc.name = "y"}) {
    %w = gpuc.read @fc1.weight : tensor<5x3xf32>
    %b = gpuc.read @fc1.bias : tensor<5xf32>
    %v = gpuc.read @head.weight : tensor<2x5xf32>
    %0 = gpuc.matmul %x, transpose %w : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
    %1 = gpuc.broadcast %b dims [1] : tensor<5xf32> to tensor<4x5xf32>
    %2 = gpuc.add %0, %1 : tensor<4x5xf32>
    %3 = gpuc.matmul %2, transpose %v : (tensor<4x5xf32>, tensor<2x5xf32>) -> tensor<4x2xf32>
    return %3 : tensor<4x2xf32>
  }
  func.func @loss(%x: tensor<4x3xf32> {gpuc.name = "x"}, %y: tensor<4x2xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %0 = call @predict(%x) : (tensor<4x3xf32>) -> tensor<4x2xf32>
    %sum, %count = gpuc.mse %0, %y : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = adamw(lr = 0.01), groups = (group(match = "*.bias", weight_decay = 0.3), group(match = "fc1.*", beta1 = 0.5), group(match = "head.*", lr = 1.0e-4)) }
}

// -----

// The state of a matrix is a column and a row; eps1 is that of the variables' type, 2^-23.
// CHECK-LABEL: module @adafactor
// CHECK:       gpuc.variable @"fc1.weight/row_var" kind optimizer : tensor<5x1xf32> init zeros
// CHECK-NEXT:  gpuc.variable @"fc1.weight/col_var" kind optimizer : tensor<1x3xf32> init zeros
// CHECK-NEXT:  gpuc.variable @"fc1.bias/variance" kind optimizer : tensor<5xf32> init zeros
// CHECK:         gpuc.adafactor_update {{.*}}eps1 = 1.1920{{[0-9]*}}{{[eE]-0?7}}
module @adafactor {
  gpuc.variable @fc1.weight : tensor<5x3xf32> init normal(std = 0.1)
  gpuc.variable @fc1.bias : tensor<5xf32> init zeros
  gpuc.variable @head.weight : tensor<2x5xf32> init normal(std = 0.1)
  func.func @predict(%x: tensor<4x3xf32> {gpuc.name = "x"}) -> (tensor<4x2xf32> {gpuc.name = "y"}) {
    %w = gpuc.read @fc1.weight : tensor<5x3xf32>
    %b = gpuc.read @fc1.bias : tensor<5xf32>
    %v = gpuc.read @head.weight : tensor<2x5xf32>
    %0 = gpuc.matmul %x, transpose %w : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
    %1 = gpuc.broadcast %b dims [1] : tensor<5xf32> to tensor<4x5xf32>
    %2 = gpuc.add %0, %1 : tensor<4x5xf32>
    %3 = gpuc.matmul %2, transpose %v : (tensor<4x5xf32>, tensor<2x5xf32>) -> tensor<4x2xf32>
    return %3 : tensor<4x2xf32>
  }
  func.func @loss(%x: tensor<4x3xf32> {gpuc.name = "x"}, %y: tensor<4x2xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %0 = call @predict(%x) : (tensor<4x3xf32>) -> tensor<4x2xf32>
    %sum, %count = gpuc.mse %0, %y : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = adafactor }
}

// -----

// A sum that does not begin at 0.
// CHECK-LABEL: module @adagrad
// CHECK:       gpuc.variable @"fc1.weight/sum" kind optimizer : tensor<5x3xf32> init constant(value = 0.5)
module @adagrad {
  gpuc.variable @fc1.weight : tensor<5x3xf32> init normal(std = 0.1)
  gpuc.variable @fc1.bias : tensor<5xf32> init zeros
  gpuc.variable @head.weight : tensor<2x5xf32> init normal(std = 0.1)
  func.func @predict(%x: tensor<4x3xf32> {gpuc.name = "x"}) -> (tensor<4x2xf32> {gpuc.name = "y"}) {
    %w = gpuc.read @fc1.weight : tensor<5x3xf32>
    %b = gpuc.read @fc1.bias : tensor<5xf32>
    %v = gpuc.read @head.weight : tensor<2x5xf32>
    %0 = gpuc.matmul %x, transpose %w : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
    %1 = gpuc.broadcast %b dims [1] : tensor<5xf32> to tensor<4x5xf32>
    %2 = gpuc.add %0, %1 : tensor<4x5xf32>
    %3 = gpuc.matmul %2, transpose %v : (tensor<4x5xf32>, tensor<2x5xf32>) -> tensor<4x2xf32>
    return %3 : tensor<4x2xf32>
  }
  func.func @loss(%x: tensor<4x3xf32> {gpuc.name = "x"}, %y: tensor<4x2xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %0 = call @predict(%x) : (tensor<4x3xf32>) -> tensor<4x2xf32>
    %sum, %count = gpuc.mse %0, %y : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = adagrad(initial_accumulator_value = 0.5) }
}

// -----

// CHECK-LABEL: module @rmsprop
// CHECK:       gpuc.variable @"fc1.weight/square_avg" kind optimizer : tensor<5x3xf32> init zeros
// CHECK-NEXT:  gpuc.variable @"fc1.weight/momentum_buffer" kind optimizer
// CHECK-NEXT:  gpuc.variable @"fc1.weight/grad_avg" kind optimizer
module @rmsprop {
  gpuc.variable @fc1.weight : tensor<5x3xf32> init normal(std = 0.1)
  gpuc.variable @fc1.bias : tensor<5xf32> init zeros
  gpuc.variable @head.weight : tensor<2x5xf32> init normal(std = 0.1)
  func.func @predict(%x: tensor<4x3xf32> {gpuc.name = "x"}) -> (tensor<4x2xf32> {gpuc.name = "y"}) {
    %w = gpuc.read @fc1.weight : tensor<5x3xf32>
    %b = gpuc.read @fc1.bias : tensor<5xf32>
    %v = gpuc.read @head.weight : tensor<2x5xf32>
    %0 = gpuc.matmul %x, transpose %w : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
    %1 = gpuc.broadcast %b dims [1] : tensor<5xf32> to tensor<4x5xf32>
    %2 = gpuc.add %0, %1 : tensor<4x5xf32>
    %3 = gpuc.matmul %2, transpose %v : (tensor<4x5xf32>, tensor<2x5xf32>) -> tensor<4x2xf32>
    return %3 : tensor<4x2xf32>
  }
  func.func @loss(%x: tensor<4x3xf32> {gpuc.name = "x"}, %y: tensor<4x2xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %0 = call @predict(%x) : (tensor<4x3xf32>) -> tensor<4x2xf32>
    %sum, %count = gpuc.mse %0, %y : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = rmsprop(momentum = 0.9, centered = true) }
}

// -----

// Muon leaves vectors to adamw, and what a group names.
// CHECK-LABEL: module @muon
// CHECK:       gpuc.variable @"fc1.weight/momentum_buffer" kind optimizer : tensor<5x3xf32>
// CHECK-NEXT:  gpuc.variable @"fc1.bias/exp_avg" kind optimizer : tensor<5xf32>
// CHECK-NEXT:  gpuc.variable @"fc1.bias/exp_avg_sq" kind optimizer : tensor<5xf32>
// CHECK-NEXT:  gpuc.variable @"head.weight/exp_avg" kind optimizer : tensor<2x5xf32>
// CHECK-DAG:     %[[MUON:.*]] = gpuc.constant 0.02 : tensor<f64>
// CHECK-DAG:     %[[ADAM:.*]] = gpuc.constant 3.0e-04 : tensor<f64>
// CHECK:         gpuc.muon_update {{.*}} lr %[[MUON]] {momentum = {{9.50*e-01|0.949.*}} : f64, nesterov = true, ns_steps = 5 : i64, weight_decay = 0.0{{0*}}e+00 : f64}
// CHECK:         gpuc.adam_update {{.*}} lr %[[ADAM]] decoupled {{.*}}beta2 = {{9.5|0.949999}}{{.*}}weight_decay = 0.0{{0*}}e+00 : f64} : (tensor<5xf32>
// CHECK:         gpuc.adam_update {{.*}} lr %[[ADAM]] decoupled {{.*}}weight_decay = 2.0{{0*}}e-01 : f64} : (tensor<2x5xf32>
module @muon {
  gpuc.variable @fc1.weight : tensor<5x3xf32> init normal(std = 0.1)
  gpuc.variable @fc1.bias : tensor<5xf32> init zeros
  gpuc.variable @head.weight : tensor<2x5xf32> init normal(std = 0.1)
  func.func @predict(%x: tensor<4x3xf32> {gpuc.name = "x"}) -> (tensor<4x2xf32> {gpuc.name = "y"}) {
    %w = gpuc.read @fc1.weight : tensor<5x3xf32>
    %b = gpuc.read @fc1.bias : tensor<5xf32>
    %v = gpuc.read @head.weight : tensor<2x5xf32>
    %0 = gpuc.matmul %x, transpose %w : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
    %1 = gpuc.broadcast %b dims [1] : tensor<5xf32> to tensor<4x5xf32>
    %2 = gpuc.add %0, %1 : tensor<4x5xf32>
    %3 = gpuc.matmul %2, transpose %v : (tensor<4x5xf32>, tensor<2x5xf32>) -> tensor<4x2xf32>
    return %3 : tensor<4x2xf32>
  }
  func.func @loss(%x: tensor<4x3xf32> {gpuc.name = "x"}, %y: tensor<4x2xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %0 = call @predict(%x) : (tensor<4x3xf32>) -> tensor<4x2xf32>
    %sum, %count = gpuc.mse %0, %y : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, optimizer = muon(adam_weight_decay = 0.2), groups = group(match = "head.*", use_muon = false) }
}

// -----

// A group that need not match anything, and one of which a part does not.
// CHECK-LABEL: module @optional
// CHECK:         gpuc.adam_update {{.*}}weight_decay = 2.0{{0*}}e-01 : f64} : (tensor<5x3xf32>
// CHECK:         gpuc.adam_update {{.*}}weight_decay = 0.0{{0*}}e+00 : f64} : (tensor<5xf32>
module @optional {
  gpuc.variable @fc1.weight : tensor<5x3xf32> init normal(std = 0.1)
  gpuc.variable @fc1.bias : tensor<5xf32> init zeros
  func.func @loss(%x: tensor<4x3xf32> {gpuc.name = "x"}, %y: tensor<4x5xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @fc1.weight : tensor<5x3xf32>
    %b = gpuc.read @fc1.bias : tensor<5xf32>
    %0 = gpuc.matmul %x, transpose %w : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
    %1 = gpuc.broadcast %b dims [1] : tensor<5xf32> to tensor<4x5xf32>
    %2 = gpuc.add %0, %1 : tensor<4x5xf32>
    %sum, %count = gpuc.mse %2, %y : (tensor<4x5xf32>, tensor<4x5xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss,
    optimizer = adamw(weight_decay = 0.1),
    groups = (group(match = "tail.*", optional = true, lr = 0.5), group(match = ("fc1.weight", "fc2.weight"), optional = true, weight_decay = 0.2))
  }
}
