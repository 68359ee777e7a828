// RUN: gpuc-opt %s --gpuc-mask-padding --split-input-file | FileCheck %s

// The loss alone uses @loss, so that it gets the argument itself, calls inlined. The mask has one i1 for each of the 8
// rows: row index < rows.
// CHECK-LABEL: module @mask
// CHECK:       func.func @predict(%{{[^,]*}}: tensor<8x3xf32>) -> tensor<8x3xf32>
// CHECK:       func.func private @loss(%[[X:.*]]: tensor<8x3xf32>, %[[LABELS:.*]]: tensor<8xi32>, %[[ROWS:.*]]: tensor<i32> {gpuc.name = "rows", gpuc.role = "rows"})
// CHECK:         %[[LOGITS:.*]] = gpuc.tanh %[[X]]
// CHECK:         %[[INDEX:.*]] = gpuc.iota dim 0 : tensor<8xi32>
// CHECK:         %[[LIMIT:.*]] = gpuc.broadcast %[[ROWS]] dims [] : tensor<i32> to tensor<8xi32>
// CHECK:         %[[MASK:.*]] = gpuc.compare lt %[[INDEX]], %[[LIMIT]] : tensor<8xi32>
// CHECK:         gpuc.cross_entropy %[[LOGITS]], %[[LABELS]] mask %[[MASK]]
// CHECK:       func.func private @accuracy({{.*}} %[[ROWS:.*]]: tensor<i32> {gpuc.name = "rows", gpuc.role = "rows"})
// CHECK:         gpuc.accuracy %{{.*}}, %{{.*}} mask
// CHECK:       loss = @loss,
// CHECK:       accuracy = @accuracy
module @mask attributes {gpuc.batch = 8 : i64} {
  func.func @predict(%x: tensor<8x3xf32>) -> tensor<8x3xf32> {
    %0 = gpuc.tanh %x : tensor<8x3xf32>
    return %0 : tensor<8x3xf32>
  }
  func.func @loss(%x: tensor<8x3xf32>, %labels: tensor<8xi32>) -> (tensor<f32>, tensor<f32>) {
    %0 = call @predict(%x) : (tensor<8x3xf32>) -> tensor<8x3xf32>
    %sum, %count = gpuc.cross_entropy %0, %labels : (tensor<8x3xf32>, tensor<8xi32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  func.func @accuracy(%x: tensor<8x3xf32>, %labels: tensor<8xi32>) -> (tensor<f32>, tensor<f32>) {
    %0 = call @predict(%x) : (tensor<8x3xf32>) -> tensor<8x3xf32>
    %sum, %count = gpuc.accuracy %0, %labels : (tensor<8x3xf32>, tensor<8xi32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss,
    accuracy = @accuracy
  }
}

// -----

// Another function calls @loss: that keeps its arguments, and the recipe gets a copy.
// CHECK-LABEL: module @shared
// CHECK:       func.func @loss(%{{[^,]*}}: tensor<4x3xf32>) -> (tensor<f32>, tensor<f32>) {
// CHECK:         gpuc.mse %{{[^ ]*}}, %{{[^ ]*}} :
// CHECK:       func.func private @loss_of_rows(%{{.*}}: tensor<4x3xf32>, %{{.*}}: tensor<i32>
// CHECK:         gpuc.mse %{{.*}}, %{{.*}} mask
// CHECK:       loss = @loss_of_rows
module @shared attributes {gpuc.batch = 4 : i64} {
  func.func @loss(%x: tensor<4x3xf32>) -> (tensor<f32>, tensor<f32>) {
    %sum, %count = gpuc.mse %x, %x : (tensor<4x3xf32>, tensor<4x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  func.func @predict(%x: tensor<4x3xf32>) -> tensor<f32> {
    %sum, %count = call @loss(%x) : (tensor<4x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum : tensor<f32>
  }
  gpuc.recipe {
    loss = @loss
  }
}

// -----

// A loss over 3 rows a sample (12 rows, batch 4): row 3·i + j belongs to sample i, so that 3 · rows rows count.
// CHECK-LABEL: module @tokens
// CHECK:         %[[EACH:.*]] = gpuc.constant 3 : tensor<i32>
// CHECK:         %[[COUNT:.*]] = gpuc.mul %{{.*}}, %[[EACH]] : tensor<i32>
// CHECK:         gpuc.broadcast %[[COUNT]] dims [] : tensor<i32> to tensor<12xi32>
module @tokens attributes {gpuc.batch = 4 : i64} {
  func.func @loss(%x: tensor<12x5xf32>, %labels: tensor<12xi32>) -> (tensor<f32>, tensor<f32>) {
    %sum, %count = gpuc.cross_entropy %x, %labels : (tensor<12x5xf32>, tensor<12xi32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss
  }
}

// -----

// A mask of the model's own stays, and so does a function that has no loss op: neither gets an argument.
// CHECK-LABEL: module @alone
// CHECK:       func.func @loss(%{{[^,]*}}: tensor<4x3xf32>, %[[OWN:.*]]: tensor<4xi1>) -> (tensor<f32>, tensor<f32>) {
// CHECK:         gpuc.mse %{{.*}}, %{{.*}} mask %[[OWN]]
// CHECK:       func.func @accuracy(%{{[^,]*}}: tensor<4x3xf32>) -> (tensor<f32>, tensor<f32>) {
module @alone attributes {gpuc.batch = 4 : i64} {
  func.func @loss(%x: tensor<4x3xf32>, %own: tensor<4xi1>) -> (tensor<f32>, tensor<f32>) {
    %sum, %count = gpuc.mse %x, %x mask %own : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4xi1>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  func.func @accuracy(%x: tensor<4x3xf32>) -> (tensor<f32>, tensor<f32>) {
    %sum = gpuc.sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    return %sum, %sum : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss,
    accuracy = @accuracy
  }
}

// -----

// A loss that the recipe does not name asks for it, here the one that is evaluated.
// CHECK-LABEL: module @asked_for
// CHECK:       func.func @evaluate(%{{[^,]*}}: tensor<4x3xf32>, %[[ROWS:.*]]: tensor<i32> {gpuc.name = "rows", gpuc.role = "rows"}) -> tensor<f32> {
// CHECK:         gpuc.mse %{{.*}}, %{{.*}} mask
// CHECK:       func.func @other(%{{[^,]*}}: tensor<4x3xf32>) -> tensor<f32> {
// CHECK:         gpuc.mse %{{[^ ]*}}, %{{[^ ]*}} :
module @asked_for attributes {gpuc.batch = 4 : i64} {
  func.func @evaluate(%x: tensor<4x3xf32>) -> tensor<f32> attributes {gpuc.counts_rows} {
    %sum, %count = gpuc.mse %x, %x : (tensor<4x3xf32>, tensor<4x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum : tensor<f32>
  }
  func.func @other(%x: tensor<4x3xf32>) -> tensor<f32> {
    %sum, %count = gpuc.mse %x, %x : (tensor<4x3xf32>, tensor<4x3xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum : tensor<f32>
  }
}
