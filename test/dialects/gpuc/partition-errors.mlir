// RUN: gpuc-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{gpuc.partition must be a #gpuc.partition, but is 2 : i64 [partition_C1]}}
func.func private @case(tensor<8xf32>) attributes {gpuc.partition = 2 : i64}

// -----

// expected-error @below {{gpuc.partition must be a #gpuc.partition, but is unit [partition_C1]}}
func.func private @case(tensor<8xf32> {gpuc.partition})

// -----

// A weight has no rows.
// expected-error @below {{gpuc.partition says that 'tensor<4x8xf32>' begins with the 8 rows of a part [partition_C2]}}
func.func private @case(tensor<4x8xf32> {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>})

// -----

// expected-error @below {{gpuc.partition says that 'tensor<f32>' begins with the 1 rows of a part [partition_C2]}}
func.func private @case(tensor<f32> {gpuc.partition = #gpuc.partition<slices = 2, rows = 1>})

// -----

// What draws nothing is the same wherever its rows stand.
func.func @case(%x: tensor<8x2xf32>) {
  // expected-error @below {{gpuc.partition stands at modules, functions, their arguments and what draws random numbers alone [partition_C2]}}
  %0 = gpuc.relu %x {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>} : tensor<8x2xf32>
  return
}

// -----

// expected-error @below {{ranks, microbatches, slices and rows must be at least 1, but are 1, 0, 1 and 8 [partition_C3]}}
func.func private @case() attributes {gpuc.partition = #gpuc.partition<microbatches = 0, rows = 8>}

// -----

// expected-error @below {{ranks, microbatches, slices and rows must be at least 1, but are 1, 1, -2 and 8 [partition_C3]}}
func.func private @case() attributes {gpuc.partition = #gpuc.partition<slices = -2, rows = 8>}

// -----

// expected-error @below {{how many ranks there are is not known where they are distributed, but it says 2 [partition_C6]}}
func.func private @case() attributes {gpuc.partition = #gpuc.partition<ranks = 2, rows = 8, distributed = true>}

// -----

// The product of three is 2^31.
// expected-error @below {{1 ranks of 1024 microbatches of 1024 slices of 2048 rows are 2^31 rows or more: take fewer [partition_C4]}}
func.func private @case() attributes {gpuc.partition = #gpuc.partition<microbatches = 1024, slices = 1024, rows = 2048>}

// -----

// And this one is 0 in 64 bits.
// expected-error @below {{are 2^31 rows or more: take fewer [partition_C4]}}
func.func private @case() attributes {gpuc.partition = #gpuc.partition<microbatches = 4294967296, slices = 4294967296, rows = 1>}

// -----

// expected-error @below {{ranks, microbatches, slices and rows must be at least 1, but are 0, 1, 1 and 8 [partition_C3]}}
func.func private @case() attributes {gpuc.partition = #gpuc.partition<ranks = 0, rows = 8>}

// -----

// expected-error @below {{65536 ranks of 65536 microbatches of 1 slices of 8 rows are 2^31 rows or more: take fewer [partition_C4]}}
func.func private @case() attributes {gpuc.partition = #gpuc.partition<ranks = 65536, microbatches = 65536, rows = 8>}

// -----

// How many rows make an update would be forgotten.
// expected-error @below {{gpuc.accumulate is of an older gpuc, which had no gpuc.partition: emit this text anew [partition_C5]}}
module attributes {gpuc.accumulate = 4 : i64} {
}

// -----

// expected-error @below {{gpuc.shards is of an older gpuc, which had no gpuc.partition: emit this text anew [partition_C5]}}
func.func private @case() attributes {gpuc.shards = 2 : i64}

// -----

// expected-error @below {{gpuc.per_row is of an older gpuc, which had no gpuc.partition: emit this text anew [partition_C5]}}
func.func private @case(tensor<8xf32> {gpuc.per_row})
