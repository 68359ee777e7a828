// RUN: gpuc-opt %s --gpuc-specialize-batch --split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-specialize-batch=batch=8 --split-input-file | FileCheck %s --check-prefix=OPTION

// The recipe's batch goes wherever a `?` stands: arguments, results, types of ops, types in attributes.
// CHECK-LABEL: module @recipe
// CHECK-SAME:    gpuc.batch = 32 : i64
// CHECK:       func.func @predict(%{{.*}}: tensor<32x4xf32>) -> tensor<32x2xf32>
// CHECK:         gpuc.constant 0.5 : tensor<32x4xf32>
// CHECK:         gpuc.broadcast %{{.*}} dims [1] : tensor<2xf32> to tensor<32x2xf32>
// CHECK-NOT:   ?
// The option has the last word.
// OPTION-LABEL: module @recipe
// OPTION-SAME:    gpuc.batch = 8 : i64
// OPTION:       func.func @predict(%{{.*}}: tensor<8x4xf32>) -> tensor<8x2xf32>
module @recipe {
  gpuc.variable @w : tensor<2x4xf32> init zeros
  gpuc.variable @b : tensor<2xf32> init zeros
  func.func @predict(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
    %half = gpuc.constant 0.5 : tensor<?x4xf32>
    %0 = gpuc.mul %x, %half : tensor<?x4xf32>
    %w = gpuc.read @w : tensor<2x4xf32>
    %1 = gpuc.matmul %0, transpose %w : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
    %b = gpuc.read @b : tensor<2xf32>
    %2 = gpuc.broadcast %b dims [1] : tensor<2xf32> to tensor<?x2xf32>
    %3 = gpuc.add %1, %2 : tensor<?x2xf32>
    return %3 : tensor<?x2xf32>
  }
  func.func @loss(%x: tensor<?x4xf32>, %y: tensor<?x2xf32>) -> (tensor<f32>, tensor<f32>) {
    %0 = call @predict(%x) : (tensor<?x4xf32>) -> tensor<?x2xf32>
    %sum, %count = gpuc.mse %0, %y : (tensor<?x2xf32>, tensor<?x2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss,
    batch = 32
  }
}

// -----

// What is bound stays so: running the pass again changes nothing.
// CHECK-LABEL: module @bound
// CHECK-SAME:    gpuc.batch = 8 : i64
// CHECK:       tensor<8x4xf32>
module @bound attributes {gpuc.batch = 8 : i64} {
  func.func @predict(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    return %x : tensor<8x4xf32>
  }
}

// -----

// Nothing to bind and no batch named: the module stays as it is.
// CHECK-LABEL: module @static {
// CHECK:       tensor<8x4xf32>
module @static {
  func.func @predict(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    return %x : tensor<8x4xf32>
  }
}

// -----

// Once the batch is known, loops that have it first go over their first dimension, which is time.
// CHECK-LABEL: module @batch_first
// CHECK:       %[[XS:.*]] = gpuc.transpose %{{.*}} permutation [1, 0, 2] : (tensor<8x3x4xf32>) -> tensor<3x8x4xf32>
// CHECK:       %[[R:.*]]:2 = gpuc.scan over(%[[XS]]) carry(%{{.*}}) reverse :
// CHECK-SAME:    (tensor<3x8x4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<3x8x4xf32>)
// CHECK:       %[[Y:.*]] = gpuc.transpose %[[R]]#1 permutation [1, 0, 2] : (tensor<3x8x4xf32>) -> tensor<8x3x4xf32>
// CHECK:       return %[[R]]#0, %[[Y]]
// OPTION-LABEL: module @batch_first
// OPTION:       gpuc.scan over({{.*}}) carry({{.*}}) reverse : (tensor<3x8x4xf32>
module @batch_first attributes {gpuc.batch = 8 : i64} {
  func.func @predict(%x: tensor<8x3x4xf32>, %h: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x3x4xf32>) {
    %n, %y = gpuc.scan over(%x) carry(%h) batch_first reverse
        : (tensor<8x3x4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x3x4xf32>) {
    ^bb0(%a: tensor<8x4xf32>, %c: tensor<8x4xf32>):
      %0 = gpuc.add %a, %c : tensor<8x4xf32>
      gpuc.yield %0, %0 : tensor<8x4xf32>, tensor<8x4xf32>
    }
    return %n, %y : tensor<8x4xf32>, tensor<8x3x4xf32>
  }
}

// -----

// A frontend that knew the batch says what has rows: these, and no others, are cut into microbatches.
// CHECK-LABEL: module @said
// CHECK:       func.func @loss(%{{.*}}: tensor<8x2xf32> {gpuc.partition = [[PARTS:#gpuc.partition<[^>]*>]]}, %{{.*}}: tensor<8x2xf32>)
// CHECK:         gpuc.dropout %{{.*}} id 0 {gpuc.partition = [[PARTS]]}
// CHECK:         gpuc.dropout %{{.*}} id 1 :
// Rows need not stand in front of what is drawn for them.
// CHECK:         gpuc.dropout %{{.*}} id 2 {gpuc.partition = [[PARTS]]} : tensor<2x8xf32>
// CHECK-NOT:   gpuc.partition
// CHECK-NOT:   has_rows
module @said {
  func.func @loss(%x: tensor<8x2xf32> {gpuc.has_rows}, %mask: tensor<8x2xf32>) -> (tensor<f32>, tensor<f32>) {
    %0 = gpuc.dropout %x p 0.5 id 0 {gpuc.has_rows} : tensor<8x2xf32>
    %1 = gpuc.dropout %mask p 0.5 id 1 : tensor<8x2xf32>
    %turned = gpuc.transpose %0 permutation [1, 0] : (tensor<8x2xf32>) -> tensor<2x8xf32>
    %2 = gpuc.dropout %turned p 0.5 id 2 {gpuc.has_rows} : tensor<2x8xf32>
    %3 = gpuc.transpose %2 permutation [1, 0] : (tensor<2x8xf32>) -> tensor<8x2xf32>
    %sum, %count = gpuc.mse %3, %1 : (tensor<8x2xf32>, tensor<8x2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss,
    batch = 8,
    accumulate = 2
  }
}
