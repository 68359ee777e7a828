// RUN: gpuc-opt %s -split-input-file --canonicalize | FileCheck %s

// Pads with zeros that fill one another's gaps are their operands one after another, in whatever order they are added.

// CHECK-LABEL: func.func @pieces(
// CHECK-NEXT:    %[[ALL:.*]] = gpuc.concat %arg0, %arg1, %arg2 dim 1 : (tensor<2x1xf32>, tensor<2x3xf32>, tensor<2x2xf32>) -> tensor<2x6xf32>
// CHECK-NEXT:    return %[[ALL]]
func.func @pieces(%a: tensor<2x1xf32>, %b: tensor<2x3xf32>, %c: tensor<2x2xf32>) -> tensor<2x6xf32> {
  %0 = gpuc.pad %a low [0, 0] high [0, 5] interior [0, 0] : (tensor<2x1xf32>) -> tensor<2x6xf32>
  %1 = gpuc.pad %b low [0, 1] high [0, 2] interior [0, 0] : (tensor<2x3xf32>) -> tensor<2x6xf32>
  %2 = gpuc.pad %c low [0, 4] high [0, 0] interior [0, 0] : (tensor<2x2xf32>) -> tensor<2x6xf32>
  %3 = gpuc.add %2, %0 : tensor<2x6xf32>
  %4 = gpuc.add %1, %3 : tensor<2x6xf32>
  return %4 : tensor<2x6xf32>
}

// -----

// What is no such sum stays: pieces that meet, that leave a gap, pads with ones, between elements, along two dimensions,
// something that is no pad, and a sum that is read in part.

// CHECK-LABEL: func.func @others(
// CHECK-NOT:     gpuc.concat
// CHECK-COUNT-7: gpuc.add
func.func @others(%a: tensor<2x2xf32>, %x: tensor<2x4xf32>, %b: tensor<1x2xf32>, %c: tensor<2x1xf32>)
    -> (tensor<2x4xf32>, tensor<2x6xf32>, tensor<2x4xf32>, tensor<2x5xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %left = gpuc.pad %a low [0, 0] high [0, 2] interior [0, 0] : (tensor<2x2xf32>) -> tensor<2x4xf32>
  %middle = gpuc.pad %a low [0, 1] high [0, 1] interior [0, 0] : (tensor<2x2xf32>) -> tensor<2x4xf32>
  %meet = gpuc.add %left, %middle : tensor<2x4xf32>

  %first = gpuc.pad %a low [0, 0] high [0, 4] interior [0, 0] : (tensor<2x2xf32>) -> tensor<2x6xf32>
  %last = gpuc.pad %a low [0, 4] high [0, 0] interior [0, 0] : (tensor<2x2xf32>) -> tensor<2x6xf32>
  %gap = gpuc.add %first, %last : tensor<2x6xf32>

  %right = gpuc.pad %a low [0, 2] high [0, 0] interior [0, 0] {value = 1.0} : (tensor<2x2xf32>) -> tensor<2x4xf32>
  %ones = gpuc.add %left, %right : tensor<2x4xf32>

  %spread = gpuc.pad %a low [0, 0] high [0, 2] interior [0, 1] : (tensor<2x2xf32>) -> tensor<2x5xf32>
  %end = gpuc.pad %a low [0, 3] high [0, 0] interior [0, 0] : (tensor<2x2xf32>) -> tensor<2x5xf32>
  %between = gpuc.add %spread, %end : tensor<2x5xf32>

  %corner = gpuc.pad %b low [0, 0] high [1, 2] interior [0, 0] : (tensor<1x2xf32>) -> tensor<2x4xf32>
  %half = gpuc.pad %a low [0, 2] high [0, 0] interior [0, 0] : (tensor<2x2xf32>) -> tensor<2x4xf32>
  %two = gpuc.add %half, %corner : tensor<2x4xf32>

  %other = gpuc.add %left, %x : tensor<2x4xf32>

  %q1 = gpuc.pad %c low [0, 2] high [0, 1] interior [0, 0] : (tensor<2x1xf32>) -> tensor<2x4xf32>
  %part = gpuc.add %left, %q1 : tensor<2x4xf32>
  return %meet, %gap, %ones, %between, %two, %other, %part
      : tensor<2x4xf32>, tensor<2x6xf32>, tensor<2x4xf32>, tensor<2x5xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// The sum of the first two has another reader: it stays, and so does what is made of it.

// CHECK-LABEL: func.func @read_in_part(
// CHECK-NOT:     gpuc.concat
func.func @read_in_part(%a: tensor<2x1xf32>, %b: tensor<2x2xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = gpuc.pad %a low [0, 0] high [0, 3] interior [0, 0] : (tensor<2x1xf32>) -> tensor<2x4xf32>
  %1 = gpuc.pad %a low [0, 1] high [0, 2] interior [0, 0] : (tensor<2x1xf32>) -> tensor<2x4xf32>
  %2 = gpuc.add %0, %1 : tensor<2x4xf32>
  %3 = gpuc.pad %b low [0, 2] high [0, 0] interior [0, 0] : (tensor<2x2xf32>) -> tensor<2x4xf32>
  %4 = gpuc.add %2, %3 : tensor<2x4xf32>
  return %2, %4 : tensor<2x4xf32>, tensor<2x4xf32>
}
