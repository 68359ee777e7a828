// RUN: gpuc-opt %s --gpuc-override-recipe="optimizer=sgd:lr=0.5,momentum=0.9 seed=7" --split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-override-recipe="entries=optimizer=sgd:lr=0.5,momentum=0.9 seed=7" --split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-override-recipe="entries=clip_norm=2;schedule=linear:steps=4;optimizer=adam;schedule=multi_step:milestones=(8,9);batch=3" --split-input-file | FileCheck %s --check-prefix=KINDS
// RUN: gpuc-opt %s --gpuc-override-recipe --split-input-file | FileCheck %s --check-prefix=KEEP

// What the options name is replaced, the batch stays.
// CHECK-LABEL: module @replace
// CHECK-SAME:    gpuc.seed = 7 : i64
// CHECK:       batch = 16,
// CHECK:       optimizer = sgd(lr = 0.5, momentum = 0.9)
// CHECK:       seed = 7
// KEEP-LABEL:  module @replace attributes {gpuc.training = {{-?[0-9]+}} : i64} {
// KEEP:        optimizer = adam(lr = 0.1)

// Each kind of entry: integers, numbers, specs, and lists of specs, which are said one by one.
// KINDS-LABEL: module @replace
// KINDS:       batch = 3,
// KINDS-NEXT:  clip_norm = 2.0,
// KINDS-NEXT:  optimizer = adam,
// KINDS-NEXT:  schedule = (linear(steps = 4), multi_step(milestones = (8, 9)))
module @replace {
  func.func @loss(%x: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
    %sum = gpuc.sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
    return %sum, %sum : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss,
    batch = 16,
    optimizer = adam(lr = 0.1)
  }
}

// -----

// Without a recipe, an optimizer makes one of the functions with the well-known names.
// CHECK-LABEL: module @create
// CHECK:       gpuc.recipe {
// CHECK:         loss = @loss,
// CHECK:         accuracy = @accuracy,
// CHECK:         optimizer = sgd(lr = 0.5, momentum = 0.9)
// KEEP-LABEL:  module @create
// KEEP-NOT:    gpuc.recipe
module @create {
  func.func @loss(%x: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
    %sum = gpuc.sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
    return %sum, %sum : tensor<f32>, tensor<f32>
  }
  func.func @accuracy(%x: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
    %sum = gpuc.sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
    return %sum, %sum : tensor<f32>, tensor<f32>
  }
}
