// RUN: gpuc-opt %s --gpuc-join-checks | FileCheck %s

// The counts come first, the step's own ops stay as they are, and the list is its last result.
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME:    %[[X:.*]]: tensor<3xf32> {gpuc.name = "x"}) -> (tensor<3xf32> {gpuc.name = "y"}, tensor<1xi32> {gpuc.name = "nonfinite"}) {
// CHECK-NEXT:    %[[FINITE:.*]] = gpuc.is_finite %[[X]]
// CHECK-NEXT:    %[[ONES:.*]] = gpuc.cast %[[FINITE]]
// CHECK-NEXT:    %[[COUNT:.*]] = gpuc.sum %[[ONES]]
// CHECK-NEXT:    %[[LIST:.*]] = gpuc.reshape %[[COUNT]]
// CHECK-NEXT:    %[[Y:.*]] = gpuc.exp %[[X]]
// CHECK-NEXT:    return %[[Y]], %[[LIST]] : tensor<3xf32>, tensor<1xi32>
// CHECK-NOT:   func.func
func.func @train_step(%x: tensor<3xf32> {gpuc.name = "x"}) -> (tensor<3xf32> {gpuc.name = "y"}) {
  %0 = gpuc.exp %x : tensor<3xf32>
  return %0 : tensor<3xf32>
}
func.func private @train_step_checks(%x: tensor<3xf32> {gpuc.name = "x"}) -> (tensor<1xi32> {gpuc.name = "nonfinite"})
    attributes {gpuc.checks_of = @train_step} {
  %finite = gpuc.is_finite %x : tensor<3xf32>
  %ones = gpuc.cast %finite : tensor<3xi1> to tensor<3xi32>
  %count = gpuc.sum %ones dims [0] : (tensor<3xi32>) -> tensor<i32>
  %list = gpuc.reshape %count : tensor<i32> to tensor<1xi32>
  return %list : tensor<1xi32>
}
