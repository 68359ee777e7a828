// What ranks cannot share out.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

func.func @no_ranks(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{world_size must be at least 1, but is 0 [reduce_scatter_C1]}}
  %0 = gpuc.reduce_scatter %x ranks 0 : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @too_little(%x: tensor<3x3xf32>) -> tensor<4xf32> {
  // expected-error @below {{of 2 ranks each has of 'tensor<3x3xf32>' 'tensor<5xf32>', not 'tensor<4xf32>' [reduce_scatter_C2]}}
  %0 = gpuc.reduce_scatter %x ranks 2 : (tensor<3x3xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @batch(%x: tensor<?x3xf32>) -> tensor<4xf32> {
  // expected-error @below {{of 2 ranks each has of 'tensor<?x3xf32>' no known number of elements [reduce_scatter_C2]}}
  %0 = gpuc.reduce_scatter %x ranks 2 : (tensor<?x3xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @no_ranks(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{world_size must be at least 1, but is -1 [all_gather_C1]}}
  %0 = gpuc.all_gather %x ranks -1 : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @another_element(%x: tensor<5xf64>) -> tensor<3x3xf32> {
  // expected-error @below {{of 2 ranks each has of 'tensor<3x3xf32>' 'tensor<5xf32>', not 'tensor<5xf64>' [all_gather_C2]}}
  %0 = gpuc.all_gather %x ranks 2 : (tensor<5xf64>) -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}

// -----

func.func @too_many(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{2 ranks own 3 tensors, expected 1 to 2 [reduce_to_owners_C1]}}
  %0 = gpuc.reduce_to_owners %x, %x, %x ranks 2 : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @not_alike(%x: tensor<8xf32>, %y: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @below {{a rank owns 'tensor<8xf32>', and another one 'tensor<4xf32>' [reduce_to_owners_C2]}}
  %0 = gpuc.reduce_to_owners %x, %y ranks 2 : (tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @too_many(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{1 ranks own 2 tensors, expected 1 to 1 [gather_from_owners_C1]}}
  %0:2 = gpuc.gather_from_owners %x ranks 1 : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#1 : tensor<8xf32>
}

// -----

func.func @not_alike(%x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @below {{a rank owns 'tensor<8xf32>', and another one 'tensor<4xf32>' [gather_from_owners_C2]}}
  %0 = gpuc.gather_from_owners %x ranks 2 : (tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
