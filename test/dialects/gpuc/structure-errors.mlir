// What ops that move, reduce and contract refuse.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

// A reshape moves nothing.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{operand 'tensor<6x4xf32>' and result 'tensor<24xf64>' differ in element type [reshape_C1]}}
  %0 = "gpuc.reshape"(%a) : (tensor<6x4xf32>) -> tensor<24xf64>
  return
}

// -----

// One element would be lost.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{operand 'tensor<6x4xf32>' has 24 elements, result 'tensor<23xf32>' has 23 [reshape_C2]}}
  %0 = gpuc.reshape %a : tensor<6x4xf32> to tensor<23xf32>
  return
}

// -----

// The batch cannot vanish.
func.func @case(%a: tensor<?x6xf32>) {
  // expected-error @below {{operand 'tensor<?x6xf32>' and result 'tensor<6xf32>' must both have the batch in front, or neither [reshape_C3]}}
  %0 = gpuc.reshape %a : tensor<?x6xf32> to tensor<6xf32>
  return
}

// -----

// A dimension is missing.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{permutation must name each dimension of the operand 'tensor<6x4xf32>' once [transpose_C1]}}
  %0 = gpuc.transpose %a permutation [0, 0] : (tensor<6x4xf32>) -> tensor<6x4xf32>
  return
}

// -----

// Only the first dimension can be the batch.
func.func @case(%a: tensor<?x6x4xf32>) {
  // expected-error @below {{the batch of the operand 'tensor<?x6x4xf32>' must stay in front [transpose_C2]}}
  %0 = gpuc.transpose %a permutation [1, 0, 2] : (tensor<?x6x4xf32>) -> tensor<6x4x4xf32>
  return
}

// -----

// A broadcast casts nothing.
func.func @case(%a: tensor<4xf32>) {
  // expected-error @below {{operand 'tensor<4xf32>' and result 'tensor<2x4xf64>' differ in element type [broadcast_C1]}}
  %0 = gpuc.broadcast %a dims [1] : tensor<4xf32> to tensor<2x4xf64>
  return
}

// -----

// One entry a dimension.
func.func @case(%a: tensor<4xf32>) {
  // expected-error @below {{dims has 2 entries, but the operand is 'tensor<4xf32>' [broadcast_C2]}}
  %0 = gpuc.broadcast %a dims [0, 1] : tensor<4xf32> to tensor<4x4xf32>
  return
}

// -----

// The result has no dimension 2.
func.func @case(%a: tensor<4xf32>) {
  // expected-error @below {{dims must increase and be dimensions of 'tensor<4x4xf32>', but 2 stands first [broadcast_C3]}}
  %0 = gpuc.broadcast %a dims [2] : tensor<4xf32> to tensor<4x4xf32>
  return
}

// -----

// A broadcast does not transpose.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{but 0 follows 1 [broadcast_C3]}}
  %0 = gpuc.broadcast %a dims [1, 0] : tensor<6x4xf32> to tensor<4x6xf32>
  return
}

// -----

// What repeats is a dimension that the operand does not have.
func.func @case(%a: tensor<4xf32>) {
  // expected-error @below {{dimension 0 of the operand 'tensor<4xf32>' is paired with dimension 0 of the result 'tensor<5x4xf32>': their extents differ [broadcast_C4]}}
  %0 = gpuc.broadcast %a dims [0] : tensor<4xf32> to tensor<5x4xf32>
  return
}

// -----

// One start is missing.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{starts, limits and strides must have one entry for each dimension of the operand 'tensor<6x4xf32>' [slice_C1]}}
  %0 = gpuc.slice %a starts [0] limits [6, 4] strides [1, 1] : (tensor<6x4xf32>) -> tensor<6x4xf32>
  return
}

// -----

// The batch may be smaller than 2.
func.func @case(%a: tensor<?x6x4xf32>) {
  // expected-error @below {{the batch of the operand 'tensor<?x6x4xf32>' can only be taken whole: start 0, limit -1, stride 1 [slice_C2]}}
  %0 = gpuc.slice %a starts [0, 0, 0] limits [2, 6, 4] strides [1, 1, 1] : (tensor<?x6x4xf32>) -> tensor<2x6x4xf32>
  return
}

// -----

// There are but 6 rows.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{start 0 and limit 7 in dimension 0 do not lie in the operand 'tensor<6x4xf32>' [slice_C3]}}
  %0 = gpuc.slice %a starts [0, 0] limits [7, 4] strides [1, 1] : (tensor<6x4xf32>) -> tensor<7x4xf32>
  return
}

// -----

// A stride of 0 never ends.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{stride 0 in dimension 0 of the operand 'tensor<6x4xf32>' must be at least 1 [slice_C4]}}
  %0 = gpuc.slice %a starts [0, 0] limits [6, 4] strides [0, 1] : (tensor<6x4xf32>) -> tensor<6x4xf32>
  return
}

// -----

// One entry is missing.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{low, high and interior must have one entry for each dimension of the operand 'tensor<6x4xf32>' [pad_C1]}}
  %0 = gpuc.pad %a low [0] high [0, 0] interior [0, 0] : (tensor<6x4xf32>) -> tensor<6x4xf32>
  return
}

// -----

// To cut off is the business of slice.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{dimension 0 of the operand 'tensor<6x4xf32>' is padded by a negative number of elements [pad_C2]}}
  %0 = gpuc.pad %a low [-1, 0] high [0, 0] interior [0, 0] : (tensor<6x4xf32>) -> tensor<5x4xf32>
  return
}

// -----

// Wherever the batch stands it is the same number.
func.func @case(%a: tensor<?x6x4xf32>) {
  // expected-error @below {{the batch of the operand 'tensor<?x6x4xf32>' cannot be padded [pad_C3]}}
  %0 = gpuc.pad %a low [1, 0, 0] high [0, 0, 0] interior [0, 0, 0] : (tensor<?x6x4xf32>) -> tensor<?x6x4xf32>
  return
}

// -----

// No integer is a half.
func.func @case(%a: tensor<6xi32>) {
  // expected-error @below {{value 0.5 is not a number of the operand 'tensor<6xi32>' [pad_C4]}}
  %0 = gpuc.pad %a low [1] high [0] interior [0] {value = 0.5 : f64} : (tensor<6xi32>) -> tensor<7xi32>
  return
}

// -----

// 255 is the largest ui8.
func.func @case(%a: tensor<6xui8>) {
  // expected-error @below {{value 256 is not a number of the operand 'tensor<6xui8>' [pad_C4]}}
  %0 = gpuc.pad %a low [1] high [0] interior [0] {value = 256.0 : f64} : (tensor<6xui8>) -> tensor<7xui8>
  return
}

// -----

// Nothing has no type.
func.func @case() {
  // expected-error @below {{needs at least one operand [concat_C1]}}
  %0 = "gpuc.concat"() <{dim = 0 : i64}> : () -> tensor<4xf32>
  return
}

// -----

// Dimensions count from 0.
func.func @case(%a: tensor<4xf32>) {
  // expected-error @below {{dim 1 is not a dimension of the operand 'tensor<4xf32>', which has 1 [concat_C2]}}
  %0 = gpuc.concat %a, %a dim 1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

// Two batches are no batch.
func.func @case(%a: tensor<?x6x4xf32>) {
  // expected-error @below {{operand #0 'tensor<?x6x4xf32>' cannot be joined along the batch [concat_C3]}}
  %0 = gpuc.concat %a, %a dim 0 : (tensor<?x6x4xf32>, tensor<?x6x4xf32>) -> tensor<?x6x4xf32>
  return
}

// -----

// The columns differ.
func.func @case(%a: tensor<6x4xf32>, %b: tensor<6x5xf32>) {
  // expected-error @below {{operand #1 is 'tensor<6x5xf32>', which differs from 'tensor<6x4xf32>' elsewhere than in dimension 0 [concat_C4]}}
  %0 = gpuc.concat %a, %b dim 0 : (tensor<6x4xf32>, tensor<6x5xf32>) -> tensor<12x4xf32>
  return
}

// -----

// There is no dimension 2.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{dims must increase and be dimensions of 'tensor<6x4xf32>', but 2 stands first [reverse_C1]}}
  %0 = gpuc.reverse %a dims [2] : tensor<6x4xf32>
  return
}

// -----

// Samples do not know their neighbours.
func.func @case(%a: tensor<?x6x4xf32>) {
  // expected-error @below {{the batch of the operand 'tensor<?x6x4xf32>' cannot be reversed [reverse_C2]}}
  %0 = gpuc.reverse %a dims [0] : tensor<?x6x4xf32>
  return
}

// -----

// There is no dimension 2.
func.func @case(%a: tensor<6x4xf32>, %i: tensor<3xi32>) {
  // expected-error @below {{'gpuc.gather' op dim 2 is not a dimension of the operand 'tensor<6x4xf32>', which has 2 [gather_C1]}}
  %0 = gpuc.gather %a, %i dim 2 : (tensor<6x4xf32>, tensor<3xi32>) -> tensor<6x4xf32>
  return
}

// -----

// Samples do not know their neighbours.
func.func @case(%a: tensor<?x6x4xf32>, %i: tensor<3xi32>) {
  // expected-error @below {{the batch must stay the leading dimension and cannot be indexed: operand 'tensor<?x6x4xf32>', indices 'tensor<3xi32>', dim 0 [gather_C2]}}
  %0 = gpuc.gather %a, %i dim 0 : (tensor<?x6x4xf32>, tensor<3xi32>) -> tensor<3x6x4xf32>
  return
}

// -----

// Dimensions count from 0.
func.func @case(%a: tensor<6x4xf32>, %i: tensor<3xi32>) {
  // expected-error @below {{'gpuc.scatter_add' op dim -1 is not a dimension of the operand 'tensor<6x4xf32>', which has 2 [scatter_add_C1]}}
  %0 = gpuc.scatter_add %a, %i, %a dim -1 : (tensor<6x4xf32>, tensor<3xi32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  return
}

// -----

// Samples do not know their neighbours.
func.func @case(%a: tensor<?x6x4xf32>, %i: tensor<3xi32>) {
  // expected-error @below {{dim 0 [scatter_add_C2]}}
  %0 = gpuc.scatter_add %a, %i, %a dim 0 : (tensor<?x6x4xf32>, tensor<3xi32>, tensor<?x6x4xf32>) -> tensor<?x6x4xf32>
  return
}

// -----

// Three indices, six slices.
func.func @case(%a: tensor<6x4xf32>, %i: tensor<3xi32>) {
  // expected-error @below {{updates must be 'tensor<3x4xf32>', but is 'tensor<6x4xf32>' [scatter_add_C3]}}
  %0 = gpuc.scatter_add %a, %i, %a dim 0 : (tensor<6x4xf32>, tensor<3xi32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  return
}

// -----

// Three indices, two dimensions.
func.func @case(%a: tensor<6x4xf32>, %i: tensor<3xi32>) {
  // expected-error @below {{start 'tensor<3xi32>' must hold one index for each dimension of the operand 'tensor<6x4xf32>' [dynamic_slice_C1]}}
  %0 = gpuc.dynamic_slice %a, %i sizes [1, 1] : (tensor<6x4xf32>, tensor<3xi32>) -> tensor<1x1xf32>
  return
}

// -----

// One size is missing.
func.func @case(%a: tensor<6x4xf32>, %i: tensor<2xi32>) {
  // expected-error @below {{sizes has 1 entries, but the operand is 'tensor<6x4xf32>' [dynamic_slice_C2]}}
  %0 = gpuc.dynamic_slice %a, %i sizes [1] : (tensor<6x4xf32>, tensor<2xi32>) -> tensor<1xf32>
  return
}

// -----

// There are but 6 rows.
func.func @case(%a: tensor<6x4xf32>, %i: tensor<2xi32>) {
  // expected-error @below {{size 7 in dimension 0 does not fit in the operand 'tensor<6x4xf32>' [dynamic_slice_C3]}}
  %0 = gpuc.dynamic_slice %a, %i sizes [7, 1] : (tensor<6x4xf32>, tensor<2xi32>) -> tensor<7x1xf32>
  return
}

// -----

// Three indices, two dimensions.
func.func @case(%a: tensor<6x4xf32>, %i: tensor<3xi32>) {
  // expected-error @below {{start 'tensor<3xi32>' must hold one index for each dimension of the operand 'tensor<6x4xf32>' [dynamic_update_slice_C1]}}
  %0 = gpuc.dynamic_update_slice %a, %a, %i : (tensor<6x4xf32>, tensor<6x4xf32>, tensor<3xi32>) -> tensor<6x4xf32>
  return
}

// -----

// There are but 6 rows.
func.func @case(%a: tensor<6x4xf32>, %b: tensor<7x1xf32>, %i: tensor<2xi32>) {
  // expected-error @below {{update 'tensor<7x1xf32>' does not fit in the operand 'tensor<6x4xf32>' [dynamic_update_slice_C2]}}
  %0 = gpuc.dynamic_update_slice %a, %b, %i : (tensor<6x4xf32>, tensor<7x1xf32>, tensor<2xi32>) -> tensor<6x4xf32>
  return
}

// -----

// There is no dimension 2.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{'gpuc.sort' op dim 2 is not a dimension of the operand 'tensor<6x4xf32>', which has 2 [sort_C1]}}
  %0, %1 = gpuc.sort %a dim 2 : (tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<6x4xi64>)
  return
}

// -----

// Samples do not know their neighbours.
func.func @case(%a: tensor<?x4xf32>) {
  // expected-error @below {{the batch of the operand 'tensor<?x4xf32>' cannot be put in order [sort_C2]}}
  %0, %1 = gpuc.sort %a dim 0 : (tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xi64>)
  return
}

// -----

// Indices are i64, whatever is sorted.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{must return ('tensor<6x4xf32>', 'tensor<6x4xi64>'), but returns ('tensor<6x4xf32>', 'tensor<6x4xi32>') [inferred_C1]}}
  %0, %1 = gpuc.sort %a dim 0 : (tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<6x4xi32>)
  return
}

// -----

// Dimensions count from 0.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{'gpuc.top_k' op dim -1 is not a dimension of the operand 'tensor<6x4xf32>', which has 2 [top_k_C1]}}
  %0, %1 = gpuc.top_k %a k 2 dim -1 : (tensor<6x4xf32>) -> (tensor<6x2xf32>, tensor<6x2xi64>)
  return
}

// -----

// Samples do not know their neighbours.
func.func @case(%a: tensor<?x4xf32>) {
  // expected-error @below {{the batch of the operand 'tensor<?x4xf32>' cannot be put in order [top_k_C2]}}
  %0, %1 = gpuc.top_k %a k 2 dim 0 : (tensor<?x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xi64>)
  return
}

// -----

// There are but 4 columns.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{k is 5, but must be at least 1 and at most extent 4 of dim 1 of the operand 'tensor<6x4xf32>' [top_k_C3]}}
  %0, %1 = gpuc.top_k %a k 5 dim 1 : (tensor<6x4xf32>) -> (tensor<6x5xf32>, tensor<6x5xi64>)
  return
}

// -----

// To choose nothing is no choice.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{k is 0, but must be at least 1 and at most extent 4 of dim 1 of the operand 'tensor<6x4xf32>' [top_k_C3]}}
  %0, %1 = gpuc.top_k %a k 0 dim 1 : (tensor<6x4xf32>) -> (tensor<6x0xf32>, tensor<6x0xi64>)
  return
}

// -----

// A dimension is reduced once.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{dims must increase and be dimensions of 'tensor<6x4xf32>', but 1 follows 1 [reduction_C1]}}
  %0 = gpuc.sum %a dims [1, 1] : (tensor<6x4xf32>) -> tensor<6xf32>
  return
}

// -----

// Nothing has no largest element.
func.func @case(%a: tensor<6x0xf32>) {
  // expected-error @below {{dim 1 of the operand 'tensor<6x0xf32>' has no elements to choose from [reduction_C2]}}
  %0 = gpuc.reduce_max %a dims [1] : (tensor<6x0xf32>) -> tensor<6xf32>
  return
}

// -----

// There is no dimension 2.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{dim 2 is not a dimension of the operand 'tensor<6x4xf32>', which has 2 [argmax_C1]}}
  %0 = gpuc.argmax %a dim 2 : (tensor<6x4xf32>) -> tensor<6xi64>
  return
}

// -----

// Nothing has no largest element.
func.func @case(%a: tensor<6x0xf32>) {
  // expected-error @below {{dim 1 of the operand 'tensor<6x0xf32>' has no elements to choose from [argmax_C2]}}
  %0 = gpuc.argmax %a dim 1 : (tensor<6x0xf32>) -> tensor<6xi64>
  return
}

// -----

// There is no dimension 2.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{dim 2 is not a dimension of the operand 'tensor<6x4xf32>', which has 2 [cumsum_C1]}}
  %0 = gpuc.cumsum %a dim 2 : tensor<6x4xf32>
  return
}

// -----

// What is written must be what is inferred.
func.func @case(%a: tensor<6x4xf32>) {
  // expected-error @below {{must return ('tensor<6xf32>'), but returns ('tensor<4xf32>') [inferred_C1]}}
  %0 = gpuc.sum %a dims [1] : (tensor<6x4xf32>) -> tensor<4xf32>
  return
}

// -----

// Nothing is cast silently.
func.func @case(%a: tensor<6x4xf32>, %b: tensor<4x2xf64>) {
  // expected-error @below {{lhs 'tensor<6x4xf32>' and rhs 'tensor<4x2xf64>' differ in element type [matmul_C1]}}
  %0 = gpuc.matmul %a, %b : (tensor<6x4xf32>, tensor<4x2xf64>) -> tensor<6x2xf32>
  return
}

// -----

// A vector is reshaped to a matrix first.
func.func @case(%a: tensor<6x4xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{lhs 'tensor<6x4xf32>' and rhs 'tensor<4xf32>' must have one rank, at least 2, or rhs just 2 [matmul_C2]}}
  %0 = gpuc.matmul %a, %b : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6xf32>
  return
}

// -----

// Two matrices and three.
func.func @case(%a: tensor<2x6x4xf32>, %b: tensor<3x4x5xf32>) {
  // expected-error @below {{lhs 'tensor<2x6x4xf32>' and rhs 'tensor<3x4x5xf32>' differ before their last two dimensions [matmul_C3]}}
  %0 = gpuc.matmul %a, %b : (tensor<2x6x4xf32>, tensor<3x4x5xf32>) -> tensor<2x6x5xf32>
  return
}

// -----

// One rhs for all makes one large matrix of lhs, whose rows must lie in a row.
func.func @case(%a: tensor<2x4x6xf32>, %b: tensor<4x5xf32>) {
  // expected-error @below {{cannot be multiplied: with one rhs for all, lhs is not transposed [matmul_C6]}}
  %0 = gpuc.matmul transpose %a, %b : (tensor<2x4x6xf32>, tensor<4x5xf32>) -> tensor<2x6x5xf32>
  return
}

// -----

// A transpose was forgotten.
func.func @case(%a: tensor<6x4xf32>, %b: tensor<5x4xf32>) {
  // expected-error @below {{'gpuc.matmul' op lhs 'tensor<6x4xf32>' and rhs 'tensor<5x4xf32>' are contracted over 4 and 5 elements [matmul_C4]}}
  %0 = gpuc.matmul %a, %b : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x4xf32>
  return
}

// -----

// Only the first dimension can be the batch.
func.func @case(%a: tensor<?x6xf32>, %b: tensor<6x6xf32>) {
  // expected-error @below {{give 'tensor<6x?xf32>', where the batch no longer leads [matmul_C5]}}
  %0 = gpuc.matmul %b, transpose %a : (tensor<6x6xf32>, tensor<?x6xf32>) -> tensor<6x6xf32>
  return
}

// -----

func.func @case(%a: tensor<6x6xf32>) {
  // expected-error @below {{gpuc.tf32 is a mark without a value [tf32_C1]}}
  %0 = gpuc.matmul %a, %a {gpuc.tf32 = true} : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
  return
}

// -----

// TF32 is what f32 is rounded to, not what f64 is.
func.func @case(%a: tensor<6x6xf64>) {
  // expected-error @below {{gpuc.tf32 marks products of f32 alone [tf32_C2]}}
  %0 = gpuc.matmul %a, %a {gpuc.tf32} : (tensor<6x6xf64>, tensor<6x6xf64>) -> tensor<6x6xf64>
  return
}

// -----

func.func @case(%a: tensor<6x6xf32>) {
  // expected-error @below {{gpuc.tf32 marks products of f32 alone [tf32_C2]}}
  %0 = gpuc.relu %a {gpuc.tf32} : tensor<6x6xf32>
  return
}
