// RUN: gpuc-opt %s | gpuc-opt | FileCheck %s

// A cut that is not there is not said.
// CHECK: module attributes {gpuc.partition = #gpuc.partition<microbatches = 4, rows = 8>}
module attributes {gpuc.partition = #gpuc.partition<microbatches = 4, slices = 1, rows = 8>} {
  // CHECK: func.func @part(%{{.*}}: tensor<8x2xf32> {gpuc.partition = #gpuc.partition<microbatches = 4, slices = 2, rows = 8>}, %{{.*}}: tensor<f32>)
  // CHECK-SAME: attributes {gpuc.partition = #gpuc.partition<microbatches = 4, slices = 2, rows = 8>}
  func.func @part(%x: tensor<8x2xf32> {gpuc.partition = #gpuc.partition<rows = 8, slices = 2, microbatches = 4>}, %s: tensor<f32>)
      attributes {gpuc.partition = #gpuc.partition<microbatches = 4, slices = 2, rows = 8>} {
    // CHECK: gpuc.dropout {{.*}} {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>}
    %0 = gpuc.dropout %x p 0.5 id 7 {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>} : tensor<8x2xf32>
    return
  }
  // 2^31 - 1 rows can be counted.
  // CHECK: func.func private @most(tensor<1xf32>) attributes {gpuc.partition = #gpuc.partition<microbatches = 2147483647, rows = 1>}
  func.func private @most(tensor<1xf32>) attributes {gpuc.partition = #gpuc.partition<microbatches = 2147483647, rows = 1>}
  // CHECK: func.func private @share(tensor<4xf32>) attributes {gpuc.partition = #gpuc.partition<microbatches = 3, rows = 4, distributed = true>}
  func.func private @share(tensor<4xf32>) attributes {gpuc.partition = #gpuc.partition<microbatches = 3, rows = 4, distributed = true>}
  // Of a batch that is not bound yet the number of rows is not known.
  func.func private @unbound(tensor<?x2xf32> {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>})
}
